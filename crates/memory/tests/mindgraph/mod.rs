//! MindGraph (paper 004) against scripted models: the calls of builder and responder, their order, and what is
//! stored.

mod answering;
mod building;
mod crash;
mod forgetting;
mod summaries;

use calls::Scripted;
use memory::mindgraph::{self, Focus, Graph, Mindgraph, Options, Target};
use memory::{Event, Settings};
use sources::Source;

use crate::scratch::{Scratch, document};

pub const QUESTION: &str = "Whom did the keeper marry?";

/// Three sentences of ten tokens; each is a block.
pub const SENTENCES: [&str; 3] = [
    "Ada Brook keeps the old lighthouse at Pell alone.",
    "Tom Reed the boat builder mended her broken wall.",
    "She married Tom Reed in Pell in June 1911.",
];

/// A valid builder reply for each of them.
pub const EDITS: [&str; 3] = [
    r#"{"operations":[{"op":"add_node","id":"ada_brook","type":"entity","content":"Keeper at Pell.","src":"Ada Brook keeps"}]}"#,
    r#"{"operations":[{"op":"add_node","id":"tom_reed","type":"entity","content":"A boat builder.","src":"Tom Reed"},{"op":"add_edge","source":"tom_reed","target":"ada_brook","relation":"mended wall of","src":"mended her broken wall"}]}"#,
    r#"{"operations":[{"op":"add_node","id":"wedding","type":"event","content":"The wedding in 1911.","src":"in June 1911"},{"op":"add_edge","source":"ada_brook","target":"wedding","relation":"married at","src":"She married"},{"op":"edit_node","id":"tom_reed","content":"A boat builder, her husband.","src":"married Tom Reed"}]}"#,
];

pub fn pell() -> Source {
    document("pell.txt", &SENTENCES)
}

/// Blocks of one sentence, graphs for [`QUESTION`].
pub fn settings() -> Settings {
    focused(Focus::Question, &[QUESTION])
}

pub fn focused(focus: Focus, questions: &[&str]) -> Settings {
    let questions = questions.iter().map(|question| (*question).to_owned()).collect();
    let mindgraph = Options { focus, questions, block_tokens: Some(10), ..Options::default() };
    Settings { method: &Mindgraph, ..Settings::default().with_options(mindgraph) }
}

/// A script of builder replies.
pub fn builder(replies: &[&str]) -> Scripted {
    replies
        .iter()
        .fold(Scripted::new(crate::scratch::CONTEXT_TOKENS), |script, reply| script.answer("mindgraph.build", *reply))
}

/// The corpus of the three sentences with the graph for [`QUESTION`].
pub fn built() -> Scratch {
    let scratch = Scratch::new();
    scratch.ingest(&[pell()], &builder(&EDITS), &settings()).expect("the script is whole");
    scratch
}

/// The graph for a question.
pub fn graph(scratch: &Scratch, question: &str) -> Graph {
    mindgraph::graph(&scratch.corpus(), &Target::question(question)).expect("the corpus can be read")
}

/// The ids of all nodes, and all edges as text.
pub fn shown(graph: &Graph) -> (Vec<&str>, Vec<String>) {
    let edges = graph.edges.iter().map(|edge| format!("{} {} {}", edge.source, edge.relation, edge.target));
    (graph.ids().collect(), edges.collect())
}

/// The trace's record of each block: its number, and its edits, unverified edits and refused edits.
pub fn blocks(events: &[Event]) -> Vec<(usize, usize, usize, Vec<String>)> {
    let blocks = events.iter().filter_map(|event| match event {
        Event::Block { number, edits, unverified, refused, .. } => {
            Some((*number, *edits, *unverified, refused.clone()))
        }
        _ => None,
    });
    blocks.collect()
}
