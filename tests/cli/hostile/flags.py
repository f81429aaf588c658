"""Every flag of every verb with bad values: messages name it as it was typed,
and nothing that is no flag of the verb."""

import functools
import re

import support
from hostile.case import Case, written
from support import run

# What a verb must be given beside the flag, by the flags that say it.
MODEL = {"--model": ["nowhere"]}
NEEDED = {
    "train": {"": [support.config, "--dry-run"]},
    "translate": MODEL,
    "summarise": MODEL,
    "score": {**MODEL, "--source": ["a"], "--target": ["b"]},
    "perplexity": MODEL,
    "generate": MODEL,
    "average": {"--output": ["x"], "": ["nowhere"]},
    "shortlist": {**MODEL, "--source": ["a"], "--target": ["b"], "--output": ["c"]},
    "tokenize": {"--language": ["en"]},
    "bpe learn": {"--merges": ["1"]},
    "bpe apply": {"--codes": ["nowhere"]},
    "import": {"--checkpoint": ["nowhere.pt"], "--output": ["x"]},
    "export": {"--format": ["pytorch"], "": ["nowhere", "x"]},
    "quantize": {**MODEL, "--output": ["x"]},
    "text": {"--dictionary": ["nowhere"], "": ["a.bin"]},
    "info": {"": ["nowhere"]},
    "inspect": {**MODEL, "--output": ["x"]},
}
# By the type of a value; those that are wrong whatever the flag is.
WRONG = {
    "N": ["x", "-1", "", "99999999999999999999"],
    "X": ["x", "nan", "", "1e999"],
    "I/N": ["", "0/1", "2/1", "1"],
    **dict.fromkeys(("KEY", "REGEX", "TEXT"), ["", "a\udcff"]),  # a byte that is not UTF-8
    "": ["often"],  # of a switch
}
PERHAPS = {"N": ["0", "2147483647"], "X": ["0", "-1e300"], "NAME": ["no-such-name"], "CODE": ["xx-yy"], "KEY=VALUE": ["x", "=1"]}
# Names that are values, not options.
VALUES = {"rouge_score", "language_model"}


class NamedCase(Case):
    """A message may name flags of the verb alone, and no key."""

    def __init__(self, flags, *arguments, **options):
        super().__init__(*arguments, **options)
        self.flags = flags

    def complaint(self):
        result = run(*self.arguments, stdin=self.stdin)
        said = super().complaint()
        if said or result.code != 2:
            return said
        message = result.message
        if self.typed not in re.findall(r"[\w-]+", message):
            return f"{self.name}: wanted {self.typed} in: {message}"
        for flag in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", message):
            if flag not in self.flags:
                return f"{self.name}: {flag} is no flag of the verb: {message}"
        for key in re.findall(r"-\.\w+|\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+\.[a-z_]+ must\b", message):
            if key not in VALUES:
                return f"{self.name}: {key} is a key: {message}"
        return None


@functools.cache
def verbs():
    """The flags of each verb: (names, type of the value), ..."""
    found = {}
    for line in run("reference", "command-line").lines:
        if line.startswith("#"):
            verb = line.lstrip("# ").removeprefix("seqconv").strip()
            found[verb] = []
        row = re.match(r"\| `(-[^` ]+)(?: ([^`]+?))?`", line)
        if row:
            found[verb].append((row[1].split(","), (row[2] or "").split(" ")[0]))
    return found


def command(verb, needed, without):
    words = verb.split()
    for flag, values in needed.items():
        if flag in without:
            continue
        words += [flag] if flag else []
        words += [value() if callable(value) else value for value in values]
    return words


def every_flag():
    reference = written("flags.ref", "a b\n")
    listed = verbs()
    everywhere = {"--help", "-h", "-q", "--quiet", "--version"}
    for verb, rows in listed.items():
        known = everywhere | {name for names, _ in rows for name in names}
        needed = NEEDED.get(verb, {})
        if verb.startswith("evaluate "):
            needed = {"--reference": [reference]}
        elif verb not in NEEDED:
            continue
        for names, kind in rows:
            wrong = WRONG.get(kind, [""])
            if "--prompt" in names:
                wrong = []
            values = [(value, 2) for value in wrong]
            values += [(value, (0, 1, 2)) for value in PERHAPS.get(kind, [])]
            for name in names:
                # Other spellings are read by the same code.
                for value, code in values if name == names[-1] else values[:1]:
                    if name.startswith("--"):
                        typed = [f"{name}={value}"]
                    elif kind == "":
                        continue  # -q takes no value
                    else:
                        typed = [name, value]
                    one = NamedCase(
                        known, f"{verb} {typed}", command(verb, needed, names) + typed,
                        code, stdin=b"a b\n")
                    one.typed = name
                    yield one


def contradictions():
    """Both flags are named, as they are typed."""
    model = ["--model", "nowhere"]
    good = written("names.ref", "a b\n")
    rouge = ["evaluate", "rouge", "-r", good]
    for arguments, *wanted in (
        (["translate", *model, "--min-length", "10", "--max-length-b", "5"],
         "--min-length must be at most --max-length-b (5) where --max-length-a is 0"),
        (["translate", *model, "--n-best", "3", "--beam", "2"],
         "--n-best must be between 1 and the beam (2), but got 3"),
        (["translate", *model, "--sample", "--no-stepwise-length-penalty"],
         "--no-stepwise-length-penalty is that of a search"),
        (["translate", *model, "--top-k", "3"], "--top-k is that of draws", "--sample"),
        (["summarise", *model, "--seed", "3"], "--seed is that of draws", "--sample"),
        (["evaluate", "chrf", "-r", good, "--word-order", "9"],
         "--word-order must be from 0 to 4"),
        (["evaluate", "chrf", "-r", good, "--beta", "0"], "--beta must be from 1"),
        ([*rouge, "--order", "0"], "--order must be from 1 to 9"),
        ([*rouge, "--style", "rouge_score", "--alpha", "0.3"],
         "--alpha has no effect with --style rouge_score"),
        ([*rouge, "--no-stem", "--exceptions", good],
         "--exceptions has no effect with --no-stem"),
        ([*rouge, "--no-stem", "--rouge-exceptions", good],
         "--rouge-exceptions has no effect with --no-stem"),
        (["evaluate", "bleu", "-r", good, "--compound-split"],
         "--compound-split has no effect with --style sacrebleu"),
        (["evaluate", "bleu", "-r", good, "--samples", "1", "--confidence"],
         "--samples must be 0 or at least 2"),
        (["evaluate", "bleu", "-r", good, "--tokenizer", "spm"],
         "--tokenizer spm needs", "--spm-model"),
        (["evaluate", "bleu", "-r", good, "--tokenize", "spm"],
         "--tokenize spm needs", "--spm-model"),
        (["import", "--checkpoint", "c.pt", "--output", "x", "--moses-escape"],
         "--moses-escape needs --tokenizer moses"),
        (["import", "--checkpoint", "c.pt", "--output", "x", "--source-language", "de"],
         "--source-language needs --tokenizer moses"),
        (["generate", *model, "--top-p", "0"], "--top-p must be above 0"),
        (["shortlist", *model, "--source", "a", "--target", "b", "--output", "c",
          "--iterations", "0"], "--iterations must be between 1 and 100"),
        (["translate", *model, "--input", ""], "--input must have a value"),
    ):
        yield Case(f"names of {arguments}", arguments, 2, *wanted, stdin=b"a b\n")


def misread():
    """The parser's own faults in our words: one row a kind of them."""
    model = ["--model", "nowhere"]
    for arguments, *wanted in (
        (["translate", *model, "--beam", "3", "--beam", "4"],
         "--beam must be given once, but got the values '3' and '4'",
         "; seqconv translate --help shows the flags"),
        (["generate", "-m", "a", "-m", "b", "-m", "c"],
         "-m must be given once, but got the values 'a', 'b' and 'c'"),
        (["translate", "--beam"], "--beam must have a value N, but got none"),
        (["translate", "-m"], "-m must have a value DIR, but got none"),
        (["train", support.config(), "--set"],
         "--set must have a value KEY=VALUE, but got none"),
        (["translate"], "--model is required, with a value DIR, but is not given"),
        (["info"], "DIR is required, but is not given", "; seqconv info --help"),
        (["bpe", "learn"], "--merges is required, with a value N, but is not given",
         "; seqconv bpe learn --help shows the flags"),
        (["bpe", "apply", "--codes", "x", "--vocabulary-threshold", "3"],
         "--vocabulary-threshold requires --vocabulary, but that is not given"),
        (["translate", *model, "--strict=often"],
         "--strict must be true or false where it has a value, but got 'often'"),
        (["translate", *model, "--no-stepwise-length-penalty=often"],
         "--no-stepwise-length-penalty must be true or false"),
        (["--quiet=often", "info", "x"], "--quiet must be true or false"),
        (["info", "a", "b"], "unexpected argument 'b'; seqconv info --help"),
        (["bleu"], "unexpected argument 'bleu'; did you mean 'evaluate bleu'?"),
        (["evaluate", "--reference", "f"], "unexpected argument '--reference'; evaluate needs "
         "a verb first: bleu, chrf, ter, rouge or exact"),
        (["evaluate", "blue"], "did you mean 'bleu'?"),
        (["quantize", "--from", "m"],
         "unexpected argument '--from'; seqconv quantize --help shows the flags"),
        (["translate", "--json"], "did you mean '--json-input' or '--format json'?"),
        (["translate", *model, "--", "--beam"],
         "unexpected argument '--beam'; seqconv translate --help"),
    ):
        yield Case(f"misread: {arguments}", arguments, 2, *wanted)
    yield Case(
        "hypotheses behind --reference",
        ["evaluate", "bleu", "--reference", support.config(), support.config()], 1,
        "standard input has no hypotheses: nothing to evaluate; --reference took 2 files, and a "
        "file of hypotheses goes to --hypotheses", stdin=b"")


FAMILIES = [every_flag, contradictions, misread]
