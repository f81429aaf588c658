"""What the families of bad input share: a case is one run of the program."""

import random
import unicodedata

import support
from support import run

LONG = 100_000
GARBAGE = random.Random(7).randbytes(4096)
TRANSLATE = ["--max-length-b", "5", "--beam", "2"]


def is_clean(message):
    """Whether bytes are UTF-8 without control characters and odd line ends."""
    try:
        text = message.decode().replace("\n", "")
    except UnicodeDecodeError:
        return False
    return not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in text)


class Case:
    """One run. `code`: the exit code, or several that are right; `wanted`:
    words that the message must hold (only asked for when the run fails);
    `never`: a word that must not come out at all."""

    def __init__(self, name, arguments, code, *wanted, stdin=b"", never=None,
                 **options):
        self.name = name
        self.arguments = arguments
        self.codes = (code,) if isinstance(code, int) else code
        self.wanted = wanted
        self.stdin = stdin
        self.never = never
        self.options = options

    @property
    def output(self):
        """The folder in which the case trains, or None."""
        command = list(map(str, self.arguments))
        if command[:1] != ["train"] or "--dry-run" in command:
            return None
        if "--output" not in command[:-1]:
            return None
        return command[command.index("--output") + 1]

    def complaint(self):
        """What is wrong with the program's answer, or None."""
        result = run(*self.arguments, stdin=self.stdin, **self.options)
        message = result.message
        said = f"{self.name}: exit code {result.code}, said: {message[-600:]}"
        if result.code not in self.codes:
            return f"{said}\nwanted exit code {self.codes}"
        if "terminate called" in message or "Sanitizer" in message:
            return said
        if self.never and self.never.encode() in result.out + result.err:
            return f"{said}\n{self.never!r} must not come out"
        if "json.exception" in message:
            return f"{said}\na library's text"
        if "internal error" in message:
            return f"{said}\nan error of ours must have a message of ours"
        if not is_clean(result.err):
            return f"{said}\na message must be lines of UTF-8"
        if result.code == 0:
            return None
        if "error: " not in message:
            return f"{said}\nwanted a line with 'error: '"
        if len(message) > 20_000:
            return f"{self.name}: a message of {len(message)} characters"
        for word in self.wanted:
            if word not in message:
                return f"{said}\nwanted {word!r} in the message"
        return None


def written(name, content):
    """A file of the scratch folder with this content."""
    path = support.scratch() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    return path
