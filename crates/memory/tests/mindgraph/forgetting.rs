//! Removing a document removes everything that was derived from it.

use calls::Scripted;
use memory::Missing;

use super::{EDITS, QUESTION, builder, graph, pell, settings, shown};
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, document};

const LAMP: &str = "The new lamp was bought in Paris for 900 crowns.";

/// An edge to a node of another document, an edit of that node, and a new node.
const LAMP_EDITS: &str = r#"{"operations":[{"op":"add_node","id":"lamp","type":"entity","content":"A lamp from Paris.","src":"new lamp"},{"op":"add_edge","source":"ada_brook","target":"lamp","relation":"lights","src":"lamp"},{"op":"edit_node","id":"ada_brook","content":"Keeper with a new lamp.","src":"new lamp"}]}"#;

/// The three sentences, followed by the lamp.
fn both() -> Scratch {
    let scratch = Scratch::new();
    let caller = builder(&[&EDITS[..], &[LAMP_EDITS]].concat());
    scratch.ingest(&[pell(), document("lamp.txt", &[LAMP])], &caller, &settings()).expect("the script is whole");
    assert_eq!(shown(&graph(&scratch, QUESTION)).0, ["ada_brook", "tom_reed", "wedding", "lamp"]);
    scratch
}

fn remove(scratch: &Scratch, path: &str) -> Outcome {
    let mut writer = scratch.writer();
    let id = writer.document_at(path)?.ok_or("it is there")?.id;
    writer.remove_document(id)?;
    Ok(())
}

#[test]
fn a_document_that_goes_takes_exactly_its_part_along() -> Outcome {
    let scratch = both();
    remove(&scratch, "lamp.txt")?;
    let (rest, want) = (graph(&scratch, QUESTION), graph(&super::built(), QUESTION));
    assert_eq!((rest.digest(), rest.stats()), (want.digest(), want.stats()), "the edit of the lamp is gone too");
    let sources =
        |graph: &memory::mindgraph::Graph| graph.nodes.iter().map(|node| node.sources.len()).collect::<Vec<_>>();
    assert_eq!(sources(&rest), sources(&want));

    let scratch = both();
    remove(&scratch, "pell.txt")?;
    let rest = graph(&scratch, QUESTION);
    assert_eq!(shown(&rest), (vec!["lamp"], vec![]));
    assert_eq!(scratch.missing(&settings()), Missing::default(), "nothing has to be read again");
    Ok(())
}

#[test]
fn a_document_that_changes_is_read_again_and_no_other() -> Outcome {
    let scratch = both();
    let caller =
        builder(&[r#"{"operations":[{"op":"add_node","id":"oil","type":"stat","content":"Oil.","src":"oil"}]}"#]);
    scratch.ingest(&[document("lamp.txt", &["The old lamp burnt oil."])], &caller, &settings())?;
    assert_eq!(caller.seen().len(), 1);
    assert_eq!(shown(&graph(&scratch, QUESTION)).0, ["ada_brook", "tom_reed", "wedding", "oil"]);
    Ok(())
}

#[test]
fn reports_go_with_what_they_rest_on() -> Outcome {
    let scratch = both();
    let finding = r#"{"summary":"x","explanation":"y"}"#;
    let report =
        format!(r#"{{"title":"All","summary":"x","rating":1,"rating_explanation":"x","findings":[{finding}]}}"#);
    let caller = Scripted::new(CONTEXT_TOKENS)
        .answer("mindgraph.answer", r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"index"}]}"#)
        .answer("mindgraph.answer", r#"{"answer":"x","cited_nodes":[],"confidence":"low"}"#)
        .answer("mindgraph.report", report);
    scratch.ask_and_keep(QUESTION, &caller, &settings()).answer?;
    assert!(!scratch.corpus().derived("mindgraph.report/1")?.is_empty());
    remove(&scratch, "lamp.txt")?;
    let kept = scratch.corpus().derived("mindgraph.report/1")?;
    let shown: Vec<&str> = kept.iter().map(|report| report.text.as_str()).collect();
    assert!(shown.is_empty(), "every community touched the lamp or Ada: {shown:?}");
    scratch.corpus().verify()?;
    Ok(())
}
