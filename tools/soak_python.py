#!/usr/bin/env python3
"""Makes a great many calls of the Python package, and looks at what they leave.

    PYTHONPATH=... python3 tools/soak_python.py FOLDERS [--calls 200000]

FOLDERS is tests/model/folders. The calls are of every kind: texts and lists, iterables, streams,
tokens, awaited ones, failing, cancelled and interrupted ones, alignments, scores, generation,
metrics, models that are opened and closed. After a fifth of them neither resident memory (1 MB),
descriptors, threads nor Python's objects (1 %) may grow, with the garbage collector off.
"""
import argparse
import asyncio
import gc
import os
import pathlib
import random
import sys
import threading

import seqconv
from seqconv import metrics

TEXT = "dalan mira"


def resident():
    pages = pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Calls:
    """One method per kind of call; each says how many calls it made."""

    def __init__(self, folders):
        self.folder = folders / "translation_1"
        self.translator = seqconv.Translator(self.folder)
        self.generator = seqconv.Generator(folders / "language_1")
        self.scorer = seqconv.Scorer(self.folder)
        self.loop = asyncio.new_event_loop()
        self.tokens = seqconv.Tokens(self.translator.tokenize(TEXT))

    def text(self):
        for _ in range(20):
            assert self.translator.translate(TEXT).text
        return 20

    def tokens_and_alignments(self):
        found = self.translator.translate(self.tokens, alignments="shares")
        assert found.alignment and found.alignment.shares
        self.translator.detokenize(self.translator.tokenize(TEXT))
        return 3

    def texts(self):
        found = self.translator.translate([TEXT] * 30, n_best=2, beam=3)
        assert all(one.ok for one in found)
        return 30

    def iterable(self):
        return sum(one.ok for one in self.translator.translate_iter(TEXT for _ in range(20)))

    def stream(self):
        with self.translator.stream(TEXT) as stream:
            for _ in stream:
                pass
            assert stream.result.ok
        for _ in self.translator.stream(TEXT):
            break  # left behind
        return 2

    def generation(self):
        self.generator.generate("a", length=5, seed=1)
        return 1

    def scores(self):
        assert self.scorer.score(TEXT, TEXT).ok
        return 1

    def failing(self):
        for text in ("\ud800", "a" * 10 + "\0"):
            self.translator.translate([text])
            try:
                self.translator.translate(text, timeout=-1.0)
            except seqconv.SeqconvError:
                pass
        try:
            seqconv.Translator("/nowhere")
        except seqconv.ModelError:
            pass
        return 5

    def opening(self):
        if random.random() < 0.1:
            with seqconv.Translator(self.folder) as model:
                model.translate(TEXT)
        return 1

    def metric(self):
        metrics.bleu([TEXT], [TEXT])
        return 1

    def awaited(self):
        async def several():
            await asyncio.gather(*(self.translator.translate_async(TEXT) for _ in range(20)))
            task = asyncio.ensure_future(self.translator.translate_async(
                TEXT, beam=50, min_length=1000, max_length_b=1000))
            await asyncio.sleep(0)
            task.cancel()
            async for part in self.translator.stream_async(TEXT):
                assert part
        self.loop.run_until_complete(several())
        return 22

    def threads(self):
        threads = [threading.Thread(target=self.text) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return 80


def state():
    return {"bytes": resident(), "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(), "objects": len(gc.get_objects())}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=pathlib.Path)
    parser.add_argument("--calls", type=int, default=200_000)
    options = parser.parse_args()
    random.seed(1)
    calls = Calls(options.folders)
    kinds = [getattr(calls, name) for name, value in vars(Calls).items()
             if not name.startswith("_") and callable(value)]  # fmt: skip
    made, before = 0, None
    gc.collect()
    gc.disable()
    while made < options.calls:
        made += random.choice(kinds)()
        if before is None and made >= options.calls // 5:
            before = state()
    after = state()
    print(f"{made} calls\nbefore {before}\nafter  {after}")
    grown = [name for name, more in (("bytes", 1 << 20), ("descriptors", 0), ("threads", 0),
                                     ("objects", before["objects"] // 100))
             if after[name] > before[name] + more]  # fmt: skip
    if grown:
        sys.exit(f"soak_python.py: must not grow, but did: {', '.join(grown)}")


if __name__ == "__main__":
    main()
