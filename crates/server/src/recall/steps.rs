//! The steps of an answer in words, as the page's `found.js` writes them.

use serde_json::Value;

/// The lines so far.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub lines: Vec<String>,
    /// What is being prepared, and how many tenths of it are done.
    preparing: Option<(String, u64)>,
}

impl Steps {
    /// The line of an event, unless it says nothing new.
    pub fn add(&mut self, event: &Value) -> Option<String> {
        if event["event"] == "prepare" {
            let done = 10 * number(&event["done"]) / number(&event["of"]).max(1);
            let now = Some((text(&event["step"]).to_owned(), done));
            if std::mem::replace(&mut self.preparing, now.clone()) == now {
                return None;
            }
        }
        let line = sentence(event)?;
        self.lines.push(line.clone());
        Some(line)
    }
}

const CALLS: [(&str, &str); 9] = [
    ("memorize", "Wrote an abstract of a page"),
    ("plan", "Planned what to look for"),
    ("integrate", "Took notes from what was read"),
    ("info_check", "Checked whether the notes are enough"),
    ("follow_up", "Decided what to look for next"),
    ("read", "Looked for the answer in what was read"),
    ("answer", "Wrote the answer"),
    ("check", "Checked the answer"),
    ("rewrite", "Looked up what the question refers to"),
];

const TOOLS: [(&str, &str); 9] = [
    ("keyword", "by words"),
    ("bm25", "by words"),
    ("vector", "by meaning"),
    ("dense", "by meaning"),
    ("fused", "by words and meaning"),
    ("combined", "by words and meaning"),
    ("hybrid", "by words and meaning"),
    ("page_index", "by page number"),
    ("graph", "in the graph"),
];

/// An event as a sentence; none for those that are about the computation alone.
fn sentence(event: &Value) -> Option<String> {
    Some(match event["event"].as_str()? {
        "call" => {
            let step = text(&event["step"]);
            let name = step.rsplit('.').next().unwrap_or(step);
            known(&CALLS, name).map_or_else(|| capitalised(&name.replace('_', " ")), str::to_owned)
        }
        "search" => {
            let tool = text(&event["tool"]);
            let how = known(&TOOLS, tool).map_or_else(|| format!("with {}", tool.replace('_', " ")), str::to_owned);
            let queries = quoted(&event["queries"]);
            let what = if queries.is_empty() { queries } else { format!(" for {queries}") };
            let found = match list(&event["hits"]).len() {
                0 => "nothing found".to_owned(),
                hits => counted(hits, "page"),
            };
            format!("Searched {how}{what}: {found}")
        }
        "evidence" => {
            let left_out = match list(&event["left_out"]).len() {
                0 => String::new(),
                pages => format!("; {} did not fit", counted(pages, "page")),
            };
            format!("Read {}{left_out}", counted(list(&event["pages"]).len(), "page"))
        }
        "score" => "Compared possible answers".to_owned(),
        "short" if event["abstained"] == true => "Found no answer in what was read".to_owned(),
        "short" => format!("Chose {}", quoted(&event["answers"])),
        "statements" => {
            let verdicts = list(&event["verdicts"]);
            let supported = verdicts.iter().filter(|verdict| **verdict == "supported").count();
            format!("Checked {}: {supported} supported", counted(verdicts.len(), "statement"))
        }
        "prepare" => match event["step"].as_str() {
            Some(step) => format!("Prepared the documents ({step}): {} of {}", event["done"], event["of"]),
            None => format!("Prepared the documents: {}", text(&event["status"])),
        },
        "block" => format!("Read part {} of {} for the graph", event["number"], event["of"]),
        "fallback" => format!("Went on without “{}”", text(&event["step"])),
        _ => return None,
    })
}

fn known(names: &[(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    names.iter().find(|(known, _)| *known == name).map(|(_, words)| *words)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn quoted(texts: &Value) -> String {
    list(texts).iter().map(|one| format!("“{}”", text(one))).collect::<Vec<_>>().join(", ")
}

fn counted(number: usize, unit: &str) -> String {
    if number == 1 { format!("1 {unit}") } else { format!("{number} {unit}s") }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Steps;

    #[test]
    fn steps_are_described_in_words() {
        let mut steps = Steps::default();
        let mut check = |event: serde_json::Value, want: &str| {
            assert_eq!(steps.add(&event).as_deref().unwrap_or_default(), want);
        };
        check(json!({ "event": "call", "step": "gam.plan" }), "Planned what to look for");
        check(json!({ "event": "call", "step": "comorag.probe_more" }), "Probe more");
        let search = json!({ "event": "search", "tool": "keyword", "queries": ["wall", "storm"], "hits": [{}] });
        check(search, "Searched by words for “wall”, “storm”: 1 page");
        check(
            json!({ "event": "search", "tool": "odd_one", "queries": [], "hits": [] }),
            "Searched with odd one: nothing found",
        );
        check(json!({ "event": "evidence", "pages": [1, 2], "left_out": [3] }), "Read 2 pages; 1 page did not fit");
        check(json!({ "event": "short", "answers": ["a wall"], "abstained": false }), "Chose “a wall”");
        check(
            json!({ "event": "statements", "verdicts": ["supported", "unsupported"] }),
            "Checked 2 statements: 1 supported",
        );
        check(json!({ "event": "prefixes", "step": "load" }), "");
    }

    #[test]
    fn the_progress_of_a_preparation_is_reported_in_tenths() {
        let mut steps = Steps::default();
        for done in 0..100 {
            steps.add(&json!({ "event": "prepare", "step": "embedding", "done": done, "of": 100 }));
        }
        assert_eq!(steps.lines.len(), 10);
        assert_eq!(steps.lines[1], "Prepared the documents (embedding): 10 of 100");
    }
}
