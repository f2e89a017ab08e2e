//! Instructions of the graph builder and of the keyword splitter: LightRAG's roles, rules and entity types in our own words.

use crate::core::prompt::Instructions;

pub(super) const EXTRACT: Instructions = Instructions {
    task: "You are the builder of a knowledge graph. You find the entities that a text names and how they are related.",
    rules: "\
TEXT is one turn of a conversation or a passage, with its time in round brackets if that is known. Find in it:
- entities: every person, event, place, organisation, activity, concept and date that matters. Call the same thing by the \
same name, never \"I\" or \"he\" where TEXT says who that is, and describe it by what TEXT says of it.
- relations: pairs of those entities that have clearly to do with each other. Say in a few keywords what the relation is \
about, and describe it.
Use only what TEXT says. Example: from \"Tom: I started pottery in Leeds.\" come the entities Tom (Person), pottery \
(Activity) and Leeds (Location), and the relations Tom and pottery (hobby), Tom and Leeds (place).
Answer with one JSON object:
- \"entities\": a list of at most 12 {\"name\", \"type\", \"description\"};
- \"relations\": a list of at most 12 {\"source\", \"target\", \"keywords\", \"description\"}.
A name has at most 12 words, the keywords of a relation have at most 24 words, and a description has at most 60 words.",
    cue: "Write the entities and relations of TEXT as JSON.",
};

pub(super) const GLEAN: &str = "\
Entities and relations were overlooked. Write those that are missing, in the same form as before, and none that you have \
written already; empty lists if nothing is missing.";

pub(super) const KEYWORDS: Instructions = Instructions {
    task: "You split a question into keywords for a search in a knowledge graph. You do not answer it.",
    rules: "\
QUERY is the question. Find in it:
- high-level keywords: what it is about as a whole; its theme, and what kind of thing is asked for;
- low-level keywords: the definite things that it names; people, places, things, dates, terms.
Answer with one JSON object:
- \"high_level_keywords\": a list of at most 8 words or phrases of at most 12 words each;
- \"low_level_keywords\": a list of at most 8 words or phrases of at most 12 words each.",
    cue: "Write the keywords of QUERY as JSON.",
};
