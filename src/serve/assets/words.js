// Words of a text and of its translation that belong together, shown in both.

/** Numbers of code points, as the server counts, to those of a string. */
function offsets(text) {
  const found = [0];
  for (const point of text) found.push(found[found.length - 1] + point.length);
  return found;
}

/** The ranges of a side in their order, each once, and the number of each pair's. */
function rangesOf(pairs, side) {
  const keys = new Map(pairs.map(pair => [pair[side].join(), pair[side]]));
  const ranges = [...keys.values()].sort((a, b) => a[0] - b[0]);
  const numbers = new Map(ranges.map((range, i) => [range.join(), i]));
  return { ranges, number: pair => numbers.get(pair[side].join()) };
}

/** Fills an element with a text, its words as elements; gives these. */
function fill(element, text, ranges, end) {
  const at = offsets(text);
  const words = [];
  let position = 0;
  element.replaceChildren();
  for (const [begin, stop] of ranges) {
    const word = document.createElement("span");
    word.className = "word";
    word.textContent = text.slice(at[begin], at[stop]);
    element.append(text.slice(position, at[begin]), word);
    words.push(word);
    position = at[stop];
  }
  element.append(text.slice(position) + end);
  return { words, begins: ranges.map(([begin]) => at[begin]), ends: ranges.map(([, end]) => at[end]) };
}

/** A text in `mirror`, its translation in `translation`, and links between their words. */
export class Words {
  constructor(mirror, translation) {
    this.elements = { source: mirror, target: translation };
    this.show("", "", []);
  }

  /** Shows both; a text alone where `target` is null, which leaves the translation as it is. */
  show(source, target, pairs) {
    const sides = { source: rangesOf(pairs, "source"), target: rangesOf(pairs, "target") };
    this.parts = { source: fill(this.elements.source, source, sides.source.ranges, "\n") };
    this.parts.target = target === null
      ? { words: [], begins: [], ends: [] }
      : fill(this.elements.target, target, sides.target.ranges, "");
    this.links = { source: [], target: [] };
    for (const pair of pairs) {
      const source = sides.source.number(pair), target = sides.target.number(pair);
      (this.links.source[source] ||= []).push(target);
      (this.links.target[target] ||= []).push(source);
    }
    this.at = null;
  }

  /** Marks a word of a side and those that belong to it; none for undefined. */
  mark(side, number) {
    if (this.at && this.at.side === side && this.at.number === number) return;
    const other = side === "source" ? "target" : "source";
    for (const { words } of Object.values(this.parts))
      for (const word of words) word.classList.remove("at", "near");
    this.at = null;
    if (number === undefined) return;
    this.at = { side, number };
    this.parts[side].words[number].classList.add("at");
    for (const i of this.links[side][number] || [])
      this.parts[other].words[i].classList.add("near");
  }

  /** "Hund ← dog" for the word that is marked; "" for none. */
  text() {
    if (!this.at) return "";
    const { side, number } = this.at;
    const other = side === "source" ? "target" : "source";
    const others = (this.links[side][number] || [])
      .map(i => this.parts[other].words[i].textContent).join(" ");
    return `${this.parts[side].words[number].textContent} ${side === "source" ? "→" : "←"} ${others}`;
  }

  /** The number of a side's word at an offset of its string. */
  find(side, offset) {
    const { begins, ends } = this.parts[side];
    const found = begins.findIndex((begin, i) => begin <= offset && offset <= ends[i]);
    return found < 0 ? undefined : found;
  }

  /** The number of a side's word at a place of the window. */
  under(side, x, y) {
    const found = document.elementsFromPoint(x, y)
      .map(element => this.parts[side].words.indexOf(element)).find(i => i >= 0);
    return found;
  }

  /** Rows for a table: [word of the translation, words of the text]. */
  rows() {
    return this.parts.target.words.map((word, i) => [word.textContent,
      (this.links.target[i] || []).map(j => this.parts.source.words[j].textContent).join(" ")]);
  }
}
