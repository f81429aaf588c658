#!/usr/bin/env python3
"""Kills the program at random moments, and fills its disk at random bytes.

    python3 tools/check_crashes.py [--build build/release] [--times 20] [--seed 1] [CASE ...]

Whatever is killed, no file that looks finished is damaged, and the same command, for a
training with --resume once there is a state, goes on or begins again. At the end it has
made what it makes undisturbed: to the bit, where the same number of processes adds up.
Cases: translation language_model average shards (two processes under mpirun) translate
shortlist inspect charts quantize mean import export. The default is all of them.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, os.fspath(ROOT / "tests" / "cli"))
MARK = "SEQCONV_CHECK_CRASHES"  # in the environment of a job's processes


class Failure(Exception):
    """The fault, in words."""


def tensors(file):
    """The bytes behind the header of a safetensors file. Failure where it is not whole."""
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if 8 + size + end != len(data):
        raise Failure(f"{file} has {len(data)} bytes, but its header tells of {8 + size + end}")
    return data[8 + size:]


def check_whole(folder):
    """Failure for a file that looks finished and is damaged."""
    readers = {".safetensors": tensors, ".json": lambda file: json.loads(file.read_text()),
               ".toml": lambda file: tomllib.loads(file.read_text())}
    for file in folder.rglob("*"):
        if ".tmp-" in file.name or file.suffix not in readers:
            continue
        try:
            readers[file.suffix](file)
        except (ValueError, struct.error, KeyError) as error:
            raise Failure(f"{file} is damaged: {error}") from error


def marked(mark):
    """Processes of a job that are there."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            pass
    return found


class Case:
    """A command, and what it makes below a folder."""

    def __init__(self, program, command, result, processes=1):
        self.program = program
        self.command = command      # of a folder: arguments
        self.result = result        # of a folder: what is compared, or None
        self.processes = processes
        self.jobs = 0

    def start(self, folder, limit=None):
        """A job, and its mark; `limit` is the most bytes that a file may have."""
        self.jobs += 1
        mark = f"{os.getpid()}-{id(self)}-{self.jobs}"
        # TCP needs none of MPI's own files, which the limit holds for too.
        starter = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--mca", "btl", "self,tcp",
                   "-np", str(self.processes)] if self.processes > 1 else []
        if limit is not None:
            starter += ["prlimit", f"--fsize={limit}:"]
        job = subprocess.Popen(
            [*starter, os.fspath(self.program), *map(os.fspath, self.command(folder))],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, MARK: mark, "OMP_NUM_THREADS": "1"})
        return job, mark

    def run(self, folder, limit=None):
        """To its end: the exit status and what it said."""
        job, _ = self.start(folder, limit)
        message = job.communicate(timeout=300)[1].decode("utf-8", "replace")
        return job.returncode, message

    def finish(self, folder):
        """Failure unless it runs undisturbed; what it has made."""
        code, message = self.run(folder)
        if code != 0:
            raise Failure(f"it neither goes on nor begins again in {folder}: {message}")
        check_whole(folder)
        left = list(folder.rglob("*.tmp-*"))
        if left:
            raise Failure(f"{left} is left over")
        return self.result(folder)

    def kill(self, folder, moment, choose):
        """After so many seconds: all of its processes, or of several perhaps one."""
        job, mark = self.start(folder)
        time.sleep(moment)
        there = marked(mark)
        if self.processes > 1 and there and choose() < 0.5:
            there = [there[int(choose() * len(there))]]
        for process in there:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        job.communicate(timeout=60)
        last = time.monotonic() + 60
        while marked(mark):
            if time.monotonic() > last:
                raise Failure("a process is left over")
            time.sleep(0.05)

    def check(self, scratch, times, generator):
        """Failure for what a killed or full run leaves behind."""
        (scratch / "wanted").mkdir()
        begin = time.monotonic()
        wanted = self.finish(scratch / "wanted")
        seconds = time.monotonic() - begin
        largest = max(file.stat().st_size for file in (scratch / "wanted").rglob("*")
                      if file.is_file())
        for number in range(times):
            folder = scratch / str(number)
            folder.mkdir()
            told = []
            try:
                for _ in range(generator.randint(1, 3)):
                    if generator.random() < 0.3:
                        limit = generator.randrange(largest)
                        told.append(f"full at {limit} bytes")
                        code, message = self.run(folder, limit)
                        if code != 0 and "error: " not in message:
                            raise Failure(f"nothing was said: {code} {message}")
                        if left := list(folder.rglob("*.tmp-*")):
                            raise Failure(f"{left} is left over")
                    else:
                        moment = generator.uniform(0, seconds)
                        told.append(f"killed after {moment:.3f} s")
                        self.kill(folder, moment, generator.random)
                    check_whole(folder)
                    if self.result(folder) == wanted:
                        break
                if self.result(folder) != wanted and self.finish(folder) != wanted:
                    raise Failure("it has made something else")
            except Failure as failure:
                raise Failure(f"{', '.join(told)}: {failure}") from failure
            shutil.rmtree(folder)


def training(settings, *more):
    """A command that trains in a folder, and goes on there."""
    def command(folder):
        arguments = ["train", settings, "--output", folder / "run"]
        for setting in ("training.max_updates=8", "training.validate_every=2",
                        "training.save_every=1", "training.keep_last=2", *more):
            arguments += ["--set", setting]
        state = folder / "run" / "training" / "state.safetensors"
        if (folder / "run" / "model.safetensors").exists() and not state.exists():
            raise Failure("there is a model without a state")
        return arguments + (["--resume"] if state.exists() else [])
    return command


def trained(folder):
    """The state and the model of a run that is over."""
    run = folder / "run"
    try:
        records = (run / "training" / "metrics.jsonl").read_text().splitlines()
        if json.loads(records[-1])["kind"] != "end":
            return None
        return tensors(run / "training" / "state.safetensors"), tensors(run / "model.safetensors")
    except (OSError, ValueError, IndexError):
        return None


def content(name):
    """The content of one file below a folder."""
    def read(folder):
        file = folder / name
        return file.read_bytes() if file.exists() else None
    return read


def make_cases(support):
    """All of them by name. `support` is that of tests/cli."""
    from hostile.imports import BOTH, DATA  # pylint: disable=import-outside-toplevel
    program, model = support.PROGRAM, support.model()
    average = ["training.ema_decay=0.9"]
    shards = [*average, "training.shard_optimizer=true", "training.accumulate=4",
              "batching.max_tokens=60"]
    lines = support.scratch() / "crashes.src"
    lines.write_text((support.data() / "train.src").read_text() * 20)
    def case(command, result, processes=1):
        return Case(program, command, result, processes)

    def folder_case(*arguments):
        return case(lambda folder: [*arguments, "--output", folder / "out"],
                    content("out/model.safetensors"))

    return {
        "translation": case(training(support.config()), trained),
        "language_model": case(training(support.language_config()), trained),
        "average": case(training(support.config(), *average), trained),
        "shards": case(training(support.config(), *shards), trained, 2),
        "translate": case(
            lambda folder: ["translate", "--model", model, "--input", lines, "--buffer-lines",
                            "64", "--output", folder / "out"], content("out")),
        "shortlist": case(
            lambda folder: ["shortlist", "--model", model, "--source", support.data() / "train.src",
                            "--target", support.data() / "train.tgt", "--output", folder / "out"],
            content("out")),
        "inspect": case(
            lambda folder: ["inspect", "--model", model, "--output", folder / "out.html"],
            content("out.html")),
        "charts": case(
            lambda folder: ["inspect", "--model", model, "--format", "svg",
                            "--output", folder / "out"], content("out/loss.svg")),
        "quantize": folder_case("quantize", "--model", model),
        "mean": folder_case("average", model, model),
        "import": folder_case("import", "--checkpoint", DATA / "published.pt", *BOTH),
        "export": case(lambda folder: ["export", "--format", "pytorch", model, folder / "out.pt"],
                       content("out.pt")),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder")
    parser.add_argument("--times", type=int, default=20, help="runs of each case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    os.environ["SEQCONV_BINARY_DIR"] = os.fspath(pathlib.Path(options.build).resolve())
    import support  # pylint: disable=import-outside-toplevel
    cases = make_cases(support)
    failed = 0
    for name in options.case or cases:
        scratch = support.scratch() / f"crashes-{name}"
        scratch.mkdir()
        try:
            cases[name].check(scratch, options.times, random.Random(options.seed))
            print(f"{name}: {options.times} disturbed runs came to the same end", flush=True)
        except Failure as failure:
            failed += 1
            print(f"{name}: {failure}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
