//! Forgetting: replies of batches that may quote a removed text become errors, in the place of each.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use store::private;

use super::super::responses::kept::cites;
use super::super::stored_files::Files;
use super::kept::Batches;
use super::lines::{self, FAILURES, REPLIES};
use crate::error::Result;
use crate::lost::Gone;

/// Replaces the replies that may quote a corpus, or, if documents are given, one of these: newer ones, and those that cite
/// it.
///
/// # Errors
/// If files cannot be read or written; what was replaced stays so.
pub(crate) fn forget(data_folder: &Path, corpus: &str, gone: Option<&[Gone]>) -> Result<()> {
    let batches = Batches::new(data_folder).records;
    if !batches.folder().exists() {
        return Ok(());
    }
    // Nothing is added to the replies meanwhile, nor moved to the files.
    let _one = batches.lock()?;
    for (path, ..) in batches.files()? {
        if path.extension().is_some_and(|kind| kind == REPLIES || kind == FAILURES) {
            rewrite(&path, corpus, gone)?;
        }
    }
    let files = Files::new(data_folder.join("files"));
    if files.folder().exists() {
        // A server may have ended while it moved replies.
        files.sweep()?;
        files.rewrite_written(|content| rewrite(content, corpus, gone))?;
    }
    Ok(())
}

/// Replaces lines of a file of replies. A line that cannot be read may quote anything, and is removed.
fn rewrite(path: &Path, corpus: &str, gone: Option<&[Gone]>) -> Result<()> {
    let bytes = fs::read(path)?;
    let mut kept = Vec::with_capacity(bytes.len());
    // What was written of a last line when a server ended has no end.
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        // Most lines need not be parsed: they do not have the name of the corpus.
        if str::from_utf8(line).is_ok_and(|text| !text.contains(corpus)) {
            kept.extend_from_slice(line);
            continue;
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(reply) if may_quote(&reply, corpus, gone) => writeln!(kept, "{}", lines::without_reply(&reply))?,
            Ok(_) => kept.extend_from_slice(line),
            Err(_) => {}
        }
    }
    if kept != bytes {
        private::replace(path, kept)?;
    }
    Ok(())
}

fn may_quote(reply: &Value, corpus: &str, gone: Option<&[Gone]>) -> bool {
    let is_of = reply["corpora"].as_array().into_iter().flatten().any(|name| name == corpus);
    let answered = reply["answered_at"].as_u64();
    let could_know = |gone: &Gone| {
        answered.is_none_or(|answered| answered >= gone.since) || is_cited(&reply["response"]["body"], gone)
    };
    is_of && gone.is_none_or(|gone| gone.iter().any(could_know))
}

/// Whether a chat completion or a response cites a document.
fn is_cited(body: &Value, gone: &Gone) -> bool {
    let choices = body["choices"].as_array().into_iter().flatten();
    let mut annotations = choices.filter_map(|choice| choice["message"]["annotations"].as_array()).flatten();
    let mut output = body["output"].as_array().into_iter().flatten();
    annotations.any(|annotation| annotation["url_citation"]["title"] == gone.path.as_str())
        || output.any(|item| cites(item, gone))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_replies_that_may_quote_a_removed_document_are_replaced() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let path = folder.path().join("replies");
        let gone: Gone =
            serde_json::from_value(json!({ "path": "wall.txt", "kind": "text", "digest": "", "since": 100 }))
                .expect("a document");
        let body = |title: &str| {
            let citation = json!({ "type": "url_citation", "url_citation": { "title": title } });
            json!({ "choices": [{ "message": { "content": "pell", "annotations": [citation] } }] })
        };
        let line = |id: &str, corpora: &Value, answered: u64, title: &str| {
            json!({ "id": id, "custom_id": id, "response": { "body": body(title) }, "error": null,
                "corpora": corpora, "answered_at": answered })
        };
        let [pell, other] = [json!(["other", "pell"]), json!(["other"])];
        let all = [
            line("newer", &pell, 100, "lamp.txt"),
            line("older", &pell, 99, "lamp.txt"),
            line("cites", &pell, 99, "wall.txt"),
            line("other", &other, 100, "wall.txt"),
            json!({ "id": "plain", "custom_id": "plain", "response": { "body": body("wall.txt") }, "error": null }),
        ];
        let written: Vec<String> = all.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, format!("{}{{\"id\": \"half", written.concat())).expect("it can be written");
        let forgotten = || -> Vec<bool> {
            let text = fs::read_to_string(&path).expect("it is there");
            let lines: Vec<Value> =
                text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
            let ids: Vec<&Value> = lines.iter().map(|line| &line["custom_id"]).collect();
            assert_eq!(ids, ["newer", "older", "cites", "other", "plain"]);
            lines.iter().map(|line| line["error"]["code"] == "document_removed" && line["response"].is_null()).collect()
        };
        rewrite(&path, "pell", Some(&[gone])).expect("it can be written");
        assert_eq!(forgotten(), [true, false, true, false, false]);
        rewrite(&path, "pell", None).expect("it can be written");
        assert_eq!(forgotten(), [true, true, true, false, false]);
    }
}
