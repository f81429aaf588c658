// The server's interface. Addresses are relative, so that the page works below any path.

const KEY = "seqconv-key";

export const settings = {};

/** Keeps a key until the tab is closed; "" forgets it. */
export function keepKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

export const hasKey = () => Boolean(sessionStorage.getItem(KEY));

/** An answer that is none: `status` of HTTP, 0 where the server cannot be reached. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server cannot be reached.");
  }
  if (response.ok) return response;
  const wait = response.headers.get("Retry-After");
  const { error } = await response.json().catch(() => ({}));
  const words = error || `The server answers with ${response.status}.`;
  throw new ApiError(response.status, wait ? `${words}: try again in ${wait} s.` : words);
}

function posted(body, signal) {
  const headers = { "Content-Type": "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  return { method: "POST", headers, body: JSON.stringify(body), signal };
}

export const get = async path => (await answer(path)).json();

export const post = async (path, body, signal) =>
  (await answer(path, posted(body, signal))).json();

/** The events of a stream as {name, data}; throws what the event "error" says. */
export async function* events(path, body, signal) {
  const response = await answer(path, posted(body, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(block) || [];
      if (!name) continue;
      const json = JSON.parse(data);
      if (name === "error") throw new ApiError(500, json.error);
      yield { name, data: json };
    }
  }
}
