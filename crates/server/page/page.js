// The page: corpora, questions and answers, documents and their ingest.

import { $, bar, chosen, counted, events, facts, get, make, path, send, tell } from "./core.js";
import { showReports } from "./bench.js";
import { watchEngine } from "./engine.js";
import { forgetGraph, offerGraph } from "./graph.js";

let asking = null;

/** The element that opened the displayed source. */
let opener = null;

const small = (text) => make("span", text, { className: "small" });

const isOn = (job) => ["waiting", "running"].includes(job.status);

async function showCorpora() {
  const { corpora } = await get("/v1/corpora");
  $("corpora").replaceChildren(...corpora.map(({ name, documents, error }) => {
    const button = make("button", name, { type: "button", title: error || "" });
    button.append(make("br"), make("small", error ? "damaged" : counted(documents, "document")));
    button.setAttribute("aria-current", String(name === chosen.corpus));
    button.onclick = tell(() => choose(name));
    const line = make("li");
    line.append(button);
    return line;
  }));
  if (!corpora.length) $("corpora").append(make("li", "There are no corpora yet. Create one, then add documents.", { className: "small" }));
}

async function choose(name) {
  asking?.abort();
  chosen.corpus = name;
  location.hash = name;
  $("corpus").hidden = false;
  $("source").hidden = true;
  $("result").hidden = true;
  forgetGraph();
  document.querySelector("#ask-title .name").textContent = name;
  await showCorpora();
  const { jobs } = await get("/v1/jobs");
  $("jobs").replaceChildren();
  const here = jobs.filter((job) => job.corpus === name && job.status !== "done");
  here.forEach((job) => tell(follow)(job));
  await showDocuments();
  $("question").focus();
}

async function showDocuments() {
  const { documents } = await get(path("/documents"));
  $("documents").replaceChildren(...documents.map((entry) => {
    const line = make("li");
    const open = make("button", "Read", { type: "button" });
    open.setAttribute("aria-label", `Read ${entry.name}`);
    open.onclick = tell(() => showSource(entry.id));
    const forget = make("button", "Delete", { type: "button" });
    forget.setAttribute("aria-label", `Delete ${entry.name}`);
    forget.onclick = tell(async () => {
      if (!confirm(`Delete ${entry.name} and everything derived from it?`)) return;
      await send("DELETE", path(`/documents/${entry.id}`));
      await showDocuments();
    });
    const name = make("span", entry.name);
    name.append(" ", small(counted(entry.pages, "page")));
    line.append(name, open, forget);
    return line;
  }));
  if (!documents.length) $("documents").append(make("li", "This corpus has no documents yet.", { className: "small" }));
}

// The text of a document; a citation's characters are marked and scrolled to.
async function showSource(id, start, end) {
  const from = document.activeElement;
  const source = await get(path(`/documents/${id}`));
  if (!$("source").contains(from)) opener = from;
  const text = $("source-text");
  $("source-title").textContent = source.name;
  $("source").hidden = false;
  if (start === undefined) {
    text.textContent = source.text;
    $("source").focus();
    return;
  }
  // Spans count characters, not UTF-16 code units.
  const characters = Array.from(source.text);
  const mark = make("mark", characters.slice(start, end).join(""), { tabIndex: -1 });
  text.replaceChildren(characters.slice(0, start).join(""), mark, characters.slice(end).join(""));
  mark.scrollIntoView({ block: "center" });
  mark.focus();
}

function closeSource() {
  $("source").hidden = true;
  (opener?.isConnected ? opener : $("question")).focus();
}

// A step's name, its result, and its cost.
function showStep(step) {
  const line = make("li");
  const title = (name, more) => line.append(make("strong", name), " ", small(more));
  const describe = {
    call: () => {
      title(step.step.split(".").pop().replaceAll("_", " "), step.role);
      line.append(output(step.output));
      const words = `${counted(step.prompt_tokens, "token")} read, ${step.cached_tokens} of them cached and ${step.prompt_tokens - step.cached_tokens} computed; ${step.output_tokens} written in ${(step.milliseconds / 1000).toFixed(1)} s`;
      line.append(bar(words, step.prompt_tokens, step.prompt_tokens - step.cached_tokens, step.cached_tokens), small(words));
    },
    search: () => {
      title("search", step.tool.replaceAll("_", " "));
      const hits = step.hits.map(({ page, score }) => (score ? `${page} (${score.toFixed(2)})` : page));
      line.append(facts([["queries", step.queries], ["pages", hits.length ? hits : "none"]]));
    },
    evidence: () => {
      title("evidence", `${step.used_tokens} of ${step.budget_tokens} tokens`);
      line.append(facts([["pages", step.pages.length ? step.pages : "none"], ["left out", step.left_out]]));
    },
    prepare: () => {
      // One line for a job, which shows how far it is.
      $("steps").querySelector(`[data-job="${step.job}"]`)?.remove();
      line.dataset.job = step.job;
      title("prepare", step.step ? `${step.step}: ${step.done} of ${counted(step.of, step.unit)}` : step.status);
    },
    fallback: () => {
      title(step.step.split(".").pop().replaceAll("_", " "), "failed");
      line.append(facts([["reason", step.reason]]));
    },
  }[step.event];
  if (describe) describe();
  else {
    const { event, ...rest } = step;
    title(event);
    line.append(facts(Object.entries(rest)));
  }
  $("steps").append(line);
}

// A model's output: its fields, if it is a JSON object.
function output(text) {
  try {
    const fields = JSON.parse(text);
    if (fields && typeof fields === "object" && !Array.isArray(fields)) return facts(Object.entries(fields));
  } catch { /* It is plain text. */ }
  return make("pre", text);
}

const verdicts = {
  contradicted: "Contradicted by the documents",
  unsupported: "Not supported by the documents",
};

// The text of an answer; what the documents do not support is marked.
function judged(answer) {
  const characters = Array.from(answer.answer);
  const parts = [];
  let at = 0;
  for (const statement of answer.statements ?? []) {
    const verdict = verdicts[statement.verdict];
    if (!verdict) continue;
    const text = characters.slice(statement.start, statement.end).join("");
    const mark = make("mark", text, { className: "unsupported" });
    const said = statement.citation ? `: “${statement.citation.quote}”` : "";
    mark.append(" ", small(`(${verdict}${said})`));
    parts.push(characters.slice(at, statement.start).join(""), mark);
    at = statement.end;
  }
  return [...parts, characters.slice(at).join("")];
}

function showAnswer(answer) {
  $("answer").replaceChildren(...judged(answer));
  const { usage } = answer;
  $("cost").textContent = `${answer.method} by ${answer.model}: ${counted(usage.calls, "call")}, ${usage.prompt_tokens} prompt tokens (${usage.cached_tokens} cached, ${usage.prompt_tokens - usage.cached_tokens} computed), ${usage.output_tokens} written${answer.chosen ? `; chosen because ${answer.chosen}` : ""}${answer.note ? `. Note: ${answer.note}` : ""}`;
  $("places").hidden = !answer.citations.length;
  $("citations").replaceChildren(...answer.citations.map((place) => {
    const button = make("button", place.quote, { type: "button" });
    button.append(small(`${place.path}, characters ${place.start} to ${place.end}`));
    button.onclick = tell(async () => {
      const { documents } = await get(path("/documents"));
      const source = documents.find((entry) => entry.name === place.path);
      if (!source) throw new Error(`${place.path} has been deleted`);
      await showSource(source.id, place.start, place.end);
    });
    const line = make("li");
    line.append(button);
    return line;
  }));
}

async function ask() {
  asking?.abort();
  const mine = asking = new AbortController();
  $("result").hidden = true;
  $("answer").textContent = "";
  $("places").hidden = true;
  $("cost").textContent = "";
  $("citations").replaceChildren();
  $("steps").replaceChildren();
  $("stop-button").hidden = $("busy").hidden = false;
  try {
    const body = { question: $("question").value, method: $("method").value, stream: true };
    const response = await send("POST", path("/ask"), body, mine.signal);
    let text = "";
    for await (const [name, value] of events(response)) {
      if (name === "error") throw new Error(value.error.message);
      $("result").hidden = false;
      if (name === "step") showStep(value);
      if (name === "text") $("answer").textContent = text += value.text;
      if (name === "answer") showAnswer(value);
    }
  } finally {
    if (asking === mine) $("stop-button").hidden = $("busy").hidden = true;
    await showState();
  }
}

// Displays a job until it has ended.
async function follow(job) {
  const line = make("li");
  const [text, bar, stop] = [make("span"), make("progress"), make("button", "Stop", { type: "button" })];
  const resume = make("button", "Resume", { type: "button", hidden: true });
  stop.setAttribute("aria-label", `Stop preparing for ${job.method}`);
  resume.setAttribute("aria-label", `Resume preparing for ${job.method}`);
  bar.setAttribute("aria-label", `Preparing for ${job.method}`);
  line.append(text, bar, stop, resume);
  $("jobs").append(line);
  stop.onclick = tell(() => send("DELETE", `/v1/jobs/${job.id}`));
  resume.onclick = tell(async () => {
    const again = await (await send("POST", `/v1/jobs/${job.id}/resume`)).json();
    line.remove();
    await follow(again);
  });
  let listed = 0;
  for await (const [, state] of events(await send("GET", `/v1/jobs/${job.id}/events`))) {
    const { progress } = state;
    if (state.added.length > listed && chosen.corpus === job.corpus) {
      listed = state.added.length;
      await showDocuments();
    }
    const unread = state.unread.map((file) => `${file.name}: ${file.reason}`);
    text.replaceChildren(`${job.method}: ${state.status} `, small([...state.added.map(({ name }) => name),
      progress && `${progress.step}, ${progress.done} of ${counted(progress.of, progress.unit)}`, state.error, ...unread].filter(Boolean).join("; ")));
    if (progress) Object.assign(bar, { max: progress.of, value: progress.done });
    bar.hidden = stop.hidden = !isOn(state);
    resume.hidden = isOn(state) || state.status === "done";
  }
  await showState();
  if (chosen.corpus !== job.corpus) return;
  await showCorpora();
  await showDocuments();
}

async function upload(files) {
  const form = new FormData();
  form.append("method", $("ingest-method").value);
  for (const file of files) form.append("file", file, file.name);
  await follow(await (await send("POST", path("/documents"), form)).json());
}

async function showState() {
  const ready = await get("/ready");
  const lines = (await (await send("GET", "/metrics")).text()).split("\n");
  const sum = (name) => lines.filter((line) => line.startsWith(name + "{") || line.startsWith(name + " "))
    .reduce((total, line) => total + Number(line.split(" ").pop()), 0);
  const [calls, read, cached, written] = ["calls", "prompt_tokens", "cached_tokens", "output_tokens"].map((name) => sum(`memlocal_${name}_total`));
  $("state").textContent = `${ready.models.join(", ")} · ${counted(calls, "call")} · ${read} tokens read, ${cached} of them cached · ${written} written`;
}

offerGraph(showSource);
watchEngine();
$("new-corpus").onsubmit = (event) => {
  event.preventDefault();
  tell(async () => {
    const name = $("new-name").value;
    await send("POST", "/v1/corpora", { name });
    $("new-name").value = "";
    await choose(name);
  })();
};
$("ask").onsubmit = (event) => { event.preventDefault(); tell(ask)(); };
$("question").onkeydown = (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
};
$("stop-button").onclick = () => asking?.abort();
$("files").onchange = tell(async () => { await upload($("files").files); $("files").value = ""; });
$("prepare").onclick = tell(async () => follow(await (await send("POST", path("/prepare"), { method: $("ingest-method").value })).json()));
$("close-source").onclick = closeSource;
$("source").onkeydown = (event) => { if (event.key === "Escape") closeSource(); };
for (const name of ["dragover", "dragleave", "drop"]) {
  $("drop").addEventListener(name, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") tell(upload)(event.dataTransfer.files);
  });
}

tell(async () => {
  const { methods } = await get("/v1/methods");
  for (const select of [$("method"), $("ingest-method")]) select.replaceChildren(...methods.map((name) => make("option", name)));
  await showState();
  await showReports();
  const { corpora } = await get("/v1/corpora");
  const wanted = decodeURIComponent(location.hash.slice(1));
  const first = corpora.find(({ name }) => name === wanted) || corpora[0];
  if (first) await choose(first.name); else await showCorpora();
})();
