"""All that the reference computes with a golden model, and its words and rows."""

import itertools
import math
import pathlib

import torch

import drawn_weights
import reference_search
import reference_training
from reference_model import ReferenceModel

HERE = pathlib.Path(__file__).resolve().parent
LEAST_GAP = 2e-4  # of scores of an n-best list, or of a chosen word's lead


LEAST_CHOICE_GAP = 1e-5  # between neighbours of any ranking in a search
LEAST_KINK = 3e-6  # of training in float64; one in float32 is off by a tenth of that
LONGEST = 60
IDS = {"bos": 0, "pad": 1, "eos": 2, "unk": 3}
ADAM = {"name": "adam", "lr": 0.002, "betas": [0.9, 0.98], "eps": 1e-8, "weight_decay": 0.01, "clip_norm": 0}


class Unclear(Exception):
    """Two choices of a search are too near for float32 to tell, or the model repeats
    itself so much that a wrong one would not be seen."""


def first_clear(make):
    """What make(seed) gives for the first seed, from 1, that is clear."""
    for seed in itertools.count(1):
        try:
            return make(seed)
        except Unclear:
            continue


def words(name, count):
    """Made-up words of a dictionary, all different; the last one fills it up."""
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    found = {}
    for place in itertools.count():
        draws = (drawn_weights.uniform(place, "words " + name, (3,)) + 1) / 2
        picked = [syllables[int(x * len(syllables))] for x in draws.tolist()]
        found["".join(picked[: 1 + (len(found) > 15) + (len(found) > 50)])] = None
        if len(found) == count - 5:
            return [*found, "madeupword0000"]


def dictionary(symbols):
    return "".join(f"{word} {max(1000 // (i + 1), 1)}\n" for i, word in enumerate(symbols))


def sentence(recipe, side, row, length):
    """Ids that end in </s>; some rows have an <unk>."""
    size = recipe.sizes[side]
    draws = (drawn_weights.uniform(row, f"{recipe.name} row {side}", (length,)) + 1) / 2
    ids = [4 + int(x * x * (size - 4)) for x in draws.tolist()]
    if row in (2, 5) and (side == 0 or not recipe.architecture.encoder):
        ids[length // 2] = 3
    return torch.tensor([*ids, 2])


def pairs_of(recipe):
    """Rows (source or none, target); row 0 is empty."""
    if not recipe.architecture.encoder:
        lengths = (0, 1, 4, 11, 17, 24, 9, 13)
        rows = [sentence(recipe, 1, i, n) for i, n in enumerate(lengths)]
        for row, tail in ((6, 0), (7, 1)) if recipe.architecture.cutoffs else ():
            rows[row][2] = rows[row][5] = recipe.architecture.cutoffs[tail] + 1
        return [(None, row) for row in rows]
    lengths = ((0, 0), (1, 2), (4, 3), (7, 9), (9, 6), (12, 13), (15, 5), (6, 18))
    return [(sentence(recipe, 0, i, a), sentence(recipe, 1, i, b)) for i, (a, b) in enumerate(lengths)]


def padded(rows, fill=0):
    """Rows [T, ...] as one tensor [N, longest T, ...]."""
    longest = max(len(row) for row in rows)
    out = torch.full((len(rows), longest, *rows[0].shape[1:]), fill, dtype=rows[0].dtype)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def token_tensors(pairs):
    sources, targets = zip(*pairs)
    inputs = [torch.cat([torch.tensor([2]), target[:-1]]) for target in targets]
    tensors = {
        "tgt_tokens": padded(targets, 1),
        "prev_output_tokens": padded(inputs, 1),
        "tgt_lengths": torch.tensor([len(row) for row in targets]),
    }
    if sources[0] is not None:
        tensors |= {
            "src_tokens": padded(sources, 1),
            "src_lengths": torch.tensor([len(row) for row in sources]),
        }
    return tensors


def outputs_of(model, pairs, rows_with_layers):
    """Tensors of every row alone: encoder_out, logprobs, target_logprobs, and the
    inside of the layers of some rows."""
    tensors, states, every, chosen = token_tensors(pairs), [], [], []
    with torch.no_grad():
        for row, (source, target) in enumerate(pairs):
            record = {}
            one = None if source is None else source.unsqueeze(0)
            found = model.forward(one, target.unsqueeze(0), record)[0]
            every.append(found)
            chosen.append(found.gather(1, target.unsqueeze(1))[:, 0])
            if source is not None:
                states.append(model.encode(one)[0])
            if row in rows_with_layers:
                tensors |= {f"{name}.row{row}": value for name, value in record.items()}
    tensors |= {"logprobs": padded(every), "target_logprobs": padded(chosen)}
    if states:
        tensors["encoder_out"] = padded(states)
    return tensors


def training_of(model, recipe, pairs):
    """Losses, gradients and three updates on some rows as one batch."""
    rows = [1, 2, 4, 5] if recipe.architecture.encoder else [0, 1, 2, 3, 4]
    batch = [pairs[row] for row in rows]
    tokens = reference_training.target_tokens(batch)
    if recipe.architecture.cutoffs:
        forms = {"adaptive": "xent", "full": "xent"}
    else:
        forms = {"all": "all", "others": "others", "xent": "xent"}
    kept = "adaptive" if recipe.architecture.cutoffs else "all" if recipe.architecture.encoder else "xent"
    training, tensors = {"rows": rows, "ntokens": tokens}, {}
    for name, form in forms.items():
        loss, _, grads = reference_training.gradients(model, batch, form)
        training[name] = {
            "loss_nats_sum": loss,
            "loss_nats_per_token": loss / tokens,
            "gradient_norm": reference_training.norm(grads.values()),
        }
        if name == kept:
            training[name]["gradient_norm_of"] = {n: reference_training.norm([g]) for n, g in grads.items()}
            tensors |= {"grad." + n: grads[n] for n in recipe.gradients}
    updated = ReferenceModel(model.architecture, {n: w.clone() for n, w in model.weights.items()})
    adam = reference_training.Adam(updated.weights, ADAM["betas"], ADAM["eps"], ADAM["weight_decay"])
    steps = []
    for _ in range(3):
        loss, _, grads = reference_training.gradients(updated, batch, forms[kept])
        steps.append({"loss_nats_sum": loss, "gradient_norm": reference_training.norm(grads.values())})
        adam.update(updated.weights, grads, ADAM["lr"])
    after, _ = reference_training.batch_loss(updated, batch, forms[kept])
    kink = min(model.kink, updated.kink)
    if kink < LEAST_KINK:
        raise Unclear
    training |= {
        "smallest_kink": kink,
        "optimizer": ADAM,
        "steps": steps,
        "loss_nats_sum_after": after.item(),
        "loss_form": kept,
    }
    return training, tensors | {"after3." + n: updated.weights[n] for n in recipe.updated}


def text_of(ids, symbols):
    known = ["<s>", "<pad>", "</s>", "<unk>", *symbols]
    return " ".join(known[i] for i in ids if i != 2)


def searches(model, pairs, symbols, choosing):
    """Records of rows, and the smallest gaps of all searches."""
    rows, gaps, endless = [], [math.inf, math.inf], 0
    for row, (source, target) in enumerate(pairs):
        found = {beam: reference_search.translate(model, source, beam, longest=LONGEST) for beam in (5, 1)}
        for result in found.values():
            gaps = [min(gaps[0], result.score_gap), min(gaps[1], result.choice_gap)]
            if choosing and (gaps[0] < LEAST_GAP or gaps[1] < LEAST_CHOICE_GAP):
                raise Unclear
        endless += max(len(hypothesis["tokens"]) for hypothesis in found[5].hypotheses) > LONGEST
        if choosing and endless > 1:
            raise Unclear
        rows.append(
            {
                "row": row,
                "source": text_of(source.tolist(), symbols[0]),
                "target": text_of(target.tolist(), symbols[1]),
                "beam5": found[5].hypotheses,
                "greedy": found[1].hypotheses[0],
                "text": text_of(found[5].hypotheses[0]["tokens"], symbols[1]),
            }
        )
    return rows, gaps


def continuations(model, pairs, symbols):
    prompts = [[], pairs[1][1][:1].tolist(), pairs[3][1][:6].tolist(), pairs[5][1][:14].tolist()]
    found, lead = [], math.inf
    for prompt in prompts:
        tokens, scores, least = reference_search.continue_greedily(model, prompt, 20)
        lead = min(lead, least)
        found.append(
            {
                "prompt": prompt,
                "prompt_text": text_of(prompt, symbols),
                "tokens": tokens,
                "logprobs": scores,
                "text": text_of(tokens, symbols),
            }
        )
    return found, lead


def row_losses(tensors, pairs, symbols):
    rows = []
    for row, (_, target) in enumerate(pairs):
        nats = -tensors["target_logprobs"][row].sum().item()
        rows.append(
            {
                "row": row,
                "target": text_of(target.tolist(), symbols),
                "loss_nats_sum": nats,
                "perplexity": math.exp(nats / len(target)),
            }
        )
    return rows


def totals(tensors, pairs):
    nats = -tensors["target_logprobs"].sum().item()
    tokens = reference_training.target_tokens(pairs)
    bits = nats / math.log(2)
    return {
        "ntokens": tokens,
        "loss_nats_sum": nats,
        "loss_base2_per_token": bits / tokens,
        "loss_base2_sum": bits,
        "perplexity": 2 ** (bits / tokens),
    }


def check_variety(texts, least):
    """What a model says must have `least` different words, and differ from row to row."""
    if sum(len(set(text)) for text in texts) < least * len(texts) or len(
        {tuple(text) for text in texts}
    ) < 0.7 * len(texts):
        raise Unclear


def check_greedy(model, pairs, least=3):
    """The same of greedy translations, most of which must come to an end: cheap."""
    longest = 20
    found = []
    for source, _ in pairs:
        found.append(reference_search.translate(model, source, 1, longest=longest).hypotheses[0]["tokens"])
        if sum(len(tokens) > longest for tokens in found) > len(pairs) / 4:
            raise Unclear
    check_variety(found, least)


def decoded(model, recipe, symbols, pairs, choosing):
    """What the model says for its rows; Unclear where that is not clear enough."""
    if recipe.architecture.encoder:
        if choosing:
            check_greedy(model, pairs)
        rows, (gap, choice_gap) = searches(model, pairs, symbols, choosing)
        found = {"smallest_gap": gap, "rows": rows, "smallest_choice_gap": choice_gap}
    else:
        greedy, gap = continuations(model, pairs, symbols[1])
        if choosing:
            check_variety([case["tokens"] for case in greedy], 7)
        if min(min(case["tokens"]) for case in greedy) < 4:
            raise Unclear  # `seqconv generate` bans <s> and <unk> too
        found = {"smallest_gap": gap, "greedy": greedy}
    if gap < LEAST_GAP or found.get("smallest_choice_gap", 1) < LEAST_CHOICE_GAP:
        raise Unclear
    return found


def make(recipe, symbols, pairs, seed, choosing):
    """(weights, tensors, outputs) of a recipe; Unclear where a gap is too small, or where
    a seed is being chosen and the model says little."""
    weights = drawn_weights.draw(recipe.architecture, recipe.names, recipe.scales, recipe.sizes, seed)
    model = ReferenceModel(recipe.architecture, weights)
    found = decoded(model, recipe, symbols, pairs, choosing)
    tensors = outputs_of(model, pairs, rows_with_layers=(2, 5) if recipe.architecture.encoder else (2, 4))
    if not recipe.architecture.encoder:
        found["rows"] = row_losses(tensors, pairs, symbols[1])
    if recipe.architecture.cutoffs:
        loss, left_out = reference_training.quirk_loss(model, pairs)
        found |= {"adaptive_criterion_loss_nats_sum": loss, "targets_with_index_1_in_their_tail": left_out}
    training, more = training_of(model, recipe, pairs)
    outputs = {"vocab_size": recipe.sizes[1], **IDS, "seed": seed, **totals(tensors, pairs), **found}
    return weights, tensors | more, outputs | {"training": training}
