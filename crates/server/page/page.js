// The page: corpora, questions and how they are answered, documents and how they come in.

import { $, chosen, events, get, make, path, send, tell } from "./core.js";
import { showReports } from "./bench.js";
import { watchEngine } from "./engine.js";
import { forgetGraph, offerGraph } from "./graph.js";

let asking = null;

async function showCorpora() {
  const { corpora } = await get("/v1/corpora");
  $("corpora").replaceChildren(...corpora.map(({ name, documents, error }) => {
    const button = make("button", `${name} (${error ? "damaged" : documents})`, { type: "button", title: error || "" });
    button.setAttribute("aria-current", String(name === chosen.corpus));
    button.onclick = tell(() => choose(name));
    const line = make("li");
    line.append(button);
    return line;
  }));
}

async function choose(name) {
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
  const running = jobs.filter((job) => job.corpus === name && ["waiting", "running"].includes(job.status));
  running.forEach((job) => tell(follow)(job));
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
    const forget = make("button", "Forget", { type: "button" });
    forget.setAttribute("aria-label", `Forget ${entry.name}`);
    forget.onclick = tell(async () => {
      if (!confirm(`Forget ${entry.name} and all that was derived from it?`)) return;
      await send("DELETE", path(`/documents/${entry.id}`));
      await showDocuments();
    });
    line.append(make("span", `${entry.name}, ${entry.pages} page${entry.pages === 1 ? "" : "s"}`), open, forget);
    return line;
  }));
}

// The text of a document; a citation's characters are marked and scrolled to.
async function showSource(id, start, end) {
  const source = await get(path(`/documents/${id}`));
  const text = $("source-text");
  $("source-title").textContent = source.name;
  $("source").hidden = false;
  if (start === undefined) {
    text.textContent = source.text;
    $("source").focus();
    return;
  }
  // Places are counted in characters, not in JavaScript's halves of them.
  const characters = Array.from(source.text);
  const mark = make("mark", characters.slice(start, end).join(""), { tabIndex: -1 });
  text.replaceChildren(characters.slice(0, start).join(""), mark, characters.slice(end).join(""));
  mark.scrollIntoView({ block: "center" });
  mark.focus();
}

function showStep(step) {
  const line = make("li");
  const describe = {
    call: () => {
      const cached = step.cached_tokens ? `, ${step.cached_tokens} of them known already` : "";
      line.append(make("strong", step.step), ` (${step.role}): ${step.prompt_tokens} tokens read${cached}, ${step.output_tokens} written, ${(step.milliseconds / 1000).toFixed(1)} s`);
      line.append(make("pre", step.output));
    },
    search: () => {
      const pages = step.hits.map((hit) => `${hit.page} (${hit.score.toFixed(2)})`).join(", ");
      line.append(make("strong", `search by ${step.tool}`), `: ${step.queries.join(" | ")} → pages ${pages || "none"}`);
    },
    evidence: () => line.append(make("strong", "evidence"), `: pages ${step.pages.join(", ")}, ${step.used_tokens} of ${step.budget_tokens} tokens` + (step.left_out.length ? `; left out: ${step.left_out.join(", ")}` : "")),
    fallback: () => line.append(make("strong", `${step.step} gave nothing of use`), `: ${step.reason}`),
  }[step.event];
  if (describe) describe(); else line.append(make("strong", step.event), make("pre", JSON.stringify(step)));
  $("steps").append(line);
}

function showAnswer(answer) {
  $("answer").textContent = answer.answer;
  const { usage } = answer;
  $("cost").textContent = `${answer.method} by ${answer.model}: ${usage.calls} calls, ${usage.prompt_tokens} prompt tokens (${usage.cached_tokens} cached), ${usage.output_tokens} written`;
  $("citations").replaceChildren(...answer.citations.map((place) => {
    const button = make("button", `${place.quote}\n${place.path}, characters ${place.start} to ${place.end}`, { type: "button" });
    button.onclick = tell(async () => {
      const { documents } = await get(path("/documents"));
      const source = documents.find((entry) => entry.name === place.path);
      if (!source) throw new Error(`${place.path} is not here any more`);
      await showSource(source.id, place.start, place.end);
    });
    const line = make("li");
    line.append(button);
    return line;
  }));
}

async function ask() {
  asking?.abort();
  asking = new AbortController();
  $("result").hidden = false;
  $("answer").textContent = "…";
  $("cost").textContent = "";
  $("citations").replaceChildren();
  $("steps").replaceChildren();
  $("stop-button").hidden = false;
  try {
    const body = { question: $("question").value, method: $("method").value, stream: true };
    const response = await send("POST", path("/ask"), body, asking.signal);
    let text = "";
    for await (const [name, value] of events(response)) {
      if (name === "step") showStep(value);
      if (name === "text") $("answer").textContent = text += value.text;
      if (name === "answer") showAnswer(value);
      if (name === "error") throw new Error(value.error.message);
    }
  } finally {
    if ($("answer").textContent === "…") $("answer").textContent = "";
    $("stop-button").hidden = true;
    await showState();
  }
}

// Shows a job until its end.
async function follow(job) {
  const line = make("li");
  const [text, bar, stop] = [make("span"), make("progress"), make("button", "Stop", { type: "button" })];
  line.append(text, bar, stop);
  $("jobs").append(line);
  stop.onclick = tell(() => send("DELETE", `/v1/jobs/${job.id}`));
  for await (const [, state] of events(await send("GET", `/v1/jobs/${job.id}/events`))) {
    const { progress } = state;
    text.textContent = [state.status, progress && `${progress.step}: ${progress.done} of ${progress.of} ${progress.unit}s`, state.error,
      ...state.unread.map((file) => `${file.name}: ${file.reason}`)].filter(Boolean).join("; ");
    if (progress) Object.assign(bar, { max: progress.of, value: progress.done });
    if (!["waiting", "running"].includes(state.status)) {
      bar.remove();
      stop.remove();
      if (state.status !== "done") {
        const resume = make("button", "Take up again", { type: "button" });
        resume.onclick = tell(async () => {
          const again = await (await send("POST", `/v1/jobs/${job.id}/resume`)).json();
          line.remove();
          await follow(again);
        });
        line.append(resume);
      }
    }
  }
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
  $("state").textContent = `${ready.models.join(", ")} · ${calls} calls · ${read} tokens read, ${cached} of them cached · ${written} written`;
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
$("close-source").onclick = () => { $("source").hidden = true; $("question").focus(); };
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
