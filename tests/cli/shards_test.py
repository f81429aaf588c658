"""Translating by several processes, each a part of the input: seqconv translate --shard I/N."""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from support import run

GOOD = "".join(f"{i % 10} {i * 7 % 10} {i * 3 % 10}\n" for i in range(40))
OBJECTS = "".join(
    json.dumps({"text": str(i % 10)} if i % 6 else {"txt": i}) + "\n" for i in range(40))


def written(name, text):
    path = support.scratch() / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def arguments(source, *flags, model=None):
    for standard, value in ("--threads", "1"), ("--max-length-b", "6"), ("--beam", "2"):
        if standard not in flags and not (standard == "--beam" and "--sample" in flags):
            flags = (*flags, standard, value)
    return ["translate", "--model", model or support.model(), "--input", source, *flags]


class Shards(unittest.TestCase):
    def setUp(self):
        self.output = support.scratch() / f"{self.id().rsplit('.', 1)[1]}.out"
        self.folder = pathlib.Path(f"{self.output}.parts")

    def shard(self, part, source, *flags, **options):
        return run(*arguments(source, "--output", self.output, "--shard", part, *flags), **options)

    def succeed(self, result):
        self.assertEqual(result.code, 0, result.message)
        return result

    def refuse(self, result, *wanted, code=1):
        self.assertEqual(result.code, code, result.message)
        self.assertEqual(result.message.count("error: "), 1, result.message)
        for words in wanted:
            self.assertIn(words, result.message)

    def start(self, part, source, *flags):
        command = [support.PROGRAM, *arguments(
            source, "--output", self.output, "--shard", part, "--buffer-lines", "20", *flags)]
        process = subprocess.Popen(list(map(os.fspath, command)), stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def begin(self, part, source, *flags):
        """Starts a shard and suspends it in the middle."""
        record = self.folder / f"{part.split('/')[0]}.json"
        for _ in range(10):  # on a busy machine we may come too late
            process = self.start(part, source, *flags)
            while process.poll() is None and not record.exists():
                time.sleep(0.001)
            process.send_signal(signal.SIGSTOP)
            if record.exists() and not json.loads(record.read_text())["done"]:
                return process
            process.kill()
            process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
            self.output.unlink(missing_ok=True)
        self.fail("it was never found in the middle")

    def interrupt(self, part, source, *flags):
        process = self.begin(part, source, *flags)
        process.kill()
        process.wait()


class Joining(Shards):
    """The parts together are what one process writes, whoever is done last."""

    def assert_same(self, source, count, *flags, code=0):
        self.output.unlink(missing_ok=True)
        one = run(*arguments(source, *flags))
        self.assertEqual(one.code, code, one.message)
        for part in [*range(2, count + 1), 1]:
            self.assertFalse(self.output.exists())
            last = self.shard(f"{part}/{count}", source, *flags)
            self.assertEqual(last.code, code if part == 1 else 0, last.message)
        self.assertEqual(self.output.read_bytes(), one.out)
        self.assertFalse(self.folder.exists())
        return one, last

    def test_is_what_one_process_writes(self):
        source = written("good.src", GOOD)
        for flags in (), ("--n-best", "2"), ("--format", "json"), ("--sample", "--n-best", "2"):
            for count in 1, 3:
                with self.subTest(flags=flags, count=count):
                    self.assert_same(source, count, *flags)

    def test_of_lines_that_fail_the_last_process_tells_as_one_process_does(self):
        source = written("objects.src", OBJECTS)
        for flags in ("--json-input",), ("--json-input", "--format", "json"):
            one, last = self.assert_same(source, 3, *flags, code=1)
            self.assertIn("7 of 40 lines failed (1, 7, 13, 19, 25, 31, 37)", one.message)
            self.assertEqual(one.message.splitlines()[-1], last.message.splitlines()[-1])

    def test_summaries_have_parts_too(self):
        source = written("good.src", GOOD)
        flags = ["summarise", "--model", support.model(), "--input", source,
                 "--input-format", "text", "--format", "json"]
        for part in "1/2", "2/2":
            self.succeed(run(*flags, "--output", self.output, "--shard", part))
        self.assertEqual(self.output.read_bytes(), run(*flags).out)

    def test_lines_and_files_of_any_kind(self):
        for name, text, count in (
            ("empty", "", 1), ("empty", "", 3), ("a line", "1\n", 3), ("no end", "1 2\n3 4", 2),
            ("no lines", "\n\n\n\n", 3), ("fewer lines", "1\n2\n", 5), ("CRLF", "1 2\r\n3\r\n", 2),
            ("a mark", b"\xef\xbb\xbf1\n\xef\xbb\xbf2\n", 2), ("bad bytes", b"1\n\xff\n\x00\n2", 3),
            ("a long line", "1\n" + "2 " * 4000 + "\n3\n", 4),
        ):
            with self.subTest(name, count=count):
                one, last = self.assert_same(written("kind.src", text), count)
                told = [[line for line in result.message.splitlines() if "bytes" in line]
                        for result in (one, last)]
                self.assertEqual(*told)

    def test_processes_of_a_starter_find_their_parts_themselves(self):
        source = written("good.src", GOOD)
        for rank in "0", "1":
            result = self.succeed(run(
                *arguments(source, "--output", self.output),
                env={**os.environ, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": rank}))
        self.assertEqual(self.output.read_bytes(), run(*arguments(source)).out)
        self.assertIn("part 1 of 2 is done, 1 is missing", self.succeed(self.run_first()).message)

    def run_first(self):
        self.output.unlink()
        return run(*arguments(written("good.src", GOOD), "--output", self.output),
                   env={**os.environ, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"})

    def test_joining_that_was_cut_off_is_done_again_by_any_part(self):
        source = written("good.src", GOOD)
        for part in "1/3", "2/3":
            self.succeed(self.shard(part, source))
        # The last one cannot write the output: another file has come.
        shutil.copytree(self.folder, saved := support.scratch() / "saved.parts")
        self.succeed(self.shard("3/3", source))
        wanted = self.output.read_bytes()
        shutil.copytree(saved, self.folder)
        self.output.write_bytes(b"something else")
        self.refuse(self.shard("3/3", source), "all parts are done, but", "has come meanwhile")
        self.assertEqual(self.output.read_bytes(), b"something else")
        self.output.unlink()
        self.succeed(self.shard("1/3", source))
        self.assertEqual(self.output.read_bytes(), wanted)
        self.assertFalse(self.folder.exists())


class FoldersOfOthers(Shards):
    """Only what the program has made is removed, and nothing is written elsewhere."""

    def tree(self, folder):
        return {path.relative_to(folder): path.is_file() and path.read_bytes()
                for path in folder.rglob("*")}

    def assert_refused_and_left(self, *words, part=None):
        source = written("good.src", GOOD)
        before = self.tree(self.folder)
        flags = ("--shard", part) if part else ()
        self.refuse(run(*arguments(source, "--output", self.output, *flags)),
                    f"'{self.folder}'", "choose another --output", *words)
        self.assertEqual(self.tree(self.folder), before)
        self.assertFalse(self.output.exists())

    def test_a_folder_that_holds_anything_else_is_refused(self):
        for name in ("aa", "notes.txt", "1.out", "1.json", "job.json.backup", "1.txt", "01.lock",
                     "1.lock/deeper", "more/1.out", "job.json.tmp", "100000.lock"):
            for part in None, "2/2":
                with self.subTest(name, part=part):
                    (self.folder / name).parent.mkdir(parents=True)
                    (self.folder / name).write_text("mine\n")
                    self.assert_refused_and_left(name.split("/")[0], part=part)
                    shutil.rmtree(self.folder)

    def test_a_job_of_another_program_is_not_to_be_deleted(self):
        self.folder.mkdir()
        (self.folder / "job.json").write_text('{"parts": 1}')
        (self.folder / "aa").write_text("mine\n")
        self.assert_refused_and_left("'aa' in the folder is no file of this job")

    def test_a_link_is_not_followed(self):
        for target in support.scratch() / "elsewhere", support.scratch() / "nowhere":
            with self.subTest(target.name):
                if target.name == "elsewhere":
                    target.mkdir()
                self.folder.symlink_to(target)
                self.assert_refused_and_left("symbolic link")
                self.folder.unlink()
                self.assertEqual(target.exists() and list(target.iterdir()), target.exists() and [])

    def test_what_is_no_ordinary_file_of_the_job_is_named_and_left(self):
        source = written("good.src", GOOD)
        elsewhere = written("elsewhere.txt", "mine\n")
        kinds = (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir(),
                 lambda path: path.symlink_to(elsewhere), lambda path: path.symlink_to("nothing"))
        for name in "job.json", "1.json", "1.out", "1.lock", "2.json", "2.out", "2.lock", "join.lock":
            for number, make in enumerate(kinds):
                with self.subTest(name, kind=number):
                    self.succeed(self.shard("1/2", source))
                    (self.folder / name).unlink(missing_ok=True)
                    make(self.folder / name)
                    self.refuse(self.shard("2/2", source), f"'{name}'", "move it away")
                    self.assertFalse(self.output.exists())
                    self.assertEqual(elsewhere.read_text(), "mine\n")
                    shutil.rmtree(self.folder)

    def test_records_that_are_none_count_as_missing(self):
        source = written("good.src", GOOD)
        wanted = run(*arguments(source)).out
        for content in b"", b"\0" * 99, b"[" * 100_000, None:
            with self.subTest(content=content and content[:3]):
                self.succeed(self.shard("1/2", source))
                record = self.folder / "1.json"
                if content is None:
                    os.truncate(record, 2**40)  # a hole
                else:
                    record.write_bytes(content)
                self.assertIn("1 is missing", self.succeed(self.shard("2/2", source)).message)
                result = self.succeed(self.shard("1/2", source))
                self.assertIn("must be translated anew", result.message)
                self.assertEqual(self.output.read_bytes(), wanted)
                self.output.unlink()

    def test_a_file_in_the_folders_place_stays(self):
        self.folder.write_text("mine")
        result = run(*arguments(written("good.src", GOOD), "--output", self.output))
        self.refuse(result, f"cannot create the folder '{self.folder}'")
        self.assertEqual(self.folder.read_text(), "mine")

    def test_a_file_that_came_meanwhile_stays_and_is_named(self):
        source = written("good.src", GOOD)
        self.succeed(self.shard("1/2", source))
        names = "notes.txt", "3.out", "job.json.copy"
        for name in names:
            (self.folder / name).write_text("mine")
        (self.folder / "2.out").mkdir()  # where a part should come
        self.refuse(self.shard("2/2", source), "2.out")
        (self.folder / "2.out").rmdir()
        result = self.succeed(self.shard("2/2", source))
        self.assertIn(f"the folder '{self.folder}' stays: '3.out' in it is no file of this job",
                      result.message)
        self.assertEqual(self.output.read_bytes(), run(*arguments(source)).out)
        self.assertEqual(sorted(self.tree(self.folder)), sorted(map(pathlib.Path, names)))
        self.output.unlink()
        self.assert_refused_and_left("'3.out'")

    def test_cleaning_up_that_was_cut_off_is_done_again(self):
        source = written("good.src", GOOD)
        wanted = run(*arguments(source)).out
        self.succeed(self.shard("1/2", source))
        for left in (["1.json", "1.out", "1.lock", "join.lock"], ["1.out", "1.lock"], ["join.lock"],
                     ["3.lock"]):
            with self.subTest(left):
                self.succeed(self.shard("1/2", source))
                (self.folder / "3.lock").touch()
                for path in self.folder.iterdir():
                    if path.name not in left:
                        path.unlink()
                for part in "1/2", "2/2":
                    self.succeed(self.shard(part, source))
                self.assertEqual(self.output.read_bytes(), wanted)
                self.assertEqual(self.folder.exists(), left == ["3.lock"])
                self.output.unlink()
        shutil.rmtree(self.folder)

    def test_outputs_that_are_no_new_files_are_refused(self):
        source = written("good.src", GOOD)
        os.mkfifo(fifo := support.scratch() / "fifo.out")
        model = support.copy_model("translated-into")
        before = self.tree(model)
        for output, words in (
            (fifo, "is a device or a pipe"), ("/dev/null", "is a device or a pipe"),
            (support.scratch(), "is a folder"), (model / "config.json", "a file of the folder that --model reads"),
            (model / "new.safetensors", "the name of a part of the model"),
            (model / "training" / "out", "among the files of a training"),
        ):
            with self.subTest(output):
                self.refuse(run(*arguments(source, "--output", output, model=model)), words)
        self.assertEqual(self.tree(model), before)

    def test_a_link_as_output_stays_one(self):
        source = written("good.src", GOOD)
        self.output.symlink_to(target := support.scratch() / "behind.out")
        self.succeed(run(*arguments(source, "--output", self.output)))
        self.assertTrue(self.output.is_symlink())
        self.assertEqual(target.read_bytes(), run(*arguments(source)).out)
        target.unlink()
        self.output.unlink()


class GoingOn(Shards):
    """After an end of any kind, behind the last result that was recorded."""

    LONG = GOOD * 150

    def test_a_killed_process_goes_on(self):
        source = written("long.src", self.LONG)
        for flags in ("--n-best", "2"), ("--format", "json"):
            wanted = run(*arguments(source, *flags)).out
            self.interrupt("2/2", source, *flags)
            self.succeed(self.shard("1/2", source, *flags))
            self.assertFalse(self.output.exists())
            # What came behind the record was cut off anywhere.
            with open(self.folder / "2.out", "ab") as part:
                part.write(b"9999\t-1.")
            result = self.succeed(self.shard("2/2", source, *flags))
            line = int(result.message.split("going on behind line ")[1].split()[0])
            self.assertGreater(line, 3000)
            self.assertEqual(self.output.read_bytes(), wanted)
            self.output.unlink()

    def test_a_record_counts_what_is_written_of_the_input_and_the_output(self):
        source = written("long.src", self.LONG)
        starts = [0, *(i + 1 for i, byte in enumerate(source.read_bytes()) if byte == 10)]
        # Several threads read ahead of what is written. The process stands
        # still while we look, however busy the machine is.
        process = self.begin("1/2", source, "--threads", "3", "--beam", "4")
        seen = {}
        while True:
            record = json.loads((self.folder / "1.json").read_text())
            seen[record["offset"]] = record
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGCONT)
            time.sleep(0.002)
            process.send_signal(signal.SIGSTOP)
        self.assertGreater(len(seen), 1)
        part = (self.folder / "1.out").read_bytes()
        for record in seen.values():
            self.assertEqual(starts[record["lines"]], record["offset"])
            self.assertEqual(part[:record["bytes"]].count(b"\n"), record["lines"])
            self.assertEqual(part[record["bytes"] - 1:record["bytes"]], b"\n")

    def test_what_was_found_before_counts(self):
        source = written("long-objects.src", b'{"text": "\xff"}\n' + (OBJECTS * 100).encode())
        one = run(*arguments(source, "--json-input"))
        self.interrupt("1/1", source, "--json-input")
        result = self.shard("1/1", source, "--json-input")
        self.assertEqual((result.code, self.output.read_bytes()), (1, one.out))
        told = result.message.splitlines()
        self.assertIn("going on behind line", told[0])
        self.assertEqual(one.message.splitlines(), told[1:])
        self.assertEqual(len(told), 4)
        self.assertIn("translations have as many tokens as they may", told[2])

    def test_what_changes_the_result_is_refused_by_name(self):
        source = written("changing.src", GOOD)
        self.succeed(self.shard("1/2", source))
        other = support.copy_model("other-model")
        config = other / "config.json"
        config.write_text(config.read_text() + "\n")
        written("changing.src", GOOD.replace("1", "2", 1))
        changed = self.shard("2/2", source)
        written("changing.src", GOOD)
        for result, key in (
            (changed, "input.checksum was "),
            (run(*arguments(source, "--output", self.output, "--shard", "2/3")),
             "parts was 2 and is 3"),
            (self.shard("2/2", source, "--n-best", "2"), "search.n_best was 1 and is 2"),
            (self.shard("2/2", source, "--format", "json"),
             "; go on as it was begun, or delete the folder"),
            (run(*arguments(source, "--output", self.output, "--shard", "2/2", model=other)),
             "models.0.config.json was "),
        ):
            self.refuse(result, "holds a job that was begun otherwise: ", key,
                        f"delete the folder '{self.folder}' to start over")
        # Neither does speed matter, nor where the files lie.
        self.succeed(run(*arguments(
            shutil.copy(source, support.scratch() / "copied.src"), "--output", self.output,
            "--shard", "2/2", "--batch-tokens", "64", "--buffer-lines", "3", "--stats", "--strict")))
        self.assertEqual(self.output.read_bytes(), run(*arguments(source)).out)

    def test_an_input_that_changes_meanwhile_is_noticed(self):
        source = written("meanwhile.src", self.LONG)
        process = self.begin("1/1", source)
        with open(source, "ab") as lines:
            lines.write(b"1\n")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(support.TIMEOUT), 1)
        self.assertIn(b"was changed while it was translated", process.stderr.read())
        self.assertFalse(self.output.exists())

    def test_a_torn_record_costs_its_part(self):
        source = written("good.src", GOOD)
        wanted = run(*arguments(source)).out
        for spoil in lambda data: data[:30], lambda data: data.replace(b'"bytes": ', b'"bytes": 1'):
            self.succeed(self.shard("1/2", source))
            record = self.folder / "1.json"
            record.write_bytes(spoil(record.read_bytes()))
            result = self.succeed(self.shard("2/2", source))
            self.assertIn("part 1 has no record that counts and must be translated anew",
                          result.message)
            self.assertFalse(self.output.exists())
            self.succeed(self.shard("1/2", source))
            self.assertEqual(self.output.read_bytes(), wanted)
            self.output.unlink()

    def test_parts_and_jobs_that_were_spoiled_are_refused(self):
        source = written("long.src", self.LONG)
        self.interrupt("1/2", source)
        (self.folder / "1.out").write_bytes(b"")
        self.refuse(self.shard("1/2", source), "bytes or more by its record, but has 0",
                    "delete the record, 1.json beside it")
        for content in b"", b"[]", b'{"parts": 2}':
            (self.folder / "job.json").write_bytes(content)
            self.refuse(self.shard("1/2", source), "delete the folder", "to start over")

    def test_a_part_of_another_job_is_not_taken_for_one(self):
        source = written("good.src", GOOD)
        self.succeed(self.shard("1/2", source))
        (self.folder / "job.json").unlink()
        flags = "--format", "json"
        result = self.succeed(self.shard("2/2", source, *flags))
        self.assertIn("1.json: it is of another job", result.message)
        self.succeed(self.shard("1/2", source, *flags))
        self.assertEqual(self.output.read_bytes(), run(*arguments(source, *flags)).out)

    def test_a_part_that_is_deleted_or_cut_is_noticed(self):
        source = written("long.src", self.LONG)
        process = self.begin("1/2", source)
        shutil.rmtree(self.folder)
        self.succeed(self.shard("1/2", source))
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(support.TIMEOUT), 1)
        self.assertIn(b"1.out' was deleted or replaced", process.stderr.read())
        with open(self.folder / "1.out", "ab") as part:
            part.write(b"x")
        self.refuse(self.shard("2/2", source), "1.out' should have", "delete the record, 1.json")
        (self.folder / "1.json").unlink()
        self.succeed(self.shard("1/2", source))
        self.assertEqual(self.output.read_bytes(), run(*arguments(source)).out)

    def test_a_full_disk_is_told_and_goes_on_when_there_is_room(self):
        source = written("long.src", self.LONG)
        result = self.shard("1/1", source, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY)))
        self.refuse(result, "cannot write '", "1.out", "File too large", "the same command goes on")
        result = self.succeed(self.shard("1/1", source))
        self.assertIn("going on behind line", result.message)
        self.assertEqual(self.output.read_bytes(), run(*arguments(source)).out)


class Refusals(Shards):
    def test_values_of_shard(self):
        source = written("good.src", GOOD)
        for value in ("0/3", "4/3", "x", "1/0", "1", "1/", "/2", "1/2/3", "-1/2", "1/2 ", "1.0/2",
                      "1/100000", "1/99999999999999999999"):
            with self.subTest(value):
                self.refuse(run(*arguments(source, "--output", self.output, f"--shard={value}")),
                            "--shard must be I/N with 1 <= I <= N", f"'{value}'", code=2)
        self.refuse(self.shard("", source), "but got ''", code=2)
        self.assertFalse(self.folder.exists())

    def test_files_that_do_not_fit(self):
        source = written("good.src", GOOD)
        there = written("there.out", "old")
        for name, flags, code, words in (
            ("no input", ["--output", self.output, "--shard", "1/2"], 2,
             "--shard 1/2 needs --input FILE and --output FILE"),
            ("no output", ["--input", source, "--shard", "1/2"], 2,
             "--shard 1/2 needs --input FILE and --output FILE"),
            ("a stream", ["--output", self.output], 2, "--output needs --input FILE"),
            ("no name", ["--input", source, "--output", ""], 2, "--output must have a value"),
            ("a missing input", ["--input", "nowhere", "--output", self.output], 1,
             "'nowhere' is not there"),
            ("a device", ["--input", "/dev/null", "--output", self.output], 1, "is none"),
            ("ids", ["--input", written("a.bin", ""), "--output", self.output], 2,
             "is binarised data by its name"),
            ("an old output", ["--input", source, "--output", there], 1, "is there already"),
            ("a missing folder", ["--input", source, "--output", "nowhere/out"], 1,
             "cannot create the folder"),
        ):
            with self.subTest(name):
                self.refuse(run("translate", "--model", support.model(), *flags), words, code=code)
        self.assertEqual(there.read_text(), "old")

    def test_the_same_part_twice_at_a_time(self):
        source = written("long.src", GoingOn.LONG)
        process = self.begin("1/2", source)
        self.refuse(self.shard("1/2", source),
                    f"process {process.pid} is translating part 1 of 2 in it")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(support.TIMEOUT), 0)
        self.succeed(self.shard("2/2", source))
        self.assertEqual(self.output.read_bytes(), run(*arguments(source)).out)

    def test_several_processes_without_files_of_their_own(self):
        several = {**os.environ, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}
        flags = ["translate", "--model", support.model()]
        self.refuse(run(*flags, stdin="1\n", env=several), "srun has started 2 processes",
                    "--input FILE and --output FILE", "--shard 1/1", code=2)
        self.succeed(run(*flags, "--shard", "1/1", stdin="1\n", env=several))


if __name__ == "__main__":
    unittest.main()
