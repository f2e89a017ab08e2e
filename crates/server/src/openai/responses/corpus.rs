//! Responses from corpora: an answer from memory, its steps as a reasoning summary, its citations as annotations.

use std::sync::{Arc, Mutex};

use calls::{Finish, Piece, Usage};
use serde_json::{Value, json};

use super::super::vector_stores::found;
use super::consultation::Consultation;
use super::file_search::FileSearch;
use super::output::{Output, lock, usage};
use crate::app::App;
use crate::error::Result;
use crate::recall::{Conversation, Mark, Question, Recalled, recall};
use crate::tenant::Tenant;

/// Writes the answer to a question, and returns how it ended and its usage.
pub(super) async fn respond(
    Consultation { questions, search }: &Consultation,
    output: &Arc<Mutex<Output>>,
    app: &App,
    tenant: &Arc<Tenant>,
) -> Result<(Finish, Value)> {
    if let Some(search) = search {
        run_search(questions, search, output, app, tenant).await?;
    }
    let (mut used, mut best) = (Usage::default(), None);
    for question in questions {
        let output = Arc::clone(output);
        let on_step = move |line: &str| lock(&output).piece(Piece::Thought(&format!("{line}\n")));
        let told = recall(app, tenant, question.clone(), on_step).await?;
        used += told.usage;
        let has_source = !told.sources.is_empty();
        if has_source || best.is_none() {
            best = Some(told);
        }
        if has_source {
            break;
        }
    }
    let mut finish = Finish::Stop;
    if let Some(told) = best {
        let mut output = lock(output);
        output.piece(Piece::Text(&told.text, &[]));
        output.annotate(annotations(&told, search.is_none()));
        finish = told.finish;
    }
    Ok((finish, usage(used, 0)))
}

/// Writes the item of a search, with the pages that it finds if the request asks for them.
async fn run_search(
    questions: &[Question],
    search: &FileSearch,
    output: &Mutex<Output>,
    app: &App,
    tenant: &Arc<Tenant>,
) -> Result<()> {
    let Some(question) = questions.first() else { return Ok(()) };
    let query = Conversation::of(question.prompt.messages())?.question;
    lock(output).begin_search(&query);
    let mut results = search.shows_results.then(Vec::new);
    if let Some(results) = &mut results {
        let most = search.most.unwrap_or(DEFAULT_RESULTS);
        for Question { model, .. } in questions {
            results.extend(found(app, tenant, &model.corpus, &query, most).await?);
        }
        let score = |result: &Value| result["score"].as_f64().unwrap_or_default();
        results.sort_by(|one, other| score(other).total_cmp(&score(one)));
        results.truncate(most);
    }
    lock(output).end_search(results.into());
    Ok(())
}

/// Results that are shown where the request does not say.
const DEFAULT_RESULTS: usize = 20;

/// For each mark, at its place in the text, the document's link if the request asks for it, and the document.
fn annotations(told: &Recalled, with_links: bool) -> Vec<Value> {
    let mut all = Vec::new();
    for Mark { source, start, end } in &told.marks {
        let source = &told.sources[*source];
        if with_links {
            all.push(json!({ "type": "url_citation", "start_index": start, "end_index": end, "url": source.url, "title": source.title }));
        }
        let file = |id| json!({ "type": "file_citation", "index": start, "file_id": id, "filename": source.title });
        all.extend(source.file_id.as_ref().map(file));
    }
    all
}
