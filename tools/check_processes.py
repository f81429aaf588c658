#!/usr/bin/env python3
"""Trains by two processes and by one, and compares.

    python3 tools/check_processes.py --program build/cuda/bin/seqconv           # GPUs
    python3 tools/check_processes.py --program build/release/bin/seqconv \\
        --starter mpirun --device cpu --set training.threads=1                  # CPUs

The first updates of Multi30k (tools/prepare_multi30k.sh): one process, two, and two
with training.shard_optimizer, all with the same batches. The losses of every update
must agree. Then a run of two, of which one is killed: all must end.
"""
import argparse
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZE = 2
# By which a process knows its rank, as starters set it.
RANKS = {"torchrun": "RANK", "mpirun": "OMPI_COMM_WORLD_RANK"}
MARK = "SEQCONV_CHECK_PROCESSES"  # in the environment of a job's processes
LOSSES = "loss_base2", "nll_base2"


class Failure(Exception):
    """What is wrong, in words."""


def read_updates(folder):
    """The `train` records of a run, by update."""
    file = folder / "training" / "metrics.jsonl"
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {line["update"]: line for line in lines if line["kind"] == "train"}


def largest_difference(wanted, got, updates, bound):
    """By how much of themselves the losses of two runs' updates differ at most.

    wanted, got: `train` records by update. Failure where one of the updates 1 to
    `updates` is missing or of other tokens, or a loss differs by more than `bound`,
    or is no number.
    """
    largest = 0
    for update in range(1, updates + 1):
        if update not in wanted or update not in got:
            raise Failure(f"there is no record of update {update} in each of the runs")
        one, other = wanted[update], got[update]
        if one["target_tokens"] != other["target_tokens"]:
            raise Failure(f"update {update} has {other['target_tokens']} target tokens, "
                          f"but {one['target_tokens']} in one process")
        for key in LOSSES:
            a, b = (math.nan if run[key] is None else run[key] for run in (one, other))
            difference = abs(a - b) / abs(a) if a else abs(b)
            if not difference <= bound:  # nor where it is no number
                raise Failure(f"{key} of update {update} is {b}, but {a} in one process: "
                              f"they differ by {difference:.1e} of it, more than {bound:.0e}")
            largest = max(largest, difference)
    return largest


def processes_of(mark, variable):
    """Numbers of the processes of a job, by rank."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            lines = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        environment = dict(line.decode(errors="replace").split("=", 1)
                           for line in lines if b"=" in line)
        if environment.get(MARK) == mark and variable in environment:
            found[int(environment[variable])] = int(process.name)
    return found


class Check:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        data = options.data
        self.common = [
            options.config,
            "--set", f"data.train_source={data / 'train.de'}",
            "--set", f"data.train_target={data / 'train.en'}",
            "--set", f"data.valid_source={data / 'valid.de'}",
            "--set", f"data.valid_target={data / 'valid.en'}",
            "--set", f"training.device={options.device}",
            "--set", f"training.accumulate={2 * SIZE}",  # sums of several in each
            "--set", "training.max_epochs=0",
            "--set", "training.log_every=1",
        ]
        for setting in options.set:
            self.common += ["--set", setting]

    def starter(self, size):
        if size == 1:
            return []
        if self.options.starter == "mpirun":
            return ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
                    "-np", str(size)]
        return [sys.executable, "-m", "torch.distributed.run", "--no-python", "--standalone",
                "--nproc-per-node", str(size)]

    def start(self, name, size, *settings, mark=""):
        """Begins a run; its output goes into a file beside its folder."""
        folder = self.work / name
        command = [*self.starter(size), self.options.program, "train", *self.common,
                   "--output", folder]
        for setting in settings:
            command += ["--set", setting]
        with open(f"{folder}.log", "wb") as log:
            return subprocess.Popen(
                list(map(os.fspath, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, MARK: mark})

    def train(self, name, size, *settings):
        """The updates of a run."""
        job = self.start(name, size, f"training.max_updates={self.options.updates}", *settings)
        if job.wait() != 0:
            raise Failure(f"the run '{name}' ended with status {job.returncode}:\n"
                          + self.end_of_log(name))
        return read_updates(self.work / name)

    def end_of_log(self, name):
        text = (self.work / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-60:])  # torchrun says much after it

    def losses(self):
        updates, bound = self.options.updates, self.options.bound
        wanted = self.train("one", 1)
        for name, shards in ("two", "false"), ("shares", "true"):
            got = self.train(name, SIZE, f"training.shard_optimizer={shards}")
            largest = largest_difference(wanted, got, updates, bound)
            print(f"losses of {updates} updates, {SIZE} processes, training.shard_optimizer "
                  f"{shards}: they differ by at most {largest:.1e} of those of one process")

    def death(self):
        """Kills the second process of a run that trains."""
        mark = uuid.uuid4().hex
        variable = RANKS[self.options.starter]
        job = self.start("killed", SIZE, "training.max_updates=1000000", mark=mark)
        try:
            self.wait_for_updates("killed", job)
            ranks = processes_of(mark, variable)
            if sorted(ranks) != list(range(SIZE)):
                raise Failure(f"of {SIZE} processes these were found, by rank: {ranks}")
            os.kill(ranks[1], signal.SIGKILL)
            self.wait_for_end(job, mark, variable)
        finally:
            for process in processes_of(mark, variable).values():
                os.kill(process, signal.SIGKILL)
            job.kill()
            job.wait()

    def wait_for_updates(self, name, job):
        file = self.work / name / "training" / "metrics.jsonl"
        while not file.exists() or '"kind":"train"' not in file.read_text().replace(" ", ""):
            if job.poll() is not None:
                raise Failure(f"the run '{name}' ended before an update, with status "
                              f"{job.returncode}:\n{self.end_of_log(name)}")
            time.sleep(0.1)

    def wait_for_end(self, job, mark, variable):
        begin = time.monotonic()
        try:
            status = job.wait(self.options.seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.options.seconds} s after one of its processes was killed the "
                          "job had not ended") from None
        if status == 0:
            raise Failure("a job of which a process was killed ended with status 0")
        if left := processes_of(mark, variable):
            raise Failure(f"the job has ended, but these are left, by rank: {left}")
        print(f"a process was killed: the job ended {time.monotonic() - begin:.1f} s later, "
              f"with status {status}")


def read_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--starter", choices=sorted(RANKS), default="torchrun")
    parser.add_argument("--device", default="cuda", help="training.device (default: cuda)")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "runs/multi30k/data")
    parser.add_argument("--config", type=pathlib.Path,
                        default=ROOT / "configs/multi30k_dynamicconv.toml")
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--bound", type=float, default=1e-5,
                        help="largest difference of a loss, of itself (default: 1e-5)")
    parser.add_argument("--seconds", type=float, default=60,
                        help="for the end of a job after a kill (default: 60)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of all runs")
    return parser.parse_args()


def main():
    options = read_options()
    failed = False
    with tempfile.TemporaryDirectory() as work:
        check = Check(options, pathlib.Path(work))
        for part in check.losses, check.death:
            try:
                part()
            except Failure as failure:
                print(f"check_processes.py: {failure}", file=sys.stderr)
                failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
