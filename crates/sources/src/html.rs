//! HTML to text: parsed as browsers do (html5ever), then walked without recursion.
//!
//! Kept: headings, lists, table rows, preformatted lines, the alternative text of images. Left out: scripts, styles,
//! hidden elements, and the targets of links, which would drown the sentences they stand in.

use std::time::{Duration, Instant};

use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ParseOpts, ns, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

use crate::prose::{Gap, Prose};
use crate::source::first_heading;
use crate::{Cause, Kind, Source};

/// A page of HTML is held as a tree of many times its size.
const MAX_HTML_BYTES: usize = 32 << 20;
/// The depth at which browsers stop nesting too; the parser's time grows with depth times length.
const MAX_NESTING: usize = 512;
/// Some kinds of broken page take the parser time that grows with the square of their length.
const PARSE_LIMIT: Duration = Duration::from_mins(1);
/// How often depth and time are looked at while parsing.
const CHUNK_BYTES: usize = 4096;

/// What a page says.
#[derive(Default)]
pub(crate) struct Page {
    /// The `<title>`.
    pub title: Option<String>,
    /// The body's text.
    pub text: String,
}

/// A `.html` file.
pub(crate) fn source(path: &str, html: &str) -> Result<Source, Cause> {
    let page = page(html)?;
    let title = page.title.or_else(|| first_heading(&page.text));
    Source::whole(path, Kind::Html, title, page.text)
}

/// The title and text of a page.
///
/// # Errors
/// [`Cause::TooLarge`] for a page too long or too deeply nested, [`Cause::TimedOut`] for one that keeps the parser
/// busy too long; everything else is some page, as in a browser.
pub(crate) fn page(html: &str) -> Result<Page, Cause> {
    if html.len() > MAX_HTML_BYTES {
        return Err(Cause::TooLarge { limit: MAX_HTML_BYTES as u64, what: "bytes of HTML" });
    }
    let tree = parse(html, PARSE_LIMIT)?;
    Ok(Walk::default().through(&tree.document))
}

fn parse(html: &str, limit: Duration) -> Result<RcDom, Cause> {
    let start = Instant::now();
    // Without scripting, the contents of <noscript> are ordinary elements.
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(RcDom::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
    let mut rest = html;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
        parser.process(chunk.into());
        if open_elements(&parser.tokenizer.sink.sink.document) > MAX_NESTING {
            return Err(Cause::TooLarge { limit: MAX_NESTING as u64, what: "nested HTML elements" });
        }
        if start.elapsed() > limit {
            return Err(Cause::TimedOut { limit });
        }
        rest = after;
    }
    Ok(parser.finish())
}

/// How deep the parser stands: the elements still open are the last children, all the way down.
fn open_elements(document: &Handle) -> usize {
    let mut depth = 0;
    let mut node = document.clone();
    loop {
        let Some(last) = node.children.borrow().last().cloned() else { return depth };
        node = last;
        depth += 1;
    }
}

enum Step {
    Enter(Handle),
    Leave(Handle),
}

/// Where the walk through a page stands.
#[derive(Default)]
struct Walk {
    title: Option<String>,
    prose: Prose,
    /// The lists that are open: the number of the next item, or `None` for bullets.
    lists: Vec<Option<usize>>,
    /// How many `<pre>` are open.
    preformatted: usize,
}

impl Walk {
    fn through(mut self, document: &Handle) -> Page {
        let mut steps = vec![Step::Enter(document.clone())];
        while let Some(step) = steps.pop() {
            match step {
                Step::Leave(node) => self.leave(tag(&node)),
                Step::Enter(node) => {
                    if self.enter(&node) {
                        let children: Vec<Step> = node.children.borrow().iter().cloned().map(Step::Enter).collect();
                        steps.push(Step::Leave(node));
                        steps.extend(children.into_iter().rev());
                    }
                }
            }
        }
        Page { title: self.title, text: self.prose.finish() }
    }

    /// Writes what a node says before its children; whether to go on to them.
    fn enter(&mut self, node: &Handle) -> bool {
        match &node.data {
            NodeData::Document => true,
            NodeData::Text { contents } => {
                self.text(&contents.borrow());
                false
            }
            NodeData::Element { attrs, .. } => self.open(node, &attrs.borrow()),
            _ => false,
        }
    }

    fn text(&mut self, text: &str) {
        if self.preformatted > 0 {
            self.prose.verbatim(text);
        } else {
            self.prose.text(text);
        }
    }

    fn open(&mut self, node: &Handle, attributes: &[Attribute]) -> bool {
        let tag = tag(node);
        let attribute = |name: &str| attributes.iter().find(|a| &*a.name.local == name).map(|a| &*a.value);
        if attribute("hidden").is_some() {
            return false;
        }
        self.prose.gap(self.gap_around(tag));
        match tag {
            "script" | "style" | "template" | "svg" | "iframe" | "noframes" => return false,
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
            "ol" => self.lists.push(Some(attribute("start").and_then(|start| start.parse().ok()).unwrap_or(1))),
            "li" => self.item(),
            "pre" => self.preformatted += 1,
            "tr" => self.prose.open_row(),
            "td" | "th" => self.prose.open_cell(),
            "img" => self.prose.text(attribute("alt").unwrap_or_default()),
            _ => {}
        }
        true
    }

    fn leave(&mut self, tag: &str) {
        match tag {
            "ul" | "ol" => drop(self.lists.pop()),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "li" => self.prose.lead(""),
            "pre" => self.preformatted -= 1,
            "td" | "th" => self.prose.close_cell(),
            "tr" => self.prose.close_row(),
            _ => {}
        }
        self.prose.gap(self.gap_around(tag));
    }

    fn item(&mut self) {
        let indent = "  ".repeat(self.lists.len().saturating_sub(1));
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{indent}{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => format!("{indent}- "),
        };
        self.prose.lead(&mark);
    }

    /// The gap that an element keeps from what stands before and after it.
    fn gap_around(&self, tag: &str) -> Gap {
        match tag {
            "ul" | "ol" if !self.lists.is_empty() => Gap::Line,
            "address" | "article" | "aside" | "blockquote" | "details" | "dialog" | "dl" | "fieldset" | "figure"
            | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header" | "hr" | "main" | "menu"
            | "nav" | "ol" | "p" | "pre" | "section" | "table" | "ul" => Gap::Paragraph,
            "br" | "caption" | "center" | "dd" | "div" | "dt" | "figcaption" | "legend" | "li" | "optgroup"
            | "option" | "summary" | "tr" => Gap::Line,
            _ => Gap::None,
        }
    }
}

/// The name of an HTML element; empty for anything else.
fn tag(node: &Handle) -> &str {
    match &node.data {
        NodeData::Element { name, .. } if name.ns == ns!(html) || &*name.local == "svg" => &name.local,
        _ => "",
    }
}

/// The text directly inside an element, if there are words in it.
fn words_of(node: &Handle) -> Option<String> {
    let mut prose = Prose::default();
    for child in node.children.borrow().iter() {
        if let NodeData::Text { contents } = &child.data {
            prose.text(&contents.borrow());
        }
    }
    Some(prose.finish()).filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_is_stopped_at_its_limit() {
        let stopped = parse("<p>words", Duration::ZERO);
        assert!(matches!(stopped, Err(Cause::TimedOut { .. })));
        assert!(parse("<p>words", PARSE_LIMIT).is_ok());
    }
}
