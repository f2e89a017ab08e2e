//! The files of a batch: a request in each line of its input, a reply in each line of what it writes.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use store::private;

use crate::json::in_words_of_json;

/// Extensions of what was written so far: replies, and requests that failed.
pub(super) const REPLIES: &str = "replies";
pub(super) const FAILURES: &str = "failures";

/// Maximum requests of a batch.
const MAX_LINES: usize = 50_000;

/// A line of the input.
pub(super) struct Line {
    /// From 1.
    pub number: usize,
    pub custom_id: Option<String>,
    /// The body of the request as JSON, or why there is none. It is no value, which would take many times the memory.
    pub body: Result<String, String>,
}

#[derive(Deserialize)]
struct Written {
    custom_id: String,
    method: Option<String>,
    url: String,
    body: Value,
}

/// The requests of an input file. A line that is not one, or has more than `max_bytes`, does not prevent the others.
///
/// # Errors
/// Why there are no requests.
pub(super) fn read(input: &[u8], endpoint: &str, max_bytes: usize) -> Result<Vec<Line>, String> {
    let numbered = || (1..).zip(input.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty());
    match numbered().count() {
        0 => return Err("the input file has no lines".to_owned()),
        number if number > MAX_LINES => {
            return Err(format!("the input file has {number} lines; at most {MAX_LINES} are read"));
        }
        _ => {}
    }
    let mut known = HashSet::new();
    let lines = numbered()
        .map(|(number, line)| {
            let written: Result<Written, String> = match line.len() {
                bytes if bytes > max_bytes => Err(format!("it has {bytes} bytes; at most {max_bytes} are read")),
                _ => serde_json::from_slice(line).map_err(|error| in_line(&error)),
            };
            let custom_id = written.as_ref().ok().map(|written| written.custom_id.clone());
            let is_new = custom_id.iter().all(|id| known.insert(id.clone()));
            let body = written
                .and_then(|written| written.checked(endpoint))
                .and_then(|body| if is_new { Ok(body) } else { Err("another line has this `custom_id`".to_owned()) });
            Line { number, custom_id, body }
        })
        .collect();
    Ok(lines)
}

/// An error of reading a line with its column alone: the number of the line is that in the file.
fn in_line(error: &serde_json::Error) -> String {
    let words = in_words_of_json(&error.to_string());
    match words.rsplit_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} at column {column}"),
        None => words,
    }
}

impl Written {
    fn checked(self, endpoint: &str) -> Result<String, String> {
        if self.method.as_deref().is_some_and(|method| method != "POST") {
            return Err("`method` must be POST".to_owned());
        }
        if self.url != endpoint {
            return Err(format!("`url` must be {endpoint}, the endpoint of the batch"));
        }
        let is_live = |name: &&&str| self.body[**name] == true;
        match ["stream", "background"].iter().find(is_live) {
            Some(name) => Err(format!("`{name}` is not possible in a batch")),
            None => Ok(self.body.to_string()),
        }
    }
}

/// A line of the output.
pub(super) fn reply(batch: &str, line: &Line, response: Value, error: Value) -> Value {
    json!({ "id": format!("{batch}-{}", line.number), "custom_id": line.custom_id, "response": response,
        "error": error })
}

/// The line of a reply that may quote a removed text, without it.
pub(super) fn without_reply(reply: &Value) -> Value {
    let message = "a document that the answer may quote was removed or replaced; send the request again";
    json!({ "id": reply["id"], "custom_id": reply["custom_id"], "response": null,
        "error": { "code": "document_removed", "message": message } })
}

/// Adds a line to a file that only its owner may read.
pub(super) fn append(path: &Path, line: &Value) -> io::Result<()> {
    if !path.exists() {
        private::create(path)?;
    }
    OpenOptions::new().append(true).open(path)?.write_all(format!("{line}\n").as_bytes())
}

/// The numbers of the lines that have a reply in this file. What was written of a line when the server ended is removed.
pub(super) fn answered(path: &Path) -> io::Result<HashSet<usize>> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        bytes => bytes?,
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() {
        OpenOptions::new().write(true).open(path)?.set_len(whole as u64)?;
    }
    let number = |line: &[u8]| {
        let line: Value = serde_json::from_slice(line).ok()?;
        line["id"].as_str()?.rsplit('-').next()?.parse().ok()
    };
    Ok(bytes[..whole].split(|byte| *byte == b'\n').filter_map(number).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Line, MAX_LINES, answered, append, read, reply};

    #[test]
    fn a_bad_line_has_a_reason_and_the_others_are_read() {
        let line = |id: &str, url: &str, body: Value| json!({ "custom_id": id, "url": url, "body": body }).to_string();
        let good = line("a", "/v1/embeddings", json!({ "input": "x" }));
        let other = line("b", "/v1/rerank", json!({}));
        let live = line("c", "/v1/embeddings", json!({ "stream": true }));
        let long = line("d", "/v1/embeddings", json!({ "input": "x".repeat(200) }));
        let input = format!("{good}\n\n{other}\n{{\n{live}\r\n{good}\n{long}");
        let lines = read(input.as_bytes(), "/v1/embeddings", 200).expect("lines");
        let found: Vec<(usize, Option<&str>, bool)> =
            lines.iter().map(|line| (line.number, line.custom_id.as_deref(), line.body.is_ok())).collect();
        let want = [
            (1, Some("a"), true),
            (3, Some("b"), false),
            (4, None, false),
            (5, Some("c"), false),
            (6, Some("a"), false),
            (7, None, false),
        ];
        assert_eq!(found, want);
        assert_eq!(lines[2].body, Err("EOF while parsing an object at column 1".to_owned()));
        assert_eq!(lines[0].body.as_deref(), Ok(r#"{"input":"x"}"#));
        let reason = format!("it has {} bytes; at most 200 are read", long.len());
        assert_eq!(lines[5].body.as_deref(), Err(&reason));
        assert!(read(b"\n \n", "/v1/embeddings", 200).is_err());
        let many = "{}\n".repeat(MAX_LINES + 1);
        assert!(read(many.as_bytes(), "/v1/embeddings", 200).is_err_and(|reason| reason.contains("50001 lines")));
    }

    #[test]
    fn what_was_answered_is_known_and_half_a_line_is_removed() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let path = folder.path().join("replies");
        assert!(answered(&path).expect("nothing").is_empty());
        for number in [2, 13] {
            let line = Line { number, custom_id: None, body: Err(String::new()) };
            append(&path, &reply("batch-0a", &line, Value::Null, Value::Null)).expect("it is written");
        }
        let whole = std::fs::read(&path).expect("it is there");
        std::fs::write(&path, [whole.as_slice(), b"{\"id\": \"batch-0a-1"].concat()).expect("it is written");
        let mut numbers: Vec<usize> = answered(&path).expect("lines").into_iter().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [2, 13]);
        assert_eq!(std::fs::read(&path).expect("it is there"), whole);
    }
}
