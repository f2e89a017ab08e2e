// Reports of benchmark runs: from the server's configured folder, or from a local file that is not uploaded.

import { $, el, facts, get, said, tell } from "./core.js";

export async function showReports() {
  const { runs } = await get("/v1/bench/runs");
  $("bench-runs").replaceChildren(el("option", { value: "" }, runs.length ? "choose a run" : "none on this server"), ...runs.map((name) => el("option", {}, name)));
}

export function readyReports() {
  $("bench-runs").onchange = tell(async () => {
    const run = $("bench-runs").value;
    if (run) show(run, await get(`/v1/bench/report?${new URLSearchParams({ run })}`));
  });
  const read = tell(async ([file]) => {
    if (!file) return;
    const text = await file.text();
    let report;
    try { report = JSON.parse(text); } catch { throw new Error(`${file.name} is not a report: it is not JSON`); }
    show(file.name, report);
  });
  $("bench-file").onchange = () => read($("bench-file").files);
  for (const name of ["dragover", "dragleave", "drop"]) {
    $("bench-drop").addEventListener(name, (event) => {
      event.preventDefault();
      $("bench-drop").classList.toggle("over", name === "dragover");
      if (name === "drop") read(event.dataTransfer.files);
    });
  }
}

function show(name, report) {
  const parts = [el("h3", {}, name)];
  const plain = [];
  for (const [key, value] of Object.entries(Array.isArray(report) ? { results: report } : report)) {
    const rows = Array.isArray(value) && value.length && value.every((row) => row && typeof row === "object" && !Array.isArray(row));
    if (rows) parts.push(table(key, value));
    else plain.push([key, value]);
  }
  parts.splice(1, 0, facts(plain));
  $("bench-report").replaceChildren(...parts);
}

// A cell for every number, including those in nested objects.
function flat(row) {
  return Object.entries(row).flatMap(([key, value]) => value && typeof value === "object" && !Array.isArray(value)
    ? Object.entries(value).map(([inner, value]) => [`${key} ${inner}`, value]) : [[key, value]]);
}

function table(title, rows) {
  const cells = rows.map((row) => new Map(flat(row)));
  const columns = [...new Set(cells.flatMap((row) => [...row.keys()]))].filter((column) => cells.some((row) => (row.get(column) ?? null) !== null));
  const head = el("tr");
  const body = el("tbody");
  const fill = () => body.replaceChildren(...cells.map((row) => {
    const line = el("tr");
    line.append(...columns.map((column) => el("td", { className: typeof row.get(column) === "number" ? "number" : "" }, said(row.get(column)))));
    return line;
  }));
  head.append(...columns.map((column) => {
    const cell = el("th", { scope: "col", className: cells.some((row) => typeof row.get(column) === "number") ? "number" : "" });
    const sort = el("button", { type: "button", className: "link", title: "Sort" }, column.replaceAll("_", " "));
    sort.onclick = () => {
      const order = sort.dataset.order = sort.dataset.order === "down" ? "up" : "down";
      head.querySelector("[aria-sort]")?.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", order === "down" ? "descending" : "ascending");
      const key = (row) => row.get(column) ?? -Infinity;
      cells.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (order === "down" ? -1 : 1));
      fill();
    };
    cell.append(sort);
    return cell;
  }));
  fill();
  const whole = el("table", {}, el("caption", {}, title.replaceAll("_", " ")), el("thead", {}, head), body);
  const frame = el("div", { className: "scroll", tabindex: 0, role: "region", "aria-label": title }, whole);
  return frame;
}
