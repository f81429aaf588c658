#!/usr/bin/env python3
"""Trains a small model with guided alignment on made-up languages, and compares the
alignments that `seqconv translate` writes with those that the languages were made by; then
`seqconv serve` must put a tag of HTML around the words that its word became.

    python3 guided_alignment_test.py PROGRAM          # one seed, as the test does
    python3 guided_alignment_test.py PROGRAM --table  # each mixer, two seeds, with and without

In the one language ones come before tens, with a word between them ("three and twenty"),
adjectives stand behind their nouns, and verbs are one word; in the other tens come first,
adjectives too, and verbs have a particle that is shared by several.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from made_up_text import Draw  # noqa: E402

CONFIG = """
[data]
train_source = "{folder}/train.src"
train_target = "{folder}/train.tgt"

[text]
subword = "none"

[model]
dim = 64
ffn_dim = 128
norm = "pre"
dropout = 0.1

[model.encoder]
{stack}

[model.decoder]
{stack}

[batching]
max_tokens = 512

[training]
seed = {seed}
max_updates = 400
guided_alignment = {weight}
keep_last = 0
threads = 1

[schedule]
kind = "cosine"
learning_rate = 5e-3
warmup_updates = 60
period = 0

[decoding]
beam = 1
"""
PAIRS, HELD_OUT = 4000, 300
LEAST = 0.95  # of precision, recall and sentences
LEAST_TAGS = 0.9
KERNEL_SIZES = {"lightconv": 3, "dynamicconv": 3}
MAX_OFFSETS = {"talk": 3}


def sentence(draw):
    """Source words, target words and links of 1 to 4 phrases."""
    source, target, links = [], [], []

    def add(words, translation, pairs):
        links.extend((len(source) + s, len(target) + t) for s, t in pairs)
        source.extend(words)
        target.extend(translation)

    for _ in range(1 + draw.below(4)):
        kind = draw.below(4)
        if kind == 0:
            noun, adjective = draw.below(40), draw.below(30)
            add([f"noun{noun}", f"bent{adjective}"], [f"adj{adjective}", f"thing{noun}"],
                [(0, 1), (1, 0)])
        elif kind == 1:
            one, ten = 1 + draw.below(9), 2 + draw.below(8)
            add([f"ein{one}", "und", f"zig{ten}"], [f"ty{ten}", f"one{one}"], [(0, 1), (2, 0)])
        elif kind == 2:
            verb = draw.below(30)
            add([f"verb{verb}"], [f"do{verb}", f"up{verb % 10}"], [(0, 0), (0, 1)])
        else:
            name = draw.below(30)
            add([f"nom{name}"], [f"name{name}"], [(0, 0)])
    return source, target, sorted(links)


def write_pairs(stem, count, seed):
    draw = Draw(seed)
    sentences = [sentence(draw) for _ in range(count)]
    for side, ending in ((0, "src"), (1, "tgt")):
        text = "".join(" ".join(words[side]) + "\n" for words in sentences)
        pathlib.Path(f"{stem}.{ending}").write_text(text)
    return [links for _, _, links in sentences]


def stack(blocks):
    """The keys of a side with these mixers."""
    lines = [f"layers = {len(blocks)}", "heads = 4", f"block = {json.dumps(blocks)}",
             f"glu = {json.dumps([block != 'self_attention' for block in blocks])}"]
    for key, size in (("kernel_sizes", KERNEL_SIZES), ("max_offsets", MAX_OFFSETS)):
        if any(size.get(block) for block in blocks):
            lines.append(f"{key} = {[size.get(block, 0) for block in blocks]}")
    return "\n".join(lines)


def figures(program, folder, seed, weight, blocks):
    """Precision, recall, and the share of sentences that are right, whose links count."""
    folder.mkdir()
    write_pairs(folder / "train", PAIRS, f"train {seed}")
    wanted = write_pairs(folder / "test", HELD_OUT, f"test {seed}")
    config = folder / "config.toml"
    config.write_text(CONFIG.format(folder=folder, seed=seed, weight=weight, stack=stack(blocks)))
    model = folder / "model"
    subprocess.run([program, "train", config, "--output", model], check=True)
    text = (folder / "test.src").read_text()
    done = subprocess.run([program, "translate", "--model", model, "--threads", "1", "--alignments"],
                          input=text, capture_output=True, check=True, encoding="utf-8")
    right = both = found = known = 0
    lines = zip(done.stdout.splitlines(), (folder / "test.tgt").read_text().splitlines(), wanted)
    for line, translation, links in lines:
        ours, pairs = line.rsplit(" ||| ", 1) if " ||| " in line else (line, "")
        if ours != translation:
            continue
        own = {tuple(map(int, pair.split("-"))) for pair in pairs.split()}
        right += 1
        both, found, known = both + len(own & set(links)), found + len(own), known + len(links)
    return both / max(found, 1), both / max(known, 1), right / HELD_OUT


def tagged_share(program, folder):
    """The share of tags around a word of a sentence that come out around its words; `folder` is
    that of figures()."""
    os.environ["SEQCONV_BINARY_DIR"] = str(pathlib.Path(program).resolve().parents[1])
    sys.path.insert(0, str(ROOT / "tests/cli"))
    from serve_support import Server

    draw, texts, wanted = Draw("test 1"), [], []
    for _ in range(HELD_OUT):
        source, target, links = sentence(draw)
        word = draw.below(len(source))
        own = sorted(t for s, t in links if s == word)
        texts.append(" ".join(f"<b>{w}</b>" if i == word else w for i, w in enumerate(source)))
        wanted.append((target, own))
    with Server("--model", f"de-en={folder / 'model'}") as server:
        status, answer = server.post(
            "/translate", q=texts, source="de", target="en", format="html")
        assert status == 200, answer
    right = known = 0
    for html, (target, own) in zip(answer["translatedText"], wanted):
        plain = re.sub("</?b>", "", html).split()
        if plain != target or not own or own[-1] - own[0] + 1 != len(own):
            continue
        known += 1
        inner = re.search("<b>(.*)</b>", html)[1]
        right += inner.split() == [target[t] for t in own]
    assert known > HELD_OUT / 2, known
    return right / known


def table(program, folder):
    for mixer in ("lightconv", "dynamicconv", "talk", "self_attention"):
        for seed in (1, 2):
            for weight in (0, 0.5):
                found = figures(program, folder / f"{mixer}-{seed}-{weight}", seed, weight, [mixer] * 2)
                print(f"{mixer}, seed {seed}, weight {weight}: precision %.3f, recall %.3f, "
                      "sentences %.3f" % found, flush=True)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="seqconv-guided-") as name:
        folder = pathlib.Path(name)
        if "--table" in sys.argv[2:]:
            return table(program, folder)
        found = figures(program, folder / "run", 1, 0.5, ["dynamicconv", "talk"])
        print("precision %.3f, recall %.3f, sentences %.3f" % found)
        for what, share in zip(("precision", "recall", "sentences"), found):
            assert share >= LEAST, f"{what} must be at least {LEAST}, but is {share:.3f}"
        share = tagged_share(program, folder / "run")
        print("tags around their words %.3f" % share)
        assert share >= LEAST_TAGS, f"tags: at least {LEAST_TAGS}, but got {share:.3f}"


if __name__ == "__main__":
    main()
