"""The Kneser-Ney reference: against brute force, by hand, as a program."""
import collections
import functools
import json
import math
import pathlib
import random
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "kneser_ney.py"
sys.path.insert(0, str(ROOT / "tools"))
import kneser_ney  # noqa: E402
from kneser_ney import KneserNey  # noqa: E402

END = "</s>"
ORDERS = (1, 2, 3, 4)


def zipf_stream(seed, lines=150, words=200, phrases=100):
    """Words, and phrases of them, of which a few come often and many once or
    twice; some lines are blank."""
    draw = random.Random(seed)
    names = [f"w{i}" for i in range(words)]
    rare = [1 / (i + 1) for i in range(max(words, phrases))]
    pool = [draw.choices(names, rare[:words], k=draw.randrange(1, 6))
            for _ in range(phrases)]
    stream = []
    for _ in range(lines):
        for phrase in draw.choices(pool, rare[:phrases], k=draw.randrange(5)):
            stream += phrase
        stream.append(END)
    return stream


def discounts_of_paper(counts):
    """Chen and Goodman 1999, equation 26, word by word."""
    n = collections.Counter(counts)
    y = n[1] / (n[1] + 2 * n[2])
    return [1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2],
            3 - 4 * y * n[4] / n[3]]


class BruteForce:
    """The same model from tuples and loops."""

    def __init__(self, stream, order, discount):
        padded = [END] * (order - 1) + stream
        self.vocabulary = sorted(set(stream) | {END})
        self.order = order
        self.counts = {order: collections.Counter(
            tuple(padded[i:i + order]) for i in range(len(stream)))}
        for n in range(order - 1, 0, -1):
            self.counts[n] = collections.Counter(
                gram[1:] for gram in self.counts[n + 1])
        self.discounts = {
            n: discounts_of_paper(self.counts[n].values())
            if discount == "auto" else [discount] * 3 for n in self.counts}

    @functools.cache
    def probability(self, history, word):
        below = (self.probability(history[1:], word) if history
                 else 1 / len(self.vocabulary))
        n = len(history) + 1
        followers = {gram: count for gram, count in self.counts[n].items()
                     if gram[:-1] == history}
        total = sum(followers.values())
        if not total:
            return below
        taken = {gram: self.discounts[n][min(count, 3) - 1]
                 for gram, count in followers.items()}
        own = followers.get((*history, word), 0) - taken.get(
            (*history, word), 0)
        return (own + sum(taken.values()) * below) / total


def histories(stream, seed):
    """Of all lengths: from the text, from its beginning, never seen."""
    draw = random.Random(seed)
    words = sorted(set(stream))
    found = [[], stream[:1], stream[:2], [END], [END] * 5, stream[-7:]]
    for _ in range(20):
        start = draw.randrange(len(stream) - 6)
        found.append(stream[start:start + draw.randrange(6)])
        found.append(draw.choices(words, k=draw.randrange(1, 6)))
    return found


@pytest.mark.parametrize("discount", ("auto", 0.3, 1.0))
@pytest.mark.parametrize("order", ORDERS)
def test_probabilities_sum_to_one(order, discount):
    stream = zipf_stream(7)
    model = KneserNey(order, discount).fit(stream)
    for history in histories(stream, order):
        distribution = model.distribution(history)
        assert len(distribution) == len(set(stream))
        assert abs(distribution.sum() - 1) < 1e-9, history
        assert distribution.min() > 0, history


@pytest.mark.parametrize("discount", ("auto", 0.75))
@pytest.mark.parametrize("order", ORDERS)
def test_probabilities_are_those_of_brute_force(order, discount):
    stream = zipf_stream(2)
    model = KneserNey(order, discount).fit(stream)
    assert model.notes == []
    brute = BruteForce(stream, order, discount)
    for n in range(1, order + 1):
        assert model.discounts[n - 1] == pytest.approx(brute.discounts[n])
    for history in histories(stream, order)[:20]:
        padded = tuple([END] * (order - 1) + history)
        kept = padded[len(padded) - order + 1:]
        for word in brute.vocabulary[::7]:
            assert 2 ** model.log2_probability(history, word) == (
                pytest.approx(brute.probability(kept, word), rel=1e-9))


def test_a_stream_is_scored_as_its_words_one_by_one():
    model = KneserNey(3).fit(zipf_stream(3))
    test = [w for w in zipf_stream(4, lines=20) if w in model.ids]
    single = [model.log2_probability(test[:i], word)
              for i, word in enumerate(test)]
    assert model.log2_probabilities(test) == pytest.approx(single, rel=1e-9)
    assert model.perplexity(test) == (
        pytest.approx(2 ** (-sum(single) / len(test)), rel=1e-9))


def test_a_bigram_worked_out_by_hand():
    # Lines "a b" and "a c". Bigrams: </s> a twice, a b, b </s>, a c, c </s>
    # once. So a, b and c come after one symbol, </s> after two; five in all.
    model = KneserNey(2, 0.75).fit(["a", "b", END, "a", "c", END])
    uniform = 0.75 * 4 / 5 / 4
    b = 0.25 / 5 + uniform
    end = 1.25 / 5 + uniform
    assert 2 ** model.log2_probability(["a"], "b") == (
        pytest.approx(0.25 / 2 + 0.75 * 2 / 2 * b, rel=1e-12))
    assert 2 ** model.log2_probability(["a"], END) == (
        pytest.approx(0.75 * 2 / 2 * end, rel=1e-12))
    assert 2 ** model.log2_probability([], "a") == (
        pytest.approx(1.25 / 2 + 0.75 / 2 * (0.25 / 5 + uniform), rel=1e-12))


def test_higher_orders_see_longer_dependencies():
    draw = random.Random(5)
    numbers = [0, 1, 2]
    while len(numbers) < 8000:
        # Nothing nearer than the second and the third last word tells.
        numbers.append((numbers[-2] + numbers[-3]) % 6
                       if draw.random() < 0.9 else draw.randrange(6))
    stream = [str(n) for n in numbers]
    perplexity = [
        KneserNey(order).fit(stream[:6000]).perplexity(stream[6000:])
        for order in (1, 2, 3, 4)]
    # The rule's own: 0.9 + 0.1 / 6 for one word, 0.1 / 6 for five others.
    likely, other = 0.9 + 0.1 / 6, 0.1 / 6
    rule = 2 ** -(likely * math.log2(likely) + 5 * other * math.log2(other))
    assert perplexity[0] > 5.5 and perplexity[1] > 5.5
    assert rule * 0.9 < perplexity[3] < rule * 1.2 < perplexity[2]


def test_unknown_words_are_unk_only_if_training_spells_it():
    with_unknown = KneserNey(2).fit(["a", "<unk>", "b", END])
    assert with_unknown.log2_probability(["a"], "new") == (
        with_unknown.log2_probability(["a"], "<unk>"))
    assert with_unknown.log2_probability(["new"], "b") == (
        with_unknown.log2_probability(["<unk>"], "b"))
    with pytest.raises(
            kneser_ney.UnknownSymbol,
            match="'new' is not in the training text, nor is <unk>") as error:
        KneserNey(2).fit(["a", "b", END]).perplexity(["a", "new", "b"])
    assert error.value.position == 1


def test_counts_that_allow_no_three_discounts_are_noted():
    model = KneserNey(1).fit(["a", "b", "c", "c", END])  # 1, 1, 2, 1
    assert model.discounts == [[3 / 5] * 3]
    assert model.notes == ["order 1: counts of counts 3, 1, 0, 0 allow no "
                           "three discounts: one discount 0.6"]
    model = KneserNey(1).fit(["a", "a", END, END])
    assert model.discounts == [[0.5] * 3]
    assert model.notes == ["order 1: no count is 1: one discount 0.5"]
    # The second discount would be 2 - 3 y 5, y = 1 / 3.
    discounts, note = kneser_ney.estimate_discounts(
        np.array([1, 2, 3, 3, 3, 3, 3, 4]))
    assert discounts == [1 / 3] * 3
    assert note.startswith("counts of counts 1, 1, 5, 1 allow no three")


@pytest.mark.parametrize("order,discount,message", (
    (0, "auto", "the order must be at least 1, but got 0"),
    (2, 0.0, "above 0 and at most 1, but got 0.0"),
    (2, 1.5, "above 0 and at most 1, but got 1.5"),
    (2, math.nan, "above 0 and at most 1, but got nan")))
def test_wrong_options_are_errors(order, discount, message):
    with pytest.raises(ValueError, match=message):
        KneserNey(order, discount)


def test_nothing_to_learn_or_to_predict_is_an_error():
    with pytest.raises(ValueError, match="at least one training symbol"):
        KneserNey(2).fit([])
    with pytest.raises(ValueError, match="at least one symbol to predict"):
        KneserNey(2).fit([END]).perplexity([])


def write(folder, name, text):
    (folder / name).write_bytes(text.encode())
    return folder / name


def test_lines_end_blank_or_not_and_split_at_newlines_only(tmp_path):
    path = write(tmp_path, "t", " a  b \n\n \nc\x85d\u2028e")
    assert kneser_ney.read_stream(path) == [
        "a", "b", END, END, END, "c", "d", "e", END]
    path = write(tmp_path, "t", "é b\r\n\n")
    assert kneser_ney.read_stream(path, characters=True) == [
        "é", " ", "b", "\r", END, END]


def run(*arguments):
    return subprocess.run(
        [sys.executable, TOOL, *map(str, arguments)],
        capture_output=True, text=True)


TRAIN = "a b\na c\n\na b c\n"


def test_the_program_reports_what_the_model_says(tmp_path):
    train = write(tmp_path, "train", TRAIN)
    valid = write(tmp_path, "valid", "c a b\n")
    test = write(tmp_path, "test", "a b\n\na a\n")
    model = KneserNey(3, 0.5).fit(kneser_ney.read_stream(train))
    common = ("--order", 3, "--train", train, "--test", test, "--discount", 0.5)
    result = run(*common, "--valid", valid, "--format", "json")
    assert result.returncode == 0 and result.stderr == ""
    report = json.loads(result.stdout)
    assert report["order"] == 3 and report["vocabulary"] == 4
    assert report["discounts"] == [[0.5] * 3] * 3 and report["notes"] == []
    for name, path, tokens in (("valid", valid, 4), ("test", test, 7)):
        perplexity = model.perplexity(kneser_ney.read_stream(path))
        assert report[name] == {
            "tokens": tokens, "perplexity": pytest.approx(perplexity),
            "bits_per_token": pytest.approx(math.log2(perplexity))}
    result = run(*common)
    assert result.stdout == (
        f"order 3, vocabulary 4\ntest: 7 tokens, perplexity {perplexity:.2f}, "
        f"{math.log2(perplexity):.4f} bits a token\n")


def test_the_program_reads_characters_and_tells_notes(tmp_path):
    train = write(tmp_path, "train", "ab a\n\n")
    result = run("--order", 1, "--train", train, "--test", train,
                 "--characters", "--format", "json")
    report = json.loads(result.stdout)
    assert report["vocabulary"] == 4 and report["test"]["tokens"] == 6
    assert result.stderr == f"kneser_ney.py: {report['notes'][0]}\n"


@pytest.mark.parametrize("train,test,arguments,message", (
    (TRAIN, "a\nb a\nc x\n", (),
     "TEST:3: 'x' is not in the training text, nor is <unk>"),
    (TRAIN, "", (), "TEST: wanted at least one line, but it is empty"),
    ("", TRAIN, (), "TRAIN: wanted at least one line, but it is empty"),
    ("a\nb </s>\n", TRAIN, (),
     "TRAIN:2: the text must not hold </s>, which stands for a line's end"),
    (TRAIN, TRAIN, ("--order", 0), "the order must be at least 1, but got 0"),
    (TRAIN, TRAIN, ("--discount", 2),
     "the discount must be 'auto' or above 0 and at most 1, but got 2.0")))
def test_the_program_names_what_is_wrong(
        tmp_path, train, test, arguments, message):
    train = write(tmp_path, "TRAIN", train)
    test = write(tmp_path, "TEST", test)
    result = run("--train", train, "--test", test, *arguments)
    assert result.returncode == 1 and result.stdout == ""
    message = message.replace("TRAIN:", f"{train}:").replace(
        "TEST:", f"{test}:")
    assert result.stderr == f"kneser_ney.py: {message}\n"
