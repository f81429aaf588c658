#!/usr/bin/env python3
"""Checks that every include points downward in the house.

    python3 tools/check_layers.py [ROOT]

The table below is the ladder of docs/architecture.md. Reads the include lines
under include/, src/ and cli/ of ROOT (this repository) and prints FILE:LINE of

- an include of a layer that does not stand below,
- LibTorch in a layer that must do without it, directly or through headers,
- a private header (src/LAYER/) in another layer or in a public header,
- a header of the project that is not there.

Exit code 1 when there is one, else 0.
"""
import pathlib
import re
import sys

# What stands directly below each layer; what stands below that may be used too.
BELOW = {
    "base": [],
    "text": ["base"],
    "metrics": ["base"],
    "report": ["text"],
    "kernels": ["base"],
    "decode": ["base"],
    "data": ["base", "text"],
    "architecture": ["kernels"],
    "checkpoint": ["architecture", "text", "data", "decode"],
    "ops": ["kernels"],
    "nn": ["ops"],
    "models": ["architecture", "nn", "decode", "data"],
    "pipeline": ["checkpoint"],
    "verbs": ["pipeline"],
    "runtime": ["pipeline"],
    "api": ["runtime"],
    "torch_backend": ["pipeline", "models"],
    "train": ["torch_backend", "metrics"],
    "engine": ["train"],
    "mpi": ["train"],
    "nccl": ["train"],
    "cli": ["engine", "verbs", "runtime", "metrics", "report"],
}
# cli is the program, which starts without LibTorch; it may call what loads it.
TORCH_LAYERS = {"ops", "nn", "models", "torch_backend", "train", "engine", "nccl"}
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')
SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh", ".inc"}


def allowed_layers(layer):
    """The layer itself and everything below it."""
    allowed, waiting = set(), [layer]
    while waiting:
        name = waiting.pop()
        if name not in allowed:
            allowed.add(name)
            waiting += BELOW[name]
    return allowed


def includes(path):
    """(line number, is quoted, name) of each include line."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


class House:
    def __init__(self, root):
        self.root = root
        self.public = root / "include" / "seqconv"
        self.private = root / "src"
        self.errors = []

    def files(self):
        for folder in (self.public, self.private, self.root / "cli"):
            for path in sorted(folder.rglob("*")):
                if path.suffix in SUFFIXES:
                    yield path

    def layer(self, path):
        """The layer of a file of the project, or None."""
        for folder in (self.public, self.private):
            if folder in path.parents:
                parts = path.relative_to(folder).parts
                return parts[0] if len(parts) > 1 else None
        return "cli" if self.root / "cli" in path.parents else None

    def resolve(self, includer, name):
        """The file that an include means, if it looks like the project's."""
        if name.startswith("seqconv/"):
            return self.root / "include" / name
        beside = (includer.parent / name).resolve()
        if beside.exists():
            return beside
        if (self.private / name).exists():
            return (self.private / name).resolve()
        return None

    def complain(self, path, number, message):
        self.errors.append(
            f"{path.relative_to(self.root)}:{number}: {message}")

    def check_include(self, path, layer, number, quoted, name):
        if TORCH.match(name):
            if layer not in TORCH_LAYERS:
                self.complain(
                    path, number, f"{layer} is free of LibTorch, but includes "
                    f"<{name}>")
            return
        target = self.resolve(path, name)
        if target is None:
            if quoted:
                self.complain(path, number, f'"{name}" is not there')
            return
        if not target.exists():
            self.complain(path, number, f'"{name}" is not there')
            return
        other = self.layer(target)
        if other is None:
            self.complain(path, number, f'"{name}" is in no layer')
        elif other not in allowed_layers(layer):
            self.complain(
                path, number, f'{layer} does not stand on {other}, but '
                f'includes "{name}"')
        elif self.public in target.parents:
            return
        elif self.public in path.parents:
            self.complain(
                path, number, f'a public header includes the private "{name}"')
        elif other != layer:
            self.complain(
                path, number, f'{layer} includes "{name}", which is private '
                f"to {other}")

    def path_to_torch(self, path, seen):
        """Headers that lead from a file to LibTorch, or None."""
        for _, _, name in includes(path):
            if TORCH.match(name):
                return [f"<{name}>"]
            target = self.resolve(path, name)
            if target is None or target in seen or not target.exists():
                continue
            seen.add(target)
            rest = self.path_to_torch(target, seen)
            if rest:
                return [f'"{name}"'] + rest
        return None

    def check_indirect_torch(self, path, layer):
        chain = self.path_to_torch(path, {path})
        if chain and len(chain) > 1:
            self.complain(
                path, 1, f"{layer} is free of LibTorch, but gets it through " +
                " -> ".join(chain))

    def check(self):
        for path in self.files():
            layer = self.layer(path)
            if layer not in BELOW:
                self.complain(
                    path, 1, "is in no layer of tools/check_layers.py")
                continue
            for include in includes(path):
                self.check_include(path, layer, *include)
            if layer not in TORCH_LAYERS:
                self.check_indirect_torch(path, layer)
        return self.errors


def main(arguments):
    root = pathlib.Path(
        arguments[0] if arguments else pathlib.Path(__file__).parents[1])
    house = House(root.resolve())
    if not any(house.files()):
        sys.exit(f"check_layers.py: no sources under {root}")
    errors = house.check()
    for error in errors:
        print(error)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
