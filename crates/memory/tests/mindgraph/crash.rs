//! A build that is killed at any moment repeats no call whose reply was stored, and ends with the same graphs.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use calls::Call;
use memory::mindgraph::{Focus, Target};
use store::{Corpus, Layer};

use super::focused;
use crate::killed::{Killed, Stored, write_down};
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, document, input};

const QUESTIONS: [&str; 2] = ["Who?", "When?"];

/// The child process that is killed: each reply depends on the graph so far, so that a torn reply is detected.
fn build(folder: &Path) -> Outcome {
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        let block = input(call, "TEXT_BLOCK");
        let number = block[7..].split('/').next().unwrap_or_default().to_owned();
        let question = input(call, "QUESTION");
        write_down(folder, &format!("{number} {question}"));
        let nodes = input(call, "GRAPH_STATE").matches("\"id\"").count();
        format!(
            r#"{{"operations":[{{"op":"add_node","id":"b{number}","type":"claim","content":"After {nodes}.","src":"said {number}"}},{{"op":"add_edge","source":"b{number}","target":"b1","relation":"follows","src":""}}]}}"#
        )
    });
    let sentences: Vec<String> =
        (1..=8).map(|number| format!("In the night somebody has said {number} and then")).collect();
    let sentences: Vec<&str> = sentences.iter().map(String::as_str).collect();
    let sources = [document("one.txt", &sentences[..4]), document("two.txt", &sentences[4..])];
    Scratch::at(folder).ingest(&sources, &caller, &focused(Focus::Set, &QUESTIONS))?;
    Ok(())
}

/// The calls whose replies are stored.
fn stored(corpus: &Corpus) -> Result<Stored, Box<dyn Error>> {
    let mut calls = BTreeSet::new();
    let blocks = corpus.passages(Layer::Block)?;
    for question in QUESTIONS {
        let graph = memory::mindgraph::graph(corpus, &Target::question(question))?;
        let read = blocks
            .iter()
            .zip(1..)
            .filter(|(block, _)| graph.nodes.iter().any(|node| node.sources[0].block == block.id));
        calls.extend(read.map(|(_, number)| format!("{number} {question}")));
    }
    Ok(Stored { calls, vectors: None })
}

#[test]
fn a_killed_build_repeats_no_call_whose_reply_was_kept() -> Outcome {
    let killed = Killed {
        test: "mindgraph::crash::a_killed_build_repeats_no_call_whose_reply_was_kept",
        kills: 12,
        seed: 5,
        moments: (9, 4000),
        calls: Some(16),
        settings: &focused(Focus::Set, &QUESTIONS),
        build: &build,
        stored: &stored,
    };
    killed.check()
}
