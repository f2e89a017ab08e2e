// Operations: the engine over time, models, keys, settings, and reports. The engine is watched while this view is shown.

import { $, bar, el, facts, get, tell } from "./core.js";
import { readyReports, showReports } from "./bench.js";
import { readyModels, showModels } from "./models.js";
import { showSettings } from "./settings.js";

const EVERY_MS = 2000;

/** Samples of a chart: five minutes, at first one. */
const SAMPLES = 150;
const FEW_SAMPLES = 30;

const CHARTS = [
  ["Tokens per second", "read", (state) => state.read_tokens_per_second, "written", (state) => state.written_tokens_per_second],
  ["Prompt tokens", "cached", (state) => state.cached, "computed", (state) => state.computed],
  ["Calls", "running", (state) => state.running, "waiting", (state) => state.waiting],
  ["KV pages", "in use", (state) => state.used_pages, "cached", (state) => state.cached_pages],
];

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [320, 96];

/** The latest samples of each model. */
const samples = new Map();
let timer = null;
let isShown = false;
let isPaused = false;

export async function showOperations() {
  isShown = true;
  // A tenant of a shared server sees no history.
  const { samples: before } = await get("/v1/engine/history").catch(() => ({ samples: [] }));
  samples.clear();
  before.flat().forEach(keep);
  look();
  const key = sessionStorage.getItem("key");
  $("key-state").textContent = key ? "This tab has a key for the server." : "This tab has no key, and the server asked for none.";
  $("key-forget").hidden = !key;
  await showModels();
  await showSettings();
  await showReports();
}

export function hideOperations() {
  isShown = false;
  clearTimeout(timer);
}

async function look() {
  clearTimeout(timer);
  if (!isShown) return;
  // After an error the next update retries; old numbers are removed.
  if (!document.hidden && !isPaused) await get("/v1/engine").then(draw, (error) => $("engine-models").replaceChildren(el("p", {}, error.message)));
  timer = setTimeout(look, EVERY_MS);
}

/** Adds a sample of a model, with what has come since the one before. */
function keep(state) {
  const kept = samples.get(state.model) ?? [];
  const last = kept.at(-1) ?? state;
  // After a reload the counts begin again.
  state.cached = Math.max(0, state.cached_tokens - last.cached_tokens);
  state.computed = Math.max(0, state.read_tokens - last.read_tokens);
  kept.push(state);
  if (kept.length > SAMPLES) kept.shift();
  samples.set(state.model, kept);
  return kept;
}

let drawn = "";

function draw({ models }) {
  // A model has come or left.
  const names = models.map(({ model }) => model).join("\n");
  if (drawn && drawn !== names) tell(showModels)();
  drawn = names;
  [...samples.keys()].filter((name) => !models.some(({ model }) => model === name)).forEach((name) => samples.delete(name));
  $("engine-models").replaceChildren(...models.map((state) => {
    if (state.used_pages === undefined) {
      return el("div", {}, el("h3", {}, state.model), el("p", {}, `${state.total_pages} KV pages. Only the operator sees the load of a shared server.`));
    }
    const kept = keep(state);
    const prompts = state.cached_tokens + state.read_tokens;
    const hits = prompts ? `${Math.round((100 * state.cached_tokens) / prompts)} % of ${prompts} prompt tokens` : "";
    const pages = `${state.used_pages} in use, ${state.cached_pages} cached, of ${state.total_pages}`;
    return el("div", {}, el("h3", {}, state.model),
      el("div", { className: "charts" }, ...CHARTS.map((chart) => figure(chart, kept))),
      bar(`KV pages: ${pages}`, state.total_pages, state.used_pages, state.cached_pages),
      facts([["KV pages", pages], ["from the prefix cache", hits], ["in total", `${state.read_tokens} tokens read, ${state.written_tokens} written, ${state.steps} steps`]]));
  }), ...(models.length ? [] : [el("p", {}, "A remote engine does not report its state.")]));
}

const short = (number) => number.toFixed(Number.isInteger(number) || number >= 10 ? 0 : 1);

// Two lines over time; the caption says the latest values.
function figure([title, one, first, other, second], kept) {
  const most = Math.max(1, ...kept.flatMap((state) => [first(state), second(state)]));
  const picture = document.createElementNS(SVG, "svg");
  const words = `${title}: ${one} ${short(first(kept.at(-1)))}, ${other} ${short(second(kept.at(-1)))}; at most ${short(most)}`;
  for (const [name, value] of [["viewBox", `0 0 ${WIDTH} ${HEIGHT}`], ["role", "img"], ["aria-label", words], ["preserveAspectRatio", "none"]]) picture.setAttribute(name, value);
  const step = WIDTH / (Math.max(FEW_SAMPLES, kept.length) - 1);
  for (const [at, value] of [second, first].entries()) {
    const line = document.createElementNS(SVG, "polyline");
    const points = kept.map((state, index) => `${WIDTH - (kept.length - 1 - index) * step},${(HEIGHT - 2) - (value(state) / most) * (HEIGHT - 4)}`);
    line.setAttribute("points", points.join(" "));
    line.setAttribute("class", at ? "first" : "second");
    picture.append(line);
  }
  return el("figure", {}, el("figcaption", {}, el("strong", {}, title), " ",
    el("span", { className: "first" }, `${one} ${short(first(kept.at(-1)))}`), " ", el("span", { className: "second" }, `${other} ${short(second(kept.at(-1)))}`)), picture);
}

export function readyOperations() {
  readyReports();
  readyModels();
  $("engine-pause").onclick = () => {
    isPaused = !isPaused;
    $("engine-pause").textContent = isPaused ? "Continue" : "Pause";
    look();
  };
  $("key-forget").onclick = () => {
    sessionStorage.removeItem("key");
    location.reload();
  };
}
