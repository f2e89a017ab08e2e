//! MindGraph from end to end on real weights: quotes are in the text, blocks are not read twice, and the graph can be
//! retrieved.

use serde_json::Value;

use test_support::home::{Home, calls};
use test_support::story::STORY;

const QUESTION: &str = "What did Zoë cut the new wick from?";

#[test]
fn a_graph_is_built_once_and_quotes_its_source_to_the_character() {
    let Some(home) = Home::new("mindgraph") else { return };
    home.write("story.txt", STORY);
    home.get(&["ingest", "story.txt", "--corpus", "story", "--method", "direct"]);
    let no_graph = home.run(&["corpus", "graph", "story", "--question", QUESTION]);
    assert_eq!(no_graph.code, 1);
    assert!(no_graph.err.starts_with("error: story has no graph for this question yet\nhint: "), "{}", no_graph.err);

    let ask = |trace: &str| {
        let words = ["ask", QUESTION, "--corpus", "story", "--method", "mindgraph", "--json", "--trace", trace];
        let said = home.run(&words);
        assert_eq!(said.code, 0, "{}", said.err);
        let answer: Value = serde_json::from_str(&said.out).unwrap();
        let trace = home.trace(trace);
        // A small model reads the pages of the graph's quotes and has no tools.
        assert_eq!((calls(&trace, "mindgraph.answer").len(), &answer["confidence"]), (0, &Value::Null), "{answer}");
        (answer, calls(&trace, "mindgraph.build").len())
    };
    let (first, read) = ask("first");
    let (second, read_again) = ask("second");
    assert_eq!((read, read_again), (1, 0));
    assert_eq!(first["answer"], second["answer"], "the same seed and graph give the same answer");

    let graph = home.get(&["corpus", "graph", "story", "--question", QUESTION]);
    let graph: Value = serde_json::from_str(&graph).unwrap();
    let items = ["nodes", "edges"].map(|list| graph[list].as_array().unwrap().clone()).concat();
    for source in items.iter().flat_map(|item| item["sources"].as_array().unwrap()) {
        assert_eq!(source["match"], "exact", "the form allows no other quotes: {graph}");
        let [start, end] = ["start", "end"].map(|end| source[end].as_u64().unwrap() as usize);
        assert!(start < end && end <= STORY.chars().count());
    }
    println!("{} nodes and edges", items.len());
    let drawn = home.get(&["corpus", "graph", "story", "--question", QUESTION, "--format", "dot"]);
    assert!(drawn.starts_with("digraph mindgraph {\n"), "{drawn}");
}

#[test]
fn a_set_of_questions_comes_from_a_file() {
    let home = Home::bare("mindgraph-set");
    let said = home.run(&["ask", "Who?", "--corpus", "story", "--method", "mindgraph", "--focus", "set"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("--questions"), "{}", said.err);
}

#[test]
fn graphs_for_a_set_of_questions_are_built_in_one_reading() {
    let Some(home) = Home::new("mindgraph-lockstep") else { return };
    let questions = [QUESTION, "Who kept the light?"];
    home.write("story.txt", STORY);
    home.write("questions.txt", questions.join("\n"));
    let ingest = ["ingest", "story.txt", "--corpus", "story", "--method", "mindgraph", "--trace", "set"];
    home.get(&[&ingest[..], &["--focus", "set", "--questions", "questions.txt"]].concat());
    assert!(calls(&home.trace("set"), "mindgraph.build").len() >= questions.len(), "one for each question");
    for question in questions {
        let graph = |form: &str| home.get(&["corpus", "graph", "story", "--question", question, "--format", form]);
        assert!(serde_json::from_str::<Value>(&graph("json")).unwrap()["nodes"].is_array());
        assert!(graph("graphml").ends_with("</graphml>\n"));
        assert!(graph("dot").starts_with("digraph mindgraph {\n"));
    }
}
