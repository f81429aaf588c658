#!/usr/bin/env python3
"""Trains from given weights on given text, and holds every update against what was
computed elsewhere (tests/golden/trajectories/README.md).

    trajectory_test.py PROGRAM

Folders: those of $SEQCONV_GOLDEN, default tests/golden, that hold trajectories.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import golden_folders  # noqa: E402

BITS = 1e-4  # of losses, absolute
NORM = 1e-4  # of gradients, relative
RATE = 1e-9  # of learning rates, relative


class Replay:
    """One kind of a folder."""

    def __init__(self, program, folder, kind, work):
        self.program, self.folder, self.work = program, folder, work / kind
        self.wanted = json.loads((folder / f"trajectory.{kind}.json").read_text(encoding="utf-8"))
        self.settings = self.wanted.get("settings")
        if self.settings is None:  # folders that leave it to the block's name
            parts = [f"block={kind}"] + ["kernel_sizes=[]", "glu=false"] * (kind == "self_attention")
            self.settings = [f"model.{side}.{part}" for side in ("encoder", "decoder") for part in parts]
        self.environment = dict(os.environ)
        if "smallest_kink" not in self.wanted:
            # Recorded in float32 beside a ReLU's zero, with vectors of 256 bits: wider
            # ones round otherwise and leave the zero on the other side.
            self.environment["ATEN_CPU_CAPABILITY"] = "avx2"
        self.init = self.make_init(kind)

    def run(self, *arguments):
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr

    def train(self, name, *settings, start=()):
        """Records of a run of the folder's configuration."""
        values = [word for setting in (*self.settings, *settings) for word in ("--set", setting)]
        self.run("train", "seqconv.toml", *values, *start, "--output", self.work / name)
        lines = (self.work / name / "training/metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def make_init(self, kind):
        """A model folder with the initial weights."""
        init = self.work / "init"
        if (self.folder / f"init.{kind}.pt").exists():
            self.run(
                "import",
                "--checkpoint",
                f"init.{kind}.pt",
                "--source-dictionary",
                "dict.txt",
                "--target-dictionary",
                "dict.txt",
                "--output",
                init,
            )
        else:  # under our names
            self.train("init", "training.max_updates=1")
            (init / "model.safetensors").write_bytes((self.folder / f"init.{kind}.safetensors").read_bytes())
        return init

    def check(self):
        start = ("--init-from", self.init)
        # One update at rate zero leaves the model as it is.
        still = self.train("still", "training.max_updates=1", "schedule.warmup_start=0", start=start)
        check_validation(still, self.wanted["valid_before"])
        records = self.train("run", start=start)
        updates = [record for record in records if record["kind"] == "train"]
        assert len(updates) == len(self.wanted["updates"]) > 0
        worst = [check_update(*pair) for pair in zip(updates, self.wanted["updates"])]
        check_validation(records, self.wanted["valid_after"])
        print(
            f"{self.folder.name}, {self.wanted['kind']}: {len(updates)} updates, losses within "
            f"{max(bits for bits, _ in worst):.1e} bits, norms within {max(norm for _, norm in worst):.1e}"
        )


def check_update(found, wanted):
    where = f"update {wanted['update']}"
    for key in ("update", "sentences", "target_tokens"):
        assert found[key] == wanted[key], f"{where}: {key} {found[key]}, not {wanted[key]}"
    assert math.isclose(
        found["learning_rate"], wanted["learning_rate"], rel_tol=RATE
    ), f"{where}: another rate"
    bits = max(abs(found[key] - wanted[key]) for key in ("loss_base2", "nll_base2"))
    assert bits <= BITS, f"{where}: losses differ by {bits}"
    norm = abs(found["gradient_norm"] / wanted["gradient_norm"] - 1)
    assert norm <= NORM, f"{where}: norms of gradients differ by {norm} of theirs"
    return bits, norm


def check_validation(records, wanted):
    found, wanted = [record for record in records if record["kind"] == "validation"][-1], wanted["all"]
    assert found["target_tokens"] == wanted["tokens"]
    for key in ("loss_base2", "nll_base2"):
        assert abs(found[key] - wanted[key]) <= BITS, f"validation: {key} {found[key]}, not {wanted[key]}"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    for folder in golden_folders.with_files("trajectory.*.json"):
        for path in sorted(folder.glob("trajectory.*.json")):
            with tempfile.TemporaryDirectory(prefix="seqconv-trajectory-") as work:
                Replay(program, folder, path.name.split(".")[1], pathlib.Path(work)).check()


if __name__ == "__main__":
    main()
