"""Made-up text for tests: no word of it is anybody's, and it is the same on every
machine.

    lines("german", 1000, seed=1)           # sentences, one a line
    worse(lines, 0.2, seed=2)               # what a poor system makes of them
    python3 made_up_text.py german 20 1     # prints some

Words are syllables of a script with stems and endings, drawn as in real text: the
word of rank r comes 1 / (r + 2.7) times as often as the first. Sentences have 1
to some sixty words, rarely hundreds, and everything that breaks tokenizers:
abbreviations, numbers, addresses, quotes of all kinds, entities, emoji, combining
marks, control and zero-width characters, odd blanks and empty lines.
"""
import bisect
import functools
import itertools
import random
import sys
import unicodedata


class Draw:
    """Draws from random() alone, the one sequence that Python promises to keep."""

    def __init__(self, seed):
        self.share = random.Random(str(seed)).random

    def below(self, n):
        return int(self.share() * n)

    def one(self, items):
        return items[self.below(len(items))]

    def chance(self, probability):
        return self.share() < probability


def signs(first, last):
    return [chr(c) for c in range(first, last + 1)]


# What syllables are made of: beginnings, middles, ends, and endings of words.
SCRIPTS = {
    "german": ("b d f g h k l m n p r s t w z br sch st fr kl pf tr".split(),
               "a e i o u ä ö ü ei au ie eu".split(), ["", "", "n", "r", "l", "s", "ß", "ch", "ng", "tz"],
               ["", "", "e", "en", "er", "t", "ung", "lich"]),
    "english": ("b c d f g h l m n p r s t w th sh st br wh qu".split(), "a e i o u ea oo ou ai".split(),
                ["", "", "n", "r", "d", "st", "lk", "ll"], ["", "", "", "s", "ed", "ing", "ly", "tion"]),
    "french": ("b c d f g j l m n p r s t v ch qu pr bl".split(), "a e i o u é è ê à ou œu ai oi î ï ô".split(),
               ["", "", "", "n", "r", "s", "x"], ["", "", "e", "s", "es", "ment", "ç", "eaux"]),
    "turkish": ("b c ç d g ğ k l m n r s ş t y z".split(), "a e ı i o ö u ü".split(), ["", "n", "r", "k"],
                ["", "lar", "ler", "dır", "ın", "İ"]),
    "vietnamese": ("b c ch d đ g gi h kh l m n ng nh ph qu t th tr v x".split(),
                   "a ă â e ê i o ô ơ u ư ạ ả ấ ầ ế ệ ị ọ ố ộ ờ ợ ụ ứ ữ ỹ".split(), ["", "n", "ng", "nh", "t", "c"], [""]),
    "greek": ("β γ δ ζ θ κ λ μ ν π ρ σ τ φ χ ψ".split(), "α ε η ι ο υ ω ά έ ή ί ό ύ ώ ϊ ΐ".split(),
              ["", "", "ν", "ρ"], ["ς", "ος", "α", "ου", "ης"]),
    "russian": ("б в г д ж з к л м н п р с т ф х ц ч ш щ".split(), "а е и о у ы э ю я ё й".split(),
                ["", "", "н", "л", "ть", "р"], ["", "а", "ы", "ов", "ами", "ъ"]),
    "arabic": (signs(0x628, 0x63A) + signs(0x641, 0x64A), ["", "ا", "و", "ي", "َ", "ُ", "ِ"], ["", "ّ", "ْ", "ن"],
               ["", "ة", "ات", "ون"]),
    "hebrew": (signs(0x5D0, 0x5EA), ["", "ו", "י", "ָ", "ִ"], ["", "", "ּ"], ["", "ים", "ות", "ה"]),
    "hindi": (signs(0x915, 0x939), ["", "ा", "ि", "ी", "ु", "े", "ो", "ौ", "्र"], ["", "", "ं", "ँ", "़"],
              ["", "ता", "ने", "ों"]),
    "tamil": (signs(0xB95, 0xB95) + signs(0xBA3, 0xBA4) + signs(0xBAE, 0xBB5), ["", "ா", "ி", "ு", "ெ", "ோ"],
              ["", "ம்", "ல்"], ["", "கள்", "இல்"]),
    "thai": (signs(0xE01, 0xE2E), ["า", "ิ", "ี", "ุ", "โ", "ั"], ["", "้", "่", "น"], [""]),
    "chinese": (signs(0x4E00, 0x4F60) + signs(0x20000, 0x20006), [""], [""], ["", "", "的", "了"]),
    "japanese": (signs(0x65E5, 0x6620), signs(0x3042, 0x3093), ["", "ー", "っ"], ["", "は", "を", "カナ", "ます"]),
    "korean": (signs(0xAC00, 0xAC80), [""], ["", "은", "한"], ["", "는", "에서"]),
}
WITHOUT_BLANKS = {"thai", "chinese", "japanese"}

ABBREVIATIONS = ("Mr. Dr. No. Nr. Art. pp. usw. z.B. etc. e.g. U.S. A. v. III. c.-à-d. p.ex. St. J.-P. vs. d.h. Abs. "
                 "г. тел. čís. Ph.D. i.e. Jan. a.m.").split()
NUMBERS = ("0 5 17 1990 1,000 1.000 1,000,000 10.000,50 3.14 .5 5. 1st 2nd 3-4 50% 5%-ig €5 $3.50 £1m 5€ 1/2 ½ ² Ⅷ 〇 ٣٤ ५६ "
           "10:30 23.59 25.11.2031 2031-11-25 11/25/31 +49-30-123456 1'000 1990's (1) [2] #7 -40 ±3 1e-5 0x1F").split()
MIXTURES = ("http://x.example/a-b?c=d&e#f https://www.example.org/~who/ me@example.com don't l'homme d'un qu'il rock'n'roll "
            "O'Neill's dogs' well-known e-mail Köln/Bonn and/or C++ AT&T &amp; &quot; &#39; &lt;b&gt; &amp;lt; <unk> <skipped> "
            "<br/> @-@ x@-@y @@ a@@ \\1 </w> #version: $1 {x} a_b A|B *** ~ ^ ` § © № № µm İstanbul Straße ΣΑΣ ǅ ﬁn ªº ⓐ 𝐀 "
            "x² H₂O 5°C n° 日本語 привет مرحبا हिन्दी 한국 שלום ภาษา 😀 👍🏽 👩‍👩‍👧 🇩🇪 ❤️ e\u0301 A\u030a q\u0323\u0307").split()
QUOTES = [("“", "”"), ("„", "“"), ("«", "»"), ("« ", " »"), ("‘", "’"), ('"', '"'), ("'", "'"), ("``", "''"), ("(", ")"),
          ("[", "]"), ("「", "」"), ("&quot;", "&quot;")]
BETWEEN = [",", ",", ",", ",", ",", ";", ":", " -", " –", "—", " ...", "…", ".", "/", "'", "&", "、", "،"]
ENDS = {"chinese": "。！？", "japanese": "。！？", "hindi": "।?", "arabic": ".؟", "greek": ".;"}
FINALS = [".", ".", ".", ".", ".", ".", "?", "!", "...", "…", "", ".'", '."', "?!", "..", ";", ".)"]
BLANKS = ["  ", "\u00a0", "\u3000", "\t", "\u202f", "\u2028", "\x85", "\x0b", "\x1f", "\u2009"]
HIDDEN = ["\u200b", "\u200d", "\u200e", "\u00ad", "\ufeff", "\x01", "\x7f", "\u0301", "\u2060", "\ufe0f"]


class Language:
    """A script's words by rank; the same for one name and seed."""

    def __init__(self, script, seed=0, words=6000):
        draw = Draw(f"{script} words {seed}")
        self.script = script
        self.stems = [self._stem(draw) for _ in range(words // 3)]
        self.endings = SCRIPTS[script][3]
        found = {}
        while len(found) < words:
            found[self._word(draw)] = None
        # Frequent words are short ones.
        self.words = [word for _, word in sorted(enumerate(found), key=lambda row: (row[0] // 40) + 30 * len(row[1]))]
        self.sums = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(1, words + 1)))

    def _stem(self, draw):
        begin, middle, end, _ = SCRIPTS[self.script]
        syllables = 1 + draw.below(3) if len(begin) < 60 or len(middle) > 1 else 1 + draw.below(2)
        return "".join(draw.one(begin) + draw.one(middle) + draw.one(end) for _ in range(syllables))

    def _word(self, draw):
        word = draw.one(self.stems) + draw.one(self.endings)
        if draw.chance(0.15):
            word = draw.one(self.stems) + draw.one(["", "", "-", "s"]) + word
        if draw.chance(0.1):
            word = word[:1].upper() + word[1:]
        if draw.chance(0.02):
            word = word.upper()
        return unicodedata.normalize("NFD", word) if draw.chance(0.02) else word

    def word(self, draw):
        return self.words[bisect.bisect(self.sums, draw.share() * self.sums[-1])]

    def token(self, draw):
        """A word, or one time in twelve what is no word of the language."""
        if not draw.chance(0.08):
            return self.word(draw)
        return draw.one(draw.one([ABBREVIATIONS, NUMBERS, NUMBERS, MIXTURES]))

    def sentence(self, draw):
        length = 1 + int(45 * draw.share() * draw.share()) + int(12 * draw.share())
        if draw.chance(0.003):
            length *= 20
        blank = "" if self.script in WITHOUT_BLANKS else " "
        out = []
        while length > 0:
            part = [self.token(draw) for _ in range(min(length, 1 + draw.below(14)))]
            length -= len(part)
            if draw.chance(0.12):
                before, after = draw.one(QUOTES)
                part = [before + part[0], *part[1:]]
                part[-1] += after
            out += part
            if length > 0:
                out[-1] += draw.one(BETWEEN) if draw.chance(0.7) else ""
        out[0] = out[0][:1].upper() + out[0][1:]
        final = draw.one(ENDS[self.script]) if self.script in ENDS and draw.chance(0.7) else draw.one(FINALS)
        return odd(blank.join(out) + final, draw)


language_of = functools.lru_cache(maxsize=None)(Language)


def odd(line, draw):
    """The line, one time in ten with odd blanks or hidden characters."""
    if not draw.chance(0.1):
        return line
    for _ in range(1 + draw.below(3)):
        at = draw.below(len(line) + 1)
        kind = draw.one([BLANKS, HIDDEN])
        line = line[:at] + draw.one(kind) + line[at:]
    return line


def lines(script, count, seed=0):
    """Sentences of a language, two in a hundred of them blank."""
    language, draw = language_of(script), Draw(f"{script} lines {seed}")
    return [draw.one(["", " ", "\u00a0"]) if draw.chance(0.02) else language.sentence(draw) for _ in range(count)]


def worse(good, rate, seed=0):
    """Each line as a translation system might have it: of its words a part is left
    out, exchanged, doubled (up to five times), replaced, cut or written otherwise.
    """
    draw = Draw(f"worse {seed}")
    others = [word for line in good for word in line.split(" ")]
    return [" ".join(_edit(line.split(" "), others, rate, draw)) for line in good]


def _edit(words, others, rate, draw):
    out = []
    for word in words:
        if not draw.chance(rate):
            out.append(word)
            continue
        what = draw.below(8)
        if what == 0:
            continue
        if what == 1:
            out[-1:] = [word, *out[-1:]]
        elif what == 2:
            out += [word] * (2 + draw.below(4))
        elif what == 3:
            out.append(draw.one(others))
        elif what == 4:
            out += [word, draw.one(others)]
        elif what == 5:
            out.append(word.swapcase())
        elif what == 6:
            out.append(word.rstrip(".,;:!?\"'”»)") if word[-1:] in ".,;:!?\"'”»)" else word + draw.one([",", ".", "-", "'s"]))
        else:
            at = draw.below(len(word) + 1)
            out.append(word[:at] + word[at + 1:])
    return out


if __name__ == "__main__":
    print("\n".join(lines(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
