//! What the tools do.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::DocId;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::Mcp;
use crate::blocking::run_blocking;
use crate::corpora::{
    AskRequest, CancelOnDrop, DocumentPart, Job, SearchRequest, TextUpload, answer, check_text, create_corpus,
    document_paths, ingest_text, list_corpora, list_documents, read_document, remove_document, search_pages,
    start_preparation,
};
use crate::error::{Result, ServerError};
use crate::json::in_words_of_json;
use crate::tenant::Tenant;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListDocuments {
    corpus: String,
    limit: Option<usize>,
    after: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remember {
    corpus: String,
    name: String,
    text: String,
    method: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prepare {
    corpus: String,
    method: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfJob {
    job: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forget {
    corpus: String,
    document: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    corpus: String,
    query: String,
    tool: Option<String>,
    k: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    corpus: String,
    question: String,
    method: Option<String>,
    profile: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadSource {
    corpus: String,
    document: i64,
    start: Option<usize>,
    end: Option<usize>,
}

/// Default number of documents that `list_documents` returns at once.
const DOCUMENTS_AT_ONCE: usize = 100;

/// Default number of characters that `read_source` returns at once.
const CHARS_AT_ONCE: usize = 20_000;

impl Mcp {
    /// Runs a tool; `None` if there is none of this name.
    pub(super) async fn run(
        &self,
        tool: &str,
        tenant: &Arc<Tenant>,
        arguments: Value,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<Value>> {
        Some(match tool {
            "list_corpora" => list_corpora(tenant).await.map(|corpora| json!({ "corpora": corpora })),
            "list_documents" => documents(tenant, arguments).await,
            "remember" => self.remember(tenant, arguments, context).await,
            "prepare" => self.prepare(tenant, arguments, context).await,
            "job" => read(arguments).and_then(|OfJob { job }| Ok(tenant.jobs.get(&job)?.to_json())),
            "forget" => forget(tenant, arguments).await,
            "search" => self.search(tenant, arguments).await,
            "ask" => self.ask(tenant, arguments, context).await,
            "read_source" => read_source(tenant, arguments).await,
            _ => return None,
        })
    }

    async fn remember(
        &self,
        tenant: &Arc<Tenant>,
        arguments: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value> {
        let Remember { corpus, name, text, method } = read(arguments)?;
        let text = TextUpload { name, text, method };
        check_text(&text)?;
        let (app, owner, new) = (Arc::clone(&self.app), Arc::clone(tenant), corpus.clone());
        run_blocking(move || {
            let made = match owner.open(&new) {
                Err(ServerError::Store(store::Error::UnknownCorpus { .. })) => create_corpus(&app, &owner, &new, None),
                opened => opened.map(drop),
            };
            match made {
                // Another request creates or changes it.
                Err(ServerError::Store(store::Error::CorpusExists { .. } | store::Error::CorpusBusy { .. })) => Ok(()),
                made => made,
            }
        })
        .await?;
        let job = ingest_text(&self.app, tenant, corpus, text).await?;
        Ok(self.awaited(&job, context).await)
    }

    async fn prepare(
        &self,
        tenant: &Arc<Tenant>,
        arguments: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value> {
        let Prepare { corpus, method } = read(arguments)?;
        let job = start_preparation(&self.app, tenant, corpus, method.as_deref()).await?;
        Ok(self.awaited(&job, context).await)
    }

    /// Waits for a job as long as a question waits for its preparation, with progress notifications; then the job
    /// continues by itself. If the call is cancelled meanwhile, so is the job.
    async fn awaited(&self, job: &Job, context: &RequestContext<RoleServer>) -> Value {
        let mut waiting = CancelOnDrop(Some(job));
        let bound = self.app.config.preparation.min(self.app.config.deadline / 2);
        let ended = timeout(bound, job.follow(report_to(context))).await;
        waiting.0 = None;
        let mut shown = job.to_json();
        if ended.is_err() {
            shown["note"] = format!("the job continues; the tool `job` shows it by its id {}", job.id()).into();
        }
        shown
    }

    async fn search(&self, tenant: &Arc<Tenant>, arguments: Value) -> Result<Value> {
        let Search { corpus, query, tool, k } = read(arguments)?;
        let _permit = self.app.admission.acquire(tenant.id)?;
        let hits = search_pages(&self.app, tenant, corpus, SearchRequest { query, tool, k }).await?;
        Ok(json!({ "hits": hits }))
    }

    async fn ask(&self, tenant: &Arc<Tenant>, arguments: Value, context: &RequestContext<RoleServer>) -> Result<Value> {
        let Ask { corpus, question, method, profile } = read(arguments)?;
        let _permit = self.app.admission.acquire(tenant.id)?;
        let request = AskRequest { question, method, profile, ..AskRequest::default() };
        let mut answered = answer(&self.app, tenant, corpus.clone(), request, None, report_to(context)).await?;
        // A document that was deleted meanwhile has no id, nor have those of a corpus that is being written.
        let paths = document_paths(tenant, corpus).await.unwrap_or_default();
        let name = |citation: &mut Value| {
            let id = paths.iter().find(|(_, path)| citation["path"] == path.as_str()).map(|(id, _)| *id);
            citation["document"] = json!(id);
        };
        let list = |value: &mut Value| value.as_array_mut().map(std::mem::take).unwrap_or_default();
        let (mut citations, mut statements) = (list(&mut answered["citations"]), list(&mut answered["statements"]));
        citations.iter_mut().for_each(name);
        statements.iter_mut().map(|statement| &mut statement["citation"]).filter(|it| it.is_object()).for_each(name);
        (answered["citations"], answered["statements"]) = (citations.into(), statements.into());
        Ok(answered)
    }
}

/// Sends progress notifications to a client that asked for them.
fn report_to(context: &RequestContext<RoleServer>) -> impl Fn(&Value) + use<> {
    let progress = context.meta.get_progress_token().map(|token| notifier(token, context.peer.clone()));
    move |event: &Value| {
        if let Some(progress) = &progress {
            // The connection may have ended.
            let _ = progress.send(event.clone());
        }
    }
}

/// Sends progress notifications, in the order in which the events come; ends with its sender.
fn notifier(token: ProgressToken, peer: Peer<RoleServer>) -> UnboundedSender<Value> {
    let (sender, mut events) = unbounded_channel::<Value>();
    tokio::spawn(async move {
        let mut number = 0.0;
        while let Some(event) = events.recv().await {
            number += 1.0;
            let message = match (event["step"].as_str(), &event["done"], &event["of"]) {
                (Some(step), done, of) => format!("{step}: {done} of {of}"),
                (None, ..) => "waiting for the preparation of the corpus".to_owned(),
            };
            let progress = ProgressNotificationParam::new(token.clone(), number).with_message(message);
            if peer.notify_progress(progress).await.is_err() {
                return;
            }
        }
    });
    sender
}

/// A part of the documents; `next` is the id after which the rest begins, or null.
async fn documents(tenant: &Arc<Tenant>, arguments: Value) -> Result<Value> {
    let ListDocuments { corpus, limit, after } = read(arguments)?;
    let part = DocumentPart { limit: Some(limit.unwrap_or(DOCUMENTS_AT_ONCE)), after };
    let (documents, has_more) = list_documents(tenant, corpus, part).await?;
    let next = documents.last().filter(|_| has_more).map(|last| last["id"].clone());
    Ok(json!({ "documents": documents, "next": next }))
}

async fn forget(tenant: &Arc<Tenant>, arguments: Value) -> Result<Value> {
    let Forget { corpus, document } = read(arguments)?;
    remove_document(tenant, corpus.clone(), DocId(document)).await?;
    Ok(json!({ "corpus": corpus, "document": document, "forgotten": true }))
}

/// A range of a document; the response reports how much text there is in total.
async fn read_source(tenant: &Arc<Tenant>, arguments: Value) -> Result<Value> {
    let ReadSource { corpus, document, start, end } = read(arguments)?;
    let mut shown = read_document(tenant, corpus, DocId(document)).await?;
    let text = shown["text"].as_str().unwrap_or_default();
    let chars = text.chars().count();
    let start = start.unwrap_or(0).min(chars);
    let end = end.unwrap_or(start.saturating_add(CHARS_AT_ONCE)).clamp(start, chars);
    let stretch: String = text.chars().skip(start).take(end - start).collect();
    shown["text"] = stretch.into();
    shown["start"] = start.into();
    shown["end"] = end.into();
    shown["characters"] = chars.into();
    Ok(shown)
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T> {
    serde_json::from_value(arguments).map_err(|error| {
        let why = in_words_of_json(&error.to_string());
        ServerError::refused(format!("the arguments cannot be used: {why}"))
    })
}
