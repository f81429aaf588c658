"""Training runs from outside: started twice, stopped, killed, begun from another model."""

import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
sys.path.insert(0, os.fspath(pathlib.Path(__file__).parents[2] / "tools"))
import check_crashes
import support
from support import run


def repeated(name, suffix, times):
    """A file of the data, its lines so many times."""
    path = support.scratch() / f"{times}-{name}.{suffix}"
    path.write_text((support.data() / f"{name}.{suffix}").read_text() * times)
    return path


def kinds(folder):
    lines = (folder / "training" / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["kind"] for line in lines]


def fields(data):
    """The fields of a message of protocol buffers: numbers and contents."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
            continue
        size = {1: 8, 5: 4}.get(tag & 7) or number()
        yield tag >> 3, data[at:at + size]
        at += size


def curves(folder):
    """The curves that TensorBoard shows: steps and numbers by name."""
    shown = {}
    for file in sorted((folder / "training" / "tensorboard").glob("*tfevents*")):
        data = file.read_bytes()
        while len(data) >= 12:
            size = struct.unpack("<Q", data[:8])[0]
            event = dict(fields(data[12:12 + size]))
            data = data[16 + size:]
            step = event.get(2, 0)
            if 7 in event:  # a session starts
                shown = {name: [point for point in points if point[0] < step]
                         for name, points in shown.items()}
            for _, value in fields(event.get(5, b"")):
                value = dict(fields(value))
                shown.setdefault(value[1].decode(), []).append(
                    (step, struct.unpack("<f", value[2])[0]))
    return shown


class Crashes(unittest.TestCase):
    """A few of those that `tools/check_long.sh crashes` makes."""

    def test_what_is_killed_or_finds_the_disk_full_comes_to_the_same_end(self):
        cases = check_crashes.make_cases(support)
        for name, times in ("quantize", 4), ("translate", 2), ("average", 1):
            scratch = support.scratch() / f"crashes-{name}"
            scratch.mkdir()
            cases[name].check(scratch, times, random.Random(4))


class Runs(unittest.TestCase):
    def start(self, *arguments):
        process = subprocess.Popen(
            [os.fspath(support.PROGRAM), *map(os.fspath, arguments)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def test_of_two_started_at_once_exactly_one_trains(self):
        for number in range(3):
            folder = support.scratch() / f"twice{number}"
            both = [self.start("train", support.config(), "--output", folder) for _ in range(2)]
            messages = [process.communicate(timeout=support.TIMEOUT)[1] for process in both]
            codes = [process.returncode for process in both]
            self.assertEqual(sorted(codes)[0], 0, messages)
            self.assertIn(sorted(codes)[1], (1, 2), messages)
            refusal = messages[codes.index(max(codes))].decode()
            self.assertRegex(refusal, "is in use|already holds a model")
            self.assertEqual(kinds(folder), ["start", *["train"] * 4, "validation", "end"])
            self.assertEqual(run("translate", "--model", folder, stdin="1\n").code, 0)

    def test_minutes_plan_and_end_a_run(self):
        folder = support.scratch() / "minutes"
        command = ["train", support.config(), "--output", folder, "--minutes", "0.05",
                   "--set", "training.max_updates=0", "--set", "schedule.kind=linear",
                   "--set", "schedule.warmup_share=0.1",
                   "--set", f"data.valid_source={support.data() / 'train.src'}",
                   "--set", f"data.valid_target={support.data() / 'train.tgt'}"]
        result = run(*command)
        self.assertEqual(result.code, 0, result.message)
        self.assertRegex(result.message, r"warning: (\d+) of \1 samples of data\.valid_source and")
        self.assertRegex(result.message, r"the run is planned to have \d+ updates, \d+ of them warm-up")
        self.assertRegex(result.message, r"training ends at training\.max_minutes: \d+ updates in 0:0[0-3]\n")
        self.assertEqual(run("translate", "--model", folder, stdin="1\n").code, 0)
        result = run(*command, "--resume")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("nothing to do: the run has already ended at training.max_minutes", result.message)

    def test_a_signal_during_validation_saves(self):
        folder = support.scratch() / "validating"
        command = ["train", support.config(), "--output", folder,
                   "--set", f"data.valid_source={repeated('valid', 'src', 1000)}",
                   "--set", f"data.valid_target={repeated('valid', 'tgt', 1000)}",
                   "--set", "training.validate_every=2"]
        process = self.start(*command)
        for line in process.stderr:
            if b"update 2 " in line:
                break
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=support.TIMEOUT)
        self.assertEqual(process.returncode, 143, rest)
        self.assertIn(b"after update 2; the state is saved", rest)
        self.assertIn(b"model.safetensors has the parameters of this update", rest)
        self.assertNotIn(b"error:", rest)
        self.assertEqual(kinds(folder), ["start", "train", "train", "end"])
        result = run(*command, "--resume", "--set", "training.max_updates=2")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("validation  epoch 1  update 2", result.message)

    def test_a_second_signal_leaves_the_validation_of_a_stop(self):
        folder = support.scratch() / "twice-signalled"
        process = self.start(
            "train", support.config(), "--output", folder,
            "--set", f"data.valid_source={repeated('valid', 'src', 9000)}",
            "--set", f"data.valid_target={repeated('valid', 'tgt', 9000)}",
            "--set", "training.validate_every=1000000", "--set", "training.max_updates=1000000")
        for line in process.stderr:
            if b"update 50 " in line:
                break
        process.send_signal(signal.SIGTERM)
        while not (folder / "model.safetensors").exists():
            self.assertIsNone(process.poll(), "it ended by itself")
            time.sleep(0.01)
        time.sleep(1.05)
        self.assertIsNone(process.poll(), "the validation was too short to be left")
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=support.TIMEOUT)
        self.assertEqual(process.returncode, -signal.SIGTERM, rest)
        self.assertTrue((folder / "training/state.safetensors").exists())
        self.assertEqual(run("translate", "--model", folder, stdin="1\n").code, 0)

    def test_verbs_open_the_checkpoint_that_is_wanted(self):
        for model, line, verbs in (
                (support.copy_model("chosen"), "1 2\n", {
                    "translate": [], "summarise": [],
                    "score": ["--source", support.data() / "valid.src",
                              "--target", support.data() / "valid.tgt"],
                    "inspect": ["--output", support.scratch() / "chosen.html"],
                    "quantize": ["--output", support.scratch() / "chosen-int8"]}),
                (support.copy_model("chosen-language", of=support.language_model()), "eins\n", {
                    "perplexity": [], "generate": ["--length", "3"]})):
            (model / "model.safetensors").rename(model / "model.last.safetensors")
            for verb, flags in verbs.items():
                with self.subTest(verb=verb):
                    command = [verb, "--model", model, *flags]
                    result = run(*command, "--checkpoint", "last", stdin=line)
                    self.assertEqual(result.code, 0, result.message)
                    self.assertRegex(result.message, r"checkpoint last: update \d+, model\.last")
                    self.assertEqual(run(*command, stdin=line).code, 1)
                    result = run(*command, "--checkpoint", "update-999", stdin=line)
                    self.assertEqual(result.code, 1)
                    self.assertRegex(
                        result.message, r"no parameters for --checkpoint update-999; it has: last "
                        r"\(model\.last\.safetensors, update \d+\), update-\d+")
                    result = run(*command, "--checkpoint", "newest", stdin=line)
                    self.assertEqual(result.code, 2)
                    self.assertIn("must be best, last or update-N", result.message)

    def test_one_killed_while_it_prepares_its_data_begins_again(self):
        folder = support.scratch() / "unprepared"
        command = ["train", support.config(), "--output", folder,
                   "--set", f"data.train_source={repeated('train', 'src', 1000)}",
                   "--set", f"data.train_target={repeated('train', 'tgt', 1000)}",
                   "--set", "training.max_updates=1"]
        process = self.start(*command)
        while not list(folder.glob("training/data/*.tmp-*")):
            self.assertIsNone(process.poll(), "it ended by itself")
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=support.TIMEOUT)
        self.assertTrue(list(folder.glob("training/data/*.tmp-*")))
        result = run(*command)
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual(list(folder.rglob("*.tmp-*")), [])

    def test_a_run_that_begins_again_or_repeats_a_validation_has_one_curve(self):
        folder = support.scratch() / "curves"
        metrics = folder / "training" / "metrics.jsonl"
        command = ["train", support.config(), "--output", folder,
                   "--set", "training.tensorboard=true", "--set", "training.log_every=1"]
        endless = ["--set", "training.max_updates=1000000", "--set", "training.validate_every=3"]

        def kill_when(process, kind, number):
            while not metrics.exists() or kinds(folder).count(kind) < number:
                self.assertIsNone(process.poll(), "it ended by itself")
                time.sleep(0.01)
            process.kill()
            process.communicate(timeout=support.TIMEOUT)

        # Nothing is saved: it begins again. Then it is killed behind a validation that the
        # state does not know of, and makes it again.
        kill_when(self.start(*command, *endless, "--set", "training.validate_every=1000000"),
                  "train", 5)
        slow = subprocess.Popen(
            [*support.slow_disk("/checkpoints/", 60), os.fspath(support.PROGRAM),
             *map(os.fspath, [*command, *endless])],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(slow.kill)
        kill_when(slow, "validation", 1)
        result = run(*command, "--resume", "--set", "training.validate_every=3",
                     "--set", "training.max_updates=5")
        self.assertEqual(result.code, 0, result.message)
        wanted = {}
        for record in map(json.loads, metrics.read_text().splitlines()):
            if record["kind"] in ("train", "validation"):
                wanted.setdefault(f"{record['kind']}/nll_base2", []).append(
                    (record["update"], struct.unpack("<f", struct.pack(
                        "<f", record["nll_base2"]))[0]))
        shown = curves(folder)
        self.assertEqual([step for step, _ in wanted["train/nll_base2"]], [1, 2, 3, 4, 5])
        self.assertEqual([step for step, _ in wanted["validation/nll_base2"]], [3, 5])
        self.assertEqual({name: shown[name] for name in wanted}, wanted)

    def test_a_model_begins_with_one_of_its_own_configuration(self):
        base = support.scratch() / "pieces"
        text = ["--set", "text.subword=sentencepiece", "--set", "text.subword_size=300",
                "--set", "text.sentencepiece_byte_fallback=true",
                "--set", 'text.sentencepiece_user_symbols=["<year>"]']
        result = run("train", support.config(), "--output", base, *text)
        self.assertEqual(result.code, 0, result.message)
        for number, configuration in enumerate((
                [support.config(), *text], [base / "training" / "config.toml"])):
            result = run("train", *configuration, "--init-from", base,
                         "--output", support.scratch() / f"of-pieces{number}")
            self.assertEqual(result.code, 0, result.message)
            self.assertIn("text.sentencepiece_user_symbols", result.message)

    def test_what_the_text_was_learned_with_stays_known_to_a_run_from_another_model(self):
        place = support.scratch() / "learned-with"
        small = place / "small.toml"
        place.mkdir()
        small.write_text(support.config().read_text().replace(
            'subword = "none"', 'subword = "bpe"\nsubword_size = 3'))
        words = place / "words.src"
        words.write_text("".join(
            line.replace(" ", "") + "\n" for line in
            (support.data() / "train.src").read_text().splitlines()))
        data = ["--set", f"data.train_source={words}"]

        def trained(name, configuration, *flags):
            result = run("train", configuration, "--output", place / name, *flags)
            self.assertEqual(result.code, 0, result.message)
            return (place / name / "training/config.toml").read_text()

        first = trained("first", small, *data)
        self.assertIn("subword_size = 3", first)
        second = trained("second", support.config(), *data, "--init-from", place / "first",
                         "--set", "text.subword=bpe")
        self.assertIn("subword_size = 3", second)
        trained("third", place / "second/training/config.toml")
        for side in ("bpe.codes", "dict.txt"):
            self.assertEqual((place / "first" / side).read_bytes(),
                             (place / "third" / side).read_bytes())
        # A model without its run does not say; then the configuration does.
        (place / "first/training/config.toml").unlink()
        self.assertEqual(trained("fourth", small, *data, "--init-from", place / "first"), first)
        # Going on changes nothing of it.
        self.assertEqual(trained("second", place / "second/training/config.toml", "--resume"),
                         second)

    def test_decoding_that_a_resumed_run_is_told_is_the_models(self):
        folder = support.copy_model("decoding-anew")
        config = json.loads((folder / "config.json").read_text())
        told = {"beam": 3, "length_penalty": 0.5, "max_length_b": 7}
        sets = [flag for key, value in told.items()
                for flag in ("--set", f"decoding.{key}={value}")]
        more = ["--resume", "--set", "training.max_updates=6"]
        result = run("train", support.config(), "--output", folder, *more, *sets)
        self.assertEqual(result.code, 0, result.message)
        self.assertNotEqual(config["decoding"]["beam"], 3)
        config["decoding"].update(told)
        self.assertEqual(json.loads((folder / "config.json").read_text()), config)
        before = (folder / "config.json").stat().st_ino
        self.assertEqual(run("train", folder / "training/config.toml", "--output", folder,
                             "--resume").code, 0)
        self.assertEqual((folder / "config.json").stat().st_ino, before)

    def test_checkpoints_of_another_run_stay(self):
        folder = support.copy_model("another-run")
        checkpoints = folder / "training/checkpoints"
        result = run("train", support.config(), "--output", folder, "--resume",
                     "--set", "training.save_every=1", "--set", "training.max_updates=7",
                     "--set", "training.keep_last=9")
        self.assertEqual(result.code, 0, result.message)
        others = {path.name: path.read_bytes() for path in checkpoints.iterdir()}
        records = (folder / "training/metrics.jsonl").read_bytes()
        (folder / "model.safetensors").unlink()
        (folder / "training/state.safetensors").unlink()
        result = run("train", support.config(), "--output", folder, "--set", "training.seed=2",
                     "--set", "training.save_every=3", "--set", "training.max_updates=11",
                     "--set", "training.keep_last=2")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("holds checkpoints of another run, which stay there", result.message)
        self.assertIn("update-00000006.other-1.safetensors' now", result.message)
        found = {path.name: path.read_bytes() for path in checkpoints.iterdir()}
        self.assertEqual(
            sorted(found),
            sorted({name.replace("06.", "06.other-1.") for name in others}
                   | {"update-00000009.safetensors", "update-00000011.safetensors"}))
        for name, content in others.items():
            self.assertEqual(found[name.replace("06.", "06.other-1.")], content)
        self.assertEqual((folder / "training/metrics.other-1.jsonl").read_bytes(), records)

    def test_a_log_that_lost_records_is_told_of(self):
        wanted = "4 of the 7 records that the run has written"
        folder = support.copy_model("lost-records")
        log = folder / "training" / "metrics.jsonl"
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:4]))
        result = run("train", support.config(), "--output", folder, "--resume",
                     "--set", "training.max_updates=5")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("warning: ", result.message)
        # The record of the end is not one of those that the state counts.
        self.assertRegex(result.message, wanted.replace("7", "[67]"))


if __name__ == "__main__":
    unittest.main()
