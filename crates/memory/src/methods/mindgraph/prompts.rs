//! Instructions of MindGraph's agents: the roles, inputs, rules and field names of the paper's appendix D in our own words,
//! and GraphRAG's community report.

use crate::core::prompt::Instructions;

/// Replaces the question in a graph that is built for any question.
pub(super) const ANY_QUESTION: &str =
    "(Not known yet. Keep the people, events, claims and numbers that may be asked about later.)";

/// What the builder and the answering model think about before they reply, where their profile has thoughts.
pub(super) const BUILD_THOUGHT: &str =
    "what TEXT_BLOCK says that matters for QUESTION, which nodes it concerns, and how they connect to those that exist";
pub(super) const ANSWER_THOUGHT: &str =
    "which phase you are in, what the graph and the passages say about QUESTION, and what is still open";

pub(super) const BUILD: Instructions = Instructions {
    task: "You build a mind graph. You read a long text block by block and keep a concept graph of what is needed to answer a question.",
    rules: "\
QUESTION will be answered later with the graph. GRAPH_STATE is the graph so far, and TEXT_BLOCK is the next part of \
the text. Propose changes to the graph that keep what TEXT_BLOCK says about QUESTION:
- focus on what matters for QUESTION;
- where TEXT_BLOCK tells more about a node that exists, edit that node instead of adding another;
- delete a node that turns out to be wrong or to have nothing to do with QUESTION;
- connect nodes, those of earlier blocks too;
- \"src\" is copied from TEXT_BLOCK letter by letter, at most 85 words of it, and shows where the change comes from;
- ids are readable names in snake_case of at most 64 characters, such as \"ada_brook\" or \"price_of_lamp\".
Answer with one JSON object, whose \"operations\" are a list of objects with these keys:
- \"op\" add_node: \"id\"; \"type\", which is entity, event, claim, concept or stat; \"content\", a description in at most 150 words; \
\"src\";
- \"op\" add_edge: \"source\" and \"target\", ids of nodes; \"relation\", how source relates to target in at most 12 words; \
\"src\";
- \"op\" edit_node: \"id\" of a node that exists; \"content\", its whole new description in at most 150 words, or \
only what TEXT_BLOCK adds where GRAPH_STATE shows the node without its content; \"src\";
- \"op\" delete_node: \"id\" of a node that exists.",
    cue: "Write the operations for TEXT_BLOCK as JSON.",
};

pub(super) const ANSWER: Instructions = Instructions {
    task: "You answer a question from a mind graph of a long text. You work through four phases and may use tools on the way.",
    rules: "\
MIND_GRAPH holds what was found in the text, GRAPH_STATS says how large it is, and QUESTION is to be answered.

Tools:
- lookup_source(node_id): the passage of the text, about 1000 characters, around the quote of a node. Use it to check \
facts and to settle what a single node means.
- subgraph_summary(mode, subgraph_id): the graph as Leiden subgraphs. Mode \"index\" lists subgraph_id, title, \
impact_rating and n_nodes of each; mode \"detail\" with a subgraph_id of that list gives its summary and findings. Use it \
where the graph is too large to be read node by node.

Which tool, by GRAPH_STATS:
- fewer than 50 nodes: no subgraph_summary. Read the graph and check with lookup_source.
- 50 to 150 nodes: as you judge. If QUESTION is about one thing that you can see, lookup_source is enough; if it takes \
several regions, begin with the index.
- more than 150 nodes: begin with the index, get the detail of the one to three subgraphs nearest to QUESTION, then check \
their nodes with lookup_source.

Phase 1, the whole: begin with the nodes that have many edges, or with the index. Follow the main storylines, arguments or \
causes. What is the text about, and what are its main relations, conflicts and results?
Phase 2, the part: find the region or regions of the graph that QUESTION is about. Look up their most telling nodes, those \
first where what QUESTION names meets.
Phase 3, the answer: put the evidence together. Rest on the passages and not on the nodes alone. Say how regions connect. \
Be exact and brief.
Phase 4, the check: does anything in the graph contradict the answer, or is there a region that you have missed? Then look \
up more before you answer.

Each time answer with one JSON object and nothing else. To use tools, and each call only once:
- \"tool_calls\": a list of up to 4 objects with \"tool\" and what it takes.
When you are done:
- \"answer\": the answer to QUESTION, brief;
- \"cited_nodes\": the ids of the nodes that it rests on, at most 16;
- \"confidence\": high, medium or low.",
    cue: "Use tools or answer QUESTION, as JSON.",
};

pub(super) const REPORT: Instructions = Instructions {
    task: "You write reports about communities: groups of nodes of a concept graph that belong together.",
    rules: "\
COMMUNITY holds nodes and the edges between them. Write a report for a reader who must decide whether this part of the \
graph matters to a question. Use only what COMMUNITY says.
Answer with one JSON object:
- \"title\": a name of at most 15 words that tells what the community is about, with the names of its main nodes;
- \"summary\": how the nodes belong together, and what is most important about them, in at most 150 words;
- \"rating\": how much hangs on this community in the text, from 0 to 10;
- \"rating_explanation\": one sentence of at most 35 words that says why;
- \"findings\": 5 to 10 things to know about the community, fewer if there are fewer, each with
  - \"summary\": the finding in one sentence of at most 35 words,
  - \"explanation\": what it rests on, in at most 75 words.",
    cue: "Write the report about COMMUNITY as JSON.",
};
