#!/usr/bin/env python3
"""Rate and delays of a server over loopback, beside `seqconv translate` on the same sentences.

    python3 benchmarks/serve_bench.py --program build/release/bin/seqconv --model DIR
        [--text FILE] [--connections 64 | --rate 50] [--seconds 20] [--turns 3]
        [--flags "--max-wait-ms 5"]
    python3 benchmarks/serve_bench.py --text FILE --url http://127.0.0.1:8000/translate --pid PID

Each connection sends one sentence after another, as JSON, and waits for its answer. With --rate,
so many come a second at random times, whoever waits, and delays count from then. Without --text, sentences of 5 to 60 words of the model's dictionary are made up. Processor seconds are the
server's own, children included, and this program's are told apart. A server of somebody else's
takes {"q", "source", "target"} and answers {"translatedText"}. Prints a line of JSON per turn, and
at the end the medians, with the ratio of sentences per processor second to `translate`'s.
"""
import argparse
import asyncio
import json
import os
import pathlib
import random
import re
import resource
import shlex
import statistics
import subprocess
import sys
import time
import urllib.parse

TICKS = os.sysconf("SC_CLK_TCK")


def made_up(model, count):
    """Sentences of the dictionary's words, as evenly long as 5 to 60 allows."""
    draw = random.Random(1)
    lines = (pathlib.Path(model) / "dict.txt").read_text(encoding="utf-8").splitlines()
    words = [word for word in (line.split(" ")[0] for line in lines)
             if word.isalnum() and not word.startswith("madeupword")]  # fmt: skip
    return [" ".join(draw.choices(words, k=draw.randint(5, 60))) for _ in range(count)]


def processor_seconds(pid):
    """User and system time of a process and its children that live."""
    total = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid or int(fields[1]) == pid:
            total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def resident_megabytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


class Load:
    """Connections that ask for sentences."""

    def __init__(self, url, sentences):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.path = parts.hostname, parts.port, parts.path
        self.sentences, self.next = sentences, 0
        self.seconds, self.faults = [], 0

    async def ask(self, connection, start):
        reader, writer = connection
        sentence = self.sentences[self.next % len(self.sentences)]
        self.next += 1
        body = json.dumps({"q": sentence, "source": "de", "target": "en"}).encode()
        writer.write(
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: "
            f"application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)[1])
        answer = await reader.readexactly(size)
        self.seconds.append(time.monotonic() - start)
        self.faults += not head.startswith(b"HTTP/1.1 200") or b"translatedText" not in answer

    async def one_after_another(self, end):
        connection = await asyncio.open_connection(self.host, self.port)
        while time.monotonic() < end:
            await self.ask(connection, time.monotonic())
        connection[1].close()

    async def at_rate(self, rate, end):
        draw, due, idle, asked = random.Random(2), time.monotonic(), [], []

        async def ask_when(due):
            connection = (idle.pop() if idle
                          else await asyncio.open_connection(self.host, self.port))  # fmt: skip
            await self.ask(connection, due)
            idle.append(connection)

        while (due := due + draw.expovariate(rate)) < end:
            await asyncio.sleep(max(0, due - time.monotonic()))
            asked.append(asyncio.create_task(ask_when(due)))
        await asyncio.gather(*asked)
        for _, writer in idle:
            writer.close()

    def run(self, connections, seconds, rate=None):
        async def all_of_them():
            end = time.monotonic() + seconds
            if rate:
                return await self.at_rate(rate, end)
            await asyncio.gather(*(self.one_after_another(end) for _ in range(connections)))

        asyncio.run(all_of_them())


def measure(url, pid, sentences, connections, seconds, rate=None):
    load = Load(url, sentences)
    load.run(min(connections, 4), 1)  # warm
    load.seconds.clear()
    own = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    before, start = processor_seconds(pid), time.monotonic()
    load.run(connections, seconds, rate)
    wall = time.monotonic() - start
    used = processor_seconds(pid) - before
    delays = sorted(load.seconds)
    return {
        "sentences_per_second": len(delays) / wall,
        "sentences_per_processor_second": len(delays) / used,
        "p50_ms": 1e3 * delays[len(delays) // 2],
        "p99_ms": 1e3 * delays[int(len(delays) * 0.99)],
        "generator_processor_share":
            (sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - own) / wall,
        "megabytes": resident_megabytes(pid),
        "faults": load.faults,
    }  # fmt: skip


def translate(options, sentences):
    """Sentences per processor second of the program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = "\n".join(sentences) + "\n"
    subprocess.run([options.program, "translate", "--model", options.model, "--quiet",
                    *threads_of(options.flags)], input=text, text=True, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return len(sentences) / (sum(after[:2]) - sum(before[:2]))


def threads_of(flags):
    words = shlex.split(flags)
    return words[words.index("--threads"):][:2] if "--threads" in words else []


def serve(options):
    server = subprocess.Popen([options.program, "serve", "--model", f"de-en={options.model}",
                               "--port", "0", *shlex.split(options.flags)],
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    port = re.search(r":(\d+)$", server.stderr.readline().strip())[1]
    return server, f"http://127.0.0.1:{port}/translate"


def rounded(row):
    return {key: float(f"{value:.4g}") if isinstance(value, float) else value
            for key, value in row.items()}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--program")
    parser.add_argument("--model")
    parser.add_argument("--flags", default="", help="of seqconv serve")
    parser.add_argument("--url")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rate", type=float, help="requests a second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    if options.text:
        sentences = options.text.read_text(encoding="utf-8").splitlines()[: options.sentences]
    else:
        sentences = made_up(options.model, options.sentences)
    rows = []
    for _ in range(options.turns):
        server = None
        if options.url:
            url, pid = options.url, options.pid
        else:
            server, url = serve(options)
            pid = server.pid
        row = measure(
            url, pid, sentences, options.connections, options.seconds, options.rate)  # fmt: skip
        if server:
            server.terminate()
            server.wait()
            row["translate_per_processor_second"] = translate(options, sentences)
            row["ratio"] = (row["sentences_per_processor_second"]
                            / row["translate_per_processor_second"])  # fmt: skip
        rows.append(row)
        print(json.dumps(rounded(row)), flush=True)
    print("medians", json.dumps(rounded({key: statistics.median(row[key] for row in rows)
                                         for key in rows[0]})))  # fmt: skip
    return any(row["faults"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
