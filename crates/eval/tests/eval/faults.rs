//! Invalid and partial files: each error names the file, line and field.

use eval::Suite;

use crate::Files;

/// Loads files and compares the error message, in which `$` is the folder.
fn check(suite: Suite, files: &[(&str, &str)], name: &str, expect: &str) {
    let files = Files::new(files);
    let error = suite.load(&files.path(name)).expect_err(expect).to_string();
    assert_eq!(error.replace(&files.folder().display().to_string(), "$"), expect);
}

const CORPUS: (&str, &str) = ("corpus.jsonl", "{\"_id\": \"d1\", \"title\": \"t\", \"text\": \"x\"}\n");
const QUERIES: (&str, &str) = ("queries.jsonl", "{\"_id\": \"q1\", \"text\": \"?\"}\n");
const QRELS: (&str, &str) = ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n");

#[test]
fn of_beir() {
    let corpus = |text, expect| check(Suite::SciFact, &[("corpus.jsonl", text), QUERIES, QRELS], "", expect);
    corpus("{\"_id\": \"d1\", \"title\": \"t\"}\n", "$/corpus.jsonl: line 1: missing field `text`");
    corpus(
        "{\"_id\": \"d1\", \"text\": \"x\"}\n\n{\"_id\": \"d2\", \"text\": 7}",
        "$/corpus.jsonl: line 3: field `text`: invalid type: integer `7`, expected a string",
    );
    corpus(
        "{\"_id\": \"d1\", \"text\": \"x\"}\n{\"_id\": \"d2\", \"te",
        "$/corpus.jsonl: line 2: EOF while parsing a string",
    );
    corpus(
        "{\"_id\": \"d1\", \"text\": \"x\"}\n{\"_id\": \"d1\", \"text\": \"y\"}",
        "$/corpus.jsonl: line 2: field `_id`: `d1` is already the id of an earlier one",
    );
    corpus("", "$/corpus.jsonl: there are no records in it");
    corpus(
        "{\"_id\": \"d0\", \"text\": \"x\"}",
        "$/qrels/test.tsv: line 2: field `corpus-id`: `d1` is not in the corpus",
    );
    let qrels = |text, expect| check(Suite::SciFact, &[CORPUS, QUERIES, ("qrels/test.tsv", text)], "", expect);
    qrels(
        "query-id\tcorpus-id\tscore\nq1\td1\n",
        "$/qrels/test.tsv: line 2: it has not the three columns query-id, corpus-id and score",
    );
    qrels(
        "query-id\tcorpus-id\tscore\nq1\td1\thigh",
        "$/qrels/test.tsv: line 2: field `score`: `high` is no whole number",
    );
    qrels(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1",
        "$/queries.jsonl: query `q2`, which $/qrels/test.tsv judges, is missing",
    );
    qrels("q1\td1\t1\n", "$/qrels/test.tsv: line 1: field `query-id`: the first line does not name the columns");
    qrels(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t2",
        "$/qrels/test.tsv: line 3: field `corpus-id`: `d1` is judged before for `q1`",
    );
    qrels("query-id\tcorpus-id\tscore\nq1\td1\t0", "$/: there are no questions in it that can be scored");
    check(Suite::SciFact, &[CORPUS, QUERIES], "", "cannot read $/qrels/test.tsv");
}

#[test]
fn of_questions() {
    let hotpot = |text, expect| check(Suite::HotpotQa, &[("dev.json", text)], "dev.json", expect);
    hotpot(
        "[{\"_id\": \"a\", \"question\": \"?\",\n\"supporting_facts\": [[\"Ann\", 0]],\n\"context\": [[\"Ann\", [\"x\", 3]]]}]",
        "$/dev.json: line 3: field `context[0][1][1]`: invalid type: integer `3`, expected a string",
    );
    hotpot(
        "[\n{\"_id\": \"a\", \"question\": \"?\", \"supporting_facts\": [[\"Bo\", 0]], \"context\": [[\"Ann\", [\"x\"]]]}]",
        "$/dev.json: line 2: field `supporting_facts`: `Bo` is none of the passages",
    );
    hotpot(
        "[{\"_id\": \"a\", \"question\": \"?\", \"context\": [[\"Ann\", [\"x\"]]]}]",
        "$/dev.json: line 1: field `supporting_facts`: it names no passage",
    );
    hotpot(
        "[{\"_id\": \"a\", \"question\": \"?\", \"supporting_facts\": [[\"Ann\", 0]], \"context\": [[\"Ann\", [\"x\"]], [\"Ann\", [\"y\"]]]}]",
        "$/dev.json: line 1: field `supporting_facts`: `Ann` is the title of several passages",
    );
    hotpot("[{\"_id\": \"a\"}", "$/dev.json: line 1: EOF while parsing a list");
    let gold = "{\"_id\": \"a\", \"question\": \"?\", \"gold_ids\": [\"d2\"]}";
    check(
        Suite::TwoWiki,
        &[CORPUS, ("queries.jsonl", gold)],
        "",
        "$/queries.jsonl: line 1: field `gold_ids`: `d2` is none of the passages",
    );
    let twice = "{\"title\": \"Ann\", \"text\": \"x\"}\n{\"title\": \"Ann\", \"text\": \"y\"}";
    check(
        Suite::TwoWiki,
        &[("corpus.jsonl", twice), ("queries.jsonl", &gold.replace("gold_ids\": [\"d2", "gold_titles\": [\"Ann"))],
        "",
        "$/queries.jsonl: line 1: field `gold_titles`: `Ann` is the title of several passages",
    );
    check(Suite::TwoWiki, &[("queries.jsonl", gold)], "", "$: no .json or .jsonl file in it whose name has `corpus`");
    check(Suite::HotpotQa, &[], "", "$/: no .json or .jsonl file in it whose name has `queries` or `dev`");
    check(
        Suite::MuSiQue,
        &[("dev.jsonl", "{\"id\": \"2hop__1\", \"question\": \"?\", \"paragraphs\": []}")],
        "",
        "$/dev.jsonl: line 1: field `paragraphs`: none of them is supporting",
    );
    check(Suite::Xquad, &[], "", "$/: no xquad.LANGUAGE.json in it");
    check(
        Suite::Xquad,
        &[("xquad.en.json", "{\"data\": [\n{\"paragraphs\": [{\"context\": \"c\", \"qas\": [{\"id\": \"q\"}]}]}]}")],
        "",
        "$/xquad.en.json: line 2: field `data[0].paragraphs[0].qas[0]`: missing field `question`",
    );
    check(Suite::Xquad, &[], "nowhere", "cannot read $/nowhere");
}

#[test]
fn of_locomo() {
    const GOOD: &str = r#"[{"sample_id": "c", "conversation": {"session_1": [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Hello."}]},
        "qa": [{"question": "?", "evidence": ["D1:1"], "category": 1}]}]"#;
    let check = |old: &str, new: &str, expect: &str| {
        assert!(GOOD.contains(old));
        check(Suite::LoCoMo, &[("locomo.json", &GOOD.replace(old, new))], "", expect);
    };
    check(
        r#""category": 1"#,
        r#""category": 6"#,
        "$/locomo.json: line 1: field `qa[0].category`: `6` is none of 1 to 5",
    );
    check(r#", "category": 1"#, "", "$/locomo.json: line 3: field `qa[0]`: missing field `category`");
    check(
        r#"["D1:1"]"#,
        "\"D1:1\"",
        "$/locomo.json: line 3: field `qa[0].evidence`: invalid type: string \"D1:1\", expected a sequence",
    );
    check(r#""speaker": "Ann", "#, "", "$/locomo.json: line 2: field `speaker` is missing");
    check(r#"["D1:1"]"#, "[]", "$/: there are no questions in it that can be scored");
}
