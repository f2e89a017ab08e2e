// Operations: the engine over time, models, the key, and reports. The engine is watched while this view is shown.

import { $, bar, el, facts, get } from "./core.js";
import { readyReports, showReports } from "./bench.js";
import { showModels } from "./models.js";

const EVERY_MS = 2000;

/** Samples of a chart: five minutes, at first one. */
const SAMPLES = 150;
const FEW_SAMPLES = 30;

const CHARTS = [
  ["Tokens per second", "read", (state) => state.read_tokens_per_second, "written", (state) => state.written_tokens_per_second],
  ["Calls", "running", (state) => state.running, "waiting", (state) => state.waiting],
  ["KV pages", "in use", (state) => state.used_pages, "cached", (state) => state.cached_pages],
];

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [320, 96];

/** The latest samples of each model. */
const samples = new Map();
let timer = null;
let isShown = false;

export async function showOperations() {
  isShown = true;
  look();
  const key = sessionStorage.getItem("key");
  $("key-state").textContent = key ? "This tab has a key for the server." : "This tab has no key, and the server asked for none.";
  $("key-forget").hidden = !key;
  await showModels();
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
  if (!document.hidden) await get("/v1/engine").then(draw, (error) => $("engine-models").replaceChildren(el("p", {}, error.message)));
  timer = setTimeout(look, EVERY_MS);
}

function draw({ models }) {
  $("engine-models").replaceChildren(...models.map((state) => {
    if (state.used_pages === undefined) {
      return el("div", {}, el("h3", {}, state.model), el("p", {}, `${state.total_pages} KV pages. Only the operator sees the load of a shared server.`));
    }
    const kept = samples.get(state.model) ?? [];
    samples.set(state.model, kept);
    kept.push(state);
    if (kept.length > SAMPLES) kept.shift();
    const pages = `${state.used_pages} in use, ${state.cached_pages} cached, ${state.pinned_pages} pinned, of ${state.total_pages}`;
    return el("div", {}, el("h3", {}, state.model),
      el("div", { className: "charts" }, ...CHARTS.map((chart) => figure(chart, kept))),
      bar(`KV pages: ${pages}`, state.total_pages, state.used_pages, state.cached_pages),
      facts([["KV pages", pages], ["in total", `${state.read_tokens} tokens read, ${state.written_tokens} written, ${state.steps} steps`]]));
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
  $("key-forget").onclick = () => {
    sessionStorage.removeItem("key");
    location.reload();
  };
}
