// Documents: dropping them, the jobs that read them, and their list.

import { $, brief, button, chosen, confirmed, counted, el, events, get, lasting, path, relist, say, send, tell, tellDone } from "./core.js";
import { openDocument } from "./source.js";

const MAX_TITLE = 80;

/** Files of one request; the server takes at most 1,000 and a limited size. */
const BATCH_FILES = 100;
const BATCH_BYTES = 64 << 20;

/** Documents that are listed at once. */
const SHOWN = 200;

/** Milliseconds until a job whose connection was lost is followed again. */
const RECONNECT_MS = 2000;

let documents = [];
let listed = SHOWN;
const jobs = new Map();

/**
 * The jobs of the corpus are followed one after the other, as the server runs them: a browser has six connections to a server, and
 * each job that is followed takes one.
 */
let following = { queue: Promise.resolve(), left: new AbortController() };

/** Told when the documents of the corpus have changed, and how many there are when they are listed. */
let changed = () => {};
let tellCount = () => {};

export const isReading = () => [...jobs.values()].some((job) => isOn(job.state));

const isOn = (job) => ["waiting", "running"].includes(job.status);

/** Files of a drop, with those of dropped folders. */
export async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, name: file.name }));
  const found = [];
  const visit = async (entry, folders) => {
    if (entry.isFile) {
      const file = await new Promise((done, failed) => entry.file(done, failed));
      found.push({ file, name: [...folders.slice(1), file.name].join(" › "), folder: folders[0] });
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return;
      for (const one of some) await visit(one, [...folders, entry.name]);
    }
  };
  for (const entry of entries) await visit(entry, []);
  return visible(found);
}

/** Files of a file field, with the folders of a chosen folder. */
export function filesOfField(field) {
  const found = [...field.files].map((file) => {
    const parts = (file.webkitRelativePath || file.name).split("/");
    return parts.length > 1 ? { file, name: parts.slice(1).join(" › "), folder: parts[0] } : { file, name: file.name };
  });
  field.value = "";
  return visible(found);
}

// Programs leave hidden files in folders; they are not meant.
const visible = (found) => found.filter(({ folder, name }) => !folder || !name.split(" › ").some((part) => part.startsWith(".")));

/** A title for a corpus of these files that none of the others has. */
export function titleOf(files, others) {
  const [{ folder, name }] = files;
  const plain = (folder || name.split(" › ").pop().replace(/\.[^.]+$/, "")).trim() || "Documents";
  const more = folder || files.length === 1 ? "" : ` and ${counted(files.length - 1, "other")}`;
  return unused(`${brief(plain, MAX_TITLE)}${more}`, "", new Set(others));
}

/** Files with names of their own: where two have one name, one document would replace the other, so the later gets a number. */
function distinct(files) {
  const taken = new Set();
  return files.map(({ file, name }) => {
    const end = /\.[^.›]*$/.exec(name)?.[0] ?? "";
    const own = unused(name.slice(0, name.length - end.length), end, taken);
    taken.add(own);
    return { file, name: own };
  });
}

// The text with its end, behind a number if it is taken.
function unused(text, end, taken) {
  for (let number = 1; ; number++) {
    const name = number === 1 ? text + end : `${text} (${number})${end}`;
    if (!taken.has(name)) return name;
  }
}

/**
 * Sends files to a corpus in batches; each batch is a job. What the server refuses of a batch is shown, and the others continue.
 * Leaving the corpus stops nothing; only its jobs are no longer displayed.
 */
export async function upload(files, corpus) {
  const batches = [];
  let bytes = Infinity;
  for (const one of distinct(files)) {
    if (bytes + one.file.size > BATCH_BYTES || batches.at(-1).length >= BATCH_FILES) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1).push(one);
    bytes += one.file.size;
  }
  for (const [at, batch] of batches.entries()) {
    $("sending").textContent = `Sending ${counted(batch.length, "file")}${batches.length > 1 ? ` (part ${at + 1} of ${batches.length})` : ""} …`;
    const form = new FormData();
    for (const { file, name } of batch) form.append("file", file, name);
    try {
      const job = await (await send("POST", path("/documents", corpus), form)).json();
      if (chosen.corpus === corpus) follow(job);
    } catch (error) {
      if (chosen.corpus === corpus) refused(batch, error);
      else say(`${counted(batch.length, "file")} could not be added to another corpus. ${error.message}`);
    }
  }
  $("sending").textContent = "";
}

// Files that the server did not take at all; it knows no job of them.
function refused(batch, { message, sentence = message, hint }) {
  const id = `refused-${Date.now()}-${Math.random()}`;
  const state = { id, batch, status: "failed", files: [], added: [], added_in_part: [], unread: batch.map(({ name }) => ({ name, reason: sentence })), error: sentence, hint };
  drawJob(listJob(state));
}

function listJob(state) {
  const job = { state, view: el("li", { className: "job" }), begun: null };
  jobs.get(state.id)?.view.remove();
  jobs.set(state.id, job);
  $("jobs").append(job.view);
  return job;
}

/** Shows the jobs of the corpus. */
export async function showJobs() {
  following.left.abort();
  following = { queue: Promise.resolve(), left: new AbortController() };
  jobs.clear();
  $("jobs").replaceChildren();
  drawStrip();
  const corpus = chosen.corpus;
  const found = await get("/v1/jobs");
  if (corpus !== chosen.corpus) return;
  for (const job of found.jobs.filter((job) => job.corpus === corpus)) {
    if (isOn(job)) follow(job);
    else if (job.status !== "done" || notWhole(job).length) drawJob(listJob(job));
  }
}

// Displays a job until it has ended.
function follow(state) {
  const job = listJob(state);
  const { signal } = following.left;
  drawJob(job);
  following.queue = following.queue.then(() => watch(job, signal)).catch((error) => { if (!signal.aborted) say(error.message); });
}

// Redraws a job with each event until it has ended. A server that starts again resumes its jobs, so a lost connection is made again.
async function watch(job, signal) {
  const { id } = job.state;
  let read = 0;
  let quietUntil = 0;
  while (jobs.get(id) === job && isOn(job.state)) {
    try {
      for await (const [, next] of events(await send("GET", `/v1/jobs/${id}/events`, undefined, signal))) {
        if (jobs.get(id) !== job) return;
        job.isLost = false;
        job.state = next;
        estimate(job);
        drawJob(job);
        const begun = performance.now();
        if (next.added.length <= read || begun < quietUntil) continue;
        read = next.added.length;
        await showDocuments();
        // The longer the list of documents, the more rarely it is fetched.
        quietUntil = performance.now() + 20 * (performance.now() - begun);
      }
    } catch (error) {
      if (signal.aborted) return;
      // The job has ended, or was deleted by another program.
      if (error.status === 404) dismiss(job);
    }
    if (jobs.get(id) !== job || !isOn(job.state)) break;
    job.isLost = true;
    drawJob(job);
    await new Promise((done) => setTimeout(done, RECONNECT_MS));
  }
  if (signal.aborted) return;
  if (jobs.get(id) === job) $("spoken").textContent = headline(job.state);
  await showDocuments();
  changed();
  if (jobs.get(id) === job && job.state.status === "done" && !notWhole(job.state).length) dismiss(job);
}

// Cancels a job once: the server deletes one that has ended.
async function cancel(job) {
  if (job.isCancelled) return;
  job.isCancelled = true;
  try {
    job.state = await (await send("DELETE", `/v1/jobs/${job.state.id}`)).json();
    drawJob(job);
  } finally {
    job.isCancelled = false;
  }
}

// Seconds left, from the pace since the step began.
function estimate(job) {
  const { progress } = job.state;
  job.left = null;
  if (!progress || !isOn(job.state)) return;
  if (job.begun?.step !== progress.step) job.begun = { step: progress.step, at: performance.now(), done: progress.done };
  const done = progress.done - job.begun.done;
  if (done > 0 && progress.of > progress.done) job.left = ((performance.now() - job.begun.at) / 1000 / done) * (progress.of - progress.done);
}

function dismiss(job) {
  jobs.delete(job.state.id);
  const focused = job.view.contains(document.activeElement);
  job.view.remove();
  drawStrip();
  if (focused) $("add-files").focus();
}

const STATUS = { waiting: "Waiting", running: "Reading", done: "Read", failed: "Not read", cancelled: "Stopped" };
const STEPS = { embedding: "Making searchable", memorising: "Writing abstracts" };

// The files that were not read, or in part only, with the reasons.
function notWhole({ unread, added_in_part }) {
  const reason = (part) => `only ${counted(part.documents, "document")} of it read: ${part.reason}`;
  return [...unread, ...added_in_part.map((part) => ({ name: part.name, reason: reason(part) }))];
}

function headline({ status, files, added, added_in_part, unread, progress }, left) {
  const count = Math.max(files.length, added.length) + (files.length ? 0 : unread.length);
  const what = files.length || unread.length ? counted(count, "file") : "documents";
  if (progress && status === "running") {
    const step = STEPS[progress.step] ?? progress.step.replace(/^./, (first) => first.toUpperCase());
    return `${step}: ${progress.done} of ${counted(progress.of, progress.unit)}${left ? ` · ${left < 10 ? "a few seconds" : `about ${lasting(left)}`} left` : ""}`;
  }
  if (status === "running" && files.length) return `Reading: ${added.length} of ${counted(files.length, "file")}`;
  if (status === "done" && unread.length) return `${counted(added.length, "file")} read, ${unread.length} not`;
  if (status === "done" && added_in_part.length) return `${STATUS[status]}: ${what}, ${added_in_part.length} in part`;
  return `${STATUS[status]}: ${what}`;
}

function drawJob(job) {
  const { state, view } = job;
  const on = isOn(state);
  const action = document.activeElement?.closest(".job") === view ? document.activeElement.textContent : null;
  const words = job.isLost ? "The server does not answer; trying again" : headline(state, job.left);
  const { progress } = state;
  const gone = el("progress", { "aria-label": words, max: progress?.of, value: undefined });
  if (progress) gone.value = progress.done;
  const unread = new Map(notWhole(state).map(({ name, reason }) => [name, reason]));
  const read = new Map(state.added.map((one) => [one.name, one]));
  // What could not be read comes first, and opens the list when it is known.
  const names = [...new Set([...unread.keys(), ...state.files, ...read.keys()])];
  const isNews = unread.size > (job.unread ?? 0);
  job.unread = unread.size;
  const isOpen = isNews || (view.querySelector("details")?.open ?? false);
  const lines = names.map((name) => {
    const reason = unread.get(name);
    const status = reason ?? (read.has(name) ? counted(read.get(name).pages, "page") : on ? "waiting" : "not read");
    return el("li", { className: reason ? "bad" : "" }, el("span", { className: "file" }, name), el("span", { className: "small" }, status));
  });
  const retry = state.batch || (!on && state.status !== "done" && state.unread.length < Math.max(names.length, 1));
  view.replaceChildren(
    el("div", { className: "row" }, el("strong", {}, words),
      on ? button("Cancel", tell(() => cancel(job)), { "aria-label": `Cancel: ${words}` }) : "",
      retry ? button("Try again", tell(async () => {
        if (state.batch) {
          dismiss(job);
          return upload(state.batch, chosen.corpus);
        }
        const again = await (await send("POST", `/v1/jobs/${state.id}/resume`)).json();
        dismiss(job);
        follow(again);
      }), { "aria-label": `Try again: ${words}` }) : "",
      on ? "" : button("Dismiss", tell(async () => {
        if (!state.batch) await send("DELETE", `/v1/jobs/${state.id}`);
        dismiss(job);
      }), { "aria-label": `Dismiss: ${words}` })),
    on ? gone : "",
    state.error && !state.unread.length ? el("p", { className: "bad" }, state.error) : "",
    state.hint ? el("p", { className: "small" }, `Hint: ${state.hint}`) : "",
    names.length ? el("details", { open: isOpen }, el("summary", {}, counted(names.length, "file")), el("ul", { className: "files", tabindex: 0, "aria-label": "Files" }, ...lines)) : "");
  if (action) ([...view.querySelectorAll("button")].find((one) => one.textContent === action) ?? view.querySelector("button"))?.focus();
  drawStrip();
}

// One line about all jobs, above the question.
function drawStrip() {
  const on = [...jobs.values()].filter(({ state }) => isOn(state));
  const bad = [...jobs.values()].flatMap(({ state }) => state.unread);
  const parts = [...jobs.values()].flatMap(({ state }) => state.added_in_part);
  $("strip").hidden = !on.length && !bad.length && !parts.length;
  if (on.length) $("strip-text").textContent = `${headline(on[0].state, on[0].left)}. You can ask already.`;
  else if (bad.length) $("strip-text").textContent = `${counted(bad.length, "file")} could not be read.`;
  else if (parts.length) $("strip-text").textContent = `${counted(parts.length, "file")} could be read in part only.`;
}

/** Reads the list of documents and shows it. */
export async function showDocuments() {
  const corpus = chosen.corpus;
  if (!corpus) return;
  const found = await get(path("/documents"));
  if (chosen.corpus !== corpus) return;
  documents = found.documents;
  $("count").textContent = String(documents.length);
  tellCount(documents.length);
  drawDocuments();
}

/** Forgets the documents of the corpus that was shown before. */
export function forgetDocuments() {
  documents = [];
  listed = SHOWN;
  $("documents-find").value = "";
  $("count").textContent = "";
  drawDocuments();
  // Whether there are some is not known yet.
  $("documents-none").hidden = true;
}

export const documentCount = () => documents.length;

/** The id of the document of a name. The list is fetched only for a name that it does not have, or `anew`. */
export async function documentId(name, anew) {
  const known = () => documents.find((document) => document.name === name)?.id;
  if (anew || known() === undefined) await showDocuments();
  return known();
}

// One collator for all comparisons: localeCompare makes one for each, which takes seconds for 10,000 names.
const { compare } = new Intl.Collator(undefined, { numeric: true });

const ORDERS = {
  name: (a, b) => compare(a.name, b.name),
  latest: (a, b) => b.created - a.created || compare(a.name, b.name),
  longest: (a, b) => b.pages - a.pages,
};

function drawDocuments() {
  const wanted = $("documents-find").value.trim().toLowerCase();
  const matching = documents.filter(({ name, title }) => `${name}\n${title}`.toLowerCase().includes(wanted)).sort(ORDERS[$("documents-order").value]);
  relist($("documents"), matching.slice(0, listed).map(line), $("add-files"));
  $("documents-tools").hidden = documents.length < 2;
  $("documents-found").textContent = wanted ? `${matching.length} of ${counted(documents.length, "document")}` : "";
  $("documents-more").hidden = matching.length <= listed;
  $("documents-more").textContent = `Show the other ${matching.length - listed}`;
  $("documents-none").hidden = documents.length > 0;
}

function line(entry) {
  const open = button("", tell(() => openDocument(entry.id)), { className: "document" });
  open.append(el("span", { className: "name" }, entry.title || entry.name),
    el("span", { className: "small" }, [entry.title && entry.title !== entry.name ? entry.name : "", entry.kind, counted(entry.pages, "page")].filter(Boolean).join(" · ")));
  const remove = button("Delete", tell(async () => {
    const text = `${entry.name} and everything derived from it is deleted. Answers that could quote it are deleted from the conversations too.`;
    if (!await confirmed("Delete this document?", text, "Delete")) return;
    await send("DELETE", path(`/documents/${entry.id}`));
    tellDone(`${entry.name} is deleted.`);
    await showDocuments();
    changed();
  }), { className: "quiet", "aria-label": `Delete ${entry.name}` });
  return el("li", { "data-key": entry.id }, open, remove);
}

export function readyFiles({ onchange, oncount }) {
  changed = onchange;
  tellCount = oncount;
  $("documents-find").oninput = () => { listed = SHOWN; drawDocuments(); };
  $("documents-order").onchange = drawDocuments;
  $("documents-more").onclick = () => {
    const next = listed;
    listed = Infinity;
    drawDocuments();
    $("documents").children[next]?.firstChild.focus();
  };
}
