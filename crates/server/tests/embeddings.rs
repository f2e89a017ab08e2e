//! POST /v1/embeddings and /v1/rerank.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host, says};
use crate::tenants::{HOLDERS, Shared};

#[test]
fn vectors_are_encoded_as_numbers_or_base64() {
    let host = Host::new(says(""));
    let embed = |format: &str| {
        let body = json!({ "model": "letters", "input": ["abba", "b c"], "encoding_format": format });
        host.post("/v1/embeddings", &body).json()
    };
    let (floats, packed) = (embed("float"), embed("base64"));
    // Three words, and two special tokens of each text.
    assert_eq!(floats["usage"], json!({ "prompt_tokens": 7, "total_tokens": 7 }));
    assert_eq!((&floats["object"], &floats["model"]), (&json!("list"), &json!("letters")));
    for index in 0..2 {
        let vector: Vec<f64> = serde_json::from_value(floats["data"][index]["embedding"].clone()).expect("numbers");
        assert_eq!(vector.len(), 26);
        let bytes = STANDARD.decode(packed["data"][index]["embedding"].as_str().expect("text")).expect("base64");
        let unpacked: Vec<f64> =
            bytes.chunks(4).map(|x| f64::from(f32::from_le_bytes([x[0], x[1], x[2], x[3]]))).collect();
        assert_eq!(
            vector.iter().map(|x| *x as f32).collect::<Vec<_>>(),
            unpacked.iter().map(|x| *x as f32).collect::<Vec<_>>()
        );
        assert_eq!(floats["data"][index]["index"], index);
    }
    let one = host
        .post("/v1/embeddings", &json!({ "model": "letters", "input": "abba", "dimensions": 26, "user": "ann" }))
        .json();
    assert_eq!(one["data"][0]["embedding"], floats["data"][0]["embedding"]);
}

#[test]
fn what_cannot_be_embedded_is_refused() {
    let host = Host::new(says(""));
    let check = |more: Value, param: &str| {
        let mut body = json!({ "model": "letters", "input": "abba" });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        let answer = host.post("/v1/embeddings", &body);
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], param, "{more}");
    };
    check(json!({ "input": "" }), "input");
    check(json!({ "input": [] }), "input");
    check(json!({ "input": [[1, 2]] }), "input");
    let tokens = host.post("/v1/embeddings", &json!({ "model": "letters", "input": [[1, 2]] }));
    assert!(tokens.refused(400, "invalid_value").contains("texts, not token ids"), "{}", tokens.text);
    let hint = tokens.json()["error"]["hint"].take();
    assert!(hint.as_str().is_some_and(|hint| hint.contains("`check_embedding_ctx_length=False`")), "{hint}");
    let many =
        host.post("/v1/embeddings", &json!({ "model": "letters", "input": "a ".repeat(20_000), "colbert": true }));
    let message = many.refused(400, "invalid_value");
    assert!(message.contains("20002") && message.contains("16384"), "{message}");
    check(json!({ "dimensions": 27 }), "dimensions");
    check(json!({ "truncate_prompt_tokens": 0 }), "truncate_prompt_tokens");
    check(json!({ "encoding_format": "hex" }), "encoding_format");
    check(json!({ "sparse": true }), "sparse");
    check(json!({ "colbert": true }), "colbert");
    let long = host.post("/v1/embeddings", &json!({ "model": "letters", "input": "word ".repeat(65) }));
    // The scripted embedder truncates and refuses nothing; a real one does.
    assert_eq!(long.status, 200);
    host.post("/v1/embeddings", &json!({ "model": "scripted", "input": "a" })).refused(404, "model_not_found");
}

#[test]
fn texts_are_truncated_and_vectors_shortened_on_request() {
    let host = Host::new(says(""));
    let embed = |more: Value| {
        let mut body = json!({ "model": "letters", "input": ["b ".repeat(64) + "zz", "b".to_owned()] });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/v1/embeddings", &body)
    };
    let whole = embed(json!({}));
    assert_eq!((&whole.json()["usage"]["prompt_tokens"], whole.header("warning")), (&json!(70), None));
    for more in [json!({ "truncate": true }), json!({ "truncate_prompt_tokens": -1 })] {
        let cut = embed(more);
        assert_eq!(cut.json()["usage"]["prompt_tokens"], 69);
        assert_eq!(cut.warning(), "1 of 2 texts were truncated to 64 tokens");
        assert_eq!(cut.json()["data"][0]["embedding"][25], 0.0, "the last word is cut");
    }
    assert_eq!(embed(json!({ "truncate_prompt_tokens": 3 })).json()["usage"]["prompt_tokens"], 8);
    let short = embed(json!({ "dimensions": 2 })).json();
    let vector: Vec<f64> = serde_json::from_value(short["data"][0]["embedding"].clone()).expect("numbers");
    let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!(vector.len() == 2 && (norm - 1.0).abs() < 1e-6, "{vector:?}");
}

#[test]
fn texts_are_ranked() {
    let host = Host::new(says(""));
    let body = json!({ "model": "letters", "query": "zebra", "documents": ["oooo", { "text": "bearz" }, "zzz"], "return_documents": true });
    let mut answer = host.post("/v1/rerank", &body).json();
    assert_eq!(answer["data"], answer["results"], "as Voyage names it");
    assert_eq!(answer["usage"]["total_tokens"], 12, "four words, and two special tokens of each text");
    let results = answer["results"].take();
    let order: Vec<&Value> = results.as_array().expect("results").iter().map(|result| &result["index"]).collect();
    assert_eq!(order, [1, 2, 0]);
    assert_eq!(results[0]["document"]["text"], "bearz");
    assert!((results[0]["relevance_score"].as_f64().expect("a score") - 1.0).abs() < 1e-6);
    let two = host
        .post("/v1/rerank", &json!({ "model": "letters", "query": "a", "documents": ["b", "c", "d"], "top_n": 2 }))
        .json();
    assert_eq!(two["results"].as_array().map(Vec::len), Some(2));
    assert!(two["results"][0].get("document").is_none());
    host.post("/v1/rerank", &json!({ "model": "letters", "query": "", "documents": ["b"] }))
        .refused(400, "invalid_value");
    host.post("/v1/rerank", &json!({ "model": "letters", "query": "a", "documents": [] }))
        .refused(400, "invalid_value");
    host.post("/v1/rerank", &json!({ "model": "letters", "query": "a", "documents": ["b"], "top_n": 0 }))
        .refused(400, "invalid_value");
}

#[test]
fn embedded_texts_count_for_the_tenant_of_their_request() {
    let script = Scripted::new(CONTEXT_TOKENS).answer("gam.memorize", "About a horse.");
    let shared = Shared::new(Arc::new(script), None);
    let count = |holder: &str| {
        let metrics = shared.send(holder, "GET", "/metrics", &Value::Null).text;
        let line = metrics.lines().find(|line| line.starts_with("memlocal_embedded_texts_total "));
        line.and_then(|line| line.rsplit_once(' ')).map_or(0, |(_, count)| count.parse::<u64>().expect("a number"))
    };
    let [ann, bob, _] = HOLDERS;
    for (path, body, texts) in [
        ("/v1/embeddings", json!({ "model": "letters", "input": ["a", "b"] }), 2),
        ("/v1/rerank", json!({ "model": "letters", "query": "a", "documents": ["b", "c"] }), 3),
        ("/api/embed", json!({ "model": "letters", "input": "a" }), 1),
        ("/api/embeddings", json!({ "model": "letters", "prompt": "a" }), 1),
    ] {
        let before = count(ann);
        let answer = shared.send(ann, "POST", path, &body);
        assert_eq!((answer.status, count(ann) - before), (200, texts), "{path}: {}", answer.text);
    }
    let before = count(ann);
    assert_eq!(shared.send(ann, "POST", "/v1/corpora", &json!({ "name": "m" })).status, 201);
    let document = json!({ "name": "n", "text": "A horse.", "method": "gam" });
    let job = shared.send(ann, "POST", "/v1/corpora/m/documents", &document);
    assert_eq!(shared.ended(ann, &job)["status"], "done");
    assert!(count(ann) > before, "the pages of a corpus are embedded for its tenant");
    assert_eq!(count(bob), 0);
}
