"""What the tests of the program share: running it, and a tiny trained model.

SEQCONV_BINARY_DIR names the build folder (ctest sets it). SEQCONV_FORK_SERVER
names the library of fork_server.cpp; without it each run starts anew.
SEQCONV_SLOW_DISK names that of slow_disk.cpp.
"""

import atexit
import concurrent.futures
import functools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from fork_server import ForkServers

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(
    os.environ.get("SEQCONV_BINARY_DIR", ROOT / "build" / "release")
)
PROGRAM = BUILD / "bin" / "seqconv"
TIMEOUT = 120  # seconds; nothing here takes more than a few
FORK_SERVER = os.environ.get("SEQCONV_FORK_SERVER")
# A fork of what has LibTorch takes longer than most runs that do not use it.
SERVERS = {
    engine: ForkServers(PROGRAM, FORK_SERVER, engine, TIMEOUT)
    for engine in (BUILD / "lib" / "libseqconv_engine.so", None)}

# A program leaves ignored what was ignored when it started, as for whoever runs the
# tests in the background.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


class Result:
    """What a run of the program left behind; streams as bytes."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    @property
    def message(self):
        return self.err.decode("utf-8", "replace")

    @property
    def lines(self):
        return self.out.decode("utf-8").splitlines()


def run(*arguments, stdin=b"", **options):
    """Runs the program; bytes in, a Result out. With options (those of
    subprocess) it is started anew, without them perhaps forked."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    command = [os.fspath(PROGRAM), *map(os.fspath, arguments)]
    if FORK_SERVER and not options:
        engine, nothing = SERVERS
        uses_torch = "train" in command or "libtorch" in command
        return Result(*SERVERS[engine if uses_torch else nothing].run(command, stdin))
    done = subprocess.run(
        command,
        input=stdin,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        timeout=TIMEOUT,
        check=False,
        **options,
    )
    return Result(done.returncode, done.stdout or b"", done.stderr)


def slow_disk(name, seconds):
    """The words to put before a command for which the files whose path holds `name` take so
    much longer to be written."""
    return ["env", f"LD_PRELOAD={os.environ['SEQCONV_SLOW_DISK']}",
            f"SLOW_DISK_FILE={name}", f"SLOW_DISK_SECONDS={seconds}"]


def once(function):
    """Makes what is asked for the first time, whichever threads ask."""
    lock = threading.Lock()
    cached = functools.cache(function)

    @functools.wraps(function)
    def locked(*arguments):
        with lock:
            return cached(*arguments)

    return locked


@once
def scratch():
    """A folder that is gone when the tests are done."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="seqconv-cli-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@once
def installation():
    """Installed to one place and moved to another, with a blank in its name."""
    first = scratch() / "first"
    subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", first],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return first.rename(scratch() / "moved here")


WORDS = "null eins zwei drei vier fünf sechs sieben acht neun".split()


def write_pairs(folder, name, count, seed, others=()):
    """Digits and their names: NAME.src and NAME.tgt. Gives the sources, none of them among
    `others`."""
    generator = random.Random(seed)
    sources, targets = [], []
    while len(sources) < count:
        digits = [generator.randrange(10) for _ in range(generator.randint(1, 6))]
        if " ".join(map(str, digits)) in others:
            continue
        sources.append(" ".join(map(str, digits)))
        targets.append(" ".join(WORDS[digit] for digit in digits))
    for suffix, lines in (("src", sources), ("tgt", targets)):
        (folder / f"{name}.{suffix}").write_text(
            "".join(line + "\n" for line in lines), encoding="utf-8"
        )
    return sources


# Each run of "auto", the default, would load all of CUDA: other tests' models have it.
CONFIG = """\
[data]
train_source = "{data}/train.src"
train_target = "{data}/train.tgt"
valid_source = "{data}/valid.src"
valid_target = "{data}/valid.tgt"

[text]
subword = "none"

[model]
dim = 16
ffn_dim = 32

[model.encoder]
layers = 2
block = ["dynamicconv", "lightconv"]
kernel_sizes = 3
heads = 2

[model.decoder]
layers = 2
block = ["dynamicconv", "talk"]
kernel_sizes = [3, 0]
max_offsets = [0, 3]
heads = 2

[batching]
max_tokens = 200

[training]
max_updates = 4
log_every = 1
threads = 1
device = "cpu"

[schedule]
warmup_updates = 10

[decoding]
max_length_b = 200
"""


@once
def data():
    folder = scratch() / "data"
    folder.mkdir()
    train = write_pairs(folder, "train", 200, 1)
    write_pairs(folder, "valid", 20, 2, others=train)
    return folder


@once
def config():
    """A valid configuration of a model that trains in a second."""
    path = scratch() / "tiny.toml"
    path.write_text(CONFIG.format(data=data()), encoding="utf-8")
    return path


def trained(name, settings):
    """A folder of the scratch folder with a model trained by a configuration."""
    folder = scratch() / name
    result = run("train", settings, "--output", folder)
    if result.code != 0:
        raise AssertionError(f"the {name} does not train: {result.message}")
    return folder


@once
def model():
    """A tiny trained model. Never written to: copy it to spoil it."""
    return trained("model", config())


def copy_model(name, of=None):
    """A copy of the tiny model (or another) that a test may spoil."""
    folder = scratch() / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(of or model(), folder)
    return folder


LANGUAGE_CONFIG = """\
task = "language_model"

[data]
train = "{data}/train.tgt"
valid = "{data}/valid.tgt"
samples = "blocks"
block_tokens = 32

[text]
subword = "characters"

[model]
dim = 16
ffn_dim = 32
tie = "none"

[model.decoder]
layers = 2
block = ["dynamicconv", "lightconv"]
kernel_sizes = 3
heads = 2

[batching]
max_tokens = 400

[training]
max_updates = 4
save_every = 2
log_every = 1
threads = 1
device = "cpu"

[schedule]
warmup_updates = 10
"""


@once
def language_config():
    path = scratch() / "language.toml"
    path.write_text(LANGUAGE_CONFIG.format(data=data()), encoding="utf-8")
    return path


@once
def language_model():
    """A tiny trained language model of characters. Never written to."""
    return trained("language-model", language_config())


def tests_of(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from tests_of(one)
        else:
            yield one


class SideBySide:
    """A runner for unittest.main that runs so many tests at a time: for those that mostly
    wait for other processes, and whose classes have nothing to set up."""

    def __init__(self, at_once):
        self.at_once = at_once
        self.printing = threading.Lock()

    def run(self, suite):
        tests = list(tests_of(suite))
        total = unittest.TestResult()
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            for result in pool.map(self.run_one, tests):
                total.testsRun += result.testsRun
                for kind in "failures", "errors", "skipped", "unexpectedSuccesses":
                    getattr(total, kind).extend(getattr(result, kind))
        print(f"{total.testsRun} tests, {len(total.failures + total.errors)} faults",
              file=sys.stderr)
        return total

    def run_one(self, test):
        result = unittest.TestResult()
        start = time.monotonic()
        test.run(result)
        with self.printing:
            said = "ok" if result.wasSuccessful() else "FAILED"
            print(f"{said} after {time.monotonic() - start:.1f} s: {test.id()}", file=sys.stderr)
            for one, trace in result.failures + result.errors:
                print(one, trace, sep="\n", file=sys.stderr)
        return result
