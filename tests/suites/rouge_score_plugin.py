"""rouge_score's tests on `seqconv evaluate rouge --style rouge_score`."""
import re

import program

NO_DATA = "the package lacks the files that it compares with"
REASONS = {
    "io_test.py": "about the package's own reading and writing of files",
    "scoring_test.py": "about the package's own intervals, of which evaluate has its own",
    "tokenize_test.py": "about a function inside the package",
    "tokenizers_test.py": "about a class inside the package",
    "AgainstRouge155": NO_DATA,
    "testRougeLsumLarge": NO_DATA,
    "testLcsTable": "about a function inside the package",
    "testUnionLcs": "about a function inside the package",
    "testSummaryLevelLcs": "about a function inside the package",
    "testRougeTokenizerInit": "about a tokenizer written in Python",
    "testRougeLSumSentenceSplitting": "about splitting sentences by NLTK in its second half",
}


def order_of(kind):
    match = re.fullmatch(r"rouge(\d+)", kind)
    if not match and kind not in ("rougeL", "rougeLsum"):
        raise ValueError(f"no measure of ours: {kind}")
    return int(match[1]) if match else 1


def score_multi(self, targets, prediction):
    from rouge_score import scoring

    order = max((order_of(kind) for kind in self.rouge_types), default=1)
    if min(order_of(kind) for kind in self.rouge_types) < 1:
        order = 0  # which our program refuses
    stem = [] if self._tokenizer._stemmer else ["--no-stem"]
    answer = program.evaluate("rouge", {"system": [prediction]}, [list(targets)], "--style", "rouge_score", "--order", order,
                              "--values", "recall", "precision", "f", *stem)
    values = {score["name"]: score["score"] / 100 for score in answer["scores"]}

    def of(kind):
        name = "ROUGE-" + kind.removeprefix("rouge")
        return scoring.Score(values[name + " P"], values[name + " R"], values[name])

    return {kind: of(kind) for kind in self.rouge_types}


def pytest_configure():
    import os

    from rouge_score import rouge_scorer, test_util

    test_util.TARGETS_FILE = test_util.PREDICTIONS_FILE = os.devnull  # setUp() reads what is not there
    rouge_scorer.RougeScorer.score_multi = score_multi
    rouge_scorer.RougeScorer.score = lambda self, target, prediction: score_multi(self, [target], prediction)


def pytest_collection_modifyitems(items):
    program.mark(items, REASONS)
