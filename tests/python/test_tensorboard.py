"""The event files of a run, read by TensorBoard's own package, are its metrics."""

import json
import os
import pathlib
import shutil
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parents[1] / "cli"))
import support

PLACES = {"kind", "epoch", "update"}


def train(folder, updates, *flags):
    result = support.run(
        "train", support.config(), "--output", folder,
        "--set", "training.tensorboard=true",
        "--set", f"training.max_updates={updates}",
        "--set", "training.validate_every=2", *flags)
    assert result.code == 0, result.message


def wanted(folder):
    """Curves by their names, of metrics.jsonl."""
    curves = {}
    for line in (folder / "training/metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] not in ("train", "validation"):
            continue
        for key, value in record.items():
            if key not in PLACES and type(value) in (int, float):
                curves.setdefault(f"{record['kind']}/{key}", []).append(
                    (record["update"], value))
    return curves


def found(folder):
    events = EventAccumulator(
        os.fspath(folder / "training/tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def check(folder):
    curves = wanted(folder)
    read = found(folder)
    assert sorted(read) == sorted(curves)
    assert "validation/nll_base2" in curves and "train/learning_rate" in curves
    for tag, points in curves.items():
        assert [step for step, _ in read[tag]] == [step for step, _ in points]
        assert [value for _, value in read[tag]] == pytest.approx(
            [value for _, value in points], rel=1e-6)


def test_curves_are_those_of_the_metrics(tmp_path):
    folder = tmp_path / "run"
    train(folder, 4)
    check(folder)
    (file,) = (folder / "training/tensorboard").iterdir()
    first = next(iter(EventFileLoader(os.fspath(file)).Load()))
    assert first.file_version == "brain.Event:2"
    assert first.wall_time > 1.7e9


def test_a_run_that_goes_on_takes_back_what_came_after_its_state(tmp_path):
    folder = tmp_path / "run"
    train(folder, 2)
    state = tmp_path / "state"
    shutil.copy(folder / "training/state.safetensors", state)
    train(folder, 6, "--resume")
    # As after a crash: updates 3 to 6 are in the files, not in the state.
    shutil.copy(state, folder / "training/state.safetensors")
    train(folder, 4, "--resume")
    assert len(list((folder / "training/tensorboard").iterdir())) == 3
    assert max(step for step, _ in found(folder)["train/nll_base2"]) == 4
    check(folder)


def test_nothing_is_written_unless_it_is_asked_for():
    assert not (support.model() / "training/tensorboard").exists()
