//! The numbers of lists and headings in Word documents (ECMA-376, 17.9): the part that defines them, and how far they are.

use std::collections::HashMap;

use crate::limit::check_entries;
use crate::numbers::{Counters, Format, LEVELS, Level, Levels, levels_with};
use crate::xml::{self, Tag};
use crate::{Cause, Kind};

/// The lists of a document, and how far their numbers are.
#[derive(Default)]
pub(crate) struct Numbering {
    /// Lists by their ids.
    lists: HashMap<u32, List>,
    /// The definitions that lists share.
    definitions: HashMap<u32, Definition>,
}

#[derive(Default)]
struct Definition {
    levels: Levels,
    counters: Counters,
}

struct List {
    /// The id of its definition.
    definition: u32,
    /// The levels that the list defines itself.
    levels: [Option<Level>; LEVELS],
    /// The numbers with which its levels start.
    starts: [Option<u32>; LEVELS],
    /// Whether a level was used.
    is_used: [bool; LEVELS],
}

/// What is being defined.
#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    Definition(u32),
    List(u32),
}

impl Numbering {
    /// Reads the part that defines lists.
    ///
    /// # Errors
    /// [`Cause::Damaged`], [`Cause::LimitExceeded`].
    pub fn read(xml: &str) -> Result<Self, Cause> {
        let mut numbering = Numbering::default();
        let (mut place, mut level) = (Place::Nowhere, 0);
        // Definitions that are those of a style of lists, and the definition of each style.
        let (mut linked, mut styles) = (HashMap::new(), HashMap::new());
        xml::each_tag(xml, Kind::Docx, |tag| {
            match (tag.name(), place) {
                (b"abstractNum", _) => {
                    place = number(tag, "abstractNumId").map_or(Place::Nowhere, Place::Definition);
                    if let Place::Definition(id) = place {
                        numbering.definitions.insert(id, Definition::default());
                    }
                }
                (b"num", _) => place = number(tag, "numId").map_or(Place::Nowhere, Place::List),
                (b"abstractNumId", Place::List(id)) => {
                    if let Some(definition) = number(tag, "val") {
                        numbering.lists.insert(id, List::of(definition));
                    }
                }
                (b"numStyleLink", Place::Definition(id)) => {
                    linked.insert(id, tag.attribute("val"));
                }
                (b"styleLink", Place::Definition(id)) => {
                    styles.insert(tag.attribute("val"), id);
                }
                (b"lvl" | b"lvlOverride", _) => {
                    level = number(tag, "ilvl").unwrap_or(0) as usize;
                    if tag.name() == b"lvl"
                        && let Place::List(id) = place
                        && let Some(own) = numbering.lists.get_mut(&id).and_then(|list| list.levels.get_mut(level))
                    {
                        *own = Some(Level::default());
                    }
                }
                (b"startOverride", Place::List(id)) => {
                    let list = numbering.lists.get_mut(&id);
                    if let Some(start) = list.and_then(|list| list.starts.get_mut(level)) {
                        *start = number(tag, "val");
                    }
                }
                _ => {
                    if let Some(level) = numbering.level(place, level) {
                        set(level, tag);
                    }
                }
            }
            check_entries(numbering.lists.len().max(numbering.definitions.len()).max(styles.len()))?;
            Ok(true)
        })?;
        for list in numbering.lists.values_mut() {
            if let Some(definition) = linked.get(&list.definition).and_then(|style| styles.get(style)) {
                list.definition = *definition;
            }
        }
        Ok(numbering)
    }

    /// A level of the definition or the list that is being defined.
    fn level(&mut self, place: Place, level: usize) -> Option<&mut Level> {
        match place {
            Place::Nowhere => None,
            Place::Definition(id) => self.definitions.get_mut(&id)?.levels.get_mut(level),
            Place::List(id) => self.lists.get_mut(&id)?.levels.get_mut(level)?.as_mut(),
        }
    }

    /// The mark of the next paragraph of a list at a level from 0, with a space; `None` for bullets and for a list that is
    /// not defined.
    pub fn mark(&mut self, list: u32, level: usize) -> Option<String> {
        let list = self.lists.get_mut(&list)?;
        let Definition { levels, counters } = self.definitions.get_mut(&list.definition)?;
        let level = level.min(LEVELS - 1);
        // A list with starts of its own begins with them, and again after each paragraph of a level above.
        let starts_anew = !list.is_used[level] || counters.is_first(level);
        list.is_used[level] = true;
        let start = list.starts[level].filter(|_| starts_anew);
        counters.next(&levels_with(levels, &list.levels), level, start)
    }
}

impl List {
    fn of(definition: u32) -> Self {
        List { definition, levels: Default::default(), starts: [None; LEVELS], is_used: [false; LEVELS] }
    }
}

/// Sets what an element says about a level.
fn set(level: &mut Level, tag: &Tag<'_>) {
    let value = || tag.attribute("val").unwrap_or_default();
    match tag.name() {
        b"start" => level.start = number(tag, "val").unwrap_or(0),
        b"numFmt" => level.format = format_of(&value()),
        b"lvlText" => level.set_text(value()),
        b"lvlRestart" => level.restart = number(tag, "val").map(|level| level as usize),
        b"isLgl" => level.is_legal = true,
        _ => {}
    }
}

/// The format of a name. Others, such as those of other scripts, count as decimal.
fn format_of(name: &str) -> Format {
    match name {
        "bullet" | "none" => Format::Unnumbered,
        "decimalZero" => Format::DecimalZero,
        "lowerLetter" => Format::Letter,
        "upperLetter" => Format::UpperLetter,
        "lowerRoman" => Format::Roman,
        "upperRoman" => Format::UpperRoman,
        _ => Format::Decimal,
    }
}

fn number(tag: &Tag<'_>, attribute: &str) -> Option<u32> {
    tag.attribute(attribute)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A numbering of definitions, each with the format and the text of its levels, and of lists with other elements.
    fn numbering(definitions: &[&[(&str, &str)]], lists: &[(usize, &str)]) -> Numbering {
        let mut xml = "<numbering>".to_owned();
        for (id, levels) in definitions.iter().enumerate() {
            xml.extend([format!("<abstractNum abstractNumId='{id}'>")]);
            for (level, (format, text)) in levels.iter().enumerate() {
                xml.extend([format!(
                    "<lvl ilvl='{level}'><start val='1'/><numFmt val='{format}'/><lvlText val='{text}'/></lvl>"
                )]);
            }
            xml.push_str("</abstractNum>");
        }
        for (id, (definition, other)) in lists.iter().enumerate() {
            xml.extend([format!("<num numId='{}'><abstractNumId val='{definition}'/>{other}</num>", id + 1)]);
        }
        Numbering::read(&(xml + "</numbering>")).expect("it is valid")
    }

    /// The marks of paragraphs, each with its list and level.
    fn check(numbering: &mut Numbering, paragraphs: &[(u32, usize)], expect: &str) {
        let marks = paragraphs.iter().map(|(list, level)| numbering.mark(*list, *level));
        assert_eq!(marks.map(|mark| mark.unwrap_or_else(|| "- ".to_owned())).collect::<String>(), expect);
    }

    #[test]
    fn levels_count_within_those_above_them() {
        let levels = [("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "(%3)")];
        let mut numbers = numbering(&[&levels, &[("bullet", "•")]], &[(0, ""), (1, "")]);
        let paragraphs = [(1, 0), (1, 1), (1, 1), (1, 2), (2, 0), (1, 2), (1, 0), (1, 1), (9, 0)];
        check(&mut numbers, &paragraphs, "1. 1.1 1.2 (a) - (b) 2. 2.1 - ");
        // A level above that has no paragraph counts with its start.
        let mut numbers = numbering(&[&levels], &[(0, "")]);
        check(&mut numbers, &[(1, 1), (1, 1)], "1.1 1.2 ");
    }

    #[test]
    fn lists_of_one_definition_continue_unless_they_start_anew() {
        let again = "<lvlOverride ilvl='0'><startOverride val='1'/></lvlOverride>";
        let mut numbers = numbering(&[&[("decimal", "%1)")]], &[(0, ""), (0, ""), (0, again)]);
        check(&mut numbers, &[(1, 0), (2, 0), (3, 0), (3, 0), (1, 0)], "1) 2) 1) 2) 3) ");
    }

    #[test]
    fn a_list_may_define_levels_itself_or_be_that_of_a_style() {
        let own = "<lvlOverride ilvl='0'><startOverride val='5'/><lvl ilvl='0'><start val='1'/><numFmt val='upperLetter'/>\
            <lvlText val='%1:'/></lvl></lvlOverride>";
        let mut numbers = numbering(&[&[("decimal", "%1)")]], &[(0, ""), (0, own)]);
        check(&mut numbers, &[(1, 0), (2, 0), (2, 0), (1, 0)], "1) E: F: 7) ");
        let linked = "<numbering><abstractNum abstractNumId='0'><numStyleLink val='s'/></abstractNum><abstractNum \
            abstractNumId='1'><styleLink val='s'/><lvl ilvl='0'><start val='1'/><lvlText val='%1.'/></lvl></abstractNum>\
            <num numId='1'><abstractNumId val='0'/></num></numbering>";
        check(&mut Numbering::read(linked).expect("it is valid"), &[(1, 0), (1, 0)], "1. 2. ");
    }

    #[test]
    fn a_start_of_a_list_counts_again_after_a_level_above() {
        let start = "<lvlOverride ilvl='1'><startOverride val='3'/></lvlOverride>";
        let mut numbers = numbering(&[&[("decimal", "%1."), ("decimal", "%1.%2")]], &[(0, start)]);
        check(&mut numbers, &[(1, 0), (1, 1), (1, 1), (1, 0), (1, 1)], "1. 1.3 1.4 2. 2.3 ");
    }

    #[test]
    fn a_level_may_count_on_after_levels_above() {
        let xml = "<numbering><abstractNum abstractNumId='0'><lvl ilvl='0'><start val='1'/><lvlText val='%1.'/></lvl><lvl \
            ilvl='1'><start val='1'/><lvlRestart val='0'/><lvlText val='(%2)'/></lvl></abstractNum><num numId='1'>\
            <abstractNumId val='0'/></num></numbering>";
        let mut numbers = Numbering::read(xml).expect("it is valid");
        check(&mut numbers, &[(1, 0), (1, 1), (1, 0), (1, 1)], "1. (1) 2. (2) ");
    }

    #[test]
    fn numbers_are_written_in_the_formats_of_their_levels() {
        let written = |format: &str, number, expect: &str| assert_eq!(format_of(format).written(number), expect);
        written("lowerLetter", 28, "bb");
        written("lowerRoman", 4, "iv");
        written("decimalZero", 7, "07");
        written("thaiNumbers", 7, "7");
        let (levels, long) = ([("upperRoman", "Article %1"), ("decimal", "%1.%2 %x %")], "x".repeat(65));
        let mut numbers = numbering(&[&levels, &[("decimal", long.as_str())]], &[(0, ""), (1, "")]);
        check(&mut numbers, &[(1, 0), (1, 1), (2, 0)], "Article I I.1 %x % - ");
        let legal = "<numbering><abstractNum abstractNumId='0'><lvl ilvl='0'><start val='3'/><numFmt val='upperRoman'/>\
            <isLgl/><lvlText val='%1'/></lvl></abstractNum><num numId='1'><abstractNumId val='0'/></num></numbering>";
        assert_eq!(Numbering::read(legal).expect("it is valid").mark(1, 0).as_deref(), Some("3 "));
    }
}
