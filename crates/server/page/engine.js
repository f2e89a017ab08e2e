// The state of the engine, updated while the page is visible.

import { $, bar, facts, get, make } from "./core.js";

const EVERY_MS = 2000;

export function watchEngine() {
  let timer = null;
  const look = async () => {
    clearTimeout(timer);
    if (!$("engine").open) return;
    // After an error the next update retries; old numbers are removed.
    if (!document.hidden) await get("/v1/engine").then(show, (error) => $("engine-models").replaceChildren(make("p", error.message)));
    timer = setTimeout(look, EVERY_MS);
  };
  $("engine").ontoggle = look;
}

function show({ models }) {
  const rate = (number) => number.toFixed(number < 10 ? 1 : 0);
  $("engine-models").replaceChildren(...models.map((state) => {
    const card = make("div");
    if (state.used_pages === undefined) {
      card.append(make("h3", state.model), make("p", `${state.total_pages} KV pages. Only the operator sees the load of a shared server.`));
      return card;
    }
    const pages = `${state.used_pages} in use, ${state.cached_pages} cached, ${state.pinned_pages} pinned, of ${state.total_pages}`;
    card.append(make("h3", state.model), bar(`KV pages: ${pages}`, state.total_pages, state.used_pages, state.cached_pages), facts([
      ["KV pages", pages],
      ["calls", `${state.running} running, ${state.waiting} waiting`],
      ["tokens/s", `${rate(state.read_tokens_per_second)} read, ${rate(state.written_tokens_per_second)} written`],
      ["total", `${state.read_tokens} tokens read, ${state.written_tokens} written, ${state.steps} steps`],
    ]));
    return card;
  }), ...(models.length ? [] : [make("p", "A remote engine does not report its state.")]));
}
