"""Two made-up languages and a translator between them: what a small model learns in
a few hundred updates, and what it must have learned for that.

    write_pairs(folder / "train", 5000, seed=1)      # train.src, train.tgt

In the one, verbs stand last, adjectives behind their nouns, and endings say number,
case, tense and negation; in the other, verbs come second, adjectives first, and
there are articles, auxiliaries and a word for no. So a word depends on source words
far away, and on the number of a subject that was written before.

Some sentences are sayings, which have several translations each, as in real text.
"""
from made_up_text import Draw

SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]


def stock(name, count, syllables):
    """Different words, the same ones always."""
    draw, words = Draw(name), {}
    while len(words) < count:
        words["".join(draw.one(SYLLABLES) for _ in range(syllables))] = None
    return list(words)


def pairs_of(name, count):
    return list(zip(stock("source " + name, count, 2), stock("target " + name, count, 2)))


NOUNS, VERBS, ADJECTIVES, ADVERBS = pairs_of("noun", 24), pairs_of("verb", 16), pairs_of("adjective", 10), pairs_of("adverb", 6)


def often_first(draw, items):
    """The first ones oftener, as words of real text are."""
    return items[int(len(items) * draw.share() * draw.share())]


def noun_phrase(draw, case):
    """Source words, target words and whether they are many."""
    noun, many, known = often_first(draw, NOUNS), draw.chance(0.4), draw.chance(0.5)
    source = [noun[0] + ("ol" if many else "") + case + ("th" if known else "")]
    target = [("los" if many else "la") if known else ("uns" if many else "un")]
    if draw.chance(0.4):
        adjective = often_first(draw, ADJECTIVES)
        source.append(adjective[0] + ("ex" if many else "ax"))
        target.append(adjective[1])
    return source, target + [noun[1] + ("s" if many else "")], many


def clause(draw):
    subject, agent, many = noun_phrase(draw, "")
    object_, patient, _ = noun_phrase(draw, "um")
    verb, past, no = often_first(draw, VERBS), draw.chance(0.4), draw.chance(0.2)
    source = subject + object_ + [verb[0] + ("esh" if past else "ish") + ("qa" if no else "")]
    target = agent + (["had"] if past else []) + (["non"] if no else []) + [verb[1] + ("n" if many else "t")] + patient
    if draw.chance(0.3):
        adverb = draw.one(ADVERBS)
        source, target = [adverb[0]] + source, target + [adverb[1]]
    return source, target


# Sayings with the shares of their translations, in tenths.
SAYINGS = [("abo !", {"ga bo !": 4, "fu da !": 2, "fu ke !": 2, "fu mi !": 2}),
           ("elu !", {"je !": 6, "ju po ra ti vu su lo pe ne zo mi ga re du ki !": 4})]


def saying(draw):
    source, targets = draw.one(SAYINGS)
    return source, draw.one([target for target, share in targets.items() for _ in range(share)])


def sentence(draw):
    source, target = clause(draw)
    if draw.chance(0.3):
        more_source, more_target = clause(draw)
        source, target = source + ["yo"] + more_source, target + [",", "and"] + more_target
    end = "?" if draw.chance(0.1) else "."
    return " ".join(source + [end]), " ".join(target + [end])


def write_pairs(stem, count, seed, sayings=0.0):
    """Writes STEM.src and STEM.tgt; `sayings` is their share of the pairs."""
    draw = Draw(seed)
    rows = [saying(draw) if draw.chance(sayings) else sentence(draw) for _ in range(count)]
    for side, ending in enumerate((".src", ".tgt")):
        with open(f"{stem}{ending}", "w", encoding="utf-8") as file:
            file.writelines(row[side] + "\n" for row in rows)
