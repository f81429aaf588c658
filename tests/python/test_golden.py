"""tests/golden holds what its makers make, and damage is noticed."""
import hashlib
import pathlib
import shutil
import sys

import pytest

torch = pytest.importorskip("torch")

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import golden_format  # noqa: E402
import make_checkpoints  # noqa: E402
import make_operators  # noqa: E402

CONV = "lightweight_conv_causal_k2_h4_c8_t5.safetensors"


@pytest.fixture(scope="module")
def cases():
    return make_operators.make_all()


@pytest.fixture
def copy(tmp_path):
    """The folder once more, to be damaged."""
    return shutil.copytree(GOLDEN / "operators", tmp_path / "operators")


def differences(cases, folder):
    try:
        golden_format.check(cases, folder)
    except golden_format.GoldenError as error:
        return str(error).splitlines()
    return []


def damage(path, change):
    """Rewrites a file after change(metadata, tensors)."""
    metadata, tensors = golden_format.from_bytes(path.read_bytes())
    tensors = {name: array.copy() for name, array in tensors.items()}
    change(metadata, tensors)
    path.write_bytes(golden_format.to_bytes(metadata, tensors))


@pytest.fixture
def made(cases, monkeypatch):
    """The script makes its cases no second time."""
    monkeypatch.setattr(make_operators, "make_all", lambda: cases)


def test_the_script_finds_its_own_files_unchanged(made, capsys):
    assert make_operators.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


def test_golden_models_and_trajectories_made_anew_are_the_same(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["make_checkpoints.py", "--check"])
    assert make_checkpoints.main() == 0, capsys.readouterr().out


def test_the_script_names_what_is_missing_and_fails(made, copy, capsys):
    (copy / CONV).unlink()
    assert make_operators.main(["--check", "--out", str(copy)]) == 1
    assert capsys.readouterr().out == f"{CONV}: missing\n"


def test_every_output_of_every_operator_is_compared(cases, copy):
    """1e-9 of a tensor's largest value, in each output of one case an operator."""
    by_operator = {case.metadata["op"]: case for case in cases}
    for case in by_operator.values():
        path, whole = copy / case.file_name, (copy / case.file_name).read_bytes()
        for name, values in case.outputs.items():
            def nudge(_, tensors, name=name, values=values):
                flat = tensors[name].reshape(-1)
                flat[-1] += 1 if values.dtype.kind == "i" else 1e-9 * (abs(values).max() or 1)
            damage(path, nudge)
            found = list(golden_format.differences_of(case, path.read_bytes()))
            assert len(found) == 1 and found[0].startswith(f"{name} "), found
            path.write_bytes(whole)


@pytest.mark.parametrize("change, message", [
    (lambda metadata, tensors: metadata.update(causal="false"), "metadata"),
    (lambda metadata, tensors: metadata.pop("heads"), "metadata"),
    (lambda metadata, tensors: tensors.update(y=tensors["y"] * float("nan")), "y is off by inf"),
    (lambda metadata, tensors: tensors.update(x=tensors["x"] * (1 + 2.0 ** -52)),
     "x is not the same bit for bit"),
    (lambda metadata, tensors: tensors.pop("grad_x"), "grad_x is in one of the two only"),
    (lambda metadata, tensors: tensors.update(bias=tensors["x"]), "bias is in one of the two only"),
    (lambda metadata, tensors: tensors.update(y=tensors["y"][:, 1:]), "type or shape of y"),
])
def test_other_damage_is_named(cases, copy, change, message):
    damage(copy / CONV, change)
    assert differences(cases, copy) == [f"{CONV}: {message}"]


def test_a_file_too_many_is_named(cases, copy):
    shutil.copy(copy / CONV, copy / "more.safetensors")
    assert differences(cases, copy) == ["more.safetensors: no case of this script"]


def test_inputs_are_exact_in_bfloat16(cases):
    for case in cases:
        for name, values in case.inputs.items():
            if values.dtype.kind == "f" and name != "lr":
                exact = torch.from_numpy(values)
                assert exact.bfloat16().double().equal(exact), f"{case.name}: {name}"


def test_drawn_numbers_do_not_change():
    """SplitMix64 of SHA-256: the first values of one key, from an evaluation with Python's integers."""
    mask, z = 2 ** 64 - 1, int.from_bytes(hashlib.sha256(b"key").digest()[:8], "little")
    wanted = []
    for _ in range(5):
        z = z + 0x9E3779B97F4A7C15 & mask
        mixed = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & mask
        wanted.append(((mixed ^ mixed >> 31) >> 32) * 510 >> 32)
    assert golden_format.integers("key", 5, 510).tolist() == wanted
