#!/usr/bin/env python3
"""Writes made_up/rouge_cases.tsv, summaries with references, made_up/exceptions/,
irregular forms, and made_up/rouge_scores.tsv: what ROUGE-1.5.5.pl and the package
rouge-score make of them (rouge_programs.py says what is needed).

    python3 make_rouge.py [FOLDER]

A row of scores has a setting, the number of a case from 0, and recall, precision
and F of ROUGE-1, ROUGE-2, ROUGE-L and, of the package, ROUGE-Lsum, from 0 to 1.
"""
import pathlib
import sys

import rouge_programs

CASES = 100


def cases():
    return rouge_programs.cases(CASES, seed=155, most_words=25)


def settings(some):
    """Scores by the names that rouge_golden_test.cpp knows."""
    perl = rouge_programs.Perl(rouge_programs.EXCEPTIONS)
    return {
        "average": perl.scores(some, "-m", "-n", "2"),
        "best": perl.scores(some, "-m", "-n", "2", "-f", "B"),
        "jackknife": perl.jackknife(some, "-m", "-n", "2"),
        "recall": perl.scores(some, "-m", "-n", "2", "-p", "0.2"),
        "words": perl.scores(some, "-n", "2"),
        "stems": rouge_programs.Perl().scores(some, "-m", "-n", "2"),
        "package": rouge_programs.package_scores(some, stem=True),
        "package_words": rouge_programs.package_scores(some, stem=False),
    }


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else rouge_programs.HERE / "made_up"
    exceptions = folder / "exceptions"
    exceptions.mkdir(parents=True, exist_ok=True)
    for kind, text in rouge_programs.irregular_forms().items():
        (exceptions / f"{kind}.exc").write_text(text)
    some = cases()
    (folder / "rouge_cases.tsv").write_bytes(rouge_programs.to_lines(some).encode())
    rows = [f"{name}\t{case}\t" + " ".join(f"{value:.10g}" for value in values)
            for name, scores in settings(some).items() for case, values in enumerate(scores)]
    (folder / "rouge_scores.tsv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
