// Markdown to elements. Every character is put in as a text node, so no text of a model or document becomes markup.
//
// The text that is shown keeps its place in the source: `paint(text, start)` gets each run with the index of its first
// UTF-16 unit, and returns a node for it.

import { el } from "./core.js";

const BULLET = /^(\s*)(?:[-*+]|(\d{1,3})[.)])\s+/;

/** The elements of a Markdown text. */
export function markdown(text, paint = (run) => document.createTextNode(run)) {
  const lines = [];
  let at = 0;
  for (const line of text.split("\n")) {
    lines.push({ line, at });
    at += line.length + 1;
  }
  const out = document.createDocumentFragment();
  let number = 0;
  const isPlain = ({ line }) => line.trim() && !/^(#{1,6} |```|\s*>|\s*\|)/.test(line) && !BULLET.test(line);
  while (number < lines.length) {
    const { line, at } = lines[number];
    if (!line.trim()) { number++; continue; }
    const heading = /^(#{1,6}) +/.exec(line);
    if (heading) {
      // Headings of an answer are below those of the page.
      out.append(spans(el(`h${Math.min(heading[1].length + 2, 6)}`), line, heading[0].length, at, paint));
      number++;
    } else if (line.startsWith("```")) {
      const code = el("code");
      let end = number + 1;
      while (end < lines.length && !lines[end].line.startsWith("```")) end++;
      const inside = lines.slice(number + 1, end);
      if (inside.length) code.append(paint(inside.map((one) => one.line).join("\n"), inside[0].at));
      out.append(el("pre", { tabindex: 0 }, code));
      number = end + 1;
    } else if (BULLET.test(line)) {
      number = list(out, lines, number, paint);
    } else if (/^\s*>/.test(line)) {
      const quote = el("blockquote");
      while (number < lines.length && /^\s*>/.test(lines[number].line)) {
        const one = lines[number++];
        spans(quote, one.line, /^\s*> ?/.exec(one.line)[0].length, one.at, paint);
        quote.append(" ");
      }
      out.append(quote);
    } else if (/^\s*\|/.test(line) && /^\s*\|[\s:|-]+$/.test(lines[number + 1]?.line ?? "")) {
      number = table(out, lines, number, paint);
    } else {
      const paragraph = el("p");
      do {
        const one = lines[number++];
        spans(paragraph, one.line, 0, one.at, paint);
        if (number < lines.length && isPlain(lines[number])) paragraph.append(/ {2}$/.test(one.line) ? el("br") : "\n");
      } while (number < lines.length && isPlain(lines[number]));
      out.append(paragraph);
    }
  }
  return out;
}

// Items of one level; deeper ones become a list inside the item before.
function list(out, lines, number, paint) {
  const first = BULLET.exec(lines[number].line);
  const whole = el(first[2] ? "ol" : "ul", { start: first[2] && first[2] !== "1" ? first[2] : undefined });
  let item = null;
  while (number < lines.length) {
    const { line, at } = lines[number];
    const bullet = BULLET.exec(line);
    if (bullet && item && bullet[1].length > first[1].length + 1) number = list(item, lines, number, paint);
    else if (bullet && bullet[1].length >= first[1].length && Boolean(bullet[2]) === Boolean(first[2])) {
      item = spans(el("li"), line, bullet[0].length, at, paint);
      whole.append(item);
      number++;
    } else if (!bullet && line.trim() && /^\s/.test(line) && item) {
      item.append("\n");
      spans(item, line, 0, at, paint);
      number++;
    } else break;
  }
  out.append(whole);
  return number;
}

function table(out, lines, number, paint) {
  const row = ({ line, at }, tag) => {
    const cells = el("tr");
    const start = line.indexOf("|") + 1;
    let from = start;
    for (const cell of line.slice(start).replace(/\|\s*$/, "").split("|")) {
      const lead = cell.length - cell.trimStart().length;
      cells.append(spans(el(tag, { scope: tag === "th" && "col" }), cell.trimEnd(), lead, at + from, paint));
      from += cell.length + 1;
    }
    return cells;
  };
  const body = el("tbody");
  const head = el("thead", {}, row(lines[number], "th"));
  number += 2;
  while (number < lines.length && /^\s*\|/.test(lines[number].line)) body.append(row(lines[number++], "td"));
  out.append(el("div", { className: "scroll", tabindex: 0, role: "region", "aria-label": "Table" }, el("table", {}, head, body)));
  return number;
}

const INLINE = [
  { mark: /`([^`]+)`/y, tag: "code", plain: true, edge: 1 },
  { mark: /\*\*(?=\S)(.+?\S)\*\*/y, tag: "strong", edge: 2 },
  { mark: /__(?=\S)(.+?\S)__(?!\w)/y, tag: "strong", edge: 2, word: true },
  { mark: /\*(?=[^\s*])([^*]*[^\s*])\*/y, tag: "em", edge: 1 },
  { mark: /_(?=[^\s_])([^_]*[^\s_])_(?!\w)/y, tag: "em", edge: 1, word: true },
];

const LINK = /\[([^\][]+)\]\((https?:\/\/[^\s()]+)\)/y;

// The runs of one line from an index on; `at` is the place of the line in the text.
function spans(into, line, from, at, paint) {
  let begun = from;
  const flush = (end) => { if (end > begun) into.append(paint(line.slice(begun, end), at + begun)); };
  for (let index = from; index < line.length;) {
    const found = INLINE.find(({ mark, word }) => {
      mark.lastIndex = index;
      return (!word || !/\w/.test(line[index - 1] ?? "")) && mark.test(line);
    });
    LINK.lastIndex = index;
    const link = found ? null : LINK.exec(line);
    if (found) {
      const length = found.mark.lastIndex - index;
      flush(index);
      const inner = line.slice(0, index + length - found.edge);
      const element = el(found.tag);
      if (found.plain) element.append(paint(inner.slice(index + found.edge), at + index + found.edge));
      else spans(element, inner, index + found.edge, at, paint);
      into.append(element);
      begun = index += length;
    } else if (link) {
      flush(index);
      const element = el("a", { href: link[2], rel: "noreferrer", target: "_blank" });
      spans(element, line.slice(0, index + 1 + link[1].length), index + 1, at, paint);
      into.append(element);
      begun = index += link[0].length;
    } else index++;
  }
  flush(line.length);
  return into;
}
