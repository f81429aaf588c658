"""The text layer against subword-nmt, sacremoses and Python itself."""

import codecs
import collections
import functools
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import unicodedata
import zlib

import pytest
from subword_nmt import apply_bpe, learn_bpe

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import golden_folders  # noqa: E402
import made_up_text  # noqa: E402
import real_text  # noqa: E402

BIN = pathlib.Path(os.environ.get("SEQCONV_BIN", ROOT / "build/release/bin"))


def tool(text, *arguments):
    """What text_tool prints for a text on its standard input."""
    run = subprocess.run(
        [BIN / "text_tool", *map(str, arguments)],
        input=text.encode(),
        capture_output=True,
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode()


# Languages that one corpus mixes, lines of each, and merges to learn of half of them.
MADE_UP = {
    "latin": (["german", "english", "french"], 500, 500),
    "accents": (["vietnamese", "turkish"], 400, 400),
    "alphabets": (["greek", "russian", "arabic", "hebrew", "hindi", "tamil"], 150, 400),
    "without-blanks": (["chinese", "japanese", "thai", "korean"], 60, 300),
}
PARTS = {
    "multi30k": ["multi30k/train.de.xz", "multi30k/train.en.xz"],
    "europarl": ["europarl-de-en-20k/train.de.xz", "europarl-de-en-20k/train.en.xz"],
    "enja": ["enja-50k/dev.ja.xz", "enja-50k/test.ja.xz", "enja-50k/test.en.xz"],
    "iwslt15": ["iwslt15-en-vi-10k/train.vi.xz"],
    "ted": ["ted-en-fr-30k/dev.fr.xz", "ted-en-fr-30k/dev.en.xz"],
}
THERE = real_text.present(sum(PARTS.values(), []))
CORPORA = [*MADE_UP, *(name for name, parts in PARTS.items() if set(parts) & set(THERE))]


@functools.lru_cache(maxsize=None)
def corpus(name):
    if name in PARTS:
        return "".join(real_text.read(part) for part in PARTS[name] if part in THERE)
    languages, count, _ = MADE_UP[name]
    rows = [line for language in languages for line in made_up_text.lines(language, count, seed=1)]
    return "\n".join(rows) + "\n"


def nasty_text(seed, lines=200):
    """Repetitive words with odd white space, markers and signs."""
    choose = random.Random(seed).choice
    alphabet = ["a", "a", "b", "ab", "é", "e\u0301", "漢", "😀", "\\", "\\1", "<", "</w>",
                "@@", "@", "#version: 0.2", "\u00a0", "\u3000", "\t", "\x1f", "\u200b",
                "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r",
                ".", "$", "(", "aa", "aba"]
    count = random.Random(seed + 1).randint
    rows = []
    for _ in range(lines):
        words = ["".join(choose(alphabet) for _ in range(count(0, 9))) for _ in range(count(0, 6))]
        rows.append(choose(["", " ", "  "]).join([""] + [choose([" ", "  "]).join(words)] + [""]))
    return choose(["\n", "\r\n"]).join(rows) + choose(["\n", "\r\n", ""])


def as_the_program_reads(text):
    """subword-nmt's program wraps files so that lines end as in str.splitlines."""
    return codecs.getreader("utf-8")(io.BytesIO(text.encode()))


def package_codes(text, merges, min_frequency):
    out = io.StringIO()
    learn_bpe.learn_bpe(as_the_program_reads(text), out, merges, min_frequency)
    return out.getvalue()


def package_apply(text, codes, vocabulary=None, threshold=None, **options):
    if vocabulary is not None:
        rows = as_the_program_reads(vocabulary)
        options["vocab"] = apply_bpe.read_vocabulary(rows, threshold)
    bpe = apply_bpe.BPE(as_the_program_reads(codes), **options)
    return "".join(bpe.process_line(line) for line in as_the_program_reads(text))


def package_vocabulary(pieces):
    """Pieces and counts, as get-vocab writes them, but one in three is missing."""
    rows = collections.Counter(pieces.split()).items()
    return "".join(f"{word} {count}\n" for word, count in rows if zlib.crc32(word.encode()) % 3)


@pytest.mark.parametrize("name", CORPORA)
def test_bpe_on_text_equals_the_package(name, tmp_path):
    text = corpus(name).lower() if name in ("latin", "multi30k") else corpus(name)
    text = "\n".join(text.split("\n")[:: 4 if name in PARTS else 2]) + "\n"
    merges = 2000 if name in PARTS else MADE_UP[name][2]
    codes = tool(text, "bpe-learn", merges, 2)
    assert codes == package_codes(text, merges, 2)
    (tmp_path / "codes").write_text(codes, encoding="utf-8")
    text = "\n".join(text.split("\n")[:20000]) + "\n"
    expected = package_apply(text, codes)
    assert tool(text, "bpe-apply", tmp_path / "codes") == expected
    (tmp_path / "vocabulary").write_bytes(package_vocabulary(expected).encode())
    got = tool(text, "bpe-apply", tmp_path / "codes", "@@", tmp_path / "vocabulary", 5)
    assert got == package_apply(text, codes, package_vocabulary(expected), 5)
    assert got != expected


@pytest.mark.parametrize("seed", range(20))
def test_bpe_on_nasty_text_equals_the_package(seed, tmp_path):
    text = nasty_text(seed, 80)
    for merges, min_frequency in ((30, 2), (400, 1)):
        codes = tool(text, "bpe-learn", merges, min_frequency)
        assert codes == package_codes(text, merges, min_frequency)
        if any(len(line.split(" ")) != 2 for line in codes.split("\n")[1:-1]):
            continue
        (tmp_path / "codes").write_bytes(codes.encode())
        other = nasty_text(seed + 1000, 80)
        expected = package_apply(other, codes)
        assert tool(other, "bpe-apply", tmp_path / "codes") == expected
        for separator, glossaries in (
            ("@@", ["aba", "漢"]), ("￭", ["a(b|é)+", "</w>", "ba?"]), ("", [r"\.", "a|b", "x*"])
        ):
            flags = {"separator": separator, "glossaries": glossaries}
            vocabulary = package_vocabulary(package_apply(other, codes, **flags))
            (tmp_path / "vocabulary").write_bytes(vocabulary.encode())
            got = tool(other, "bpe-apply", tmp_path / "codes", separator,
                       tmp_path / "vocabulary", 2, *glossaries)
            try:
                assert got == package_apply(other, codes, vocabulary, 2, **flags)
            except RecursionError:  # where the text itself has learned </w>
                assert "</w>" in codes.replace("</w>\n", "\n")


# Python and PCRE2 read these differently by themselves.
@pytest.mark.parametrize("glossary", [
    "a{,2}b", "[ab]{,}é", r"a\sb", r"[^\s.]+", r"[\S]b", r"\u6f22", r"[\u00e0-\u00ff]", r"\U0001F600",
    r"b\v", r"[\v\f]", r"a\Z", "[]{,2}]+", r"\{,2}", "a{,x}", "a{"])
def test_glossaries_are_those_of_python(glossary, tmp_path):
    codes = "#version: 0.2\na b\nab a\n"
    (tmp_path / "codes").write_text(codes, encoding="utf-8")
    text = nasty_text(7, 400) + "a{,2}b a{ a{,x} ] } {,2 ,2} aab aaab b aaaab\n"
    got = tool(text, "bpe-apply", tmp_path / "codes", "@@", "", 0, glossary)
    assert got == package_apply(text, codes, glossaries=[glossary])
    assert got != package_apply(text, codes)


@pytest.mark.parametrize("seed", range(10))
def test_version_01_codes_apply_as_in_the_package(seed, tmp_path):
    rng = random.Random(seed)
    symbols = ["a", "b", "c", "</w>"]
    lines = []
    for _ in range(15):
        left, right = rng.choice(symbols), rng.choice(symbols)
        if not left.endswith("</w>"):
            lines.append(f"{left} {right}")
            symbols.append(left + right)
    codes = "\n".join(lines) + "\n"
    (tmp_path / "codes").write_text(codes, encoding="utf-8")
    text = "".join(
        " ".join("".join(rng.choice("abc") for _ in range(rng.randint(1, 9))) for _ in range(5)) + "\n"
        for _ in range(200)
    )
    expected = package_apply(text, codes)
    assert tool(text, "bpe-apply", tmp_path / "codes") == expected
    (tmp_path / "vocabulary").write_bytes(package_vocabulary(expected).encode())
    got = tool(text, "bpe-apply", tmp_path / "codes", "@@", tmp_path / "vocabulary", 1)
    assert got == package_apply(text, codes, package_vocabulary(expected), 1)


@pytest.mark.parametrize("dropout", (0, 0.1, 0.5, 0.9, 1))
@pytest.mark.parametrize("version", ("0.1", "0.2"))
def test_bpe_with_dropout_draws_as_the_program_does(dropout, version, tmp_path):
    text = corpus("latin")[:8000]
    codes = tool(text, "bpe-learn", 300, 2)
    if version == "0.1":
        codes = codes.split("\n", 1)[1]
    (tmp_path / "codes").write_text(codes, encoding="utf-8")
    for seed, flags, options in ((0, [], {}), (7, ["--glossaries", "[0-9]+", "e"], {"glossaries": ["[0-9]+", "e"]}),
                                 (2**31 - 1, ["--separator", "|"], {"separator": "|"})):
        run = subprocess.run([BIN / "seqconv", "bpe", "apply", "--codes", tmp_path / "codes", "--dropout", str(dropout),
                              "--seed", str(seed), *flags], input=text.encode(), capture_output=True, check=True)
        bpe = apply_bpe.BPE(as_the_program_reads(codes), **options)
        random.seed(seed)
        assert run.stdout.decode() == "".join(bpe.process_line(line, dropout) for line in as_the_program_reads(text))



@pytest.mark.parametrize("end", "\n \r\n \r \x0b \x0c \x1c \x1d \x1e \x1f \x85 \u2028 \u2029".split(" "))
def test_bpe_ends_lines_where_the_program_does(end, tmp_path):
    text = f"foo{end}bar bar\n foo {end}{end} bar{end}foo bar"
    codes = "#version: 0.2\nf o\nfo o</w>\nb a\nba r</w>\n"
    (tmp_path / "codes").write_bytes(codes.encode())
    assert tool(text, "bpe-apply", tmp_path / "codes") == package_apply(text, codes)
    assert tool(text * 3, "bpe-learn", 8, 2) == package_codes(text * 3, 8, 2)


@pytest.mark.parametrize("name", CORPORA)
def test_lower_case_equals_python_on_text(name):
    text = corpus(name)
    assert tool(text, "lower") == text.lower()


def test_lower_case_equals_python_for_every_character_it_knows():
    characters = [
        chr(c)
        for c in range(1, 0x110000)
        if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Cc")
    ]
    got = tool("".join(f"x{c}y\n" for c in characters), "lower").split("\n")[:-1]
    want = [f"x{c}y".lower() for c in characters]
    different = [(c, g, w) for c, g, w in zip(characters, got, want) if g != w]
    assert len(got) == len(want)
    assert different == []


@pytest.mark.parametrize("seed", range(5))
def test_words_are_those_of_str_split(seed):
    text = nasty_text(seed)
    lines = text.removesuffix("\n").split("\n")
    assert tool(text, "words").split("\n")[:-1] == [" ".join(line.split()) for line in lines]


def fairseq_dictionary(pieces, multiple):
    """dict.txt: by count, equal ones by code points; then words that fill it up."""
    special = ("<s>", "<pad>", "</s>", "<unk>")
    counts = collections.Counter(piece for piece in pieces.split() if piece not in special)
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    missing = -(len(rows) + len(special)) % multiple
    rows += [(f"madeupword{number:04}", 0) for number in range(missing)]
    return "".join(f"{piece} {count}\n" for piece, count in rows)


@pytest.mark.parametrize("name", MADE_UP)
def test_dictionary_equals_fairseqs(name, tmp_path):
    (tmp_path / "codes").write_text(tool(corpus(name), "bpe-learn", 200, 2), encoding="utf-8")
    pieces = tool(corpus(name), "bpe-apply", tmp_path / "codes")
    for multiple in (1, 8, 64):
        assert tool(pieces, "dictionary", multiple) == fairseq_dictionary(pieces, multiple)


@pytest.mark.parametrize("folder", golden_folders.with_files("golden.json"), ids=lambda folder: folder.name)
def test_golden_tokens_have_the_golden_pieces(folder):
    rows = json.loads((folder / "golden.json").read_text(encoding="utf-8"))["rows"]
    assert rows
    for side in ("src", "ref"):
        tokens = "".join(row[side + "_tok"] + "\n" for row in rows)
        pieces = [row[side + "_bpe"] for row in rows]
        assert tool(tokens, "bpe-apply", folder / "bpecodes") == "".join(row + "\n" for row in pieces)


# What fairseq made of the whole of Multi30k, where both are named.
GOLDEN = golden_folders.ROOT / "multi30k-dynamicconv"
if set(PARTS["multi30k"]) <= set(THERE) and GOLDEN.is_dir():

    def test_joined_dictionary_of_multi30k_equals_the_golden_one_of_fairseq():
        words = ""
        for language in ("de", "en"):
            run = subprocess.run([BIN / "seqconv", "tokenize", "--language", language, "--lowercase"],
                                 input=real_text.read(f"multi30k/train.{language}.xz").encode(), capture_output=True, check=True)
            words += run.stdout.decode()
        assert tool(words, "bpe-learn", 6000, 2) == (GOLDEN / "bpecodes").read_text(encoding="utf-8")
        pieces = tool(words, "bpe-apply", GOLDEN / "bpecodes")
        assert tool(pieces, "dictionary", 8).encode() == (GOLDEN / "dict.de.txt").read_bytes()
