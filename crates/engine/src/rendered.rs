//! Rendered prompts, and a memory of the last ones: a prompt that is counted before it is submitted is rendered once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use calls::{Prompt, TenantId};

use crate::segments::Segments;

/// A rendered and tokenised prompt.
pub(crate) struct Rendered {
    pub text: String,
    pub tokens: Vec<u32>,
    pub segments: Segments,
}

/// Number of rendered prompts that are remembered: calls that were counted and are not submitted yet.
const MAX_REMEMBERED: usize = 16;

/// The prompts that were rendered last, for each tenant apart: the time that a prompt takes must not reveal that another
/// tenant has sent it.
#[derive(Default)]
pub(crate) struct RenderedPrompts(Mutex<VecDeque<Entry>>);

struct Entry {
    tenant: TenantId,
    prompt: Prompt,
    thinks: bool,
    rendered: Arc<Rendered>,
}

impl RenderedPrompts {
    /// The prompt of a tenant as it was rendered, if it was one of the last.
    pub fn find(&self, tenant: TenantId, prompt: &Prompt, thinks: bool) -> Option<Arc<Rendered>> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |entry: &&Entry| (entry.tenant, entry.thinks, &entry.prompt) == (tenant, thinks, prompt);
        entries.iter().find(same).map(|entry| Arc::clone(&entry.rendered))
    }

    /// Remembers a prompt.
    pub fn keep(&self, tenant: TenantId, prompt: Prompt, thinks: bool, rendered: Arc<Rendered>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MAX_REMEMBERED {
            entries.pop_front();
        }
        entries.push_back(Entry { tenant, prompt, thinks, rendered });
    }
}

#[cfg(test)]
mod tests {
    use calls::Stability;

    use super::*;

    #[test]
    fn a_prompt_is_remembered_for_its_tenant_until_others_follow() {
        let (prompts, mine, other) = (RenderedPrompts::default(), TenantId::LOCAL, TenantId::new(7));
        let prompt = |text: &str| Prompt::new().user(Stability::Volatile, text);
        let keep = |text: &str| {
            let rendered = Rendered { text: text.to_owned(), tokens: vec![1], segments: Segments::default() };
            prompts.keep(mine, prompt(text), false, Arc::new(rendered));
        };
        let text = |tenant, text: &str, thinks| {
            prompts.find(tenant, &prompt(text), thinks).map(|rendered| rendered.text.clone())
        };
        keep("a");
        assert_eq!(text(mine, "a", false).as_deref(), Some("a"));
        assert_eq!([text(other, "a", false), text(mine, "a", true), text(mine, "b", false)], [None, None, None]);
        (0..MAX_REMEMBERED).for_each(|number| keep(&number.to_string()));
        assert_eq!(text(mine, "a", false), None, "only the last are kept");
    }
}
