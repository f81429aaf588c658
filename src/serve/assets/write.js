// The third view: a language model goes on with a text.
import { events, settings } from "./api.js";
import { fault } from "./page.js";

const find = id => document.getElementById(id);
const written = find("written");
let running;

function setBusy(busy) {
  find("begin").disabled = busy;
  find("stop").disabled = !busy;
  written.setAttribute("aria-busy", busy);
}

async function write(event) {
  event.preventDefault();
  fault("");
  const own = running = new AbortController();
  const prompt = document.createElement("b");
  prompt.textContent = find("prompt").value;
  written.replaceChildren(prompt);
  find("write-status").textContent = "Writes …";
  setBusy(true);
  try {
    const body = { prompt: find("prompt").value, model: find("model").value,
      length: find("length").valueAsNumber, temperature: find("temperature").valueAsNumber,
      seed: Math.floor(Math.random() * 2 ** 31), stream: true };
    for await (const { name, data } of events("generate", body, own.signal)) {
      if (name === "part") written.append(data.text);
      if (name === "done") find("write-status").textContent = `Done: ${data.tokens} tokens.`;
    }
  } catch (error) {
    const stopped = error.name === "AbortError";
    find("write-status").textContent = stopped ? "Stopped." : "";
    if (!stopped) fault(error);
  }
  setBusy(false);
}

/** Listens; after the settings are known. */
export function begin() {
  for (const name of settings.languageModels) find("model").add(new Option(name));
  find("model-choice").hidden = settings.languageModels.length < 2;
  find("length").max = settings.maxLength;
  find("length").value = Math.min(100, settings.maxLength);
  find("write-form").addEventListener("submit", write);
  find("stop").addEventListener("click", () => running?.abort());
}
