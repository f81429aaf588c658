"""Files that a name in a folder or in data leads to: only ordinary files of that
folder are read, of those outside nothing is told, and no pipe is waited for."""

import json
import os
import shutil
import socket

import support
from hostile.case import TRANSLATE, Case, written

SECRET = "unspeakable"
FOLLOW = "--follow-links"
OUTSIDE = ("links lead out of it", FOLLOW)


def secret():
    return written("led/secret.txt", f"{SECRET} {SECRET}\n1\n" * 3)


def as_pipe(path):
    os.mkfifo(path)


def as_socket(path):
    # Names of sockets are short, but relative ones suffice.
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def as_link(target):
    return lambda path: path.symlink_to(target)


def through_a_folder(path):
    """A part of the way is a link out, as well as the file's own name."""
    path.symlink_to("out/secret.txt")
    out = path.parent / "out"
    if not out.exists():
        out.symlink_to(secret().parent)


KINDS = {
    "a pipe": (as_pipe, "an ordinary file was wanted, but it is a pipe"),
    "a socket": (as_socket, "an ordinary file was wanted, but it is a socket"),
    "a folder": (lambda path: path.mkdir(), "but it is a folder"),
    "a link to nothing": (as_link("nothing"), "a link that leads nowhere"),
    "a link in a circle": (lambda path: path.symlink_to(path.name),
                           "its links lead in a circle"),
    "a link to a device": (as_link("/dev/zero"), *OUTSIDE),
    "a link outside": (lambda path: path.symlink_to(secret()), *OUTSIDE),
    "a link up": (lambda path: path.symlink_to(
        os.path.relpath(secret(), path.parent)), *OUTSIDE),
    "a link through a folder": (through_a_folder, *OUTSIDE),
}


def replaced(name, file, make, of=None):
    """A copy of a model of which one file was replaced."""
    folder = support.copy_model(f"led-{name.replace(' ', '-')}", of)
    (folder / file).unlink()
    make(folder / file)
    return folder


def model_files():
    for file in ("config.json", "model.safetensors", "dict.txt"):
        for kind, (make, *wanted) in KINDS.items():
            folder = replaced(f"{file}-{kind}", file, make)
            yield Case(f"translate, {file} is {kind}",
                       ["translate", *TRANSLATE, "--model", folder], 1,
                       f"'{folder}/{file}'", *wanted, stdin=b"1 2\n",
                       never=SECRET)
    outside = KINDS["a link outside"][0]
    folder = replaced("every-verb", "dict.txt", outside)
    out = support.scratch() / "led-out"
    for verb, *arguments in (
        ("score", "--source", support.config(), "--target", support.config(),
         "--model", folder),
        ("translate", "--backend", "libtorch", "--model", folder),
        ("average", "--output", out, folder),
        ("quantize", "--output", out, "--model", folder),
        ("export", "--format", "fairseq", folder, out),
        ("info", folder),
        ("inspect", "--output", out, "--model", folder),
        ("shortlist", "--model", folder, "--source", support.config(),
         "--target", support.config(), "--output", out),
        ("train", support.config(), "--output", out, "--init-from", folder),
    ):
        yield Case(f"{verb} with a dict.txt outside", [verb, *arguments], 1,
                   f"'{folder}/dict.txt'", *OUTSIDE, never=SECRET)


def language_model_files():
    outside, *wanted = KINDS["a link outside"]
    pipe, said = KINDS["a pipe"]
    of = support.language_model()
    for verb in ("perplexity", "generate"):
        for name, make, words in (("outside", outside, wanted),
                                  ("pipe", pipe, [said])):
            folder = replaced(f"{verb}-{name}", "dict.txt", make, of)
            yield Case(f"{verb}, dict.txt is {name}",
                       [verb, "--model", folder], 1, *words, stdin=b"eins\n",
                       never=SECRET)


def good_links():
    """Links within a folder, to a folder, and those of a cache."""
    inside = support.copy_model("led-inside")
    (inside / "real").mkdir()
    for file in ("config.json", "model.safetensors"):
        (inside / file).rename(inside / "real" / file)
        (inside / file).symlink_to(f"real/{file}")
    (inside / "dict.txt").rename(inside / "real" / "dict.txt")
    (inside / "dict.txt").symlink_to(inside / "real" / "dict.txt")
    linked = support.scratch() / "led-linked"
    linked.symlink_to(inside)
    cache = support.scratch() / "led-cache"
    shutil.rmtree(cache, ignore_errors=True)
    shutil.copytree(support.model(), cache / "blobs")
    snapshot = cache / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    for file in ("config.json", "model.safetensors", "dict.txt"):
        (snapshot / file).symlink_to(f"../../blobs/{file}")

    def translate(name, code, *arguments):
        return Case(f"translate, {name}",
                    ["translate", *TRANSLATE, "--model", *arguments], code,
                    stdin=b"1 2\n")

    yield translate("links inside", 0, inside)
    yield translate("a linked folder", 0, linked)
    yield translate("a cache", 1, snapshot)
    yield translate("a cache that is trusted", 0, snapshot, FOLLOW)
    yield translate("a cache in LibTorch", 0, snapshot, FOLLOW, "--backend",
                    "libtorch")
    yield Case("info of a cache", ["info", snapshot, FOLLOW], 0)
    yield Case("quantize of a cache",
               ["quantize", "--model", snapshot, FOLLOW, "--output",
                support.scratch() / "led-int8"], 0)
    yield Case("start from a cache",
               ["train", support.config(), "--init-from", snapshot, FOLLOW,
                "--output", support.scratch() / "led-tuned"], 0)
    pipe = replaced("trusted pipe", "dict.txt", as_pipe)
    yield Case("a pipe that is trusted",
               ["translate", "--model", pipe, FOLLOW], 1, "it is a pipe")


def runs():
    for kind in ("a pipe", "a link outside"):
        make, *wanted = KINDS[kind]
        for file in ("state.safetensors", "metrics.jsonl"):
            folder = replaced(f"run-{file}-{kind}", f"training/{file}", make)
            yield Case(f"resume, {file} is {kind}",
                       ["train", support.config(), "--resume", "--output",
                        folder, "--set", "training.max_updates=6"], 1,
                       f"'{folder}/training/{file}'", *wanted, never=SECRET)
        yield Case(f"inspect, metrics.jsonl is {kind}",
                   ["inspect", "--model", support.model(), "--run", folder,
                    "--output", support.scratch() / "led.html"], 1,
                   *wanted, never=SECRET)
    pipe = support.scratch() / "led-list"
    as_pipe(pipe)
    yield Case("shortlist is a pipe",
               ["translate", *TRANSLATE, "--model", support.model(),
                "--shortlist", pipe], 1, "it is a pipe")
    written("led/include.toml", 'include = "pipe.toml"\n')
    as_pipe(support.scratch() / "led/pipe.toml")
    yield Case("include is a pipe",
               ["train", support.scratch() / "led/include.toml"], 1,
               "pipe.toml", "it is a pipe")


def stories():
    folder = support.scratch() / "led/stories"
    written("led/stories/good.story", "1 2\n\n@highlight\n\neins\n")
    (folder / "inside.story").symlink_to(folder / "good.story")
    for kind, (make, *_) in KINDS.items():
        make(folder / kind.replace(" ", "-"))
    names = {
        "..": ("../secret.txt", "there is no story", "leads out by '..'"),
        "back in": ("../stories/good", "there is no story", "'..'"),
        "absolute": (str(secret()), "there is no story", "begins with '/'"),
        "absolute and inside": (f"{folder}/good.story", "begins with '/'"),
        "a machine's": ("/etc/hostname", "begins with '/'"),
        **{kind: (kind.replace(" ", "-"), *wanted)
           for kind, (_, *wanted) in KINDS.items() if kind != "a folder"},
    }
    base = ["summarise", "--model", support.model(), *TRANSLATE,
            "--input-format", "story", "--stories", folder]
    config = ["train", support.config()]
    for key in ("train_source", "train_target", "valid_source", "valid_target"):
        config += ["--set", f"data.{key}=[]"]
    config += ["--set", f'data.stories="{folder}"']
    for name, (line, *wanted) in names.items():
        yield Case(f"story to summarise: {name}", [*base, "--format", "json"],
                   1, "standard input:2", *wanted,
                   stdin=f"good\n{line}\n".encode(), never=SECRET)
    for name in ("..", "absolute", "a pipe", "a link outside"):
        line, *wanted = names[name]
        listed = written(f"led/{name.replace(' ', '-')}.list", f"good\n{line}\n")
        yield Case(f"story to train on: {name}",
                   [*config, "--set", f"data.train={json.dumps(str(listed))}",
                    "--output", support.scratch() / f"led-train-{name}"], 1,
                   f"{listed}:2" if name in ("..", "absolute") else "",
                   *wanted, never=SECRET)
    yield Case("story by a link inside", base, 0, stdin=b"inside\n")
    yield Case("story outside that is trusted", [*base, FOLLOW], 0,
               stdin=b"a-link-outside\n")
    yield Case("a name outside is never trusted", [*base, FOLLOW], 1,
               "leads out", stdin=b"../secret.txt\n", never=SECRET)


FAMILIES = [model_files, language_model_files, good_links, runs, stories]
