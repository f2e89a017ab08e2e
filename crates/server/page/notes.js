// Notes about a corpus: what the reader writes, and saved answers.

import { $, button, chosen, confirmed, el, get, path, relist, save, send, tell, tellDone } from "./core.js";
import { asText, shown } from "./answer.js";
import { upload } from "./files.js";
import { markdown } from "./markdown.js";
import { openSource } from "./source.js";

let notes = [];

/** Traces of the answers that are being saved: a second click saves no second note. */
const saving = new Set();

/** Reads the notes of the corpus and shows them. */
export async function showNotes() {
  const corpus = chosen.corpus;
  const found = await get(path("/notes"));
  if (chosen.corpus !== corpus) return;
  draw(found.notes);
}

function draw(found) {
  notes = found;
  relist($("notes"), notes.map(card), $("note-new"));
  $("notes-none").hidden = notes.length > 0;
  $("notes-export").hidden = !notes.length;
}

/** Forgets the notes of the corpus that was shown before: their buttons would act on this one. */
export function forgetNotes() {
  draw([]);
  $("notes-none").hidden = true;
}

/** Keeps an answer of a thread. It is found by its trace: its numbers change when another tab asks or deletes. */
export async function saveAnswer(thread, { trace }) {
  if (saving.has(trace)) return;
  saving.add(trace);
  try {
    const corpus = chosen.corpus;
    const { turns } = await get(path(`/threads/${thread}`, corpus));
    const places = turns.map(({ answers }) => answers.findIndex((one) => one.trace === trace));
    const turn = places.findIndex((place) => place >= 0);
    if (turn < 0) throw new Error("The server does not keep this answer.");
    await send("POST", path("/notes", corpus), { from: { thread, turn, answer: places[turn] } });
    tellDone("The answer is among the notes.");
  } finally {
    saving.delete(trace);
  }
}

function card(note) {
  const { id, title, text, saved, updated } = note;
  const parts = [el("h2", {}, title)];
  if (text) {
    const prose = el("div", { className: "prose" });
    prose.append(markdown(text));
    parts.push(prose);
  }
  if (saved) {
    if (saved.question !== title) parts.push(el("h3", {}, saved.question));
    parts.push(el("div", { className: "answer" }, shown(saved.answer, tell(openSource))));
  }
  const day = new Date(updated).toLocaleDateString(undefined, { dateStyle: "medium" });
  const named = (action) => ({ className: "quiet", "aria-label": `${action}: ${title}` });
  return el("li", { className: "note-card", "data-key": id }, ...parts, el("p", { className: "about small" }, saved ? `Saved answer · ${day}` : day),
    el("div", { className: "tools" },
      button("Edit", () => edit(note), named("Edit")),
      button("Add to sources", tell(() => addToSources(note)), named("Add to sources")),
      button("Delete", tell(async () => {
        if (!await confirmed("Delete this note?", `“${title}” is deleted from the server.`, "Delete")) return;
        await send("DELETE", path(`/notes/${id}`));
        await showNotes();
      }), named("Delete"))));
}

const asMarkdown = ({ title, text, saved }) => [`# ${title}`, text, saved ? `${saved.question}\n\n${asText(saved.answer)}` : ""].filter(Boolean).join("\n\n");

async function addToSources(note) {
  const name = `${note.title.replace(/[\\/:]/g, " ").trim()}.md`;
  await upload([{ file: new File([asMarkdown(note)], name, { type: "text/markdown" }), name }], chosen.corpus);
  tellDone(`${name} is being added to the sources.`);
}

function edit(note) {
  const corpus = chosen.corpus;
  const dialog = $("note");
  $("note-heading").textContent = note ? "Edit the note" : "New note";
  $("note-title").value = note?.title ?? "";
  $("note-text").value = note?.text ?? "";
  $("note-text").required = !note?.saved;
  $("note-problem").hidden = true;
  const left = new AbortController();
  dialog.onclose = () => left.abort();
  const keep = async () => {
    const changed = { text: $("note-text").value };
    if ($("note-title").value.trim()) changed.title = $("note-title").value;
    await send(note ? "PATCH" : "POST", path(note ? `/notes/${note.id}` : "/notes", corpus), changed, left.signal);
    dialog.close();
    if (chosen.corpus === corpus) tell(showNotes)();
  };
  // A text that the server does not take stays in the dialog.
  const refuse = (error) => {
    if (left.signal.aborted) return;
    $("note-problem").textContent = error.message;
    $("note-problem").hidden = false;
  };
  let sending = null;
  $("note-form").onsubmit = (event) => {
    event.preventDefault();
    sending ??= keep().catch(refuse).finally(() => { sending = null; });
  };
  dialog.showModal();
  $("note-text").focus();
}

export function readyNotes() {
  $("note-new").onclick = () => edit(null);
  $("notes-export").onclick = () => save(`${chosen.corpus}-notes.md`, notes.map(asMarkdown).join("\n\n"), "text/markdown");
}
