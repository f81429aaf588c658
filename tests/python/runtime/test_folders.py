"""Folders that are replaced, removed, damaged or of another version."""

import json
import os
import pathlib
import shutil

import pytest

import seqconv
from conftest import MODEL, UNLIMITED

TEXT = "dalan mira"


@pytest.fixture
def folder(tmp_path):
    """A copy of a model that may be changed."""
    return pathlib.Path(shutil.copytree(MODEL, tmp_path / "model"))


def test_a_model_may_be_replaced_or_removed_while_it_is_open(folder, translator, unlimited):
    wanted, others = translator.translate(TEXT), unlimited.translate(TEXT)
    assert wanted != others
    with seqconv.Translator(folder) as model:
        folder.rename(folder.parent / "old")
        shutil.copytree(UNLIMITED, folder)
        assert model.translate(TEXT) == wanted
        with seqconv.Translator(folder) as new:
            assert new.translate(TEXT) == others
        shutil.rmtree(folder)
        shutil.rmtree(folder.parent / "old")
        assert model.translate([TEXT] * 50) == [wanted] * 50


@pytest.mark.parametrize("version", [0, 99, "1", None])
def test_another_version_is_named(folder, version):
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["format_version"] = version
    path.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(seqconv.ModelError, match="config.json.*version"):
        seqconv.Translator(folder)


def test_damaged_folders_are_named(folder):
    for name in sorted(file.name for file in folder.iterdir() if file.is_file()):
        path = folder / name
        data = path.read_bytes()
        for damaged in (None, b"", data[:len(data) // 2], os.urandom(len(data)), b"\0" * len(data)):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            try:
                with seqconv.Translator(folder) as model:
                    model.translate(TEXT)
            except seqconv.ModelError as error:
                assert str(folder) in str(error)
            if damaged is None:
                path.touch()
        path.write_bytes(data)


def test_opening_does_not_grow_memory():
    def resident():
        pages = pathlib.Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def rounds(count):
        for _ in range(count):
            with seqconv.Translator(MODEL) as model:
                model.translate(TEXT)
            with pytest.raises(seqconv.ModelError):
                seqconv.Translator("/nowhere")

    rounds(50)
    descriptors = len(os.listdir("/proc/self/fd"))
    growth = []
    for _ in range(5):
        before = resident()
        rounds(50)
        growth.append(resident() - before)
    assert min(growth) < 200_000, growth
    assert len(os.listdir("/proc/self/fd")) <= descriptors
