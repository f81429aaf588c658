"""Folders of golden data: written, and compared with what lies there.

A folder in memory is a dictionary of names to contents: text, what JSON can say
(.json), tensors by name (.safetensors), a checkpoint (.pt), or None for a file that
is written by hand.
"""

import argparse
import io
import json
import pathlib

import torch

import golden_format

TOLERANCE = 1e-6
DIGITS = 12


def rounded(value):
    """Numbers as they are written."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {str(key): rounded(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(entry) for entry in value]
    return value


def to_json(content):
    """A line a key, and a line an entry of lists of objects."""
    lines = []
    for key, value in rounded(content).items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            entries = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in value)
            text = f"[\n{entries}\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def to_safetensors(tensors):
    """Float64 becomes float32."""
    metadata = {"layout": "B,T,C", "pad": "1", "eos": "2"}
    arrays = {name: value.float() if value.is_floating_point() else value for name, value in tensors.items()}
    return golden_format.to_bytes(metadata, {name: value.numpy() for name, value in arrays.items()})


def from_safetensors(content):
    _, tensors = golden_format.from_bytes(content)
    return {name: torch.from_numpy(array.copy()) for name, array in tensors.items()}


def to_checkpoint(content):
    """In the container before PyTorch 1.6 where the content says `legacy`."""
    buffer = io.BytesIO()
    entries = {key: value for key, value in content.items() if key != "legacy"}
    torch.save(entries, buffer, _use_new_zipfile_serialization=not content.get("legacy", False))
    return buffer.getvalue()


def encode(name, content):
    if name.endswith(".json"):
        return to_json(content).encode()
    if name.endswith(".safetensors"):
        return to_safetensors(content)
    if name.endswith(".pt"):
        return to_checkpoint(content)
    return content.encode()


def decode(name, content):
    if name.endswith(".json"):
        return json.loads(content)
    if name.endswith(".safetensors"):
        return from_safetensors(content)
    if name.endswith(".pt"):
        # Only of this repository: a pickle from elsewhere may do anything.
        loaded = torch.load(io.BytesIO(content), weights_only=False)
        return {**loaded, "legacy": not content.startswith(b"PK")}
    return content.decode()


def write(folder, files):
    """Writes a folder anew. Files that hold the same already stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.name not in files:
            path.unlink()
    for name, content in files.items():
        if content is None:
            continue
        path = folder / name
        if not path.exists() or list(compare(name, decode(name, path.read_bytes()), content, exact=True)):
            path.write_bytes(encode(name, content))


def compare(where, found, wanted, exact=False):
    """Yields what differs: numbers by more than 1e-6 of themselves or of one."""
    if isinstance(wanted, argparse.Namespace):
        found, wanted = vars(found), vars(wanted)
    if isinstance(wanted, torch.Tensor):
        yield from compare_tensors(where, found, wanted, exact)
    elif isinstance(wanted, dict):
        for key in {**wanted, **found}:
            if (key in wanted) != (str(key) in found):
                yield f"{where}: '{key}' is {'not there' if key in wanted else 'there'}"
            else:
                yield from compare(f"{where}: {key}", found[str(key)], wanted[key], exact)
    elif isinstance(wanted, (list, tuple)):
        if len(found) != len(wanted):
            yield f"{where}: {len(found)} entries, not {len(wanted)}"
        for i, (a, b) in enumerate(zip(found, wanted)):
            yield from compare(f"{where}[{i}]", a, b, exact)
    elif isinstance(wanted, float):
        wanted = rounded(wanted)
        if found != wanted and not abs(found - wanted) <= (0 if exact else TOLERANCE) * max(
            1.0, abs(wanted)
        ):
            yield f"{where}: {found}, not {wanted}"
    elif found != wanted:
        shown = (repr(found)[:60], repr(wanted)[:60])
        yield f"{where}: {shown[0]}, not {shown[1]}"


def compare_tensors(where, found, wanted, exact):
    wanted = wanted.float() if wanted.is_floating_point() else wanted
    found = found.float() if found.is_floating_point() else found
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        yield f"{where}: {list(found.shape)} {found.dtype}, not {list(wanted.shape)} {wanted.dtype}"
    elif wanted.numel() and not torch.equal(found, wanted):
        difference = (found - wanted).abs() / wanted.abs().clamp(min=1)
        if exact or not difference.max() <= TOLERANCE:
            yield f"{where}: differs by up to {difference.max().item():g}"


def differences(folder, files):
    """What differs between a folder and what it should hold, a line each."""
    folder = pathlib.Path(folder)
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    for name in sorted(there | set(files)):
        if name not in there or name not in files:
            yield f"{folder.name}/{name}: {'missing' if name in files else 'nothing makes it'}"
        elif files[name] is not None:
            found = decode(name, (folder / name).read_bytes())
            yield from compare(f"{folder.name}/{name}", found, files[name])
