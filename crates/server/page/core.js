// Shared by all parts of the page: creating elements, requests, error messages.

export const $ = (id) => document.getElementById(id);

/** The corpus that is being looked at. */
export const chosen = { corpus: null };

export const path = (rest) => `/v1/corpora/${encodeURIComponent(chosen.corpus)}${rest}`;

export function make(tag, text, more = {}) {
  const element = Object.assign(document.createElement(tag), more);
  if (text !== undefined) element.textContent = text;
  return element;
}

export const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** A value in words. */
export function said(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 4 : 1);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Names and values; what is empty is left out. */
export function facts(entries) {
  const list = make("dl");
  for (const [name, value] of entries) {
    const text = Array.isArray(value) ? value.map(said).join(" · ") : said(value);
    if (text) list.append(make("dt", name.replaceAll("_", " ")), make("dd", text));
  }
  return list;
}

/** Parts of a whole, drawn to scale; the words say the same. */
export function bar(words, whole, ...parts) {
  const drawn = make("div", undefined, { className: "bar", title: words });
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", words);
  drawn.append(...parts.map((part) => {
    const piece = make("span");
    piece.style.width = `${(100 * part) / Math.max(whole, 1)}%`;
    return piece;
  }));
  return drawn;
}

export function say(problem) {
  $("problem").textContent = problem || "";
  $("problem").hidden = !problem;
}

// Wraps a user action: its error is displayed, and the page remains usable.
export function tell(work) {
  return async (...args) => {
    say("");
    try { await work(...args); } catch (error) { if (error.name !== "AbortError") say(error.message); }
  };
}

export async function send(method, path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem("key");
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body && !(body instanceof FormData)) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(body);
  }
  const response = await fetch(path, { method, headers, body, signal }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not answer. Is it still running?");
  });
  if (response.status === 401) {
    await askForKey();
    return send(method, path, body, signal);
  }
  if (!response.ok) {
    const error = await response.json().catch(() => null);
    throw new Error(error?.error?.message || `${response.status} ${response.statusText}`);
  }
  return response;
}

export const get = async (path) => (await send("GET", path)).json();

function askForKey() {
  $("key-dialog").showModal();
  return new Promise((done) => {
    $("key-form").onsubmit = () => { sessionStorage.setItem("key", $("key").value.trim()); done(); };
    $("key-dialog").oncancel = (event) => event.preventDefault();
  });
}

// The server-sent events of a response, one by one.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1] || "";
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data) yield [name, JSON.parse(data)];
    }
  }
}
