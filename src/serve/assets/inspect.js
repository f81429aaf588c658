// The second view: kernels, windows and attention of a sentence.
import { post } from "./api.js";
import { fault, pair } from "./page.js";

const LEVELS = 24; // of opacity
const LONGEST = 16; // characters of a name
const find = id => document.getElementById(id);
let running;

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function drawn(tag, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

const short = name => [...name].length > LONGEST ? [...name].slice(0, LONGEST - 1).join("") + "…" : name;
const range = count => Array.from({ length: count }, (_, i) => i);

/** Offsets of a kernel's taps: "-1", "0", "+1". */
const taps = weights => range(weights.width).map(j => {
  const offset = j - weights.paddingLeft;
  return offset > 0 ? `+${offset}` : String(offset);
});

/** Numbers [rows, width] of a head, or the mean of all for -1. */
function ofHead({ values, rows, heads, width }, head) {
  const chosen = head < 0 ? range(heads) : [head];
  return range(rows).map(r => range(width).map(i =>
    chosen.reduce((sum, h) => sum + (values[(r * heads + h) * width + i] ?? 0), 0) / chosen.length));
}

/** What a map shows: numbers [rows][columns] with the names of both. */
function mapOf(weights, head, rows, columns) {
  if (weights.form === "fixedTaps")
    return { values: range(weights.heads).map(h => ofHead(weights, h)[0]),
      rows: range(weights.heads).map(h => `head ${h + 1}`), columns: taps(weights) };
  const values = ofHead(weights, head);
  if (weights.form === "taps") return { values, rows, columns: taps(weights) };
  if (weights.form === "reach") return { values, rows, columns: ["to the left", "to the right"] };
  return { values, rows, columns };
}

/** The cells of numbers, one path for each level and sign. */
function cells(values, full) {
  const paths = new Map();
  values.forEach((row, r) => row.forEach((value, c) => {
    const level = Math.round(Math.max(-1, Math.min(1, value / full)) * LEVELS);
    if (level) paths.set(level, (paths.get(level) || "") + `M${c} ${r}h1v1h-1z`);
  }));
  return [...paths].map(([level, d]) => drawn("path",
    { class: level < 0 ? "cold" : "heat", "fill-opacity": Math.abs(level) / LEVELS, d }));
}

/** Windows as bars: each from as far to the left as to the right of its own position. */
function bars(values) {
  return values.map(([left, right], r) => drawn("path", { class: "heat", "fill-opacity": 0.6,
    d: `M${r - left} ${r + 0.15}h${left + 1 + right}v.7h${-(left + 1 + right)}z` }));
}

const longestName = names => Math.max(...names.map(name => [...short(name)].length));

/** A map as SVG; with names where it is large. */
function picture(name, map, weights, full, large) {
  const windows = weights.form === "reach";
  const columns = windows ? map.rows : map.columns;
  const [R, C] = [map.rows.length, columns.length];
  const cell = large ? 18 : Math.max(3, Math.min(10, 160 / Math.max(R, C)));
  const left = large ? longestName(map.rows) * 6.5 + 10 : 1;
  const top = large ? longestName(columns) * 5.8 + 14 : 1;
  const [width, height] = [left + C * cell + (large ? 30 : 1), top + R * cell + 1];
  const svg = drawn("svg", { role: "img", "aria-label": name, width, height,
    viewBox: `0 0 ${width} ${height}` });
  if (large) {
    map.rows.forEach((text, r) => svg.append(drawn("text", { "text-anchor": "end", x: left - 5,
      y: top + (r + 0.5) * cell + 4 }, short(text))));
    columns.forEach((text, c) => svg.append(drawn("text",
      { transform: `translate(${left + (c + 0.65) * cell} ${top - 5}) rotate(-60)` }, short(text))));
  }
  svg.append(drawn("rect", { class: "frame", x: left, y: top, width: C * cell, height: R * cell }));
  const plot = drawn("g", { transform: `translate(${left} ${top}) scale(${cell})` });
  plot.append(...windows ? bars(map.values) : cells(map.values, full));
  svg.append(plot);
  return { svg, place: event => {
    const at = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(plot.getScreenCTM().inverse());
    return [Math.floor(at.y), windows ? 0 : Math.floor(at.x)];
  } };
}

/** Words for a number of a map. */
function words(map, weights, r, c) {
  const value = map.values[r]?.[c];
  if (value === undefined) return "";
  if (weights.form === "reach")
    return `${map.rows[r]}: ${value.toFixed(2)} to the left, ${map.values[r][1].toFixed(2)} to the right`;
  return `${map.rows[r]} → ${map.columns[c]}: ${value.toFixed(3)}`;
}

function figure(name, caption, map, weights, full, large, says) {
  const made = element("figure", "", large ? { tabindex: 0, role: "group", "aria-label": name } : {});
  const { svg, place } = picture(name, map, weights, full, large);
  svg.addEventListener("pointermove", event => {
    says.textContent = words(map, weights, ...place(event));
  });
  made.append(element("figcaption", caption), svg);
  return made;
}

function table(name, map) {
  const made = element("table");
  made.append(element("caption", name, { class: "unseen" }));
  const head = element("tr");
  head.append(element("td"), ...map.columns.map(text => element("th", text, { scope: "col" })));
  made.append(head, ...map.rows.map((text, r) => {
    const row = element("tr");
    row.append(element("th", text, { scope: "row" }),
      ...map.values[r].map(value => element("td", value.toFixed(3))));
    return row;
  }));
  const frame = element("div", "", { class: "table", tabindex: 0, role: "group", "aria-label": name });
  frame.append(made);
  return frame;
}

/** The numbers of a map as a table, made when it is opened. */
function numbers(name, map) {
  const made = element("details");
  made.append(element("summary", "Numbers"));
  made.addEventListener("toggle", () => made.append(table(name, map)), { once: true });
  return made;
}

/** The maps of weights: all heads together in large, then each. */
function maps(name, weights, rows, columns) {
  const full = Math.max(1e-6, ...weights.values.map(Math.abs));
  const frame = element("div", "", { class: "maps" });
  const says = element("p", "", { class: "says" });
  const one = weights.heads === 1 || weights.form === "fixedTaps";
  const mean = mapOf(weights, -1, rows, columns);
  const caption = one ? "" : "mean of the heads";
  frame.append(figure(name, caption, mean, weights, full, true, says));
  if (!one)
    for (const head of range(weights.heads)) {
      const map = mapOf(weights, head, rows, columns);
      const own = `head ${head + 1}`;
      frame.append(figure(`${name}, ${own}`, own, map, weights, full, false, says));
    }
  const legend = weights.form === "reach"
    ? `Furthest reach: ${full.toPrecision(3)} positions.` : `Full colour: ${full.toPrecision(3)}.`;
  return [frame, says, element("p", legend, { class: "soft" }), numbers(name, mean)];
}

function layer(title, explanation, name, weights, rows, columns) {
  const made = element("article");
  made.append(element("h4", title));
  if (explanation) made.append(element("p", explanation, { class: "soft" }));
  if (weights.form !== "none") made.append(...maps(name, weights, rows, columns));
  return made;
}

function stack(title, layers) {
  if (layers.length === 0) return [];
  return [element("h3", title), ...layers];
}

function draw({ symbols, encoder, decoder, crossAttention, notes, translatedText }) {
  const translation = element("p", `Translation: ${translatedText}`);
  translation.lang = pair.target;
  const looks = crossAttention.map((weights, i) => layer(`Layer ${i + 1}`,
    "How much of each source symbol (column) the decoder takes when it writes a symbol (row).",
    `Cross-attention, layer ${i + 1}`, weights, symbols.written, symbols.source));
  const side = (title, layers, names) => layers.map((one, i) => layer(
    `Layer ${i + 1}: ${one.title}`, one.explanation, `${title}, layer ${i + 1}`, one.weights,
    names, names));
  find("layers").replaceChildren(
    translation, ...notes.map(note => element("p", note)),
    ...stack("Cross-attention", looks.filter((_, i) => crossAttention[i].form !== "none")),
    ...stack("Encoder", side("Encoder", encoder, symbols.source)),
    ...stack("Decoder", side("Decoder", decoder, symbols.read)));
}

async function inspect(event) {
  event?.preventDefault();
  running?.abort();
  const own = running = new AbortController();
  fault("");
  find("inspect-status").textContent = "Looks …";
  let said = "";
  try {
    const body = { q: find("sentence").value, source: pair.source, target: pair.target };
    draw(await post("inspect", body, own.signal));
    said = "Shown below.";
  } catch (error) {
    if (error.name === "AbortError") return;
    fault(error);
    find("layers").replaceChildren();
  }
  find("inspect-status").textContent = said;
}

/** Takes the first line of a text that is being translated, unless there is a sentence. */
export function show(text) {
  if (find("sentence").value === "") find("sentence").value = text.trim().split("\n")[0];
}

/** Listens. */
export function begin() {
  find("inspect-form").addEventListener("submit", inspect);
}
