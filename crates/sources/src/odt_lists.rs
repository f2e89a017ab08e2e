//! The numbers of lists and headings in OpenDocument files: the styles that define them, and how far they are (ODF 1.3, part 3,
//! 5.3 and 16.30).

use std::collections::{HashMap, HashSet};

use crate::Limit;
use crate::limit::{RECORDS, check_entries};
use crate::numbers::{Counters, Format, LEVELS, Level, Levels};
use crate::xml::Tag;

/// The mark of an item without a number.
const BULLET: &str = "- ";

/// The lists of a document, and how far their numbers are.
#[derive(Default)]
pub(crate) struct Lists {
    /// The styles of lists by their names, and the name of the one that is being defined.
    styles: HashMap<String, Levels>,
    defined: Option<String>,
    /// The style of the numbers of headings, and the styles of headings without a number.
    outline: Option<String>,
    unnumbered: HashSet<String>,
    headings: Counters,
    /// The open lists, outermost first, and the numbers of their items.
    open: Vec<List>,
    counters: Counters,
    /// The ids of the outermost open list and of the list that it continues.
    ids: [Option<String>; 2],
    /// The numbers of earlier lists, which later ones may continue.
    by_id: HashMap<String, Counters>,
    by_style: HashMap<String, Counters>,
    /// Whether lists of one style with nothing between them are one list, as in presentations, and the style of the list
    /// before, if nothing followed it.
    pub joins: bool,
    before: Option<String>,
}

struct List {
    style: Option<String>,
    /// The item that has no paragraph yet.
    item: Option<Item>,
}

struct Item {
    /// Its number, if it does not follow from the item before.
    number: Option<u32>,
}

impl Lists {
    /// Takes an element that defines a style; others are ignored.
    pub fn define(&mut self, tag: &Tag<'_>) {
        match tag.name() {
            b"list-style" => self.start_style(tag.attribute("name")),
            b"outline-style" => {
                self.outline = Some(tag.attribute("name").unwrap_or_else(|| "Outline".to_owned()));
                self.start_style(self.outline.clone());
            }
            b"list-level-style-number"
            | b"list-level-style-bullet"
            | b"list-level-style-image"
            | b"outline-level-style" => {
                let levels = self.defined.as_ref().and_then(|name| self.styles.get_mut(name));
                let place = number(tag, "level").and_then(|level| (level as usize).checked_sub(1));
                if let (Some(levels), Some(place)) = (levels, place.filter(|place| *place < LEVELS)) {
                    levels[place] = level_of(tag, place, levels);
                }
            }
            b"style" if tag.attribute("list-style-name").is_some_and(|list| list.is_empty()) => {
                self.unnumbered.extend(tag.attribute("name"));
            }
            _ => {}
        }
    }

    fn start_style(&mut self, name: Option<String>) {
        self.styles.extend(name.clone().map(|name| (name, Levels::default())));
        self.defined = name;
    }

    /// Refuses too many styles and lists.
    pub fn check(&self) -> Result<(), Limit> {
        check_entries(self.styles.len().max(self.unnumbered.len()))?;
        if self.by_id.len() > RECORDS { Err(Limit::Records(RECORDS)) } else { Ok(()) }
    }

    /// How many lists are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Starts a list.
    pub fn open(&mut self, tag: &Tag<'_>) {
        let style = tag.attribute("style-name").or_else(|| self.open.last()?.style.clone());
        if self.open.is_empty() {
            self.ids = [tag.attribute("id"), tag.attribute("continue-list")];
            let is_continued = tag.attribute("continue-numbering").is_some_and(|value| value == "true")
                || self.joins && self.before == style;
            let earlier = match (&self.ids[1], &style) {
                (Some(id), _) => self.by_id.get(id),
                (None, Some(style)) if is_continued => self.by_style.get(style),
                _ => None,
            };
            self.counters = earlier.cloned().unwrap_or_default();
        }
        self.open.push(List { style, item: None });
    }

    /// Ends a list.
    pub fn close(&mut self) {
        let Some(list) = self.open.pop() else { return };
        if !self.open.is_empty() {
            return;
        }
        for id in self.ids.iter_mut().filter_map(Option::take) {
            self.by_id.insert(id, self.counters.clone());
        }
        if let Some(style) = list.style.clone().filter(|style| self.styles.contains_key(style)) {
            self.by_style.insert(style, self.counters.clone());
        }
        self.before = list.style;
    }

    /// Starts an item; its number is counted with its first paragraph.
    pub fn open_item(&mut self, tag: &Tag<'_>) {
        if let Some(list) = self.open.last_mut() {
            list.item = Some(Item { number: number(tag, "start-value") });
        }
    }

    /// Starts paragraphs of a list that are no item, or ends an item.
    pub fn close_item(&mut self) {
        if let Some(list) = self.open.last_mut() {
            list.item = None;
        }
    }

    /// Ends a part of a page, after which lists start anew.
    pub fn end_part(&mut self) {
        self.before = None;
    }

    /// The mark of the item whose first paragraph starts: its number, or `- `; `None` for other paragraphs.
    pub fn paragraph(&mut self) -> Option<String> {
        let depth = self.open.len();
        let Some(list) = self.open.last_mut() else {
            self.before = None;
            return None;
        };
        let Item { number } = list.item.take()?;
        let levels = list.style.as_ref().and_then(|style| self.styles.get(style));
        let level = (depth - 1).min(LEVELS - 1);
        let mark = levels.and_then(|levels| self.counters.next(&levels.each_ref(), level, number));
        Some(mark.unwrap_or_else(|| BULLET.to_owned()))
    }

    /// The number of a heading of a level from 1, with a space: that of all headings, else that of the list it is in.
    pub fn heading(&mut self, tag: &Tag<'_>, level: usize) -> Option<String> {
        let item = self.paragraph().filter(|mark| mark != BULLET);
        let is_unnumbered = tag.attribute("is-list-header").is_some_and(|value| value == "true")
            || tag.attribute("style-name").is_some_and(|style| self.unnumbered.contains(&style));
        let levels = self.outline.as_ref().and_then(|style| self.styles.get(style)).filter(|_| !is_unnumbered);
        let place = level.clamp(1, LEVELS) - 1;
        let number_of = |levels: &Levels| {
            let restarts = tag.attribute("restart-numbering").is_some_and(|value| value == "true");
            restarts.then(|| number(tag, "start-value").unwrap_or(levels[place].start))
        };
        levels.and_then(|levels| self.headings.next(&levels.each_ref(), place, number_of(levels))).or(item)
    }
}

/// A level with those above it, which are defined before it.
fn level_of(tag: &Tag<'_>, place: usize, above: &Levels) -> Level {
    let text = |name: &str| tag.attribute(name).unwrap_or_default();
    // Without it the letters after `z` are `aa`, `ab`.
    let repeats = text("num-letter-sync") == "true";
    let format = match &*text("num-format") {
        "" => Format::Unnumbered,
        "a" if repeats => Format::Letter,
        "A" if repeats => Format::UpperLetter,
        "a" => Format::Column,
        "A" => Format::UpperColumn,
        "i" => Format::Roman,
        "I" => Format::UpperRoman,
        format if format.starts_with("01") => Format::DecimalZero,
        _ => Format::Decimal,
    };
    let shown = number(tag, "display-levels").unwrap_or(1).max(1) as usize;
    let numbers = (0..=place).skip((place + 1).saturating_sub(shown));
    let numbered = numbers.filter(|level| *level == place || above[*level].format != Format::Unnumbered);
    let numbers: Vec<String> = numbered.map(|level| format!("%{}", (level + 1) % LEVELS)).collect();
    let mut level = Level { start: number(tag, "start-value").unwrap_or(1), format, ..Level::default() };
    level.set_text(format!("{}{}{}", text("num-prefix"), numbers.join("."), text("num-suffix")));
    level
}

fn number(tag: &Tag<'_>, attribute: &str) -> Option<u32> {
    tag.attribute(attribute)?.parse().ok()
}
