//! Every data format in a small sample, and the real files where they are available.

use eval::{Dataset, Query, Suite};
use serde_json::{Value, json};

use crate::{Files, evaluation_data};

fn load(suite: Suite, files: &Files, name: &str) -> Dataset {
    suite.load(&files.path(name)).unwrap()
}

/// Passages as `id|title|text`.
fn passages(data: &Dataset, collection: usize) -> Vec<String> {
    let passages = data.collections[collection].passages.iter();
    passages.map(|passage| format!("{}|{}|{}", passage.id, passage.title, passage.text)).collect()
}

/// Queries as `id|text|groups|wanted ids`.
fn queries(data: &Dataset, collection: usize) -> Vec<String> {
    let collection = &data.collections[collection];
    let shown = |Query { id, text, groups, wanted }: &Query| {
        let ids: Vec<&str> = wanted.iter().map(|wanted| collection.passages[wanted.place].id.as_str()).collect();
        format!("{id}|{text}|{}|{}", groups.join(", "), ids.join(" "))
    };
    collection.queries.iter().map(shown).collect()
}

#[test]
fn beir_gives_the_judged_queries_of_the_test_split() {
    let files = Files::new(&[
        (
            "corpus.jsonl",
            "{\"_id\": \"d1\", \"title\": \"Gulls\", \"text\": \"They fly.\"}\n{\"_id\": \"d2\", \"text\": \"Fish swim.\", \"metadata\": {}}\n",
        ),
        (
            "queries.jsonl",
            "{\"_id\": \"q1\", \"text\": \"Who flies?\"}\n{\"_id\": \"q2\", \"text\": \"not judged\"}\n{\"_id\": \"q3\", \"text\": \"only 0\"}",
        ),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td1\t2\nq3\td1\t0\n"),
    ]);
    let data = load(Suite::SciFact, &files, "");
    assert_eq!(passages(&data, 0), ["d1|Gulls|They fly.", "d2||Fish swim."]);
    assert_eq!(data.collections[0].passages[0].whole(), "Gulls They fly.");
    assert_eq!(data.collections[0].passages[1].whole(), "Fish swim.");
    assert_eq!(queries(&data, 0), ["q1|Who flies?||d2 d1"]);
    assert_eq!(data.collections[0].queries[0].wanted.iter().map(|wanted| wanted.grade).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn questions_with_contexts_make_a_pool() {
    let file = r#"[
        {"_id": "a", "question": "Older?", "type": "comparison", "supporting_facts": [["Ann", 0], ["Bo", 0], ["Ann", 1]],
         "context": [["Ann", ["Ann was born.", " She sings."]], ["Bo", ["Bo too."]], ["Cy", ["Cy."]]]},
        {"_id": "b", "question": "Who?", "type": "bridge", "supporting_facts": [["Cy", 0]],
         "context": [["Cy", ["Cy."]], ["Ann", ["Another Ann."]]]}
    ]"#;
    let lines = file.trim().trim_matches(['[', ']']).replace("},", "}\n");
    for (suite, content) in [(Suite::HotpotQa, file), (Suite::TwoWiki, &lines)] {
        let files = Files::new(&[("dev.json", content)]);
        let data = load(suite, &files, "dev.json");
        assert_eq!(
            passages(&data, 0),
            ["0|Ann|Ann was born.  She sings.", "1|Bo|Bo too.", "2|Cy|Cy.", "3|Ann|Another Ann."]
        );
        assert_eq!(queries(&data, 0), ["a|Older?|comparison|0 1", "b|Who?|bridge|2"]);
        assert_eq!(load(suite, &files, ""), data, "the folder means the file in it");
    }
}

#[test]
fn questions_without_contexts_ask_the_corpus_beside_them() {
    let files = Files::new(&[
        (
            "some_corpus.jsonl",
            "{\"_id\": \"p7\", \"title\": \"Ann\", \"text\": \"x\"}\n{\"title\": \"Bo\", \"text\": \"y\"}",
        ),
        (
            "queries.jsonl",
            "{\"_id\": \"a\", \"question\": \"1?\", \"gold_titles\": [\"Bo\", \"Ann\"]}\n{\"_id\": \"b\", \"question\": \"2?\", \"gold_ids\": [\"p7\"]}",
        ),
    ]);
    let data = load(Suite::TwoWiki, &files, "");
    assert_eq!(passages(&data, 0), ["p7|Ann|x", "1|Bo|y"]);
    assert_eq!(queries(&data, 0), ["a|1?||p7 1", "b|2?||p7"]);
    assert_eq!(load(Suite::HotpotQa, &files, "queries.jsonl"), data);
}

#[test]
fn musique_marks_its_paragraphs_itself() {
    let paragraph = |title: &str, supporting: bool| {
        format!("{{\"title\": \"{title}\", \"paragraph_text\": \"text\", \"is_supporting\": {supporting}}}")
    };
    let line = |id: &str, paragraphs: [String; 2]| {
        format!("{{\"id\": \"{id}\", \"question\": \"?\", \"paragraphs\": [{}]}}\n", paragraphs.join(", "))
    };
    let one = line("2hop__1_2", [paragraph("A", true), paragraph("B", false)]);
    let two = line("3hop1__3", [paragraph("B", true), paragraph("A", true)]);
    let data = load(Suite::MuSiQue, &Files::new(&[("dev.jsonl", &(one + &two))]), "");
    assert_eq!(passages(&data, 0), ["0|A|text", "1|B|text"]);
    assert_eq!(queries(&data, 0), ["2hop__1_2|?|2hop|0", "3hop1__3|?|3hop1|0 1"]);
}

#[test]
fn xquad_is_a_collection_a_language() {
    let file = |context: &str| {
        format!(
            r#"{{"version": "1", "data": [{{"title": "t", "paragraphs": [
                {{"context": "{context}", "qas": [{{"id": "q1", "question": "1", "answers": []}}]}},
                {{"context": "other", "qas": [{{"id": "q2", "question": "2", "answers": []}}]}}]}}]}}"#
        )
    };
    let files = Files::new(&[("xquad.es.json", &file("hola")), ("xquad.en.json", &file("hello"))]);
    let data = load(Suite::Xquad, &files, "");
    let names: Vec<&str> = data.collections.iter().map(|collection| collection.name.as_str()).collect();
    assert_eq!(names, ["en", "es"]);
    assert_eq!(passages(&data, 1), ["0||hola", "1||other"]);
    assert_eq!(queries(&data, 1), ["q1|1|es|0", "q2|2|es|1"]);
    assert_eq!(load(Suite::Xquad, &files, "xquad.en.json").collections.len(), 1);
}

#[test]
fn locomo_reads_evidence_as_it_is_meant() {
    fn check(evidence: &str, wanted: &str, notes: &[&str]) {
        let file = format!(
            r#"[{{"sample_id": "conv-1", "qa": [
                {{"question": "asked", "answer": 5, "evidence": {evidence}, "category": 4}},
                {{"question": "also", "adversarial_answer": "x", "evidence": ["D1:1"], "category": 5}}],
              "conversation": {{"speaker_a": "Ann", "speaker_b": "Bo", "session_2_date_time": "9 May",
                "session_1_date_time": "2 May", "session_1": [
                  {{"speaker": "Ann", "dia_id": "D1:1", "text": "Hello (D1:1).", "blip_caption": "a dog"}},
                  {{"speaker": "Bo", "dia_id": "D1:2", "text": "Hi."}}],
                "session_11": [{{"speaker": "Bo", "dia_id": "D11:5", "text": "Bye."}}]}}}}]"#
        );
        let data = load(Suite::LoCoMo, &Files::new(&[("locomo.json", &file)]), "");
        assert_eq!(passages(&data, 0), ["D1:1||Ann: Hello (D1:1). [shares a dog]", "D1:2||Bo: Hi.", "D11:5||Bo: Bye."]);
        let first = format!("0|asked|1 to 4, 4 single-hop|{wanted}");
        let also = "1|also|5 adversarial|D1:1".to_owned();
        let expect = if wanted.is_empty() { vec![also] } else { vec![first, also] };
        assert_eq!(queries(&data, 0), expect, "{evidence}");
        assert_eq!(data.notes, notes, "{evidence}");
        assert_eq!(data.collections[0].name, "conv-1");
    }
    check(r#"["D1:2"]"#, "D1:2", &[]);
    check(r#"["D11:5", "D1:1", "D1:1"]"#, "D1:1 D11:5", &[]);
    check(r#"["D1:1; D11:5"]"#, "D1:1 D11:5", &[]);
    check(r#"["D1:1 D1:2 D11:5"]"#, "D1:1 D1:2 D11:5", &[]);
    check(r#"["D:11:5"]"#, "D11:5", &[]);
    check(r#"["D1:02"]"#, "D1:2", &[]);
    let left_out = "conv-1, question 0 is left out: it has no evidence";
    check(r#"["D1:2", "D"]"#, "D1:2", &["conv-1, question 0: the evidence `D` names no turn"]);
    check(r#"["D4:36"]"#, "", &["conv-1, question 0: the evidence `D4:36` names no turn", left_out]);
    check("[]", "", &[left_out]);
}

#[test]
fn a_limit_keeps_the_first_queries_and_all_that_they_search() {
    fn check(limit: usize, expect: &[(usize, usize)], notes: &[&str]) {
        let file = |count: usize| {
            let qas: Vec<Value> =
                (0..count).map(|id| json!({ "id": id.to_string(), "question": "?", "answers": [] })).collect();
            json!({ "data": [{ "title": "t", "paragraphs": [{ "context": "c", "qas": qas }] }] }).to_string()
        };
        let files = Files::new(&[("xquad.a.json", &file(3)), ("xquad.b.json", &file(2))]);
        let mut data = load(Suite::Xquad, &files, "");
        data.limit(limit);
        let counts = |collection: &eval::Collection| (collection.passages.len(), collection.queries.len());
        assert_eq!(data.collections.iter().map(counts).collect::<Vec<_>>(), expect, "{limit}");
        assert_eq!(data.notes, notes, "{limit}");
    }
    check(9, &[(1, 3), (1, 2)], &[]);
    check(5, &[(1, 3), (1, 2)], &[]);
    check(4, &[(1, 3), (1, 1)], &["only the first 4 of 5 queries are asked"]);
    check(3, &[(1, 3)], &["only the first 3 of 5 queries are asked"]);
    check(1, &[(1, 1)], &["only the first 1 of 5 queries are asked"]);
}

#[test]
fn the_real_files_are_read_whole() {
    fn check(suite: Suite, path: &str, passages: usize, queries: usize, notes: usize) {
        let Some(path) = evaluation_data(path) else { return };
        let data = suite.load(&path).unwrap();
        let read: usize = data.collections.iter().map(|collection| collection.passages.len()).sum();
        assert_eq!((read, data.queries(), data.notes.len()), (passages, queries, notes), "{suite}: {}", path.display());
    }
    check(Suite::SciFact, "scifact", 5183, 300, 0);
    check(Suite::HotpotQa, "hotpotqa", 4818, 389, 0);
    check(Suite::HotpotQa, "hotpotqa/distractor_official_format.json", 2844, 287, 0);
    check(Suite::TwoWiki, "2wikimultihopqa", 6119, 51, 0);
    check(Suite::TwoWiki, "2wikimultihopqa/dev_public.jsonl", 657, 81, 0);
    check(Suite::MuSiQue, "musique", 1709, 99, 0);
    check(Suite::LoCoMo, "locomo", 2812, 976, 2);
    check(Suite::Xquad, "xquad", 960, 4760, 0);
}
