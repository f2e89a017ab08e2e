//! A conversation: items that responses continue and add to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::records::Record;
use crate::error::{Result, ServerError};
use crate::fresh::since_1970;

/// A conversation of a holder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Conversation {
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// When its last item was added.
    pub updated: u64,
    pub metadata: BTreeMap<String, String>,
    /// The corpora that its items may quote.
    pub corpora: Vec<String>,
    /// Each with an id.
    pub items: Vec<Value>,
}

impl Record for Conversation {
    const PREFIX: &'static str = "conv";
    const NOUN: &'static str = "conversation";

    fn id(&self) -> &str {
        &self.id
    }
}

/// Maximum items.
const MAX_ITEMS: usize = 4096;
/// Maximum bytes of the items as JSON.
const MAX_BYTES: usize = 32 << 20;

impl Conversation {
    pub fn to_json(&self) -> Value {
        json!({ "id": self.id, "object": "conversation", "created_at": self.created, "metadata": self.metadata })
    }

    /// Refuses to add more items than there is room for, before they are made.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] with both numbers.
    pub fn check_room(&self, new: usize) -> Result<()> {
        let items = self.items.len() + new;
        if items <= MAX_ITEMS {
            return Ok(());
        }
        let reason = format!("a conversation has at most {MAX_ITEMS} items, and this one would have {items}");
        Err(ServerError::invalid(reason, "conversation"))
    }

    /// Adds items.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] if it is full; nothing must be written then.
    pub fn extend(&mut self, items: Vec<Value>) -> Result<()> {
        self.items.extend(items);
        self.updated = since_1970().as_secs();
        self.check_room(0)?;
        let bytes: usize = self.items.iter().map(|item| item.to_string().len()).sum();
        if bytes > MAX_BYTES {
            let reason =
                format!("a conversation has at most {} MiB, and this one would have {bytes} bytes", MAX_BYTES >> 20);
            return Err(ServerError::invalid(reason, "conversation"));
        }
        Ok(())
    }
}
