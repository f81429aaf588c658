"""Golden tensors as files, cases of operators, and numbers that follow from names alone.

README.md beside this file says what a case holds. NumPy is all that this
module needs: neither files nor inputs depend on a release of PyTorch.
"""
import hashlib
import json
import pathlib

import numpy as np

SEED = 1
SUFFIX = ".safetensors"
TYPES = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "I64": np.dtype("<i8")}
BOUND = 1e-12


class GoldenError(Exception):
    """What is wrong with a folder; one line for each difference."""


def words(key, count):
    """`count` words of 64 bits that follow from a text: SplitMix64, begun at its SHA-256."""
    start = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little")
    with np.errstate(over="ignore"):
        z = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def integers(key, count, limit):
    """`count` integers in 0 ... limit - 1 that follow from a text."""
    return ((words(key, count) >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32)).astype(np.int64)


def as_text(value):
    """A value as metadata holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(as_text(entry) for entry in value)
    return str(value)


class Case:
    """One case in the making: metadata, inputs and outputs. `presets` are inputs that are not drawn."""

    def __init__(self, op, words, presets=None):
        self.name = "_".join([op, *words.split()])
        self.metadata = {"op": op, "case": self.name, "seed": str(SEED)}
        self.inputs = {}
        self.outputs = {}
        self.presets = presets or {}

    def note(self, **metadata):
        self.metadata.update({key: as_text(value) for key, value in metadata.items()})

    def integers(self, name, count, limit):
        """As above; no two names of all cases share numbers."""
        return integers(f"{SEED}/{self.name}/{name}", count, limit)

    def draw(self, name, shape, unit=1 / 128):
        """Numbers other than zero in +-255 units: a power of two as unit makes them exact in bfloat16."""
        if name in self.presets:
            return np.reshape(self.presets[name], shape).astype(float)
        drawn = self.integers(name, int(np.prod(shape)), 510) - 255
        return ((drawn + (drawn >= 0)) * unit).reshape(shape)

    def give(self, name, values):
        """An input."""
        self.inputs[name] = _array(values)

    def expect(self, name, values):
        """An output."""
        self.outputs[name] = _array(values)

    @property
    def file_name(self):
        return self.name + SUFFIX

    def tensors(self):
        return {**self.inputs, **self.outputs}


def _array(values):
    values = np.asarray(values)
    return np.asarray(values, TYPES["I64" if values.dtype.kind in "iu" else "F64"], order="C")


def to_bytes(metadata, tensors):
    """A safetensors file; the same bytes for the same content, whatever the order it came in."""
    header, data = {"__metadata__": dict(sorted(metadata.items()))}, b""
    for name, array in sorted(tensors.items()):
        kind = next(key for key, dtype in TYPES.items() if dtype == array.dtype)
        raw = array.tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def from_bytes(raw):
    """{metadata, tensors} of a file."""
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(raw[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return metadata, tensors


def write(cases, folder):
    """One file a case; other cases that lie there go."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*" + SUFFIX):
        path.unlink()
    for case in cases:
        (folder / case.file_name).write_bytes(to_bytes(case.metadata, case.tensors()))


def largest_error(got, want):
    """max |got - want| / max |want|, or the former where all of `want` is zero; infinite for a NaN."""
    if want.size == 0:
        return 0.0
    error = np.abs(got - want).max()
    scale = np.abs(want).max()
    return float("inf") if np.isnan(error) else error / scale if scale > 0 else error


def differences_of(case, raw):
    """What differs between a case and the bytes of its file."""
    metadata, tensors = from_bytes(raw)
    if metadata != case.metadata:
        yield "metadata"
    for name in sorted(set(tensors) ^ set(case.tensors())):
        yield f"{name} is in one of the two only"
    for name, want in case.tensors().items():
        got = tensors.get(name)
        if got is None:
            continue
        if got.dtype != want.dtype or got.shape != want.shape:
            yield f"type or shape of {name}"
        elif name in case.inputs or want.dtype.kind == "i":
            if got.tobytes() != want.tobytes():
                yield f"{name} is not the same bit for bit"
        elif not largest_error(got, want) <= BOUND:
            yield f"{name} is off by {largest_error(got, want):.1e}"


def check(cases, folder):
    """GoldenError that names each file of `folder` that differs, is missing or is not a case."""
    folder = pathlib.Path(folder)
    there = {path.name for path in folder.glob("*")}
    wanted = {case.file_name: case for case in cases}
    wrong = [f"{name}: missing" for name in sorted(set(wanted) - there)]
    wrong += [f"{name}: no case of this script" for name in sorted(there - set(wanted))]
    for name in sorted(there & set(wanted)):
        wrong += [f"{name}: {text}" for text in differences_of(wanted[name], (folder / name).read_bytes())]
    if wrong:
        raise GoldenError("\n".join(wrong))
