"""subword-nmt's tests on `seqconv bpe`."""
import re
import sys
import tempfile

import program

REASONS = {
    "TestBPELearnMethod": "the package lacks the text that it learns from",
    "test_bpe.py::TestBPESegmentMethod": "the package lacks the codes that it applies",
    "test_glossaries.py::TestBPESegmentMethod": "about a function inside the package",
    "test_empty_string": "an empty word is never asked of a program that reads lines",
}
CODES = "#version: 0.2\n\u2603 \u2603\n"  # which merge nothing


def isolate(word, glossaries):
    """The parts of a word: those that are glossaries, and what lies between them."""
    with tempfile.NamedTemporaryFile("w", suffix=".codes") as codes:
        codes.write(CODES)
        codes.flush()
        line = program.call("seqconv", "bpe", "apply", "--codes", codes.name, "--separator", "\x01", "--glossaries", *glossaries,
                            text=word.replace(" ", "\u2423"))
    parts, between = [], ""
    for piece in line.replace("\u2423", " ").split("\x01 "):
        if any(re.fullmatch(glossary, piece) for glossary in glossaries):
            parts += [between] * bool(between) + [piece]
            between = ""
        else:
            between += piece
    return parts + [between] * bool(between)


def pytest_configure():
    import subword_nmt

    sys.path.insert(0, subword_nmt.__path__[0])  # the tests import apply_bpe by itself
    import apply_bpe

    apply_bpe.isolate_glossary = lambda word, glossary: isolate(word, [glossary])
    made = apply_bpe.BPE.__init__

    def remember(self, *arguments, glossaries=None, **options):
        made(self, *arguments, glossaries=glossaries, **options)
        self.ours = list(glossaries or [])

    apply_bpe.BPE.__init__ = remember
    apply_bpe.BPE._isolate_glossaries = lambda self, word: isolate(word, self.ours)


def pytest_collection_modifyitems(items):
    program.mark(items, REASONS)
