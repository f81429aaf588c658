"""The golden text: a translation model of BPE pieces with raw sentences, their tokens
and pieces (by sacremoses and subword-nmt), translations and their BLEU (by sacrebleu).

Sentences are made up, and so is the language they are translated to: word by word, but
for the last word, which moves to the second place. The model was trained on such pairs,
which takes a minute: what lies in model.pt is its own origin, and --search trains anew.
"""

import collections
import contextlib
import io
import math
import sys

import sacrebleu
import sacremoses
import torch
from subword_nmt import apply_bpe, learn_bpe

import drawn_weights
import golden_folder
import golden_models
import golden_recipes
import reference_batches
import reference_search
import reference_training
from drawn_weights import FRESH, Names, draw, exact
from golden_models import HERE, Unclear
from golden_recipes import layers
from reference_model import Architecture, ReferenceModel

sys.path.insert(0, str(HERE.parent / "support"))
import made_up_text  # noqa: E402

LANGUAGES = ("de", "en")
SCRIPTS = {"de": "german", "en": "english"}
PAIRS, TEST_LINES, ROWS, MERGES, LONGEST = 3000, 40, 8, 150, 200
UPDATES, BATCH, RATE, WARMUP = 1500, 24, 8e-3, 100
RECIPE = golden_recipes.Recipe(
    "text-dynamicconv",
    "DynamicConv of BPE pieces with the text around it; post-norm, all embeddings tied, names of "
    "present fairseq, settings under cfg",
    Architecture(24, 48, encoder=layers("dynamic", 4, 3, 5), decoder=layers("dynamic", 4, 3, 15)),
    Names(main=True),
    sizes=None,
    gradients=(),
    updated=(),
    configured=True,
)

QUOTES = {"de": ("„", "“"), "en": ('"', '"')}
SPECIAL = {
    "de": ["z.B.", "Nr.", "3,5", "1990", "E-Mail", "5%", "Wal-Tal", "d.h."],
    "en": ["e.g.", "No.", "3.5", "1990", "e-mail", "5%", "don't", "i.e."],
}


def vocabulary(language):
    """Short words of a made-up language."""
    found = made_up_text.language_of(SCRIPTS[language], "golden").words
    return [word for word in found if word.isalpha() and word.islower() and 2 <= len(word) <= 6][:48]


def pair_of(draw_, words):
    """A line and its translation, with what tokenizers must tell apart."""
    out = {language: [] for language in LANGUAGES}
    for _ in range(2 + draw_.below(5)):
        rank, special = int(len(words["de"]) * draw_.share() ** 1.5), (
            draw_.below(8) if draw_.chance(0.06) else None
        )
        quoted, behind = draw_.chance(0.08), draw_.one([",", ",", ";", " –"]) if draw_.chance(0.12) else ""
        for language in LANGUAGES:
            word = words[language][rank] if special is None else SPECIAL[language][special]
            before, after = QUOTES[language] if quoted else ("", "")
            out[language].append(before + word + after + behind)
    out["en"].insert(1, out["en"].pop())
    end = draw_.one([".", ".", ".", "?", "!", "..."])
    return tuple(
        line[:1].upper() + line[1:] + end for line in (" ".join(out[language]) for language in LANGUAGES)
    )


def pairs_of_lines(count, seed):
    draw_ = made_up_text.Draw(f"golden pairs {seed}")
    words = {language: vocabulary(language) for language in LANGUAGES}
    return [pair_of(draw_, words) for _ in range(count)]


class Text:
    """From raw lines to ids and back."""

    def __init__(self):
        self.tokenizers = {language: sacremoses.MosesTokenizer(lang=language) for language in LANGUAGES}
        self.detokenizer = sacremoses.MosesDetokenizer(lang="en")
        self.pairs = pairs_of_lines(PAIRS, "train")
        corpus = [
            self.tokens(line, language)
            for pair in self.pairs[:600]
            for line, language in zip(pair, LANGUAGES)
        ]
        codes = io.StringIO()
        with contextlib.redirect_stderr(io.StringIO()):  # a progress bar
            learn_bpe.learn_bpe(io.StringIO("".join(line + "\n" for line in corpus)), codes, MERGES)
        self.codes = codes.getvalue()
        self.bpe = apply_bpe.BPE(io.StringIO(self.codes))
        counts = collections.Counter(piece for line in corpus for piece in self.pieces(line).split())
        rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
        rows += [(f"madeupword{i:04}", 0) for i in range(-(len(rows) + 4) % 8)]
        self.dictionary = "".join(f"{piece} {count}\n" for piece, count in rows)
        self.symbols = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _ in rows)]
        self.ids = {piece: i for i, piece in enumerate(self.symbols)}

    def tokens(self, line, language):
        split = self.tokenizers[language].tokenize(
            line, escape=False, aggressive_dash_splits=False, return_str=True
        )
        return split.lower()

    def pieces(self, tokens):
        return self.bpe.process_line(tokens)

    def encode(self, line, language):
        stages = {"raw": line, "tok": self.tokens(line, language)}
        stages["bpe"] = self.pieces(stages["tok"])
        return stages, torch.tensor([*(self.ids.get(piece, 3) for piece in stages["bpe"].split()), 2])

    def pieces_of(self, ids):
        return " ".join(self.symbols[i] for i in ids if i != 2)

    def words_of(self, ids):
        return without_bpe(self.pieces_of(ids))

    def detokenized(self, tokens):
        return self.detokenizer.detokenize(tokens.split())


def without_bpe(pieces):
    return (pieces + " ").replace("@@ ", "").rstrip()


def bleu(text, hypotheses, raw):
    """BLEU of the text after it is put together, and of its tokens; both lower case."""
    tokens = [without_bpe(line) for line in hypotheses]
    lower = [line.lower() for line in raw]
    return {
        "bleu_text": sacrebleu.corpus_bleu([text.detokenized(line) for line in tokens], [lower]).score,
        "bleu_tokens": sacrebleu.corpus_bleu(
            tokens, [[text.tokens(line, "en") for line in lower]], tokenize="none", force=True
        ).score,
    }


class Translator:
    def __init__(self, model):
        self.model = model
        self.gap = self.choice_gap = math.inf

    def translate(self, source, beam, lenpen=1.0):
        found = reference_search.translate(self.model, source, beam, lenpen, LONGEST)
        self.gap = min(self.gap, found.score_gap)
        self.choice_gap = min(self.choice_gap, found.choice_gap)
        if self.choice_gap < golden_models.LEAST_CHOICE_GAP or self.gap < golden_models.LEAST_GAP:
            raise Unclear
        return found.hypotheses


def row_of(text, translator, number, sources, targets):
    """The record of one row but for its log-probabilities."""
    (source, source_ids), (target, target_ids) = sources, targets
    record = {"row": number, "test_line": number, "src_len": len(source_ids), "tgt_len": len(target_ids)}
    record |= {f"src_{stage}": line for stage, line in source.items()}
    record |= {f"ref_{stage}": line for stage, line in target.items()}
    record |= {"src_tokens": source_ids.tolist(), "ref_tokens": target_ids.tolist()}
    found = {
        "beam5_lenpen1": translator.translate(source_ids, 5),
        "beam5_lenpen0.6_best": translator.translate(source_ids, 5, 0.6)[0],
        "beam1": translator.translate(source_ids, 1)[0],
    }
    for entry in (*found["beam5_lenpen1"], found["beam5_lenpen0.6_best"], found["beam1"]):
        entry["text"] = text.words_of(entry["tokens"])
    return record | found


def tensors_of(model, pairs):
    """What golden.safetensors holds, with the logits of two rows."""
    tensors = golden_models.outputs_of(model, pairs, rows_with_layers=(2, 5))
    every, tensors["ref_logprobs"] = tensors.pop("logprobs"), tensors.pop("target_logprobs")
    for row in (0, 3):  # log-probabilities are logits too
        tensors[f"logits.row{row}"] = every[row, : len(pairs[row][1])].unsqueeze(0)
    return tensors


def train(text, seed):
    """Weights after UPDATES updates from drawn ones; batches of pairs of equal lengths."""
    size = len(text.symbols)
    model = ReferenceModel(
        RECIPE.architecture, draw(RECIPE.architecture, RECIPE.names, FRESH, (size, size), seed)
    )
    groups = collections.defaultdict(list)
    for pair in text.pairs:
        source, target = (text.encode(line, language)[1] for line, language in zip(pair, LANGUAGES))
        groups[len(source), len(target)].append((source, target))
    batches = [group[i : i + BATCH] for group in groups.values() for i in range(0, len(group), BATCH)]
    adam = reference_training.Adam(model.weights, (0.9, 0.98), 1e-8)
    for n in range(UPDATES):
        if n % len(batches) == 0:
            order = reference_batches.order(len(batches), seed, n // len(batches) + 1)
        batch = batches[order[n % len(batches)]]
        _, _, grads = reference_training.gradients(model, batch, "all")
        rate = reference_training.inverse_root(n, RATE, WARMUP, 0.0)
        adam.update(model.weights, reference_training.clipped(grads, 1.0), rate * len(batch) / BATCH)
    return {name: exact(value) for name, value in model.weights.items()}


def stored_weights(folder):
    state = golden_folder.decode("model.pt", (folder / "model.pt").read_bytes())["model"]
    shared = drawn_weights.copies(state, RECIPE.names)
    bookkeeping = ("version", "conv_bias")
    return {
        name: value.double()
        for name, value in state.items()
        if name not in shared and not name.endswith(bookkeeping)
    }


def rows_of(text, model, translator, sources, targets):
    """Records and tensors of the first rows."""
    rows = [row_of(text, translator, i, sources[i], targets[i]) for i in range(ROWS)]
    tensors = tensors_of(model, [(sources[i][1], targets[i][1]) for i in range(ROWS)])
    for row in rows:
        row["ref_logprob_sum"] = tensors["ref_logprobs"][row["row"]].sum().item()
    return rows, tensors


def table_of(best, hypotheses):
    """The lines of test.beam5.tsv."""
    scores = [f"{entry['score'] / math.log(2):.10g}" for entry in best]
    return "".join(f"{i}\t{score}\t{line}\n" for i, (score, line) in enumerate(zip(scores, hypotheses)))


def make(folder, seed, choosing):
    """All files of the folder. A seed is chosen by training from it; else the weights are
    those that lie there."""
    text = Text()
    weights = train(text, seed) if choosing else stored_weights(folder)
    model = ReferenceModel(RECIPE.architecture, weights)
    raw = list(zip(*pairs_of_lines(TEST_LINES, "test")))
    sources, targets = ([text.encode(line, at) for line in side] for side, at in zip(raw, LANGUAGES))
    translator = Translator(model)
    best = [translator.translate(ids, 5)[0] for _, ids in sources]
    hypotheses = [text.pieces_of(entry["tokens"]) for entry in best]
    rows, tensors = rows_of(text, model, translator, sources, targets)
    outputs = {
        "vocab_size": len(text.symbols),
        **golden_models.IDS,
        "seed": seed,
        "languages": list(LANGUAGES),
    }
    outputs["parameters"] = sum(value.numel() for value in weights.values())
    outputs |= {"smallest_gap": translator.gap, "smallest_choice_gap": translator.choice_gap}
    outputs |= {"test": bleu(text, hypotheses, raw[1]), "rows": rows}
    origin = f"Weights trained from drawn ones of seed {seed} ({UPDATES} updates, made-up pairs)"
    files = {f"test.{at}": "".join(line + "\n" for line in side) for side, at in zip(raw, LANGUAGES)}
    return files | {
        "model.pt": golden_recipes.checkpoint(RECIPE, weights, LANGUAGES),
        "golden.safetensors": tensors,
        "golden.json": outputs,
        "bpecodes": text.codes,
        "dict.de.txt": text.dictionary,
        "dict.en.txt": text.dictionary,
        "test.beam5.tsv": table_of(best, hypotheses),
        "README.md": golden_recipes.readme(RECIPE, outputs, origin),
    }
