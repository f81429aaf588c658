"""Training by several processes under mpirun, beside one process that does it alone."""

import array
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from support import run

# Four batches an update, whoever takes them. The keys' biases have no gradient but
# rounding, of which Adam makes steps as long as the rate: so it is low.
SETTINGS = ["training.accumulate=4", "training.max_updates=20", "training.validate_every=8",
            "training.validate_bleu=true", "model.dropout=0.1",
            "schedule.learning_rate=1e-4", "schedule.warmup_start=1e-7"]


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


def tensors(file):
    """The tensors of a safetensors file, as bytes."""
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size:]
    return {name: body[slice(*entry["data_offsets"])] for name, entry in header.items()}


def state(output):
    return tensors(support.scratch() / output / "training" / "state.safetensors")


def floats(data):
    return array.array("f", data)


def records(output, kind):
    file = support.scratch() / output / "training" / "metrics.jsonl"
    lines = map(json.loads, file.read_text().splitlines())
    return [line for line in lines if line["kind"] == kind]


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
        once = ["training.max_updates=1", "training.validate_every=0", "training.validate_bleu=false"]
        self.succeed(run(*training("gradient1", *once)))
        # What Adam's first moment is after one update.
        wanted = floats(state("gradient1")["optimizer.first_moment"])
        for size in (2, 4):
            self.succeed(together(size, *training(f"gradient{size}", *once)))
            got = floats(state(f"gradient{size}")["optimizer.first_moment"])
            difference = math.dist(wanted, got)
            self.assertGreater(math.hypot(*wanted), 0)
            self.assertLessEqual(difference, 1e-6 * math.hypot(*wanted))

    def test_training_goes_like_that_of_one_process(self):
        self.succeed(run(*training("one")))
        for size in (2, 4):
            result = self.succeed(together(size, *training(f"of{size}")))
            self.assertIn(f"{size} processes, ", result.message)
            self.assertEqual(result.message.count("training data: "), 1)
            self.assert_close("one", f"of{size}")
            self.assertEqual(
                run("translate", "--model", support.scratch() / f"of{size}", stdin="1\n").code, 0)

    def test_a_run_goes_on_with_the_same_number_to_the_bit_and_with_another(self):
        self.succeed(together(2, *training("whole")))
        self.succeed(together(2, *training("pieces", "training.max_updates=9")))
        shutil.copytree(support.scratch() / "pieces", support.scratch() / "others")
        self.succeed(together(2, *training("pieces"), "--resume"))
        self.assertEqual(state("whole"), state("pieces"))
        for size in (3, 1):  # three processes, then one
            more = f"training.max_updates={20 if size == 1 else 14}"
            self.succeed(together(size, *training("others", more), "--resume"))
        # Validations at the pieces' ends are more than the whole run's.
        wanted, got = (
            {record["update"]: record["loss_base2"] for record in records(name, "train")}
            for name in ("whole", "others"))
        self.assertEqual(wanted.keys(), got.keys())
        for update, loss in wanted.items():
            self.assertLessEqual(abs(loss - got[update]), 1e-6 * loss, update)


class Starting(unittest.TestCase):
    """How the program finds out that it is one of several, and that it cannot be."""

    def assert_refused_once(self, result, *wanted):
        self.assertNotEqual(result.code, 0)
        self.assertEqual(result.message.count("error: "), 1, result.message)
        for part in wanted:
            self.assertIn(part, result.message)

    def started_as(self, **variables):
        result = run(*training("refused"), env={**os.environ, **variables})
        self.assertEqual(result.code, 2, result.message)
        self.assertFalse((support.scratch() / "refused").exists())
        return result

    def test_torchrun_is_refused_and_told_of_mpirun(self):
        result = self.started_as(TORCHELASTIC_RUN_ID="x", WORLD_SIZE="2", RANK="0")
        self.assert_refused_once(result, "torchrun", "mpirun -np 2 seqconv train")

    def test_a_starter_that_mpi_knows_nothing_of_is_refused(self):
        result = self.started_as(SLURM_STEP_NUM_TASKS="2", SLURM_PROCID="0")
        self.assert_refused_once(result, "srun has started 2 processes", "MPI finds 1")

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


if __name__ == "__main__":
    unittest.main()
