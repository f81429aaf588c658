"""LightConv, DynamicConv and TaLK models by their definitions (docs/semantics.md 1
and 2), in float64: loops over taps and heads, no padding, nothing of seqconv.

Weights are a dictionary under the names that a checkpoint has for them; a matrix
that several parts share stands there once. Letters: B rows of equal length, T or S
positions, C channels, V words.
"""

import dataclasses
import functools
import math

import torch

EPSILON = 1e-5
FIRST_POSITION = 2
PAD, END, UNKNOWN = 1, 2, 3


@dataclasses.dataclass
class Side:
    """The layers of an encoder or a decoder."""

    kind: str  # light, dynamic or talk
    widths: tuple  # a layer: taps of its kernel, or how far TaLK reaches
    heads: int
    pre_norm: bool | None = None  # none: as the other side
    ffn_dim: int = 0  # inside the feed-forward networks; 0: as the other side
    conv_dim: int = 0  # channels of the convolutions; 0: as many as the model has
    positions: int | None = 0  # how many are learned; 0: sines instead, none: nothing


@dataclasses.dataclass
class Architecture:
    dim: int
    ffn_dim: int
    decoder: Side
    encoder: Side | None = None  # none: a language model
    glu: bool = True
    pre_norm: bool = False
    cutoffs: tuple = ()  # of the adaptive softmax, and of an adaptive input if there is one
    factor: int = 4
    input_dim: int = 0  # of the decoder's table of words; 0: as wide as the model
    output_dim: int = 0  # of the output matrix or the adaptive softmax

    def side(self, name):
        return self.encoder if name == "encoder" else self.decoder

    def pre_norm_of(self, side):
        own = self.side(side).pre_norm
        return self.pre_norm if own is None else own

    def bands(self, vocabulary):
        """Begin and end of each band of words."""
        ends = [*self.cutoffs, vocabulary]
        return list(zip([0, *ends[:-1]], ends))


def decoder_inputs(targets):
    """[B, T]: </s>, then the targets but for their last."""
    return torch.cat([torch.full_like(targets[:, :1], END), targets[:, :-1]], 1)


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + EPSILON) * weight + bias


@functools.lru_cache
def positions(count, dim):
    """[count, dim]: sines, then cosines."""
    half = dim // 2
    rows = []
    for place in range(FIRST_POSITION, FIRST_POSITION + count):
        angles = [place * 10000.0 ** (-i / (half - 1)) for i in range(half)]
        rows.append([math.sin(a) for a in angles] + [math.cos(a) for a in angles])
    return torch.tensor(rows, dtype=torch.float64)


def shifted(x, by):
    """y[:, t] = x[:, t + by], zero outside."""
    y = torch.zeros_like(x)
    steps = x.size(1)
    if abs(by) < steps:
        if by >= 0:
            y[:, : steps - by] = x[:, by:]
        else:
            y[:, -by:] = x[:, : steps + by]
    return y


def convolve(x, kernels, before):
    """x [B, T, C], kernels [..., H, K] of each or of all positions: tap j meets the
    input `j - before` positions further on."""
    heads, taps = kernels.shape[-2:]
    of_channel = torch.arange(x.size(2)) // (x.size(2) // heads)
    y = torch.zeros_like(x)
    for j in range(taps):
        y = y + kernels[..., j][..., of_channel] * shifted(x, j - before)
    return y


def window_sums(x, left, right, reach):
    """TaLK: sums of x over windows with broken ends, left and right [B, T, H]; no
    right one: up to the position itself."""
    steps, heads = x.size(1), left.size(2)
    place = torch.arange(steps, dtype=torch.float64)
    here = place.view(1, -1, 1)
    begin = (here - left * reach).clamp(0, steps - 1).unsqueeze(-1)
    end = here.expand_as(left) if right is None else (here + right * reach).clamp(0, steps - 1)
    end = end.unsqueeze(-1)
    first, last = begin.detach(), end.detach()
    share = ((place >= first) & (place <= last)).double()  # [B, T, H, T]: of each input
    share = share + (place == first.floor()) * (first.ceil() - begin)
    share = share + (place == last.ceil()) * (end - last.floor())
    by_head = x.view(x.size(0), steps, heads, -1)
    y = torch.einsum("bthi,bihc->bthc", share, by_head)
    return y.reshape(x.shape) / (reach * (1 if right is None else 2) + 1)


def distance_from_whole(places, last):
    """Smallest distance of places from whole numbers, among those inside 0 ... last."""
    inside = places[(places > -0.5) & (places < last + 0.5)]
    return (inside - inside.round()).abs().min().item() if inside.numel() else math.inf


class ReferenceModel:
    """`kink` is how near anything came so far to a place without a derivative: ReLU's
    zero, a whole position of TaLK. Arithmetic of less precision than that may go on
    with another gradient."""

    def __init__(self, architecture, weights):
        self.architecture = architecture
        self.weights = weights
        self.kink = math.inf

    def weight(self, *names):
        """What a checkpoint has under one of these names."""
        return next(self.weights[name] for name in names if name in self.weights)

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, *names):
        parts = [self.weight(*(f"{name}.{part}" for name in names)) for part in ("weight", "bias")]
        return layer_norm(x, *parts)

    def embed(self, tokens, side):
        dim = self.architecture.dim
        if self.has_bands():
            rows = self.embed_in_bands(tokens)
        else:
            rows = self.weight(f"{side}.embed_tokens.weight", "encoder.embed_tokens.weight")[tokens]
        rows = self.projected(rows * math.sqrt(dim), f"{side}.project_in_dim.weight")
        learned, steps = self.architecture.side(side).positions, tokens.size(1)
        if learned is None:
            return rows
        if learned:
            assert steps <= learned, (side, steps)
            table = self.weights[f"{side}.embed_positions.weight"]
            return rows + table[FIRST_POSITION : FIRST_POSITION + steps]
        return rows + positions(steps, dim)

    def projected(self, x, name):
        """By a linear map without bias, if there is one."""
        return x @ self.weights[name].T if name in self.weights else x

    def has_bands(self):
        return "decoder.embed_tokens.embeddings.0.0.weight" in self.weights

    def band(self, i, part):
        return self.weights[f"decoder.embed_tokens.embeddings.{i}.{part}.weight"]

    def embed_in_bands(self, tokens):
        rows = torch.zeros(*tokens.shape, self.architecture.dim, dtype=torch.float64)
        for i, (begin, end) in enumerate(self.architecture.bands(self.vocabulary())):
            inside = (tokens >= begin) & (tokens < end)
            rows[inside] = self.band(i, 0)[tokens[inside] - begin] @ self.band(i, 1).T
        return rows

    def vocabulary(self):
        if self.has_bands():
            return sum(len(self.band(i, 0)) for i in range(len(self.architecture.cutoffs) + 1))
        return len(self.output_table())

    def convolution(self, x, name, side, layer):
        stack = self.architecture.side(side)
        width, heads = stack.widths[layer], stack.heads
        if stack.kind == "talk":
            offsets = torch.sigmoid(self.linear(x, name + "conv.offsets"))
            right = offsets[..., heads:] if side == "encoder" else None
            here = torch.arange(x.size(1)).view(1, -1, 1)
            for places in (
                here - offsets[..., :heads] * width,
                *([] if right is None else [here + right * width]),
            ):
                self.kink = min(self.kink, distance_from_whole(places.detach(), x.size(1) - 1))
            return window_sums(x, offsets[..., :heads], right, width)
        before = width // 2 if side == "encoder" else width - 1
        if stack.kind == "light":
            logits = self.weights[name + "conv.weight"].view(heads, width)
        else:
            logits = x @ self.weights[name + "conv.weight_linear.weight"].T
            logits = logits.view(*x.shape[:2], heads, width)
        return convolve(x, torch.softmax(logits, -1), before)

    def block(self, x, side, layer, record):
        name = f"{side}.layers.{layer}."
        hidden = self.linear(x, name + "linear1")
        if self.architecture.glu:
            value, gate = hidden.chunk(2, -1)
            hidden = value * torch.sigmoid(gate)
        mixed = self.convolution(hidden, name, side, layer)
        record[f"{side[:3]}.layer{layer}.conv_in"] = hidden
        record[f"{side[:3]}.layer{layer}.conv_out"] = mixed
        return self.linear(mixed, name + "linear2")

    def feed_forward(self, x, name):
        hidden = self.linear(x, name + "fc1")
        talk = self.architecture.decoder.kind == "talk"
        if not talk:
            self.kink = min(self.kink, hidden.detach().abs().min().item())
        hidden = hidden * torch.sigmoid(hidden) if talk else hidden.clamp(min=0)
        return self.linear(hidden, name + "fc2")

    def projection(self, x, attention, part):
        """Query, key or value; those of 2019 lie one below the other."""
        if attention + "in_proj_weight" not in self.weights:
            return self.linear(x, f"{attention}{part}_proj")
        dim = self.architecture.dim
        rows = slice("qkv".index(part) * dim, ("qkv".index(part) + 1) * dim)
        weight, bias = (self.weights[attention + "in_proj_" + kind][rows] for kind in ("weight", "bias"))
        return x @ weight.T + bias

    def attention(self, x, memory, attention):
        heads = self.architecture.decoder.heads
        q, k, v = (
            self.projection(at, attention, part).chunk(heads, -1)
            for at, part in ((x, "q"), (memory, "k"), (memory, "v"))
        )
        seen = []
        for h in range(heads):
            scores = q[h] @ k[h].transpose(1, 2) / math.sqrt(q[h].size(-1))
            seen.append(torch.softmax(scores, -1) @ v[h])
        return self.linear(torch.cat(seen, -1), attention + "out_proj")

    def residual(self, x, part, *norms):
        if self.architecture.pre_norm_of(norms[0].partition(".")[0]):
            return x + part(self.norm(x, *norms))
        return self.norm(x + part(x), *norms)

    def encode(self, source, record=None):
        """source [B, S] -> states [B, S, C]; `record` gets what layers saw."""
        record = {} if record is None else record
        x = record["enc.embed"] = self.embed(source, "encoder")
        for i in range(len(self.architecture.encoder.widths)):
            name = f"encoder.layers.{i}."
            x = self.residual(
                x,
                lambda y: self.block(y, "encoder", i, record),
                name + "layer_norms.0",
                name + "layer_norm1",
            )
            x = self.residual(
                x, lambda y: self.feed_forward(y, name), name + "layer_norms.1", name + "layer_norm2"
            )
            record[f"enc.layer{i}"] = x
        return self.norm(x, "encoder.layer_norm") if self.architecture.pre_norm_of("encoder") else x

    def decode(self, inputs, memory=None, record=None):
        """inputs [B, T], memory [B, S, C] or none -> [B, T, C]."""
        record = {} if record is None else record
        x = record["dec.embed"] = self.embed(inputs, "decoder")
        for i in range(len(self.architecture.decoder.widths)):
            name = f"decoder.layers.{i}."
            x = self.residual(x, lambda y: self.block(y, "decoder", i, record), name + "conv_layer_norm")
            if memory is not None:
                x = self.residual(
                    x,
                    lambda y: self.attention(y, memory, name + "encoder_attn."),
                    name + "encoder_attn_layer_norm",
                )
            x = self.residual(x, lambda y: self.feed_forward(y, name), name + "final_layer_norm")
            record[f"dec.layer{i}"] = x
        last = self.architecture.pre_norm_of("decoder") and self.architecture.encoder
        return self.norm(x, "decoder.layer_norm") if last else x

    def output_table(self):
        return self.weight(
            "decoder.embed_out",
            "decoder.output_projection.weight",
            "decoder.embed_tokens.weight",
            "encoder.embed_tokens.weight",
        )

    def softmax_parts(self, hidden):
        """Log-probabilities of the head, and of each tail among its words. It shares
        words and projections with the input, or has all of its own."""
        hidden = self.projected(hidden, "decoder.project_out_dim.weight")
        softmax = "decoder.adaptive_softmax."
        if softmax + "head.weight" in self.weights:
            head = hidden @ self.weights[softmax + "head.weight"].T
        else:
            classes = self.weights[softmax + "head.class_proj.weight"]
            head = hidden @ torch.cat([self.band(0, 0), classes]).T
        tails = []
        for i in range(len(self.architecture.cutoffs)):
            own = [self.weights.get(f"{softmax}tail.{i}.{part}.weight") for part in (0, 2)]
            if own[0] is None:
                own = [self.band(i + 1, 1).T, self.band(i + 1, 0)]
            tails.append(torch.log_softmax(hidden @ own[0].T @ own[1].T, -1))
        return torch.log_softmax(head, -1), tails

    def log_probabilities(self, hidden):
        """[B, T, C] -> [B, T, V]."""
        if not self.architecture.cutoffs:
            hidden = self.projected(hidden, "decoder.project_out_dim.weight")
            return torch.log_softmax(hidden @ self.output_table().T, -1)
        head, tails = self.softmax_parts(hidden)
        words = self.architecture.cutoffs[0]
        parts = [head[..., :words]]
        parts += [head[..., words + i : words + i + 1] + tail for i, tail in enumerate(tails)]
        return torch.cat(parts, -1)

    def forward(self, source, target, record=None):
        """Log-probabilities [B, T, V] of targets [B, T] that end in </s>."""
        memory = None if source is None else self.encode(source, record)
        return self.log_probabilities(self.decode(decoder_inputs(target), memory, record))
