#!/usr/bin/env python3
"""CTranslate2 as a rival of decode_bench: a Transformer with random weights.

    pip install ctranslate2 numpy
    decode_bench --size iwslt --rival benchmarks/ctranslate2_rival.py

The only argument is a JSON object with sizes and case (see describe in
decode_bench.cpp). For each line with seconds on standard input, decodes for
about so long and writes a line with output tokens a second.
"""
import json
import sys
import tempfile
import time

import ctranslate2
import numpy as np
from ctranslate2.specs import transformer_spec


class RandomTransformer:
    """Fills a CTranslate2 specification with weights of usual scale."""

    def __init__(self, case):
        self.case = case
        self.dim = case["dim"]
        self.random = np.random.default_rng(0)

    def matrix(self, outputs, inputs):
        numbers = self.random.random((outputs, inputs), dtype=np.float32) - 0.5
        return numbers * np.float32(np.sqrt(12 / inputs))

    def linear(self, spec, outputs, inputs):
        spec.weight = self.matrix(outputs, inputs)
        spec.bias = np.zeros(outputs, np.float32)

    def norm(self, spec):
        spec.gamma = np.ones(self.dim, np.float32)
        spec.beta = np.zeros(self.dim, np.float32)

    def attention(self, spec, sizes):
        for linear, outputs in zip(spec.linear, sizes):
            self.linear(linear, outputs, self.dim)
        self.norm(spec.layer_norm)

    def layer(self, spec, decodes):
        self.attention(spec.self_attention, (3 * self.dim, self.dim))
        if decodes:
            self.attention(spec.attention, (self.dim, 2 * self.dim, self.dim))
        self.linear(spec.ffn.linear_0, self.case["ffn_dim"], self.dim)
        self.linear(spec.ffn.linear_1, self.dim, self.case["ffn_dim"])
        self.norm(spec.ffn.layer_norm)

    def save(self, folder):
        case, heads = self.case, self.case["heads"]
        encoder = transformer_spec.TransformerEncoderSpec(
            case["encoder_layers"], heads, pre_norm=False)
        decoder = transformer_spec.TransformerDecoderSpec(
            case["decoder_layers"], heads, pre_norm=False)
        spec = transformer_spec.TransformerSpec(encoder, decoder)
        table = self.matrix(case["vocabulary"], self.dim)
        for side in (encoder, decoder):
            words = side.embeddings
            (words[0] if isinstance(words, list) else words).weight = table
        self.linear(decoder.projection, case["vocabulary"], self.dim)
        for layer in encoder.layer:
            self.layer(layer, decodes=False)
        for layer in decoder.layer:
            self.layer(layer, decodes=True)
        words = case.get("words") or ["<unk>", "<s>", "</s>"]
        words += [f"w{i}" for i in range(case["vocabulary"] - len(words))]
        spec.register_source_vocabulary(words)
        spec.register_target_vocabulary(words)
        spec.validate()
        spec.save(folder)


def decode(translator, case, batches):
    """Output tokens and seconds of so many batches."""
    random = np.random.default_rng(1)
    shape = (case["batch"] * batches, case["source_length"])
    ids = random.integers(0, case["vocabulary"] - 3, shape)
    sources = [[f"w{i}" for i in row] for row in ids]
    start = time.perf_counter()
    results = translator.translate_batch(
        sources, beam_size=case["beam"], max_batch_size=case["batch"],
        batch_type="examples", max_input_length=0, return_scores=False,
        min_decoding_length=case["length"], max_decoding_length=case["length"])
    seconds = time.perf_counter() - start
    return sum(len(result.hypotheses[0]) for result in results), seconds


def main():
    case = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        RandomTransformer(case).save(folder)
        translator = ctranslate2.Translator(
            folder, device="cpu", compute_type=case["compute_type"],
            inter_threads=case["replicas"], intra_threads=case["threads"])
    replicas = case["replicas"]
    tokens, seconds = decode(translator, case, replicas)
    for line in sys.stdin:
        share = float(line) / max(seconds, 1e-6)
        rounds = max(1, round(share))
        tokens, passed = decode(translator, case, rounds * replicas)
        seconds = passed / rounds
        print(tokens / passed, flush=True)


if __name__ == "__main__":
    main()
