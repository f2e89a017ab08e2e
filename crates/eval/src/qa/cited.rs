//! Citations of answers with names that a reader knows: the title of the document, the page and the section.

use std::fmt;

use memory::Citation;
use serde::{Deserialize, Serialize};
use store::{Corpus, PassageId};

use super::case::Case;
use crate::Result;

/// A citation, and where it is in the case. Results of earlier versions have the citation alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cited {
    #[serde(flatten)]
    pub citation: Citation,
    /// The title of the document, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The number of the page in its document, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_number: Option<u32>,
    /// The name of the page in its document, such as a heading, a session or a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
}

impl Cited {
    /// Looks up the place of a citation of an answer about a case. Its label becomes the section.
    ///
    /// # Errors
    /// Those of the corpus. A page that is not in it has no number.
    pub(super) fn of(mut citation: Citation, case: &Case, corpus: &Corpus) -> Result<Cited> {
        let page = match corpus.passage(PassageId(citation.page)) {
            Ok(page) => Some(page),
            Err(store::Error::UnknownPassage(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let source = case.sources.iter().find(|source| source.path == citation.path);
        Ok(Cited {
            title: source.and_then(|source| source.title.clone()),
            page_number: page.as_ref().map(|page| page.ordinal + 1),
            section: citation.label.take(),
            citation,
        })
    }

    /// The citation alone, as results of earlier versions have it.
    #[must_use]
    pub(super) fn without_place(self) -> Cited {
        Cited { title: None, page_number: None, section: None, ..self }
    }

    /// The citation without words of the document: neither quote nor title nor section.
    #[must_use]
    pub(super) fn without_texts(self) -> Cited {
        let citation = Citation { quote: String::new(), ..self.citation };
        Cited { citation, title: None, section: None, ..self }
    }
}

impl fmt::Display for Cited {
    /// Document, page and section; then the characters, in one line without the quote.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cited { citation: Citation { path, start, end, .. }, title, page_number, section } = self;
        write!(f, "{path}")?;
        if let Some(title) = title.as_ref().filter(|title| *title != path) {
            write!(f, " ({title})")?;
        }
        if let Some(number) = page_number {
            write!(f, ", page {number}")?;
        }
        // A document without sections is its own section.
        if let Some(section) = section.as_ref().filter(|section| *section != path && Some(*section) != title.as_ref()) {
            write!(f, ", {section}")?;
        }
        write!(f, ", characters {start} to {end}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_names_document_page_and_section() {
        let citation = Citation { path: "c1".into(), page: 71, label: None, start: 3, end: 9, quote: "a sea".into() };
        let bare = Cited { citation, title: None, page_number: None, section: None };
        assert_eq!(bare.to_string(), "c1, characters 3 to 9");
        let named = |title: &str| Cited {
            title: Some(title.into()),
            page_number: Some(2),
            section: Some("D1:3".into()),
            ..bare.clone()
        };
        assert_eq!(named("The Sea").to_string(), "c1 (The Sea), page 2, D1:3, characters 3 to 9");
        assert_eq!(named("c1").to_string(), "c1, page 2, D1:3, characters 3 to 9");
        assert_eq!(named("D1:3").to_string(), "c1 (D1:3), page 2, characters 3 to 9");
        assert_eq!(named("The Sea").without_place(), bare);
    }

    #[test]
    fn results_of_earlier_versions_are_read() {
        let earlier = r#"{"path":"c1","page":71,"start":3,"end":9,"quote":"a sea"}"#;
        let cited: Cited = serde_json::from_str(earlier).unwrap();
        assert_eq!((cited.citation.page, cited.page_number, &cited.title, &cited.section), (71, None, &None, &None));
        assert_eq!(serde_json::to_string(&cited).unwrap(), earlier);
    }
}
