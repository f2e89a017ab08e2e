// Suggested questions, which the server makes once for a corpus.

import { $, button, chosen, el, get, path, send } from "./core.js";
import { documentCount, isReading } from "./files.js";

/** Corpora whose questions are being made. */
const making = new Set();

const isBefore = (corpus) => chosen.corpus === corpus && document.body.dataset.view === "ask" && !$("welcome").hidden;

/** Shows the questions of the corpus before the first question of a conversation; they are made first if there are none yet. */
export async function showSuggestions() {
  const corpus = chosen.corpus;
  if (!corpus || !isBefore(corpus)) return;
  draw([]);
  let found = await get(path("/questions"));
  if (!isBefore(corpus)) return;
  draw(found.questions);
  if (found.made || making.has(corpus) || !documentCount() || isReading()) return;
  making.add(corpus);
  $("suggesting").textContent = "Looking for questions that these documents answer …";
  try {
    found = await (await send("POST", path("/questions"))).json();
    if (chosen.corpus === corpus) draw(found.questions);
  } catch (error) {
    if (chosen.corpus === corpus) $("suggesting").textContent = `No questions are suggested: ${error.message}`;
  } finally {
    making.delete(corpus);
  }
}

/** Forgets the questions of the corpus that was shown before. */
export const forgetSuggestions = () => draw([]);

function draw(questions) {
  $("suggesting").textContent = "";
  $("suggestions").replaceChildren(...questions.map(({ question }) => el("li", {}, button(question, () => {
    $("question").value = question;
    $("ask").requestSubmit();
  }, { dir: "auto" }))));
}
