// An answer: its statements with their verdicts, and marks that open the sources.

import { button, counted, el } from "./core.js";
import { markdown } from "./markdown.js";

const FIRST_SOURCES = 3;

const WORDS = {
  supported: "supported",
  contradicted: "contradicted",
  unsupported: "not supported",
  quoted: "not confirmed as the answer",
};

/** The sources of an answer, numbered by their first use. */
export function sourcesOf(answer) {
  const all = [];
  const add = (citation) => {
    if (citation && !all.some((one) => one.path === citation.path && one.start === citation.start && one.end === citation.end)) all.push(citation);
  };
  for (const { citation } of answer.statements ?? []) add(citation);
  (answer.citations ?? []).forEach(add);
  return all;
}

const statementsOf = (answer) => (answer.abstained ? [] : answer.statements ?? []);

const numberOf = (sources, { path, start, end }) => 1 + sources.findIndex((one) => one.path === path && one.start === start && one.end === end);

/** The elements of an answer; `open(sources, number)` shows a source, from 1. */
export function shown(answer, open) {
  const out = document.createDocumentFragment();
  const sources = sourcesOf(answer);
  const statements = statementsOf(answer);
  if (answer.note) out.append(el("p", { className: "note" }, answer.note.charAt(0).toUpperCase() + answer.note.slice(1)));
  if (answer.understood) out.append(el("p", { className: "understood small" }, `Understood as: ${answer.understood}`));
  if (answer.searched_with) out.append(el("p", { className: "understood small" }, `Searched with: ${answer.searched_with}`));
  if (answer.short && answer.short !== answer.answer && !answer.answer.toLowerCase().startsWith(answer.short.toLowerCase())) {
    out.append(el("p", { className: "short" }, answer.short));
  }
  const text = el("div", { className: "prose" });
  text.append(judged(answer.answer, statements, sources, open));
  if (answer.abstained) {
    text.classList.add("abstained");
    text.append(el("p", { className: "small" }, `Nothing in these documents answers this question well enough. Ask in other words${answer.method === "gam" ? "" : ", or choose Thorough"}.`));
  }
  out.append(text);
  if (statements.length) out.append(verdicts(statements, answer.probability));
  if (sources.length) out.append(list(sources, open));
  return out;
}

// Statements count characters, not UTF-16 code units.
function judged(text, statements, sources, open) {
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  const places = statements.map((statement) => ({ ...statement, from: units[statement.start], to: units[statement.end] }));
  const last = new Map();
  const paint = (run, start) => {
    const out = document.createDocumentFragment();
    let at = start;
    const end = start + run.length;
    while (at < end) {
      const place = places.find(({ from, to }) => from <= at && at < to);
      const next = Math.min(end, ...places.flatMap(({ from, to }) => [from, to]).filter((edge) => edge > at));
      const piece = run.slice(at - start, next - start);
      if (place) {
        const span = el("span", { className: `statement ${place.verdict}` }, piece);
        if (piece.trim() || !last.has(place)) last.set(place, span);
        out.append(span);
      } else out.append(piece);
      at = next;
    }
    return out;
  };
  const whole = markdown(text, paint);
  for (const [place, span] of last) follow(span, place.verdict, marks(place, sources, open));
  return whole;
}

// Marks after a statement. That of a source stays on the line of the statement's last word.
function follow(span, verdict, marks) {
  const last = /(?<=\s)\S{1,20}\s*$/u.exec(span.textContent);
  if (verdict !== "supported" || !marks.length || !last || span.closest("pre, a")) return span.after(...marks);
  const word = span.cloneNode();
  word.textContent = last[0];
  span.textContent = span.textContent.slice(0, last.index);
  span.after(el("span", { className: "unbroken" }, word, ...marks));
}

// What follows a statement: the mark of its source, or the verdict in words.
function marks({ verdict, citation }, sources, open) {
  const number = citation ? numberOf(sources, citation) : 0;
  if (verdict === "supported") {
    return citation ? [mark(number, citation, sources, open, "Supported by")] : [];
  }
  const word = el("span", { className: `verdict ${verdict}` }, WORDS[verdict] ?? verdict);
  const how = verdict === "quoted" ? "Words of" : "Contradicted by";
  return citation ? [" ", word, mark(number, citation, sources, open, how, `mark ${verdict}`)] : [" ", word];
}

function mark(number, citation, sources, open, how, className = "mark") {
  return button(`[${number}]`, () => open(sources, number), {
    className, title: citation.quote, "aria-label": `${how} source ${number}: ${citation.path}`,
  });
}

function verdicts(statements, probability) {
  const count = (verdict) => statements.filter((statement) => statement.verdict === verdict).length;
  const parts = Object.entries(WORDS).map(([verdict, words]) => [count(verdict), verdict, words]).filter(([number]) => number);
  return el("p", { className: "verdicts" }, `${counted(statements.length, "statement")} checked: `,
    ...parts.flatMap(([number, verdict, words], at) => [at ? ", " : "", el("span", { className: `count ${verdict}` }, `${number} ${words}`)]),
    typeof probability !== "number" ? "" : `; the answer is ${Math.round(100 * probability)} % likely to be right`);
}

function list(sources, open) {
  const items = sources.map((citation, at) => {
    const card = button("", () => open(sources, at + 1), { className: "source-card" });
    card.append(el("span", { className: "number" }, String(at + 1)), el("span", { className: "where" }, citation.path), el("span", { className: "quote" }, citation.quote));
    return el("li", { hidden: at >= FIRST_SOURCES }, card);
  });
  const whole = el("ol", { className: "sources", "aria-label": "Sources" }, ...items);
  if (items.length <= FIRST_SOURCES) return whole;
  const more = button(`Show all ${items.length} sources`, () => {
    items.forEach((item) => { item.hidden = false; });
    more.remove();
    items[FIRST_SOURCES].firstChild.focus();
  }, { className: "quiet" });
  return el("div", {}, whole, more);
}

/** An answer for screen readers: its text, and how many statements are supported. */
export function asSpeech(answer) {
  const statements = statementsOf(answer);
  return statements.length ? `${answer.answer}\n${verdicts(statements, answer.probability).textContent}` : answer.answer;
}

/** An answer as plain text with its sources, for the clipboard. */
export function asText(answer) {
  const sources = sourcesOf(answer).map(({ path, quote }, at) => `[${at + 1}] ${path}: “${quote}”`);
  return [answer.answer, ...sources].join("\n\n");
}
