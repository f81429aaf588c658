"""Tests of the installed package `seqconv`: see ../run_runtime_tests.py."""

import pathlib

import pytest

import seqconv

FOLDERS = pathlib.Path(__file__).parents[3] / "tests/model/folders"
MODEL = FOLDERS / "translation_2"
# Without learned positions: nothing is too long for it.
UNLIMITED = FOLDERS / "translation_1"
LANGUAGE_MODEL = FOLDERS / "language_1"
PROTECTED = FOLDERS / "protected_pairs_6"


@pytest.fixture(scope="session")
def translator():
    with seqconv.Translator(MODEL) as model:
        yield model


@pytest.fixture(scope="session")
def unlimited():
    with seqconv.Translator(UNLIMITED) as model:
        yield model


@pytest.fixture(scope="session")
def generator():
    with seqconv.Generator(LANGUAGE_MODEL) as model:
        yield model


@pytest.fixture(scope="session")
def scorer():
    with seqconv.Scorer(MODEL) as model:
        yield model


@pytest.fixture
def endless():
    """Options of a request to `unlimited` that takes far longer than any test waits."""
    return {"beam": 400, "min_length": 1_000_000, "max_length_b": 1_000_000}
