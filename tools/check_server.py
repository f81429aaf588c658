#!/usr/bin/env python3
"""Keeps `seqconv serve` busy for minutes, with clients that are not kind beside, and ends it.

    python3 tools/check_server.py PROGRAM [--seconds 600] [--connections 64] [--model DIR]

At saturation every answer must be that of `seqconv translate` or a 429, and memory after the
first third of the time may grow by 2 % at most (and 2 MB). Beside that: connections that send
nothing more after half a header (10,000, as many at a time as the system allows), clients that
leave at any byte, a folder that is replaced with SIGHUP, streams that are left. Then SIGTERM at
full load: whoever had sent a request gets its answer. Prints what it counted; exit code 1 for
a fault.
"""
import argparse
import asyncio
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "model" / "folders" / "translation_1"
WORDS = "dalan mira zo urat tolu".split()
HALF_OPEN = 10_000
MOST_OPEN = 512  # at a time, beside the others


def request(path, body, closes=False):
    text = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"{'Connection: close' + chr(13) + chr(10) if closes else ''}"
            f"Content-Length: {len(text)}\r\n\r\n").encode() + text  # fmt: skip


class Check:
    def __init__(self, options, folder):
        self.options = options
        self.model = pathlib.Path(folder) / "model"
        shutil.copytree(options.model, self.model)
        draw = random.Random(3)
        self.sentences = [" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(500)]
        run = subprocess.run(
            [options.program, "translate", "--model", options.model, "--quiet"],
            input="\n".join(self.sentences) + "\n", capture_output=True, text=True, check=True)
        self.wanted = run.stdout.splitlines()
        self.process = subprocess.Popen(
            [options.program, "serve", "--port", "0", "--model", f"de-en={self.model}",
             "--header-seconds", "3", "--max-connections", "1024"],
            stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.port = int(re.search(r":(\d+)$", self.process.stderr.readline().strip())[1])
        self.counts = dict.fromkeys(("answers", "refused", "half_open", "left", "reloads"), 0)
        self.faults = []
        self.memory = []
        self.is_ending = False

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def client(self, number, end):
        """Asks one sentence after another; what was sent before the end is answered."""
        draw = random.Random(number)
        reader, writer = await self.connect()
        while time.monotonic() < end or not self.is_ending:
            one = draw.randrange(len(self.sentences))
            body = {"q": self.sentences[one], "source": "de", "target": "en"}
            was_ending = self.is_ending
            try:
                writer.write(request("/translate", body))
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(re.search(rb"Content-Length: (\d+)", head)[1])
                answer = json.loads(await reader.readexactly(size))
            except (OSError, asyncio.IncompleteReadError) as error:
                if not was_ending and not self.is_ending:
                    self.faults.append(f"a connection ended: {error}")
                return
            if head.startswith(b"HTTP/1.1 429"):
                self.counts["refused"] += 1
            elif answer != {"translatedText": self.wanted[one]}:
                self.faults.append(f"{self.sentences[one]}: {head[:20]} {answer}")
                return
            else:
                self.counts["answers"] += 1
            if self.is_ending and b"Connection: close" in head:
                return
        writer.close()

    async def half_open(self, end):
        """Half a header, and silence."""
        opened = []
        while time.monotonic() < end and self.counts["half_open"] < HALF_OPEN:
            try:
                reader, writer = await self.connect()
                writer.write(b"POST /translate HTTP/1.1\r\nHo")
                opened.append(writer)
                self.counts["half_open"] += 1
            except OSError:
                await asyncio.sleep(0.1)
            if len(opened) >= MOST_OPEN:
                opened.pop(0).close()
            await asyncio.sleep(0.002)
        for writer in opened:
            writer.close()

    async def unkind(self, end):
        """Clients that leave at any byte, in the middle of a stream or of an inspection."""
        draw = random.Random(5)
        text = ". ".join(self.sentences[:50])
        while time.monotonic() < end:
            path = draw.choice(["/translate", "/translate/stream", "/inspect"])
            whole = request(path, {"q": text, "source": "de", "target": "en"})
            try:
                reader, writer = await self.connect()
                writer.write(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
                await asyncio.wait({asyncio.ensure_future(reader.read(100))}, timeout=draw.random() / 5)
                writer.close()
                self.counts["left"] += 1
            except OSError:
                pass
            await asyncio.sleep(0.05)

    async def replace(self, end):
        """The folder is replaced by a copy, and read anew."""
        while time.monotonic() < end:
            await asyncio.sleep(1)
            other = self.model.with_name("other")
            shutil.copytree(self.options.model, other)
            old = self.model.with_name("old")
            self.model.rename(old)
            other.rename(self.model)
            shutil.rmtree(old)
            self.process.send_signal(signal.SIGHUP)
            self.counts["reloads"] += 1

    async def watch(self, end):
        while time.monotonic() < end:
            pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
            self.memory.append(pages * os.sysconf("SC_PAGESIZE") / 1e6)
            await asyncio.sleep(1)

    async def read_log(self):
        while await asyncio.to_thread(self.process.stderr.readline):
            pass

    async def run(self):
        end = time.monotonic() + self.options.seconds
        log = asyncio.create_task(self.read_log())
        clients = [asyncio.create_task(self.client(i, end))
                   for i in range(self.options.connections)]  # fmt: skip
        await asyncio.gather(self.half_open(end), self.unkind(end), self.replace(end),
                             self.watch(end))  # fmt: skip
        self.is_ending = True
        self.process.terminate()
        await asyncio.wait_for(asyncio.gather(*clients), 60)
        code = await asyncio.to_thread(self.process.wait, 60)
        await log
        if code != 0:
            self.faults.append(f"it ended with {code}")
        third = self.memory[: max(1, len(self.memory) // 3)]
        rest = self.memory[len(third) :] or third
        if max(rest) > max(third) * 1.02 + 2:
            self.faults.append(f"memory grew from {max(third):.1f} to {max(rest):.1f} MB")
        print(json.dumps(self.counts | {"megabytes": round(max(self.memory), 1),
                                        "megabytes_of_first_third": round(max(third), 1)}))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--model", type=pathlib.Path, default=FOLDER)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory(prefix="seqconv-server-") as folder:
        check = Check(options, folder)
        try:
            asyncio.run(check.run())
        finally:
            check.process.kill()
    for fault in check.faults[:10]:
        print(f"check_server.py: {fault}", file=sys.stderr)
    return 1 if check.faults else 0


if __name__ == "__main__":
    sys.exit(main())
