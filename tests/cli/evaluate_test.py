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

    def test_a_table_has_one_row_a_system_whatever_its_name(self):
        reference = written("ref.txt", REFERENCES)
        odd = [written(f"odd {i} \t\n\x1b[31m \udcff.txt", REFERENCES) for i in range(2)]
        table = self.out("bleu", "-r", reference, "--hypotheses", *odd)
        rows = table.splitlines()
        self.assertEqual([row.count("\t") for row in rows], [1, 1, 1, 1], table)
        self.assertTrue(rows[1].endswith("odd 0    [31m \ufffd.txt\t100.00"), table)

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

    def test_rouge_has_recall_and_precision_where_they_are_asked_for(self):
        reference = written("ref.txt", REFERENCES)
        flags = ["-r", reference, "--values", "recall", "precision", "f",
                 "--hypotheses", files()[0]]
        own = self.scored("rouge", *flags)
        self.assertEqual(
            [score["name"] for score in own["scores"]],
            [f"ROUGE-{n}{value}" for n in "12L" for value in (" R", " P", "")])
        text = self.out("rouge", *flags).splitlines()
        told = [text[1].split(f" {value} ")[1].split(" ")[0].split("/")
                for value in ("R", "P", "F")]
        self.assertEqual(
            text[0].split(" "),
            [value for measure in zip(*told) for value in measure])
        table = self.out("rouge", "-r", reference, "--values", "precision",
                         "--hypotheses", *files(), "--paired", "bs",
                         "--samples", "50")
        self.assertEqual(
            table.splitlines()[0].split("\t"),
            ["system", "ROUGE-1 P", "p", "ROUGE-2 P", "p", "ROUGE-L P", "p"])

    def test_threads_give_the_same_bytes(self):
        many = made_up_text.lines("english", 700)
        other = made_up_text.worse(many, 0.1, seed=4)
        flags = ["-r", written("many.txt", many), written("more.txt", other),
                 "--hypotheses", written("sys.txt", made_up_text.worse(many, 0.3)),
                 "--format", "json", "--confidence", "--samples", "20"]
        for metric in ("bleu", "chrf", "ter", "rouge", "exact"):
            one, three = (self.out(metric, *flags, "--threads", threads)
                          for threads in "13")
            self.assertEqual(one, three, metric)

    def test_empty_lines_count_as_in_the_originals(self):
        """sacrebleu 2.5.1, ROUGE-1.5.5.pl and rouge_score: nothing written is
        worth nothing, and nothing wanted is not found."""
        wanted = {"bleu": [0], "chrf": [0], "ter": [100], "exact": [0],
                  "rouge": [0, 0, 0]}
        for name, system, reference in (
            ("nothing written", [""] * 3, ["a b c d", "e", "f g"]),
            ("nothing wanted", ["a b c d", "e", "f g"], [""] * 3),
        ):
            for metric, scores in wanted.items():
                found = self.scored(metric, "-r", written("r", reference),
                                    "--hypotheses", written("h", system))
                self.assertEqual(
                    [one["score"] for one in found.get("scores", [found])],
                    scores, f"{name}: {metric}")
        both = {"bleu": 0, "chrf": 0, "ter": 0, "exact": 100}
        for metric, score in both.items():
            found = self.scored(metric, "-r", written("r", [""] * 2),
                                "--hypotheses", written("h", [""] * 2))
            self.assertEqual(found["score"], score, metric)

    def test_a_copy_of_the_baseline_differs_by_chance_alone(self):
        reference = written("ref.txt", REFERENCES)
        base, other, *_ = files()
        copy = support.scratch() / "copy.txt"
        copy.write_bytes(base.read_bytes())
        for metric in "bleu", "chrf", "ter", "rouge", "exact":
            for kind in "bs", "ar":
                flags = [metric, "-r", reference, "--paired", kind, "--samples", "100"]
                found = self.scored(*flags, "--hypotheses", base, copy, other)
                same, different = ([score["p_value"] for score in system["scores"]]
                                   for system in found["systems"][1:])
                self.assertEqual(set(same), {1}, (metric, kind))
                alone = self.scored(*flags, "--hypotheses", base, other)["systems"][1]["scores"]
                self.assertEqual(different, [score["p_value"] for score in alone])

    def test_a_baseline_that_is_named_twice_is_one_system(self):
        reference = written("ref.txt", REFERENCES)
        base, other, *_ = files()
        flags = ["bleu", "-r", reference, "--paired", "ar", "--samples", "100", "--hypotheses"]
        again = f"{base.parent}/./{base.name}"
        once = self.out(*flags, base, other)
        for systems in ([base, base, other], [base, other, again]):
            self.assertEqual(self.out(*flags, *systems), once)
        self.assertEqual(self.out(*flags, other, base, again, "--baseline", base), once)
        self.assertIn("more than once", run("evaluate", *flags, base, base, other).message)
        result = run("evaluate", *flags, base, again)
        self.assertEqual((result.code, result.out), (2, b""))
        self.assertIn("--paired compares systems, but --hypotheses names", result.message)

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

    def test_a_file_may_have_any_name(self):
        reference = written("ref.txt", REFERENCES)
        odd = written(os.fsdecode(b"\xff.txt"), REFERENCES)
        found = self.scored("exact", "-r", reference, "--hypotheses", odd, reference)
        self.assertTrue(found["systems"][0]["system"].endswith("\ufffd.txt"))

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

    def test_scores_of_sentences_are_those_of_a_corpus_of_each(self):
        reference = written("ref.txt", REFERENCES[:5])
        both = [written(name, SYSTEMS[name][:5]) for name in ("good.txt", "bad.txt")]
        for metric in ("bleu", "chrf", "ter", "rouge", "exact"):
            alone = [
                [self.scored(metric, *(["--effective-order"] if metric == "bleu" else []),
                             "-r", written("r", [REFERENCES[i]]), "--hypotheses",
                             written("h", [SYSTEMS[name][i]]))
                 for name in ("good.txt", "bad.txt")] for i in range(5)]
            flags = [metric, "-r", reference, "--sentence", "--decimals", "15"]
            rows = [json.loads(line) for line in self.out(
                *flags, "--hypotheses", *both, "--format", "json").splitlines()]
            self.assertEqual([row["line"] for row in rows], [1, 2, 3, 4, 5])
            for row, own in zip(rows, alone):
                for system, wanted in zip(row["systems"], own):
                    scores = wanted.get("scores", [wanted])
                    for one, other in zip(system.get("scores", [system]), scores):
                        self.assertEqual(one["name"], other["name"])
                        self.assertAlmostEqual(one["score"], other["score"], places=9)
            text = self.out(*flags, "--hypotheses", *both).splitlines()
            self.assertEqual(
                [[[float(score) for score in system.split(" ")]
                  for system in line.split("\t")] for line in text],
                [[[score["score"] for score in system.get("scores", [system])]
                  for system in row["systems"]] for row in rows])
            result = run("evaluate", *flags, "--hypotheses", both[0])
            self.assertIn("|nrefs:1|", result.message)
            if metric == "bleu":
                self.assertIn("|eff:yes|", result.message)

    def test_blank_lines_between_objects_are_passed_over_and_counted(self):
        reference = written("gaps.jsonl", ["", '{"t": "a b c d"}', " ", "",
                                           '{"t": "e f g h"}', ""])
        result = run("evaluate", "bleu", "-r", reference, "--reference-key", "t",
                     stdin="a b c d\ne f g h\n")
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual(result.out.split(b"\n")[0], b"100.00")
        self.assertEqual(result.message.count("4 blank lines were skipped"), 1)
        bad = written("bad.jsonl", ["", '{"t": "a"}', "", '{"t": 3}'])
        result = run("evaluate", "bleu", "-r", reference, "--reference-key", "t",
                     "--hypotheses", bad, "--hypothesis-key", "t")
        self.assertIn("bad.jsonl:4", result.message)

    def test_text_that_has_no_words_for_a_metric_is_told_once(self):
        texts = {"zh": "我们今天去北京看朋友。", "ru": "Собака бежит по зелёной траве.",
                 "ja": "昨日の会議でこの問題について話しました。"}
        for language, metric, wanted in (
            *((language, ["rouge", "--style", style], "--tokenizer unicode")
              for language in texts for style in ("rouge-1.5.5", "rouge_score")),
            ("ja", ["bleu", "--tokenizer", "zh"], "--tokenizer char"),
            ("zh", ["ter"], "--normalized with --asian-support"),
            ("ja", ["ter", "--normalized", "--asian-support"], "chrf"),
            ("zh", ["chrf", "--word-order", "2"], "--word-order"),
            ("ru", ["ter"], None), ("ru", ["bleu"], None), ("zh", ["chrf"], None),
            ("zh", ["rouge", "--tokenizer", "unicode"], None),
        ):
            file = written("text", [texts[language]] * 2)
            result = run("evaluate", *metric, "-r", file, "--hypotheses", file, file)
            self.assertEqual(result.code, 0, result.message)
            self.assertEqual(result.message.count("warning"), int(wanted is not None),
                             (language, metric, result.message))
            self.assertIn(wanted or "", result.message)
        found = self.scored("rouge", "--tokenizer", "unicode", "-r", file,
                            "--hypotheses", file)
        self.assertEqual([one["score"] for one in found["scores"]], [100] * 3)
        self.assertIn("|tok:unicode|", found["signature"])

    def test_an_option_of_ter_without_effect_is_told_and_changes_nothing(self):
        reference = written("text", ["one two three"])
        told = "--asian-support has no effect without --normalized or --no-punct"
        for options, wanted in (([], False), (["--asian-support"], True),
                                (["--asian-support", "--no-punct"], False)):
            result = run("evaluate", "ter", "-r", reference, *options, stdin="one two\n")
            self.assertEqual(result.code, 0, result.message)
            self.assertEqual(told in result.message, wanted, options)
            self.assertIn("33.33", result.lines[0])

    def test_text_without_blanks_between_words_is_told(self):
        for language, line in (("Chinese", "我们今天去北京看朋友。"),
                               ("Japanese", "昨日の会議でこの問題について話しました。"),
                               ("Thai", "เมื่อวานอากาศดีมาก เราเดินไปที่ตลาด")):
            reference = written("text.txt", [line] * 3)
            for tokenizer, told in (("13a", True), ("intl", True), ("none", True),
                                    ("zh", language != "Chinese"), ("char", False)):
                result = run("evaluate", "bleu", "-r", reference, "--tokenizer",
                             tokenizer, stdin=(line + "\n") * 3)
                self.assertEqual(result.code, 0, result.message)
                self.assertEqual(f"the hypotheses are {language}" in result.message,
                                 told, (language, tokenizer))


if __name__ == "__main__":
    unittest.main()
