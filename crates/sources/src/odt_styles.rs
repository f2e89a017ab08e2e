//! How the styles of OpenDocument set words: as superscripts or subscripts, and whether they strike them through or hide them;
//! and whether they hide tables.

use std::collections::HashMap;

use crate::Limit;
use crate::limit::check_entries;
use crate::prose::Script;
use crate::xml::Tag;

/// How words are set; `None` as the words around them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Look {
    script: Option<Script>,
    is_left_out: Option<bool>,
}

impl Look {
    /// What the properties of a style say.
    fn of(properties: &Tag<'_>) -> Self {
        let is_struck = properties.attribute("text-line-through-style").map(|style| style != "none");
        // Of words, and of a table.
        let is_hidden = properties.attribute("display").map(|display| matches!(&*display, "none" | "false"));
        Look {
            script: properties.attribute("text-position").map(|position| script_of(&position)),
            is_left_out: is_struck.max(is_hidden),
        }
    }

    pub fn script(self) -> Script {
        self.script.unwrap_or_default()
    }

    pub fn is_left_out(self) -> bool {
        self.is_left_out.unwrap_or(false)
    }
}

/// How words are set, by the position of their style: `super 58%`, `-33% 58%`.
fn script_of(position: &str) -> Script {
    match position.split_whitespace().next() {
        Some("super") => Script::Super,
        Some("sub") => Script::Sub,
        height => Script::at(height.and_then(|height| height.trim_end_matches('%').parse().ok()).unwrap_or(0.0)),
    }
}

/// The styles of a document by their names.
#[derive(Default)]
pub(crate) struct Styles {
    /// The style that is being read.
    open: String,
    looks: HashMap<String, Look>,
}

impl Styles {
    /// Takes an element, which may define a style.
    ///
    /// # Errors
    /// [`Limit::ArchiveEntries`] for too many styles.
    pub fn take(&mut self, tag: &Tag<'_>) -> Result<(), Limit> {
        match tag.name() {
            b"style" | b"list-style" => self.open = tag.attribute("name").unwrap_or_default(),
            b"text-properties" | b"table-properties" => {
                let look = Look::of(tag);
                if look.script.is_some() || look.is_left_out.is_some() {
                    self.looks.insert(self.open.clone(), look);
                }
            }
            _ => {}
        }
        check_entries(self.looks.len())
    }

    /// How an element with a style sets its words, by how those around it are set.
    pub fn look(&self, tag: &Tag<'_>, around: Look) -> Look {
        let own = tag.attribute("style-name").and_then(|style| self.looks.get(&style).copied()).unwrap_or_default();
        Look { script: own.script.or(around.script), is_left_out: own.is_left_out.or(around.is_left_out) }
    }
}
