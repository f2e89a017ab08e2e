//! GET /v1/corpora/{corpus}/graph.

use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host, says};

pub const TEXT: &str = "Ada keeps the light at Pell. She married Tom, a builder of boats.";

/// A builder that has read `TEXT`.
pub fn built() -> Host {
    let edits = json!({ "operations": [
        { "op": "add_node", "id": "ada", "type": "entity", "content": "A keeper.", "src": "Ada keeps the light" },
        { "op": "add_node", "id": "tom", "type": "entity", "content": "A builder.", "src": "Tom, a builder" },
        { "op": "add_node", "id": "pell", "type": "entity", "content": "A place.", "src": "Nowhere to be found" },
        { "op": "add_edge", "source": "ada", "target": "tom", "relation": "married", "src": "She married Tom" },
        { "op": "add_edge", "source": "ada", "target": "pell", "relation": "lives at", "src": "the light at Pell" },
    ] });
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).answer("mindgraph.build", edits.to_string()));
    host.corpus("a", &[("a.txt", TEXT)]);
    let job = host.post("/v1/corpora/a/prepare", &json!({ "method": "mindgraph" }));
    assert_eq!(host.ended(&job.json())["status"], "done");
    host
}

fn ids(graph: &Value) -> Vec<&str> {
    graph["nodes"].as_array().expect("nodes").iter().filter_map(|node| node["id"].as_str()).collect()
}

#[test]
fn a_graph_cites_its_sources() {
    let host = built();
    let graph = host.get("/v1/corpora/a/graph").json();
    assert_eq!(ids(&graph), ["ada", "tom", "pell"]);
    assert_eq!((&graph["all_edges"], &graph["read"], &graph["of"]), (&json!(2), &json!(1), &json!(1)));
    let ada = &graph["nodes"][0];
    assert_eq!((&ada["type"], &ada["content"], &ada["degree"]), (&json!("entity"), &json!("A keeper."), &json!(2)));
    let place = &ada["sources"][0];
    assert_eq!((&place["path"], &place["match"]), (&json!("a.txt"), &json!("exact")));
    let source = host.get(&format!("/v1/corpora/a/documents/{}", place["document"])).json();
    let span = place["start"].as_u64().expect("a start") as usize..place["end"].as_u64().expect("an end") as usize;
    assert_eq!(&source["text"].as_str().expect("a text")[span], "Ada keeps the light");
    assert_eq!(
        (&graph["nodes"][2]["sources"][0]["match"], &graph["edges"][0]["relation"]),
        (&json!("unverified"), &json!("married"))
    );
}

#[test]
fn the_neighbourhood_of_a_node_is_bounded() {
    let host = built();
    let check = |query: &str, want: &[&str], edges: usize| {
        let graph = host.get(&format!("/v1/corpora/a/graph?{query}")).json();
        assert_eq!(ids(&graph), want, "{query}");
        assert_eq!((graph["edges"].as_array().map(Vec::len), &graph["all_nodes"]), (Some(edges), &json!(3)), "{query}");
    };
    check("node=tom", &["ada", "tom"], 1);
    check("node=tom&hops=2", &["ada", "tom", "pell"], 2);
    check("node=tom&hops=0", &["tom"], 0);
    check("node=ada&limit=2", &["ada", "tom"], 1);
    check("limit=1", &["ada"], 0);
}

#[test]
fn a_graph_is_exported_as_graphml_and_dot() {
    let host = built();
    let dot = host.get("/v1/corpora/a/graph?format=dot");
    assert_eq!(dot.header("content-type"), Some("text/vnd.graphviz"));
    assert!(dot.text.starts_with("digraph mindgraph {\n  \"ada\" ["), "{}", dot.text);
    let graphml = host.get("/v1/corpora/a/graph?format=graphml");
    assert!(graphml.text.contains("<edge source=\"ada\" target=\"tom\">"), "{}", graphml.text);
}

#[test]
fn missing_graphs_are_empty_and_invalid_parameters_are_refused() {
    let host = Host::new(says(""));
    host.corpus("a", &[("a.txt", TEXT)]);
    for kind in ["mindgraph", "comorag", "lightrag"] {
        let graph = host.get(&format!("/v1/corpora/a/graph?graph={kind}")).json();
        assert_eq!((&graph["graph"], &graph["nodes"], &graph["read"]), (&json!(kind), &json!([]), &json!(0)));
    }
    let check = |query: &str, param: Value| {
        let answer = host.get(&format!("/v1/corpora/a/graph?{query}"));
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], param, "{query}");
    };
    check("graph=gam", json!("graph"));
    check("format=png", json!("format"));
    check("hops=9", json!("hops"));
    check("limit=0", json!("limit"));
    check("limit=all", json!("limit"));
    check("depth=1", json!("depth"));
    host.get("/v1/corpora/a/graph?node=eve").refused(404, "not_found");
    host.get("/v1/corpora/none/graph").refused(404, "not_found");
}
