"""Softmax, losses, positions, learning rates and optimizers: cases from the
plainest definitions, as in sequence_operators.py."""
import math

import numpy as np
import torch

from sequence_operators import add_gradients, differentiate, leaf, linear

PAD = 1


def note_bands(case, spec):
    """Adds the metadata of adaptive input and softmax; returns the bands as (first word, size)."""
    cutoffs = spec["bands"]
    case.note(cutoffs=cutoffs, factor=spec["factor"], vocabulary=cutoffs[-1], pad_index=PAD)
    return [(first, end - first) for first, end in zip([0, *cutoffs], cutoffs)]


def words(case, name, shape, limit, forced):
    """Ids below `limit`, the first ones as `forced` says."""
    ids = case.integers(name, math.prod(shape), limit)
    ids[:len(forced)] = forced
    return ids.reshape(shape)


def draw_table(case, name, shape, padding):
    """Rows of words; that of <pad> is zero where the table holds it."""
    table = case.draw(name, shape)
    if padding:
        table[PAD] = 0
    case.give(name, table)
    return torch.tensor(table, requires_grad=True)


def log_softmax(z):
    z = z - z.detach().amax(-1, keepdim=True)
    return z - z.exp().sum(-1, keepdim=True).log()


def head_of(case, spec, leaves, x, bands):
    """Log probabilities of the first band's words and of each tail."""
    C, count, tails = spec["c"], bands[0][1], len(bands) - 1
    if not spec["tied"]:
        leaves["head.weight"] = leaf(case, "head.weight", [count + tails, C], 1 / 256)
        return log_softmax(linear(x, leaves["head.weight"]))
    dim = spec["dim"] or C
    leaves["embed.0.weight"] = draw_table(case, "embed.0.weight", [count, dim], padding=True)
    leaves["class_proj.weight"] = leaf(case, "class_proj.weight", [tails, C], 1 / 256)
    projected = x
    if dim != C:
        leaves["head.proj.weight"] = leaf(case, "head.proj.weight", [dim, C], 1 / 512)
        projected = linear(x, leaves["head.proj.weight"])
    entries = linear(projected, leaves["embed.0.weight"]), linear(x, leaves["class_proj.weight"])
    return log_softmax(torch.cat(entries, -1))


def tail_of(case, spec, leaves, x, i, count):
    """Log probabilities of tail i's words, given the tail."""
    C = spec["c"]
    width = (spec["dim"] or C) // spec["factor"] ** (i + 1)
    if spec["tiedproj"]:
        name = f"embed.{i + 1}.proj.weight"
        leaves[name] = leaf(case, name, [C, width], 1 / 256)
        projection = leaves[name].t()
    else:
        name = f"tail.{i}.proj.weight"
        leaves[name] = leaf(case, name, [width, C], 1 / 256)
        projection = leaves[name]
    name = f"embed.{i + 1}.weight" if spec["tied"] else f"tail.{i}.out.weight"
    leaves[name] = leaf(case, name, [count, width], 1 / 256)
    return log_softmax(linear(linear(x, projection), leaves[name]))


def make_adaptive_softmax(case, spec):
    bands = note_bands(case, spec)
    case.note(tied=bool(spec["tied"]), tied_proj=bool(spec["tiedproj"]),
              ignore_tail_index_1=bool(spec["ignored"]))
    shape, second = [spec["b"] or 2, spec["t"]], [first + 1 for first, _ in bands[1:]]
    target = words(case, "target", shape, spec["bands"][-1], [PAD, *(first for first, _ in bands)])
    target -= np.isin(target, second)  # the second words of tails: only where asked for
    if spec["tail"]:
        target[1, :len(second)] = second
    case.give("target", target)
    leaves = {"x": leaf(case, "x", [*shape, spec["c"]], 1 / 256)}
    head = head_of(case, spec, leaves, leaves["x"], bands)
    count = bands[0][1]
    logs, head_logs = [head[..., :count]], [head[..., :count]]
    for i, (_, size) in enumerate(bands[1:]):
        cluster = head[..., count + i:count + i + 1]
        logs.append(cluster + tail_of(case, spec, leaves, leaves["x"], i, size))
        head_logs.append(cluster.expand(*shape, size))
    log_prob, head_prob = torch.cat(logs, -1), torch.cat(head_logs, -1)
    case.expect("log_prob", log_prob.detach())
    loss = torch.zeros((), dtype=torch.float64)
    for b, t in np.ndindex(*shape):
        word = int(target[b, t])
        counted = head_prob if spec["ignored"] and word in second else log_prob
        loss = loss - (counted[b, t, word] if word != PAD else 0)
    case.expect("loss", loss.detach())
    add_gradients(case, loss, leaves)


def make_adaptive_input(case, spec):
    bands, C = note_bands(case, spec), spec["c"]
    dim, shape = spec["dim"] or C, [spec["b"] or 2, spec["t"]]
    case.note(initial_dim=dim, dim=C)
    tokens = words(case, "tokens", shape, spec["bands"][-1], [PAD, *(first for first, _ in bands)])
    case.give("tokens", tokens)
    leaves, y = {}, torch.zeros(*shape, C, dtype=torch.float64)
    for i, (first, size) in enumerate(bands):
        width, name = dim // spec["factor"] ** i, f"embed.{i}"
        leaves[name + ".weight"] = draw_table(case, name + ".weight", [size, width], padding=i == 0)
        leaves[name + ".proj.weight"] = leaf(case, name + ".proj.weight", [C, width], 1 / 256)
        vectors = linear(leaves[name + ".weight"], leaves[name + ".proj.weight"])
        for b, t in np.ndindex(*shape):
            if tokens[b, t] != PAD and first <= tokens[b, t] < first + size:
                place = torch.zeros(*shape, 1, dtype=torch.float64)
                place[b, t] = 1
                y = y + place * vectors[int(tokens[b, t]) - first]
    differentiate(case, y, leaves, torch.ones(1))


def make_label_smoothed_cross_entropy(case, spec):
    V, shape = spec["v"], [spec["b"] or 2, spec["t"]]
    e, form = spec["eps"], "others" if spec["others"] else "all"
    case.note(label_smoothing=float(e), smoothing_form=form, vocabulary=V, pad_index=PAD)
    target = words(case, "target", shape, V, [PAD])
    case.give("target", target)
    logits = leaf(case, "logits", [*shape, V])
    log_prob = log_softmax(logits)
    loss, nll, count = 0, 0, 0
    for b, t in np.ndindex(*shape):
        if target[b, t] == PAD:
            continue
        this, every = -log_prob[b, t, int(target[b, t])], -log_prob[b, t].sum()
        share = e / V if form == "all" else e / (V - 1)
        loss = loss + (1 - e - (0 if form == "all" else share)) * this + share * every
        nll, count = nll + this, count + 1
    case.expect("loss", loss.detach())
    case.expect("nll_loss", nll.detach())
    case.expect("ntokens", count)
    case.expect("perplexity", math.exp(nll.detach() / count))
    add_gradients(case, loss, {"logits": logits})


def make_sinusoidal_positions(case, spec):
    dim, B, T = spec["dim"], spec["b"] or 2, spec["t"]
    side = "left" if spec["leftpadded"] else "right"
    case.note(dim=dim, pad_index=PAD, pad_side=side)
    tokens = case.integers("tokens", B * T, 40).reshape(B, T) + 4
    for b, length in enumerate(case.integers("lengths", B, T) + 1):
        if b or B == 1:  # the first row is full
            padding = range(T - length) if side == "left" else range(length, T)
            tokens[b, list(padding) if B > 1 else [T - 1]] = PAD
    positions, y = np.full((B, T), PAD), np.zeros((B, T, dim))
    half = dim // 2
    for b in range(B):
        position = PAD
        for t in range(T):
            if tokens[b, t] == PAD:
                continue
            position += 1
            positions[b, t] = position
            for i in range(half):
                angle = position * 10000.0 ** (-i / (half - 1))
                y[b, t, i], y[b, t, half + i] = math.sin(angle), math.cos(angle)
    case.give("tokens", tokens)
    case.expect("positions", positions)
    case.expect("y", y)


def warm_up(n, start, high, updates):
    return start + (high - start) * n / updates


def make_lr_inverse_sqrt(case, spec):
    high, start, updates = spec["lr"], spec["start"], spec["warmup"]
    case.note(lr=high, warmup_init_lr=float(start), warmup_updates=updates)
    near = updates - 1, updates, updates + 1
    steps = sorted({0, 1, updates // 2, *near, 4 * updates, 9 * updates + 1, 10 ** 6})
    case.give("step", steps)
    case.expect("lr", [warm_up(n, start, high, updates) if n < updates else high * math.sqrt(updates / n)
                       for n in steps])


def make_lr_cosine(case, spec):
    high, low, start, updates = spec["lr"], spec["low"], spec["start"], spec["warmup"]
    first, growth, shrink = float(spec["period"]), float(spec["mult"] or 1), float(spec["shrink"] or 1)
    case.note(max_lr=float(high), min_lr=low, warmup_init_lr=float(start), warmup_updates=updates,
              period_updates=first, period_mult=growth, lr_shrink=shrink)

    def rate(n):
        if n < updates:
            return warm_up(n, start, high, updates)
        since, period, s = float(n - updates), first, 1.0
        while since >= period:
            since, period, s = since - period, period * growth, s * shrink
        return s * low + s * (high - low) / 2 * (1 + math.cos(math.pi * since / period))

    borders = [updates + round(first * part) for part in (0, 0.25, 0.5, 1, 2, 3, 4.5)]
    steps = sorted({0, updates // 2, *borders, *(border + 1 for border in borders)})
    case.give("step", steps)
    case.expect("lr", [rate(n) for n in steps])


def optimizer_inputs(case, spec):
    """(param [N], grads [S, N], lr [S]); rates change where `changing`."""
    S, N = spec["steps"], spec["n"]
    rates = [0.05 / (1 + s) if spec["changing"] else 0.02 for s in range(S)]
    param, grads = case.draw("param", [N]), case.draw("grads", [S, N], 1 / 256)
    for name, values in (("param", param), ("grads", grads), ("lr", rates)):
        case.give(name, values)
    return param, grads, rates


def make_adam(case, spec):
    b1, b2, eps, decay = spec["first"], spec["second"], spec["eps"] or 1e-8, float(spec["decay"])
    case.note(beta1=b1, beta2=b2, eps=eps, weight_decay=decay)
    p, grads, rates = optimizer_inputs(case, spec)
    m, v = np.zeros_like(p), np.zeros_like(p)
    states = {"params": [], "exp_avg": [], "exp_avg_sq": []}
    for n, (g, lr) in enumerate(zip(grads, rates), start=1):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        p = p - lr * decay * p
        p = p - lr * math.sqrt(1 - b2 ** n) / (1 - b1 ** n) * m / (np.sqrt(v) + eps)
        for name, value in zip(states, (p, m, v)):
            states[name].append(value)
    for name, values in states.items():
        case.expect(name, values)


def make_nag(case, spec):
    mu, decay = spec["momentum"], float(spec["decay"])
    case.note(momentum=mu, weight_decay=decay)
    p, grads, rates = optimizer_inputs(case, spec)
    buffer, before = np.zeros_like(p), rates[0]
    params, buffers = [], []
    for g, lr in zip(grads, rates):
        p = p * (1 - lr * decay)
        p = p + mu * mu * lr / before * buffer - (1 + mu) * lr * g
        buffer = mu * lr / before * buffer - lr * g
        before = lr
        params.append(p)
        buffers.append(buffer)
    case.expect("params", params)
    case.expect("momentum_buffer", buffers)


def make_clip_grad_norm(case, spec):
    shapes = ([5, 3], [7], [2, 2, 2])[:spec["tensors"]]
    most = float(spec["max"])
    case.note(max_norm=most)
    grads = [case.draw(f"grad.{i}", shape) for i, shape in enumerate(shapes)]
    norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
    factor = min(1.0, most / (norm + 1e-6)) if most > 0 else 1.0
    for i, g in enumerate(grads):
        case.give(f"grad.{i}", g)
        case.expect(f"clipped.{i}", g * factor)
    case.expect("total_norm", norm)
    case.expect("factor", factor)
