// Notes about a corpus: what the reader writes, and saved answers.

import { $, button, chosen, confirmed, el, get, path, relist, save, send, tell, tellDone } from "./core.js";
import { asText, shown } from "./answer.js";
import { upload } from "./files.js";
import { markdown } from "./markdown.js";
import { openSource } from "./source.js";

let notes = [];

/** Reads the notes of the corpus and shows them. */
export async function showNotes() {
  const corpus = chosen.corpus;
  const found = await get(path("/notes"));
  if (chosen.corpus !== corpus) return;
  notes = found.notes;
  relist($("notes"), notes.map(card), $("note-new"));
  $("notes-none").hidden = notes.length > 0;
  $("notes-export").hidden = !notes.length;
}

/** Keeps an answer of a thread. */
export async function saveAnswer(thread, turn, answer) {
  await send("POST", path("/notes"), { from: { thread, turn, answer } });
  tellDone("The answer is among the notes.");
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
      button("Edit", tell(() => edit(note)), named("Edit")),
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

async function edit(note) {
  const dialog = $("note");
  $("note-heading").textContent = note ? "Edit the note" : "New note";
  $("note-title").value = note?.title ?? "";
  $("note-text").value = note?.text ?? "";
  $("note-text").required = !note?.saved;
  dialog.returnValue = "";
  dialog.showModal();
  $("note-text").focus();
  await new Promise((done) => { dialog.onclose = done; });
  if (dialog.returnValue !== "yes") return;
  const changed = { text: $("note-text").value };
  if ($("note-title").value.trim()) changed.title = $("note-title").value;
  if (note) await send("PATCH", path(`/notes/${note.id}`), changed);
  else await send("POST", path("/notes"), changed);
  await showNotes();
}

export function readyNotes() {
  $("note-new").onclick = tell(() => edit(null));
  $("notes-export").onclick = () => save(`${chosen.corpus}-notes.md`, notes.map(asMarkdown).join("\n\n"), "text/markdown");
}
