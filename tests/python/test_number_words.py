"""The demo's numbers: known words, a parser that reads them back, the sets."""
import collections
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import number_words  # noqa: E402

KNOWN = {
    0: ("zero", "null"),
    1: ("one", "eins"),
    7: ("seven", "sieben"),
    12: ("twelve", "zwölf"),
    16: ("sixteen", "sechzehn"),
    17: ("seventeen", "siebzehn"),
    21: ("twenty-one", "einundzwanzig"),
    30: ("thirty", "dreißig"),
    66: ("sixty-six", "sechsundsechzig"),
    77: ("seventy-seven", "siebenundsiebzig"),
    100: ("one hundred", "einhundert"),
    101: ("one hundred and one", "einhunderteins"),
    110: ("one hundred and ten", "einhundertzehn"),
    121: ("one hundred and twenty-one", "einhunderteinundzwanzig"),
    1000: ("one thousand", "eintausend"),
    1001: ("one thousand and one", "eintausendeins"),
    1100: ("one thousand one hundred", "eintausendeinhundert"),
    2005: ("two thousand and five", "zweitausendfünf"),
    16017: ("sixteen thousand and seventeen", "sechzehntausendsiebzehn"),
    21000: ("twenty-one thousand", "einundzwanzigtausend"),
    101000: ("one hundred and one thousand", "einhunderteintausend"),
    101101: ("one hundred and one thousand one hundred and one",
             "einhunderteintausendeinhunderteins"),
    342007: ("three hundred and forty-two thousand and seven",
             "dreihundertzweiundvierzigtausendsieben"),
    999999: ("nine hundred and ninety-nine thousand "
             "nine hundred and ninety-nine",
             "neunhundertneunundneunzigtausend"
             "neunhundertneunundneunzig"),
}

# A second spelling of the languages, for reading: nothing is shared.
EN_ONES = {w: i for i, w in enumerate(
    "one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen".split(), 1)}
EN_TENS = {w: 10 * i for i, w in enumerate(
    "twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
DE_ONES = {w: i for i, w in enumerate(
    "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
    "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split(), 1)}
DE_ONES["eins"] = 1
DE_TENS = {w: 10 * i for i, w in enumerate(
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(),
    2)}


# Groups of three digits are read once: there are a million numbers of two.
@functools.cache
def read_english_group(text):
    group = 0
    for word in re.split("[ -]", text):
        if word == "hundred":
            group *= 100
        elif word not in ("and", "zero"):
            group += EN_ONES.get(word) or EN_TENS[word]
    return group


def read_english(text):
    thousands, _, rest = text.rpartition(" thousand")
    value = 1000 * read_english_group(thousands) if thousands else 0
    return value + (read_english_group(rest.lstrip()) if rest else 0)


@functools.cache
def read_german_group(text):
    hundreds, _, rest = text.rpartition("hundert")
    value = 100 * DE_ONES[hundreds] if hundreds else 0
    if rest in DE_ONES:
        return value + DE_ONES[rest]
    # The 'und' before the tens, not one inside a word (hundert is gone).
    ones, _, tens = rest.rpartition("und")
    if tens:
        value += DE_TENS[tens]
    return value + (DE_ONES[ones] if ones else 0)


def read_german(text):
    if text == "null":
        return 0
    thousands, _, rest = text.rpartition("tausend")
    value = 1000 * read_german_group(thousands) if thousands else 0
    return value + (read_german_group(rest) if rest else 0)


def numbers():
    """All groups of three digits beside those that differ in how they join; with
    SEQCONV_THOROUGH set all numbers there are."""
    if "SEQCONV_THOROUGH" in os.environ:
        return range(1_000_000)
    others = (0, 1, 7, 12, 20, 21, 66, 100, 101, 116, 200, 342, 999)
    pairs = {(group, other) for group in range(1000) for other in others}
    return sorted(1000 * high + low for pair in pairs for high, low in (pair, pair[::-1]))


class Words(unittest.TestCase):
    def test_known_numbers_have_their_words(self):
        for number, (english, german) in KNOWN.items():
            self.assertEqual(number_words.english(number), english)
            self.assertEqual(number_words.german(number), german)

    def test_every_number_is_read_back_and_ein_gets_its_s_at_the_end_alone(self):
        for number in numbers():
            english = number_words.english(number)
            german = number_words.german(number)
            # One check for two: assertEqual is slow when all numbers come.
            if (read_english(english), read_german(german)) != (number,) * 2:
                self.fail(f"{number} became {english} and {german}")
            # 'ein' before 'sechs' or 'sieben' never comes: units lead.
            if (number % 100 == 1) != german.endswith("eins") or "eins" in german[:-4]:
                self.fail(f"{number}: {german}")


class Sets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sets = number_words.sample(20000, 500, 1000, seed=1)

    def test_sizes_are_as_asked(self):
        sizes = {name: len(numbers) for name, numbers in self.sets.items()}
        self.assertEqual(sizes, {"train": 20000, "valid": 500, "test": 1000})

    def test_no_number_comes_in_two_sets_nor_twice_in_a_held_out_one(self):
        train, valid, test = (
            set(self.sets[name]) for name in ("train", "valid", "test"))
        self.assertFalse(train & valid or train & test or valid & test)
        self.assertEqual(len(valid), 500)
        self.assertEqual(len(test), 1000)

    def test_every_number_of_digits_is_in_every_set(self):
        for name, numbers in self.sets.items():
            lengths = collections.Counter(len(str(n)) for n in numbers)
            self.assertEqual(set(lengths), set(range(1, 7)), name)
            self.assertGreaterEqual(lengths[2], 5)
            self.assertGreaterEqual(lengths[3], 40)

    def test_every_word_is_in_the_training_set(self):
        words = set()
        for number in self.sets["train"]:
            words |= set(re.split("[ -]", number_words.english(number)))
        wanted = set(EN_ONES) | set(EN_TENS) | {
            "zero", "and", "hundred", "thousand"}
        self.assertEqual(words, wanted)

    def test_most_short_numbers_are_left_to_learn_from(self):
        train = set(self.sets["train"])
        self.assertGreaterEqual(len(train & set(range(10))), 7)
        self.assertGreaterEqual(len(train & set(range(10, 100))), 60)
        self.assertLessEqual(number_words.one_of_each(), train)

    def test_the_sets_are_a_function_of_the_seed(self):
        again = number_words.sample(20000, 500, 1000, seed=1)
        other = number_words.sample(20000, 500, 1000, seed=2)
        self.assertEqual(again, self.sets)
        self.assertNotEqual(other["test"], self.sets["test"])

    def test_other_sizes_work(self):
        for sizes in ((1, 1, 1), (100, 20, 30), (50000, 5000, 5000)):
            sets = number_words.sample(*sizes, seed=3)
            self.assertEqual(tuple(map(len, sets.values())), sizes)


class Program(unittest.TestCase):
    def run_tool(self, *arguments):
        return subprocess.run(
            [sys.executable, ROOT / "tools" / "number_words.py", *arguments],
            capture_output=True, text=True)

    def test_it_writes_six_parallel_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "new" / "folder"
            result = self.run_tool(
                "--output", folder, "--train", "50", "--valid", "10",
                "--test", "20")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            for part, size in (("train", 50), ("valid", 10), ("test", 20)):
                english, german = (
                    (folder / f"{part}.{s}").read_text("utf-8").splitlines()
                    for s in ("en", "de"))
                self.assertEqual(len(english), size)
                self.assertEqual(
                    list(map(read_english, english)),
                    list(map(read_german, german)))

    def test_it_says_what_is_wrong(self):
        self.assertEqual(self.run_tool().returncode, 2)
        self.assertEqual(
            self.run_tool("--output", "x", "--train", "0").returncode, 2)
        result = self.run_tool("--output", "/dev/null/x")
        self.assertEqual(result.returncode, 1)
        self.assertIn("number_words.py: ", result.stderr)
        result = self.run_tool(
            "--output", "/dev/null/x", "--test", "900000")
        self.assertIn("cannot be held out", result.stderr)


if __name__ == "__main__":
    unittest.main()
