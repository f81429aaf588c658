"""sacreBLEU's tests on `seqconv evaluate`: its classes take options, our program computes."""
import program

REASONS = {
    "test_api.py": "about downloading test sets, which we have none of",
    "test_dataset.py": "about downloading test sets, which we have none of",
}


def bleu_flags(metric):
    flags = ["--tokenizer", metric.tokenizer.signature(), "--smooth", metric.smooth_method, "--order", metric.max_ngram_order]
    if metric.smooth_value is not None and metric.smooth_method in ("floor", "add-k"):
        flags += ["--smooth-value", metric.smooth_value]
    return flags + ["--lowercase"] * metric.lowercase + ["--effective-order"] * metric.effective_order


def chrf_flags(metric):
    return (["--char-order", metric.char_order, "--word-order", metric.word_order, "--beta", metric.beta]
            + ["--lowercase"] * metric.lowercase + ["--whitespace"] * metric.whitespace
            + ["--eps-smoothing"] * metric.eps_smoothing)


def ter_flags(metric):
    asian = metric.asian_support and (metric.normalized or metric.no_punct)
    return (["--normalized"] * metric.normalized + ["--no-punct"] * metric.no_punct + ["--asian-support"] * asian
            + ["--case-sensitive"] * metric.case_sensitive)


def numbers_of(flags):
    """Flags as text_tool has options: tokenizer='13a'."""
    names = {"smooth": "smoothing", "smooth-value": "smoothing_value"}
    options, values = [], iter(flags)
    for flag in values:
        key = flag[2:]
        value = "true" if key in ("lowercase", "effective-order") else next(values)
        quoted = f"'{value}'" if key in ("tokenizer", "smooth") else value
        options.append(f"{names.get(key, key).replace('-', '_')}={quoted}")
    return options


def bleu_score(metric, hypotheses, rows):
    """sacreBLEU's own kind of score, of our score and our counts."""
    from sacrebleu.metrics.bleu import BLEUScore

    score = program.evaluate("bleu", {"system": hypotheses}, rows, *bleu_flags(metric))["score"]
    text = "".join("\t".join([hypothesis, *(row for row in rows[i] if row is not None)]) + "\n"
                   for i, hypothesis in enumerate(hypotheses))
    numbers = list(map(int, program.call("text_tool", "bleu-counts", *numbers_of(bleu_flags(metric)), text=text).split()))
    order = metric.max_ngram_order
    return BLEUScore(score, numbers[2:2 + order], numbers[2 + order:], [0.0] * order, 1.0, numbers[0], numbers[1])


def compute_bleu(correct, total, sys_len, ref_len, smooth_method="none", smooth_value=None, effective_order=False, max_ngram_order=4):
    from sacrebleu.metrics.bleu import BLEUScore

    options = [f"smoothing='{smooth_method}'", f"order={max_ngram_order}", f"effective_order={str(effective_order).lower()}"]
    if smooth_value is not None:
        options.append(f"smoothing_value={smooth_value}")
    text = " ".join(map(str, [sys_len, ref_len, *correct, *total]))
    score = float(program.call("text_tool", "bleu-of", *options, text=text))
    return BLEUScore(score, correct, total, [0.0] * max_ngram_order, 1.0, sys_len, ref_len)


def pytest_configure():
    import sacrebleu.significance
    from sacrebleu.metrics import BLEU, CHRF, TER
    from sacrebleu.metrics.chrf import CHRFScore
    from sacrebleu.metrics.ter import TERScore
    from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

    def of_corpus(score):
        return lambda self, hypotheses, references, n_bootstrap=1: score(self, list(hypotheses), list(zip(*references)))

    def of_sentence(score):
        return lambda self, hypothesis, references: score(self, [hypothesis], [list(references)])

    def chrf_score(self, hypotheses, rows):
        value = program.evaluate("chrf", {"system": hypotheses}, rows, *chrf_flags(self))["score"]
        return CHRFScore(value, self.char_order, self.word_order, self.beta)

    def ter_score(self, hypotheses, rows):
        return TERScore(program.evaluate("ter", {"system": hypotheses}, rows, *ter_flags(self))["score"], 0, 0)

    for metric, score in ((BLEU, bleu_score), (CHRF, chrf_score), (TER, ter_score)):
        metric.corpus_score, metric.sentence_score = of_corpus(score), of_sentence(score)
    BLEU.compute_bleu = staticmethod(compute_bleu)

    def ter_tokens(self, line):
        options = {"normalized": self._normalized, "no_punct": self._no_punct, "asian_support": self._asian_support,
                   "case_sensitive": self._case_sensitive}
        words = program.call("text_tool", "ter-words", *(f"{key}={str(value).lower()}" for key, value in options.items()),
                             text=line + "\n")
        return words.removesuffix("\n")

    TercomTokenizer.__call__ = ter_tokens

    kept = {}  # references that a metric was made with
    made = BLEU.__init__

    def remember(self, *arguments, references=None, **options):
        made(self, *arguments, **options)
        kept[id(self)] = references

    BLEU.__init__ = remember

    class PairedTest:
        def __init__(self, named_systems, metrics, references, test_type="ar", n_samples=0, n_ar_confidence=-1, n_jobs=1):
            self.systems, self.metrics = named_systems, metrics
            self.flags = ["--paired", test_type, "--samples", n_samples]
            self.references = references

        def __call__(self):
            (name, metric), = self.metrics.items()
            rows = list(zip(*(self.references or kept[id(metric)])))
            found = program.evaluate("bleu", dict(self.systems), rows, *bleu_flags(metric), *self.flags)["systems"]
            scores = [system["scores"][0] if "scores" in system else system for system in found]
            results = [sacrebleu.significance.Result(score["score"], score.get("p_value")) for score in scores]
            return {}, {"System": [system for system, _ in self.systems], name: results}

    sacrebleu.significance.PairedTest = PairedTest


def pytest_collection_modifyitems(items):
    program.mark(items, REASONS)
