// How an answer was found: its steps in words, with what the cache saved.

import { bar, button, counted, el, facts, get, lasting, save, tell } from "./core.js";

const CALLS = {
  memorize: "Wrote an abstract of a page",
  plan: "Planned what to look for",
  integrate: "Took notes from what was read",
  info_check: "Checked whether the notes are enough",
  follow_up: "Decided what to look for next",
  read: "Looked for the answer in what was read",
  answer: "Wrote the answer",
  check: "Checked the answer",
  rewrite: "Looked up what the question refers to",
};

const TOOLS = {
  keyword: "by words", bm25: "by words", vector: "by meaning", dense: "by meaning", fused: "by words and meaning",
  combined: "by words and meaning", hybrid: "by words and meaning", page_index: "by page number",
};

const PREPARING = { embedding: "for searching by meaning", memorising: "abstracts of pages" };

const quoted = (texts) => texts.map((text) => `“${text}”`).join(", ");
const plainName = (step) => (step ?? "").split(".").pop().replaceAll("_", " ");

/** A step as a sentence. */
export function sentence(step) {
  switch (step.event) {
    case "call": {
      const name = step.step.split(".").pop();
      return CALLS[name] ?? plainName(step.step).replace(/^./, (first) => first.toUpperCase());
    }
    case "search": {
      const how = TOOLS[step.tool] ?? `with ${step.tool.replaceAll("_", " ")}`;
      return `Searched ${how}${step.queries.length ? ` for ${quoted(step.queries)}` : ""}: ${step.hits.length ? counted(step.hits.length, "page") : "nothing found"}`;
    }
    case "evidence":
      return `Read ${counted(step.pages.length, "page")}${step.left_out.length ? `; ${counted(step.left_out.length, "page")} did not fit` : ""}`;
    case "score": return "Compared possible answers";
    case "short": return step.abstained ? "Found no answer in what was read" : `Chose ${quoted(step.answers)}`;
    case "statements": {
      const count = (verdict) => step.verdicts.filter((one) => one === verdict).length;
      return `Checked ${counted(step.verdicts.length, "statement")}: ${count("supported")} supported, ${count("contradicted")} contradicted, ${count("unsupported")} not supported${count("quoted") ? `, ${count("quoted")} quoted` : ""}`;
    }
    case "prepare":
      if (step.step) return `Prepared the documents (${PREPARING[step.step] ?? step.step}): ${step.done} of ${counted(step.of, step.unit)}`;
      return step.status === "waiting" ? "Waiting for other documents to be prepared" : `Prepared the documents: ${step.status}`;
    case "memo": {
      const what = step.step === "follow_up.rewrite" ? "earlier turn" : "abstract";
      return `Read ${counted(step.entries - step.left_out, what)}${step.left_out ? `; ${step.left_out} did not fit` : ""}`;
    }
    case "fallback": return `Went on without “${plainName(step.step)}”`;
    case "block": return `Read part ${step.number} of ${step.of} for the graph`;
    case "prefixes": return "Loaded what was computed before";
    default: return plainName(step.event).replace(/^./, (first) => first.toUpperCase());
  }
}

// What a call reused, and how long it took.
function cost(step) {
  if (step.prompt_tokens === undefined) return "";
  const { prompt_tokens: read, cached_tokens: cached } = step;
  const written = step.output_tokens === undefined ? "" : `, ${step.output_tokens} written`;
  const words = `${counted(read, "token")} read, ${cached} of them reused${written}, ${lasting(step.milliseconds / 1000)}`;
  return el("span", { className: "cost" }, bar(words, read, cached, read - cached), el("span", { className: "small" }, words));
}

function details(step) {
  const { event, prompt: _prompt, step: _step, prompt_tokens: _r, cached_tokens: _c, output_tokens: _w, milliseconds: _m, ...rest } = step;
  if (event === "search") rest.hits = step.hits.map(({ page, score }) => (score ? `page ${page} (${score.toFixed(2)})` : `page ${page}`));
  if (event === "score") rest.scores = step.scores.map(({ text, logprob }) => `${text.trim()} (${logprob.toFixed(2)})`);
  const output = rest.output;
  delete rest.output;
  const parts = [facts(Object.entries(rest))];
  if (output !== undefined) parts.push(written(output));
  return el("details", {}, el("summary", {}, "Details"), ...parts);
}

// A model's output: its fields, if it is a JSON object.
function written(text) {
  try {
    const fields = JSON.parse(text);
    if (fields && typeof fields === "object" && !Array.isArray(fields)) return facts(Object.entries(fields));
  } catch { /* It is plain text. */ }
  return el("pre", { tabindex: 0 }, text);
}

function line(step) {
  return el("li", { "data-event": step.event }, el("span", { className: "did" }, sentence(step)), cost(step), details(step));
}

/** A folded timeline; `add(step)` appends to it, `finish(answer)` completes it. */
export function timeline() {
  const steps = el("ol", { className: "steps" });
  const summary = el("summary", {}, "How it was found");
  const whole = el("details", { className: "found" }, summary, steps);
  let current = null;
  const add = (step) => {
    // One line for the preparation, which shows how far it is.
    if (step.event === "prepare" && current?.dataset.event === "prepare") {
      const next = line(step);
      current.replaceWith(next);
      current = next;
    } else steps.append(current = line(step));
  };
  const finish = (answer) => {
    // Answers that were kept by earlier versions have no time.
    const { usage, elapsed_seconds: took } = answer;
    const share = Math.round((100 * usage.cached_tokens) / Math.max(usage.prompt_tokens, 1));
    const words = `${share} % of what the model read was reused from its cache`;
    whole.append(el("div", { className: "foot" },
      bar(words, 100, share, 100 - share),
      el("span", { className: "small" }, `${counted(usage.calls, "call")}, ${counted(usage.prompt_tokens, "token")} read, ${usage.output_tokens} written${took === undefined ? "" : ` in ${lasting(took)}`}; ${words}`),
      answer.chosen ? el("span", { className: "small" }, `Method ${answer.method}: ${answer.chosen}`) : "",
      button("Download trace", download(answer), { className: "quiet" })));
    if (steps.children.length) return;
    // After a reload the steps come from the trace, when it is looked at.
    const load = tell(async () => {
      if (!whole.open) return;
      whole.ontoggle = null;
      try {
        (await get(`/v1/traces/${answer.trace}`)).events.forEach(add);
      } catch (error) {
        if (error.status !== 404) {
          whole.ontoggle = load;
          throw error;
        }
        steps.append(el("li", {}, "The steps are no longer kept: the server keeps the latest traces in memory, until it ends."));
      }
    });
    whole.ontoggle = load;
  };
  return { whole, add, finish };
}

function download(answer) {
  return tell(async (event) => {
    const at = event.currentTarget;
    try {
      save(`${answer.trace}.json`, JSON.stringify(await get(`/v1/traces/${answer.trace}`), null, 1), "application/json");
    } catch (error) {
      if (error.status !== 404) throw error;
      at.replaceWith(el("span", { className: "small" }, "This trace is no longer kept."));
    }
  });
}
