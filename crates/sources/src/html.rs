//! HTML to text: parsed as browsers do (html5ever), then walked without recursion.
//!
//! Kept: headings, lists, table rows, preformatted lines, the alternative text of images, the values of forms that the page
//! shows. Left out: scripts, styles, hidden elements, options that are not chosen, words that are struck through, how Japanese
//! words are pronounced, and the targets of links, which would make sentences unreadable.
//! Formulas that come in several forms are read once, in TeX, others as linear text ([`crate::formula`]).

use std::time::{Duration, Instant};

use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ParseOpts, ns, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

use crate::formula::Formula;
use crate::html_tree::Tree;
use crate::limit::{FILE_BYTES, HTML_ATTRIBUTES, HTML_BYTES, HTML_NODES, HTML_TIME, NESTING};
use crate::merged_cells::{Rows, Span};
use crate::numbers::Format;
use crate::prose::{Gap, Prose, Script};
use crate::source::first_heading;
use crate::{Cause, Kind, Limit, Source};

/// How many bytes are parsed between two checks of the limits. Each byte can create up to [`NESTING`] nodes.
const CHUNK_BYTES: usize = 1024;

/// The text of a page.
#[derive(Default)]
pub(crate) struct Page {
    /// The `<title>`.
    pub title: Option<String>,
    /// The body's text.
    pub text: String,
}

/// When the HTML of a file must have been parsed, all its parts together: a book has chapters, a mailbox messages.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    end: Instant,
    time: Duration,
}

impl Deadline {
    /// [`HTML_TIME`] from now.
    pub fn start() -> Self {
        Self::for_bytes(0)
    }

    /// [`HTML_TIME`] from now for each [`FILE_BYTES`] of a file.
    pub fn for_bytes(bytes: u64) -> Self {
        let time = HTML_TIME * bytes.div_ceil(FILE_BYTES).max(1) as u32;
        Deadline { end: Instant::now() + time, time }
    }

    /// Later by the length of a pause.
    pub fn after(self, pause: Duration) -> Self {
        Deadline { end: self.end + pause, ..self }
    }

    /// Refuses to continue after its end.
    pub fn check(self) -> Result<(), Limit> {
        if Instant::now() > self.end { Err(Limit::Time(self.time)) } else { Ok(()) }
    }

    #[cfg(test)]
    pub fn passed() -> Self {
        let end = Instant::now();
        while end == Instant::now() {}
        Deadline { end, time: HTML_TIME }
    }
}

/// A `.html` file.
pub(crate) fn source(path: &str, html: &str, deadline: Deadline) -> Result<Source, Cause> {
    let page = page(html, deadline)?;
    let title = page.title.or_else(|| first_heading(&page.text));
    Source::whole(path, Kind::Html, title, page.text)
}

/// The title and text of a page.
///
/// # Errors
/// [`Cause::LimitExceeded`] for too many bytes, nodes or levels, too much text or time. Invalid HTML is none: it is read as
/// browsers do.
pub(crate) fn page(html: &str, deadline: Deadline) -> Result<Page, Cause> {
    check_size(html)?;
    let tree = parse(html, deadline)?;
    Ok(Walk::default().through(&tree.document)?)
}

/// Refuses more bytes than a page may have.
pub(crate) fn check_size(html: &str) -> Result<(), Limit> {
    if html.len() as u64 > HTML_BYTES { Err(Limit::HtmlBytes(HTML_BYTES)) } else { Ok(()) }
}

fn parse(html: &str, deadline: Deadline) -> Result<RcDom, Cause> {
    // Without scripting, the contents of <noscript> are ordinary elements.
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(Tree::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
    let mut rest = html;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
        parser.process(chunk.into());
        let tree = &parser.tokenizer.sink.sink;
        if tree.nodes() > HTML_NODES {
            return Err(Limit::HtmlNodes(HTML_NODES).into());
        }
        if tree.attributes() > HTML_ATTRIBUTES {
            return Err(Limit::HtmlAttributes(HTML_ATTRIBUTES).into());
        }
        // The parser's time grows with depth times length.
        if tree.depth() > NESTING {
            return Err(Limit::Nesting(NESTING).into());
        }
        deadline.check()?;
        rest = after;
    }
    Ok(parser.finish())
}

enum Step {
    Enter(Handle),
    Leave(Handle),
}

/// The state of a walk through a page.
#[derive(Default)]
struct Walk {
    title: Option<String>,
    prose: Prose,
    /// The open lists: the number of the next item and how it is written, or `None` for bullets.
    lists: Vec<Option<(u32, Format)>>,
    /// The number of open `<pre>`.
    preformatted: usize,
    /// The number of open elements that strike their words through.
    struck: usize,
    /// How the next words are set, if a superscript or subscript starts or ends before them.
    script: Option<Script>,
    formula: Formula,
}

impl Walk {
    fn through(mut self, document: &Handle) -> Result<Page, Limit> {
        let mut steps = vec![Step::Enter(document.clone())];
        while let Some(step) = steps.pop() {
            match step {
                Step::Leave(node) if is_math(&node) => self.formula.close(&mut self.prose)?,
                Step::Leave(node) => {
                    self.struck -= usize::from(is_struck(&node));
                    self.leave(tag(&node));
                }
                Step::Enter(node) => {
                    if self.enter(&node)? {
                        let children: Vec<Step> = shown_children(&node).into_iter().map(Step::Enter).collect();
                        steps.push(Step::Leave(node));
                        steps.extend(children.into_iter().rev());
                    }
                }
            }
        }
        Ok(Page { title: self.title, text: self.prose.finish()? })
    }

    /// Writes what a node contributes before its children; returns whether its children follow.
    fn enter(&mut self, node: &Handle) -> Result<bool, Limit> {
        match &node.data {
            NodeData::Document => Ok(true),
            NodeData::Text { contents } if self.struck > 0 => {
                self.prose.leave_out(&contents.borrow());
                Ok(false)
            }
            NodeData::Text { contents } if self.formula.is_open() => {
                self.formula.token(&contents.borrow())?;
                Ok(false)
            }
            NodeData::Text { contents } => {
                self.text(&contents.borrow());
                Ok(false)
            }
            NodeData::Element { name, .. } if is_math(node) => self.open_formula(node, &name.local),
            NodeData::Element { attrs, .. } => Ok(self.open(node, &attrs.borrow())),
            _ => Ok(false),
        }
    }

    fn open_formula(&mut self, node: &Handle, name: &str) -> Result<bool, Limit> {
        if self.struck > 0 || matches!(name, "annotation" | "annotation-xml") {
            return Ok(false);
        }
        self.formula.enter(name);
        if name == "semantics"
            && let Some(tex) = tex_of(node)
        {
            self.formula.token(&tex)?;
            self.formula.close(&mut self.prose)?;
            return Ok(false);
        }
        Ok(true)
    }

    fn text(&mut self, text: &str) {
        if !text.trim().is_empty()
            && let Some(script) = self.script.take()
        {
            self.prose.mark(script, text);
        }
        if self.preformatted > 0 {
            self.prose.verbatim(text);
        } else {
            self.prose.text(text);
        }
    }

    fn open(&mut self, node: &Handle, attributes: &[Attribute]) -> bool {
        let tag = tag(node);
        let attribute = |name: &str| attributes.iter().find(|a| &*a.name.local == name).map(|a| &*a.value);
        // What screen readers pass over within a line is there in another form: a formula, a price, a picture of it.
        let is_repeated = matches!(tag, "span" | "img") && attribute("aria-hidden") == Some("true");
        // What is hidden until it is found is there to be found.
        let is_hidden = attribute("hidden").is_some_and(|until| !until.eq_ignore_ascii_case("until-found"));
        let is_omitted = attribute("style").is_some_and(|style| declares(style, &["display"], "none"));
        if is_repeated || is_hidden || is_omitted {
            return false;
        }
        self.prose.gap(self.gap_around(tag));
        match tag {
            "script" | "style" | "template" | "svg" | "iframe" | "noframes" | "rt" | "rp" | "datalist" => {
                return false;
            }
            "title" => {
                self.title = self.title.take().or_else(|| words_of(node));
                return false;
            }
            "h1" => self.prose.lead("# "),
            "h2" => self.prose.lead("## "),
            "h3" => self.prose.lead("### "),
            "h4" => self.prose.lead("#### "),
            "h5" => self.prose.lead("##### "),
            "h6" => self.prose.lead("###### "),
            "ul" => self.lists.push(None),
            "ol" => {
                let start = attribute("start").and_then(|start| start.parse().ok()).unwrap_or(1);
                self.lists.push(Some((start, format_of(attribute("type").unwrap_or_default()))));
            }
            "li" => self.item(attribute("value").and_then(|value| value.parse().ok())),
            "pre" => self.preformatted += 1,
            "sup" => self.script = Some(Script::Super),
            "sub" => self.script = Some(Script::Sub),
            "table" => self.prose.open_table(),
            "tr" => self.prose.open_row(),
            "td" | "th" => {
                let number = |name| attribute(name).and_then(|number| number.trim().parse().ok());
                self.open_cell(tag == "th", number("colspan").unwrap_or(1), number("rowspan").unwrap_or(1));
            }
            "input" if self.struck == 0 && shows_value(attribute("type").unwrap_or_default()) => {
                self.text(attribute("value").unwrap_or_default());
            }
            "img" if self.struck == 0 => self.prose.text(attribute("alt").unwrap_or_default()),
            _ => {}
        }
        self.struck += usize::from(is_struck(node));
        true
    }

    fn leave(&mut self, tag: &str) {
        match tag {
            "ul" | "ol" => drop(self.lists.pop()),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "li" => self.prose.lead(""),
            "pre" => self.preformatted -= 1,
            "sup" | "sub" => self.script = Some(Script::Line),
            "td" | "th" => self.prose.close_cell(),
            "tr" => self.prose.close_row(),
            "table" => self.prose.close_table(),
            _ => {}
        }
        self.prose.gap(self.gap_around(tag));
    }

    /// Starts a cell, which has all rows that follow if their number is 0.
    fn open_cell(&mut self, is_header: bool, columns: usize, rows: usize) {
        self.prose.open_cell();
        if let Some(span) = self.prose.span() {
            let rows = Rows::Lacking(if rows == 0 { usize::MAX } else { rows });
            *span = Span { columns, rows, is_header };
        }
    }

    /// Starts an item, with a number if it has one of its own.
    fn item(&mut self, own_number: Option<u32>) {
        let outer_lists = self.lists.len().saturating_sub(1);
        let mark = match self.lists.last_mut() {
            Some(Some((number, format))) => {
                *number = own_number.unwrap_or(*number);
                let mark = format!("{}. ", format.written(*number));
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
        self.prose.lead_item(outer_lists, &mark);
    }

    /// The gap before and after an element.
    fn gap_around(&self, tag: &str) -> Gap {
        match tag {
            "ul" | "ol" if !self.lists.is_empty() => Gap::Line,
            "address" | "article" | "aside" | "blockquote" | "details" | "dialog" | "dl" | "fieldset" | "figure"
            | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header" | "hr" | "main" | "menu"
            | "nav" | "ol" | "p" | "pre" | "section" | "table" | "ul" => Gap::Paragraph,
            "br" | "caption" | "center" | "dd" | "div" | "dt" | "figcaption" | "legend" | "li" | "optgroup"
            | "option" | "summary" | "tr" => Gap::Line,
            "input" | "select" | "textarea" => Gap::Space,
            _ => Gap::None,
        }
    }
}

/// The format of the numbers of a list, by its `type`.
fn format_of(kind: &str) -> Format {
    match kind {
        "a" => Format::Column,
        "A" => Format::UpperColumn,
        "i" => Format::Roman,
        "I" => Format::UpperRoman,
        _ => Format::Decimal,
    }
}

/// Whether an `<input>` of this type shows its value as text. Browsers take types that they do not know as text.
fn shows_value(kind: &str) -> bool {
    const OTHERS: [&str; 11] =
        ["hidden", "password", "checkbox", "radio", "file", "submit", "button", "reset", "image", "color", "range"];
    !OTHERS.iter().any(|other| kind.trim().eq_ignore_ascii_case(other))
}

/// The children of an element, or those of the option that it shows.
fn shown_children(node: &Handle) -> Vec<Handle> {
    let shown = chosen(node).unwrap_or_else(|| node.clone());
    shown.children.borrow().clone()
}

/// The option that a `<select>` shows: the last one that is selected, else the first that is not disabled. A list shows all.
fn chosen(select: &Handle) -> Option<Handle> {
    let NodeData::Element { attrs, .. } = &select.data else { return None };
    let is_list = |a: &Attribute| match &*a.name.local {
        "multiple" => true,
        "size" => a.value.trim() != "1",
        _ => false,
    };
    if tag(select) != "select" || attrs.borrow().iter().any(is_list) {
        return None;
    }
    let (mut options, mut nodes) = (Vec::new(), vec![select.clone()]);
    while let Some(node) = nodes.pop() {
        if tag(&node) == "option" {
            options.push(node);
        } else {
            nodes.extend(node.children.borrow().iter().rev().cloned());
        }
    }
    let has = |option: &Handle, name: &str| match &option.data {
        NodeData::Element { attrs, .. } => attrs.borrow().iter().any(|a| &*a.name.local == name),
        _ => false,
    };
    let selected = options.iter().rev().find(|option| has(option, "selected"));
    let first = || options.iter().find(|option| !has(option, "disabled"));
    selected.or_else(first).or(options.first()).cloned()
}

/// Whether the last declaration of these properties in an element's own style has a word.
fn declares(style: &str, properties: &[&str], word: &str) -> bool {
    let mut values = style.split(';').filter_map(|declaration| {
        let (property, value) = declaration.split_once(':')?;
        properties.iter().any(|name| property.trim().eq_ignore_ascii_case(name)).then_some(value)
    });
    let mut words = values.next_back().unwrap_or_default().split(|c: char| c == '!' || c.is_whitespace());
    words.any(|one| one.eq_ignore_ascii_case(word))
}

/// Whether an element strikes its words through, by its name or its own style.
fn is_struck(node: &Handle) -> bool {
    let NodeData::Element { attrs, .. } = &node.data else { return false };
    let attributes = attrs.borrow();
    let style = attributes.iter().find(|a| &*a.name.local == "style").map_or("", |a| &*a.value);
    matches!(tag(node), "s" | "strike" | "del")
        || declares(style, &["text-decoration", "text-decoration-line"], "line-through")
}

/// The name of an element of HTML, or of one beyond HTML that is treated here; empty for anything else.
fn tag(node: &Handle) -> &str {
    let is_treated = |name: &str| matches!(name, "svg" | "annotation");
    match &node.data {
        NodeData::Element { name, .. } if name.ns == ns!(html) || is_treated(&name.local) => &name.local,
        _ => "",
    }
}

/// Whether a node is an element of MathML.
fn is_math(node: &Handle) -> bool {
    matches!(&node.data, NodeData::Element { name, .. } if name.ns == ns!(mathml))
}

/// The formula in TeX that a MathML element has beside its own form, in which fractions and powers are but digits.
fn tex_of(semantics: &Handle) -> Option<String> {
    semantics.children.borrow().iter().find_map(|child| match &child.data {
        NodeData::Element { attrs, .. } if tag(child) == "annotation" => {
            let attributes = attrs.borrow();
            let is_tex = attributes.iter().any(|a| &*a.name.local == "encoding" && &*a.value == "application/x-tex");
            if is_tex { words_of(child) } else { None }
        }
        _ => None,
    })
}

/// The text directly inside an element, if there is any.
fn words_of(node: &Handle) -> Option<String> {
    let mut prose = Prose::default();
    for child in node.children.borrow().iter() {
        if let NodeData::Text { contents } = &child.data {
            prose.text(&contents.borrow());
        }
    }
    // A title is no longer than its page, which has fewer bytes than a text may have.
    prose.finish().ok().filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_is_stopped_at_its_time_limit() {
        assert!(matches!(parse("<p>words", Deadline::passed()), Err(Cause::LimitExceeded(Limit::Time(HTML_TIME)))));
        assert!(parse("<p>words", Deadline::start()).is_ok());
    }
}
