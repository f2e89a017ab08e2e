// The conversation about a corpus: threads, questions, and their answers.

import { $, BROKEN, button, chosen, confirmed, counted, el, entered, events, get, lasting, path, problem, relist, save, send, tell, tellDone } from "./core.js";
import { asSpeech, asText, shown } from "./answer.js";
import { documentCount, isReading, showDocuments } from "./files.js";
import { timeline } from "./found.js";
import { markdown } from "./markdown.js";
import { saveAnswer } from "./notes.js";
import { openSource } from "./source.js";

/** How deep an answer goes, in plain words; the server knows methods. */
const DEPTHS = {
  quick: { name: "Quick", method: "rag", about: "One search, one answer." },
  thorough: { name: "Thorough", method: "gam", about: "Plans, searches several times and takes notes. Reads every page once beforehand." },
  whole: { name: "Whole text", method: "direct", about: "Reads all documents for each question. They must fit." },
};

/** Seconds that a question waits for its documents to be prepared; then it is answered from what is ready. */
const PREPARE_WAIT = 10;

/** Milliseconds between two drawings of an answer that is being written: each draws all of it. */
const REDRAW_MS = 100;

/** The thread that is shown: its turns as elements with data; none before the first question. */
let thread = null;
let kept = true;
let asking = null;
let moved = () => {};

/** The names of all methods. */
let named = [];

const depthOf = (method) => Object.values(DEPTHS).find((depth) => depth.method === method);
const nameOf = (method) => depthOf(method)?.name ?? method;

/** The method to ask with. */
const chosenMethod = () => $("method").value || DEPTHS[new FormData($("ask")).get("depth")].method;

/** Lists the threads of the corpus, and returns them. */
export async function showThreads() {
  const corpus = chosen.corpus;
  const found = await get(path("/threads"));
  if (chosen.corpus !== corpus) return;
  kept = found.kept;
  // A thread whose first question was not answered is empty.
  const begun = found.threads.filter(({ turns, title }) => turns || title);
  $("threads-none").hidden = begun.length > 0;
  $("threads-none").textContent = kept ? "None yet." : "This server keeps none.";
  $("threads-delete").hidden = !found.threads.length;
  relist($("threads"), begun.map((one) => el("li", { "data-key": one.id },
    el("a", { href: `#/c/${encodeURIComponent(corpus)}/ask/${one.id}`, "aria-current": thread?.id === one.id ? "page" : undefined }, one.title || "New conversation"))), $("thread-new"));
  return found.threads;
}

/** Forgets the threads of the corpus that was shown before. */
export function forgetThreads() {
  $("threads").replaceChildren();
  $("threads-none").textContent = "";
}

/**
 * Lists the threads again, and shows the thread anew if it has other turns on the server: those that could know a removed document
 * are gone, and another tab has asked more.
 */
export async function refreshThread() {
  const before = thread;
  if (!chosen.corpus || asking) return;
  const threads = await showThreads();
  if (!threads || !before?.id || thread !== before || asking) return;
  const now = threads.find(({ id }) => id === before.id);
  if (now?.turns === before.turns.filter(({ answers }) => answers.length).length) return;
  if (!now) history.replaceState(null, "", location.hash.replace(`/ask/${before.id}`, "/ask"));
  await showThread(now?.id);
}

/** Shows a thread, or an empty one. */
export async function showThread(id) {
  asking?.abort();
  const empty = thread = { id: null, turns: [] };
  $("turns").replaceChildren();
  $("spoken").textContent = "";
  // Until the thread is here, its menu has nothing to act on.
  $("talk-tools").hidden = true;
  if (id) {
    const found = await get(path(`/threads/${encodeURIComponent(id)}`)).catch((error) => {
      if (thread === empty) mark();
      throw error;
    });
    // Another thread is shown meanwhile, or a question was asked.
    if (thread !== empty || empty.turns.length) return;
    thread = { id, title: found.title, turns: [] };
    for (const [at, { question, answers }] of found.turns.entries()) {
      const turn = begin(question);
      turn.stored = at;
      turn.answers = answers;
      turn.at = answers.length - 1;
      drawTurn(turn);
    }
  }
  mark();
  $("turns").lastElementChild?.scrollIntoView({ block: "start" });
}

export const currentThread = () => thread?.id ?? null;

function mark() {
  costs();
  $("welcome").hidden = thread.turns.length > 0;
  $("talk-tools").hidden = !thread.id;
  // So that another view can be looked at meanwhile.
  $("ask-tab").href = `#/c/${encodeURIComponent(chosen.corpus)}/ask${thread.id ? `/${thread.id}` : ""}`;
  for (const link of $("threads").querySelectorAll("a")) {
    if (thread.id && link.hash.endsWith(thread.id)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// A question at the end of the conversation, without an answer yet. `stored` is its number on the server, once it is kept there.
function begin(question) {
  const view = el("article", { className: "turn" });
  const turn = { stored: undefined, question, answers: [], at: 0, view, side: false, found: new WeakMap() };
  thread.turns.push(turn);
  $("turns").append(view);
  mark();
  return turn;
}

function drawTurn(turn) {
  const answers = turn.side ? turn.answers.slice(-2) : turn.answers.slice(turn.at, turn.at + 1);
  const parts = answers.map((answer) => drawAnswer(turn, answer));
  fill(turn, el("div", { className: turn.side ? "answers side" : "answers" }, ...parts), tools(turn));
}

// Replaces what follows the question of a turn. The keyboard stays on the control of the same name, or else goes to the question.
function fill(turn, ...parts) {
  const name = (control) => control.getAttribute("aria-label") ?? control.textContent;
  const before = turn.view.contains(document.activeElement) ? name(document.activeElement) : null;
  const question = el("h2", { className: "question", tabindex: -1 }, turn.question);
  turn.view.replaceChildren(question, ...parts);
  if (before === null) return;
  const same = [...turn.view.querySelectorAll(".tools button:not(:disabled)")].find((control) => name(control) === before);
  (same ?? question).focus({ preventScroll: true });
}

const open = tell(openSource);

function drawAnswer(turn, answer) {
  const found = turn.found.get(answer) ?? timeline();
  if (!turn.found.has(answer)) found.finish(answer);
  turn.found.set(answer, found);
  const took = answer.elapsed_seconds === undefined ? [] : [lasting(answer.elapsed_seconds)];
  const about = [nameOf(answer.method), answer.model, ...took, counted(answer.usage.calls, "call")];
  return el("div", { className: "answer", role: "group", "aria-label": `Answer, ${nameOf(answer.method)}` },
    shown(answer, open), el("div", { className: "meta" }, found.whole, el("p", { className: "about small" }, about.join(" · "))));
}

function tools(turn) {
  const answer = turn.answers[turn.at];
  const row = el("div", { className: "tools" });
  row.append(button("Copy", tell(async () => {
    if (!navigator.clipboard) throw new Error("The browser copies only from pages of this machine or over https.");
    await navigator.clipboard.writeText(asText(answer));
    tellDone("The answer is copied.");
  }), { className: "quiet" }),
  button("Ask again", tell(() => again(turn, answer.method)), { className: "quiet" }));
  if (thread.id) row.append(button("Save as note", tell(() => saveAnswer(thread.id, answer)), { className: "quiet" }));
  const others = Object.values(DEPTHS).filter(({ method }) => method !== answer.method);
  const other = el("select", { "aria-label": "Compare with" }, ...others.map(({ name, method }) => el("option", { value: method }, name)),
    el("optgroup", { label: "Methods" }, ...named.filter((name) => !depthOf(name)).map((name) => el("option", {}, name))));
  // The keyboard goes through the options by choosing each, so that only the button asks.
  row.append(el("span", { className: "compare" }, button("Compare with", tell(() => again(turn, other.value, true)), { className: "quiet" }), other));
  if (turn.answers.length > 1) {
    row.append(button(turn.side ? "One at a time" : "Side by side", () => { turn.side = !turn.side; drawTurn(turn); }, { className: "quiet" }));
    if (!turn.side) {
      const step = (by) => () => { turn.at += by; drawTurn(turn); };
      row.append(button("‹", step(-1), { className: "quiet", "aria-label": "Previous answer", disabled: turn.at === 0 }),
        el("span", { className: "small" }, `${turn.at + 1} of ${turn.answers.length}`),
        button("›", step(1), { className: "quiet", "aria-label": "Next answer", disabled: turn.at === turn.answers.length - 1 }));
    }
  }
  return row;
}

// Another answer to the same question.
async function again(turn, method, side = false) {
  turn.side = side;
  await answerTo(turn, method, Math.floor(Math.random() * 2 ** 32));
}

/** Asks the question in the box. */
export async function ask() {
  const question = $("question").value.trim();
  if (!question) return;
  if (!chosen.corpus) throw new Error("Add documents first; then this question is asked.");
  if (!documentCount() && !isReading()) await showDocuments();
  if (!documentCount() && !isReading()) throw new Error("This corpus has no documents yet. Add some first; then ask.");
  $("question").value = "";
  grow();
  const method = chosenMethod();
  const turn = begin(question);
  await answerTo(turn, method);
}

async function answerTo(turn, method, seed) {
  asking?.abort();
  const mine = asking = new AbortController();
  const corpus = chosen.corpus;
  const isFirst = !turn.answers.length;
  const found = timeline();
  const status = el("p", { className: "status", role: "status" }, "Looking …");
  const text = el("div", { className: "prose", "aria-busy": "true" });
  const pending = el("div", { className: "answer pending" }, status, text, found.whole);
  const old = turn.side && turn.answers.length ? drawAnswer(turn, turn.answers.at(-1)) : "";
  fill(turn, el("div", { className: old ? "answers side" : "answers" }, old, pending));
  turn.view.scrollIntoView({ block: "start" });
  // The button that asked, or a suggested question, is hidden now.
  if ([$("ask-button"), $("welcome")].some((at) => at.contains(document.activeElement))) turn.view.firstChild.focus({ preventScroll: true });
  $("ask-button").hidden = true;
  $("stop-button").hidden = false;
  let written = "";
  let timer = 0;
  const draw = () => { timer = 0; text.replaceChildren(markdown(written)); };
  let isAnswered = false;
  const fail = (words, className) => {
    text.removeAttribute("aria-busy");
    status.remove();
    pending.prepend(el("p", { className }, words));
    if (pending.isConnected) $("spoken").textContent = words;
    const more = [button("Ask again", tell(() => answerTo(turn, method, seed)), { className: "quiet" })];
    if (isFirst) more.push(button("Change the question", () => { $("question").value = turn.question; grow(); $("question").focus(); }, { className: "quiet" }));
    else more.push(button("Back to the answer", () => drawTurn(turn), { className: "quiet" }));
    turn.view.append(el("div", { className: "tools" }, ...more));
  };
  try {
    const body = { question: turn.question, method, stream: true, prepare_wait: PREPARE_WAIT };
    if (seed !== undefined) Object.assign(body, { seed, temperature: 0.7 });
    if (kept) {
      if (!thread.id) {
        thread.id = (await (await send("POST", path("/threads", corpus), {}, mine.signal)).json()).id;
        if (/^#\/c\/[^/]+(\/ask.*)?$/.test(location.hash)) history.replaceState(null, "", `#/c/${encodeURIComponent(corpus)}/ask/${thread.id}`);
        mark();
      }
      body.thread = thread.id;
      if (turn.stored !== undefined) body.turn = turn.stored;
      body.follow_up = true;
    }
    const response = await send("POST", path("/ask", corpus), body, mine.signal);
    for await (const [name, value] of events(response)) {
      if (name === "error") throw problem(value, "The answer failed");
      if (name === "step") {
        found.add(value);
        status.textContent = `${found.whole.querySelector("li:last-child .did").textContent} …`;
      }
      if (name === "text") {
        written += value.text;
        timer ||= setTimeout(draw, REDRAW_MS);
      }
      if (name === "answer") {
        found.finish(value);
        turn.found.set(value, found);
        turn.answers.push(value);
        turn.stored = value.turn;
        turn.at = turn.answers.length - 1;
        isAnswered = true;
        drawTurn(turn);
        $("spoken").textContent = asSpeech(value);
      }
    }
    if (!isAnswered) throw new Error(BROKEN);
  } catch (error) {
    // What breaks behind the answer does not matter.
    if (isAnswered) return;
    if (error.name === "AbortError") fail("Stopped.", "note");
    else if (error.status === 404 && thread.id) {
      // Another tab has deleted it.
      thread.id = null;
      for (const one of thread.turns) one.stored = undefined;
      fail("This conversation is no longer on the server. Ask again to begin another one.", "bad");
    } else fail(error.message, "bad");
  } finally {
    clearTimeout(timer);
    if (timer && !isAnswered) draw();
    if (asking === mine) {
      asking = null;
      $("ask-button").hidden = false;
      if (document.activeElement === $("stop-button")) $("ask-button").focus();
      $("stop-button").hidden = true;
    }
    if (chosen.corpus === corpus) {
      // The list is of use only; its failure is that of the question, which is shown.
      await showThreads().catch(() => {});
      mark();
    }
    moved();
  }
}

// The box grows with its text.
function grow() {
  const box = $("question");
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight + 2, 200)}px`;
}

// What a choice costs, from the answers of this conversation if there are some.
function costs() {
  const method = $("method").value;
  const depth = DEPTHS[new FormData($("ask")).get("depth")];
  const past = thread?.turns.flatMap((turn) => turn.answers).filter((answer) => answer.method === (method || depth.method) && answer.elapsed_seconds !== undefined) ?? [];
  const took = past.length ? ` Took ${lasting(past.reduce((sum, answer) => sum + answer.elapsed_seconds, 0) / past.length)} here.` : "";
  $("depth-about").textContent = `${method ? $("method").selectedOptions[0].title : depth.about}${took}`;
}

export function readyTalk({ methods, onmove }) {
  moved = () => { costs(); onmove(); };
  named = methods.map(({ name }) => name);
  $("method").append(...methods.map(({ name, summary }) => el("option", { value: name, title: summary }, name)));
  $("ask").onsubmit = (event) => { event.preventDefault(); tell(ask)(); };
  $("ask").onchange = (event) => {
    if (event.target.name === "depth") $("method").value = "";
    localStorage.setItem("depth", new FormData($("ask")).get("depth"));
    costs();
  };
  const stored = $("ask").querySelector(`[name="depth"][value="${localStorage.getItem("depth") ?? "quick"}"]`);
  if (stored) stored.checked = true;
  costs();
  $("question").oninput = grow;
  $("question").onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if ($("stop-button").hidden) $("ask").requestSubmit();
    }
  };
  $("stop-button").onclick = () => asking?.abort();
  $("thread-new").onclick = tell(() => showThread(null));
  $("thread-export").onclick = tell(async () => {
    const text = await (await send("GET", path(`/threads/${thread.id}?format=markdown`))).text();
    save(`${chosen.corpus}-conversation.md`, text, "text/markdown");
  });
  $("thread-json").onclick = tell(async () => {
    save(`${chosen.corpus}-conversation.json`, JSON.stringify(await get(path(`/threads/${thread.id}`)), null, 1), "application/json");
  });
  $("thread-rename").onclick = tell(async () => {
    const title = await entered("Rename this conversation", thread.title || thread.turns[0]?.question || "");
    if (!title) return;
    thread.title = (await (await send("PATCH", path(`/threads/${thread.id}`), { title })).json()).title;
    await showThreads();
  });
  $("thread-delete").onclick = tell(async () => {
    if (!await confirmed("Delete this conversation?", "Its questions and answers are deleted from the server.", "Delete")) return;
    await send("DELETE", path(`/threads/${thread.id}`));
    tellDone("The conversation is deleted.");
    location.hash = `#/c/${encodeURIComponent(chosen.corpus)}/ask`;
    // The menu that had the keyboard is hidden.
    $("corpus-title").focus();
    await showThread(null);
    await showThreads();
  });
  $("threads-delete").onclick = tell(async () => {
    if (!await confirmed("Delete all conversations?", `All conversations about ${chosen.title} are deleted from the server.`, "Delete all")) return;
    await send("DELETE", path("/threads"));
    location.hash = `#/c/${encodeURIComponent(chosen.corpus)}/ask`;
    await showThread(null);
    await showThreads();
  });
}
