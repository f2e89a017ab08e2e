//! What a method says of itself: its documentation and the paper that it implements.

use std::fmt;

/// A description of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The paper; none for a baseline.
    pub paper: Option<Paper>,
    /// The source of the method's module, whose documentation describes it.
    pub(crate) module: &'static str,
}

/// A paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    pub title: &'static str,
    pub authors: &'static str,
    /// Its arXiv number, if it has one.
    pub arxiv: Option<&'static str>,
}

impl About {
    /// What the method does and where it departs from its paper.
    pub fn documentation(&self) -> String {
        let lines = self.module.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }

    /// The first sentence of that.
    pub fn summary(&self) -> String {
        let documentation = self.documentation();
        let paragraph: Vec<&str> = documentation.lines().take_while(|line| !line.is_empty()).collect();
        let paragraph = paragraph.join(" ");
        paragraph.split_once(". ").map_or(paragraph.as_str(), |(sentence, _)| sentence).trim_end_matches('.').to_owned()
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.authors, self.title)?;
        self.arxiv.map_or(Ok(()), |arxiv| write!(f, ". arXiv:{arxiv}"))
    }
}
