"""The golden trajectories: training from drawn weights, update by update."""

import collections
import json
import math
import sys

import torch

import golden_models
import golden_recipes
import reference_batches
import reference_training
from drawn_weights import FRESH, Names, draw
from golden_models import HERE
from golden_recipes import layers
from reference_model import Architecture, ReferenceModel

sys.path.insert(0, str(HERE.parent / "support"))
import made_up_text  # noqa: E402
import made_up_translation  # noqa: E402

SEED, UPDATES, MAX_TOKENS, MULTIPLE = 1, 40, 72, 8
RATE, WARMUP, START, CLIP, FORM = 4e-3, 24, 1e-7, 1.5, "all"
PAIRS = {"train": 112, "valid": 21}
LENGTHS = {(4, 6), (5, 6), (5, 7), (6, 8), (7, 8)}  # few, so that the reference is quick
KINDS = {
    "dynamicconv": layers("dynamic", 4, 3, 7),
    "lightconv": layers("light", 4, 3, 7),
    "talk": layers("talk", 4, 1, 3),
}
SETTINGS = {
    "dynamicconv": ["{side}.block=dynamicconv"],
    "lightconv": ["{side}.block=lightconv"],
    "talk": ["{side}.block=talk", "{side}.kernel_sizes=[]", "{side}.max_offsets=[1,3]"],
}
CONFIG = f"""# seqconv's side of the golden trajectories; run in this folder (README.md).
[data]
train_source = "train.xa"
train_target = "train.xb"
valid_source = "valid.xa"
valid_target = "valid.xb"

[text]
subword = "none"
joined = true
source_dictionary = "dict.txt"
target_dictionary = "dict.txt"

[model]
dim = 16
ffn_dim = 32
norm = "post"
tie = "all"
dropout = 0.0
attention_dropout = 0.0
activation_dropout = 0.0
input_dropout = 0.0
weight_dropout = 0.0

[model.encoder]
layers = 2
block = "dynamicconv"
kernel_sizes = [3, 7]
heads = 4

[model.decoder]
layers = 2
block = "dynamicconv"
kernel_sizes = [3, 7]
heads = 4

[batching]
max_tokens = {MAX_TOKENS}
multiple = {MULTIPLE}

[training]
seed = {SEED}
max_updates = {UPDATES}
label_smoothing = 0.1
smoothing_form = "{FORM}"
log_every = 1
threads = 1

[optimizer]
kind = "adam"
beta1 = 0.9
beta2 = 0.98
epsilon = 1e-8
clip_norm = {CLIP}

[schedule]
kind = "inverse_sqrt"
learning_rate = {RATE}
warmup_updates = {WARMUP}
warmup_start = {START}
"""


def corpus():
    """Pairs of lines, `train` and `valid`."""
    draw_ = made_up_text.Draw("golden trajectories")
    found = {}
    for name, count in PAIRS.items():
        found[name] = []
        while len(found[name]) < count:
            pair = made_up_translation.sentence(draw_)
            if tuple(len(side.split()) for side in pair) in LENGTHS:
                found[name].append(pair)
    return found


def dictionary(pairs):
    """Words that come twice, by falling count; the others are <unk>."""
    counts = collections.Counter(word for pair in pairs for side in pair for word in side.split())
    rows = sorted(
        ((word, count) for word, count in counts.items() if count > 1), key=lambda row: (-row[1], row[0])
    )
    return rows + [(f"madeupword{i:04}", 0) for i in range(-(len(rows) + 4) % 8)]


def validation(model, pairs):
    loss, nll = reference_training.batch_loss(model, pairs, FORM)
    tokens = reference_training.target_tokens(pairs)
    return {
        "all": {
            "sentences": len(pairs),
            "tokens": tokens,
            "loss_base2": loss.item() / tokens / math.log(2),
            "nll_base2": nll.item() / tokens / math.log(2),
        }
    }


def trajectory(kind, weights, architecture, train, valid):
    model = ReferenceModel(architecture, weights)
    batches = reference_batches.batches(train, MAX_TOKENS, MULTIPLE, SEED)
    adam = reference_training.Adam(weights, (0.9, 0.98), 1e-8)
    settings = [
        f"model.{each.format(side=side)}" for side in ("encoder", "decoder") for each in SETTINGS[kind]
    ]
    found = {
        "kind": kind,
        "settings": settings,
        "batches": len(batches),
        "valid_before": validation(model, valid),
        "updates": [],
    }
    for n in range(UPDATES):
        epoch, place = n // len(batches) + 1, n % len(batches)
        batch = [train[row] for row in batches[reference_batches.order(len(batches), SEED, epoch)[place]]]
        rate = reference_training.inverse_root(n, RATE, WARMUP, START)
        loss, nll, grads = reference_training.gradients(model, batch, FORM)
        tokens = reference_training.target_tokens(batch)
        found["updates"].append(
            {
                "update": n + 1,
                "sentences": len(batch),
                "target_tokens": tokens,
                "learning_rate": rate,
                "loss_base2": loss / tokens / math.log(2),
                "nll_base2": nll / tokens / math.log(2),
                "gradient_norm": reference_training.norm(grads.values()),
            }
        )
        adam.update(weights, reference_training.clipped(grads, CLIP), rate)
        if model.kink < golden_models.LEAST_KINK:
            raise golden_models.Unclear
    return found | {"valid_after": validation(model, valid), "smallest_kink": model.kink}


def start(kind, seed, words):
    """Initial weights, and the recipe of their checkpoint."""
    stack = KINDS[kind]
    recipe = golden_recipes.Recipe(
        kind,
        "",
        Architecture(16, 32, encoder=stack, decoder=stack),
        Names(),
        (words, words),
        gradients=(),
        updated=(),
    )
    return recipe, draw(recipe.architecture, recipe.names, FRESH, recipe.sizes, seed)


def make_kind(kind, seed, words, pairs):
    recipe, weights = start(kind, seed, words)
    initial = golden_recipes.checkpoint(recipe, {name: value.clone() for name, value in weights.items()})
    run = trajectory(kind, weights, recipe.architecture, pairs["train"], pairs["valid"])
    return {f"init.{kind}.pt": initial, f"trajectory.{kind}.json": {"seed": seed, **run}}


def make_any(kind, words, pairs, stored):
    """With the seed that is stored, or with the first one that keeps off kinks."""
    if stored is not None:
        return make_kind(kind, stored, words, pairs)
    return golden_models.first_clear(lambda seed: make_kind(kind, seed, words, pairs))


def stored_seed(folder, kind):
    path = folder / f"trajectory.{kind}.json"
    return json.loads(path.read_text(encoding="utf-8"))["seed"] if path.exists() else None


def make(folder, search):
    """All files of the folder, with the seeds that lie there or with new ones."""
    lines = corpus()
    rows = dictionary(lines["train"])
    ids = {word: i + 4 for i, (word, _) in enumerate(rows)}
    pairs = {
        name: [
            tuple(torch.tensor([*(ids.get(word, 3) for word in side.split()), 2]) for side in pair)
            for pair in part
        ]
        for name, part in lines.items()
    }
    files = {
        "dict.txt": "".join(f"{word} {count}\n" for word, count in rows),
        "seqconv.toml": CONFIG,
        "README.md": None,
    }
    for name, part in lines.items():
        for side, language in enumerate(("xa", "xb")):
            files[f"{name}.{language}"] = "".join(pair[side] + "\n" for pair in part)
    for kind in KINDS:
        files |= make_any(kind, len(ids) + 4, pairs, None if search else stored_seed(folder, kind))
    return files
