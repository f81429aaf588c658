"""Training by several processes under mpirun, beside one process that does it alone."""

import array
import functools
import json
import math
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from support import run

AT_ONCE = 3  # jobs of up to three processes each, which often wait

# Four batches an update, whoever takes them. The keys' biases have no gradient but
# rounding, of which Adam makes steps as long as the rate: so it is low.
SETTINGS = ["batching.max_tokens=60", "training.accumulate=4", "training.max_updates=20",
            "training.validate_every=8", "training.validate_bleu=true", "model.dropout=0.1",
            "schedule.learning_rate=2e-5", "schedule.warmup_start=1e-7"]


def training(output, *settings):
    """Arguments that train into a folder of the scratch folder."""
    arguments = ["train", support.config(), "--output", support.scratch() / output]
    for setting in (*SETTINGS, *settings):
        arguments += ["--set", setting]
    return list(map(os.fspath, arguments))


def mpirun(size, *options):
    return ["mpirun", "--oversubscribe", "--allow-run-as-root", *options, "-np", str(size)]


def together(size, *arguments, options=()):
    """Runs the program in so many processes."""
    command = [*mpirun(size, *options), os.fspath(support.PROGRAM), *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=support.TIMEOUT, check=False)
    return support.Result(done.returncode, done.stdout, done.stderr)


def read_state(output):
    """Metadata and tensors, as bytes, of a run's state."""
    data = (support.scratch() / output / "training" / "state.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    body = data[8 + size:]
    return metadata, {
        name: body[slice(*entry["data_offsets"])] for name, entry in header.items()}


def state(output):
    return read_state(output)[1]


def position(output):
    return json.loads(read_state(output)[0]["position"])


def floats(data):
    return array.array("f", data)


def ranks_of(folder):
    """The processes that train into the folder: their numbers by rank."""
    ranks = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.fspath(folder).encode() not in (process / "cmdline").read_bytes():
                continue
            for variable in (process / "environ").read_bytes().split(b"\0"):
                if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                    ranks[int(variable.split(b"=")[1])] = int(process.name)
        except OSError:
            pass
    return ranks


def records(output, kind):
    file = support.scratch() / output / "training" / "metrics.jsonl"
    lines = map(json.loads, file.read_text().splitlines())
    return [line for line in lines if line["kind"] == kind]


@support.once
def whole():
    """The name of a run of two processes without a break."""
    result = together(2, *training("whole"))
    if result.code != 0:
        raise AssertionError(result.message)
    return "whole", result.message


class Processes(unittest.TestCase):
    def succeed(self, result):
        self.assertEqual(result.code, 0, result.message)
        return result

    def assert_close(self, one, other):
        """Losses within 1e-6 of themselves, weights within 2e-5."""
        for kind in ("train", "validation"):
            wanted, got = records(one, kind), records(other, kind)
            self.assertEqual(len(wanted), len(got))
            for a, b in zip(wanted, got):
                self.assertEqual(a["target_tokens"], b["target_tokens"])
                self.assertEqual(a.get("bleu"), b.get("bleu"))
                for key in ("loss_base2", "nll_base2"):
                    self.assertLessEqual(abs(a[key] - b[key]), 1e-6 * a[key], (kind, a, b))
        wanted, got = (floats(state(name)["parameters"]) for name in (one, other))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(wanted, got, strict=True)), 2e-5)

    def test_the_first_updates_gradient_is_that_of_one_process(self):
        once = ["training.max_updates=1", "training.validate_bleu=false"]
        # The second model's gradients travel in several buckets.
        # The first of three takes two of an update's batches.
        for name, size, model in ("small", 3, []), (
                "large", 2, ["model.dim=128", "model.ffn_dim=3072"]):
            self.succeed(run(*training(name, *once, *model)))
            # What Adam's first moment is after one update.
            wanted = floats(state(name)["optimizer.first_moment"])
            norm = math.hypot(*wanted)
            self.assertGreater(norm, 0)
            self.succeed(together(size, *training(f"{name}{size}", *once, *model)))
            got = floats(state(f"{name}{size}")["optimizer.first_moment"])
            self.assertLessEqual(math.dist(wanted, got), 1e-6 * norm)

    def test_training_goes_like_that_of_one_process(self):
        self.succeed(run(*training("one")))
        name, message = whole()
        self.assertIn("2 processes, ", message)
        self.assertEqual(message.count("training data: "), 1)
        self.assertEqual(records(name, "start")[0]["processes"], 2)
        self.assert_close("one", name)
        self.assertEqual(
            run("translate", "--model", support.scratch() / name, stdin="1\n").code, 0)

    def test_a_dry_run_guesses_the_memory_of_each_once(self):
        for cut, wanted in ("false", "optimiser, "), ("true", "a share of the optimiser's state, "):
            result = self.succeed(together(
                2, *training("dry", f"training.shard_optimizer={cut}"), "--dry-run"))
            self.assertRegex(result.message, "memory of each of 2 processes, roughly: [0-9]+ MiB "
                             "for parameters, gradients and " + wanted)
            self.assertEqual(result.message.count("roughly: "), 1)
        self.assertFalse((support.scratch() / "dry").exists())

    def test_a_run_goes_on_with_the_same_number_to_the_bit_and_with_another(self):
        uncut, _ = whole()
        self.succeed(together(2, *training("pieces", "training.max_updates=9")))
        shutil.copytree(support.scratch() / "pieces", support.scratch() / "others")
        self.succeed(together(2, *training("pieces"), "--resume"))
        self.assertEqual(state(uncut), state("pieces"))
        for size, start in (3, functools.partial(together, 3)), (1, run):
            more = f"training.max_updates={20 if size == 1 else 14}"
            result = self.succeed(start(*training("others", more), "--resume"))
            self.assertIn(f" processes and goes on with {size}", result.message)
        # Validations at the pieces' ends are more than the whole run's.
        wanted, got = (
            {record["update"]: record["loss_base2"] for record in records(name, "train")}
            for name in (uncut, "others"))
        self.assertEqual(wanted.keys(), got.keys())
        for update, loss in wanted.items():
            self.assertLessEqual(abs(loss - got[update]), 1e-6 * loss, update)

    def test_shares_of_the_optimizers_state_give_the_same_bits(self):
        settings = ["training.ema_decay=0.9", "training.max_updates=12",
                    "training.validate_bleu=false"]
        cut = "training.shard_optimizer=true"
        self.succeed(together(3, *training("all", *settings)))
        self.succeed(together(3, *training("shares", *settings, cut, "training.max_updates=7")))
        self.succeed(together(3, *training("shares", *settings), "--resume"))
        self.assertEqual(state("all"), state("shares"))
        models = [(support.scratch() / name / "model.safetensors").read_bytes()
                  for name in ("all", "shares")]
        self.assertEqual(*models)


class Refusals(unittest.TestCase):
    def assert_refused_once(self, result, *wanted):
        self.assertNotEqual(result.code, 0)
        self.assertEqual(result.message.count("error: "), 1, result.message)
        for part in wanted:
            self.assertIn(part, result.message)


class Starting(Refusals):
    """How the program finds out that it is one of several, and that it cannot be."""

    def started_as(self, **variables):
        result = run(*training("refused"), env={**os.environ, **variables})
        self.assertEqual(result.code, 2, result.message)
        self.assertFalse((support.scratch() / "refused").exists())
        return result

    def test_torchrun_is_refused_and_told_of_mpirun(self):
        result = self.started_as(TORCHELASTIC_RUN_ID="x", WORLD_SIZE="2", RANK="0")
        self.assert_refused_once(result, "torchrun", "mpirun -np 2 seqconv train")

    def test_a_starter_that_mpi_knows_nothing_of_is_refused(self):
        for starter, variables in (
                ("srun", {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}),
                ("MVAPICH's mpirun_rsh",
                 {"MV2_COMM_WORLD_SIZE": "2", "MV2_COMM_WORLD_RANK": "0"})):
            result = self.started_as(**variables)
            self.assert_refused_once(result, f"{starter} has started 2 processes", "MPI finds 1")

    def test_processes_of_other_launchers_do_not_each_train_a_model_of_their_own(self):
        result = self.started_as(
            WORLD_SIZE="2", RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29500")
        self.assert_refused_once(
            result, "a launcher of PyTorch's has started 2 processes (WORLD_SIZE=2)",
            "mpirun -np 2 seqconv train")
        for variable in "PALS_RANKID", "PMIX_RANK":
            result = self.started_as(**{variable: "0"})
            self.assert_refused_once(
                result, f"({variable}=0) and does not say how many there are", "mpirun")
            result = run("translate", "--model", support.model(), stdin="1\n",
                         env={**os.environ, variable: "0"})
            self.assertEqual(result.code, 2)
            self.assert_refused_once(result, f"({variable}=0)", "--shard")

    def test_processes_of_a_machine_have_equal_shares_of_its_cores(self):
        environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
        share = min(max(1, os.cpu_count() // 2), len(os.sched_getaffinity(0)))
        for asked, threads in (0, share), (3, 3):
            arguments = training(f"threads{asked}", f"training.threads={asked}",
                                 "training.max_updates=1", "training.validate_bleu=false")
            done = subprocess.run(
                [*mpirun(2, "--bind-to", "none"), os.fspath(support.PROGRAM), *arguments],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=support.TIMEOUT,
                check=False, env=environment)
            self.assertIn(f"2 processes, {threads} threads in each", done.stderr.decode())

    def test_an_installed_program_that_was_moved_trains_together(self):
        program = support.installation() / "bin" / "seqconv"
        done = subprocess.run(
            [*mpirun(2), os.fspath(program), *training("installed", "training.max_updates=2")],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=support.TIMEOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"2 processes, ", done.stderr)

    def test_a_build_without_mpi_says_so_once_and_trains_alone(self):
        root = support.scratch() / "without"
        (root / "bin").mkdir(parents=True)
        shutil.copy(support.PROGRAM, root / "bin")
        shutil.copytree(support.BUILD / "lib", root / "lib",
                        ignore=lambda _, names: {name for name in names if "mpi" in name})
        command = [os.fspath(root / "bin" / support.PROGRAM.name), *training("alone")]
        for start, code in (mpirun(2), 1), ([], 0):
            done = subprocess.run([*start, *command], capture_output=True,
                                  timeout=support.TIMEOUT, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            if start:
                self.assert_refused_once(
                    support.Result(done.returncode, done.stdout, done.stderr),
                    "mpirun has started 2 processes", "this build has no MPI", "-DSEQCONV_MPI=ON")


class Translating(Refusals):
    """Processes that share an input out: more of them in shards_test.py."""

    def test_parts_join_and_errors_come_once(self):
        source, output = support.data() / "train.src", support.scratch() / "joined"
        flags = ["translate", "--model", support.model(), "--input", source]
        flags = list(map(os.fspath, flags))
        result = together(2, *flags, "--output", os.fspath(output))
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual(output.read_bytes(), run(*flags).out)
        self.assert_refused_once(
            together(2, *flags, "--output", os.fspath(output)), "is there already")
        self.assert_refused_once(
            together(2, *flags), "mpirun has started 2 processes", "--input FILE and --output")

    def test_a_job_of_which_a_process_was_killed_goes_on(self):
        source, output = support.scratch() / "long.src", support.scratch() / "killed.out"
        source.write_text((support.data() / "train.src").read_text() * 50)
        flags = ["translate", "--model", support.model(), "--input", source, "--n-best", "2"]
        flags = list(map(os.fspath, flags))
        command = [*mpirun(2), os.fspath(support.PROGRAM), *flags, "--output", os.fspath(output)]
        lock = pathlib.Path(f"{output}.parts/2.lock")
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as job:
            while not lock.with_suffix(".json").exists():
                self.assertIsNone(job.poll())
                time.sleep(0.001)
            os.kill(int(lock.read_text()), signal.SIGKILL)
            self.assertNotEqual(job.wait(support.TIMEOUT), 0)
        self.assertFalse(output.exists())
        result = together(2, *flags, "--output", os.fspath(output))
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("going on behind line ", result.message)
        self.assertEqual(output.read_bytes(), run(*flags).out)


class Agreement(Refusals):
    """Bad input: one message, and all end."""

    def apart(self, first, second):
        """Two processes, each with its own arguments."""
        program = os.fspath(support.PROGRAM)
        command = [*mpirun(1), program, *first, ":", "-np", "1", program, *second]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=support.TIMEOUT, check=False)
        return support.Result(done.returncode, done.stdout, done.stderr)

    def test_one_that_all_make_is_told_once(self):
        self.assert_refused_once(
            together(2, *training("all-wrong", "model.dim=17.5")), "model.dim")

    def test_more_processes_than_batches_an_update(self):
        result = together(2, *training("idle", "training.accumulate=1"))
        self.assert_refused_once(result, "training.accumulate is 1", "the 2 processes")
        self.assertEqual(result.code, 2)

    def test_more_processes_than_batches_an_epoch(self):
        self.assert_refused_once(
            together(2, *training("few", "batching.max_tokens=100000")),
            "an epoch has 1 batches, fewer than the 2 processes")

    def test_another_configuration(self):
        result = self.apart(training("unlike"), training("unlike", "optimizer.beta2=0.97"))
        self.assert_refused_once(
            result, "configuration.optimizer.beta2 is 0.97 in rank 1 and 0.98 in rank 0")
        self.assertFalse((support.scratch() / "unlike").exists())

    def test_other_data(self):
        folder = support.scratch() / "elsewhere"
        folder.mkdir()
        for name in ("here", "there"):
            (folder / name).mkdir()
            shutil.copy(support.data() / "train.src", folder / name / "train.src")
        with open(folder / "there" / "train.src", "a", encoding="utf-8") as file:
            file.write("1\n")
        arguments = training("other-data", "data.train_source=train.src")
        command = []
        for name in ("here", "there"):
            command += [":"] if command else []
            command += ["-np", "1", "--wdir", os.fspath(folder / name),
                        os.fspath(support.PROGRAM), *arguments]
        done = subprocess.run([*mpirun(1)[:-2], *command], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=support.TIMEOUT, check=False)
        self.assert_refused_once(
            support.Result(done.returncode, done.stdout, done.stderr),
            "content of data.train_source is ", "in rank 1 and ")

    def test_a_folder_that_is_not_shared(self):
        arguments = training("unused")
        arguments[arguments.index("--output") + 1] = "run"
        command = []
        for name in ("node0", "node1"):
            folder = support.scratch() / name
            folder.mkdir()
            command += [":"] if command else []
            command += ["-np", "1", "--wdir", os.fspath(folder),
                        os.fspath(support.PROGRAM), *arguments]
        done = subprocess.run([*mpirun(1)[:-2], *command], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=support.TIMEOUT, check=False)
        self.assert_refused_once(
            support.Result(done.returncode, done.stdout, done.stderr),
            "one folder that all see", "is not there in rank 1", "node1/run/training")

    def test_only_the_first_writes_the_prepared_data(self):
        """One that sees another stamp than the first fails, and all with it."""
        first, other = (support.scratch() / name / "run" for name in ("sees", "sees-another"))
        arguments = training("sees/run", "training.max_updates=3")
        first.parent.mkdir()
        done = run(*arguments)
        self.assertEqual(done.code, 0, done.message)
        arguments[arguments.index("--output") + 1] = "run"
        shutil.copytree(first, other)
        (other / "training" / "shared").symlink_to(first / "training" / "shared")
        data = other / "training" / "data"
        stamp = data / "stamp.json"
        stamp.write_text(stamp.read_text() + "damaged")
        before = {file.name: file.read_bytes() for file in data.iterdir()}
        command = []
        for folder in (first.parent, other.parent):
            command += [":"] if command else []
            command += ["-np", "1", "--wdir", os.fspath(folder),
                        os.fspath(support.PROGRAM), *arguments, "--resume", "--follow-links",
                        "--set", "training.max_updates=6"]
        done = subprocess.run([*mpirun(1)[:-2], *command], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=support.TIMEOUT, check=False)
        self.assert_refused_once(
            support.Result(done.returncode, done.stdout, done.stderr),
            "rank 1 cannot use what rank 0 has prepared", "stamp.json' is another there")
        self.assertEqual({file.name: file.read_bytes() for file in data.iterdir()}, before)

    def test_a_file_that_cannot_be_written_in_the_middle_ends_all(self):
        folder = support.scratch() / "blocked"
        self.assertEqual(run(*training("blocked", "training.max_updates=2")).code, 0)
        shutil.rmtree(folder / "training" / "checkpoints")
        (folder / "training" / "checkpoints").write_text("no folder")
        self.assert_refused_once(together(2, *training("blocked"), "--resume"), "checkpoints")


class Ends(unittest.TestCase):
    """Signals, and processes that are lost."""

    QUIET = ("training.save_every=5", "training.log_every=1000",
             "training.validate_every=100000", "training.validate_bleu=false")

    def start(self, output, size, *options):
        """A run without end, which has saved its state; its processes by rank."""
        arguments = training(
            output, "training.max_updates=1000000", *self.QUIET)
        job = subprocess.Popen(
            [*mpirun(size, *options), os.fspath(support.PROGRAM), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.kill)
        folder = support.scratch() / output
        checkpoints = folder / "training" / "checkpoints"
        while not list(checkpoints.glob("update-*.safetensors")):
            self.assertIsNone(job.poll(), "it ended by itself")
            time.sleep(0.05)
        ranks = ranks_of(folder)
        self.assertEqual(sorted(ranks), list(range(size)))
        return job, ranks

    def end(self, job, seconds=30):
        begin = time.monotonic()
        _, message = job.communicate(timeout=support.TIMEOUT)
        self.assertLess(time.monotonic() - begin, seconds)
        self.assertNotEqual(job.returncode, 0)
        return message.decode("utf-8", "replace")

    def assert_goes_on(self, output, *settings, least=5, start=run):
        """The state can be read, and the run goes on from it, by one process or several."""
        update = position(output)["update"]
        self.assertGreaterEqual(update, least)
        result = start(*training(
            output, *self.QUIET, *settings, f"training.max_updates={update + 3}"), "--resume")
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual(records(output, "end")[-1]["update"], update + 3)
        self.assertEqual(
            run("translate", "--model", support.scratch() / output, stdin="1\n").code, 0)

    def test_a_signal_to_the_first_rank_saves_and_stops_all(self):
        job, ranks = self.start("signal", 2)
        os.kill(ranks[0], signal.SIGINT)
        message = self.end(job)
        self.assertEqual(job.returncode, 128 + signal.SIGINT, message)
        self.assert_saved("signal", message)
        self.assert_goes_on("signal", start=functools.partial(together, 2))

    def assert_saved(self, output, message):
        self.assertEqual(message.count("the state is saved"), 1, message)
        self.assertEqual(records(output, "end")[-1]["reason"], "interrupted")

    def start_slowly(self, output, size, seconds, *settings, resume=False):
        """A run that takes so long to write a state; its folder."""
        start = mpirun(size) if size > 1 else []
        job = subprocess.Popen(
            [*start, *support.slow_disk("state.safetensors.tmp-", seconds),
             os.fspath(support.PROGRAM),
             *training(output, "training.max_updates=1000000", *self.QUIET, *settings),
             *(["--resume"] if resume else [])],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.kill)
        return job, support.scratch() / output / "training"

    def wait_until(self, condition, job):
        while not condition():
            self.assertIsNone(job.poll(), "it ended by itself")
            time.sleep(0.02)

    def test_a_signal_to_any_rank_stops_all_and_none_leaves_while_the_first_one_writes(self):
        first = "training.save_every=1000000"  # the state that is saved is the first one
        shares = ["training.shard_optimizer=true", "training.ema_decay=0.9"]
        jobs = []
        for size, rank, sent, settings in (
                (1, 0, signal.SIGTERM, []), (2, 1, signal.SIGUSR1, []),
                (3, 2, signal.SIGTERM, shares)):
            jobs.append((f"slow{size}", size, rank, sent, settings,
                         *self.start_slowly(f"slow{size}", size, 6, first, *settings)))
        processes = {}
        for output, size, rank, sent, _, job, training_folder in jobs:
            metrics = training_folder / "metrics.jsonl"
            self.wait_until(lambda: metrics.exists() and metrics.read_bytes(), job)
            ranks = ranks_of(support.scratch() / output) if size > 1 else {0: job.pid}
            self.assertEqual(sorted(ranks), list(range(size)))
            processes[output] = ranks
            os.kill(ranks[rank], sent)
        for seconds in 0, 1.1:  # those of launchers, which come again and again
            time.sleep(seconds)
            for output, *_, job, training_folder in jobs:
                if seconds == 0:
                    self.wait_until(
                        lambda: list(training_folder.glob("state.safetensors.tmp-*")), job)
                elif not list(training_folder.glob("state.safetensors.tmp-*")):
                    continue  # on a machine with much else to do
                for process in processes[output].values():
                    os.kill(process, signal.SIGTERM)
        for output, _, _, sent, settings, job, training_folder in jobs:
            message = self.end(job)
            self.assertEqual(job.returncode, 128 + sent, message)
            self.assert_saved(output, message)
            self.assertEqual(list(training_folder.glob("*.tmp-*")), [])
            self.assertGreater(position(output)["batch"], 0)
            self.assert_goes_on(output, *settings, least=0)

    def test_a_second_ctrl_c_ends_what_writes_and_the_older_state_stays(self):
        result = run(*training("hurried", *self.QUIET, "training.max_updates=2"))
        self.assertEqual(result.code, 0, result.message)
        before = state("hurried")
        metrics = support.scratch() / "hurried" / "training" / "metrics.jsonl"
        records_before = len(metrics.read_bytes())
        job, training_folder = self.start_slowly(
            "hurried", 1, 60, "training.save_every=1000000", resume=True)
        self.wait_until(lambda: len(metrics.read_bytes()) > records_before, job)
        job.send_signal(signal.SIGINT)
        self.wait_until(lambda: list(training_folder.glob("*.tmp-*")), job)
        time.sleep(1.1)
        job.send_signal(signal.SIGINT)
        self.end(job)
        self.assertEqual(job.returncode, -signal.SIGINT)
        self.assertEqual(list(training_folder.glob("*.tmp-*")), [])
        self.assertEqual(state("hurried"), before)

    def test_a_signal_to_one_rank_in_a_validation_stops_all_and_it_is_made_again(self):
        files = {side: support.scratch() / f"validated.{side}" for side in ("src", "tgt")}
        for side, file in files.items():
            file.write_bytes((support.data() / f"valid.{side}").read_bytes() * 1000)
        options = ["training.validate_every=2", "training.log_every=1", *(
            f"data.valid_{key}={files[side]}"
            for key, side in (("source", "src"), ("target", "tgt")))]
        folder = support.scratch() / "validating"
        job = subprocess.Popen(
            [*mpirun(2), os.fspath(support.PROGRAM),
             *training("validating", "training.max_updates=4", *options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.kill)
        for line in job.stderr:
            if b"update 2 " in line:
                break
        time.sleep(0.1)
        os.kill(ranks_of(folder)[1], signal.SIGTERM)
        message = self.end(job)
        self.assertEqual(job.returncode, 128 + signal.SIGTERM, message)
        self.assertIn("after update 2; the state is saved", message)
        self.assertEqual(records("validating", "validation"), [])
        # Its score, which takes long, is of no matter any more.
        result = run(*training("validating", "training.max_updates=2", *options,
                               "training.validate_bleu=false"), "--resume")
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual([one["update"] for one in records("validating", "validation")], [2])

    def test_mpirun_passes_signals_on(self):
        for sent, options in (signal.SIGUSR1, ()), (
                signal.SIGTERM, ("--mca", "odls_base_sigkill_timeout", "3")):
            output = f"passed{sent}"
            job, _ = self.start(output, 2, *options)
            job.send_signal(sent)
            message = self.end(job)
            self.assert_saved(output, message)
            self.assert_goes_on(output)

    def test_a_rank_that_is_killed_ends_the_job(self):
        job, ranks = self.start("killed", 2)
        os.kill(ranks[1], signal.SIGKILL)
        message = self.end(job)
        self.assertIn("process rank 1", message)
        self.assertIn("signal 9", message)
        # The starter may end before the other, which saves, has.
        last = time.monotonic() + 30
        while os.path.exists(f"/proc/{ranks[0]}") and time.monotonic() < last:
            time.sleep(0.05)
        self.assert_goes_on("killed")

    def test_a_rank_that_hangs_ends_the_job_and_is_named(self):
        job, ranks = self.start("hanging", 3)
        os.kill(ranks[1], signal.SIGSTOP)
        message = self.end(job)
        self.assertEqual(message.count("error: "), 1, message)
        self.assertIn(f"rank 1 (process {ranks[1]} on ", message)
        self.assertIn("has given no sign of life for 20 s", message)
        last = time.monotonic() + 5
        while any(pathlib.Path(f"/proc/{process}").exists() for process in ranks.values()):
            self.assertLess(time.monotonic(), last, "a process is left over")
            time.sleep(0.1)
        self.assert_goes_on("hanging")


if __name__ == "__main__":
    unittest.main(testRunner=support.SideBySide(AT_ONCE))
