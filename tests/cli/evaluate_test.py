"""Scores from outside: several systems, intervals, tests, JSON lines."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
sys.path.insert(0, os.fspath(pathlib.Path(__file__).parents[1] / "support"))
import made_up_text
import support
from support import run

REFERENCES = made_up_text.lines("english", 60)
SYSTEMS = {
    "good.txt": made_up_text.worse(REFERENCES, 0.1, seed=1),
    "bad.txt": made_up_text.worse(REFERENCES, 0.4, seed=2),
    "fair.txt": made_up_text.worse(REFERENCES, 0.25, seed=3),
}


def written(name, lines):
    path = support.scratch() / name
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def objects(name, values):
    return written(name, [json.dumps(value) for value in values])


def files():
    return [written(name, lines) for name, lines in SYSTEMS.items()]


class Scores(unittest.TestCase):
    def out(self, *arguments, **options):
        result = run("evaluate", *arguments, **options)
        self.assertEqual(result.code, 0, result.message)
        return result.out.decode()

    def scored(self, *arguments, **options):
        return json.loads(self.out(*arguments, "--format", "json", **options))

    def single(self, metric, name):
        """What one system alone has."""
        return self.scored(metric, "-r", written("ref.txt", REFERENCES),
                           "--hypotheses", written(name, SYSTEMS[name]))

    def test_a_table_of_systems_has_what_each_has_alone(self):
        reference = written("ref.txt", REFERENCES)
        for metric in ("bleu", "chrf", "ter", "exact"):
            table = self.out(metric, "-r", reference, "--hypotheses", *files())
            head, *rows, signature = table.splitlines()
            self.assertEqual(head.split("\t")[0], "system")
            self.assertEqual(len(rows), 3)
            for row, name in zip(rows, SYSTEMS):
                own = self.single(metric, name)
                self.assertEqual(
                    row.split("\t"),
                    [os.fspath(support.scratch() / name), f"{own['score']:.2f}"])
                self.assertEqual(signature, "signature\t" + own["signature"])

    def test_rouge_has_several_measures(self):
        own = self.single("rouge", "good.txt")
        self.assertEqual([score["name"] for score in own["scores"]],
                         ["ROUGE-1", "ROUGE-2", "ROUGE-L"])
        reference = written("ref.txt", REFERENCES)
        text = self.out("rouge", "-r", reference,
                        stdin="".join(line + "\n" for line in SYSTEMS["good.txt"]))
        first, report = text.splitlines()
        self.assertEqual(
            first, " ".join(f"{score['score']:.2f}" for score in own["scores"]))
        self.assertTrue(report.startswith("ROUGE-1/ROUGE-2/ROUGE-L|nrefs:1|"))
        stems = self.scored("rouge", "--no-stem", "--style", "rouge_score",
                            "-r", reference, "--hypotheses", files()[0])
        self.assertEqual(len(stems["scores"]), 4)
        self.assertIn("stem:no", stems["signature"])

    def test_the_baseline_of_a_test_comes_first(self):
        reference = written("ref.txt", REFERENCES)
        found = self.scored(
            "bleu", "-r", reference, "--hypotheses", *files(), "--paired", "ar",
            "--baseline", files()[1], "--samples", "200", "--confidence")
        names = [pathlib.Path(one["system"]).name for one in found["systems"]]
        self.assertEqual(names, ["bad.txt", "good.txt", "fair.txt"])
        bad, good, _ = (one["scores"][0] for one in found["systems"])
        self.assertNotIn("p_value", bad)
        self.assertLess(good["p_value"], 0.05)
        for one in found["systems"]:
            score = one["scores"][0]
            self.assertAlmostEqual(score["interval"]["mean"], score["score"], delta=3)
        self.assertIn("|ar:200|", found["signature"])
        text = self.out("chrf", "-r", reference, "--hypotheses", *files(),
                        "--paired", "bs", "--samples", "100")
        self.assertEqual(text.splitlines()[0].split("\t"),
                         ["system", "chrF2", "p"])
        self.assertEqual(text.splitlines()[1].split("\t")[2], "baseline")

    def test_an_interval_is_told_beside_the_score(self):
        reference = written("ref.txt", REFERENCES)
        text = self.out("ter", "-r", reference, "--hypotheses", files()[0],
                        "--confidence", "--samples", "100", "--seed", "1")
        self.assertRegex(text.splitlines()[2],
                         r"^TER\|95%\|nrefs:1\|bs:100\|seed:1\|.* = [\d.]+ \+- [\d.]+$")

    def test_json_lines_give_what_text_gives(self):
        reference = objects(
            "ref.jsonl", [{"a": {"summary": line}} for line in REFERENCES])
        system = objects(
            "system.jsonl", [{"out": line, "x": 1} for line in SYSTEMS["good.txt"]])
        for metric in ("bleu", "rouge"):
            self.assertEqual(
                self.scored(metric, "-r", reference, "--reference-key", "a.summary",
                            "--hypotheses", system, "--hypothesis-key", "out"),
                self.single(metric, "good.txt"))
        two = objects("two.jsonl", [{"refs": [line, line + " x"]} for line in REFERENCES])
        found = self.scored("bleu", "-r", two, "--reference-key", "refs",
                            "--hypotheses", files()[0])
        self.assertIn("nrefs:2", found["signature"])

    def test_sentences_of_a_summary_end_at_the_sign_for_a_line_feed(self):
        reference = ["a b c d.\ne f g h."]
        system = ["e f g h.\na b c d."]
        as_json = self.scored(
            "rouge", "-r", objects("r.jsonl", [{"t": t} for t in reference]),
            "--reference-key", "t", "--hypotheses",
            objects("h.jsonl", [{"t": t} for t in system]), "--hypothesis-key", "t")
        self.assertEqual(as_json["scores"][2]["score"], 100)
        signs = [[text.replace("\n", " \u2424 ") for text in side]
                 for side in (reference, system)]
        self.assertEqual(
            self.scored("rouge", "-r", written("r.txt", signs[0]),
                        "--hypotheses", written("h.txt", signs[1])), as_json)
        one_sentence = [[text.replace("\n", " ") for text in side]
                        for side in (reference, system)]
        self.assertLess(
            self.scored("rouge", "-r", written("r.txt", one_sentence[0]),
                        "--hypotheses", written("h.txt", one_sentence[1])
                        )["scores"][2]["score"], 100)

    def test_text_without_blanks_between_words_is_told(self):
        lines = ["我们今天去北京看朋友。"] * 3
        reference = written("zh.txt", lines)
        stdin = "".join(line + "\n" for line in lines)
        for flags, told in (([], True), (["--tokenizer", "zh"], False),
                            (["--tokenizer", "char"], False)):
            result = run("evaluate", "bleu", "-r", reference, *flags, stdin=stdin)
            self.assertEqual(result.code, 0, result.message)
            self.assertEqual("are Chinese" in result.message, told, flags)


if __name__ == "__main__":
    unittest.main()
