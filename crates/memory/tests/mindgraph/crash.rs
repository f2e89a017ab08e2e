//! A build that is killed at any moment repeats no call whose reply was stored, and ends with the same graphs.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::time::Duration;

use calls::Call;
use memory::Missing;
use memory::mindgraph::{Focus, Target};
use store::{Corpora, Layer};

use super::focused;
use crate::crash::{FOLDER, killed, log, write_down};
use crate::haystack::Random;
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, document, input};

const TEST: &str = "mindgraph::crash::a_killed_build_repeats_no_call_whose_reply_was_kept";
const KILLS: usize = 12;
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
fn kept(folder: &Path) -> Result<BTreeSet<String>, Box<dyn std::error::Error>> {
    let Ok(corpus) = Corpora::new(folder).open("scratch") else { return Ok(BTreeSet::new()) };
    corpus.verify()?;
    let mut kept = BTreeSet::new();
    let blocks = corpus.passages(Layer::Block)?;
    for question in QUESTIONS {
        let graph = memory::mindgraph::graph(&corpus, &Target::question(question))?;
        let read = blocks
            .iter()
            .zip(1..)
            .filter(|(block, _)| graph.nodes.iter().any(|node| node.sources[0].block == block.id));
        kept.extend(read.map(|(_, number)| format!("{number} {question}")));
    }
    Ok(kept)
}

#[test]
fn a_killed_build_repeats_no_call_whose_reply_was_kept() -> Outcome {
    if let Some(folder) = env::var_os(FOLDER) {
        return build(Path::new(&folder));
    }
    let whole = Scratch::new();
    build(whole.folder())?;
    let expected = whole.corpus().digest()?;
    assert_eq!(log(whole.folder()).len(), 16);
    let mut random = Random::new(5);
    let mut kills = 0;
    while kills < KILLS {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        loop {
            let (kept, before) = (kept(folder)?, log(folder).len());
            let moment = Duration::from_micros(random.below(4000) as u64);
            let killed = killed(TEST, folder, before + random.below(9), moment)?;
            let log = log(folder);
            let repeated: Vec<&String> = log[before..].iter().filter(|call| kept.contains(*call)).collect();
            assert!(repeated.is_empty(), "asked again although the reply was kept: {repeated:?}");
            if !killed {
                break;
            }
            kills += 1;
        }
        assert_eq!(scratch.corpus().digest()?, expected);
        assert_eq!(scratch.missing(&focused(Focus::Set, &QUESTIONS)), Missing::default());
    }
    Ok(())
}
