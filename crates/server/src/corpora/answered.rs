//! The schema of an answer in the API's description: what [`memory::Answer`] serialises to.

use utoipa::ToSchema;

/// An answer with its statements, citations and cost.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Answered {
    answer: String,
    /// The short form (a span of the documents, several spans, `yes` or `no`), where it was chosen from the documents.
    short: Option<String>,
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
    /// The span that supports or contradicts it.
    citation: Option<CitationSchema>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum Verdict {
    Supported,
    Contradicted,
    Unsupported,
}

/// A span of a document.
#[derive(ToSchema)]
#[schema(as = Citation)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct CitationSchema {
    /// The name of the document.
    path: String,
    page: i64,
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
    seconds: f64,
}
