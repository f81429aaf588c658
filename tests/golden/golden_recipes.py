"""What each golden model is, its checkpoint and its README."""

import argparse
import dataclasses
import textwrap

import torch

import drawn_weights
from drawn_weights import Names, Scales
from reference_model import Architecture, Side

AFTER_UPDATES = "1e-5"  # bound for parameters after three updates in float32


@dataclasses.dataclass
class Recipe:
    name: str
    what: str  # a sentence for the README
    architecture: Architecture
    names: Names
    sizes: tuple  # words of source and target; a language model's twice
    gradients: tuple  # names of parameters whose gradients are kept
    updated: tuple  # names of parameters that are kept after three updates
    scales: Scales = Scales()
    legacy: bool = False
    configured: bool = False  # settings under cfg, as present fairseq has them


def settings(recipe, languages=("xa", "xb")):
    """What a checkpoint says of its model's training."""
    architecture, talk = recipe.architecture, recipe.architecture.decoder.kind == "talk"
    name = ("talkconv" if talk else "lightconv") + ("" if architecture.encoder else "_lm")
    found = {
        "arch": name,
        "weight_softmax": True,
        "dropout": 0.1,
        "lr": [0.002],
        "adam_betas": "(0.9, 0.98)",
        "share_all_embeddings": bool(architecture.encoder) and recipe.names.tie == "all",
        "share_decoder_input_output_embed": recipe.names.tie != "none" and not architecture.cutoffs,
    }
    if architecture.encoder:
        found |= {"source_lang": languages[0], "target_lang": languages[1], "left_pad_source": "True"}
    if architecture.cutoffs:
        cutoffs, tied = ",".join(map(str, architecture.cutoffs)), recipe.names.tie != "none"
        found |= {"adaptive_input": tied, "tie_adaptive_weights": tied, "tie_adaptive_proj": tied}
        for part in ("input", "softmax") if tied else ("softmax",):
            found |= {f"adaptive_{part}_cutoff": cutoffs, f"adaptive_{part}_factor": architecture.factor}
    for part in ("input", "output"):
        if width := getattr(architecture, part + "_dim"):
            found[f"decoder_{part}_dim"] = width
    for side, text in (("encoder", "source"), ("decoder", "target")):
        stack = architecture.side(side)
        found[f"max_{text}_positions"] = (stack or architecture.decoder).positions or 128
        if stack:
            if stack.positions:
                found[side + "_learned_pos"] = True
            if stack.positions is None:
                found["no_token_positional_embeddings"] = True
            found |= {
                f"{side}_embed_dim": architecture.dim,
                f"{side}_ffn_embed_dim": stack.ffn_dim or architecture.ffn_dim,
                f"{side}_layers": len(stack.widths),
                f"{side}_attention_heads": stack.heads,
                f"{side}_kernel_size_list": list(stack.widths),
                f"{side}_glu": architecture.glu,
                f"{side}_normalize_before": architecture.pre_norm_of(side),
            }
            if stack.conv_dim:
                found[f"{side}_conv_dim"] = stack.conv_dim
            if not talk:
                kind = {"light": "lightweight", "dynamic": "dynamic"}[stack.kind]
                found[f"{side}_conv_type"] = kind
    return found


def checkpoint(recipe, weights, languages=("xa", "xb")):
    """What a training run saves, but for the optimizer."""
    state = {name: value.float() for name, value in weights.items()}
    for copy, owner in drawn_weights.copies(weights, recipe.names).items():
        state[copy] = state[owner]
    for side in ("encoder", "decoder") if recipe.architecture.encoder else ("decoder",):
        stack = recipe.architecture.side(side)
        state[side + ".version"] = torch.tensor([2.0])
        if not recipe.names.main and stack.positions == 0:
            state[side + ".embed_positions._float_tensor"] = torch.zeros(1)
        if recipe.names.main and stack.kind == "dynamic":
            shape = (1, 1, stack.conv_dim or recipe.architecture.dim)
            for i in range(len(stack.widths)):  # set by nobody there
                state[f"{side}.layers.{i}.conv.conv_bias"] = torch.full(shape, 1e30)
    named = argparse.Namespace(**settings(recipe, languages))
    content = {"args": named, "model": state, "optimizer_history": [], "extra_state": {"epoch": 1}}
    if recipe.configured:
        task = {"_name": "translation" if recipe.architecture.encoder else "language_modeling"}
        content |= {"args": None, "cfg": {"_name": None, "model": named, "task": task}, "task_state": {}}
    return {**content, "legacy": recipe.legacy}


def readme(recipe, outputs, origin=None):
    origin = origin or f"Random weights of seed {outputs['seed']}, made-up words"
    choice = (
        "score gap of neighbours in an n-best list"
        if recipe.architecture.encoder
        else "lead of a chosen word over the next"
    )
    lines = [
        f"# {recipe.name}",
        "",
        *textwrap.wrap(recipe.what + ".", 88),
        "",
        *textwrap.wrap(f"{origin}. What the files are: [golden models](../README.md).", 88),
        "",
        f"Smallest {choice}: {outputs['smallest_gap']:.1e}.",
    ]
    if recipe.updated:
        lines += ["Bound in float32:", f"parameters after 3 updates {AFTER_UPDATES}"]
    return "".join(line + "\n" for line in lines)


def layers(kind, heads, *widths, **more):
    return Side(kind, widths, heads, **more)


# Names of parameters that most recipes keep.
NORM = "encoder.layers.0.layer_norms.0.weight"
LINEAR = "decoder.layers.1.linear2.bias"
RECIPES = [
    Recipe(
        "lightconv-encdec",
        "LightConv, post-norm, all embeddings tied; names and container of 2019, query, "
        "key and value in one matrix",
        Architecture(16, 32, encoder=layers("light", 4, 3, 7), decoder=layers("light", 4, 3, 7)),
        Names(fused=True),
        (72, 72),
        legacy=True,
        gradients=(
            "encoder.layers.1.conv.weight",
            "decoder.layers.0.encoder_attn.in_proj_weight",
            NORM,
            LINEAR,
        ),
        updated=("decoder.layers.1.conv.weight", "encoder.layers.0.fc1.weight"),
    ),
    Recipe(
        "dynamicconv-encdec",
        "DynamicConv, pre-norm, decoder tied; names of present fairseq, settings under cfg; "
        "kernels longer than most rows",
        Architecture(
            24,
            40,
            encoder=layers("dynamic", 3, 5, 15),
            decoder=layers("dynamic", 4, 3, 15, 15),
            pre_norm=True,
        ),
        Names(main=True, tie="decoder"),
        (64, 72),
        configured=True,
        gradients=(
            "encoder.layers.1.conv.weight_linear.weight",
            "decoder.layers.1.encoder_attn.k_proj.weight",
            "encoder.layers.0.layer_norm1.weight",
            LINEAR,
        ),
        updated=("decoder.layers.2.conv.weight_linear.weight", "encoder.layers.1.layer_norm2.weight"),
    ),
    Recipe(
        "talk-encdec",
        "TaLK, gated, post-norm, all embeddings tied; names of the TaLK repository",
        Architecture(16, 32, encoder=layers("talk", 4, 1, 3), decoder=layers("talk", 4, 3, 7)),
        Names(),
        (72, 72),
        gradients=("encoder.layers.1.conv.offsets.bias", "decoder.layers.1.conv.offsets.weight", NORM),
        updated=("encoder.layers.1.conv.offsets.weight", "decoder.layers.0.linear1.weight"),
    ),
    Recipe(
        "talk-encdec-noglu",
        "TaLK without gate, pre-norm, nothing tied, two dictionaries of different size, "
        "sides with different numbers of heads",
        Architecture(
            16,
            40,
            encoder=layers("talk", 2, 3, 7),
            decoder=layers("talk", 8, 3, 15),
            glu=False,
            pre_norm=True,
        ),
        Names(tie="none"),
        (72, 64),
        gradients=("encoder.layers.1.conv.offsets.bias", "decoder.embed_out", NORM),
        updated=("decoder.layers.1.conv.offsets.weight", "decoder.layers.0.encoder_attn.q_proj.weight"),
    ),
    Recipe(
        "talk-encdec-conv-widths",
        "TaLK, convolutions wider than the model in the encoder and narrower in the decoder, "
        "whose layers begin with their norms; heads of the encoder that do not divide its "
        "width; no positions",
        Architecture(
            16,
            24,
            encoder=layers("talk", 5, 3, 7, pre_norm=False, conv_dim=20, positions=None),
            decoder=layers("talk", 4, 3, 15, pre_norm=True, conv_dim=12, positions=None),
        ),
        Names(tie="decoder"),
        (40, 48),
        legacy=True,
        gradients=("encoder.layers.1.conv.offsets.weight", "decoder.layers.0.linear1.weight", LINEAR),
        updated=("decoder.layers.1.linear2.weight", "encoder.layers.1.conv.offsets.bias"),
    ),
    Recipe(
        "dynamicconv-encdec-widths",
        "DynamicConv, gated, nothing tied; embedding of target words and output matrix of "
        "widths of their own, a narrow convolution in the encoder and a wide one in the "
        "decoder; learned positions, more of them in the decoder; names of present fairseq, "
        "container of 2019",
        Architecture(
            16,
            24,
            encoder=layers("dynamic", 3, 3, 5, conv_dim=12, positions=40),
            decoder=layers("dynamic", 4, 3, 7, conv_dim=20, positions=64),
            input_dim=12,
            output_dim=20,
        ),
        Names(main=True, tie="none"),
        (40, 48),
        legacy=True,
        gradients=(
            "decoder.project_in_dim.weight",
            "decoder.project_out_dim.weight",
            "encoder.layers.1.conv.weight_linear.weight",
            "decoder.embed_positions.weight",
        ),
        updated=("decoder.project_in_dim.weight", "decoder.project_out_dim.weight"),
    ),
    Recipe(
        "mixed-norm-encdec",
        "LightConv encoder, pre-norm, and DynamicConv decoder, post-norm, which is tied; "
        "feed-forward networks of different widths; positions learned in the encoder; names "
        "of present fairseq, container of 2019",
        Architecture(
            12,
            16,
            encoder=layers("light", 4, 3, 5, pre_norm=True, ffn_dim=20, positions=40),
            decoder=layers("dynamic", 3, 3, 7, pre_norm=False),
        ),
        Names(main=True, tie="decoder"),
        (40, 48),
        legacy=True,
        gradients=("encoder.layer_norm.weight", "encoder.layers.0.layer_norm1.weight", LINEAR),
        updated=("decoder.layers.1.final_layer_norm.weight", "encoder.layers.1.conv.weight"),
    ),
    Recipe(
        "lm-lightconv",
        "LightConv language model, tied, pre-norm without a last norm; settings under cfg",
        Architecture(16, 32, layers("light", 4, 3, 15), pre_norm=True),
        Names(main=True, tie="decoder"),
        (72, 72),
        configured=True,
        scales=Scales(mixing=5.0, feed=2.0),
        gradients=("decoder.layers.1.conv.weight", "decoder.layers.0.conv_layer_norm.weight", LINEAR),
        updated=("decoder.layers.0.conv.weight", "decoder.layers.1.final_layer_norm.weight"),
    ),
    Recipe(
        "lm-dynamicconv-adaptive",
        "DynamicConv language model; adaptive input and softmax share words and "
        "projections; settings under args",
        Architecture(32, 48, layers("dynamic", 4, 3, 15), pre_norm=True, cutoffs=(24, 48)),
        Names(tie="decoder"),
        (88, 88),
        scales=Scales(mixing=5.0, feed=2.0, table=0.6),
        gradients=(
            "decoder.adaptive_softmax.head.class_proj.weight",
            "decoder.embed_tokens.embeddings.2.0.weight",
            "decoder.layers.0.conv.weight_linear.weight",
        ),
        updated=("decoder.embed_tokens.embeddings.1.1.weight", "decoder.layers.1.linear2.weight"),
    ),
    Recipe(
        "lm-lightconv-widths",
        "LightConv language model without gate, its convolutions narrower; one matrix, wider "
        "than the model, is embedding and output, and maps lead from and to it; settings "
        "under cfg",
        Architecture(
            16,
            24,
            layers("light", 4, 3, 7, conv_dim=12),
            glu=False,
            pre_norm=True,
            input_dim=20,
            output_dim=20,
        ),
        Names(main=True, tie="decoder"),
        (56, 56),
        configured=True,
        legacy=True,
        scales=Scales(mixing=5.0, feed=2.0),
        gradients=("decoder.embed_tokens.weight", "decoder.project_out_dim.weight", LINEAR),
        updated=("decoder.project_in_dim.weight", "decoder.project_out_dim.weight"),
    ),
    Recipe(
        "lm-dynamicconv-adaptive-widths",
        "DynamicConv language model; an embedding narrower than the model, an adaptive "
        "softmax of its own, wider than it",
        Architecture(
            16,
            24,
            layers("dynamic", 4, 3, 7),
            pre_norm=True,
            cutoffs=(16, 40),
            input_dim=12,
            output_dim=32,
        ),
        Names(tie="none"),
        (64, 64),
        legacy=True,
        scales=Scales(mixing=5.0, feed=2.0),
        gradients=(
            "decoder.project_in_dim.weight",
            "decoder.project_out_dim.weight",
            "decoder.adaptive_softmax.tail.1.0.weight",
        ),
        updated=("decoder.adaptive_softmax.head.weight", "decoder.project_out_dim.weight"),
    ),
]
