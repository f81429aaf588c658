"""Writes what the fuzzers begin with: FOLDER/TARGET/NAME, made up here or taken
from the tests.

    python3 tests/fuzz/make_seeds.py FOLDER
"""

import gzip
import json
import lzma
import pathlib
import shutil
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/model/folders"
LONGEST = 20_000  # bytes of a file that is worth to be changed


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def binarised(kind):
    """Two bytes of the index's length, the index, the ids."""
    sentences = [[5, 6, 7, 2], [2], [99, 2, 4, 2]]
    ids = [id for sentence in sentences for id in sentence]
    lengths = [len(sentence) for sentence in sentences]
    starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    if kind == "mmap":
        index = b"MMIDIDX\0\0" + struct.pack("<QBQ", 1, 4, 3)
        index += struct.pack("<3i3q", *lengths, *[4 * at for at in starts[:3]])
        data = struct.pack(f"<{len(ids)}i", *ids)
    else:
        index = b"TNTIDX\0\0" + struct.pack("<5Q", 1, 4, 4, 3, 3)
        index += struct.pack("<4q4q3q", 0, 1, 2, 3, *starts, *lengths)
        data = struct.pack(f"<{len(ids)}i", *[id + 1 for id in ids])
    return struct.pack("<H", len(index)) + index + data


def protobuf(pieces):
    """A SentencePiece model: pieces with their scores and types."""
    model = b""
    for piece, score, kind in pieces:
        text = piece.encode()
        inner = b"\x0a" + bytes([len(text)]) + text
        inner += b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind])
        model += b"\x0a" + bytes([len(inner)]) + inner
    return model


POSITION = {"epoch": 1, "batch": 3, "update": 7, "best": 2.5,
            "current": {"loss": 1.5, "target_tokens": 9},
            "optimizer": {"steps": 7, "previous_learning_rate": 1e-3}}
SETTINGS = {"config": {"model": {"dim": 8}, "text": {"subword": "bpe"}},
            "text": {"subword": "bpe"}, "threads": 1, "processes": 2,
            "inputs": {"train": ["0123456789abcdef"]}}

WORDS = {"dictionary": "dict.txt", "model": "bpe.codes",
         "samples": [{"line": "ein zwei", "ids": [4, 5]}]}
CONFIG = {"format": "seqconv-model", "format_version": 1,
          "architecture": {
              "dim": 8, "ffn_dim": 8, "tie": "none",
              "decoder": {"layers": 1, "kernel_sizes": 3, "heads": 2}}}
TRANSLATION = {**CONFIG, "task": "translation",
               "architecture": {**CONFIG["architecture"],
                                "encoder": CONFIG["architecture"]["decoder"]},
               "text": {"subword": "none", "lowercase": False, "joined": True,
                        "source": WORDS, "target": WORDS},
               "decoding": {"beam": 3}}
LANGUAGE = {**CONFIG, "task": "language_model",
            "text": {"subword": "bpe", "lowercase": True, "unknown": True,
                     "side": {**WORDS, "samples": []}},
            "stream": {"block_tokens": 16}}

MADE_UP = {
    "safetensors": [
        safetensors({"__metadata__": {"update": "7"},
                     "a": tensor("F32", [2, 1], 0, 8),
                     "b": tensor("I8", [3], 8, 11)}, b"12345678abc"),
        safetensors(b" \n{} \t"),
        safetensors({"s": tensor("BF16", [], 0, 2),
                     "e": tensor("U8", [4, 0], 2, 2)}, b"xy"),
    ],
    "config": [json.dumps(config).encode() for config in (TRANSLATION, LANGUAGE)],
    "toml": [
        b'task = "translation"\n[model]\ndim = 8\ntie = "none"\n'
        b"[model.encoder]\nlayers = 2\nheads = 2\nkernel_sizes = [3, 7]\n"
        b"[model.decoder]\nlayers = 1\nheads = 2\nkernel_sizes = 3\n"
        b'[text]\nsubword = "bpe"\n[decoding]\nbeam = 4\nlength_penalty = 1.5\n',
        b'a.b = {c = 1e3, "d e" = [true, """x\ny"""]}\n[[t]]\nq = 0x1F\n',
    ],
    "dictionary": [b"ein 5\nzwei@@ +4\n\xe2\x96\x81 1_0\nmadeupword0000 0\n",
                   b"a 1\na 2 #fairseq:overwrite\n"],
    "codes": [b"#version: 0.2\ne i\nei n</w>\n", b"e i 12\nei n 7\n"],
    "pieces": [protobuf([("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3),
                         ("\u2581ein", -1, 1), ("e", -2, 1), ("z", -3, 1),
                         ("zw", -4, 1), ("wei", 0, 4)])],
    "binarised": [binarised("mmap"), binarised("cached")],
    "state": [safetensors(
        {"__metadata__": {"format": "seqconv-training-state-1", "layout": "[]",
                          "position": json.dumps(POSITION),
                          "settings": json.dumps(SETTINGS), "checksum": "0"},
         "parameters": tensor("F32", [2], 0, 8)}, b"12345678")],
    "metrics": [
        b'{"kind":"start","update":0}\n'
        b'{"kind":"train","epoch":1,"update":1,"nll_base2":2.5,"grad":1e-3}\n'
        b'{"kind":"train","epoch":1,"update":2,"nll_base2":2.25}\n'
        b'{"kind":"validation","update":2,"nll_base2":2.5,"bleu":12.5}\n',
    ],
    "requests": [
        b'0{"text": "ein zwei", "target_prefix": "drei", "id": 7}\n{"text": ""}\n',
        b'1{"in": {"text": ["ein", "zwei \\u00fc"]}, "x": [1e999, null]}\n',
    ],
    "story": [b"ein zwei\n\ndrei\n\n@highlight\n\nein\n\n@highlight\n\nzwei\n"],
    "packed": [gzip.compress(b"ein\nzwei\n", mtime=0) * 2, lzma.compress(b"ein\nzwei\n"),
               b"\x28\xb5\x2f\xfd\x20\x04\x21\x00\x00ein\n"],
    "shortlist": [safetensors(
        {"common": tensor("I32", [1], 0, 4), "listed": tensor("I32", [2], 4, 12),
         "ends": tensor("I64", [8], 12, 76)},
        struct.pack("<3i8q", 7, 4, 5, 0, 0, 0, 0, 2, 2, 2, 2))],
    "utf8": ["ein \u00fc \u2581 \U0001d11e \u2028 \u0130\u03a3\r\n".encode(),
             b"\xff\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80 ein \xe2\x82"],
    "moses": [b"\0Don't pay $3.50, \"Mr. Smith\" & <co>!",
              "\x0bL'homme s'en va : \u00ab oui \u00bb 1,5 %".encode(),
              "\x13\u4f60\u597d\uff0c world-wide ...".encode()],
    "html": [b"<p>The <b>dog</b> &amp; <i>cat<br></i> run.<!-- x --><script>a<b</script>",
             b"<table><tr><td title='a &lt; b'>x<p translate=no>y<td><a href=#>z</table></p>",
             b"<svg><a>x</a></svg><pre>y</pre><code>z</code> w<img alt=\"v\"><b><i></b>u</i>",
             "<!DOCTYPE html><html><body><ruby>\u6f22<rt>kan</rt></ruby> \u5b57</body>".encode()],
    "sentences": ["Dr. Meier kam am 3. Oktober. \u00abJa.\u00bb (Nein!)\r\n\u4f60\u597d\u3002 a.B".encode(),
                  b"\xff.\xc3 A.\x00\x0b 3.5 e.g. x"],
    "call": [b'\0{"q": ["ein", "zwei"], "source": "de", "target": "en", "alternatives": "2"}',
             b"\1q=a+b%C3%BC&q=c&source=auto&target=en&format=html&prompt=x&top_p=.5",
             b'\0{"prompt": "x", "length": 3, "temperature": 1e-3, "seed": 7, "stream": true}'],
}

# Where the tests have more of a kind.
TAKEN = {
    "config": "config.json",
    "dictionary": "*dict.txt",
    "codes": "*bpe.codes",
    "pieces": "*sentencepiece.model",
    "safetensors": "model.safetensors",
    "state": "training/state.safetensors",
    "toml": "training/config.toml",
}


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    for target, seeds in MADE_UP.items():
        place = folder / target
        place.mkdir(parents=True)
        for number, seed in enumerate(seeds):
            (place / f"made-up-{number}").write_bytes(seed)
        if target not in TAKEN:
            continue
        for file in sorted(MODELS.glob(f"*/{TAKEN[target]}")):
            if file.stat().st_size <= LONGEST:
                name = f"{file.relative_to(MODELS)}".replace("/", "-")
                shutil.copy(file, place / name)
    shutil.copytree(ROOT / "tests/model/corpus", folder / "pytorch")
    shutil.copytree(ROOT / "tests/model/data", folder / "pytorch",
                    dirs_exist_ok=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
