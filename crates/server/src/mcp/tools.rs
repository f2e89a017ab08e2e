//! The tools as clients see them: arguments, results, and what a call may change.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// What a call changes.
#[derive(Clone, Copy)]
enum Effect {
    /// No document. Vectors and notes that are missing may be computed.
    Reads,
    /// Adds what is derived from documents.
    Adds,
    /// Replaces or deletes documents.
    Replaces,
}

fn tool(name: &'static str, says: &'static str, input: Value, output: Value, effect: Effect) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(matches!(effect, Effect::Reads))
        .destructive(matches!(effect, Effect::Replaces))
        .idempotent(true)
        .open_world(false);
    Tool::new(name, says, object(input)).with_raw_output_schema(Arc::new(object(output))).with_annotations(annotations)
}

fn object(schema: Value) -> JsonObject {
    if let Value::Object(schema) = schema { schema } else { JsonObject::new() }
}

/// The schema of arguments: these and no others.
fn arguments(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The schema of a result: these fields at least.
fn result(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(JsonObject::keys).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn text(says: &str) -> Value {
    json!({ "type": "string", "description": says })
}

fn number(says: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": says })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn job() -> Value {
    result(json!({
        "id": text("Id of the job, for the tool `job`"), "corpus": text("The corpus"), "method": text("The method"),
        "status": { "enum": ["waiting", "running", "done", "failed", "cancelled"] },
        "progress": { "type": ["object", "null"], "description": "The step and how much of it is done" },
        "added": list(json!({ "type": "object" })), "added_in_part": list(json!({ "type": "object" })),
        "unread": list(json!({ "type": "object" })),
        "error": { "type": ["string", "null"] },
        "hint": { "type": ["string", "null"], "description": "The supported types, if a file has another" },
    }))
}

fn document(more: Value) -> Value {
    let mut fields = json!({
        "id": number("Id of the document"), "name": text("Its name"), "kind": text("Its format"),
        "title": { "type": ["string", "null"] }, "pages": number("Pages"), "created": { "type": ["integer", "null"] },
    });
    if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
        fields.extend(more);
    }
    result(fields)
}

/// The description of `page`.
const PAGE: &str = "Id of the page in the corpus, which is no page number";

fn citation() -> Value {
    let mut cited = result(json!({
        "document": { "type": ["integer", "null"], "description": "Id of the document, for `read_source`" },
        "path": text("Name of the document"), "page": number(PAGE), "start": number("First character"),
        "end": number("One after the last character"), "quote": text("The text between them"),
    }));
    cited["properties"]["label"] = text("Name of the page in its source, if it has one, such as `page 3` of a PDF");
    cited
}

fn list_documents(corpus: &Value) -> Tool {
    tool(
        "list_documents",
        "List the documents of a corpus with their ids, up to `limit` at once. If `next` is not null there are more: call \
         this again with `after` set to it.",
        arguments(
            json!({
                "corpus": corpus,
                "limit": { "type": "integer", "minimum": 1, "description": "Documents to list; 100 by default" },
                "after": number("`next` of the list before; by default the list begins with the first document"),
            }),
            &["corpus"],
        ),
        result(json!({
            "documents": list(document(json!({}))),
            "next": { "type": ["integer", "null"], "description": "`after` of the next call; null if there are no more" },
        })),
        Effect::Reads,
    )
}

pub(super) fn all() -> Vec<Tool> {
    let corpus = text("Name of a corpus, as `list_corpora` gives it");
    let method = text("Method; by default auto, which chooses one for the model and the length of the documents");
    let id = number("Id of the document, as `list_documents`, `search` and citations give it");
    let hit = result(json!({
        "page": number(PAGE), "score": { "type": "number" }, "document": number("Id of the document"),
        "name": text("Name of the document"), "start": number("First character of the page in the document"),
        "end": number("One after its last character"), "text": text("The text of the page"),
    }));
    vec![
        tool(
            "list_corpora",
            "List the corpora and what they hold.",
            arguments(json!({}), &[]),
            result(json!({ "corpora": list(result(json!({ "name": text("Name of the corpus") }))) })),
            Effect::Reads,
        ),
        list_documents(&corpus),
        tool(
            "remember",
            "Keep a text in a corpus, which is made if it does not exist. One of the same name is replaced. Returns the job \
             that does it; a long one continues after the call has returned.",
            arguments(
                json!({ "corpus": corpus, "name": text("What the text is known by; it may begin with folders, as notes/may.md"), "text": text("The text"), "method": method }),
                &["corpus", "name", "text"],
            ),
            job(),
            Effect::Replaces,
        ),
        tool(
            "prepare",
            "Prepare a corpus for a method, so that questions need not wait for it. Returns the job that does it; a long one \
             continues after the call has returned.",
            arguments(json!({ "corpus": corpus, "method": method }), &["corpus"]),
            job(),
            Effect::Adds,
        ),
        tool(
            "job",
            "Show a job of `remember` or `prepare` and how far it is.",
            arguments(json!({ "job": text("Id of the job") }), &["job"]),
            job(),
            Effect::Reads,
        ),
        tool(
            "forget",
            "Delete a document and everything derived from it.",
            arguments(json!({ "corpus": corpus, "document": id }), &["corpus", "document"]),
            result(
                json!({ "corpus": text("The corpus"), "document": number("The id"), "forgotten": { "const": true } }),
            ),
            Effect::Replaces,
        ),
        tool(
            "search",
            "Find pages of a corpus, with scores.",
            arguments(
                json!({ "corpus": corpus, "query": text("What is sought"), "tool": text("bm25, dense or fused (by default)"), "k": number("Pages to find") }),
                &["corpus", "query"],
            ),
            result(json!({ "hits": list(hit) })),
            Effect::Reads,
        ),
        tool(
            "ask",
            "Answer a question from a corpus, with citations.",
            arguments(
                json!({ "corpus": corpus, "question": text("The question"), "method": method, "profile": text("Form of prompts: paper or small; by default by the model's size") }),
                &["corpus", "question"],
            ),
            result(
                json!({ "answer": text("The answer"), "citations": list(citation()), "statements": list(json!({ "type": "object" })) }),
            ),
            Effect::Reads,
        ),
        tool(
            "read_source",
            "Read the text of a document around a citation.",
            arguments(
                json!({ "corpus": corpus, "document": id, "start": number("First character"), "end": number("One after the last character") }),
                &["corpus", "document"],
            ),
            document(json!({
                "text": text("The text of the range"), "start": number("Its first character"),
                "end": number("One after its last character"), "characters": number("Characters of the whole document"),
            })),
            Effect::Reads,
        ),
    ]
}
