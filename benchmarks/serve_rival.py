#!/usr/bin/env python3
"""CTranslate2 behind FastAPI as a rival of `seqconv serve`: a Transformer with random weights.

    pip install ctranslate2 fastapi uvicorn[standard] numpy
    python3 benchmarks/serve_rival.py --dictionary DIR/dict.txt --port 8000
        [--batch 32] [--wait-ms 0] [--alike] [--inter 2] [--intra 1]
    python3 benchmarks/serve_bench.py --model DIR --url http://127.0.0.1:8000/translate --pid PID

POST /translate takes {"q", "source", "target"} and answers {"translatedText"}. Tasks gather the
requests that wait, up to --batch and for --wait-ms, and translate them in threads, one per
--inter. Words are tokens. A batch's translations are as long as those of `seqconv serve` with
random weights are on the mean, source words and six: the same number of words in all.
"""
import argparse
import asyncio
import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import pathlib
import tempfile

import ctranslate2
import uvicorn
from ctranslate2_rival import RandomTransformer
from fastapi import FastAPI
from pydantic import BaseModel

SIZES = {
    "iwslt": {"encoder_layers": 6, "decoder_layers": 6, "dim": 512, "ffn_dim": 1024, "heads": 4},
}


class Batcher:
    """Requests that wait, and tasks that translate them together."""

    def __init__(self, translator, options):
        self.translator, self.options = translator, options
        self.waiting = collections.deque()
        self.come = asyncio.Event()
        self.pool = concurrent.futures.ThreadPoolExecutor(options.inter)

    async def translate(self, text):
        result = asyncio.get_running_loop().create_future()
        self.waiting.append((text.split(), result))
        self.come.set()
        return await result

    async def gather(self):
        """Requests of a batch."""
        while not self.waiting:
            self.come.clear()
            await self.come.wait()
        loop, options = asyncio.get_running_loop(), self.options
        end = loop.time() + options.wait_ms / 1e3
        while len(self.waiting) < options.batch and loop.time() < end:
            self.come.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.come.wait(), end - loop.time())
        if options.alike and self.waiting:
            length = len(self.waiting[0][0])
            self.waiting = collections.deque(
                sorted(self.waiting, key=lambda one: abs(len(one[0]) - length)))  # fmt: skip
        count = min(len(self.waiting), options.batch)
        return [self.waiting.popleft() for _ in range(count)]

    async def work(self):
        while True:
            group = await self.gather()
            if not group:
                continue
            try:
                texts = await asyncio.get_running_loop().run_in_executor(
                    self.pool, self.translate_now, [words for words, _ in group])
                for (_, result), text in zip(group, texts):
                    result.set_result(text)
            except Exception as error:
                for _, result in group:
                    result.set_exception(error)

    def translate_now(self, sources):
        length = round(sum(map(len, sources)) / len(sources)) + 6
        results = self.translator.translate_batch(
            sources, beam_size=self.options.beam, max_input_length=0, return_scores=False,
            min_decoding_length=length, max_decoding_length=length)  # fmt: skip
        return [" ".join(result.hypotheses[0]) for result in results]


class Call(BaseModel):
    q: str
    source: str
    target: str


def application(translator, options):
    batchers = []

    @contextlib.asynccontextmanager
    async def lifespan(_):
        batchers.append(Batcher(translator, options))
        tasks = [asyncio.create_task(batchers[0].work()) for _ in range(options.inter)]
        yield
        for task in tasks:
            task.cancel()

    app = FastAPI(lifespan=lifespan)

    @app.post("/translate")
    async def translate(call: Call):
        return {"translatedText": await batchers[0].translate(call.q)}

    return app


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dictionary", type=pathlib.Path, required=True)
    parser.add_argument("--size", choices=SIZES, default="iwslt")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--compute-type", default="int8")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--alike", action="store_true", help="the next one, and the most alike")
    parser.add_argument("--wait-ms", type=float, default=0)
    parser.add_argument("--inter", type=int, default=2)
    parser.add_argument("--intra", type=int, default=1)
    options = parser.parse_args()
    lines = options.dictionary.read_text(encoding="utf-8").splitlines()
    words = ["<unk>", "<s>", "</s>"] + [line.split(" ")[0] for line in lines]
    case = {**SIZES[options.size], "vocabulary": len(words), "words": words}
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own, so that its memory is not counted.
        making = multiprocessing.Process(target=RandomTransformer(case).save, args=(folder,))
        making.start()
        making.join()
        translator = ctranslate2.Translator(
            folder, device="cpu", compute_type=options.compute_type,
            inter_threads=options.inter, intra_threads=options.intra)  # fmt: skip
    print(f"process {os.getpid()}", flush=True)
    uvicorn.run(application(translator, options), port=options.port, access_log=False,
                timeout_keep_alive=60, log_level="warning")  # fmt: skip


if __name__ == "__main__":
    main()
