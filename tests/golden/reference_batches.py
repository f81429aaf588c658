"""seqconv's batches and their order, from their definition (docs/semantics.md 3.1):
a shuffle by the seed, stable sorts by length, greedy packing, another shuffle each
epoch.
"""

MASK = (1 << 64) - 1


def mix(a, b):
    """SplitMix64's last step over two words."""
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def shuffled(items, seed):
    items = list(items)
    for i in range(len(items), 1, -1):
        j = (mix(seed, i) * i) >> 64
        items[i - 1], items[j] = items[j], items[i - 1]
    return items


def batches(pairs, max_tokens, multiple, seed):
    """Lists of row numbers, in the order of their lengths."""
    rows = shuffled(range(len(pairs)), mix(seed, 0))
    rows.sort(key=lambda row: (len(pairs[row][0]), len(pairs[row][1])))
    found, filling = [], []
    for row in rows:
        while filling and (len(filling) + 1) * max(longer(pairs[r]) for r in [*filling, row]) > max_tokens:
            kept = max(len(filling) // multiple * multiple, len(filling) % multiple)
            found.append(filling[:kept])
            filling = filling[kept:]
        filling.append(row)
    return [*found, filling] if filling else found


def longer(pair):
    return max(len(side) for side in pair)


def order(count, seed, epoch):
    """The order in which an epoch (from 1) visits its batches."""
    return shuffled(range(count), mix(seed, epoch))
