// The reader: the text of a document, reflowed, with highlighted places that can be walked through.

import { $, chosen, counted, el, get, path, tell } from "./core.js";

/** The element that opened the reader. */
let opener = null;

/** How often a document was opened or the reader closed: a response that comes after the next time shows nothing. */
let openings = 0;

/** The id of the document of a name. */
let idOf = null;

/** What is shown: document, places that are highlighted (UTF-16), the current one, and what the arrows walk through. */
let now = null;

/** Opens the sources of an answer at one of them, from 1. */
export async function openSource(sources, number) {
  const opening = begin();
  const { path: name, start, end } = sources[number - 1];
  const open = async (anew) => {
    const id = await idOf(name, anew);
    if (id === undefined) throw new Error(`${name} is no longer among the documents`);
    return show(opening, id, start, end);
  };
  // A document that was replaced has another id.
  const isShown = await open(false).catch((error) => { if (error.status === 404) return open(true); throw error; });
  if (isShown) walk("Source", sources.length, number, tell((to) => openSource(sources, to)));
}

/** Opens a document, at a place if there is one. */
export async function openDocument(id, start, end) {
  if (await show(begin(), id, start, end)) walk("", 0, 0);
}

function begin() {
  if (!$("source").contains(document.activeElement)) opener = document.activeElement;
  return ++openings;
}

export function closeSource() {
  openings++;
  if ($("source").hidden) return;
  // A link that leaves the view keeps the keyboard.
  const hasKeyboard = $("source").contains(document.activeElement) || document.activeElement === document.body;
  $("source").hidden = true;
  document.body.classList.remove("reading");
  if (history.state?.isReader) history.back();
  now = null;
  if (hasKeyboard) [opener, $("question"), $("main")].find((at) => at?.isConnected && at !== document.body && at.checkVisibility()).focus();
}

// In a narrow window the reader is in front of the page.
const isInFront = () => !$("source").hidden && getComputedStyle($("source")).position === "fixed";

// Shows a document at a place; false if another was opened meanwhile, or the reader closed.
async function show(opening, id, start, end) {
  const corpus = chosen.corpus;
  if (now?.id !== id || now.corpus !== corpus) {
    const found = await get(path(`/documents/${id}`));
    if (opening !== openings) return false;
    now = { id, corpus, ...found };
    // Spans count characters, not UTF-16 code units.
    now.units = [0];
    for (const character of found.text) now.units.push(now.units.at(-1) + character.length);
  } else if (opening !== openings) return false;
  $("source-title").textContent = now.title || now.name;
  $("source-about").textContent = [now.title && now.title !== now.name ? now.name : "", now.kind, counted(now.pages, "page")].filter(Boolean).join(" · ");
  $("source-find").value = "";
  $("source").hidden = false;
  document.body.classList.add("reading");
  // The browser's "Back" closes a reader that covers the page, and the view behind it stays.
  if (isInFront() && !history.state?.isReader) history.pushState({ isReader: true }, "");
  // An address may name a place that the document does not have.
  const [from, to] = [now.units[start], now.units[end]];
  const places = from < to ? [{ from, to }] : [];
  draw(places);
  const first = $("source-text").querySelector("mark");
  if (first) {
    first.scrollIntoView({ block: "center" });
    first.focus({ preventScroll: true });
  } else {
    $("source-text").scrollTop = 0;
    $("source-title").focus();
  }
  return true;
}

// The arrows walk through sources of an answer, or through hits of a search.
function walk(what, count, at, go) {
  $("source-walk").hidden = count < 1 || (count === 1 && what === "Source");
  $("source-where").textContent = count ? `${what} ${at} of ${count}` : "";
  for (const [name, to] of [["source-previous", at - 1], ["source-next", at + 1]]) {
    $(name).disabled = to < 1 || to > count;
    $(name).onclick = () => go(to);
  }
}

// Blocks between blank lines; line breaks inside a block are spaces unless its lines are short, as in verse and tables.
function blocksOf(text) {
  const blocks = [];
  for (const { 0: block, index } of text.matchAll(/(?:[^\n]+(?:\n(?![ \t\r]*\n)|$)?)+/g)) {
    if (!block.trim()) continue;
    const lines = block.split("\n").filter((line) => line.trim());
    const heading = /^(#{1,6}) +\S/.exec(block);
    const long = lines.length > 1 && lines.reduce((sum, line) => sum + line.length, 0) / lines.length > 45;
    const listed = lines.length > 1 && lines.some((line) => /^\s*([-*•|]|\d+[.)])/.test(line));
    blocks.push({ from: index, to: index + block.length, heading: lines.length === 1 && heading ? heading[1].length : 0, keep: lines.length > 1 && (!long || listed) });
  }
  return blocks;
}

function draw(places) {
  const { text, parts = [], units } = now;
  const starts = parts.map((part, at) => ({ ...part, from: units[part.start], number: at + 1 }));
  const out = [];
  for (const block of blocksOf(text)) {
    const heading = block.heading ? text.slice(block.from, block.to).replace(/^#+ +/, "").trim() : "";
    while (starts.length && starts[0].from < block.to) out.push(divider(starts.shift(), parts.length, heading));
    const element = el(block.heading ? `h${Math.min(block.heading + 2, 6)}` : "p", { className: block.keep ? "lines" : "" });
    let at = block.from;
    if (block.heading) {
      const lead = /^#+ +/.exec(text.slice(block.from, block.to))[0].length;
      element.append(el("span", { className: "hash", "aria-hidden": "true" }, text.slice(at, at + lead)));
      at += lead;
    }
    for (const { from, to } of places) {
      if (to <= at || from >= block.to) continue;
      element.append(text.slice(at, Math.max(at, from)));
      const upto = Math.min(to, block.to);
      element.append(el("mark", { tabindex: -1 }, text.slice(Math.max(at, from), upto)));
      at = upto;
    }
    element.append(text.slice(at, block.to));
    out.push(element);
  }
  $("source-text").replaceChildren(...out);
}

// Where a page begins, with what models have written about it; the heading that follows is not repeated.
function divider(part, count, heading) {
  const notes = (part.notes ?? []).filter((note) => note.text);
  const name = [count > 1 ? `Page ${part.number}` : "", part.label === heading ? "" : part.label, part.time].filter(Boolean).join(" · ");
  if (!name && !notes.length) return "";
  if (!notes.length) return el("div", { className: "divider" }, name);
  return el("details", { className: "divider" }, el("summary", {}, [name, "in short"].filter(Boolean).join(" · ")), ...notes.map((note) => el("p", {}, note.text)));
}

const MAX_HITS = 500;

function find() {
  // Line breaks of the text are shown as spaces.
  const words = $("source-find").value.trim().split(/\s+/).map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  const wanted = words.join("\\s+");
  const all = wanted ? [...now.text.matchAll(new RegExp(wanted, "giu"))] : [];
  const hits = all.slice(0, MAX_HITS).map(({ 0: found, index }) => ({ from: index, to: index + found.length }));
  draw(hits);
  const marks = () => [...$("source-text").querySelectorAll("mark")];
  const go = (to) => {
    marks().forEach((mark, at) => mark.classList.toggle("current", at === to - 1));
    marks()[to - 1]?.scrollIntoView({ block: "center" });
    walk("Hit", marks().length, to, go);
  };
  if (hits.length) go(1);
  else walk("", 0, 0);
  // Where the arrows are, their number is visible beside them, unless there are more.
  $("source-found").classList.toggle("unseen", hits.length > 0 && hits.length === all.length);
  const places = hits.length < all.length ? `the first ${MAX_HITS} of ${counted(all.length, "place")}` : counted(all.length, "place");
  $("source-found").textContent = !wanted ? "" : all.length ? places : "not found";
}

/** `documentId(name, anew)` returns the id of a document; `anew` if the one that it returned before is not there. */
export function readyReader(documentId) {
  idOf = documentId;
  // The keyboard does not leave the reader for what it covers.
  document.addEventListener("focusin", ({ target }) => {
    if (isInFront() && !$("source").contains(target) && !target.closest("dialog, #problem")) $("source-close").focus();
  });
  addEventListener("popstate", ({ state }) => { if (isInFront() && !state?.isReader) closeSource(); });
  $("source-close").onclick = closeSource;
  $("source-find").oninput = find;
  $("source-find").onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    (event.shiftKey ? $("source-previous") : $("source-next")).click();
    $("source-find").focus();
  };
  $("source").onkeydown = (event) => {
    if (event.key === "Escape") closeSource();
  };
}
