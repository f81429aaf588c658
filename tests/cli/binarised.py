"""Writes fairseq's binarised data as their format says (docs/data.md)."""

import struct

KINDS = {1: "B", 2: "b", 3: "h", 4: "i", 5: "q", 8: "H", 9: "I", 10: "Q"}


def dictionary(path):
    """The ids of a dict.txt's symbols."""
    symbols = ["<s>", "<pad>", "</s>", "<unk>"]
    for line in path.read_text(encoding="utf-8").splitlines():
        symbols.append(line.rpartition(" ")[0])
    return {symbol: i for i, symbol in enumerate(symbols)}


def encode(lines, ids):
    """Sentences of ids; a line is symbols between blanks."""
    return [[ids.get(s, 3) for s in line.split()] + [2] for line in lines]


def mapped(stem, sentences, code=8):
    """Writes STEM.idx and STEM.bin of the kind "mmap"; returns the latter."""
    kind = KINDS[code]
    width = struct.calcsize(kind)
    lengths = [len(ids) for ids in sentences]
    places = [width * sum(lengths[:i]) for i in range(len(lengths))]
    count = len(sentences)
    stem.with_name(stem.name + ".idx").write_bytes(
        b"MMIDIDX\0\0"
        + struct.pack("<QBQ", 1, code, count)
        + struct.pack(f"<{count}i", *lengths)
        + struct.pack(f"<{count}q", *places)
    )
    data = stem.with_name(stem.name + ".bin")
    data.write_bytes(
        b"".join(struct.pack(f"<{len(ids)}{kind}", *ids) for ids in sentences)
    )
    return data


def cached(stem, sentences, code=4):
    """The same of the kind "lazy" or "cached", whose ids are stored plus one."""
    kind = KINDS[code]
    places = [0]
    for ids in sentences:
        places.append(places[-1] + len(ids))
    count = len(sentences)
    stem.with_name(stem.name + ".idx").write_bytes(
        b"TNTIDX\0\0"
        + struct.pack("<5Q", 1, code, struct.calcsize(kind), count, count)
        + struct.pack(f"<{count + 1}q", *range(count + 1))
        + struct.pack(f"<{count + 1}q", *places)
        + struct.pack(f"<{count}q", *map(len, sentences))
    )
    data = stem.with_name(stem.name + ".bin")
    data.write_bytes(
        b"".join(
            struct.pack(f"<{len(ids)}{kind}", *(i + 1 for i in ids))
            for ids in sentences
        )
    )
    return data
