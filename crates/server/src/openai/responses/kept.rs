//! The responses and conversations of a holder on disk.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::super::records::{self, Records};
use super::conversation::Conversation;
use crate::error::{Result, ServerError};
use crate::lost::Gone;

/// Maximum responses that one continues.
const MAX_CHAIN: usize = 256;

/// A response that is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// Not before its output was made; files of earlier versions do not say.
    #[serde(default)]
    pub answered: Option<u64>,
    pub previous: Option<String>,
    /// The corpora that it, or a response before it, may quote.
    pub corpora: Vec<String>,
    /// The items of its request.
    pub input: Vec<Value>,
    pub response: Value,
}

impl records::Record for Record {
    const PREFIX: &'static str = "resp";
    const NOUN: &'static str = "response";

    fn id(&self) -> &str {
        &self.id
    }
}

impl Record {
    pub fn with_response(&self, response: Value) -> Record {
        Record { response, ..self.clone() }
    }

    /// Whether it is the end of a response in the background.
    pub(super) fn ends_background(&self) -> bool {
        self.response["background"] == true && self.response["status"] != "in_progress"
    }

    /// Whether it may quote a document that is gone: it is newer, or cites it.
    fn could_know(&self, gone: &Gone) -> bool {
        let output = self.response["output"].as_array().into_iter().flatten();
        self.answered.is_none_or(|answered| answered >= gone.since)
            || self.input.iter().chain(output).any(|item| cites(item, gone))
    }
}

/// Whether an annotation or a result of a search in an item names a document.
pub(crate) fn cites(item: &Value, gone: &Gone) -> bool {
    let results = item["results"].as_array().into_iter().flatten();
    let parts = item["content"].as_array().into_iter().flatten();
    let annotations = parts.filter_map(|part| part["annotations"].as_array()).flatten();
    let path = gone.path.as_str();
    results.chain(annotations).any(|named| named["title"] == path || named["filename"] == path)
}

/// The responses of one tenant.
pub(crate) struct Responses {
    pub(super) records: Records<Record>,
    /// Those in the background.
    active: Mutex<HashMap<String, AbortHandle>>,
    pub(super) conversations: Records<Conversation>,
    /// The ids of conversations that are continued now.
    held: Mutex<HashSet<String>>,
}

/// A conversation while a response or a client adds to it. Others may not, so that what is added knows all items before it.
pub(super) struct Held {
    pub id: String,
    responses: Arc<Responses>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.responses.held().remove(&self.id);
    }
}

impl Responses {
    /// Those below the folder of a holder.
    pub fn new(folder: &Path) -> Responses {
        Responses {
            records: Records::new(folder.join("responses")),
            active: Mutex::default(),
            conversations: Records::new(folder.join("conversations")),
            held: Mutex::default(),
        }
    }

    /// Holds a conversation.
    ///
    /// # Errors
    /// [`ServerError::ConversationLocked`] while it is held.
    pub(super) fn hold(self: &Arc<Self>, id: String) -> Result<Held> {
        if !self.held().insert(id.clone()) {
            return Err(ServerError::ConversationLocked(id));
        }
        Ok(Held { id, responses: Arc::clone(self) })
    }

    fn held(&self) -> MutexGuard<'_, HashSet<String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues the work of a response in the background.
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
        self.forget_conversations(|conversation| conversation.corpora.iter().any(|name| name == corpus))?;
        self.forget(|record| record.corpora.iter().any(|name| name == corpus))
    }

    /// Deletes the responses and conversations that may quote documents of a corpus that are gone: newer ones, and those that
    /// cite them.
    pub(crate) fn forget_documents(&self, corpus: &str, gone: &[Gone]) -> Result<()> {
        let is_of = |corpora: &[String]| corpora.iter().any(|name| name == corpus);
        self.forget_conversations(|Conversation { corpora, updated, items, .. }| {
            let could_know = |gone: &Gone| *updated >= gone.since || items.iter().any(|item| cites(item, gone));
            is_of(corpora) && gone.iter().any(could_know)
        })?;
        self.forget(|record| is_of(&record.corpora) && gone.iter().any(|gone| record.could_know(gone)))
    }

    fn forget_conversations(&self, is_meant: impl Fn(&Conversation) -> bool) -> Result<()> {
        if !self.conversations.folder().exists() {
            return Ok(());
        }
        let _one = self.conversations.lock()?;
        let all = self.conversations.all_or_removed()?;
        all.iter().filter(|one| is_meant(one)).try_for_each(|one| self.conversations.remove(records::Record::id(one)))
    }

    /// Deletes responses, with those that continue them.
    fn forget(&self, is_meant: impl Fn(&Record) -> bool) -> Result<()> {
        if !self.records.folder().exists() {
            return Ok(());
        }
        let _one = self.records.lock()?;
        let mut records = self.records.all_or_removed()?;
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

    pub(super) fn active(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a response atomically, and deletes what is too old or too much.
    pub(super) fn write(&self, record: &Record) -> Result<()> {
        self.records.write(record)?;
        self.records.trim()
    }

    pub(super) fn remove(&self, id: &str) -> Result<()> {
        if let Some(work) = self.active().remove(id) {
            work.abort();
        }
        self.records.remove(id)
    }

    /// A response as it is now. One that was interrupted by the end of the server has failed.
    pub(super) fn shown(&self, id: &str) -> Result<Value> {
        let is_active = self.active().contains_key(id);
        let mut response = self.records.read(id)?.response;
        if response["status"] == "in_progress" && !is_active {
            response["status"] = "failed".into();
            response["error"] = json!({ "code": "server_error", "message": "the server was restarted" });
        }
        Ok(response)
    }

    /// Stops a response in the background.
    pub(super) fn cancel(&self, id: &str) -> Result<Value> {
        let _one = self.records.lock()?;
        let mut record = self.records.read(id)?;
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

    /// The items of these ids in the latest responses that have them, and the corpora that those responses may quote.
    pub(super) fn items(&self, ids: &HashSet<String>) -> Result<(HashMap<String, Value>, Vec<String>)> {
        let (mut found, mut quoted) = (HashMap::new(), Vec::new());
        for Record { input, response, corpora, .. } in self.records.latest_first()? {
            let before = found.len();
            for item in input.iter().chain(response["output"].as_array().into_iter().flatten()) {
                if let Some(id) = item["id"].as_str().filter(|id| ids.contains(*id)) {
                    found.entry(id.to_owned()).or_insert_with(|| item.clone());
                }
            }
            if found.len() > before {
                quoted.extend(corpora);
            }
            if found.len() == ids.len() {
                break;
            }
        }
        Ok((found, quoted))
    }

    /// The items of a response and of those before it, in order, and the corpora that they may quote.
    pub(super) fn chain(&self, id: &str) -> Result<(Vec<Value>, Vec<String>)> {
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
            let record = self.records.read(&id).map_err(missing)?;
            if self.shown(&id)?["status"] == "in_progress" {
                let message = format!("the previous response {id} is in progress: wait until it is completed");
                return Err(ServerError::invalid(message, "previous_response_id"));
            }
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
