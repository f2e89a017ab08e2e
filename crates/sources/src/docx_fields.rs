//! The values of the fields of Word's older forms, which are not in the text (ECMA-376, 17.16.7 and 17.16.9): whether a box is
//! checked, and which entry of a list is chosen.

use std::mem;

use crate::office::is_on;
use crate::prose::{Gap, Prose};
use crate::xml::{Node, Tag};

/// The field that is being read, if any.
#[derive(Default)]
pub(crate) enum FormField {
    #[default]
    Nothing,
    Box {
        /// Whether it is checked in an empty form, and now.
        default: bool,
        checked: Option<bool>,
    },
    List {
        entries: Vec<String>,
        /// The place of the entry of an empty form, and of the one that is chosen.
        default: usize,
        chosen: Option<usize>,
    },
}

impl FormField {
    /// Takes a node; at the end of a field writes its value.
    pub fn take(&mut self, node: &Node<'_>, prose: &mut Prose) {
        match node {
            Node::Open(tag) => self.open(tag),
            Node::Close(b"checkBox" | b"ddList") => {
                let value = match mem::take(self) {
                    FormField::Box { default, checked } => {
                        String::from(if checked.unwrap_or(default) { "☒" } else { "☐" })
                    }
                    FormField::List { mut entries, default, chosen } => {
                        let place = chosen.unwrap_or(default);
                        if place < entries.len() { entries.swap_remove(place) } else { String::new() }
                    }
                    FormField::Nothing => return,
                };
                prose.text(&value);
                prose.gap(Gap::Space);
            }
            Node::Close(_) | Node::Text(_) => {}
        }
    }

    fn open(&mut self, tag: &Tag<'_>) {
        /// Word's limit.
        const MAX_ENTRIES: usize = 25;
        let value = || tag.attribute("val");
        let place = || value().and_then(|place| place.parse().ok());
        match (tag.name(), self) {
            (b"checkBox", field) => *field = FormField::Box { default: false, checked: None },
            (b"ddList", field) => *field = FormField::List { entries: Vec::new(), default: 0, chosen: None },
            (b"default", FormField::Box { default, .. }) => *default = is_on(tag),
            (b"checked", FormField::Box { checked, .. }) => *checked = Some(is_on(tag)),
            (b"default", FormField::List { default, .. }) => *default = place().unwrap_or(0),
            (b"result", FormField::List { chosen, .. }) => *chosen = place(),
            (b"listEntry", FormField::List { entries, .. }) if entries.len() < MAX_ENTRIES => entries.extend(value()),
            _ => {}
        }
    }
}
