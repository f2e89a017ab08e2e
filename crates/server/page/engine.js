// How the engine is doing, while somebody looks.

import { $, get, make } from "./core.js";

const EVERY_MS = 2000;

export function watchEngine() {
  let timer = null;
  const look = async () => {
    clearTimeout(timer);
    if (!$("engine").open) return;
    // A server that is gone for a moment is asked again; what was started by hand says what went wrong.
    if (!document.hidden) await get("/v1/engine").then(show, () => {});
    timer = setTimeout(look, EVERY_MS);
  };
  $("engine").ontoggle = look;
}

function show({ models }) {
  const rate = (number) => number.toFixed(number < 10 ? 1 : 0);
  $("engine-models").replaceChildren(...models.map((state) => {
    const card = make("div", undefined, { className: "card" });
    const pages = make("meter", undefined, { max: state.total_pages, value: state.used_pages + state.cached_pages });
    pages.setAttribute("aria-label", "Pages of keys and values");
    card.append(
      make("h3", state.model),
      pages,
      make("p", `${state.used_pages} of ${state.total_pages} pages in use, ${state.cached_pages} more cached, ${state.pinned_pages} pinned`),
      make("p", `${state.running} running, ${state.waiting} waiting`),
      make("p", `${rate(state.read_tokens_per_second)} tokens/s read, ${rate(state.written_tokens_per_second)} tokens/s written`),
      make("p", `${state.read_tokens} read and ${state.written_tokens} written in ${state.steps} steps`),
    );
    return card;
  }), ...(models.length ? [] : [make("p", "Nothing is known of this engine.")]));
}
