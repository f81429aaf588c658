"""Convolutions, averages and attention: cases from the plainest definitions.

Each make_NAME(case, spec) draws the inputs of a case of operator NAME,
evaluates its formula in float64, sum by sum, and lets autograd find the
gradients. docs/semantics.md 1 has the formulas. `spec` holds the words of a
case (make_operators.py): numbers by their letters, and flags.
"""
import torch

NORMALIZATIONS = ("none", "softmax", "sigmoid", "tanh", "square", "abs", "l1", "l2", "abs_l1", "abs_l2")
EPSILON = 1e-6


def leaf(case, name, shape, unit=1 / 128):
    """An input that a gradient is asked for."""
    return given(case, name, case.draw(name, shape, unit))


def given(case, name, values):
    """The same with values that are there already."""
    case.give(name, values)
    return torch.tensor(case.inputs[name], requires_grad=True)


def differentiate(case, y, leaves, valid):
    """Adds y, grad_output and the gradient of sum(y * grad_output) for each leaf."""
    grad_output = torch.from_numpy(case.draw("grad_output", y.shape)) * valid
    case.give("grad_output", grad_output)
    case.expect("y", y.detach())
    add_gradients(case, (y * grad_output).sum(), leaves)


def add_gradients(case, loss, leaves):
    """Adds the gradient of `loss` for each leaf; zero where it plays no part."""
    for name, gradient in zip(leaves, torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)):
        case.expect("grad_" + name, torch.zeros_like(leaves[name]) if gradient is None else gradient)


def validity(case, spec):
    """M [B, T, 1]: 1 at tokens. Adds `lengths` to padded cases: the last row is full, the first is not."""
    padded = spec["padded"] or spec["leftpadded"]
    B, T = spec["b"] or (2 if padded else 1), spec["t"]
    if not padded:
        return torch.ones(B, T, 1, dtype=torch.float64)
    lengths = torch.from_numpy(case.integers("lengths", B, T)) + 1
    lengths[0] = 0 if spec["empty"] else min(int(lengths[0]), T - 1)
    lengths[-1] = T
    case.give("lengths", lengths)
    case.note(pad_side="left" if spec["leftpadded"] else "right")
    t = torch.arange(T)
    inside = t >= T - lengths[:, None] if spec["leftpadded"] else t < lengths[:, None]
    return inside[:, :, None].double()


def note_chunks(case, T):
    """Sizes that sum to T, none above half of it."""
    sizes, left = [], T
    for size in case.integers("chunks", T, max(1, (T + 1) // 2)) + 1:
        if left:
            sizes.append(min(int(size), left))
            left -= sizes[-1]
    case.note(chunks=sizes)


def linear(x, weight, bias=None):
    """x [..., C], weight [out, C] -> [..., out]."""
    y = (x.unsqueeze(-2) * weight).sum(-1)
    return y if bias is None else y + bias


def normalize(w, form):
    """Over the last dimension, the K taps."""
    if form == "softmax":
        exponentials = (w - w.detach().amax(-1, keepdim=True)).exp()
        return exponentials / exponentials.sum(-1, keepdim=True)
    if form.endswith("l1"):
        norm = w.abs().sum(-1, keepdim=True) + EPSILON
    elif form.endswith("l2"):
        norm = (w * w).sum(-1, keepdim=True).sqrt() + EPSILON
    else:
        norm = 1
    plain = {"sigmoid": lambda: 1 / (1 + (-w).exp()), "tanh": w.tanh, "square": lambda: w * w}
    if form in plain:
        return plain[form]()
    return (w.abs() if form.startswith("abs") else w) / norm


def convolve(x, taps, padding_left):
    """x [B, T, C], taps [B or 1, T or 1, H, K] -> [B, T, C]; x is zero outside the sequence."""
    T, C = x.shape[1:]
    H, K = taps.shape[2:]
    taps = taps.expand(-1, T, -1, -1).repeat_interleave(C // H, 2)  # [., T, C, K]
    outputs = []
    for t in range(T):
        met = [(j, t - padding_left + j) for j in range(K) if 0 <= t - padding_left + j < T]
        outputs.append(sum((taps[:, t, :, j] * x[:, s] for j, s in met), torch.zeros_like(x[:, t])))
    return torch.stack(outputs, 1)


def note_conv(case, spec):
    """Adds the metadata of a convolution; returns (C, H, K, padding_left, normalization)."""
    K, causal = spec["k"], bool(spec["causal"])
    form = next((form for form in NORMALIZATIONS if spec[form]), "softmax")
    padding_left = K - 1 if causal else K // 2
    case.note(kernel_size=K, heads=spec["h"], causal=causal, padding_left=padding_left, weight_norm=form)
    if causal:
        note_chunks(case, spec["t"])
    return spec["c"], spec["h"], K, padding_left, form


def dropped(case, spec, weights, shape):
    """DropConnect on what is normalised already."""
    if not spec["drop"]:
        return weights
    kept = case.integers("drop_mask", weights.numel(), 1000) >= 1000 * spec["drop"]
    case.give("drop_mask", kept.astype(float).reshape(shape))
    case.note(drop_p=spec["drop"])
    return weights * torch.from_numpy(case.inputs["drop_mask"]) / (1 - spec["drop"])


def finish_conv(case, spec, y, leaves, valid, bias):
    """Bias, mask and gradients."""
    if spec["bias"]:
        leaves[bias] = leaf(case, bias, [y.shape[2]])
        y = y + leaves[bias]
    case.note(**{bias: bool(spec["bias"])})
    differentiate(case, y * valid, leaves, valid)


def make_lightweight_conv(case, spec):
    C, H, K, padding_left, form = note_conv(case, spec)
    valid = validity(case, spec)
    leaves = {"x": leaf(case, "x", [*valid.shape[:2], C]), "weight": leaf(case, "weight", [H, K])}
    taps = dropped(case, spec, normalize(leaves["weight"], form), [H, K])
    y = convolve(leaves["x"] * valid, taps[None, None], padding_left)
    finish_conv(case, spec, y, leaves, valid, "bias")


def make_depthwise_conv(case, spec):
    spec.update({"h": spec["c"], "none": True})
    make_lightweight_conv(case, spec)


def make_dynamic_conv(case, spec):
    C, H, K, padding_left, form = note_conv(case, spec)
    valid = validity(case, spec)
    shape = [*valid.shape[:2], H, K]
    leaves = {"x": leaf(case, "x", [*shape[:2], C]), "logits": leaf(case, "logits", shape)}
    taps = dropped(case, spec, normalize(leaves["logits"], form), shape)
    y = convolve(leaves["x"] * valid, taps, padding_left)
    finish_conv(case, spec, y, leaves, valid, "conv_bias")


def make_dynamic_conv_layer(case, spec):
    C, H, K, padding_left, form = note_conv(case, spec)
    valid = validity(case, spec)
    shape = [*valid.shape[:2], H, K]
    leaves = {"x": leaf(case, "x", [*shape[:2], C]),
              "weight_linear.weight": leaf(case, "weight_linear.weight", [H * K, C], 1 / 512)}
    case.note(bias=bool(spec["linearbias"]))
    if spec["linearbias"]:
        leaves["weight_linear.bias"] = leaf(case, "weight_linear.bias", [H * K])
    x = leaves["x"] * valid
    logits = linear(x, leaves["weight_linear.weight"], leaves.get("weight_linear.bias")).view(shape)
    case.expect("logits", logits.detach())
    taps = dropped(case, spec, normalize(logits, form), shape)
    finish_conv(case, spec, convolve(x, taps, padding_left), leaves, valid, "conv_bias")


def make_weight_normalization(case, spec):
    form = next(form for form in NORMALIZATIONS if spec[form])
    case.note(weight_norm=form, kernel_size=spec["k"])
    w = leaf(case, "w", [spec["n"], spec["k"]], 2.0 ** -27 if spec["tiny"] else 1 / 128)
    differentiate(case, normalize(w, form), {"w": w}, torch.ones(1, 1))


def average(x):
    """The mean of what came so far."""
    means = [sum(x[:, s] for s in range(t + 1)) / (t + 1) for t in range(x.shape[1])]
    return torch.stack(means, 1)


def make_cumulative_average(case, spec):
    case.note(causal=True)
    note_chunks(case, spec["t"])
    valid = validity(case, spec)
    x = leaf(case, "x", [*valid.shape[:2], spec["c"]])
    differentiate(case, average(x * valid) * valid, {"x": x}, valid)


def gate(x, g, leaves):
    both = linear(torch.cat([x, g], -1), leaves["gate.weight"], leaves["gate.bias"])
    inputs, forgets = normalize(both, "sigmoid").chunk(2, -1)
    return inputs * x + forgets * g


def add_linear(case, leaves, name, outputs, inputs):
    leaves[name + ".weight"] = leaf(case, name + ".weight", [outputs, inputs], 1 / 512)
    leaves[name + ".bias"] = leaf(case, name + ".bias", [outputs])


def make_average_attention_gate(case, spec):
    C, shape = spec["c"], [spec["b"] or 1, spec["t"], spec["c"]]
    leaves = {"x": leaf(case, "x", shape), "g": leaf(case, "g", shape)}
    add_linear(case, leaves, "gate", 2 * C, 2 * C)
    differentiate(case, gate(leaves["x"], leaves["g"], leaves), leaves, torch.ones(1))


def make_average_attention(case, spec):
    C = spec["c"]
    case.note(causal=True, ffn=bool(spec["ffn"]))
    note_chunks(case, spec["t"])
    valid = validity(case, spec)
    leaves = {"x": leaf(case, "x", [*valid.shape[:2], C])}
    x = leaves["x"] * valid
    g = average(x)
    if spec["ffn"]:
        add_linear(case, leaves, "ffn.0", spec["ffn"], C)
        add_linear(case, leaves, "ffn.1", C, spec["ffn"])
        hidden = linear(g, leaves["ffn.0.weight"], leaves["ffn.0.bias"]).clamp(min=0)
        g = linear(hidden, leaves["ffn.1.weight"], leaves["ffn.1.bias"])
    add_linear(case, leaves, "gate", 2 * C, 2 * C)
    differentiate(case, gate(x, g, leaves) * valid, leaves, valid)


def attend(q, k, v, seen, H):
    """q [C] over the positions `seen` of k, v [T, C], head by head."""
    parts = []
    for head in torch.arange(len(q)).chunk(H):
        scores = (q[head] * k[seen][:, head]).sum(-1) * len(head) ** -0.5
        parts.append((normalize(scores, "softmax")[:, None] * v[seen][:, head]).sum(0))
    return torch.cat(parts)


def make_local_attention(case, spec):
    C, H, K, padding_left, _ = note_conv(case, spec)
    del case.metadata["weight_norm"]
    valid = validity(case, spec)
    B, T = valid.shape[:2]
    leaves = {name: leaf(case, name, [B, T, C]) for name in "qkv"}
    q, k, v = leaves.values()
    window = [[s for s in range(T) if 0 <= s - t + padding_left < K] for t in range(T)]
    case.expect("mask", [[float(s in seen) for s in range(T)] for seen in window])
    rows = []
    for b in range(B):
        for t in range(T):
            seen = [s for s in window[t] if valid[b, s]]
            rows.append(attend(q[b, t], k[b], v[b], seen, H) if valid[b, t] else torch.zeros_like(q[b, t]))
    differentiate(case, torch.stack(rows).view(B, T, C), leaves, valid)
