// The page: views and their addresses, the list of corpora, dropping of documents.
//
// Addresses: #/new, #/c/CORPUS/ask/THREAD, #/c/CORPUS/sources/DOCUMENT/START-END, #/c/CORPUS/notes,
// #/c/CORPUS/graph, #/operations.

import { $, brief, chosen, confirmed, counted, el, entered, get, path, relist, say, send, tell, tellDone } from "./core.js";
import { documentCount, documentId, filesOf, filesOfField, forgetDocuments, isReading, readyFiles, showDocuments, showJobs, titleOf, upload } from "./files.js";
import { forgetGraph, openGraph, readyGraph } from "./graph.js";
import { hideOperations, readyOperations, showOperations } from "./engine.js";
import { forgetNotes, readyNotes, showNotes } from "./notes.js";
import { closeSource, openDocument, readyReader } from "./source.js";
import { forgetSuggestions, showSuggestions } from "./suggest.js";
import { ask, currentThread, forgetThreads, readyTalk, refreshThread, showThread, showThreads } from "./talk.js";

/** A list of corpora this long gets a search box. */
const MANY = 10;

let corpora = [];

const VIEWS = ["new", "ask", "sources", "notes", "graph", "operations"];

const OF_CORPUS = ["ask", "sources", "notes", "graph"];

function show(view) {
  for (const name of VIEWS) $(`${name}-view`).hidden = name !== view;
  $("corpus-head").hidden = !OF_CORPUS.includes(view);
  $("drop").hidden = !["new", "sources"].includes(view);
  $("ask").hidden = !["new", "ask"].includes(view);
  $("choices").hidden = view === "new";
  $("threads-section").hidden = !chosen.corpus;
  document.body.dataset.view = view;
  for (const [link, isHere] of [["new-link", view === "new"], ["operations-link", view === "operations"], ...OF_CORPUS.map((name) => [`${name}-tab`, view === name])]) {
    if (isHere) $(link).setAttribute("aria-current", "page");
    else $(link).removeAttribute("aria-current");
  }
  if (view !== "operations") hideOperations();
  toggleMenu(false);
}

async function listCorpora() {
  corpora = (await get("/v1/corpora")).corpora;
  drawCorpora();
}

function drawCorpora() {
  const wanted = $("corpora-find").value.trim().toLowerCase();
  $("corpora-find").hidden = corpora.length < MANY;
  const found = corpora.filter(({ title }) => title.toLowerCase().includes(wanted));
  relist($("corpora"), found.map(({ name, title, documents, error }) => el("li", { "data-key": name },
    el("a", { href: `#/c/${encodeURIComponent(name)}/ask`, title: error, "aria-current": name === chosen.corpus ? "page" : undefined },
      el("span", { className: "title" }, title), el("span", { className: "small" }, error ? "damaged" : counted(documents, "document"))))), $("new-link"));
}

// A part of an address that is not encoded is taken as it is.
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

const address = () => location.hash.replace(/^#\/?/, "").split("/").map(decoded);

// How often the user or the page has gone to an address.
let visits = 0;

/** Goes to what the address names. */
async function go() {
  visits += 1;
  // Their question is about the view that is left, and their answer would be for the next.
  for (const dialog of ["confirm", "rename"]) $(dialog).close();
  const [first, corpus, view = "ask"] = address();
  if (first === "operations") {
    closeSource();
    show("operations");
    await showOperations();
  } else if (first === "c" && corpora.some(({ name }) => name === corpus)) {
    let failed = null;
    await choose(corpus).catch((error) => { failed = error; });
    // The user may have opened another view or asked while lists were loaded.
    const [, sameCorpus, sameView = "ask", ...rest] = address();
    if (sameCorpus !== corpus || sameView !== view) return;
    const known = OF_CORPUS.includes(view) ? view : "ask";
    show(known);
    // A damaged corpus is shown too, so that it can be deleted.
    if (failed) throw failed;
    if (known === "ask" && (rest[0] ?? null) !== currentThread()) await showThread(rest[0]);
    if (known === "ask") tell(showSuggestions)();
    if (known === "notes") await showNotes();
    if (known === "graph") await openGraph();
    if (known === "sources" && rest[0]) {
      const [start, end] = (rest[1] ?? "").split("-").map(Number);
      await openDocument(Number(rest[0]), rest[1] ? start : undefined, end);
    }
  } else if (first && corpora.some(({ name }) => name === first)) {
    location.replace(`#/c/${encodeURIComponent(first)}/ask`);
  } else {
    leave();
    show("new");
    if (first === "c") throw new Error(`There is no corpus ${corpus}.`);
  }
}

function leave() {
  chosen.corpus = null;
  document.title = "memlocal";
  closeSource();
  drawCorpora();
}

async function choose(name) {
  if (chosen.corpus === name) return;
  closeSource();
  chosen.corpus = name;
  localStorage.setItem("corpus", name);
  title(corpora.find((corpus) => corpus.name === name).title);
  for (const tab of ["sources", "notes", "graph"]) $(`${tab}-tab`).href = `#/c/${encodeURIComponent(name)}/${tab}`;
  $("thread-new").href = `#/c/${encodeURIComponent(name)}/ask`;
  $("strip-link").href = $("sources-tab").href;
  drawCorpora();
  forgetGraph();
  forgetDocuments();
  forgetNotes();
  forgetSuggestions();
  forgetThreads();
  await showThread(null);
  // Documents are listed after the jobs: a job that is no longer listed has its documents in the list.
  const lists = [async () => { await showJobs(); await showDocuments(); }, showThreads];
  if (chosen.corpus === name) await Promise.all(lists.map((list) => list()));
}

function title(text) {
  chosen.title = text;
  $("corpus-title").textContent = text;
  document.title = `${text} · memlocal`;
}

// Files make a corpus where none is chosen, and are added to the one that is.
async function add(found) {
  const [visit, here] = [visits, location.hash];
  const files = await found;
  if (!files.length) throw new Error("There are no files in it.");
  if (chosen.corpus) return upload(files, chosen.corpus);
  // The titles in use: the list that is shown may be older than the last corpus.
  await listCorpora();
  const made = await (await send("POST", "/v1/corpora", { title: brief(titleOf(files, corpora.map(({ title }) => title)), 120) })).json();
  const question = $("question").value.trim();
  await listCorpora();
  // The files arrive even if the user opens another view meanwhile, and that view stays open. The corpus is open before they are
  // sent: what the server refuses at once is listed in it.
  if (visits === visit && location.hash === here) {
    location.hash = `#/c/${encodeURIComponent(made.name)}/ask`;
    await tell(go)();
  }
  await upload(files, made.name);
  if (address()[1] !== made.name || showReasons()) return;
  if (question) await ask();
  else $("question").focus();
}

/** Shows why no file could be read, if there is no document to ask about; returns whether it does. */
function showReasons() {
  const isNeeded = !documentCount() && !isReading() && !$("strip").hidden && document.body.dataset.view === "ask";
  if (isNeeded) {
    location.hash = $("sources-tab").hash;
    $("main").focus();
  }
  return isNeeded;
}

function readyDrop() {
  $("add-files").onclick = () => $("files").click();
  $("add-folder").onclick = () => $("folder").click();
  for (const field of ["files", "folder"]) $(field).onchange = tell(() => add(filesOfField($(field))));
  const isFiles = (event) => event.dataTransfer?.types.includes("Files") && !event.target.closest?.("#bench-drop");
  addEventListener("dragover", (event) => {
    if (!isFiles(event)) return;
    event.preventDefault();
    document.body.classList.add("over");
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("over"); });
  addEventListener("drop", (event) => {
    document.body.classList.remove("over");
    if (!isFiles(event)) return;
    event.preventDefault();
    // A report that misses its field there is no document.
    if (document.body.dataset.view === "operations") return;
    // The list of a drop is empty after the event.
    const found = filesOf(event.dataTransfer);
    tell(() => add(found))();
  });
}

function toggleMenu(open) {
  // A menu that is closed by one of its links gives the keyboard to the view.
  if (!open && document.body.classList.contains("menu") && $("side").contains(document.activeElement)) $("main").focus();
  document.body.classList.toggle("menu", open);
  $("menu").setAttribute("aria-expanded", String(open));
}

function readyCorpus() {
  $("corpora-find").oninput = drawCorpora;
  $("corpus-rename").onclick = tell(async () => {
    const text = await entered("Rename this corpus", chosen.title);
    if (!text) return;
    title((await (await send("PATCH", path(""), { title: text })).json()).title);
    await listCorpora();
  });
  $("corpus-delete").onclick = tell(async () => {
    if (!await confirmed("Delete this corpus?", `${chosen.title}, its documents and its conversations are deleted from the server.`, "Delete")) return;
    const name = chosen.title;
    await send("DELETE", path(""));
    localStorage.removeItem("corpus");
    location.hash = "#/new";
    await listCorpora();
    tellDone(`${name} is deleted.`);
    // The menu that had the keyboard is hidden.
    $("main").focus();
  });
}

$("theme").value = document.documentElement.dataset.theme;
$("theme").onchange = () => {
  localStorage.setItem("theme", $("theme").value);
  document.documentElement.dataset.theme = $("theme").value;
};
$("slash").checked = localStorage.getItem("slash") !== "off";
$("slash").onchange = () => localStorage.setItem("slash", $("slash").checked ? "on" : "off");
$("menu").onclick = () => {
  toggleMenu(!document.body.classList.contains("menu"));
  if (document.body.classList.contains("menu")) $("new-link").focus();
};
// What the menu covers takes no focus while it is open.
$("side").addEventListener("focusout", ({ relatedTarget }) => {
  if (relatedTarget && relatedTarget !== $("menu") && !$("side").contains(relatedTarget)) toggleMenu(false);
});
$("problem-close").onclick = () => { say(""); $("main").focus(); };
for (const cancel of document.querySelectorAll("dialog .cancel")) cancel.onclick = () => cancel.closest("dialog").close();
// The address names views, so this link moves the focus itself.
$("skip").onclick = (event) => { event.preventDefault(); $("main").focus(); };
// A menu closes when the focus or the pointer leaves it, and before its action, whose dialog gives the keyboard back to it.
for (const menu of document.querySelectorAll(".more")) {
  menu.addEventListener("focusout", ({ relatedTarget }) => { if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false; });
  menu.addEventListener("click", ({ target }) => {
    if (!target.closest("button")) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  }, true);
  menu.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("pointerdown", ({ target }) => { if (!menu.contains(target)) menu.open = false; });
}
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.body.classList.contains("menu")) {
    toggleMenu(false);
    $("menu").focus();
  }
  // A slash goes to the question, as in many programs, unless the user has switched that off.
  const isPlain = event.key === "/" && !event.ctrlKey && !event.altKey && !event.metaKey;
  if (isPlain && $("slash").checked && !event.target.closest("input, textarea, select, dialog") && !$("ask").hidden) {
    event.preventDefault();
    $("question").focus();
  }
});
readyReader(documentId);
readyDrop();
readyCorpus();
readyGraph();
readyOperations();
readyFiles({
  onchange: () => {
    tell(listCorpora)();
    showReasons();
    tell(async () => {
      await refreshThread();
      await showSuggestions();
    })();
  },
  oncount: (documents) => {
    corpora = corpora.map((corpus) => (corpus.name === chosen.corpus ? { ...corpus, documents } : corpus));
    drawCorpora();
  },
});
readyNotes();

tell(async () => {
  const { about } = await get("/v1/methods");
  readyTalk({ methods: about, onmove: () => {} });
  await listCorpora();
  addEventListener("hashchange", tell(go));
  const last = corpora.find(({ name }) => name === localStorage.getItem("corpus")) ?? corpora[0];
  if (!location.hash && last) location.replace(`#/c/${encodeURIComponent(last.name)}/ask`);
  else await go();
  // Another tab or program may have changed the lists.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) Promise.all([listCorpora(), showDocuments(), refreshThread()]).catch(() => {}); });
})();
