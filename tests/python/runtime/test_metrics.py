"""seqconv.metrics against the numbers of sacreBLEU and of the papers' programs."""

import pytest
import sacrebleu

import seqconv
from seqconv import metrics

HYPOTHESES = ["the cat sat on the mat", "There is a dog , outside !", "Ein Hund läuft"]
REFERENCES = ["the cat sat on a mat", "There's a dog outside!", "Ein Hund rennt"]


def test_scores_are_those_of_sacrebleu():
    theirs = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES])
    assert metrics.bleu(HYPOTHESES, REFERENCES).score == pytest.approx(theirs.score)
    assert metrics.bleu(HYPOTHESES, REFERENCES, tokenizer="char", lowercase=True).score == (
        pytest.approx(sacrebleu.corpus_bleu(
            HYPOTHESES, [REFERENCES], tokenize="char", lowercase=True).score))  # fmt: skip
    assert metrics.chrf(HYPOTHESES, REFERENCES, word_order=2).score == pytest.approx(
        sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score)
    assert metrics.ter(HYPOTHESES, REFERENCES).score == pytest.approx(
        sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score)


def test_several_references_are_lists():
    twice = [[reference, reference.upper()] for reference in REFERENCES]
    assert metrics.bleu(HYPOTHESES, twice).score == pytest.approx(sacrebleu.corpus_bleu(
        HYPOTHESES, [REFERENCES, [one.upper() for one in REFERENCES]]).score)  # fmt: skip


def test_a_metric_says_how_it_came_about():
    found = metrics.bleu(HYPOTHESES, REFERENCES)
    assert "tok:13a" in found.signature and str(found).startswith("BLEU|nrefs:1")
    assert float(found) == found.score
    rouge = metrics.rouge(HYPOTHESES, REFERENCES)
    assert list(rouge.scores) == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert metrics.exact(HYPOTHESES, HYPOTHESES).score == 100


def test_what_makes_no_sense_is_named():
    with pytest.raises(TypeError, match="lists of texts"):
        metrics.bleu("a", ["a"])
    with pytest.raises(seqconv.OptionError, match="there are 1 and 2"):
        metrics.bleu(["a"], ["a", "b"])
    with pytest.raises(seqconv.OptionError, match="equally many"):
        metrics.bleu(["a", "b"], [["a"], ["a", "b"]])
    with pytest.raises(seqconv.OptionError, match="tokenizer"):
        metrics.bleu(["a"], ["a"], tokenizer="mine")
    for name, value in [("tokenizer", "char"), ("smoothing", "floor"), ("order", 2),
                        ("effective_order", True)]:  # fmt: skip
        with pytest.raises(seqconv.OptionError, match=f"{name}.* has no effect with .*multi-bleu"):
            metrics.bleu(["a"], ["a"], style="multi-bleu", **{name: value})
    assert "multi-bleu" in metrics.bleu(["a"], ["a"], style="multi-bleu").signature
    with pytest.raises(seqconv.OptionError, match="compound_split.* has no effect"):
        metrics.bleu(["a"], ["a"], compound_split=True)
    with pytest.raises(seqconv.OptionError, match="hypotheses"):
        metrics.bleu([], [])
