//! Responses that are kept: one private file each in the folder of their owner, until they are deleted, a document that
//! they may quote is deleted, or they are too old or too many. `serve --no-threads` keeps none.
#![allow(unused_qualifications, reason = "utoipa writes out the type of query parameters")]

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use axum::extract::Path;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Document, private};
use tokio::task::AbortHandle;
use utoipa::IntoParams;

use super::request::Asked;
use crate::blocking::run_blocking;
use crate::body::Params;
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::tenant::Tenant;

/// Bounds of what is kept for one owner; the oldest are deleted first.
const MAX_RESPONSES: usize = 1000;
const MAX_BYTES: u64 = 256 << 20;
const MAX_AGE: Duration = Duration::from_hours(30 * 24);

/// Maximum responses that one continues.
const MAX_CHAIN: usize = 256;

/// A response that is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    id: String,
    /// Seconds since 1970.
    created: u64,
    previous: Option<String>,
    /// The corpora that it, or a response before it, may quote.
    corpora: Vec<String>,
    /// The items of its request.
    input: Vec<Value>,
    response: Value,
}

impl Record {
    /// Without its response.
    pub fn new(asked: &Asked, previous: Option<String>, corpora: Vec<String>) -> Record {
        let (id, created) = (asked.frame.id.clone(), asked.frame.created);
        Record { id, created, previous, corpora, input: asked.input.clone(), response: Value::Null }
    }

    pub fn with_response(&self, response: Value) -> Record {
        Record { response, ..self.clone() }
    }

    /// Whether it is the end of a response that goes on in the background.
    fn ends_background(&self) -> bool {
        self.response["background"] == true && self.response["status"] != "in_progress"
    }

    /// Whether an annotation names a document.
    fn cites(&self, document: &Document) -> bool {
        let items = self.response["output"].as_array().into_iter().flatten();
        let parts = items.filter_map(|item| item["content"].as_array()).flatten();
        let mut annotations = parts.filter_map(|part| part["annotations"].as_array()).flatten();
        annotations.any(|annotation| annotation["title"] == document.path.as_str())
    }
}

/// The responses of one tenant.
pub(crate) struct Responses {
    folder: PathBuf,
    /// One change at a time.
    lock: Mutex<()>,
    /// Those that go on in the background.
    active: Mutex<HashMap<String, AbortHandle>>,
}

impl Responses {
    pub fn new(folder: PathBuf) -> Responses {
        Responses { folder, lock: Mutex::default(), active: Mutex::default() }
    }

    /// Lets the work of a response go on in the background.
    pub(super) fn start(&self, id: String, work: impl Future<Output = ()> + Send + 'static) {
        // The lock keeps short work from ending before it is known.
        let mut active = self.active();
        active.insert(id, tokio::spawn(work).abort_handle());
    }

    pub(super) fn ended(&self, id: &str) {
        self.active().remove(id);
    }

    /// Deletes the responses that may quote a corpus.
    pub(crate) fn forget_corpus(&self, corpus: &str) -> Result<()> {
        self.forget(|record| record.corpora.iter().any(|name| name == corpus))
    }

    /// Deletes the responses that may quote a document: those from its corpus that are newer or that cite it.
    pub(crate) fn forget_document(&self, corpus: &str, document: &Document) -> Result<()> {
        let added = u64::try_from(document.created_seconds).unwrap_or_default();
        self.forget(|record| {
            record.corpora.iter().any(|name| name == corpus) && (record.created >= added || record.cites(document))
        })
    }

    /// Deletes responses, with those that continue them.
    fn forget(&self, is_meant: impl Fn(&Record) -> bool) -> Result<()> {
        let _one = self.lock();
        let mut records = Vec::new();
        for (path, ..) in self.files()? {
            match read_file(&path) {
                Ok(record) if path.extension().is_some_and(|kind| kind == "json") => records.push(record),
                // What it holds is not known, or its writing was interrupted.
                _ => fs::remove_file(path)?,
            }
        }
        records.sort_by_key(|record| record.created);
        let mut gone: HashSet<String> = HashSet::new();
        for record in records {
            if is_meant(&record) || record.previous.as_ref().is_some_and(|previous| gone.contains(previous)) {
                self.remove(&record.id)?;
                gone.insert(record.id);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn active(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a response; ids that this server does not make are refused.
    fn path(&self, id: &str) -> Result<PathBuf> {
        let digits = id.strip_prefix("resp-").filter(|digits| digits.len() == 32);
        let is_made_here =
            digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
        if is_made_here { Ok(self.folder.join(format!("{id}.json"))) } else { Err(unknown(id)) }
    }

    fn read(&self, id: &str) -> Result<Record> {
        match read_file(&self.path(id)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown(id)),
            read => Ok(read?),
        }
    }

    /// Writes a response atomically, and deletes what is too old or too much.
    fn write(&self, record: &Record) -> Result<()> {
        let path = self.path(&record.id)?;
        private::folder(&self.folder)?;
        let aside = path.with_extension("new");
        private::write(&aside, json!(record).to_string())?;
        fs::rename(aside, path)?;
        let mut files = self.files()?;
        files.sort_by_key(|(_, written, _)| std::cmp::Reverse(*written));
        let mut bytes = 0;
        for (number, (path, written, length)) in files.into_iter().enumerate() {
            bytes += length;
            let is_old = written.elapsed().is_ok_and(|age| age > MAX_AGE);
            if number > 0 && (number >= MAX_RESPONSES || bytes > MAX_BYTES || is_old) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn remove(&self, id: &str) -> Result<()> {
        if let Some(work) = self.active().remove(id) {
            work.abort();
        }
        match fs::remove_file(self.path(id)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown(id)),
            removed => Ok(removed?),
        }
    }

    /// All files with the time of their last change and their length.
    fn files(&self) -> Result<Vec<(PathBuf, SystemTime, u64)>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let about = entry.metadata()?;
            files.push((entry.path(), about.modified()?, about.len()));
        }
        Ok(files)
    }

    /// A response as it is now. One that was interrupted by the end of the server has failed.
    fn shown(&self, id: &str) -> Result<Value> {
        let is_active = self.active().contains_key(id);
        let mut response = self.read(id)?.response;
        if response["status"] == "in_progress" && !is_active {
            response["status"] = "failed".into();
            response["error"] = json!({ "code": "server_error", "message": "the server was restarted" });
        }
        Ok(response)
    }

    /// Stops a response that goes on in the background.
    fn cancel(&self, id: &str) -> Result<Value> {
        let _one = self.lock();
        let mut record = self.read(id)?;
        if record.response["background"] != true {
            let message = "only a response with `background` can be cancelled";
            return Err(ServerError::invalid(message, "response_id"));
        }
        let Some(work) = self.active().remove(id) else { return self.shown(id) };
        work.abort();
        if record.response["status"] == "in_progress" {
            record.response["status"] = "cancelled".into();
            self.write(&record)?;
        }
        Ok(record.response)
    }

    /// The items of a response and of those before it, in order, and the corpora that they may quote.
    fn chain(&self, id: &str) -> Result<(Vec<Value>, Vec<String>)> {
        let missing = |error| match error {
            ServerError::NotFound(_) => {
                let message = format!("the previous response {id} is not kept, or one that it continues is not");
                ServerError::invalid(message, "previous_response_id")
            }
            error => error,
        };
        let (mut records, mut next) = (Vec::new(), Some(id.to_owned()));
        while let Some(id) = next.take() {
            if records.len() == MAX_CHAIN {
                let message = format!("at most {MAX_CHAIN} responses can be continued one after the other");
                return Err(ServerError::invalid(message, "previous_response_id"));
            }
            let record = self.read(&id).map_err(missing)?;
            next.clone_from(&record.previous);
            records.push(record);
        }
        let corpora = records.first().map(|record| record.corpora.clone()).unwrap_or_default();
        let mut items = Vec::new();
        for record in records.into_iter().rev() {
            items.extend(record.input);
            items.extend(record.response["output"].as_array().cloned().unwrap_or_default());
        }
        Ok((items, corpora))
    }
}

fn read_file(path: &std::path::Path) -> io::Result<Record> {
    let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("a response is damaged: {error}"));
    serde_json::from_slice(&fs::read(path)?).map_err(damaged)
}

fn unknown(id: &str) -> ServerError {
    ServerError::NotFound(format!("response {id}"))
}

/// Runs a task on the responses of a tenant.
async fn with<T: Send + 'static>(
    tenant: &Arc<Tenant>,
    work: impl FnOnce(&Responses) -> Result<T> + Send + 'static,
) -> Result<T> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || work(&tenant.responses)).await
}

/// Keeps a response, unless it, or a corpus that it may quote, was deleted meanwhile.
pub(super) async fn put(tenant: &Arc<Tenant>, record: Record) -> Result<()> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || {
        // A corpus that is open is not removed.
        let open: std::result::Result<Vec<_>, _> =
            record.corpora.iter().map(|name| tenant.corpora.open(name)).collect();
        let responses = &tenant.responses;
        let _one = responses.lock();
        let was_stopped = record.ends_background() && !responses.active().contains_key(&record.id);
        if was_stopped || matches!(open, Err(store::Error::UnknownCorpus { .. })) {
            return Ok(());
        }
        responses.write(&record)
    })
    .await
}

/// The items before a request that continues a response, and the corpora that they may quote.
pub(super) async fn chain(tenant: &Arc<Tenant>, id: String) -> Result<(Vec<Value>, Vec<String>)> {
    with(tenant, move |responses| responses.chain(&id)).await
}

/// Show a stored response.
#[utoipa::path(get, path = "/v1/responses/{response_id}", tag = "OpenAI", params(("response_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn retrieve(Extension(tenant): CurrentTenant, Path(id): Path<String>) -> Result<Json<Value>> {
    Ok(Json(with(&tenant, move |responses| responses.shown(&id)).await?))
}

/// Delete a stored response.
#[utoipa::path(delete, path = "/v1/responses/{response_id}", tag = "OpenAI", params(("response_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn delete(Extension(tenant): CurrentTenant, Path(id): Path<String>) -> Result<Json<Value>> {
    let deleted = json!({ "id": id, "object": "response", "deleted": true });
    with(&tenant, move |responses| {
        let _one = responses.lock();
        responses.remove(&id)
    })
    .await?;
    Ok(Json(deleted))
}

/// Stop a response that goes on in the background.
#[utoipa::path(post, path = "/v1/responses/{response_id}/cancel", tag = "OpenAI",
    params(("response_id" = String, Path)), responses((status = 200, body = Value), (status = 404),
        (status = 400, description = "The response was not made in the background")))]
pub(super) async fn cancel(Extension(tenant): CurrentTenant, Path(id): Path<String>) -> Result<Json<Value>> {
    Ok(Json(with(&tenant, move |responses| responses.cancel(&id)).await?))
}

/// A part of the list of items.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ItemsQuery {
    /// 1 to 100; 20 by default.
    limit: Option<usize>,
    /// `desc` (by default: the last item first) or `asc`.
    order: Option<String>,
    /// The id of the item before the part.
    after: Option<String>,
}

/// List the input items of a stored response.
#[utoipa::path(get, path = "/v1/responses/{response_id}/input_items", tag = "OpenAI",
    params(("response_id" = String, Path), ItemsQuery), responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn input_items(
    Extension(tenant): CurrentTenant,
    Path(id): Path<String>,
    Params(query): Params<ItemsQuery>,
) -> Result<Json<Value>> {
    let limit = query.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return Err(ServerError::invalid("`limit` must be 1 to 100", "limit"));
    }
    let ascending = match query.order.as_deref() {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(other) => return Err(ServerError::invalid(format!("`{other}` is not one of asc, desc"), "order")),
    };
    let mut items = with(&tenant, move |responses| Ok(responses.read(&id)?.input)).await?;
    if !ascending {
        items.reverse();
    }
    let start = match &query.after {
        None => 0,
        Some(after) => items.iter().position(|item| item["id"] == after.as_str()).map_or(items.len(), |at| at + 1),
    };
    let has_more = items.len() > start + limit;
    let part: Vec<Value> = items.into_iter().skip(start).take(limit).collect();
    let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
    Ok(Json(json!({ "object": "list", "first_id": id(part.first()), "last_id": id(part.last()), "has_more": has_more,
        "data": part })))
}
