//! The notes that research makes.

use store::PassageId;

/// The result of research: the integrated notes and the pages that they come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Research {
    pub content: String,
    pub sources: Vec<PassageId>,
    /// Every page that was read.
    pub read: Vec<PassageId>,
}

impl Research {
    /// The notes as the integration agent sees them, with their pages.
    pub(super) fn notes(&self) -> String {
        if self.sources.is_empty() {
            return self.content.clone();
        }
        let pages: Vec<String> = self.sources.iter().map(|page| format!("({page})")).collect();
        format!("{} [pages {}]", self.content, pages.join(", "))
    }
}
