#!/usr/bin/env python3
"""Makes the golden models of tests/golden/models and the golden trajectories of
tests/golden/trajectories (their README.md files say what they hold).

    python tests/golden/make_checkpoints.py [NAME ...]          # writes them
    python tests/golden/make_checkpoints.py --check [NAME ...]  # compares instead

Seeds are those that lie there already; --search looks for the first one whose
choices are clear. Needs torch, sacremoses, subword-nmt and sacrebleu. Everything is computed
in float64 from definitions, without seqconv; numbers of another PyTorch may differ
in the last digits, which --check forgives. It ends with 1 where something differs.
"""

import argparse
import functools
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402

import golden_folder  # noqa: E402
import golden_models  # noqa: E402
import golden_recipes  # noqa: E402
import golden_text  # noqa: E402
import golden_trajectories  # noqa: E402


def model_folder(recipe, seed, choosing):
    separate = recipe.sizes[0] != recipe.sizes[1]
    symbols = [
        golden_models.words("source" if separate and side == 0 else "joined", size)
        for side, size in enumerate(recipe.sizes)
    ]
    pairs = golden_models.pairs_of(recipe)
    weights, tensors, outputs = golden_models.make(recipe, symbols, pairs, seed, choosing)
    files = {
        "model.pt": golden_recipes.checkpoint(recipe, weights),
        "outputs.safetensors": tensors,
        "outputs.json": outputs,
        "README.md": golden_recipes.readme(recipe, outputs),
    }
    if recipe.architecture.encoder:
        files |= {
            "dict.xa.txt": golden_models.dictionary(symbols[0]),
            "dict.xb.txt": golden_models.dictionary(symbols[1]),
        }
    else:
        files["dict.txt"] = golden_models.dictionary(symbols[1])
    return files


def makers():
    """Names to the file of a folder that holds its seed, and what makes the folder."""
    found = {
        recipe.name: ("outputs.json", functools.partial(model_folder, recipe))
        for recipe in golden_recipes.RECIPES
    }
    name = golden_text.RECIPE.name
    found[name] = ("golden.json", functools.partial(golden_text.make, HERE / "models" / name))
    return found


def made(folder, file, make, search):
    if not search and (folder / file).exists():
        stored = json.loads((folder / file).read_text(encoding="utf-8"))
        return make(stored["seed"], choosing=False)
    return golden_models.first_clear(functools.partial(make, choosing=True))


def folders(arguments):
    """Folders and what they should hold."""
    for name, (file, make) in makers().items():
        folder = HERE / "models" / name
        if arguments.names and name not in arguments.names:
            continue
        if arguments.check and not (folder / file).exists():
            # Without its seed a folder cannot be made.
            yield folder, {name: None for name in (*(path.name for path in folder.glob("*")), file)}
        else:
            yield folder, made(folder, file, make, arguments.search)
    if not arguments.names or "trajectories" in arguments.names:
        folder = HERE / "trajectories"
        yield folder, golden_trajectories.make(folder, arguments.search)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="folders; default: all")
    parser.add_argument("--check", action="store_true", help="compare with what lies there; write nothing")
    parser.add_argument("--search", action="store_true", help="look for seeds anew")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # so small a tensor loses by a second one
    different = []
    for folder, files in folders(arguments):
        if arguments.check:
            different += golden_folder.differences(folder, files)
        else:
            golden_folder.write(folder, files)
            print(f"{folder.name}: written")
    print("".join(line + "\n" for line in different), end="")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
