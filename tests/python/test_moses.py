"""`seqconv tokenize` against sacremoses, on generated lines and the golden ones."""

import functools
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import unicodedata

import pytest
from sacremoses import MosesDetokenizer, MosesTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import golden_folders  # noqa: E402
import made_up_text  # noqa: E402

BIN = pathlib.Path(os.environ.get("SEQCONV_BIN", ROOT / "build/release/bin"))

LANGUAGES = ["as", "ca", "cs", "de", "en", "es", "et", "fi", "fr", "ga", "gu", "hi", "hu", "is",
             "it", "ja", "kn", "ko", "lt", "lv", "ml", "mr", "nl", "or", "pa", "pl", "pt", "ro",
             "ru", "sk", "sl", "sv", "ta", "te", "xx", "yue", "zh"]
# Not cs: its decimals differ on purpose, see docs/tokenization.md.
DETOKENIZED = ["de", "en", "es", "fi", "fr", "ga", "it", "ja", "ko"]
# Sentences of made-up languages, by the language that they are taken for.
SENTENCES = {"german": "de", "english": "en", "french": "fr", "turkish": "it", "russian": "ru",
             "greek": "es", "hindi": "hi", "chinese": "zh", "japanese": "ja", "korean": "ko"}
OPTIONS = list(itertools.product((False, True), repeat=2))

WORDS = ["Mr", "Dr", "No", "Nr", "Art", "pp", "usw", "z.B", "etc", "e.g", "U.S", "A", "v", "III",
         "čís", "Sr", "ustawa", "tel", "г", "д", "p.ex", "c.-à-d", "hello", "World", "l", "qu",
         "don", "dogs", "EU", "ssa", "café", "e\u0301", "naïve", "Straße", "İstanbul", "ΣΑΣ",
         "привет", "हिन्दी", "தமிழ்", "ภาษา", "日本", "語", "カナ", "한국", "مرحبا", "שלום",
         "𝐀", "ⓐ", "ǅ", "ªº"]
NUMBERS = ["5", "1990", "1,000", "3.14", "٣", "५", "²", "½", "Ⅷ", "〇", "1st", "0"]
SIGNS = [".", "..", "...", "....", ",", ",,", ",,,", "'", "''", "'''", '"', "`", "``", "-", "--",
         "–", "—", "&", "&amp;", "&#124;", "&bar;", "|", "<", ">", "[", "]", "(", ")", "{", "}",
         "/", "\\", "@", "@-@", " @-@ ", "#", "$", "€", "₽", "¥", "%", "?", "!", ":", ";", "¿",
         "¡", "«", "»", "„", "“", "”", "‘", "’", "…", "。", "、", "!", "।", "😀", "👍🏽", "\ufeff",
         "\u200b", "\u00ad", "\u0301", "~", "^", "*", "_", "+", "=", ".'", ".''", "'s", "n't"]
SPACES = [" ", " ", " ", " ", " ", "  ", "\t", "\u00a0", "\u3000", "\u2028", "\x0b", "\x1f",
          "\x85", "\x01", "\x7f"]
MIXTURES = ["http://x.org/a-b?c=d&e", "me@example.com", "x@-@y", "rock'n'roll", "1990's", "3-4",
            "5%-ig", "(s.o.)", "O'Neill's", "l'homme", "J.-P.", "..a", "a..", "10.000,50"]


def line_of(choose, count):
    pieces = []
    for _ in range(count):
        kind = choose([WORDS, WORDS, NUMBERS, SIGNS, SIGNS, MIXTURES])
        pieces.append(choose(kind))
        pieces.append(choose(["", "", choose(SPACES)]))
    return "".join(pieces)


@functools.lru_cache(maxsize=None)
def lines_of(seed, number=120):
    source = random.Random(seed)
    return [line_of(source.choice, source.randint(0, 14)) for _ in range(number)]


def run(lines, language, *flags):
    program = subprocess.run(
        [BIN / "seqconv", "tokenize", "--language", language, *flags],
        input="".join(line + "\n" for line in lines).encode(),
        capture_output=True,
    )
    assert program.returncode == 0, program.stderr.decode()
    return program.stdout.decode().split("\n")[:-1]


def flags_of(escape, dashes):
    return ["--escape"] * escape + ["--split-dashes"] * dashes


class Package(MosesTokenizer):
    """The package's tokenizer, which makes sets of all letters at every dot: once here."""

    def __init__(self, language):
        super().__init__(language)
        self.letters, self.small_letters = set(self.IsAlpha), set(self.IsLower)

    def isanyalpha(self, text):
        return not self.letters.isdisjoint(text)

    def islower(self, text):
        return self.small_letters.issuperset(text)


package = functools.lru_cache(maxsize=None)(Package)


@functools.lru_cache(maxsize=4)
def package_texts(lines, language, dashes):
    tokenizer = package(language)
    return [
        tokenizer.tokenize(line, escape=False, aggressive_dash_splits=dashes, return_str=True) for line in lines
    ]


def package_tokens(lines, language, escape, dashes):
    """Escaping is the package's last step, and splitting at blanks comes behind it."""
    texts = package_texts(tuple(lines), language, dashes)
    return [(package(language).escape_xml(text) if escape else text).split() for text in texts]


def different(lines, ours, theirs):
    assert len(ours) == len(theirs)
    return [row for row in zip(lines, ours, theirs) if row[1] != row[2]][:5]


def compare(lines, language, escape=False, dashes=False):
    ours = run(lines, language, *flags_of(escape, dashes))
    theirs = package_tokens(lines, language, escape, dashes)
    assert different(lines, ours, [" ".join(tokens) for tokens in theirs]) == []


@pytest.mark.parametrize("escape, dashes", OPTIONS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_tokens_of_mixtures_equal_the_package(language, escape, dashes):
    compare(lines_of(language), language, escape, dashes)


@pytest.mark.parametrize("language", LANGUAGES)
def test_prefixes_keep_their_dots_as_in_the_package(language):
    """Before a capital, a number and a small letter, and at the end of a line."""
    prefixes = [prefix.removesuffix("#NUMERIC_ONLY#").strip() for prefix in package(language).NONBREAKING_PREFIXES]
    assert prefixes
    lines = [f"{prefix}. A {prefix}. 5 {prefix}. b x{prefix}. A {prefix}." for prefix in prefixes]
    compare([" ".join(lines[i:i + 9]) for i in range(0, len(lines), 9)], language)


@pytest.mark.parametrize("escape, dashes", OPTIONS)
@pytest.mark.parametrize("script", SENTENCES)
def test_tokens_of_sentences_equal_the_package(script, escape, dashes):
    compare(made_up_text.lines(script, 70, seed=3), SENTENCES[script], escape, dashes)


@pytest.mark.parametrize("language", DETOKENIZED)
def test_text_of_mixtures_equals_the_package(language):
    detokenizer = MosesDetokenizer(language)
    for escape, dashes in OPTIONS:
        tokens = package_tokens(lines_of(language), language, escape, dashes)
        # Also sentences, and lines that no tokenizer has made.
        for script in (s for s in SENTENCES if SENTENCES[s] == language):
            tokens += package_tokens(made_up_text.lines(script, 70, seed=4), language, escape, dashes)
        tokens += [line.split() for line in lines_of(language + "raw")]
        lines = [" ".join(words) for words in tokens]
        theirs = [detokenizer.detokenize(words) for words in tokens]
        assert different(lines, run(lines, language, "--undo"), theirs) == []


def rows_of(characters, around):
    """Each character with what is around it: twelve a line, but blanks and hidden
    ones alone."""
    alone = [c for c in characters if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Zs")]
    others = sorted(set(characters).difference(alone))
    rows = [[c] for c in alone] + [others[i:i + 12] for i in range(0, len(others), 12)]
    return [" ".join(around.replace("?", c) for c in row) for row in rows]


def test_characters_are_of_the_same_kinds_as_in_the_package():
    # All of the alphabets, a part of the ideographs and of what is not assigned.
    codes = itertools.chain(range(1, 0x3400), range(0x3400, 0x110000, 197), range(0xA000, 0xAC00),
                            range(0xF900, 0x10000), range(0x10000, 0x1FFFF, 31))
    # The package's lists hold the sign that shows combining marks.
    characters = [chr(c) for c in codes if not 0xD800 <= c < 0xE000 and chr(c) not in "\n\r\u25cc"]
    # Beside letters, dots, commas and apostrophes, and with small letters to come.
    compare(rows_of(characters, "a?b ?'? 1,?,1 x?. X. ?"), "en")
    # Chinese has more letters, and the package is slow at blanks beside them.
    others = [c for c in characters if "\ua000" <= c < "\uf900" or "\ufb00" <= c < "\U00010000"]
    letters = sorted(set(characters[0x2E00:]).difference(others)) + others[::7]
    compare(rows_of(letters, "?0?.?."), "zh")


def test_lower_case_comes_behind_the_tokens():
    lines = lines_of("lower")
    want = [" ".join(tokens).lower() for tokens in package_tokens(lines, "de", False, False)]
    assert different(lines, run(lines, "de", "--lowercase"), want) == []


@pytest.mark.parametrize("folder", golden_folders.with_files("golden.json"), ids=lambda folder: folder.name)
def test_golden_lines_have_the_golden_tokens(folder):
    golden = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    rows = golden["rows"]
    assert rows
    for side, language in zip(("src", "ref"), golden.get("languages", ("de", "en"))):
        lines = [row[side + "_raw"] for row in rows]
        want = [row[side + "_tok"] for row in rows]
        assert different(lines, run(lines, language, "--lowercase"), want) == []
