//! HTML to text: parsed as browsers do (html5ever), then walked without recursion.
//!
//! Kept: headings, lists, table rows, preformatted lines, the alternative text of images. Left out: scripts, styles,
//! hidden elements, how Japanese words are pronounced, and the targets of links, which would make sentences unreadable.
//! Formulas that come in several forms are read once, in TeX.

use std::time::Instant;

use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ParseOpts, ns, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

use crate::html_tree::Tree;
use crate::limit::{HTML_ATTRIBUTES, HTML_BYTES, HTML_NODES, HTML_TIME, NESTING};
use crate::prose::{Gap, Prose};
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
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// [`HTML_TIME`] from now.
    pub fn start() -> Self {
        Deadline(Instant::now() + HTML_TIME)
    }

    #[cfg(test)]
    pub fn passed() -> Self {
        let now = Instant::now();
        while now == Instant::now() {}
        Deadline(now)
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
        if Instant::now() > deadline.0 {
            return Err(Limit::Time(HTML_TIME).into());
        }
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
    /// The open lists: the number of the next item, or `None` for bullets.
    lists: Vec<Option<usize>>,
    /// The number of open `<pre>`.
    preformatted: usize,
    /// Whether the next words are the first of a superscript.
    is_raised: bool,
}

impl Walk {
    fn through(mut self, document: &Handle) -> Result<Page, Limit> {
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
        Ok(Page { title: self.title, text: self.prose.finish()? })
    }

    /// Writes what a node contributes before its children; returns whether its children follow.
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
        if self.is_raised && !text.trim().is_empty() {
            self.is_raised = false;
            self.prose.raise(text);
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
        if is_repeated || attribute("hidden").is_some() {
            return false;
        }
        self.prose.gap(self.gap_around(tag));
        match tag {
            "script" | "style" | "template" | "svg" | "iframe" | "noframes" | "rt" | "rp" | "annotation"
            | "annotation-xml" => return false,
            "semantics" => {
                if let Some(tex) = tex_of(node) {
                    self.prose.text(&tex);
                    return false;
                }
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
            "ol" => self.lists.push(Some(attribute("start").and_then(|start| start.parse().ok()).unwrap_or(1))),
            "li" => self.item(attribute("value").and_then(|value| value.parse().ok())),
            "pre" => self.preformatted += 1,
            "sup" => self.is_raised = true,
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
            "sup" => self.is_raised = false,
            "td" | "th" => self.prose.close_cell(),
            "tr" => self.prose.close_row(),
            _ => {}
        }
        self.prose.gap(self.gap_around(tag));
    }

    /// Starts an item, with a number if it has one of its own.
    fn item(&mut self, own_number: Option<usize>) {
        let outer_lists = self.lists.len().saturating_sub(1);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = own_number.unwrap_or(*number);
                let mark = format!("{number}. ");
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
            _ => Gap::None,
        }
    }
}

/// The name of an element of HTML, or of one beyond HTML that is treated here; empty for anything else.
fn tag(node: &Handle) -> &str {
    let is_treated = |name: &str| matches!(name, "svg" | "semantics" | "annotation" | "annotation-xml");
    match &node.data {
        NodeData::Element { name, .. } if name.ns == ns!(html) || is_treated(&name.local) => &name.local,
        _ => "",
    }
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
