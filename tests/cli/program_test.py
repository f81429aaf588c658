"""The program from outside: streams, exit codes, formats, signals, start-up."""

import array
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
sys.path.insert(0, os.fspath(pathlib.Path(__file__).parents[1] / "support"))
import support
from peak_memory import peak_kilobytes
from support import run


def shared_objects(pid):
    return pathlib.Path(f"/proc/{pid}/maps").read_text()


class TorchFreeStart(unittest.TestCase):
    """Nothing of LibTorch is loaded unless a verb needs tensors."""

    def test_the_program_is_not_linked_to_torch(self):
        listed = subprocess.run(
            ["ldd", support.PROGRAM], capture_output=True, check=True
        ).stdout.decode()
        self.assertIn("libstdc++", listed)
        self.assertNotRegex(listed, "torch|libc10|seqconv_engine")

    def test_help_loads_no_torch(self):
        result = run("--help", env={**os.environ, "LD_DEBUG": "files"})
        self.assertEqual(result.code, 0)
        self.assertIn("libstdc++", result.message)
        self.assertNotRegex(result.message, "torch|libc10|seqconv_engine")

    def assert_maps_no_torch(self, *arguments):
        process = subprocess.Popen(
            [support.PROGRAM, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        # Waiting for its input, the program has loaded all that it will load.
        process.stdin.write(b"ab ab c\n")
        process.stdin.flush()
        time.sleep(0.3)
        maps = shared_objects(process.pid)
        process.communicate(timeout=support.TIMEOUT)
        self.assertEqual(process.returncode, 0)
        self.assertIn("libstdc++", maps)
        self.assertNotRegex(maps, "torch|libc10|seqconv_engine")

    def test_evaluate_maps_no_torch(self):
        reference = support.scratch() / "reference"
        reference.write_text("ab ab c\n")
        self.assert_maps_no_torch("evaluate", "bleu", "--reference", reference)
        self.assert_maps_no_torch("evaluate", "chrf", "--reference", reference)

    def test_bpe_maps_no_torch(self):
        self.assert_maps_no_torch("bpe", "learn", "--merges", "2")
        codes = support.scratch() / "codes"
        codes.write_text("#version: 0.2\na b\n")
        self.assert_maps_no_torch("bpe", "apply", "--codes", codes)

    def test_tokenize_maps_no_torch(self):
        self.assert_maps_no_torch("tokenize", "--language", "en")

    def libraries_that_a_model_loads(self, *flags):
        """What the loader says of each verb that runs a model."""
        text = support.scratch() / "numbers"
        text.write_text("eins zwei\n", encoding="utf-8")
        for verb in (
            ["translate", "--model", support.model()],
            ["score", "--model", support.model(), "--source", text, "--target", text],
            ["perplexity", "--model", support.language_model()],
            ["generate", "--model", support.language_model(), "--length", "3"],
        ):
            with self.subTest(verb=verb[0]):
                result = run(*verb, *flags, stdin="eins zwei\n",
                             env={**os.environ, "LD_DEBUG": "files"})
                self.assertEqual(result.code, 0, result.message)
                self.assertIn("libstdc++", result.message)
                yield result.message

    def test_running_a_model_loads_no_torch(self):
        for loaded in self.libraries_that_a_model_loads():
            self.assertNotRegex(loaded, "torch|libc10|seqconv_engine")

    def test_the_backend_of_libtorch_does_load_it(self):
        # The witness that the checks above can fail.
        for loaded in self.libraries_that_a_model_loads("--backend", "libtorch"):
            self.assertRegex(loaded, "libtorch_cpu")
            self.assertRegex(loaded, "seqconv_engine")

    def test_help_starts_in_under_30_ms(self):
        def milliseconds():
            start = time.perf_counter()
            subprocess.run([support.PROGRAM, "--help"], capture_output=True)
            return (time.perf_counter() - start) * 1e3

        # A busy machine may spoil a round, not five of them.
        rounds = []
        for _ in range(5):
            rounds.append(statistics.median(milliseconds() for _ in range(9)))
            if rounds[-1] < 30:
                return
        self.fail(f"medians of nine runs in ms: {rounds}")


class Help(unittest.TestCase):
    # A test of its own holds this page to the program.
    VERBS = re.findall(
        r"^## seqconv (\w+)$",
        (support.ROOT / "docs/reference/command_line.md").read_text(),
        re.MULTILINE,
    )

    def test_the_readme_names_every_verb(self):
        text = (support.ROOT / "README.md").read_text()
        named = re.search(r"\*\*One program\*\*, `seqconv`: ([a-z,\s]+)\.", text)
        self.assertEqual(sorted(re.split(r",\s+", named[1])), sorted(self.VERBS))

    def test_without_a_verb_the_verbs_go_to_standard_error(self):
        result = run()
        self.assertEqual(result.code, 2)
        self.assertEqual(result.out, b"")
        for verb in self.VERBS:
            self.assertRegex(result.message, rf"(?m)^  {verb} ")

    def test_help_goes_to_standard_output(self):
        for arguments in ([], *([verb] for verb in self.VERBS)):
            with self.subTest(arguments=arguments):
                result = run(*arguments, "--help")
                self.assertEqual((result.code, result.err), (0, b""))
                self.assertIn("seqconv", result.out.decode())
                self.assertIn("Examples:", result.out.decode())

    def test_help_of_translate_has_groups_and_defaults(self):
        text = run("translate", "--help").out.decode()
        for wanted in ("Search:", "--beam N=5", "--length-penalty X=1",
                       "--n-best N=1", "--batch-tokens N=4096", "--format"):
            self.assertIn(wanted, text)

    def test_help_lines_fit_a_terminal(self):
        for verb in self.VERBS:
            lines = run(verb, "--help").lines
            self.assertGreater(len(lines), 10, verb)
            for line in lines:
                self.assertLessEqual(len(line), 120, line)

    def test_version_states_build_facts(self):
        result = run("--version")
        self.assertEqual((result.code, result.err), (0, b""))
        self.assertRegex(
            result.out.decode(),
            r"seqconv \d+\.\d+\.\d+\ncompiler: .+\nbuild: .+\n"
            r"instruction sets: baseline.+\nlibtorch: 2\.",
        )

    def test_help_config_is_a_valid_configuration_file(self):
        result = run("train", "--help-config")
        self.assertEqual(result.code, 0, result.message)
        import tomllib

        table = tomllib.loads(result.out.decode())
        self.assertEqual(table["decoding"]["beam"], 5)
        self.assertEqual(table["model"]["encoder"]["layers"], 7)
        self.assertIn("learning_rate", table["schedule"])


class Translate(unittest.TestCase):
    def try_to_translate(self, *flags, stdin):
        return run(
            "translate", "--model", support.model(), "--max-length-b", "12",
            *flags, stdin=stdin,
        )

    def translate(self, *flags, stdin):
        result = self.try_to_translate(*flags, stdin=stdin)
        self.assertEqual(result.code, 0, result.message)
        return result

    def test_one_line_out_for_each_line_in(self):
        result = self.translate(stdin="1 2 3\n\n4 5\n   \n6\n")
        self.assertEqual(result.out.count(b"\n"), 5)
        lines = result.out.decode().split("\n")
        self.assertEqual((lines[1], lines[3]), ("", ""))

    def test_alignments_stand_behind_the_translation(self):
        text = "1 2 3\n\n4 x 5\n"
        plain = self.translate(stdin=text).lines
        lines = self.translate("--alignments", stdin=text).lines
        self.assertEqual([line.split(" ||| ")[0] for line in lines], plain)
        self.assertEqual(lines[1], " ||| ")
        for line in lines:
            self.assertRegex(line.split(" ||| ")[1], r"^(\d+-\d+( \d+-\d+)*)?$")
        listed = self.translate("--alignments", "--n-best", "3", stdin="1 2\n").lines
        self.assertEqual(len(listed), 3)
        for line in listed:
            self.assertRegex(line, r"^1\t-\d.*\t.* \|\|\| ")

    def test_alignments_in_json_tell_the_places_of_tokens(self):
        text = '{"text": "1  2\\t3"}\n{"text": ""}\n'
        flags = ["--json-input", "--format", "json"]
        found, empty = map(json.loads, self.translate(*flags, "--source-shares", stdin=text).lines)
        source = found["source_tokens"].split()
        self.assertEqual(source, ["1", "2", "3", "</s>"])
        self.assertEqual(found["source_ranges"], [[0, 1], [3, 4], [5, 6], [6, 6]])
        best = found["translations"][0]
        tokens = best["tokens"].split()
        self.assertEqual(len(best["token_ranges"]), len(tokens))
        for token, (begin, end) in zip(tokens[:-1], best["token_ranges"]):
            self.assertEqual(best["text"][begin:end], token)
        self.assertEqual([len(row) for row in best["source_shares"]], [4] * len(tokens))
        for row in best["source_shares"]:
            self.assertAlmostEqual(sum(row), 1, places=4)
        for pair in best["alignment"].split():
            source_token, target_token = map(int, pair.split("-"))
            row = best["source_shares"][target_token]
            self.assertGreaterEqual(row[source_token], max(row) / 2)
        self.assertEqual(empty["source_tokens"], "</s>")
        self.assertEqual(empty["source_ranges"], [[0, 0]])
        self.assertEqual(empty["translations"][0]["alignment"], "")
        self.assertEqual(empty["translations"][0]["token_ranges"], [])
        self.assertEqual(empty["translations"][0]["source_shares"], [])
        by_libtorch = self.translate(
            *flags, "--source-shares", "--backend", "libtorch", stdin=text).lines
        other = json.loads(by_libtorch[0])["translations"][0]
        self.assertEqual(other["alignment"], best["alignment"])

    def test_shares_need_json(self):
        result = self.try_to_translate("--source-shares", stdin="1\n")
        self.assertEqual(result.code, 2)
        self.assertIn("--source-shares needs --format json", result.message)

    def test_no_input_gives_no_output(self):
        self.assertEqual(self.translate(stdin="").out, b"")

    def test_order_is_that_of_the_input(self):
        lines = [" ".join("123456789"[: 1 + i * 7 % 9]) for i in range(40)]
        text = "".join(line + "\n" for line in lines)
        whole = self.translate(stdin=text).lines
        small = self.translate(
            "--buffer-lines", "3", "--batch-tokens", "20", stdin=text
        ).lines
        alone = {
            line: self.translate(stdin=line + "\n").lines[0]
            for line in set(lines)
        }
        self.assertEqual(whole, [alone[line] for line in lines])
        self.assertEqual(small, whole)

    def test_a_buffer_is_written_before_the_next_is_read(self):
        process = subprocess.Popen(
            [support.PROGRAM, "translate", "--model", support.model(),
             "--buffer-lines", "2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        watchdog = threading.Timer(support.TIMEOUT, process.kill)
        watchdog.start()
        process.stdin.write(b"1 2\n3 4\n")
        process.stdin.flush()
        first = [process.stdout.readline(), process.stdout.readline()]
        process.stdin.write(b"5 6\n")
        process.stdin.close()
        rest = process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        watchdog.cancel()
        self.assertTrue(all(line.endswith(b"\n") for line in first))
        self.assertEqual(rest.count(b"\n"), 1)

    def test_line_ends_and_byte_order_mark_change_nothing(self):
        plain = self.translate(stdin=b"1 2 3\n4 5\n").out
        for spelled in (b"1 2 3\r\n4 5\r\n", b"\xef\xbb\xbf1 2 3\n4 5\n",
                        b"1 2 3\n4 5", b"1 2\x003\n4 5\n"):
            with self.subTest(spelled=spelled):
                self.assertEqual(self.translate(stdin=spelled).out, plain)

    def test_invalid_utf8_is_replaced_with_one_warning(self):
        result = self.translate(stdin=b"1 \xff 2\n\xc3\n3\n\xed\xa0\x80\n")
        self.assertEqual(result.out.count(b"\n"), 4)
        self.assertEqual(result.message.count("UTF-8"), 1)
        self.assertRegex(result.message, r"\b3 input lines\b.*UTF-8")

    def test_n_best_text_has_number_score_and_text(self):
        result = self.translate(
            "--n-best", "3", "--beam", "4", stdin="1 2\n\n3\n"
        )
        rows = [line.split("\t") for line in result.out.decode().splitlines()]
        self.assertTrue(all(len(row) == 3 for row in rows))
        numbers = [int(row[0]) for row in rows]
        self.assertEqual(numbers, [1, 1, 1, 2, 3, 3, 3])
        scores = [float(row[1]) for row in rows]
        self.assertEqual(scores[:3], sorted(scores[:3], reverse=True))

    def test_json_output(self):
        result = self.translate(
            "--format", "json", "--n-best", "2", stdin="1 2\n\n"
        )
        first, empty = map(json.loads, result.lines)
        self.assertEqual(first["text"], "1 2")
        self.assertEqual(len(first["translations"]), 2)
        best = first["translations"][0]
        self.assertEqual(
            set(best),
            {"text", "tokens", "score", "log_probability", "token_scores"},
        )
        self.assertLess(best["log_probability"], 0)
        self.assertEqual(empty["translations"][0]["text"], "")

    def test_json_input_keeps_unknown_fields_and_obeys_the_prefix(self):
        request = {"id": 7, "text": "1 2", "target_prefix": "neun acht",
                   "more": {"a": [1, None]}}
        result = self.translate(
            "--json-input", "--format", "json",
            stdin=json.dumps(request) + "\n",
        )
        answer = json.loads(result.out)
        translations = answer.pop("translations")
        self.assertEqual(answer, request)
        self.assertTrue(translations[0]["text"].startswith("neun acht"))
        text = self.translate("--json-input", stdin=json.dumps(request))
        self.assertTrue(text.out.startswith(b"neun acht"))

    def test_json_has_no_character_at_which_some_readers_end_a_line(self):
        line = "1 \u2028 2\u2029 \x85 3"
        result = self.translate("--format", "json", stdin=line + "\n4\n")
        first, second = map(json.loads, result.lines)
        self.assertEqual((first["text"], second["text"]), (line, "4"))

    def test_terms_come_from_a_file_or_a_request(self):
        file = support.scratch() / "terms.tsv"
        file.write_text("3\tsieben neun\n")
        flags = ["--terminology", file]
        first, second = self.translate(*flags, stdin="3 1\n1\n").lines
        self.assertIn("sieben neun", first)
        self.assertNotIn("sieben neun", second)
        request = json.dumps({"text": "3 1", "terms": {"3": "acht acht"}})
        own = self.translate(*flags, "--json-input", stdin=request + "\n").lines[0]
        self.assertIn("acht acht", own)
        self.assertNotIn("sieben neun", own)

    def test_terms_that_make_no_sense_are_named(self):
        file = support.scratch() / "bad_terms.tsv"
        file.write_text("3\tsieben\n")
        flags = ["translate", "--model", support.model(), "--terminology", file]
        found = run(*flags, "--json-input", stdin='{"text": "3", "terms": {"3": 5}}\n')
        self.assertEqual(found.code, 1)
        self.assertIn("the term '3' must have a text, but got 5", found.message)
        self.assertIn("--terminology is for searches", run(*flags, "--sample", stdin="").message)
        file.write_text("3 sieben\n")
        found = run(*flags, stdin="")
        self.assertIn("bad_terms.tsv:1: a term must be SOURCE<tab>TARGET", found.message)

    def test_json_text_with_a_line_break_stays_one_line(self):
        result = self.translate(
            "--json-input", stdin='{"text": "1\\n2"}\n{"text": "3"}\n'
        )
        self.assertEqual(result.out.count(b"\n"), 2)

    def test_draws_are_a_function_of_seed_and_line(self):
        def draw(*flags, stdin="1 2\n\n3 4 5\n1 2\n"):
            return self.translate("--sample", *flags, stdin=stdin).out

        several = ["--n-best", "7", "--temperature", "1.5"]  # beyond the beam
        wanted = draw(*several)
        rows = [line.split("\t") for line in wanted.decode().splitlines()]
        self.assertEqual([int(row[0]) for row in rows],
                         [1] * 7 + [2] + [3] * 7 + [4] * 7)
        texts = [row[2] for row in rows]
        self.assertNotEqual(texts[:7], texts[15:], "lines are drawn apart")
        for flags in (["--batch-tokens", "1"], ["--buffer-lines", "1"]):
            self.assertEqual(draw(*several, *flags), wanted)
        self.assertNotEqual(draw(*several, "--seed", "2"), wanted)
        greedy = self.translate("--beam", "1", stdin="1 2\n3 4\n").out
        self.assertEqual(
            draw("--temperature", "0", stdin="1 2\n3 4\n"), greedy)

    def test_an_ensemble_of_twins_says_what_one_says(self):
        text = "1 2 3\n4\n"
        alone = self.translate(stdin=text).out
        twins = self.translate("--model", support.model(), stdin=text).out
        self.assertEqual(twins, alone)

    def test_stats_go_to_standard_error(self):
        result = self.translate("--stats", stdin="1\n2\n")
        self.assertRegex(
            result.message,
            r"translated 2 sentences into \d+ tokens in .* tokens/s "
            r"\(runtime, float32\), logits of 32 MB at a time",
        )
        result = self.translate("--stats", "--backend", "libtorch", stdin="1\n2\n")
        self.assertRegex(result.message, r"tokens/s \(libtorch, float32\)")

    def test_the_backends_say_the_same(self):
        text = "1 2 3\n\n4\n5 6 7 8 9 1\n"
        flags = ["--n-best", "3", "--format", "json"]
        answers = [
            [json.loads(line) for line in self.translate(*flags, *more, stdin=text).lines]
            for more in ([], ["--backend", "libtorch"])
        ]
        for ours, theirs in zip(*answers, strict=True):
            self.assertEqual(len(ours["translations"]), len(theirs["translations"]))
            for one, other in zip(ours["translations"], theirs["translations"]):
                self.assertEqual(one["tokens"], other["tokens"])
                self.assertAlmostEqual(
                    one["log_probability"], other["log_probability"], delta=1e-4)

    def test_libtorch_computes_in_bfloat16(self):
        source, target = support.data() / "valid.src", support.data() / "valid.tgt"
        pairs = ["score", "--model", support.model(), "--source", source, "--target", target]
        runs = [
            run(*pairs, "--backend", "libtorch", "--compute-type", compute)
            for compute in ("float32", "bfloat16")]
        one, other = ([float(line.split()[-1]) for line in result.out.decode().splitlines()]
                      for result in runs)
        self.assertNotEqual(one, other)
        for a, b in zip(one, other, strict=True):
            self.assertLess(abs(a - b), 0.02 * abs(a) + 0.1)
        result = self.translate("--backend", "libtorch", "--compute-type", "bfloat16",
                                "--stats", stdin="1 2 3\n")
        self.assertRegex(result.message, r"tokens/s \(libtorch, bfloat16\)")

    def test_a_device_is_there_or_the_error_says_what_is(self):
        text = "1 2 3\n"
        wanted = self.translate(stdin=text).out
        self.assertEqual(self.translate("--device", "cpu", stdin=text).out, wanted)
        result = self.try_to_translate("--device", "", stdin=text)
        self.assertEqual(result.code, 2, result.message)
        self.assertIn("--device must have a value", result.message)
        for wrong in ("gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:128", "CPU"):
            result = self.try_to_translate("--device", wrong, stdin=text)
            self.assertEqual(result.code, 2, result.message)
            self.assertIn(
                "--device must be auto, cpu, cuda or cuda:N", result.message)
            self.assertIn(f"but got '{wrong}'", result.message)
        for flags, refused in (
            (["--compute-type", "int8"], "--compute-type int8 needs --backend runtime"),
            (["--shortlist", "words"], "--shortlist is for --backend runtime alone"),
        ):
            result = self.try_to_translate("--device", "cuda", *flags, stdin=text)
            self.assertEqual(result.code, 2, result.message)
            self.assertIn(refused, result.message)
            self.assertIn("--device cuda", result.message)

    def test_without_a_cuda_device_auto_is_the_cpu_and_cuda_an_error(self):
        # On a machine with one, tools/gpu_check.sh looks at it.
        text = "1 2 3\n"
        cuda = self.try_to_translate("--device", "cuda", stdin=text)
        auto = self.translate("--device", "auto", stdin=text)
        if cuda.code == 0:
            self.skipTest("there is a CUDA device")
        self.assertEqual(cuda.code, 1, cuda.message)
        self.assertRegex(
            cuda.message,
            "device 'cuda' was asked for, but (this build has no operators for CUDA "
            "devices|CUDA cannot be loaded|no CUDA device is to be seen)")
        self.assertEqual(auto.out, self.translate(stdin=text).out)

    def test_threads_change_no_byte(self):
        text = "".join(f"{i % 10} {i % 7} {i % 3}\n" * (i % 4) for i in range(60))
        flags = ["--n-best", "2", "--format", "json", "--batch-tokens", "64"]
        wanted = self.translate(*flags, "--threads", "1", stdin=text).out
        for threads in ("0", "2", "5"):
            self.assertEqual(
                self.translate(*flags, "--threads", threads, stdin=text).out, wanted)

    def test_a_checkpoint_file_is_a_model(self):
        whole = self.translate(stdin="1 2\n").out
        checkpoint = support.model() / "model.safetensors"
        result = run("translate", "--model", checkpoint, "--max-length-b", "12",
                     stdin="1 2\n")
        self.assertEqual((result.code, result.out), (0, whole))

    def test_n_best_may_be_as_many_as_the_models_own_beam(self):
        folder = support.copy_model("wide")
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config["decoding"]["beam"] = 10
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        wide = run("translate", "--model", folder, "--n-best", "8", stdin="1 2\n")
        self.assertEqual(wide.code, 0, wide.message)
        self.assertEqual(len(wide.out.splitlines()), 8)
        config["decoding"]["n_best"] = 8
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        fewer = run("translate", "--model", folder, "--beam", "2", stdin="1 2\n")
        self.assertEqual((fewer.code, len(fewer.out.splitlines())), (0, 2), fewer.message)
        narrow = run("translate", "--model", support.model(), "--n-best", "8", stdin="1 2\n")
        self.assertEqual(narrow.code, 2)
        self.assertIn("--n-best must be between 1 and the beam (5), but got 8", narrow.message)

    def test_no_repeated_word_does_not_keep_a_sentence_from_ending(self):
        arguments = ["translate", "--model", support.model(), "--format", "json"]
        lines = "1 2\n7\n"
        free = run(*arguments, stdin=lines).out.splitlines()
        bound = run(*arguments, "--no-repeat-ngram", "1", stdin=lines).out.splitlines()
        self.assertEqual((len(free), len(bound)), (2, 2))
        for ours, theirs in zip(map(json.loads, bound), map(json.loads, free)):
            words = theirs["translations"][0]["tokens"].split()
            if len(set(words)) == len(words):  # nothing to forbid
                self.assertEqual(ours, theirs)
            words = ours["translations"][0]["tokens"].split()
            self.assertEqual(len(set(words)), len(words))

    def test_a_prefix_that_does_not_fit_is_said_with_its_line(self):
        long = json.dumps({"text": "1", "target_prefix": "eins " * 13})
        result = self.translate("--json-input", stdin='{"text": "1"}\n' + long)
        self.assertIn("standard input:2: a target prefix of 13 tokens is cut to "
                      "the 12 that --max-length-a and --max-length-b", result.message)

    def test_any_byte_of_a_translation_leaves_it_one_line(self):
        folder = support.scratch() / "bytes"
        done = run("train", support.config(), "--output", folder,
                   "--set", 'text.subword="bytes"', "--set", "training.max_updates=1")
        self.assertEqual(done.code, 0, done.message)
        # No byte twice and at least 250 of them: line ends are among these.
        command = ["translate", "--model", folder, "--beam", "2", "--min-length",
                   "250", "--max-length-b", "256", "--no-repeat-ngram", "1"]
        text = "1\n2\n"
        for flags, lines in ((["--n-best", "1"], 2), (["--n-best", "2"], 4)):
            result = run(*command, *flags, stdin=text)
            self.assertEqual((result.code, result.err), (0, b""))
            self.assertEqual(len(result.out.decode().splitlines()), lines)
        objects = run(*command, "--format", "json", stdin=text).out.split(b"\n")
        self.assertEqual(len(objects), 3)
        self.assertIn("\n", json.loads(objects[0])["translations"][0]["text"])


class Score(unittest.TestCase):
    def test_lines_and_total(self):
        folder = support.scratch()
        (folder / "s").write_text("1 2\n3\n")
        (folder / "t").write_text("eins zwei\ndrei\n")
        result = run("score", "--model", support.model(),
                     "--source", folder / "s", "--target", folder / "t")
        self.assertEqual(result.code, 0, result.message)
        *values, total = result.lines
        self.assertEqual(len(values), 2)
        label, amount = total.split("\t")
        self.assertEqual(label, "total")
        self.assertAlmostEqual(float(amount), sum(map(float, values)), places=5)

    def test_agrees_with_what_translate_reports(self):
        folder = support.scratch()
        sources = ["1 2 3", "4", "9 9"]
        result = run("translate", "--model", support.model(), "--format", "json",
                     "--max-length-b", "8", stdin="\n".join(sources))
        best = [json.loads(line)["translations"][0] for line in result.lines]
        (folder / "s2").write_text("".join(s + "\n" for s in sources))
        (folder / "t2").write_text("".join(b["text"] + "\n" for b in best))
        result = run("score", "--model", support.model(),
                     "--source", folder / "s2", "--target", folder / "t2")
        self.assertEqual(len(best), len(sources))
        for line, translation in zip(result.lines[:-1], best, strict=True):
            # A forced </s> at the longest length is scored all the same.
            self.assertAlmostEqual(
                float(line), translation["log_probability"], places=3
            )


class Messages(unittest.TestCase):
    def test_one_message_is_one_line_of_utf8(self):
        bad = "a\nb\u2028\u0085\x1b[1m\udcff"
        for arguments in (
            ["translate", "--model", bad], [bad], ["train", bad], ["info", bad],
            ["translate", f"--{bad}"], ["translate", "--model", "m", "--format", bad],
            ["train", support.config(), "--set", bad], ["average", "-o", bad, bad],
        ):
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertIn(result.code, (1, 2))
                message = result.err.decode("utf-8")
                self.assertEqual(len(message.splitlines()), 1, message)
                self.assertTrue(message[:-1].isprintable(), ascii(message))

    def test_names_that_no_system_takes_are_told_as_such(self):
        for arguments in (["average", "-o", "x" * 300, support.model()],
                          ["info", "x" * 300]):
            result = run(*arguments)
            self.assertEqual(result.code, 1)
            self.assertNotIn("internal", result.message)


def tensors(file):
    """The bytes of a safetensors file's tensors, by name."""
    data = file.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    return {name: data[begin + tensor["data_offsets"][0]:
                       begin + tensor["data_offsets"][1]]
            for name, tensor in json.loads(data[8:begin]).items()
            if name != "__metadata__"}


class Average(unittest.TestCase):
    def test_the_mean_of_a_model_with_itself_translates_the_same(self):
        mean = support.scratch() / "mean"
        result = run("average", "--output", mean, support.model(),
                     support.model() / "model.safetensors")
        self.assertEqual(result.code, 0, result.message)
        results = [
            run("translate", "--model", m, stdin="1 2\n3 4 5\n").out
            for m in (support.model(), mean)
        ]
        self.assertEqual(results[0], results[1])
        self.assertIn(b"parameters: ", run("info", mean).out)

    def test_a_decay_weighs_the_later_checkpoints_more(self):
        checkpoints = sorted(
            (support.language_model() / "training/checkpoints").iterdir())
        self.assertGreater(len(checkpoints), 1)
        means = {}
        for name, order, decay in (("forward", checkpoints, "1e-300"),
                                   ("backward", checkpoints[::-1], "1e-300"),
                                   ("plain", checkpoints, "1")):
            output = support.scratch() / f"ema-{name}"
            result = run("average", "--output", output, "--ema-decay", decay, *order)
            self.assertEqual(result.code, 0, result.message)
            self.assertEqual("comes after one of update" in result.message,
                             name == "backward", result.message)
            means[name] = tensors(output / "model.safetensors")
        self.assertEqual(means["forward"], tensors(checkpoints[-1]))
        self.assertEqual(means["backward"], tensors(checkpoints[0]))
        self.assertNotEqual(means["backward"], means["forward"])
        self.assertNotEqual(means["plain"], means["forward"])

    def test_validation_text_tells_the_loss_of_each_part_and_of_a_worse_average(self):
        valid = [support.data() / f"valid.{side}" for side in ("src", "tgt")]
        pairs = ["--valid-source", valid[0], "--valid-target", valid[1]]
        for name, model, text in (
                ("pairs", support.model(), pairs),
                ("text", support.language_model(), ["--valid", valid[1]])):
            with self.subTest(name):
                best = model / "model.safetensors"
                bad = support.copy_model(f"bad-{name}", of=model) / "model.safetensors"
                data = best.read_bytes()
                begin = 8 + int.from_bytes(data[:8], "little")
                numbers = array.array("f", data[begin:])
                bad.write_bytes(data[:begin] + array.array("f", (30 * n for n in numbers)).tobytes())
                output = support.scratch() / f"measured-{name}"
                result = run("average", "--output", output, *text, best, best)
                self.assertEqual(result.code, 0, result.message)
                losses = re.findall(r"loss of '(.*)': ([0-9.]+)\n", result.message)
                self.assertEqual([file for file, _ in losses], [str(best)] * 2 + [str(output)])
                records = (model / "training/metrics.jsonl").read_text().splitlines()
                wanted = min(json.loads(line)["nll_base2"] for line in records
                             if json.loads(line)["kind"] == "validation")
                for _, loss in losses:
                    self.assertAlmostEqual(float(loss), wanted, places=3)
                self.assertNotIn("warning", result.message)
                result = run("average", "--output", output, *text, bad, best)
                self.assertEqual(result.code, 0, result.message)
                self.assertIn(f"warning: the average is worse than its best part, '{best}': a loss "
                              "of ", result.message)

    def test_validation_text_of_another_task_or_half_of_it_is_refused(self):
        valid = support.data() / "valid.tgt"
        output = support.scratch() / "not-measured"
        for flags, code, wanted in (
                (["--valid", valid], 2, "is measured on --valid-source FILE and --valid-target"),
                (["--valid-target", valid], 2, "go together, but one of them is missing"),
                (["--valid", valid, "--valid-source", valid, "--valid-target", valid], 2,
                 "give the ones or the other"),
                (["--valid-source", valid, "--valid-target", os.devnull], 1,
                 "must have as many lines, but"),
                (["--valid-source", os.devnull, "--valid-target", os.devnull], 1,
                 "the file is empty"),
                (["--valid-source", valid, "--valid-target", "none"], 1, "'none'")):
            result = run("average", "--output", output, support.model(), *flags)
            self.assertEqual(result.code, code, result.message)
            self.assertIn(wanted, result.message)
        result = run("average", "--output", output, support.language_model(),
                     "--valid-source", valid, "--valid-target", valid)
        self.assertEqual(result.code, 2)
        self.assertIn("a language model is measured on --valid FILE", result.message)
        self.assertFalse(output.exists())

    def test_only_checkpoints_are_averaged(self):
        folder = support.copy_model("with-leftovers")
        checkpoints = folder / "training/checkpoints"
        left = checkpoints / f"update-00000009.safetensors.tmp-{2**22 + 1}"
        left.write_bytes((folder / "model.safetensors").read_bytes())
        mean = support.scratch() / "mean-of-leftovers"
        for verb in (["average", "--output", mean, *sorted(checkpoints.iterdir())],
                     ["translate", "--model", left]):
            result = run(*verb)
            self.assertEqual(result.code, 1)
            self.assertIn(f"'{left}' is no checkpoint but the unfinished file",
                          result.message)
            self.assertIn("*.safetensors", result.message)
        result = run("average", "--output", mean, folder / "training/state.safetensors")
        self.assertEqual(result.code, 1)
        self.assertIn("state.safetensors: no tensor", result.message)
        self.assertFalse(mean.exists())
        left.rename(folder / f"dict.txt.tmp-{2**22 + 1}")
        result = run("average", "--output", mean, folder)
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual(sorted(os.listdir(mean)),
                         ["config.json", "dict.txt", "model.safetensors"])

    def test_a_run_is_not_written_over(self):
        folder = support.copy_model("not-written-over")
        before = (folder / "model.safetensors").read_bytes()
        names = sorted(folder.rglob("*"))
        for output in ("", "new/..", "new/../", "new", "training", "training/checkpoints"):
            with self.subTest(output=output):
                result = run("average", "--output", f"{folder}/{output}", support.model())
                self.assertEqual(result.code, 1)
                self.assertIn("holds its training", result.message)
        self.assertEqual((folder / "model.safetensors").read_bytes(), before)
        self.assertEqual(sorted(folder.rglob("*")), names)

    def test_a_link_to_the_model_is_not_written_through(self):
        folder = support.scratch() / "linked-output"
        folder.mkdir()
        (folder / "model.safetensors").symlink_to(support.model() / "model.safetensors")
        result = run("average", "--output", folder, support.model())
        self.assertEqual(result.code, 1)
        self.assertIn("must be another folder than the model's own", result.message)


class Overwriting(unittest.TestCase):
    """No verb writes what it reads, by whatever name."""

    @classmethod
    def setUpClass(cls):
        cls.place = support.scratch() / "overwriting"
        cls.model = support.copy_model("overwriting/model")
        cls.other = cls.place / "other"
        (cls.other / "training").mkdir(parents=True)
        records = (cls.model / "training/metrics.jsonl").read_bytes()
        for path, content in (
            (cls.other / "training/metrics.jsonl", records), (cls.place / "kept.jsonl", records),
            (cls.place / "source", b"1 2\n"), (cls.place / "target", b"eins zwei\n"),
        ):
            path.write_bytes(content)
        cls.checkpoint = next((cls.model / "training/checkpoints").iterdir())

    def tree(self):
        return {path: path.read_bytes() for path in self.place.rglob("*") if path.is_file()}

    def spellings(self, path):
        """Names of the same file, each for a moment."""
        yield path
        yield f"{path.parent}/./../{path.parent.name}/{path.name}"
        name = support.scratch() / f"another-{path.name}"
        for link in (lambda: name.symlink_to(path), lambda: name.hardlink_to(path)):
            link()
            yield name
            name.unlink()

    def refuse(self, result, *wanted):
        self.assertEqual((result.code, result.out), (1, b""), result.message)
        self.assertEqual(result.message.count("error: "), 1, result.message)
        for words in wanted:
            self.assertIn(words, result.message)

    def test_a_file_that_is_read_is_not_written_over(self):
        model, other, place = self.model, self.other, self.place
        texts = "--source", place / "source", "--target", place / "target"
        learn = ["shortlist", "--model", model, *texts, "--output"]
        inspect = ["inspect", "--model", model, "--output"]
        pytorch = ["export", "--format", "pytorch"]
        before = self.tree()
        for verb, output, more, words in (
            (inspect, place / "kept.jsonl", ["--run", place / "kept.jsonl"],
             "--output names a file that --run reads"),
            (inspect, other / "training/metrics.jsonl", ["--run", other],
             "a file of the folder that --run reads"),
            (inspect, model / "dict.txt", [], "a file of the folder that --model reads"),
            (learn, place / "source", [], "--output names a file that --source reads"),
            (learn, place / "target", [], "--output names a file that --target reads"),
            (learn, self.checkpoint, [], "a file of the folder that --model reads"),
            ([*pytorch, model], model / "dict.txt", [], "OUT would replace a file of the folder"),
            ([*pytorch, self.checkpoint], self.checkpoint, [], "OUT names a file that DIR reads"),
            ([*pytorch, self.checkpoint], model / "config.json", [], "the folder that DIR reads"),
            (["translate", "--model", model, "--input", place / "source", "--output"],
             place / "source", [], "--output names a file that --input reads"),
            (["summarise", "--model", model, "--input", place / "source", "--output"],
             model / "model.safetensors", [], "a file of the folder that --model reads"),
        ):
            for spelled in self.spellings(output):
                with self.subTest(verb=verb[0], output=spelled):
                    self.refuse(run(*verb, spelled, *more), words, "would be lost")
                    self.assertEqual(self.tree(), before)

    def test_a_folder_that_is_read_is_not_written_into(self):
        place, model = self.place, self.model
        data = support.ROOT / "tests/model/data"
        dictionary = place / "dict.txt"
        dictionary.write_bytes((data / "dict.txt").read_bytes())
        link = place / "linked-model"
        link.symlink_to(model)
        linked = place / "linked"
        linked.mkdir()
        (linked / "dict.txt").symlink_to(model / "dict.txt")
        imported = ["import", "--checkpoint", data / "published.pt", "--source-dictionary",
                    dictionary, "--target-dictionary", dictionary, "--output", place]
        own = "must be another folder than the model's own, which "
        before = self.tree()
        for arguments, words in (
            (["quantize", "--model", model, "--output", link], own + "--model reads"),
            (["quantize", "--model", link, "--output", linked], own + "--model reads"),
            (["average", model, "--output", linked], own + "CHECKPOINT reads"),
            (["train", support.config(), "--init-from", link, "--output", model],
             own + "--init-from reads"),
            (["train", support.config(), "--init-from", self.checkpoint, "--output", model],
             own + "--init-from reads"),
            (imported, "would replace a file that --source-dictionary reads"),
        ):
            with self.subTest(arguments=arguments):
                self.refuse(run(*arguments), words)
                self.assertEqual(self.tree(), before)
        for path in dictionary, link, linked / "dict.txt":
            path.unlink()

    def test_a_run_does_not_write_over_its_data(self):
        output = self.place / "run"
        output.mkdir()
        text = output / "dict.txt"
        text.write_text("1 2\n" * 100)
        for key in "data.train_source", "text.source_dictionary":
            for output in output, text:
                result = run("train", support.config(), "--output", output, "--set", f"{key}={text}")
                self.assertEqual(result.code, 2, result.message)
                self.assertIn(f"--output would write over a file that {key} reads", result.message)
                self.assertEqual(text.read_text(), "1 2\n" * 100)

    def test_a_model_of_another_program_is_not_written_over(self):
        data = support.ROOT / "tests/model/data"
        texts = [flag for side in ("source", "target")
                 for flag in (f"--{side}-dictionary", data / "dict.txt")]
        folder = self.place / "foreign"
        folder.mkdir()
        (folder / "config.json").write_text('{"model_type": "marian"}')
        (folder / "model.safetensors").write_bytes(b"theirs")
        before = self.tree()
        for arguments in (
            ["import", "--checkpoint", data / "published.pt", *texts],
            ["average", self.model], ["quantize", "--model", self.model],
            ["train", support.config(), "--init-from", self.model],
        ):
            with self.subTest(arguments[0]):
                result = run(*arguments, "--output", folder)
                self.assertIn(result.code, (1, 2))
                self.assertEqual(result.message.count("error: "), 1, result.message)
                self.assertEqual(self.tree(), before)
        (folder / "model.safetensors").unlink()
        self.refuse(run("train", support.config(), "--output", folder),
                    "config.json' is of another program and would be lost")

    def writers(self):
        """Commands that write a model into the folder that is named behind them."""
        data = support.ROOT / "tests/model/data"
        texts = [flag for side in ("source", "target")
                 for flag in (f"--{side}-dictionary", data / "dict.txt")]
        return (["import", "--checkpoint", data / "published.pt", *texts, "--output"],
                ["average", self.model, "--output"], ["quantize", "--model", self.model, "--output"],
                ["train", support.config(), "--output"])

    def test_files_that_no_program_of_ours_has_made_are_not_written_over(self):
        folder = self.place / "mine"
        for name in ("dict.txt", "source.dict.txt", "bpe.codes", "target.sentencepiece.model",
                     "model.safetensors", "training/metrics.jsonl", "training/config.toml"):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text("mine\n")
            before = self.tree()
            for command in self.writers():
                with self.subTest(command[0], name=name):
                    result = run(*command, folder)
                    self.assertIn(result.code, (1, 2), result.message)
                    self.assertEqual(result.message.count("error: "), 1, result.message)
                    self.assertIn(str(folder), result.message)
                    self.assertEqual(self.tree(), before)
            shutil.rmtree(folder)
        # Others may lie there, and stay.
        for command in self.writers():
            folder.mkdir()
            (folder / "README.md").write_text("mine\n")
            (self.model / "README.md").write_text("theirs\n")
            for _ in range(1 if command[0] == "train" else 2):  # our own may be written again
                result = run(*command, folder)
                self.assertEqual(result.code, 0, result.message)
            self.assertEqual((folder / "README.md").read_text(), "mine\n")
            shutil.rmtree(folder)
        (self.model / "README.md").unlink()

    def test_of_two_that_write_a_model_into_one_folder_the_second_is_refused(self):
        folder = self.place / "both"
        first = subprocess.Popen(
            list(map(os.fspath, [*support.slow_disk("model.safetensors.new.tmp-", 60),
                                 support.PROGRAM, "quantize", "--model", self.model,
                                 "--output", folder])), stderr=subprocess.DEVNULL)
        self.addCleanup(first.kill)
        while not list(folder.glob("*.tmp-*")):
            self.assertIsNone(first.poll(), "it ended by itself")
            time.sleep(0.01)
        for command in self.writers()[:3]:
            self.refuse(run(*command, folder), f"'{folder}' is in use")
        first.terminate()
        first.wait()
        self.assertEqual(run("average", self.model, "--output", folder).code, 0)
        shutil.rmtree(folder)

    def test_names_that_are_too_long_are_named(self):
        name = self.place / ("n" * 300)
        for command in self.writers():
            result = run(*command, name)
            self.assertIn(result.code, (1, 2))
            self.assertRegex(result.message, f"error: cannot [a-z ]+ '{self.place}.*File name too long")

    def test_charts_of_another_are_not_written_over(self):
        folder = self.place / "charts"
        command = ["inspect", "--model", self.model, "--format", "svg", "--output", folder]
        for _ in range(2):
            self.assertEqual(run(*command).code, 0)
        chart = next(folder.glob("*.svg"))
        chart.write_text("<svg/>")
        self.refuse(run(*command), f"'{chart}' would be lost")
        self.assertEqual(chart.read_text(), "<svg/>")
        shutil.rmtree(folder)

    def test_pipes_in_a_folder_to_write_into_are_named(self):
        for command in self.writers():
            train = command[0] == "train"
            names = ["config.json", "dict.txt"]
            names += ["training/metrics.jsonl", "training/data/x.tokens"] if train else []
            for name in names:
                folder = self.place / "piped"
                (folder / name).parent.mkdir(parents=True)
                os.mkfifo(folder / name)
                with self.subTest(command[0], name=name):
                    self.refuse(run(*command, folder), pathlib.Path(name).name, "is a pipe")
                shutil.rmtree(folder)

    def test_a_run_writes_through_no_link_out_of_its_folder(self):
        outside = self.place / "outside.txt"
        outside.write_text("mine\n")
        run_folder = self.place / "linked-run"
        shutil.copytree(support.model(), run_folder)
        command = ["train", support.config(), "--output", run_folder, "--resume",
                   "--set", "training.max_updates=6"]
        for name in ("model.safetensors", "training/config.toml", "training/metrics.jsonl",
                     "training/lock", "training/data/train.source.tokens"):
            (run_folder / name).rename(run_folder / "kept")
            for target in outside, self.place / "nowhere":
                (run_folder / name).symlink_to(target)
                with self.subTest(name, target=target.name):
                    self.refuse(run(*command), f"{run_folder}/{name}'", "lead")
                (run_folder / name).unlink()
            (run_folder / "kept").rename(run_folder / name)
        self.assertEqual(outside.read_text(), "mine\n")
        self.assertFalse((self.place / "nowhere").exists())
        self.assertEqual(run(*command).code, 0)
        shutil.rmtree(run_folder)
        outside.unlink()

    def test_standard_output_is_not_what_is_read(self):
        place, model = self.place, self.model
        source = place / "stream"
        source.write_text("1 2\n")
        translate = ["translate", "--model", model]
        for arguments, target, streams, words in (
            ([*translate, "--input", source], source, {}, "a file that --input reads"),
            (translate, source, {"stdin": source}, "a file that standard input reads"),
            (["tokenize", "-l", "de"], source, {"stdin": source}, "that standard input reads"),
            (["evaluate", "bleu", "-r", source], source, {}, "a file that --reference reads"),
            (["info", model], model / "config.json", {}, "of the folder that DIR reads"),
        ):
            with self.subTest(arguments=arguments), open(target, "ab") as out, \
                    open(streams.get("stdin", "/dev/null"), "rb") as into:
                before = target.read_bytes()
                done = subprocess.run([support.PROGRAM, *arguments], stdin=into, stdout=out,
                                      stderr=subprocess.PIPE, timeout=support.TIMEOUT)
                self.assertEqual(done.returncode, 1)
                self.assertIn("standard output ", done.stderr.decode())
                self.assertIn(words, done.stderr.decode())
                self.assertEqual(target.read_bytes(), before)
        # Another new file of the model's folder is a good place.
        with open(model / "info.txt", "wb") as out:
            done = subprocess.run([support.PROGRAM, "info", model], stdout=out)
        self.assertEqual(done.returncode, 0)
        (model / "info.txt").unlink()


class FilesThatChange(unittest.TestCase):
    """A model whose files are written to while they are in use gives no wrong text."""

    def translate_in_two_steps(self, name, change, *flags):
        """The output before the change, the exit code and the message."""
        model = support.copy_model(name)
        process = subprocess.Popen(
            [support.PROGRAM, "translate", "--model", model, "--buffer-lines", "1", "--threads",
             "1", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        lines = []
        for number in range(2):
            process.stdin.write(b"1 2 3 4 5 6 7 8 9\n")
            process.stdin.flush()
            if number == 0:
                lines.append(process.stdout.readline())
                change(model)
        rest, message = process.communicate(timeout=support.TIMEOUT)
        self.assertTrue(lines[0].endswith(b"\n"))
        return lines[0], rest, process.returncode, message.decode()

    def test_a_file_that_is_written_over_is_noticed(self):
        def spoil(model):
            data = bytearray((model / "model.safetensors").read_bytes())
            data[-4000:] = bytes(4000)
            (model / "model.safetensors").write_bytes(data)  # the same file

        def cut(model):
            os.truncate(model / "model.safetensors", 100)

        for change in spoil, cut:
            with self.subTest(change.__name__):
                _, rest, code, message = self.translate_in_two_steps("changed-in-place", change)
                self.assertEqual((rest, code), (b"", 1), message)
                self.assertEqual(message.count("error: "), 1, message)
                self.assertRegex(message, "model.safetensors' was (cut short|written to)")

    def test_a_file_that_is_replaced_or_removed_does_not_disturb(self):
        def replace(model):
            other = model / "new"
            other.write_bytes((support.language_model() / "model.safetensors").read_bytes())
            other.rename(model / "model.safetensors")

        def remove(model):
            (model / "model.safetensors").unlink()

        for change in replace, remove:
            with self.subTest(change.__name__):
                first, rest, code, message = self.translate_in_two_steps("replaced", change)
                self.assertEqual((rest, code, message), (first, 0, ""))


class Info(unittest.TestCase):
    def test_tells_what_it_can_of_a_model_that_cannot_be_opened_and_why(self):
        other = (support.language_model() / "model.safetensors").read_bytes()
        whole = (support.model() / "dict.txt").read_bytes()
        for name, file, content, words, told in (
            ("other tensors", "model.safetensors", other, "no tensor 'encoder", True),
            ("no tensors", "model.safetensors", b"garbage", "model.safetensors", False),
            ("other text", "dict.txt", whole[:len(whole) // 2], "dict.txt", True),
            ("no text", "dict.txt", None, "dict.txt", True),
        ):
            with self.subTest(name):
                folder = support.copy_model("info-of-a-spoilt-model")
                (folder / file).unlink()
                if content is not None:
                    (folder / file).write_bytes(content)
                result = run("info", folder)
                opened = run("translate", "--model", folder, stdin="1\n")
                self.assertEqual((result.code, opened.code), (1, 1), result.message)
                self.assertIn("error: the model cannot be used: ", result.message)
                self.assertIn(words, result.message)
                self.assertIn("architecture.dim: 16", result.out.decode())
                self.assertIn("decoding.beam: ", result.out.decode())
                self.assertEqual("parameters: " in result.out.decode(), told)

    def test_states_architecture_and_size(self):
        result = run("info", support.model())
        self.assertEqual((result.code, result.err), (0, b""))
        text = result.out.decode()
        for wanted in ("format_version: 1", "architecture.dim: 16",
                       "architecture.encoder.layers: 2", "parameters: "):
            self.assertIn(wanted, text)

    def test_a_row_is_a_line_of_utf8_whatever_names_are(self):
        odd = "a\nfile: b\x1b[1m\udcff"
        folder = support.copy_model(odd)
        (folder / "training" / f"{odd}.safetensors").touch()
        text = run("info", folder).out.decode()
        named = [row for row in text.splitlines() if "b [1m\ufffd" in row]
        self.assertEqual([row.split(": ")[0] for row in named], ["folder", "checkpoint", "file"])
        self.assertTrue(text.replace("\n", "").isprintable(), ascii(text))


class Tokenize(unittest.TestCase):
    LINE = "Sie sagt: \"Geht's um 3. Mai-Ausgabe?\"\n"

    def test_text_becomes_tokens_and_tokens_text(self):
        for flags, tokens in (
            ([], "Sie sagt : \" Geht ' s um 3. Mai-Ausgabe ? \""),
            (["--split-dashes"], "Sie sagt : \" Geht ' s um 3. Mai @-@ Ausgabe ? \""),
            (["--escape", "--lowercase"],
             "sie sagt : &quot; geht &apos; s um 3. mai-ausgabe ? &quot;"),
        ):
            with self.subTest(flags=flags):
                result = run("tokenize", "-l", "de", *flags, stdin=self.LINE)
                self.assertEqual((result.code, result.message), (0, ""))
                self.assertEqual(result.out.decode(), tokens + "\n")
        undone = run("tokenize", "-l", "fr", "--undo", stdin="l' eau &amp; l' air .\n")
        self.assertEqual(undone.out.decode(), "l'eau & l'air.\n")

    def test_lines_stay_lines(self):
        result = run("tokenize", "-l", "en", stdin="\n a.\r\n\nb.")
        self.assertEqual(result.out.decode(), "\na .\n\nb .\n")


class Bpe(unittest.TestCase):
    def apply(self, *flags, stdin):
        codes = support.scratch() / "bpe.codes"
        codes.write_text("#version: 0.2\nl o\nlo w</w>\nlo w\n")
        result = run("bpe", "apply", "--codes", codes, *flags, stdin=stdin)
        self.assertEqual((result.code, result.message), (0, ""))
        return result.out.decode()

    def test_lines_end_where_subword_nmt_ends_them_and_keep_their_ends(self):
        self.assertEqual(
            self.apply(stdin="low low\r\n low\u2028low\x0clow"),
            "low low\r\n low@@ \u2028low@@ \x0clow")

    def test_a_vocabulary_a_separator_and_glossaries(self):
        vocabulary = support.scratch() / "bpe.vocabulary"
        vocabulary.write_text("lo~ 5\nlow 2\n")
        flags = ["--vocabulary", vocabulary, "--separator", "~"]
        self.assertEqual(self.apply(*flags, stdin="low lows\n"), "low lo~ w~ s\n")
        flags += ["--vocabulary-threshold", "3", "--glossaries", "<[a-z]+>", "w+s"]
        self.assertEqual(
            self.apply(*flags, stdin="low<b> lows\n"), "lo~ w~ <b> l~ o~ ws\n")

    def test_only_so_many_merges(self):
        self.assertEqual(self.apply("--merges", "1", stdin="low\n"), "lo@@ w\n")


class Streams(unittest.TestCase):
    def test_a_reader_that_leaves_ends_the_program_quietly(self):
        text = "1 2 31 31\n" * 2000
        for arguments in (
            ["translate", "--model", support.model(), "--max-length-b", "3",
             "--beam", "1", "--buffer-lines", "50"],
            ["bpe", "learn", "--merges", "1"],
        ):
            with self.subTest(verb=arguments[0]):
                reader, writer = os.pipe()
                os.close(reader)
                result = run(*arguments, stdin=text, stdout=writer)
                os.close(writer)
                self.assertEqual((result.code, result.message), (0, ""))

    def test_a_full_output_is_an_error(self):
        for arguments in (
            ["--help"],
            ["--version"],
            ["info", support.model()],
            ["translate", "--model", support.model()],
            ["bpe", "learn", "--merges", "1"],
            ["tokenize", "--language", "en"],
        ):
            with self.subTest(arguments=arguments[0]), \
                    open("/dev/full", "wb") as full:
                result = run(*arguments, stdin="12 12\n", stdout=full)
                self.assertEqual(result.code, 1)
                self.assertIn("standard output: No space left", result.message)

    def test_quiet_says_nothing(self):
        folder = support.scratch() / "quiet"
        for arguments in (
            ["--quiet", "translate", "--model", support.model(), "--stats"],
            ["translate", "--quiet", "--model", support.model()],
            ["train", support.config(), "-q", "--output", folder,
             "--set", "schedule.warmup_updates=1"],  # more would be warned of
        ):
            result = run(*arguments, stdin="1 2\n")
            self.assertEqual((result.code, result.message), (0, ""))


class Evaluate(unittest.TestCase):
    def test_white_space_at_the_ends_of_lines_does_not_count(self):
        reference = support.scratch() / "blanks"
        reference.write_text("ab cd  \nef\t\n", encoding="utf-8")
        for metric in (["chrf", "--whitespace"], ["chrf"], ["bleu", "--tokenize", "char"]):
            command = ["evaluate", *metric, "--reference", reference]
            plain = run(*command, stdin="ab cd\nef g\n")
            self.assertEqual(run(*command, stdin="ab cd \nef g\u3000\n").out, plain.out)
            self.assertEqual(plain.code, 0, plain.message)


    def test_hypotheses_that_look_tokenised_are_told_once(self):
        def warnings(lines, *flags, metric="bleu"):
            reference = support.scratch() / "tokenised"
            reference.write_text("a b.\n" * len(lines), encoding="utf-8")
            result = run("evaluate", metric, "--reference", reference, *flags,
                         stdin="".join(line + "\n" for line in lines))
            self.assertEqual(result.code, 0, result.message)
            return result.message

        tokens, text = ["a b ."], ["a b."]
        told = warnings(tokens * 120 + text * 500)
        self.assertEqual(told.count("\n"), 1)
        self.assertIn("warning: 120 of 620 hypotheses end in ' .'", told)
        self.assertIn("tokenize --undo", told)
        for few in (tokens * 20 + text * 10, ["a b . "] * 10, [*tokens * 12, "a"] * 3):
            self.assertIn("warning", warnings(few))
            self.assertIn("warning", warnings(few, "--json", "--tokenizer", "intl"))
            for fit in (["--tokenizer", "none"], ["--style", "multi-bleu"]):
                self.assertEqual(warnings(few, *fit), "")
            self.assertEqual(warnings(few, metric="chrf"), "")
        for fit in (text * 200, tokens * 9, tokens * 20 + text * 30, ["a b ?"] * 200):
            self.assertEqual(warnings(fit), "")


class Signals(unittest.TestCase):
    def start(self, *arguments, before=(), **options):
        process = subprocess.Popen(
            [*before, support.PROGRAM, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options,
        )
        self.addCleanup(process.kill)
        return process

    def test_filters_leave_with_128_and_the_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("translate", "--model", support.model(),
                                 "--buffer-lines", "1")
            process.stdin.write(b"1\n")
            process.stdin.flush()
            process.stdout.readline()
            process.send_signal(number)
            process.communicate(timeout=support.TIMEOUT)
            self.assertEqual(process.returncode, 128 + number)

    def test_signals_that_are_ignored_at_the_start_stay_ignored(self):
        """As nohup has it, and a shell without job control for its jobs in the background."""
        numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1

        def ignore():
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)

        def still_runs(process):
            for number in numbers:
                process.send_signal(number)
            time.sleep(0.2)
            return process.poll() is None

        for arguments in (["tokenize", "--language", "en"],
                          ["translate", "--model", support.model(), "--buffer-lines", "1"]):
            process = self.start(*arguments, preexec_fn=ignore)
            self.assertTrue(still_runs(process), arguments)
            process.communicate(b"2\n", timeout=support.TIMEOUT)
            self.assertEqual(process.returncode, 0)
        process = self.start(
            "train", support.config(), "--output", support.scratch() / "ignoring",
            "--set", "training.max_updates=100000",
            "--set", "training.validate_every=1000000", preexec_fn=ignore)
        for line in process.stderr:
            if re.search(rb"\bupdate\b|\bupd", line):
                break
        self.assertTrue(still_runs(process))
        process.kill()

    def test_what_ends_in_the_middle_of_a_file_deletes_it(self):
        folder = support.copy_model("ended")
        model = folder / "model.safetensors"
        before = model.read_bytes()
        quantized = support.scratch() / "quantized"
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
                       signal.SIGXCPU):
            with self.subTest(signal=number):
                process = self.start(
                    "quantize", "--model", folder, "--output", quantized,
                    before=support.slow_disk("model.safetensors.new.tmp-", 60))
                while not list(quantized.glob("*.tmp-*")):
                    self.assertIsNone(process.poll(), "it ended by itself")
                    time.sleep(0.01)
                process.send_signal(number)
                process.communicate(timeout=support.TIMEOUT)
                self.assertEqual(process.returncode, 128 + number)
                self.assertEqual(list(quantized.iterdir()), [])
                self.assertEqual(model.read_bytes(), before)

    def interrupted_training(self, folder, numbers, updates):
        process = self.start(
            "train", support.config(), "--output", folder,
            "--set", f"training.max_updates={updates}",
            "--set", "training.validate_every=1000000",
        )
        for line in process.stderr:  # the first update has been made
            if re.search(rb"\bupdate\b|\bupd", line):
                break
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.002)
        _, rest = process.communicate(timeout=support.TIMEOUT)
        return process.returncode, rest.decode()

    def test_training_saves_leaves_and_resumes(self):
        # A closed terminal and a batch system send two; users press twice.
        for number, *others in (
            (signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGHUP),
            (signal.SIGHUP, signal.SIGHUP), (signal.SIGUSR1, signal.SIGTERM),
        ):
            with self.subTest(signal=number):
                folder = support.scratch() / f"signal{number}"
                code, message = self.interrupted_training(
                    folder, [number, *others], 100000
                )
                # Of two that wait together the system delivers either first.
                self.assertIn(code - 128, (number, *others), message)
                before = {
                    p.name for p in (folder / "training").rglob("*.safetensors")
                }
                self.assertTrue(before)
                result = run(
                    "train", support.config(), "--output", folder, "--resume",
                    "--set", "training.max_updates=100000", 
                    "--set", "training.validate_every=1000000",
                    "--dry-run",
                )
                self.assertEqual(result.code, 0, result.message)


    def test_a_killed_run_goes_on_or_begins_again(self):
        folder = support.scratch() / "killed"
        command = ["train", support.config(), "--output", folder,
                   "--set", "training.validate_every=1",
                   "--set", "training.save_every=1000000"]
        process = self.start(*command, "--set", "training.max_updates=1000000")
        while not (folder / "model.safetensors").exists():
            self.assertIsNone(process.poll(), "it ended by itself")
            time.sleep(0.01)
        for resume in ([], ["--resume"]):
            result = run(*command, *resume)
            self.assertIn(result.code, (1, 2))
        self.assertIn(f"process {process.pid} is training in it", result.message)
        process.kill()
        process.communicate(timeout=support.TIMEOUT)
        codes = [run(*command, *resume).code for resume in ([], ["--resume"])]
        self.assertIn(0, codes)


class Train(unittest.TestCase):
    def test_a_resumed_run_continues_to_the_end(self):
        folder = support.scratch() / "resumed"
        self.assertEqual(
            run("train", support.config(), "--output", folder).code, 0
        )
        result = run("train", support.config(), "--output", folder, "--resume",
                     "--set", "training.max_updates=6")
        self.assertEqual(result.code, 0, result.message)
        straight = support.scratch() / "straight"
        self.assertEqual(
            run("train", support.config(), "--output", straight,
                "--set", "training.max_updates=6").code, 0
        )
        self.assertEqual(
            *((m / "model.safetensors").read_bytes() for m in (folder, straight))
        )

    def test_a_dry_run_leaves_no_model(self):
        folder = support.scratch() / "dry"
        result = run("train", support.config(), "--output", folder, "--dry-run")
        self.assertEqual(result.code, 0, result.message)
        self.assertFalse((folder / "model.safetensors").exists())
        self.assertIn("parameters", result.message)
        self.assertRegex(result.message, r"speed, by \d+ updates of a scratch model: \d+ target "
                         r"tokens/s, [\d.]+ updates a minute\n")
        self.assertRegex(result.message, r"the run will have about \d+ updates, [\d.]+ epochs, and "
                         r"take \d:\d\d; \d+ updates \(\d+ %\) are warm-up\n")

    def test_a_dry_run_may_name_the_folder_of_a_run(self):
        folder = support.copy_model("dry-run-there")
        before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        result = run("train", support.config(), "--output", folder, "--dry-run")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("warning: without --dry-run this would be refused: the output folder '",
                      result.message)
        self.assertIn("go on with --resume, or choose another folder", result.message)
        self.assertEqual({p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}, before)

    def test_standard_output_stays_empty(self):
        folder = support.scratch() / "streams"
        result = run("train", support.config(), "--output", folder)
        self.assertEqual((result.code, result.out), (0, b""))

    def test_fine_tuning_starts_from_the_other_model(self):
        folder = support.scratch() / "tuned"
        result = run("train", support.config(), "--output", folder,
                     "--init-from", support.model())
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual(
            run("translate", "--model", folder, stdin="1\n").code, 0
        )


class LanguageModels(unittest.TestCase):
    def measure(self, text, *flags):
        base = ["perplexity", "--model", support.language_model(), *flags]
        plain = run(*base, stdin=text)
        self.assertEqual((plain.code, plain.err), (0, b""), plain.message)
        table = run(*base, "--format", "json", stdin=text)
        self.assertEqual((table.code, table.err), (0, b""), table.message)
        self.assertEqual(len(table.lines), 1)
        return plain.lines, json.loads(table.lines[0])

    def generate(self, *flags):
        result = run("generate", "--model", support.language_model(), *flags)
        self.assertEqual(result.code, 0, result.message)
        return result

    def test_perplexity_in_text_and_json_is_the_same(self):
        lines, cost = self.measure("fünf eins\nzwei\n")
        self.assertEqual(len(lines), len(cost))
        for line, (key, value) in zip(lines, cost.items()):
            name, number = line.split(": ")
            self.assertEqual(name, key)
            self.assertAlmostEqual(float(number), value, delta=1e-5 * value)

    def test_perplexities_are_of_the_same_bits(self):
        _, cost = self.measure("fünf eins\nzwei\n")
        counts = {"token": 15, "word": 5, "character": 15, "byte": 16}
        for unit, count in counts.items():
            self.assertEqual(cost[f"{unit}s"], count)
            self.assertAlmostEqual(cost[f"bits_per_{unit}"] * count,
                                   cost["bits"], places=6)
        for unit in ("token", "word"):
            wanted = 2 ** (cost["bits"] / counts[unit])
            self.assertAlmostEqual(cost[f"perplexity_per_{unit}"], wanted,
                                   delta=1e-9 * wanted)
        self.assertEqual(cost["unknown_tokens"], 0)

    def test_blocks_and_windows_matter_and_batches_do_not(self):
        text = (support.data() / "valid.tgt").read_bytes()
        bits = {
            flags: self.measure(text, *flags)[1]["bits"]
            for flags in ((), ("--block", "32"), ("--batch-tokens", "1"),
                          ("--block", "7"), ("--context-window", "16"))
        }
        whole = bits.pop(())
        for flags in (("--block", "32"), ("--batch-tokens", "1")):
            self.assertAlmostEqual(bits.pop(flags), whole, delta=1e-5 * whole)
        self.assertEqual(len({round(b, 2) for b in (whole, *bits.values())}), 3)

    def test_a_text_is_a_function_of_the_seed(self):
        flags = ["--prompt", "eins", "--length", "40", "--seed"]
        one = self.generate(*flags, "1")
        self.assertEqual(one.out, self.generate(*flags, "1").out)
        self.assertNotEqual(one.out, self.generate(*flags, "2").out)
        self.assertTrue(one.out.startswith("eins".encode()))
        self.assertTrue(one.out.endswith(b"\n"))

    def test_the_text_alone_is_on_standard_output(self):
        flags = ["--prompt", "fünf", "--length", "30"]
        plain = self.generate(*flags)
        self.assertEqual(plain.err, b"")
        stats = self.generate(*flags, "--stats")
        self.assertEqual(stats.out, plain.out)
        self.assertRegex(stats.message, r"read 4 tokens .*generated 30 in")
        self.assertRegex(stats.message, r"tokens/s, \d+\.\d+ bits a token \(runtime, float32\)")

    def test_a_prompt_may_lie_in_a_file(self):
        prompt = support.scratch() / "prompt"
        prompt.write_text("eins zwei\ndrei", encoding="utf-8")
        flags = ["--temperature", "0", "--length", "12"]
        self.assertEqual(
            self.generate(*flags, "--prompt-file", prompt).out,
            self.generate(*flags, "--prompt", "eins zwei\ndrei").out)
        prompt.write_text("\ufeffeins zwei\ndrei", encoding="utf-8")
        self.assertEqual(
            self.generate(*flags, "--prompt-file", prompt).out,
            self.generate(*flags, "--prompt", "eins zwei\ndrei").out)

    def test_the_most_probable_text_needs_no_seed(self):
        flags = ["--length", "30", "--seed"]
        for greedy in (["--temperature", "0"], ["--top-k", "1"],
                       ["--top-p", "1e-9"]):
            with self.subTest(greedy=greedy):
                self.assertEqual(self.generate(*greedy, *flags, "1").out,
                                 self.generate(*greedy, *flags, "2").out)

    def test_info_names_the_task(self):
        result = run("info", support.language_model())
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("language_model", result.out.decode())

    def test_checkpoints_average(self):
        checkpoints = sorted(
            (support.language_model() / "training/checkpoints").glob("*"))
        self.assertGreaterEqual(len(checkpoints), 2)
        folder = support.copy_model("language-average",
                                    of=support.language_model())
        averaged = support.scratch() / "language-average.safetensors"
        result = run("average", "--output", averaged, *checkpoints)
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual(
            run("perplexity", "--model", averaged, stdin="eins\n").code, 0)

    def test_resuming_gives_the_same_model(self):
        straight, pieces = (support.scratch() / f"language-{name}"
                            for name in ("straight", "pieces"))
        train = ["train", support.language_config(), "--output"]
        more = ["--set", "training.max_updates=6"]
        for arguments in ([straight, *more], [pieces],
                          [pieces, *more, "--resume"]):
            result = run(*train, *arguments)
            self.assertEqual((result.code, result.out), (0, b""), result.message)
        self.assertEqual(
            *((m / "model.safetensors").read_bytes() for m in (straight, pieces)))


CONFIGURATION_OF_WORDS = """
[data]
train_source = "text"
train_target = "text"
valid_source = "text"
valid_target = "text"
[text]
subword = "none"
[model]
dim = 32
ffn_dim = 32
[model.encoder]
layers = 1
kernel_sizes = [3]
heads = 4
[model.decoder]
layers = 1
kernel_sizes = [3]
heads = 4
[training]
max_updates = 1
"""


def model_of_words():
    """One of 8,000 words, with the weights of one update."""
    folder = support.scratch() / "words"
    folder.mkdir()
    words = [f"w{i}" for i in range(8000)]
    (folder / "text").write_text("".join(
        " ".join(words[i:i + 10]) + "\n" for i in range(0, len(words), 10)))
    (folder / "words.toml").write_text(CONFIGURATION_OF_WORDS)
    result = run("train", "words.toml", "--output", "model", cwd=folder)
    assert result.code == 0, result.message
    return folder / "model", words


class Memory(unittest.TestCase):
    def peak(self, model, lines):
        """Kilobytes of a call that holds all lines at a time."""
        command = [support.PROGRAM, "translate", "--model", model, "--beam", "5",
                   "--threads", "2", "--max-length-a", "0", "--max-length-b", "4",
                   "--buffer-lines", str(len(lines))]
        with tempfile.TemporaryFile("w+") as text:
            text.writelines(lines)
            text.seek(0)
            return peak_kilobytes(command, text)

    def test_of_a_call_does_not_grow_with_its_lines(self):
        model, words = model_of_words()
        draw = random.Random(1)
        lines = [" ".join(draw.choices(words, k=draw.randrange(5, 40))) + "\n"
                 for _ in range(4000)]
        few, many = self.peak(model, lines[:1000]), self.peak(model, lines)
        self.assertLess(many, 1.4 * few)


if __name__ == "__main__":
    unittest.main(verbosity=2)
