// Models: those that are loaded, and those that this machine could load, with their download.

import { $, button, el, events, get, problem, send, tell, tellDone } from "./core.js";

/** Downloads by model: bytes done and in all. */
const pulling = new Map();

const size = (bytes) => (bytes === null ? "?" : bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);

export async function showModels() {
  const [{ data }, shelf] = await Promise.all([get("/v1/models"), get("/v1/shelf")]);
  // Corpora are listed for other clients; here they have their own list.
  const loaded = data.filter(({ corpus }) => !corpus);
  $("models").replaceChildren(...loaded.map(({ id, parent }) => el("li", {}, id, parent ? el("span", { className: "small" }, ` adapter of ${parent}`) : "")));
  $("shelf").replaceChildren(...(shelf.models.length ? table(shelf) : []));
}

function table({ models, free_bytes: free, may_pull: mayPull }) {
  const head = el("tr", {}, ...["Model", "Kind", "Context", "Download", "Memory", "State"].map((name, at) => el("th", { scope: "col", className: at > 1 && at < 5 ? "number" : "" }, name)));
  const rows = models.map((model) => el("tr", {},
    el("th", { scope: "row" }, model.name), el("td", {}, model.kind), el("td", { className: "number" }, model.context_tokens.toLocaleString("en")),
    el("td", { className: "number" }, size(model.download_bytes)),
    el("td", { className: model.fits === false && !model.loaded ? "number bad" : "number" }, size(model.memory_bytes), model.fits === false && !model.loaded ? " does not fit" : ""),
    el("td", {}, ...state(model, mayPull))));
  const whole = el("table", {}, el("caption", {}, "Models that this machine could serve"), el("thead", {}, head), el("tbody", {}, ...rows));
  const about = free === null ? "" : `${size(free)} of memory are free. `;
  return [el("div", { className: "scroll", tabindex: 0, role: "region", "aria-label": "Models that this machine could serve" }, whole),
    el("p", { className: "small" }, about, "Models are loaded when the server starts: ", el("code", {}, "memlocal serve --model NAME"))];
}

function state({ name, loaded, here }, mayPull) {
  if (loaded) return ["loaded"];
  if (pulling.has(name)) return [gone(name)];
  if (here) return ["on this disk"];
  return mayPull ? [button("Fetch", tell(() => pull(name)), { className: "quiet", "aria-label": `Fetch ${name}` })] : [""];
}

function gone(name) {
  const { done, of } = pulling.get(name);
  const words = `Fetching ${name}: ${size(done)}${of ? ` of ${size(of)}` : ""}`;
  const bar = el("progress", { "aria-label": words, title: words, max: of ?? undefined });
  if (of) bar.value = done;
  return el("span", {}, bar, el("span", { className: "small" }, of ? `${size(done)} of ${size(of)}` : size(done)));
}

async function pull(name) {
  pulling.set(name, { done: 0, of: null });
  await showModels();
  try {
    for await (const [event, value] of events(await send("POST", "/v1/shelf/pull", { model: name }))) {
      if (event === "error") throw problem(value, "The download failed");
      if (event !== "progress") continue;
      pulling.set(name, { done: value.done_bytes, of: value.total_bytes });
      [...$("shelf").querySelectorAll("tbody tr")].find((row) => row.firstChild.textContent === name)?.lastChild.replaceChildren(gone(name));
    }
    tellDone(`${name} is on this disk.`);
  } finally {
    pulling.delete(name);
    await showModels();
  }
}
