//! Responses of a corpus: an answer from memory, its steps as a reasoning summary, its citations as annotations.

use std::sync::Arc;

use calls::Piece;
use serde_json::{Value, json};

use super::output::usage;
use super::{Generation, lock};
use crate::app::App;
use crate::error::Result;
use crate::recall::{Mark, Question, Recalled, recall};
use crate::tenant::Tenant;

impl Generation {
    /// The finished response to a question.
    pub(super) async fn of_corpus(&self, question: &Question, app: &App, tenant: &Arc<Tenant>) -> Result<Value> {
        let output = Arc::clone(&self.output);
        let on_step = move |line: &str| lock(&output).piece(Piece::Thought(&format!("{line}\n")));
        let told = recall(app, tenant, question.clone(), on_step).await?;
        let usage = usage(told.usage, 0);
        {
            let mut output = lock(&self.output);
            output.piece(Piece::Text(&told.text, &[]));
            output.annotate(annotations(&told));
        }
        Ok(self.finished(true, usage))
    }
}

/// For each mark, at its place in the text, the document's link and the document.
fn annotations(told: &Recalled) -> Vec<Value> {
    let mut all = Vec::new();
    for Mark { source, start, end } in &told.marks {
        let source = &told.sources[*source];
        all.push(json!({ "type": "url_citation", "start_index": start, "end_index": end, "url": source.url, "title": source.title }));
        let file = |id| json!({ "type": "file_citation", "index": start, "file_id": id, "filename": source.title });
        all.extend(source.file_id.as_ref().map(file));
    }
    all
}
