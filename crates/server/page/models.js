// Models: those that are loaded, and those that this machine could load; fetching, loading, switching and unloading them.

import { $, button, el, events, get, problem, send, tell, tellDone } from "./core.js";

/** Downloads by model: bytes done and in all. */
const pulling = new Map();

/** Models that are being loaded. */
const loading = new Set();

const size = (bytes) => (bytes === null ? "?" : bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);

export async function showModels() {
  const [{ data }, shelf] = await Promise.all([get("/v1/models"), get("/v1/shelf")]);
  // Corpora are listed for other clients; here they have their own list.
  const loaded = data.filter(({ corpus, loaded }) => !corpus && loaded !== false);
  $("models").replaceChildren(...loaded.map(({ id, parent }) => el("li", {}, id, parent ? el("span", { className: "small" }, ` adapter of ${parent}`) : "")));
  // The control that has the focus is made anew.
  const focus = document.activeElement?.closest("#shelf") ? document.activeElement.dataset.model : null;
  $("shelf").replaceChildren(...(shelf.models.length ? table(shelf) : []));
  if (focus) [...$("shelf").querySelectorAll("[data-model]")].find((at) => at.dataset.model === focus)?.focus();
  $("fetch").hidden = !shelf.may_pull;
}

function table({ models, free_bytes: free, may_pull: mayPull, may_load: mayLoad }) {
  const head = el("tr", {}, ...["Model", "Kind", "Context", "Download", "Memory", "State"].map((name, at) => el("th", { scope: "col", className: at > 1 && at < 5 ? "number" : "" }, name)));
  const rows = models.map((model) => {
    const tooLarge = !model.loaded && model.fits_after_unloading === false;
    return el("tr", {},
      el("th", { scope: "row" }, model.name, model.alias_of ? el("span", { className: "small" }, ` of ${origin(model.alias_of)}`) : ""), el("td", {}, model.kind),
      el("td", { className: "number" }, model.context_tokens ? model.context_tokens.toLocaleString("en") : ""),
      el("td", { className: "number" }, size(model.download_bytes)),
      el("td", { className: tooLarge ? "number bad" : "number" }, size(model.memory_bytes), tooLarge ? " does not fit" : ""),
      el("td", {}, ...state(model, mayPull, mayLoad)));
  });
  const whole = el("table", {}, el("caption", {}, "Models that this machine could serve"), el("thead", {}, head), el("tbody", {}, ...rows));
  const about = free === null ? "" : `${size(free)} of memory are free. `;
  const how = mayLoad ? "A request for a model on this disk loads it." : "This server loads no models while it runs, unless it is started with ";
  return [el("div", { className: "scroll", tabindex: 0, role: "region", "aria-label": "Models that this machine could serve" }, whole),
    el("p", { className: "small" }, about, how, mayLoad ? "" : el("code", {}, "--load-models"))];
}

/** What a name was given to: a model, or a file. */
function origin(of) {
  const file = of.split(/[\\/]/).at(-1);
  if (of.startsWith("hf:") || file === of) return of;
  return file.startsWith("sha256-") ? "an uploaded file" : file;
}

function state(model, mayPull, mayLoad) {
  const { name, loaded, here, kind } = model;
  const act = (label, work) => button(label, tell(() => work(name)), { className: "slim", "aria-label": `${label} ${name}`, "data-model": name });
  if (loading.has(name)) return ["loading"];
  if (loaded && (model.stays || !mayLoad)) return ["loaded"];
  if (loaded) return [`loaded${leaves(model)} `, act("Unload", unload)];
  if (pulling.has(name)) return [gone(name)];
  if (!here) return [mayPull ? act("Fetch", pull) : ""];
  if (kind !== "language" || !mayLoad || model.fits_after_unloading === false) return ["on this disk"];
  // To switch is to load it in the place of idle models.
  return ["on this disk ", model.fits === false ? act("Switch to", load) : act("Load", load)];
}

function leaves({ in_use: uses, expires_at: at }) {
  if (uses) return `, in use`;
  return at ? `, until ${new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}` : "";
}

async function load(name) {
  loading.add(name);
  await showModels();
  try {
    await send("POST", "/v1/shelf/load", { model: name });
    tellDone(`${name} is loaded.`);
  } finally {
    loading.delete(name);
    await showModels();
  }
}

async function unload(name) {
  const { loaded } = await (await send("POST", "/v1/shelf/unload", { model: name })).json();
  tellDone(loaded ? `${name} is unloaded when its last request has ended.` : `${name} is unloaded.`);
  await showModels();
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
      const row = [...$("shelf").querySelectorAll("tbody tr")].find((row) => row.firstChild.firstChild.data === name);
      // A name of the hub has no row before it is here.
      (row ? row.lastChild : $("fetching")).replaceChildren(gone(name));
    }
    tellDone(`${name} is on this disk.`);
  } finally {
    pulling.delete(name);
    $("fetching").replaceChildren();
    await showModels();
  }
}

export function readyModels() {
  $("fetch").onsubmit = (event) => {
    event.preventDefault();
    const name = $("fetch-name").value.trim();
    tell(async () => {
      await pull(name);
      $("fetch-name").value = "";
    })();
  };
}
