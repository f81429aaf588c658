#!/usr/bin/env python3
"""Checks that every include points downward, and prints the layers.

    python3 tools/check_layers.py [ROOT]

LAYERS below is the ladder of docs/architecture.md: each layer with the layers that it
includes. The public headers (include/seqconv) stand below all and include themselves
alone. Reads the include lines under include/ and src/ of ROOT (this repository) and
prints FILE:LINE of

- an include of a layer or a room that does not stand below,
- LibTorch in a file that must do without it, directly or through headers,
- a header of the project that is not there, or is included past the paths that begin
  in include/ and src/,
- a source that no CMakeLists.txt above it names, and no file of cmake/.

Then prints layers, arrows between them, and circles. Exit code 1 when a line was
printed or there is a circle, else 0.
"""
import pathlib
import re
import sys

# From the ground up. A layer may include what stands in its row.
LAYERS = {
    "base": "",
    "kernels": "base",
    "text": "base",
    "metrics": "base",
    "search": "base",
    "model": "base kernels text search",
    "pipeline": "base text search model",
    "runtime": "base kernels text metrics search model pipeline",
    "libtorch": "base kernels text search model pipeline",
    "train": "base kernels text metrics search model pipeline libtorch",
    "serve": "base text model runtime",
    "cli": "base kernels text metrics search model pipeline runtime serve train",
}
# Folders of a layer, from the ground up; "" is the layer's own.
ROOMS = {
    "text": ["", "corpus", "learning", "markup"],
    "model": ["", "checkpoint"],
    "runtime": ["", "api"],
    "libtorch": ["ops", "nn", "models", "backend"],
    "train": ["", "engine"],
    "cli": ["report", "verbs", ""],
}
# A library that builds alone (SEQCONV_OPS_ONLY).
OPERATORS = ("libtorch/ops", {"base", "kernels", "libtorch"})
TORCH_LAYERS = {"libtorch", "train"}
# What else must do without LibTorch: the library of MPI, what the program includes,
# and what the fuzzers compile.
TORCH_FREE = {
    "src/train/engine/engine.h",
    "src/train/processes/mpi_communicator.cpp",
    "src/train/processes/watchdog.cpp",
    "src/train/saved_state.cpp",
}
PUBLIC = "include/seqconv"
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCES = {".cpp", ".cc", ".cu"}
SUFFIXES = SOURCES | {".h", ".hpp", ".cuh", ".inc"}


def includes(path):
    """(line number, is quoted, name) of each include line."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def circles(table):
    """Layers that can be reached from themselves."""
    def above(layer):
        found, waiting = set(), table[layer].split()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += table[name].split()
        return found
    return [layer for layer in table if layer in above(layer)]


class House:
    def __init__(self, root):
        self.root = root
        self.errors = []
        self.arrows = set()

    def files(self):
        for folder in (PUBLIC, "src"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in SUFFIXES:
                    yield path

    def place(self, path):
        """(layer, room) of a file; the public headers are a layer called public."""
        parts = path.relative_to(self.root).parts
        if parts[0] == "include":
            return "public", ""
        layer = parts[1] if len(parts) > 2 else ""
        room = parts[2] if len(parts) > 3 else ""
        return layer, room if room in ROOMS.get(layer, []) else ""

    def resolve(self, name):
        """The file that an include means, if it looks like the project's."""
        if name.startswith("seqconv/"):
            return self.root / "include" / name
        return self.root / "src" / name if name.split("/")[0] in LAYERS else None

    def complain(self, path, number, message):
        self.errors.append(f"{path.relative_to(self.root)}:{number}: {message}")

    def may_include(self, place, other):
        (layer, room), (other_layer, other_room) = place, other
        if layer == "public" or other_layer == "public":
            return other_layer == "public"
        folder, allowed = OPERATORS
        if f"{layer}/{room}" == folder and other_layer not in allowed:
            return False
        if layer != other_layer:
            return other_layer in LAYERS[layer].split()
        rooms = ROOMS.get(layer, [""])
        return rooms.index(other_room) <= rooms.index(room)

    def is_torch_free(self, path):
        name = path.relative_to(self.root).as_posix()
        layer = self.place(path)[0]
        return layer not in TORCH_LAYERS | {"public"} or name in TORCH_FREE

    def check_include(self, path, number, quoted, name):
        if TORCH.match(name):
            if self.is_torch_free(path):
                self.complain(
                    path, number, f"is free of LibTorch, but includes <{name}>")
            return
        target = self.resolve(name)
        if target is None and not quoted:
            return
        if target is None or not target.exists():
            self.complain(path, number, f'"{name}" is not there')
            return
        place, other = self.place(path), self.place(target)
        if place[0] != other[0] and "public" not in (place[0], other[0]):
            self.arrows.add((place[0], other[0]))
        if not self.may_include(place, other):
            here, there = ("/".join(filter(None, p)) for p in (place, other))
            self.complain(
                path, number, f'{here} does not stand on {there}, but includes "{name}"')

    def path_to_torch(self, path, seen):
        """Headers that lead from a file to LibTorch, or None."""
        for _, _, name in includes(path):
            if TORCH.match(name):
                return [f"<{name}>"]
            target = self.resolve(name)
            if target is None or target in seen or not target.exists():
                continue
            seen.add(target)
            rest = self.path_to_torch(target, seen)
            if rest:
                return [f'"{name}"'] + rest
        return None

    def check_indirect_torch(self, path):
        chain = self.path_to_torch(path, {path})
        if chain and len(chain) > 1:
            self.complain(
                path, 1, "is free of LibTorch, but gets it through " + " -> ".join(chain))

    def check_is_built(self, path):
        lists = [file for folder in path.parents if self.root in folder.parents
                 if (file := folder / "CMakeLists.txt").exists()]
        lists += (self.root / "cmake").glob("*.cmake")
        if path.suffix in SOURCES and lists and not any(
                re.search(rf"\b{re.escape(path.name)}\b", file.read_text()) for file in lists):
            self.complain(path, 1, "is in no CMakeLists.txt")

    def check(self):
        for path in self.files():
            layer = self.place(path)[0]
            if layer != "public" and layer not in LAYERS:
                self.complain(path, 1, "is in no layer of tools/check_layers.py")
                continue
            for include in includes(path):
                self.check_include(path, *include)
            self.check_is_built(path)
            if self.is_torch_free(path):
                self.check_indirect_torch(path)
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
    round_about = circles(LAYERS)
    print(f"{len(LAYERS)} layers, {len(house.arrows)} arrows, "
          f"{len(round_about)} circles", *round_about)
    sys.exit(1 if errors or round_about else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
