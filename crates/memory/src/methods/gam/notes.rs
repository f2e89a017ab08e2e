//! The notes that research makes.

use store::PassageId;

/// The result of research: the integrated notes and the pages that they come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Research {
    pub content: String,
    /// The pages that the notes rest on; none if there are no notes.
    pub sources: Vec<PassageId>,
    /// Every page that was read.
    pub read: Vec<PassageId>,
}
