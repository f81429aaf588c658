"""Tests of the installed package `seqconv_torch`: see ../run_package_tests.py."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)
