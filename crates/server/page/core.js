// Shared by all parts of the page: elements, requests, events, messages.

export const $ = (id) => document.getElementById(id);

/** The corpus that is being looked at: its name on the server, and its title. */
export const chosen = { corpus: null, title: "" };

export const path = (rest, corpus = chosen.corpus) => `/v1/corpora/${encodeURIComponent(corpus)}${rest}`;

/** The error of a stream that ends before its last event. */
export const BROKEN = "The connection to the server ended too early.";

/** An element; attributes beginning with `on` are handlers, other functions and objects are properties. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") || name === "className" || name === "value") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export const button = (text, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, text);

export const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

/** The first characters of a text; an ellipsis says that there are more. */
export const brief = (text, most) => {
  const characters = Array.from(text);
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
};

export function lasting(seconds) {
  if (seconds < 0.1) return "< 0.1 s";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** A value in words. */
export function said(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 4 : 1);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Names and values; what is empty is left out. */
export function facts(entries) {
  const list = el("dl");
  for (const [name, value] of entries) {
    const text = Array.isArray(value) ? value.map(said).join(" · ") : said(value);
    if (text) list.append(el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, text));
  }
  return list;
}

/** Parts of a whole, drawn to scale; the words say the same. */
export function bar(words, whole, ...parts) {
  const pieces = parts.map((part) => {
    const piece = el("span");
    piece.style.width = `${(100 * part) / Math.max(whole, 1)}%`;
    return piece;
  });
  return el("div", { className: "bar", title: words, role: "img", "aria-label": words }, ...pieces);
}

/** Shows an error until it is dismissed or the next action begins. */
export function say(problem) {
  $("problem-text").textContent = problem || "";
  $("problem").hidden = !problem;
}

/** A short message that goes by itself. */
export function tellDone(text) {
  $("done").textContent = text;
  clearTimeout(tellDone.timer);
  tellDone.timer = setTimeout(() => { $("done").textContent = ""; }, 4000);
}

/** Wraps a user action: its error is displayed, and the page remains usable. */
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
    // Another request may have been given the key meanwhile.
    if (sessionStorage.getItem("key") === key) await askForKey(Boolean(key));
    return send(method, path, body, signal);
  }
  if (!response.ok) throw problem(await response.json().catch(() => null), `${response.status} ${response.statusText}`, response.status);
  return response;
}

/** The error of a response, as a sentence, with what to do about it. */
export function problem(body, otherwise, status) {
  const { message = otherwise, hint, code } = body?.error ?? {};
  // The hint is the last line of the message too.
  const cause = hint ? message.replace(`\nhint: ${hint}`, "") : message;
  const sentence = cause.charAt(0).toUpperCase() + cause.slice(1);
  return Object.assign(new Error(hint ? `${sentence}. Hint: ${hint}` : sentence), { code, status, sentence, hint });
}

export const get = async (path) => (await send("GET", path)).json();

let asked = null;

function askForKey(wrong) {
  $("key-wrong").hidden = !wrong;
  asked ??= new Promise((done) => {
    $("key-dialog").showModal();
    // Browsers close a dialog at the second Escape in any case; without a key the page cannot continue.
    $("key-dialog").onclose = () => { if (asked) $("key-dialog").showModal(); };
    $("key-dialog").oncancel = (event) => event.preventDefault();
    $("key-form").onsubmit = () => {
      sessionStorage.setItem("key", $("key").value.trim());
      $("key").value = "";
      asked = null;
      done();
    };
  });
  return asked;
}

/** The server-sent events of a response, one by one. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((error) => {
        throw error.name === "AbortError" ? error : new Error(BROKEN);
      });
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
  } finally {
    // A loop that is left early frees the connection.
    reader.cancel().catch(() => {});
  }
}

/**
 * Replaces the items of a list. The keyboard stays on the same control of the same item (`data-key`), or of the item that takes its
 * place; in an empty list it goes to `otherwise`.
 */
export function relist(list, items, otherwise) {
  const before = [...list.children];
  const row = before.findIndex((item) => item.contains(document.activeElement));
  const control = row < 0 ? -1 : controlsOf(before[row]).indexOf(document.activeElement);
  list.replaceChildren(...items);
  if (row < 0) return;
  const same = items.find((item) => item.dataset.key === before[row].dataset.key) ?? items[Math.min(row, items.length - 1)];
  const controls = same ? controlsOf(same) : [];
  (controls[control] ?? controls[0] ?? otherwise).focus();
}

const controlsOf = (item) => [...item.querySelectorAll("a, button")];

/** Asks in a dialog; true if the action is confirmed. */
export function confirmed(title, text, action) {
  const dialog = $("confirm");
  $("confirm-title").textContent = title;
  $("confirm-text").textContent = text;
  $("confirm-yes").textContent = action;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => { dialog.onclose = () => done(dialog.returnValue === "yes"); });
}

/** Asks for a text in a dialog; null if it is cancelled. */
export function entered(title, text) {
  const dialog = $("rename");
  $("rename-title").textContent = title;
  $("rename-text").value = text;
  dialog.returnValue = "";
  dialog.showModal();
  $("rename-text").select();
  return new Promise((done) => { dialog.onclose = () => done(dialog.returnValue === "yes" ? $("rename-text").value.trim() : null); });
}

/** Saves a text as a file. */
export function save(name, text, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
