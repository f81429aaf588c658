// The first view: translates while one types.
import { events, settings } from "./api.js";
import { directionOf, fault, nameOf, pair } from "./page.js";
import { Words } from "./words.js";

const PAUSE = 300; // milliseconds without a key until the text is sent
const LONGEST = { alignments: 5000, alternatives: 500 }; // characters
const find = id => document.getElementById(id);
const q = find("q"), translation = find("translation");
const words = new Words(find("mirror"), translation);
let timer, running, shown = "", asked = "";

const format = () => document.querySelector("[name=format]:checked").value;

function count() {
  const characters = [...q.value].length;
  find("count").textContent = `${characters} / ${settings.charLimit}`;
  find("count").classList.toggle("over", characters > settings.charLimit);
  return characters;
}

function setLanguage(element, code) {
  if (code) element.lang = code;
  else element.removeAttribute("lang");
  element.dir = directionOf(code);
}

function showDetected(detected) {
  find("detected").textContent = detected ? `Detected: ${nameOf(detected.language)}` : "";
  pair.detected = detected ? detected.language : "";
  for (const element of [q, find("mirror")])
    setLanguage(element, pair.source === "auto" ? pair.detected : pair.source);
  find("swap").disabled = !pair.canSwap();
}

function showOthers(texts) {
  find("others").hidden = texts.length === 0;
  find("others").querySelector("ol").replaceChildren(...texts.map(text => {
    const item = document.createElement("li");
    setLanguage(item, pair.target);
    item.textContent = text;
    return item;
  }));
}

function showPairs() {
  find("pairs").hidden = words.rows().length === 0;
  find("pairs").querySelector("tbody").replaceChildren(...words.rows().map(row => {
    const line = document.createElement("tr");
    line.append(...row.map((text, i) => {
      const cell = document.createElement("td");
      setLanguage(cell, i === 0 ? pair.target : q.lang);
      cell.textContent = text;
      return cell;
    }));
    return line;
  }));
}

/** Shows HTML: an empty sandbox runs no script, and the page's policy loads nothing. */
function render(html) {
  const frame = find("rendered").cloneNode(); // one that was hidden may stay white
  frame.hidden = !html;
  frame.srcdoc = html;
  find("rendered").replaceWith(frame);
}

function show(text, source, alignments) {
  const html = format() === "html";
  words.show(source, text, alignments);
  translation.classList.toggle("code", html);
  find("hint").hidden = html;
  render(html ? text : "");
  shown = text;
  find("copy").disabled = !text;
}

function done(data, source) {
  setLanguage(translation, pair.target);
  showDetected(data.detectedLanguage);
  show(data.translatedText, source, data.alignments || []);
  showOthers(data.alternatives || []);
  showPairs();
}

/** Shows that the translation is not that of the text, until it is. */
function setBusy(busy) {
  translation.classList.toggle("old", busy);
  translation.setAttribute("aria-busy", busy);
}

async function follow(source, body, signal) {
  let text = "";
  for await (const { name, data } of events("translate/stream", body, signal)) {
    if (name === "done") done(data, source);
    else if (name === "part" && body.format === "text") show(text += data.translatedText, source, []);
  }
}

async function translate() {
  running?.abort();
  const source = q.value, characters = count();
  asked = source;
  fault("");
  if (!source.trim() || !pair.target) return done({ translatedText: "" }, source);
  if (characters > settings.charLimit)
    return fault(`The text has ${characters} characters, but at most ${settings.charLimit} are translated.`);
  const own = running = new AbortController();
  const text = format() === "text";
  const body = { q: source, source: pair.source, target: pair.target, format: format(),
    alignments: text && characters <= LONGEST.alignments };
  if (text && characters <= LONGEST.alternatives)
    body.alternatives = Math.min(3, settings.maxAlternatives);
  setBusy(true);
  try {
    await follow(source, body, own.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    fault(error);
  }
  if (running === own) setBusy(false);
}

/** Translates anew, at once or when nobody has typed for a moment. */
export function renew(pause = 0) {
  clearTimeout(timer);
  timer = setTimeout(translate, pause);
}

/** The translation becomes the text. */
export function swapTexts() {
  q.value = shown;
  words.show(q.value, null, []);
}

export const text = () => q.value;

function mark(side, number) {
  words.mark(side, number);
  find("pair").textContent = words.text();
}

function walk(event) {
  const last = words.parts.target.words.length - 1;
  const now = words.at?.side === "target" ? words.at.number : -1;
  const back = translation.dir === "rtl" ? "ArrowRight" : "ArrowLeft";
  const to = { Home: 0, End: last, [back]: Math.max(now - 1, 0),
    [back === "ArrowLeft" ? "ArrowRight" : "ArrowLeft"]: Math.min(now + 1, last) }[event.key];
  if (event.key === "Escape") mark("target", undefined);
  if (to === undefined || last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  mark("target", to);
}

async function copy() {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(shown);
  } else { // only pages of https and of this machine have a clipboard
    getSelection().selectAllChildren(translation);
    document.execCommand("copy");
  }
  find("pair").textContent = "Copied.";
}

/** Listens; after the languages are known. */
export function begin() {
  q.addEventListener("input", () => {
    count();
    if (q.value === asked) return;
    running?.abort();
    words.mark("source", undefined);
    find("pair").textContent = "";
    find("mirror").textContent = q.value + "\n";
    words.parts.source = { words: [], begins: [], ends: [] };
    words.links.source = words.links.target = [];
    renew(PAUSE);
  });
  const caret = () => mark("source", words.find("source", q.selectionStart));
  q.addEventListener("keyup", event => {
    if (/^(Arrow|Home|End|Page)/.test(event.key)) caret();
  });
  q.addEventListener("click", caret);
  q.addEventListener("pointermove", event =>
    mark("source", words.under("source", event.clientX, event.clientY)));
  translation.addEventListener("pointermove", event =>
    mark("target", words.under("target", event.clientX, event.clientY)));
  for (const [side, element] of [["source", q], ["target", translation]])
    element.addEventListener("pointerleave", () => mark(side, undefined));
  translation.addEventListener("keydown", walk);
  translation.addEventListener("blur", () => mark("target", undefined));
  find("clear").addEventListener("click", () => {
    q.value = "";
    q.focus();
    renew();
  });
  find("copy").addEventListener("click", copy);
  find("format").addEventListener("change", () => renew());
  count();
  renew();
}
