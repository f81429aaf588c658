// Languages, views and keys; what the views share.
import { ApiError, get, hasKey, keepKey, settings } from "./api.js";
import * as inspecting from "./inspect.js";
import * as translating from "./translate.js";
import * as writing from "./write.js";

const find = id => document.getElementById(id);
const TITLES = { translate: "Translate", inspect: "Inspect", write: "Write" };
const RIGHT_TO_LEFT = /^(ar|arc|ckb|dv|fa|he|iw|ks|nqo|ps|sd|syr|ug|ur|yi)\b/i;
let languages = [];

/** The languages that are chosen. */
export const pair = {
  source: "auto",
  target: "",
  detected: "",
  from() { return this.source === "auto" ? this.detected : this.source; },
  canSwap() { return targetsOf(this.target).includes(this.from()); }
};

export const directionOf = code => !code ? "auto" : RIGHT_TO_LEFT.test(code) ? "rtl" : "ltr";

export const nameOf = code => languages.find(one => one.code === code)?.name || code;

/** Shows a fault, an error or words, and asks for a key where one is wanted; "" takes it away. */
export function fault(error) {
  find("error").textContent = error.message ?? error;
  const wantsKey = error instanceof ApiError && settings.apiKeys &&
    (error.status === 403 || error.status === 400 && settings.keyRequired && !hasKey());
  if (wantsKey) askForKey();
}

function askForKey() {
  find("key-form").hidden = false;
  find("key").focus();
}

function targetsOf(source) {
  const from = source === "auto" ? languages : languages.filter(one => one.code === source);
  return [...new Set(from.flatMap(one => one.targets))];
}

function fill(select, codes, chosen) {
  select.replaceChildren(...codes.map(code =>
    new Option(code === "auto" ? "Detect language" : nameOf(code), code)));
  select.value = codes.includes(chosen) ? chosen : codes[0] ?? "";
  return select.value;
}

/** Takes a choice as far as it is served. */
function choose(source, target) {
  const sources = languages.filter(one => one.targets.length > 0).map(one => one.code);
  const codes = settings.detectsLanguages ? ["auto", ...sources] : sources;
  pair.source = fill(find("source"), codes, source);
  pair.target = fill(find("target"), targetsOf(pair.source), target);
  find("swap").disabled = !pair.canSwap();
}

const readHash = () => {
  const [view, query] = location.hash.slice(1).split("?");
  return { view, choice: new URLSearchParams(query) };
};

/** The address says the view and the languages, and no text. */
function hashOf(view) {
  return `#${view}?` + new URLSearchParams({ source: pair.source, target: pair.target });
}

function showView() {
  const { view: wanted, choice } = readHash();
  const view = Object.hasOwn(TITLES, wanted) && !find("view-" + wanted)?.hidden ? wanted : "translate";
  if (choice.get("source") !== pair.source || choice.get("target") !== pair.target)
    choose(choice.get("source") ?? pair.source, choice.get("target") ?? pair.target);
  for (const name of Object.keys(TITLES)) find(name).hidden = name !== view;
  find("languages").hidden = view === "write";
  find("format").hidden = view !== "translate";
  document.title = `${TITLES[view]} – seqconv`;
  for (const link of document.querySelectorAll("nav a")) {
    link.href = hashOf(link.dataset.view);
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "inspect") inspecting.show(translating.text());
}

function changed() {
  choose(find("source").value, find("target").value);
  history.replaceState(null, "", hashOf(readHash().view || "translate"));
  showView();
  translating.renew();
}

function swap() {
  const from = pair.from();
  choose(pair.target, from);
  translating.swapTexts();
  changed();
}

function useKey(event) {
  event.preventDefault();
  keepKey(find("key").value);
  find("key").value = "";
  find("key-form").hidden = true;
  fault("");
  translating.renew();
}

async function begin() {
  find("key-form").addEventListener("submit", useKey);
  find("ask-key").addEventListener("click", askForKey);
  find("languages").addEventListener("submit", event => event.preventDefault());
  for (const id of ["source", "target"]) find(id).addEventListener("change", changed);
  find("swap").addEventListener("click", swap);
  addEventListener("hashchange", () => {
    const before = pair.source + pair.target;
    showView();
    if (pair.source + pair.target !== before) translating.renew();
  });
  try {
    const [own, served] = await Promise.all([get("frontend/settings"), get("languages")]);
    Object.assign(settings, own);
    languages = served;
  } catch (error) {
    return fault(error);
  }
  find("ask-key").hidden = !settings.apiKeys;
  find("view-write").hidden = settings.languageModels.length === 0;
  const from = languages.filter(one => one.targets.length > 0);
  choose(from.length === 1 ? from[0].code : "auto", settings.language.target.code);
  showView();
  if (settings.keyRequired && !hasKey()) askForKey();
  writing.begin();
  inspecting.begin();
  translating.begin();
}

begin();
