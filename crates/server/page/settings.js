// Keys and settings of the server, as the operator sees them; neither holds a secret.

import { $, el, facts, get } from "./core.js";

export async function showSettings() {
  const [{ required, keys }, { settings }] = await Promise.all([get("/v1/keys"), get("/v1/settings").catch(() => ({ settings: [] }))]);
  $("keys").replaceChildren(required ? table(keys) : el("p", {}, "No key is required. ", el("code", {}, "memlocal keys add NAME"), " makes the first."));
  $("settings").replaceChildren(facts(settings));
  $("settings-section").hidden = settings.length === 0;
}

function table(keys) {
  const head = el("tr", {}, ...["Holder", "Rights", "Created"].map((name) => el("th", { scope: "col" }, name)));
  const rows = keys.map(({ name, operator, created }) => el("tr", {},
    el("th", { scope: "row" }, name), el("td", {}, operator ? "operator: models, and counts of all" : "own corpora"), el("td", {}, created ?? "unknown")));
  const whole = el("table", {}, el("caption", {}, "Keys"), el("thead", {}, head), el("tbody", {}, ...rows));
  return el("div", { className: "scroll", tabindex: 0, role: "region", "aria-label": "Keys" }, whole);
}
