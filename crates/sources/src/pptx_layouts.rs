//! The styles that the placeholders of a slide inherit (ECMA-376, 19.3.1.36): those of the placeholder in the layout of the slide,
//! then of the one in the master of the layout, then of the texts of the master.

use std::collections::HashMap;
use std::rc::Rc;

use crate::archive::Archive;
use crate::limit::check_entries;
use crate::office::Relations;
use crate::pptx_marks::{Mark, Style, level_of};
use crate::xml::{self, Node, Tag};
use crate::{Cause, Kind, Limit};

/// Which of the master's texts a placeholder belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Title,
    /// The text of a slide, its subtitle, and anything else that is in the place of text.
    Body,
}

/// A placeholder, by which those of a slide, its layout and its master find one another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Placeholder {
    pub role: Role,
    index: u32,
}

impl Placeholder {
    /// The placeholder of a `ph`; `None` for numbers, dates and footers of slides.
    pub fn of(tag: &Tag<'_>) -> Option<Self> {
        let role = match tag.attribute("type").as_deref() {
            Some("sldNum" | "dt" | "ftr" | "hdr" | "sldImg") => return None,
            Some("title" | "ctrTitle") => Role::Title,
            _ => Role::Body,
        };
        let index = tag.attribute("idx").and_then(|index| index.parse().ok()).unwrap_or(0);
        Some(Placeholder { role, index })
    }
}

/// The styles of a layout and its master.
#[derive(Default)]
pub(crate) struct Layout {
    texts: Texts,
    placeholders: HashMap<Placeholder, Style>,
}

/// The styles of a master for placeholders that the layout does not define.
#[derive(Clone, Copy, Default)]
struct Texts {
    title: Style,
    body: Style,
}

impl Texts {
    fn get(&self, role: Role) -> &Style {
        match role {
            Role::Title => &self.title,
            Role::Body => &self.body,
        }
    }
}

impl Layout {
    /// What a placeholder of a slide inherits.
    pub fn style(&self, placeholder: Placeholder) -> Style {
        *self.placeholders.get(&placeholder).unwrap_or_else(|| self.texts.get(placeholder.role))
    }
}

/// The layouts and masters of a presentation that its slides so far have used, by the names of their parts.
#[derive(Default)]
pub(crate) struct Layouts {
    read: HashMap<String, Rc<Layout>>,
    masters: HashMap<String, Texts>,
    /// The number of placeholders of all layouts.
    placeholders: usize,
}

impl Layouts {
    /// The layout of a slide with these relations; an empty one if it has none.
    ///
    /// # Errors
    /// [`Cause::Damaged`], [`Limit::ArchiveEntries`].
    pub fn of(&mut self, archive: &mut Archive<'_>, slide: &Relations) -> Result<Rc<Layout>, Cause> {
        let name = slide.by_kind("/slideLayout").unwrap_or_default();
        if let Some(layout) = self.read.get(name) {
            return Ok(Rc::clone(layout));
        }
        let layout = Rc::new(self.read(archive, name)?);
        self.read.insert(name.to_owned(), Rc::clone(&layout));
        Ok(layout)
    }

    fn read(&mut self, archive: &mut Archive<'_>, name: &str) -> Result<Layout, Cause> {
        let Some(xml) = archive.text_if_any(name)? else { return Ok(Layout::default()) };
        let relations = Relations::of(archive, name)?;
        let texts = match relations.by_kind("/slideMaster") {
            Some(master) => self.master(archive, master)?,
            None => Texts::default(),
        };
        let mut placeholders = HashMap::new();
        let earlier = self.placeholders;
        let read = each_style(&xml, |owner, style| {
            if let Owner::Placeholder(placeholder) = owner {
                placeholders.entry(placeholder).or_insert_with(|| style.or(texts.get(placeholder.role)));
            }
            check_entries(earlier + placeholders.len())
        });
        read.map_err(|cause| cause.in_part(name))?;
        self.placeholders += placeholders.len();
        Ok(Layout { texts, placeholders })
    }

    /// The styles of a master: those of its placeholders, then those of its texts.
    fn master(&mut self, archive: &mut Archive<'_>, name: &str) -> Result<Texts, Cause> {
        if let Some(texts) = self.masters.get(name) {
            return Ok(*texts);
        }
        let xml = archive.text_if_any(name)?.unwrap_or_default();
        let (mut own, mut texts) = ([None, None], Texts::default());
        let read = each_style(&xml, |owner, style| {
            match owner {
                Owner::Placeholder(Placeholder { role, .. }) => {
                    own[role as usize].get_or_insert(style);
                }
                Owner::Texts(Role::Title) => texts.title = style,
                Owner::Texts(Role::Body) => texts.body = style,
            }
            Ok(())
        });
        read.map_err(|cause| cause.in_part(name))?;
        let [title, body] = own.map(Option::unwrap_or_default);
        let texts = Texts { title: title.or(&texts.title), body: body.or(&texts.body) };
        self.masters.insert(name.to_owned(), texts);
        Ok(texts)
    }
}

/// What a style belongs to.
#[derive(Clone, Copy)]
enum Owner {
    Placeholder(Placeholder),
    /// All texts of a role in a master.
    Texts(Role),
}

/// Calls `each` with the styles of the placeholders of a layout or a master and with those of its texts.
fn each_style(xml: &str, mut each: impl FnMut(Owner, Style) -> Result<(), Limit>) -> Result<(), Cause> {
    let (mut owner, mut style, mut level) = (None, Style::default(), None);
    xml::walk(xml, Kind::Pptx, |node| {
        match node {
            Node::Open(tag) => match tag.name() {
                b"Fallback" => return Ok(false),
                b"sp" => (owner, style) = (None, Style::default()),
                b"ph" => owner = Placeholder::of(tag).map(Owner::Placeholder),
                b"titleStyle" => (owner, style) = (Some(Owner::Texts(Role::Title)), Style::default()),
                b"bodyStyle" => (owner, style) = (Some(Owner::Texts(Role::Body)), Style::default()),
                name => match (level_of(name), level, Mark::of(tag)) {
                    (Some(own), ..) => level = Some(own),
                    (None, Some(level), Some(mark)) => style.set(level, mark),
                    _ => {}
                },
            },
            Node::Close(b"sp" | b"titleStyle" | b"bodyStyle") => {
                if let Some(owner) = owner.take() {
                    each(owner, style)?;
                }
            }
            Node::Close(name) if level_of(name).is_some() => level = None,
            Node::Close(_) | Node::Text(_) => {}
        }
        Ok(true)
    })
}
