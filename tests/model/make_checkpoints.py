#!/usr/bin/env python3
"""Writes the small checkpoints of model_test: one model in every key
scheme and container, and the tensors that all of them must give.

    python tests/model/make_checkpoints.py tests/model/data

Needs torch. The files are checked in; writing them again changes nothing but
what torch itself writes differently.
"""
import argparse
import json
import pathlib
import struct
import sys
import types

import torch

D, FFN, HEADS, KERNEL, VOCABULARY = 4, 6, 2, 3, 12
KINDS = ("dynamic", "light", "talk")


def draw(names_and_shapes, seed):
    generator = torch.Generator().manual_seed(seed)
    # Exact in float16 and bfloat16, so that all types hold the same values.
    return {
        name: torch.randint(-32, 33, shape, generator=generator) / 16
        for name, shape in names_and_shapes
    }


def linear(name, rows, columns):
    return [(f"{name}.weight", (rows, columns)), (f"{name}.bias", (rows,))]


def norm(name):
    return [(f"{name}.weight", (D,)), (f"{name}.bias", (D,))]


def convolution(kind, side):
    if kind == "light":
        return [("conv.weight", (HEADS, KERNEL))]
    if kind == "dynamic":
        return [("conv.weight_linear", (HEADS * KERNEL, D))]
    return linear("conv.offsets", HEADS * (2 if side == "encoder" else 1), D)


def our_parameters(kind):
    """Names and shapes under our names: pre-norm, GLU, one layer a side."""
    table = [
        ("encoder.embedding.weight", (VOCABULARY, D)),
        ("decoder.embedding.weight", (VOCABULARY, D)),
        ("output.weight", (VOCABULARY, D)),
    ]
    for side in ("encoder", "decoder"):
        layer = f"{side}.layer0."
        table += linear(layer + "block.linear1", 2 * D, D)
        table += [
            (layer + "block." + name, shape) for name, shape in convolution(kind, side)
        ]
        table += linear(layer + "block.linear2", D, D)
        table += norm(layer + "block_norm")
        if side == "decoder":
            attention = layer + "cross_attention."
            table += linear(attention + "query_proj", D, D)
            table += linear(attention + "key_value_proj", 2 * D, D)
            table += linear(attention + "out_proj", D, D)
            table += norm(layer + "cross_attention_norm")
        table += linear(layer + "feed_forward.fc1", FFN, D)
        table += linear(layer + "feed_forward.fc2", D, FFN)
        table += norm(layer + "feed_forward_norm")
        table += norm(f"{side}.final_norm")
    return draw(table, seed=KINDS.index(kind) + 1)


def rename(ours, *, main=False, fused=False, flat_kernel=False):
    """The same tensors under the names of a scheme."""
    theirs = {}
    for name, value in ours.items():
        side = name.split(".")[0]
        name = name.replace(".layer0.", ".layers.0.").replace(".block.", ".")
        name = name.replace("feed_forward.", "").replace(".final_norm.", ".layer_norm.")
        name = name.replace("cross_attention_norm", "encoder_attn_layer_norm")
        if side == "encoder":
            first, second = (
                ("layer_norm1", "layer_norm2")
                if main
                else ("layer_norms.0", "layer_norms.1")
            )
        else:
            first, second = "conv_layer_norm", "final_layer_norm"
        name = name.replace("block_norm", first).replace("feed_forward_norm", second)
        name = name.replace("embedding.weight", "embed_tokens.weight")
        name = name.replace("weight_linear", "weight_linear.weight")
        if name == "output.weight":
            name = "decoder.output_projection.weight" if main else "decoder.embed_out"
        if name.endswith("conv.weight") and not flat_kernel:
            value = value.unsqueeze(1)
        if ".cross_attention." in name:
            split_attention(theirs, name, value, fused)
        else:
            theirs[name] = value
    return theirs


def split_attention(theirs, name, value, fused):
    attention = "decoder.layers.0.encoder_attn."
    part, kind = name.removeprefix("decoder.layers.0.cross_attention.").split(".")
    if part == "out_proj":
        theirs[f"{attention}out_proj.{kind}"] = value
    elif fused:
        whole = f"{attention}in_proj_{kind}"
        rows = theirs.setdefault(whole, torch.zeros(3 * D, *value.shape[1:]))
        rows[:D] = value if part == "query_proj" else rows[:D]
        rows[D:] = value if part == "key_value_proj" else rows[D:]
    elif part == "query_proj":
        theirs[f"{attention}q_proj.{kind}"] = value
    else:
        theirs[f"{attention}k_proj.{kind}"] = value[:D].clone()
        theirs[f"{attention}v_proj.{kind}"] = value[D:].clone()


def arguments(kind):
    settings = {
        "arch": "talkconv" if kind == "talk" else "lightconv",
        "weight_softmax": True,
        "max_source_positions": 64,
        "max_target_positions": 64,
        "dropout": 0.25,
        "lr": [0.001],
        "adam_betas": "(0.9, 0.98)",
    }
    for side in ("encoder", "decoder"):
        settings.update(
            {
                f"{side}_embed_dim": D,
                f"{side}_ffn_embed_dim": FFN,
                f"{side}_layers": 1,
                f"{side}_attention_heads": HEADS,
                f"{side}_kernel_size_list": [KERNEL],
                f"{side}_glu": True,
                f"{side}_normalize_before": True,
            }
        )
    return settings


def stand_in(module, name):
    """A class that pickles under a name of a package that is not there."""
    parent = module.split(".")[0]
    for full in (parent, module):
        sys.modules.setdefault(full, types.ModuleType(full))
    if not hasattr(sys.modules[module], name):
        setattr(sys.modules[module], name, type(name, (), {"__module__": module}))
    return getattr(sys.modules[module], name)


def config_tree(value):
    """A table as OmegaConf's containers hold it."""
    if isinstance(value, dict):
        node = stand_in("omegaconf.dictconfig", "DictConfig")()
        node._content = {key: config_tree(entry) for key, entry in value.items()}
    elif isinstance(value, list):
        node = stand_in("omegaconf.listconfig", "ListConfig")()
        node._content = [config_tree(entry) for entry in value]
    else:
        node = stand_in("omegaconf.nodes", "AnyNode")()
        node._val = value
    node._metadata = None
    return node


def one_storage(state):
    """All tensors as views of one storage, two-dimensional ones transposed."""
    flat = torch.cat([value.t().reshape(-1) if value.dim() == 2 else value.reshape(-1)
                      for value in state.values()])
    result, begin = {}, 0
    for name, value in state.items():
        part = flat[begin : begin + value.numel()]
        begin += value.numel()
        result[name] = (
            part.view(value.shape[1], value.shape[0]).t()
            if value.dim() == 2
            else part.view(value.shape)
        )
        assert torch.equal(result[name], value)
    return result


def buffers(state, *, main):
    for side in ("encoder", "decoder"):
        state[f"{side}.version"] = torch.tensor([2.0])
        if not main:
            state[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
    if main:
        for side in ("encoder", "decoder"):
            state[f"{side}.layers.0.conv.conv_bias"] = torch.full((1, 1, D), 1e30)
    return state


def save(path, content, *, legacy=False):
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)


def write_dynamic(folder, ours):
    named = argparse.Namespace(**arguments("dynamic"))
    meter = stand_in("fairseq.meters", "AverageMeter")()
    meter.sum, meter.count = 12.5, 3
    extra = {"train_meters": {"loss": meter}, "val_loss": 2.5}
    # 2019: the old container, fused projections, meters of the training loop.
    state = buffers(rename(ours, fused=True), main=False)
    save(
        folder / "published_2019.pt",
        {"args": named, "model": state, "optimizer_history": [], "extra_state": extra},
        legacy=True,
    )
    state = buffers(rename(ours), main=False)
    save(folder / "published.pt", {"args": named, "model": state})
    state = buffers(rename(ours, main=True), main=True)
    table = {"_name": None, "model": arguments("dynamic"), "task": {"_name": "translation"}}
    save(folder / "main.pt", {"args": None, "cfg": table, "model": state})
    save(
        folder / "main_omegaconf_legacy.pt",
        {"args": None, "cfg": config_tree(table), "model": state},
        legacy=True,
    )
    other = {name: value + 1 for name, value in state.items()}
    save(
        folder / "ema.pt",
        {"args": named, "model": other, "extra_state": {"ema": state}},
    )
    save(folder / "bare.pt", rename(ours))
    for name, kind in (("half", torch.float16), ("bfloat16", torch.bfloat16)):
        cast = {key: value.to(kind) for key, value in rename(ours).items()}
        save(folder / f"{name}.pt", {"args": named, "model": cast})


def write_light(folder, ours):
    named = argparse.Namespace(**arguments("light"))
    save(
        folder / "light_strided.pt",
        {"args": named, "model": one_storage(rename(ours))},
    )
    save(
        folder / "light_flat_kernel_legacy.pt",
        {"args": named, "model": one_storage(rename(ours, flat_kernel=True))},
        legacy=True,
    )


def write_talk(folder, ours):
    named = argparse.Namespace(**arguments("talk"))
    state = buffers(rename(ours), main=False)
    save(folder / "talk.pt", {"args": named, "model": state})
    save(folder / "talk_legacy.pt", {"args": named, "model": state}, legacy=True)


def write_expected(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        bytes_ = value.contiguous().numpy().astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(value.shape),
            "data_offsets": [len(data), len(data) + len(bytes_)],
        }
        data += bytes_
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    writers = {"dynamic": write_dynamic, "light": write_light, "talk": write_talk}
    for kind, write in writers.items():
        ours = our_parameters(kind)
        write(folder, ours)
        write_expected(folder / f"{kind}.safetensors", ours)
    words = "".join(f"w{i} {100 - i}\n" for i in range(VOCABULARY - 4))
    (folder / "dict.txt").write_text(words, encoding="utf-8")


if __name__ == "__main__":
    main()
