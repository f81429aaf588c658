#!/usr/bin/env python3
"""Writes made_up/: references and outputs of imaginary translation systems, and
their scores by sacreBLEU.

    python3 make_made_up.py [FOLDER]

ref.A.xx, ref.B.xx and hyp.SYSTEM.xx hold a sentence a line, of many scripts;
scores.tsv has a system, a metric, "-" and the references (A, B or all), and a
score in each row; significance.tsv a system, a metric with reference A, a test
against the system "fair" ("-", bs or ar, 300 samples of seed 12345), its p-value,
mean and half of the 95 % interval. Needs the package sacrebleu.
"""
import pathlib
import sys

import sacrebleu
import sacrebleu.significance

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import made_up_text  # noqa: E402

LINES = {"german": 20, "english": 20, "french": 8, "turkish": 4, "vietnamese": 4, "greek": 4, "russian": 6,
         "arabic": 4, "hindi": 4, "chinese": 6, "japanese": 4, "korean": 4}
# The reference that a system comes from, and the share of its words that differ.
SYSTEMS = {"good": ("A", 0.08), "fair": ("B", 0.25), "poor": ("A", 0.6), "short": ("B", 0.1)}
METRICS = {
    "bleu": sacrebleu.BLEU(),
    "bleu_intl": sacrebleu.BLEU(tokenize="intl"),
    "bleu_zh": sacrebleu.BLEU(tokenize="zh"),
    "bleu_char_lc": sacrebleu.BLEU(tokenize="char", lowercase=True),
    # What multi-bleu counts, but for <unk>.
    "multi_bleu": sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True),
    "chrf": sacrebleu.CHRF(),
    "chrf++": sacrebleu.CHRF(word_order=2),
    "chrf_space_lc": sacrebleu.CHRF(whitespace=True, lowercase=True),
    "chrf_eps": sacrebleu.CHRF(word_order=1, eps_smoothing=True),
    "ter": sacrebleu.TER(),
    "ter_normalized_cs": sacrebleu.TER(normalized=True, case_sensitive=True),
    "ter_asian": sacrebleu.TER(normalized=True, no_punct=True, asian_support=True),
}
TESTED = ("bleu", "chrf", "ter")
BASELINE = "fair"
SAMPLES = 300


def texts():
    """Lines by file name."""
    a = [line.replace("<unk>", "<u>") for language, count in LINES.items()
         for line in made_up_text.lines(language, count, seed=7)]
    found = {"ref.A.xx": a, "ref.B.xx": made_up_text.worse(a, 0.15, seed=8)}
    for system, (which, rate) in SYSTEMS.items():
        found[f"hyp.{system}.xx"] = made_up_text.worse(found[f"ref.{which}.xx"], rate, system)
    # Of each line the first three quarters: a brevity penalty.
    found["hyp.short.xx"] = [line[:len(line) * 3 // 4] for line in found["hyp.short.xx"]]
    return found


def significance(found):
    """Rows of significance.tsv."""
    references = [found["ref.A.xx"]]
    for name in TESTED:
        for system in SYSTEMS:
            score = METRICS[name].corpus_score(found[f"hyp.{system}.xx"], references, n_bootstrap=SAMPLES)
            yield system, name, "-", "-", float(score._mean), float(score._ci)
        names = sorted(SYSTEMS, key=lambda system: system != BASELINE)
        systems = [(system, found[f"hyp.{system}.xx"]) for system in names]
        for test in ("bs", "ar"):
            _, columns = sacrebleu.significance.PairedTest(
                systems, {name: METRICS[name]}, references, test, SAMPLES, SAMPLES)()
            (results,) = (column for title, column in columns.items() if title != "System")
            for system, result in zip(names, results):
                yield (system, name, test, "-" if result.p_value is None else result.p_value, float(result.mean),
                       float(result.ci))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "made_up"
    folder.mkdir(exist_ok=True)
    found = texts()
    for name, lines in found.items():
        (folder / name).write_bytes("".join(line + "\n" for line in lines).encode())
    rows = ["system\tmetric\tscore"]
    for system in SYSTEMS:
        for metric, scorer in METRICS.items():
            for which in ("A", "B", "all"):
                references = [found[f"ref.{one}.xx"] for one in ("AB" if which == "all" else which)]
                score = scorer.corpus_score(found[f"hyp.{system}.xx"], references).score
                rows.append(f"{system}\t{metric}-{which}\t{score!r}")
    (folder / "scores.tsv").write_text("\n".join(rows) + "\n")
    rows = ["system\tmetric\ttest\tp\tmean\thalf"]
    rows += ["\t".join(map(str, row)) for row in significance(found)]
    (folder / "significance.tsv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
