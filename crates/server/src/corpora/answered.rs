//! The schema of an answer in the API's description: what [`memory::Answer`] serialises to.

use utoipa::ToSchema;

/// An answer with its statements, citations and cost.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Answered {
    answer: String,
    /// The short form (a span of the documents, several spans, `yes` or `no`), where it was chosen from the documents.
    short: Option<String>,
    /// The probability that `short` is right, where it was computed.
    probability: Option<f64>,
    /// Every statement of the answer with its verdict.
    statements: Vec<StatementSchema>,
    /// The probability that the pages that were read hold an answer.
    answerable: Option<f64>,
    /// Whether the answer was withheld because they probably hold none.
    abstained: Option<bool>,
    method: String,
    /// The model that answered.
    model: String,
    embedder: String,
    /// The spans that support the statements, the most important first.
    citations: Vec<CitationSchema>,
    /// `high`, `medium` or `low`, where the method asks the model for it.
    confidence: Option<String>,
    /// Ids of the nodes that the answer cites, where the method answers from a graph.
    cited_nodes: Option<Vec<String>>,
    /// How much of the corpus was prepared for the method, if not all of it.
    prepared: Option<PreparedSchema>,
    note: Option<String>,
    /// The question that was answered, if a follow-up was rewritten so that it is understood alone.
    understood: Option<String>,
    /// The query, if the words of earlier questions were added to that of a follow-up.
    searched_with: Option<String>,
    usage: UsageSchema,
    /// The time from the request to the answer, with what was prepared for it.
    elapsed_seconds: f64,
    /// Why this method was chosen, if the request left the choice (`auto`).
    chosen: Option<String>,
    /// The id of the trace.
    trace: String,
    /// The thread to which it was appended, and its turn there, if the request named one.
    thread: Option<String>,
    turn: Option<usize>,
}

/// A sentence of an answer, or a clause of one.
#[derive(ToSchema)]
#[schema(as = Statement)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct StatementSchema {
    text: String,
    /// First character in the answer.
    start: u32,
    /// One after its last character.
    end: u32,
    verdict: Verdict,
    /// The span that supports or contradicts it, or that has its words.
    citation: Option<CitationSchema>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum Verdict {
    Supported,
    Contradicted,
    Unsupported,
    /// The documents have these words, which may not answer the question.
    Quoted,
}

/// A span of a document.
#[derive(ToSchema)]
#[schema(as = Citation)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct CitationSchema {
    /// The name of the document.
    path: String,
    /// The id of the page in the corpus, as `parts` of the document have it; no page number.
    page: i64,
    /// The name of the page in its source: `page 3` of a PDF, a slide, a sheet, a chapter, a subject; else the document's title,
    /// if it has one.
    label: Option<String>,
    /// First character in the document.
    start: u32,
    /// One after its last character.
    end: u32,
    quote: String,
}

/// What is prepared, in the method's unit.
#[derive(ToSchema)]
#[schema(as = Prepared)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct PreparedSchema {
    ready: usize,
    of: usize,
}

/// The cost of all calls.
#[derive(ToSchema)]
#[schema(as = Usage)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct UsageSchema {
    calls: usize,
    prompt_tokens: usize,
    cached_tokens: usize,
    output_tokens: usize,
    /// The sum over the calls; it exceeds the time that passed where calls run at the same time.
    seconds: f64,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use calls::Usage;
    use memory::{Answer, Citation, Confidence, Prepared, Statement, Support};
    use serde_json::{Value, json};
    use utoipa::PartialSchema;

    use super::*;

    /// Every field is set, so that a new one that is not documented is found.
    fn answer() -> Answer {
        let text = || Some("text".to_owned());
        let citation = Citation { path: String::new(), page: 1, label: text(), start: 0, end: 1, quote: String::new() };
        let statement = Statement {
            text: String::new(),
            start: 0,
            end: 1,
            verdict: Support::Quoted,
            citation: Some(citation.clone()),
        };
        Answer {
            answer: String::new(),
            short: text(),
            probability: Some(0.5),
            statements: vec![statement],
            answerable: Some(0.5),
            abstained: Some(true),
            method: "rag",
            model: String::new(),
            embedder: String::new(),
            citations: vec![citation],
            confidence: Some(Confidence::High),
            cited_nodes: vec![String::new()],
            usage: Usage::default(),
            chosen: text(),
            prepared: Some(Prepared { ready: 1, of: 2 }),
            note: text(),
            searched_with: text(),
        }
    }

    fn fields<'a>(object: &'a Value, more: &[&'a str]) -> BTreeSet<&'a str> {
        let own = object.as_object().expect("an object").keys().map(String::as_str);
        own.chain(more.iter().copied()).collect()
    }

    #[test]
    fn the_schemas_have_the_fields_of_answers_and_no_others() {
        fn check<S: PartialSchema>(object: &Value, added: &[&str]) {
            let schema = json!(S::schema());
            assert_eq!(fields(&schema["properties"], &[]), fields(object, added));
        }
        let answer = json!(answer());
        check::<Answered>(&answer, &["understood", "elapsed_seconds", "trace", "thread", "turn"]);
        check::<StatementSchema>(&answer["statements"][0], &[]);
        check::<CitationSchema>(&answer["citations"][0], &[]);
        check::<PreparedSchema>(&answer["prepared"], &[]);
        check::<UsageSchema>(&answer["usage"], &[]);
        assert_eq!(json!(Verdict::schema())["enum"], json!(Support::ALL));
    }
}
