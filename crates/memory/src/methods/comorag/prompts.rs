//! Instructions of ComoRAG's agents: the roles, inputs, rules and field names of the paper's appendix D, and of the two
//! methods that its index follows (HippoRAG, RAPTOR), in our own words.

use std::borrow::Cow;

use crate::core::profile::Profile;
use crate::core::prompt::Instructions;

/// Rules with demonstrations behind them, as HippoRAG has for extraction and for the fact filter. Models of the small
/// profile copy demonstrations, so they get none.
pub(super) fn demonstrated(rules: &'static str, examples: &str, profile: Profile) -> Cow<'static, str> {
    match profile {
        Profile::Paper => format!("{rules}\n\n{examples}").into(),
        Profile::Small => rules.into(),
    }
}

pub(super) const ENTITIES_EXAMPLE: &str = r#"Example: the answer for the PASSAGE "Captain Orsini left Genoa on 4 March 1822 aboard the Aurora with twelve men of the Harbour Guard." is
{"named_entities":["Captain Orsini","Genoa","4 March 1822","Aurora","twelve men","Harbour Guard"]}"#;

pub(super) const TRIPLES_EXAMPLE: &str = r#"Example: the answer for the PASSAGE "Captain Orsini left Genoa on 4 March 1822 aboard the Aurora with twelve men of the Harbour Guard." and the NAMED_ENTITIES ["Captain Orsini","Genoa","4 March 1822","Aurora","twelve men","Harbour Guard"] is
{"triples":[["Captain Orsini","left","Genoa"],["Captain Orsini","left Genoa on","4 March 1822"],["Captain Orsini","sailed aboard","Aurora"],["Captain Orsini","sailed with","twelve men"],["twelve men","belonged to","Harbour Guard"]]}"#;

pub(super) const FILTER_EXAMPLES: &str = r#"Examples: the FACTS are
1. ["aurora","was built by","marco bassi"]
2. ["marco bassi","lived in","pisa"]
3. ["captain orsini","left","genoa"]
The answer for the QUESTION "Who built the Aurora?" is {"fact":[1]}, for "In which city did the builder of the Aurora live?" {"fact":[1,2]}, and for "What did bread cost?" {"fact":[]}."#;

pub(super) const ENTITIES: Instructions = Instructions {
    task: "You are an extraction agent. You list the named entities of a passage.",
    rules: "\
List every named entity of PASSAGE: people, places, organisations, works, things with a name, dates and numbers that \
matter. Write each as PASSAGE does, once, in at most 12 words; at most 64 names.
Answer with one JSON object:
- \"named_entities\": the list of names.",
    cue: "List the named entities of PASSAGE as JSON.",
};

pub(super) const TRIPLES: Instructions = Instructions {
    task: "You are an extraction agent. You turn a passage into facts of three parts, for a graph of knowledge.",
    rules: "\
Write what PASSAGE says as facts, each a list of exactly three strings: subject, predicate, object.
- Each fact should name at least one, better two, of NAMED_ENTITIES.
- Put a name in place of every pronoun.
- Each string has at most 20 words, and there are at most 64 facts.
- Use only what PASSAGE says.
Answer with one JSON object:
- \"triples\": the list of facts.",
    cue: "Write the facts of PASSAGE as JSON.",
};

pub(super) const SUMMARIZE: Instructions = Instructions {
    task: "You are a summarising agent. You condense passages on one theme into a short text.",
    rules: "\
Write a summary of PASSAGES in a few sentences that keeps as many key details as possible: who, what, where, when and why. \
Use only what PASSAGES say. Answer with the summary alone.",
    cue: "Summarize PASSAGES in a few sentences.",
};

pub(super) const NARRATE: Instructions = Instructions {
    task: "You are a summarising agent. You tell in short what happens in a stretch of a longer text.",
    rules: "\
PASSAGES follow one another in a longer text. Write a concise summary of what happens in them:
- keep the order of time;
- name the key events, who takes part in them, and how one leads to another.
Use only what PASSAGES say. Answer with the summary alone.",
    cue: "Tell what happens in PASSAGES, in order.",
};

pub(super) const FILTER: Instructions = Instructions {
    task: "You are a filter. You pick the facts that help to answer a question.",
    rules: "\
FACTS are numbered. Pick those that bear on QUESTION, at most 4, the most useful first. Pick none if none does. Do not \
answer the question.
Answer with one JSON object:
- \"fact\": the numbers of the facts that you pick.",
    cue: "Pick the facts that help to answer QUESTION, as JSON.",
};

/// What to write if CONTENT does not help follows the rules.
pub(super) const ENCODE: Instructions = Instructions {
    task: "You are the comprehension agent, an expert reader of stories. You find in a text what helps to answer a question.",
    rules: "\
FINAL_OBJECTIVE is what must be found out in the end, QUESTION is what is asked now, and CONTENT is text from the story.
1. Work out what kind of information QUESTION asks for: actions, places, things, events, motives.
2. Look through CONTENT for names, places, things and events that bear on it, for times, and for causes and effects.
3. Consider what is said outright, what is hinted at, and in which order things happen.
Use only what CONTENT says.
Answer with one JSON object:
- \"key_findings\": at most 5 findings, each one sentence that can be understood by itself, the most directly useful \
first",
    cue: "Write the key findings of CONTENT about QUESTION as JSON.",
};

pub(super) const PROBE: Instructions = Instructions {
    task: "You are the regulation agent, an expert in searching a text in several steps. You think of new probes, queries \
that bring to light what is still missing. You do not answer the question.",
    rules: "\
ORIGINAL_QUERY could not be answered yet. CONTEXT is what was found so far, and PREVIOUS_PROBES are the queries that were \
tried. Find what is missing, and write up to 3 new probes that look at the question from different sides:
- each must differ in meaning from PREVIOUS_PROBES and from the others, and may have 60 words;
- each must serve to answer ORIGINAL_QUERY and work as a search by itself: name the people, things, places and events;
- think of what people did and why, of causes and effects, of where things come from and who was there.
Fewer probes are better than probes that repeat.
Answer with one JSON object:
- \"probe_1\": the most promising probe;
- \"probe_2\": another one, or \"\";
- \"probe_3\": another one, or \"\".",
    cue: "Write new probes for ORIGINAL_QUERY as JSON.",
};

pub(super) const FUSE: Instructions = Instructions {
    task: "You are the integration agent, an expert in bringing together what was found in a story.",
    rules: "\
PREVIOUS_ANALYSIS holds findings of earlier searches, and CURRENT_QUERY is what must be answered.
1. Find in PREVIOUS_ANALYSIS who and what matters, which facts are settled, and how they hang together.
2. See what they say about CURRENT_QUERY.
3. Bring them together into one coherent account that serves to answer CURRENT_QUERY. Say where findings contradict.
Use only what PREVIOUS_ANALYSIS says. Answer with one flowing text and nothing else.",
    cue: "Bring PREVIOUS_ANALYSIS together into one account that serves to answer CURRENT_QUERY.",
};

pub(super) const ANSWER: Instructions = Instructions {
    task: "You are the answering agent, an expert reader of books and articles. You answer a question from what was found in a text.",
    rules: "\
DETAIL_ARTICLE holds passages of the text or findings from them, SUMMARY_BY_SEMANTIC the same by theme, SUMMARY_BY_EPISODIC \
the same in the order of events, and HISTORY_INFO what earlier steps have put together; each may be missing. Answer \
QUESTION only from what is written there. Do not guess.
Answer with one JSON object:
- \"content_understanding\": what was found, and what it says about QUESTION;
- \"question_analysis\": the points that an answer needs, as a list;
- \"final_answer\": the answer in as few words as possible, at most 100 words, or \"*\" if what is written there does not hold it.",
    cue: "Answer QUESTION as JSON.",
};

pub(super) const CHOOSE: Instructions = Instructions {
    task: "You are the answering agent, an expert reader of books and articles. You choose the best of several answers from \
what was found in a text.",
    rules: "\
DETAIL_ARTICLE holds passages of the text or findings from them, SUMMARY_BY_SEMANTIC the same by theme, SUMMARY_BY_EPISODIC \
the same in the order of events, and HISTORY_INFO what earlier steps have put together; each may be missing. Judge only by \
what is written there. Do not guess. Choose one of OPTIONS for QUESTION only if you find at least two places that \
support it.
Answer with one JSON object:
- \"content_understanding\": what was found, and what it says about QUESTION;
- \"question_analysis\": the points that an answer needs, as a list;
- \"options_analysis\": what speaks for or against each option, as a list;
- \"final_answer\": the letter of the best option in square brackets, or \"*\" if none is supported.",
    cue: "Choose the best of OPTIONS for QUESTION as JSON.",
};
