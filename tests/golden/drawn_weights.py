"""Weights of golden models: numbers that a seed and a name give, exact in float32,
under the names that a checkpoint has for them.
"""

import dataclasses
import math

import numpy
import torch

import golden_format
from reference_model import END, FIRST_POSITION


@dataclasses.dataclass
class Names:
    """How a checkpoint names things."""

    main: bool = False  # as present fairseq; else as published and as TaLK's repository
    fused: bool = False  # query, key and value in one matrix, as in 2019
    tie: str = "all"  # all, decoder or none


@dataclasses.dataclass(frozen=True)
class Scales:
    """What makes a model of random weights one with clear opinions."""

    sharpness: float = 5.0  # of what the output layer sees
    end: float = 4.0  # added to the logit of </s>, so that sentences end
    mixing: float = 2.0  # of what a layer adds to its input, which ties would repeat
    feed: float = 0.5  # the same of the feed-forward network
    seen: float = 1.5  # the same of the attention to the source
    table: float = 0.5  # length of an embedding


# A model before any training.
FRESH = Scales(sharpness=1.0, end=0.0, mixing=1.0, feed=1.0, seen=1.0, table=1.0)


def uniform(seed, name, shape):
    """Numbers in [-1, 1) that a seed and a name give."""
    words = golden_format.words(f"{seed} {name}", math.prod(shape))
    drawn = (words >> numpy.uint64(40)).astype(numpy.float64) / 2.0**23 - 1
    return torch.from_numpy(drawn).view(shape)


def exact(tensor):
    return tensor.float().double()


class Drawing:
    def __init__(self, architecture, names, scales, seed):
        self.architecture, self.names, self.scales, self.seed = architecture, names, scales, seed
        self.weights = {}

    def add(self, name, shape, bound, centre=0.0):
        self.weights[name] = exact(centre + bound * uniform(self.seed, name, shape))

    def matrix(self, name, rows, columns, gain=1.0):
        """Outputs of about the size of `gain` for inputs of size one."""
        self.add(name, (rows, columns), gain * math.sqrt(3 / columns))

    def linear(self, name, rows, columns, gain=1.0):
        self.matrix(name + ".weight", rows, columns, gain)
        self.add(name + ".bias", (rows,), 0.1)

    def norm(self, name):
        self.add(name + ".weight", (self.architecture.dim,), 0.4, centre=1.0)
        self.add(name + ".bias", (self.architecture.dim,), 0.1)

    def conv_dim(self, stack):
        return stack.conv_dim or self.architecture.dim

    def convolution(self, name, side, stack, width):
        dim, heads = self.conv_dim(stack), stack.heads
        if stack.kind == "light":
            self.add(name + "conv.weight", (heads, 1, width), 2.0)
        elif stack.kind == "dynamic":
            self.matrix(name + "conv.weight_linear.weight", heads * width, dim, 2.0)
        else:
            self.linear(name + "conv.offsets", heads * (2 if side == "encoder" else 1), dim, 2.0)

    def attention(self, name):
        dim = self.architecture.dim
        if self.names.fused:
            self.matrix(name + "in_proj_weight", 3 * dim, dim, 2.0)
            self.add(name + "in_proj_bias", (3 * dim,), 0.1)
        else:
            for part in "qkv":
                self.linear(f"{name}{part}_proj", dim, dim, 2.0)
        self.linear(name + "out_proj", dim, dim, self.scales.seen)

    def layer(self, side, stack, i):
        dim, ffn = self.architecture.dim, stack.ffn_dim or self.architecture.ffn_dim
        name = f"{side}.layers.{i}."
        conv_dim = self.conv_dim(stack)
        self.linear(name + "linear1", (2 if self.architecture.glu else 1) * conv_dim, dim)
        self.convolution(name, side, stack, stack.widths[i])
        self.linear(name + "linear2", dim, conv_dim, self.scales.mixing)
        self.linear(name + "fc1", ffn, dim)
        self.linear(name + "fc2", dim, ffn, self.scales.feed)
        if side == "encoder":
            norms = ["layer_norm1", "layer_norm2"] if self.names.main else ["layer_norms.0", "layer_norms.1"]
        else:
            norms = ["conv_layer_norm", "final_layer_norm"]
            if self.architecture.encoder:
                norms.append("encoder_attn_layer_norm")
                self.attention(name + "encoder_attn.")
        for norm in norms:
            self.norm(name + norm)

    def embeddings(self, source, target):
        dim, tables = self.architecture.dim, {}
        if self.architecture.encoder:
            tables["encoder"] = source, dim
        if not self.architecture.encoder or self.names.tie != "all":
            tables["decoder"] = target, self.architecture.input_dim or dim
        for side, (words, width) in tables.items():
            self.matrix(f"{side}.embed_tokens.weight", words, width, self.scales.table)
        for side in ("encoder", "decoder") if self.architecture.encoder else ("decoder",):
            if learned := self.architecture.side(side).positions:
                self.add(f"{side}.embed_positions.weight", (learned + FIRST_POSITION, dim), 1.0)
        if self.architecture.input_dim:
            self.matrix("decoder.project_in_dim.weight", dim, self.architecture.input_dim)

    def bands(self, vocabulary):
        dim, factor = self.architecture.dim, self.architecture.factor
        for i, (begin, end) in enumerate(self.architecture.bands(vocabulary)):
            width = dim // factor**i
            table = f"decoder.embed_tokens.embeddings.{i}."
            self.matrix(table + "0.weight", end - begin, width, self.scales.table / factor ** (i / 2))
            self.matrix(table + "1.weight", dim, width, 1.0)

    def adaptive_softmax(self, vocabulary):
        """What it does not share with the input."""
        name, tails = "decoder.adaptive_softmax.", len(self.architecture.cutoffs)
        if self.names.tie != "none":
            self.matrix(name + "head.class_proj.weight", tails, self.architecture.dim)
            return
        width, (head, *rest) = self.output_dim(), self.architecture.bands(vocabulary)
        self.matrix(name + "head.weight", head[1] + tails, width)
        for i, (begin, end) in enumerate(rest):
            inner = width // self.architecture.factor ** (i + 1)
            self.matrix(f"{name}tail.{i}.0.weight", inner, width)
            self.matrix(f"{name}tail.{i}.2.weight", end - begin, inner)

    def output_dim(self):
        return self.architecture.output_dim or self.architecture.dim

    def output(self, target):
        if self.architecture.output_dim:
            self.matrix("decoder.project_out_dim.weight", self.output_dim(), self.architecture.dim)
        if self.architecture.cutoffs:
            self.adaptive_softmax(target)
        elif self.names.tie == "none":
            name = "decoder.output_projection.weight" if self.names.main else "decoder.embed_out"
            self.matrix(name, target, self.output_dim())

    def sharpen(self):
        """The decoder's last norm, so that its outputs are clear and </s> is likely."""
        names = [f"decoder.layers.{len(self.architecture.decoder.widths) - 1}.final_layer_norm"]
        if self.architecture.pre_norm_of("decoder"):
            names = ["decoder.layer_norm"] if self.architecture.encoder else []
        for name in names:
            self.weights[name + ".weight"] = exact(self.weights[name + ".weight"] * self.scales.sharpness)
            table = next(
                self.weights[n]
                for n in (
                    "decoder.embed_out",
                    "decoder.output_projection.weight",
                    "decoder.embed_tokens.weight",
                    "encoder.embed_tokens.weight",
                )
                if n in self.weights
            )
            end = table[END]
            if self.architecture.output_dim:  # as the last norm's channels see it
                end = end @ self.weights["decoder.project_out_dim.weight"]
            towards = end / (end @ end)
            self.weights[name + ".bias"] = exact(self.weights[name + ".bias"] + self.scales.end * towards)


def draw(architecture, names, scales, sizes, seed):
    """Weights in float64; sizes: words of source and target."""
    drawing = Drawing(architecture, names, scales, seed)
    if architecture.cutoffs and not architecture.input_dim:
        drawing.bands(sizes[1])
    else:
        drawing.embeddings(*sizes)
    drawing.output(sizes[1])
    for side, stack in (("encoder", architecture.encoder), ("decoder", architecture.decoder)):
        for i in range(len(stack.widths) if stack else 0):
            drawing.layer(side, stack, i)
        if stack and architecture.encoder and architecture.pre_norm_of(side):
            drawing.norm(side + ".layer_norm")
    drawing.sharpen()
    return drawing.weights


def copies(weights, names):
    """Names that a checkpoint repeats for a matrix that is there already."""
    shared = {}
    if names.tie == "all" and "encoder.embed_tokens.weight" in weights:
        shared["decoder.embed_tokens.weight"] = "encoder.embed_tokens.weight"
    table = shared.get("decoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    if names.main and names.tie != "none" and table in weights:
        shared["decoder.output_projection.weight"] = table
    bands = "decoder.embed_tokens.embeddings."
    if bands + "0.0.weight" in weights and names.tie != "none":
        softmax = "decoder.adaptive_softmax."
        shared[softmax + "head.word_proj.weight"] = bands + "0.0.weight"
        tails = sum(name.startswith(bands) for name in weights) // 2 - 1
        for i in range(tails):
            shared[f"{softmax}tail.{i}.0.weight"] = f"{bands}{i + 1}.1.weight"
            shared[f"{softmax}tail.{i}.2.weight"] = f"{bands}{i + 1}.0.weight"
    return shared
