"""Bad text and searches for translation models."""

import os

import support
from hostile.case import GARBAGE, LONG, TRANSLATE, Case, written


def lines_to_translate():
    base = ["translate", "--model", support.model(), *TRANSLATE]
    for name, stdin in (
        ("nothing", b""), ("blank lines", b"\n" * 3000), ("NULs", b"\0\0\n"),
        ("garbage", GARBAGE), ("no newline", b"1 2"), ("CRLF", b"1\r\n\r\n"),
        ("a lone CR", b"1\r2\r3"), ("a byte-order mark", b"\xef\xbb\xbf1\n"),
        ("a mark twice", b"\xef\xbb\xbf\xef\xbb\xbf1\n"),
        ("a long word", b"x" * LONG + b"\n1\n"),
        ("a long line", b"1 " * (LONG // 2) + b"\n1\n"),
        ("overlong UTF-8", b"\xc0\xaf \xf5\x80\x80\x80\n"),
        ("surrogates", b"\xed\xa0\x80\xed\xb0\x80\n"),
        ("controls", bytes(range(1, 32)) + b"\n"),
        ("right to left", "\u202e1 2\u200f\u0301\n".encode()),
        ("unknown words", "日本語 русский 😀\n".encode()),
        ("special symbols", b"<s> </s> <pad> <unk> madeupword0000\n"),
        ("separators", "1\u20282\u20293\u00854\n".encode()),
    ):
        yield Case(f"translate {name}", base, 0, stdin=stdin)
        yield Case(f"translate {name} to JSON", [*base, "--format", "json"], 0,
                   stdin=stdin)


def json_requests():
    base = ["translate", "--model", support.model(), *TRANSLATE, "--json-input"]
    for name, line in (
        ("no JSON", "hello"), ("cut", '{"text": "1'), ("a list", "[1]"),
        ("a string", '"1"'), ("null", "null"),
        ("no text", "{}"), ("text of a number", '{"text": 1}'),
        ("prefix of a list", '{"text": "1", "target_prefix": []}'),
        ("two objects", '{"text": "1"} {"text": "2"}'),
        ("deep", '{"text": "1", "a": ' + "[" * LONG + "]" * LONG + "}"),
        ("deep text", "[" * LONG),
        ("half a surrogate", '{"text": "\\ud800"}'),
        ("NaN", '{"text": "1", "a": NaN}'),
        ("twins", '{"text": "1", "text": "2"}'),
        ("spelled as a flag", '{"text": "1", "n-best": 1}'),
        ("spelled as a flag of draws", '{"text": "1", "top-k": 1}'),
    ):
        yield Case(f"request is {name}", base, 1, "standard input:2",
                   stdin=f'{{"text": "1"}}\n{line}\n'.encode())
    for name, line in (
        ("a NUL", '{"text": "1 \\u0000 2"}'),
        ("empty text", '{"text": ""}'), ("a blank line behind", " "),
        ("a prefix longer than allowed",
         '{"text": "1", "target_prefix": "' + "eins " * 50 + '"}'),
        ("an unknown prefix", '{"text": "1", "target_prefix": "日本"}'),
        ("a prefix of </s>", '{"text": "1", "target_prefix": "</s> eins"}'),
        ("invalid UTF-8", b'{"text": "\xff"}'),
        ("a huge number", '{"text": "1", "a": 1e999}'),
        ("large numbers", '{"text": "1", "a": 123456789012345678901234567890}'),
    ):
        if isinstance(line, str):
            line = line.encode()
        yield Case(f"request with {name}", base, 0, stdin=line + b"\n")


def extreme_searches():
    base = ["translate", "--model", support.model()]
    for flags in (
        ["--beam", "200", "--max-length-b", "4"],
        ["--max-length-b", "0"], ["--max-length-a", "1e300"],
        ["--max-length-a", "0.5", "--max-length-b", "3"],
        ["--min-length", "2000000000"],
        ["--min-length", "50", "--max-length-b", "10"],
        ["--no-repeat-ngram", "1"], ["--no-repeat-ngram", "2000000000"],
        ["--length-penalty", "1e300"], ["--length-penalty", "-1e300"],
        ["--unknown-penalty", "1e300"], ["--unknown-penalty", "-1e300"],
        ["--batch-tokens", "1"], ["--buffer-lines", "1"],
        ["--threads", "1024"],
        ["--beam", "5", "--n-best", "5", "--max-length-b", "1"],
    ):
        contradiction = flags[:2] in (["--min-length", "2000000000"],
                                      ["--min-length", "50"])
        codes = 2 if "1e300" in flags[1] or contradiction or flags == [
            "--no-repeat-ngram", "2000000000"] else 0
        yield Case(f"search {flags}", [*base, *flags], codes, stdin=b"1 2\n")


def scores():
    good = written("score-s", "1 2\n3\n")
    base = ["score", "--model", support.model()]
    for name, source, target, code, *wanted in (
        ("equal", good, good, 0),
        ("missing source", "nowhere", good, 1, "nowhere"),
        ("missing target", good, "nowhere", 1, "nowhere"),
        ("unequal", good, written("score-1", "1\n"), 1, "2", "1"),
        ("folder", good, support.scratch(), 1),
        ("invalid UTF-8", good, written("score-bad", b"1\n\xff\n"), 1, ":2"),
        ("empty files", written("z1", ""), written("z2", ""), (0, 1)),
        ("empty target lines", good, written("z3", "\n\n"), 0),
        ("empty source lines", written("z4", "\n\n"), good, 0),
        ("a long line", good, written("z5", "eins " * 20000 + "\n1\n"), 0),
        ("a long word", good, written("z6", "x" * LONG + "\n1\n"), 0),
    ):
        yield Case(f"score {name}",
                   [*base, "--source", source, "--target", target], code,
                   *wanted)


def streams():
    base = ["translate", "--model", support.model(), *TRANSLATE]
    folder = os.open(support.scratch(), os.O_RDONLY)
    full = os.open("/dev/full", os.O_WRONLY)
    yield Case("no room for help", ["--help"], 1, "standard output",
               stdout=full)
    yield Case("no room for translations", base, 1, "standard output",
               stdin=b"1\n", stdout=full)
    yield Case("no room for codes", ["bpe", "learn", "--merges", "1"], 1,
               "standard output", stdin=b"ab ab\n", stdout=full)
    for arguments in (base, ["bpe", "learn", "--merges", "1"]):
        yield Case(
            f"{arguments[0]} reads a folder", arguments, 1, "standard input",
            preexec_fn=lambda: os.dup2(folder, 0))


FAMILIES = [
    lines_to_translate,
    json_requests,
    extreme_searches,
    scores,
    streams,
]
