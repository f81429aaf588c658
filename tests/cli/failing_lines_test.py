"""Lines that cannot be worked on: the others are, and the run says so at its end."""

import functools
import json
import math
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from hostile.case import TRANSLATE, written
from support import run

# JSON that is no request, and what the message says of it.
BAD = {
    "hello": "not valid JSON",
    '{"text": "1': "not valid JSON",
    "[]": 'an object with "text", but got []',
    "null": 'an object with "text", but got null',
    "{}": 'an object with "text", but got {}',
    '{"id": 7}': 'an object with "text", but got {"id": 7}',
    '{"text": 1}': '"text" must be a string, but got 1',
    '{"text": null}': '"text" must be a string, but got null',
    '{"text": "1", "target_prefix": ["eins"]}': '"target_prefix" must be a string',
    '{"text": "1", "text": "2"}': '"text" comes twice',
    '{"text": "1", "te\\u0078t": "2"}': '"text" comes twice',
    '{"text": "\\ud800"}': "not valid JSON",
    '{"text": "1", "a": NaN}': "not valid JSON",
    '{"text": "1", "a": 01}': "not valid JSON",
    '{"text": "1"} {"text": "2"}': "not valid JSON",
    '{"text": "1\t2"}': "not valid JSON",
    '{"text": "1", "a": ' + "[" * 1000 + "]" * 1000 + "}": "nested too deep",
    '{"text": "' + "x" * (1 << 20): "not valid JSON",
}
GOOD = '{"id": 1, "text": "1 2"}'


def learned_settings(positions):
    text = support.config().read_text(encoding="utf-8")
    return text.replace("dim = 16", f'dim = 16\npositions = "learned"\nmax_positions = {positions}')


@functools.cache
def learned_model():
    """A model of eight positions."""
    settings = support.scratch() / "learned.toml"
    settings.write_text(learned_settings(8), encoding="utf-8")
    return support.trained("learned", settings)


@functools.cache
def unlike_model():
    """A model of six positions of the source and ten of the target."""
    text = learned_settings(10).replace("[model.encoder]", "[model.encoder]\nmax_positions = 6")
    settings = support.scratch() / "unlike.toml"
    settings.write_text(text, encoding="utf-8")
    return support.trained("unlike", settings)


@functools.cache
def line_language_model():
    """A language model of single lines, of eight positions at most."""
    text = support.language_config().read_text(encoding="utf-8")
    text = text.replace('samples = "blocks"\nblock_tokens = 32', 'samples = "lines"')
    text = text.replace("dim = 16", 'dim = 16\npositions = "learned"\nmax_positions = 64')
    settings = support.scratch() / "line-language.toml"
    settings.write_text(text, encoding="utf-8")
    return support.trained("line-language", settings)


def requests(*flags, stdin):
    return run("translate", "--model", support.model(), *TRANSLATE, "--json-input", *flags,
               stdin=stdin)


def texts(lines):
    """The translations; their scores depend, in the last digits, on the batch."""
    return [json.loads(line)["translations"][0]["text"] for line in lines]


class Requests(unittest.TestCase):
    def test_blank_lines_between_objects_are_passed_over(self):
        alone = texts(requests("--format", "json", stdin=GOOD).lines)
        stdin = f"\n{GOOD}\n \n\t\n{GOOD}\n[]\n\n"
        result = requests("--format", "json", "--buffer-lines", "1", stdin=stdin)
        self.assertEqual(result.code, 1)
        self.assertEqual(len(result.lines), 3)
        self.assertEqual(texts(result.lines[:2]), alone * 2)
        self.assertEqual(json.loads(result.lines[2])["line"], 6)
        self.assertIn("standard input:6", result.message)
        self.assertIn("1 of 7 lines failed (6)", result.message)
        self.assertEqual(result.message.count("4 blank lines were skipped"), 1)
        self.assertEqual(len(requests(stdin=stdin).lines), 3)
        # In parts of a file alike, one of which may have blank lines alone.
        source = written("gaps.jsonl", "\n" * 200 + f"{GOOD}\n\n{GOOD}\n" + "\n" * 200)
        output = support.scratch() / "gaps.out"
        message = ""
        for part in "123":
            result = requests("--input", source, "--output", output, "--shard", f"{part}/3", stdin="")
            self.assertEqual(result.code, 0, result.message)
            message += result.message
        self.assertEqual(len(output.read_text(encoding="utf-8").splitlines()), 2)
        self.assertEqual(message.count("401 blank lines were skipped"), 1)

    def test_one_bad_line_costs_no_other_one(self):
        alone = texts(requests("--format", "json", stdin=GOOD).lines)
        for bad, message in BAD.items():
            with self.subTest(bad=bad[:80]):
                result = requests("--format", "json", stdin=f"{GOOD}\n{bad}\n{GOOD}\n")
                self.assertEqual(result.code, 1)
                first, failed, last = result.lines
                self.assertEqual(texts([first, last]), alone * 2)
                failed = json.loads(failed)
                self.assertEqual(failed["line"], 2)
                self.assertIn("standard input:2: ", failed["error"])
                self.assertIn(message, failed["error"])
                self.assertNotIn("translations", failed)
                self.assertEqual(result.message.count("\n"), 1, result.message)
                self.assertIn("error: 1 of 3 lines failed (2)", result.message)
                self.assertIn(message, result.message)
                self.assertLess(len(result.message), 600)

    def test_as_text_it_is_an_empty_line(self):
        lines = "\n".join([GOOD, *BAD, GOOD])
        result = requests(stdin=lines)
        self.assertEqual(result.code, 1)
        good = requests(stdin=GOOD).lines[0]
        self.assertEqual(result.out.decode().split("\n"),
                         [good, *[""] * len(BAD), good, ""])
        self.assertIn(f"{len(BAD)} of {len(BAD) + 2} lines failed", result.message)
        self.assertIn("(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...); the first: standard input:2: ",
                      result.message)

    def test_n_best_lists_keep_their_numbers(self):
        result = requests("--n-best", "2", stdin=f"{GOOD}\nhello\n{GOOD}\n")
        numbers = [line.split("\t")[0] for line in result.lines]
        self.assertEqual((result.code, numbers), (1, ["1", "1", "2", "3", "3"]))

    def test_its_own_fields_come_back_with_the_error(self):
        line = '{"id": 12345678901234567890123, "text": 5, "x": [1.10], "translations": [], "error": 0}'
        (answer,) = requests("--format", "json", stdin=line).lines
        self.assertTrue(answer.startswith(
            '{"id":12345678901234567890123,"text":5,"x":[1.10],"error":"standard input:1: '), answer)
        self.assertEqual(json.loads(answer)["line"], 1)
        self.assertNotIn("translations", json.loads(answer))

    def test_error_and_line_are_those_of_a_failed_line_alone(self):
        result = requests("--format", "json", stdin="".join(
            line + "\n" for line in (
                '{"line": 99, "text": "1"}', '{"line": 99, "text": 3}', '{"text": 3}',
                '{"error": "of an earlier run", "line": 7, "text": "1", "id": 1}')))
        self.assertEqual(result.code, 1)
        answers = [json.loads(line) for line in result.lines]
        self.assertEqual([answer.get("line") for answer in answers], [None, 2, 3, None])
        self.assertEqual(["error" in answer for answer in answers], [False, True, True, False])
        self.assertEqual(list(answers[3]), ["text", "id", "translations"])

    def test_good_lines_are_written_across_buffers(self):
        lines = "".join(f"{bad}\n{GOOD}\n" for bad in BAD)
        result = requests("--format", "json", "--buffer-lines", "3", stdin=lines)
        self.assertEqual((result.code, len(result.lines)), (1, 2 * len(BAD)))
        numbers = [json.loads(line).get("line") for line in result.lines]
        self.assertEqual(numbers[::2], list(range(1, 2 * len(BAD), 2)))

    def test_strict_stops_at_the_first(self):
        for flags in ([], ["--format", "json"]):
            read = texts if flags else list
            result = requests("--strict", *flags, stdin=f"{GOOD}\nhello\n{GOOD}\n[]\n")
            self.assertEqual((result.code, len(result.lines)), (1, 1))
            self.assertEqual(read(result.lines), read(requests(*flags, stdin=GOOD).lines))
            self.assertIn("error: standard input:2: not valid JSON", result.message)
        self.assertEqual(requests("--strict", stdin=f"{GOOD}\n{GOOD}\n").code, 0)

    def test_stats_count_what_was_translated(self):
        result = requests("--stats", stdin=f"{GOOD}\nhello\n")
        self.assertEqual(result.code, 1)
        self.assertIn("translated 1 sentences", result.message)

    def test_what_came_before_the_end_of_damaged_data_is_written(self):
        folder = support.scratch() / "damaged"
        folder.mkdir()
        # Two sentences, the second with an id that no vocabulary has.
        ids = [[4, 2], [100000, 2]]
        index = b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + b"\x04" + (2).to_bytes(8, "little")
        index += b"".join(len(i).to_bytes(4, "little") for i in ids)
        index += b"".join((8 * n).to_bytes(8, "little") for n in range(2))
        (folder / "a.idx").write_bytes(index)
        (folder / "a.bin").write_bytes(
            b"".join(i.to_bytes(4, "little") for sentence in ids for i in sentence))
        result = run("translate", "--model", support.model(), *TRANSLATE,
                     "--input", folder / "a.bin")
        self.assertEqual((result.code, len(result.lines)), (1, 1), result.message)
        self.assertIn("sentence 2", result.message)


class Options(unittest.TestCase):
    """Fields of a request that are options."""

    @staticmethod
    def translate(*flags, stdin):
        length = () if "--max-length-b" in flags else ("--max-length-b", "5")
        return run("translate", "--model", support.model(), *length, *flags, stdin=stdin)

    def requests(self, *flags, stdin):
        return self.translate("--json-input", *flags, stdin=stdin)

    def one(self, *flags, **fields):
        result = self.requests(
            "--format", "json", *flags, stdin=json.dumps({"text": "1 2", **fields}))
        self.assertEqual(result.code, 0, result.message)
        answer = json.loads(result.lines[0])
        self.assertEqual({**answer, "translations": 0}, {"text": "1 2", **fields, "translations": 0})
        return answer["translations"]

    def flags(self, *flags, stdin="1 2\n"):
        result = self.translate("--format", "json", *flags, stdin=stdin)
        self.assertEqual(result.code, 0, result.message)
        return [json.loads(line)["translations"] for line in result.lines]

    def test_are_those_of_the_command_line(self):
        seen = []
        for flags, fields in (
            ((), {}),
            (("--beam", "1"), {"beam": 1}),
            (("--beam", "3", "--n-best", "3"), {"beam": 3, "n_best": 3}),
            (("--n-best", "2"), {"n_best": 2}),
            (("--length-penalty", "0.5"), {"length_penalty": 0.5}),
            (("--length-penalty", "2"), {"length_penalty": 2}),
            (("--max-length-a", "0.5", "--max-length-b", "1"),
             {"max_length_a": 0.5, "max_length_b": 1}),
            (("--min-length", "4"), {"min_length": 4}),
            (("--no-repeat-ngram", "1"), {"no_repeat_ngram": 1}),
            (("--unknown-penalty", "-9"), {"unknown_penalty": -9.0}),
            (("--ban-unknown", "--unknown-penalty", "-9"),
             {"ban_unknown": True, "unknown_penalty": -9}),
            (("--stepwise-length-penalty", "--length-penalty", "3"),
             {"stepwise_length_penalty": True, "length_penalty": 3}),
            (("--sample", "--temperature", "0"), {"sample": True, "temperature": 0}),
        ):
            with self.subTest(fields):
                own = self.one(**fields)
                self.assertEqual(own, self.flags(*flags)[0])
                seen.append(json.dumps(own))
        self.assertGreater(len(set(seen)), 7)  # they do something

    def test_hold_for_their_request_alone(self):
        lines = [{"text": "1 2"}, {"text": "1 2", "max_length_b": 1}, {"text": "1 2"}]
        result = self.requests("--format", "json", stdin="".join(json.dumps(x) + "\n" for x in lines))
        lengths = [len(json.loads(line)["translations"][0]["token_scores"])
                   for line in result.lines]
        self.assertEqual(lengths[1], 2)
        self.assertEqual(lengths[0], lengths[2])
        self.assertGreater(lengths[0], 2)

    def test_a_request_may_be_drawn_or_not(self):
        draws = [self.one(sample=True, seed=seed, n_best=4, top_k=20) for seed in range(4)]
        self.assertEqual([len(one) for one in draws], [4] * 4)
        self.assertGreater(len({json.dumps(one) for one in draws}), 1)
        self.assertEqual(self.one(sample=True, seed=2, n_best=4, top_k=20), draws[2])
        self.assertEqual(self.one("--sample", seed=2, n_best=4, top_k=20), draws[2])
        self.assertEqual(self.one("--sample", sample=False), self.one())
        # Without a seed of its own the line's number is mixed in.
        same = json.dumps({"text": "1 2", "sample": True, "temperature": 3}) + "\n"
        many = self.requests("--format", "json", stdin=same * 8)
        drawn = self.flags("--sample", "--temperature", "3", stdin="1 2\n" * 8)
        self.assertEqual([json.loads(line)["translations"] for line in many.lines], drawn)
        self.assertGreater(len(set(map(json.dumps, drawn))), 1)

    def test_that_make_no_sense_fail_their_line(self):
        for fields, *wanted in (
            ('"beam": "5"', "beam must be a whole number, but got \"5\""),
            ('"beam": 1.5', "beam must be a whole number, but got 1.5"),
            ('"beam": null', "beam must be a whole number, but got null"),
            ('"beam": 0', "beam must be between 1 and 1000000, but got 0"),
            ('"beam": 18446744073709551616', "beam must be a whole number"),
            ('"beam": 1, "be\\u0061m": 2', '"beam" comes twice'),
            ('"n_best": 3, "beam": 2', "n_best must be between 1 and the beam (2)"),
            ('"length_penalty": true', "length_penalty must be a number, but got true"),
            ('"length_penalty": 1e999', "standard input:2"),
            ('"length_penalty": 1e300', "length_penalty must be between -50 and 50"),
            ('"unknown_penalty": 1e39', "unknown_penalty must be between -1e+30 and 1e+30"),
            ('"min_length": 1099511627776', "min_length must be between 0 and 1000000"),
            ('"min_length": 6', "min_length must be at most max_length_b (5) where max_length_a"),
            ('"no_repeat_ngram": -1', "no_repeat_ngram must be between 0 and 1000000"),
            ('"stepwise_length_penalty": 1', "stepwise_length_penalty must be true or false"),
            ('"sample": "yes"', "sample must be true or false"),
            ('"sample": true, "top_p": 0', "top_p must be above 0"),
            ('"sample": true, "top_k": -1', "top_k must be at least 0"),
            ('"sample": true, "temperature": -1', "temperature must be a finite number"),
            ('"sample": true, "seed": -1', "seed must be at least 0"),
            ('"sample": true, "beam": 2', "beam is that of a search", "n_best says how many"),
            ('"sample": true, "stepwise_length_penalty": true', "stepwise_length_penalty is that"),
            ('"temperature": 0.5', "temperature is that of draws", '"sample": true'),
            ('"seed": 3', "seed is that of draws"),
            ('"ban_unknown": 1', "ban_unknown must be true or false"),
        ):
            with self.subTest(fields):
                result = self.requests("--format", "json",
                                  stdin=f'{GOOD}\n{{"text": "1", {fields}}}\n{GOOD}\n')
                self.assertEqual((result.code, len(result.lines)), (1, 3), result.message)
                failed = json.loads(result.lines[1])
                self.assertEqual(failed["line"], 2)
                for words in ("standard input:2: ", *wanted):
                    self.assertIn(words, failed["error"])
                self.assertIn("1 of 3 lines failed (2)", result.message)

    def test_lists_need_a_place_for_them(self):
        line = '{"text": "1 2", "n_best": 2}'
        result = self.requests(stdin=f"{GOOD}\n{line}\n")
        self.assertEqual((result.code, len(result.lines)), (1, 2))
        self.assertIn("standard input:2: n_best above 1 needs --format json", result.message)
        numbered = self.requests("--n-best", "2", stdin=f'{line}\n{{"text": "1", "n_best": 1}}\n')
        self.assertEqual([one.split("\t")[0] for one in numbered.lines], ["1", "1", "2"])

    def test_a_search_can_do_without_unknown_words(self):
        wanted = self.flags("--unknown-penalty", "-30", stdin="1 2\n3\n")
        self.assertIn("<unk>", wanted[0][0]["tokens"])
        banned = self.flags("--ban-unknown", "--unknown-penalty", "-30", stdin="1 2\n3\n")
        self.assertNotIn("<unk>", json.dumps(banned))
        self.assertEqual(banned, self.flags("--unknown-penalty", "1e30", stdin="1 2\n3\n"))
        for flags in (("--backend", "libtorch"), ("--beam", "1"), ("--n-best", "5")):
            self.assertNotIn("<unk>", json.dumps(
                self.flags("--ban-unknown", "--unknown-penalty", "-30", *flags)))

    def test_no_possible_translation_is_a_failed_line(self):
        result = self.requests("--format", "json", "--max-length-b", "500",
                               "--no-repeat-ngram", "1",
                               stdin='{"text": "1", "min_length": 400}\n{"text": "1"}\n')
        self.assertEqual((result.code, len(result.lines)), (1, 2), result.message)
        self.assertIn("no translation is left", json.loads(result.lines[0])["error"])
        self.assertNotIn("null", result.lines[1])


class Fields(unittest.TestCase):
    """--json-input keeps all fields of its objects as they came."""

    def test_stay_as_they_were_written(self):
        for field in (
            '"id":123456789012345678901', '"id":-0', '"x":1.10', '"x":1e400', '"x":1E+2',
            '"x":0.1000000000000000055511151231257827', '"e":"\\u00e9\\ud83d\\ude00\\/"',
            '"twice":1,"twice":2', '"z":1,"a":2', '"":[]', '"n":{"b":[1.0,{"c":null}]}',
            '"blank":" a  b , : "', '"é":"ü"', '"s":"\\"}]"', '"large":' + "9" * 400,
        ):
            with self.subTest(field=field[:60]):
                result = requests("--format", "json",
                                  stdin=f'{{{field},"text":"1","last":true}}\n')
                self.assertEqual(result.code, 0, result.message)
                wanted = f'{{{field},"text":"1","last":true,"translations":[{{'
                self.assertTrue(result.out.decode().startswith(wanted), result.out)

    def test_old_translations_make_way_for_new_ones(self):
        result = requests("--format", "json", stdin=GOOD)
        again = requests("--format", "json", stdin=result.out)
        self.assertEqual(again.out, result.out)

    def test_blanks_line_ends_and_marks_do_not_matter(self):
        wanted = requests("--format", "json", stdin=GOOD).out
        for spelled in ("\ufeff" + GOOD, "\ufeff\ufeff" + GOOD, GOOD + "\r\n", f" \t{GOOD} \n",
                        '{"id" :1,\t"text"\t: "1 2"}'):
            self.assertEqual(requests("--format", "json", stdin=spelled).out, wanted)

    def test_a_mark_where_files_were_joined_does_not_matter(self):
        wanted = requests("--format", "json", stdin=f"{GOOD}\n{GOOD}\n").out
        joined = requests("--format", "json", stdin=f"\ufeff{GOOD}\n\ufeff{GOOD}\n")
        self.assertEqual((joined.code, joined.out), (0, wanted), joined.message)

    def test_a_line_of_a_megabyte_is_one_like_others(self):
        many = ",".join(f'"k{i}":{i}' for i in range(100_000))
        result = requests("--format", "json", stdin=f'{{"text":"1",{many}}}\n{GOOD}\n')
        self.assertEqual(result.code, 0, result.message)
        self.assertTrue(result.lines[0].startswith(f'{{"text":"1",{many},"translations":'))


class TokenScores(unittest.TestCase):
    """Natural logarithms, a number a token, </s> among them."""

    def check(self, *flags, penalty=1.0):
        result = run("translate", "--model", support.model(), "--format", "json",
                     "--max-length-b", "12", *flags, stdin="1 2 3\n\n4 5\n9\n")
        self.assertEqual(result.code, 0, result.message)
        answers = [json.loads(line)["translations"] for line in result.lines]
        self.assertEqual([bool(answer[0]["token_scores"]) for answer in answers],
                         [True, False, True, True])
        for answer in answers:
            for found in answer:
                scores = found["token_scores"]
                self.assertEqual(len(scores), len(found["tokens"].split()))
                self.assertTrue(all(score < 0 for score in scores))
                self.assertAlmostEqual(sum(scores), found["log_probability"], delta=1e-9)
                length = max(len(scores), 1)
                self.assertAlmostEqual(
                    found["score"], sum(scores) / length ** penalty, delta=1e-9)

    def test_add_up_to_the_score_before_its_division_by_length(self):
        self.check()
        self.check("--beam", "1")
        self.check("--beam", "6", "--n-best", "6")
        self.check("--beam", "4", "--n-best", "3", "--length-penalty", "0.6", penalty=0.6)
        self.check("--model", support.model(), "--n-best", "2")
        self.check("--no-repeat-ngram", "1", "--unknown-penalty", "2")

    def test_are_what_score_gives_together(self):
        source = written("scores-s", "1 2 3\n")
        result = run("translate", "--model", support.model(), "--format", "json", stdin="1 2 3\n")
        best = json.loads(result.out)["translations"][0]
        target = written("scores-t", best["text"] + "\n")
        scored = run("score", "--model", support.model(), "--source", source, "--target", target)
        self.assertAlmostEqual(float(scored.lines[0]), sum(best["token_scores"]), places=3)


class CutLines(unittest.TestCase):
    """What is too long to translate is cut, and a warning names the line."""

    def test_a_long_line_is_named(self):
        result = run("translate", "--model", learned_model(), *TRANSLATE,
                     stdin="1\n" + "2 " * 9 + "\n")
        self.assertEqual((result.code, len(result.lines)), (0, 2), result.message)
        self.assertIn("warning: standard input:2: a line of 10 tokens is cut to the model's 8",
                      result.message)

    def test_a_line_too_short_for_the_wanted_length_is_named(self):
        result = run("translate", "--model", support.model(), "--max-length-a", "1",
                     "--max-length-b", "0", "--min-length", "4", stdin="1\n1 2 3 4\n")
        self.assertEqual((result.code, len(result.lines)), (0, 2), result.message)
        self.assertIn("warning: standard input:1: a translation has at most 2 tokens by "
                      "--max-length-a and --max-length-b, fewer than --min-length (4)",
                      result.message)
        self.assertNotIn("standard input:2", result.message)

    def test_a_long_prefix_is_named(self):
        request = {"text": "1", "target_prefix": "eins " * 7}
        result = requests(stdin=f"{GOOD}\n{json.dumps(request)}\n")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("warning: standard input:2: a target prefix of 7 tokens is cut to the 5 that",
                      result.message)


class Score(unittest.TestCase):
    def score(self, sources, targets, *flags, model=learned_model):
        return run("score", "--model", model(), "--source", written("fail-s", sources),
                   "--target", written("fail-t", targets), *flags)

    def test_each_side_has_its_own_positions(self):
        sources = "1\n" + "2 " * 6 + "\n" + "3 " * 5 + "\n4\n"
        targets = "eins\nzwei\n" + "drei " * 9 + "\n" + "vier " * 10 + "\n"
        result = self.score(sources, targets, model=unlike_model)
        self.assertEqual(result.code, 1)
        self.assertEqual([line == "nan" for line in result.lines[:4]], [False, True, False, True])
        for words in ("fail-s:2: the source has 7 tokens, </s> counted, more than the model's 6",
                      "2 of 4 lines failed (2, 4)"):
            self.assertIn(words, result.message)

    def test_lines_that_fail_shift_no_other(self):
        good = self.score("1\n2\n3\n", "eins\nzwei\ndrei\n").lines
        for name, sources, targets, *wanted in (
            ("long source", "1\n" + "2 " * 8 + "\n3\n", "eins\nzwei\ndrei\n", "fail-s:2: the source",
             "9 tokens", "8 learned positions"),
            ("long target", "1\n2\n3\n", "eins\n" + "zwei " * 8 + "\ndrei\n",
             "fail-t:2: the target", "9 tokens"),
            ("bad source", b"1\n\xff\n3\n", "eins\nzwei\ndrei\n", "fail-s:2: UTF-8"),
            ("bad target", "1\n2\n3\n", b"eins\nz\0\ndrei\n", "fail-t:2: text was wanted"),
            ("both", b"1\n\xff\n3\n", b"eins\n\xff\ndrei\n", "fail-s:2: UTF-8"),
        ):
            with self.subTest(name):
                result = self.score(sources, targets)
                self.assertEqual(result.code, 1)
                self.assertEqual(result.lines, [good[0], "nan", good[2], "total\tnan"])
                for words in ("1 of 3 lines failed (2); the first: ", *wanted):
                    self.assertIn(words, result.message)
                strict = self.score(sources, targets, "--strict")
                self.assertEqual((strict.code, strict.out), (1, b""))
                self.assertIn(wanted[0], strict.message)

    def test_a_target_may_spell_a_word_that_only_fills_the_dictionary_up(self):
        model = support.scratch() / "filled-up"
        result = run("train", support.config(), "--output", model,
                     "--set", "text.max_vocabulary=22")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("madeupword0001 0", (model / "dict.txt").read_text())
        result = self.score("1\n2\n", "eins\nmadeupword0000 eins\n", model=lambda: model)
        self.assertEqual(result.code, 0, result.message)
        self.assertTrue(all(math.isfinite(float(line)) for line in result.lines[:2]))

    def test_what_fits_just_is_scored(self):
        result = self.score("2 " * 7 + "\n", "zwei " * 7 + "\n")
        self.assertEqual(result.code, 0, result.message)
        self.assertTrue(math.isfinite(float(result.lines[0])))


class Perplexity(unittest.TestCase):
    def measure(self, text, *flags, model=support.language_model):
        return run("perplexity", "--model", model(), "--format", "json", *flags, stdin=text)

    def test_is_that_of_the_lines_that_can_be_measured(self):
        whole = json.loads(self.measure("eins\nzwei\n").out)
        self.assertNotIn("failed_lines", whole)
        result = self.measure("eins\nQ\nzwei\nQ\n")
        self.assertEqual(result.code, 1)
        self.assertEqual(json.loads(result.out), {**whole, "failed_lines": 2})
        for words in ("2 of 4 lines failed (2, 4)", "standard input:2: ", "'Q'"):
            self.assertIn(words, result.message)
        strict = self.measure("eins\nQ\nzwei\n", "--strict")
        self.assertEqual((strict.code, strict.out), (1, b""))
        self.assertIn("error: standard input:2: the symbol 'Q'", strict.message)

    def test_of_nothing_but_such_lines_is_an_error(self):
        result = self.measure("Q\n")
        self.assertEqual((result.code, result.out), (1, b""))
        self.assertIn("1 of 1 line failed (1); the first: standard input:1: ", result.message)

    def test_a_line_that_is_too_long_for_a_model_of_lines_is_left_out(self):
        whole = json.loads(self.measure("eins\n\nzwei\n", model=line_language_model).out)
        result = self.measure("eins\n\n" + "eins " * 20 + "\nzwei\n", model=line_language_model)
        self.assertEqual(result.code, 1, result.message)
        self.assertEqual(json.loads(result.out), {**whole, "failed_lines": 1})
        self.assertIn("standard input:3: a line of", result.message)


class LongLines(unittest.TestCase):
    """Of a megabyte, whatever reads them: one line in, one line out."""

    def test_are_lines_like_others(self):
        word, words = b"x" * 1_000_000, b"ab b. " * 170_000
        codes = written("long.codes", "#version: 0.2\na b\nx x\nxx xx\n")
        for name, arguments in (
            ("translate", ["translate", "--model", support.model(), *TRANSLATE]),
            ("tokens", ["tokenize", "--language", "en"]),
            ("text", ["tokenize", "--language", "en", "--undo"]),
            ("codes", ["bpe", "apply", "--codes", codes]),
        ):
            for line in (word, words):
                with self.subTest(name):
                    result = run(*arguments, stdin=line + b"\n1\n")
                    self.assertEqual((result.code, result.out.count(b"\n")), (0, 2),
                                     result.message[-300:])
        for line in (word, words):
            reference = written("long.reference", line + b"\n")
            for metric in ("bleu", "chrf"):
                with self.subTest(metric):
                    result = run("evaluate", metric, "--reference", reference, stdin=line + b"\n")
                    self.assertEqual(result.code, 0, result.message[-300:])
            with self.subTest("score"):
                result = run("score", "--model", support.model(), "--source", reference,
                             "--target", written("short.target", "eins\n"))
                self.assertEqual(result.code, 0, result.message[-300:])
                self.assertTrue(math.isfinite(float(result.lines[0])))


if __name__ == "__main__":
    unittest.main()
