//! How an answer is printed: its text, the statements that the documents do not support, and the citations of the others.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use launch::eprintln;
use launch::output::{counted, print, printable};
use launch::shown;
use memory::{Answer, Citation, Statement, Support};
use store::{Corpus, Document, Passage, PassageId};

/// The name of each cited page in its document, by the id of the page in the corpus.
type Pages = HashMap<i64, String>;

/// Prints a piece of the answer as it is generated.
pub fn print_piece(text: &str) {
    // Whether the whole answer can be written is checked at its end.
    drop(print(text));
}

/// Prints what follows the streamed answer. Calls run concurrently, so the elapsed time is less than the sum of their
/// seconds.
pub fn print_rest(answer: &Answer, corpus: &Corpus, took: Duration) -> Result<()> {
    print(rest(answer, &pages(answer, corpus)?))?;
    let usage = &answer.usage;
    eprintln!(
        "\n{}, {} ({} cached), {} written, {:.1} s",
        counted(usage.calls, "call"),
        counted(usage.prompt_tokens, "prompt token"),
        usage.cached_tokens,
        usage.output_tokens,
        took.as_secs_f64()
    );
    Ok(())
}

/// Pages that were replaced since they were cited have no name.
fn pages(answer: &Answer, corpus: &Corpus) -> Result<Pages> {
    let of_statements = answer.statements.iter().filter_map(|statement| statement.citation.as_ref());
    let mut pages = Pages::new();
    for citation in of_statements.chain(&answer.citations) {
        match corpus.passage(PassageId(citation.page)) {
            Ok(page) => {
                pages.insert(citation.page, page_name(&page, &corpus.document(page.document)?));
            }
            Err(store::Error::UnknownPassage(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(pages)
}

/// The name that the source gives to a page, such as `page 3` of a PDF or `slide 2`; else its number in the corpus, from 1.
pub fn page_name(page: &Passage, document: &Document) -> String {
    let named = page.meta.label.as_ref().filter(|label| **label != document.title);
    named.map_or_else(|| format!("page {}", page.ordinal + 1), printable)
}

fn rest(answer: &Answer, pages: &Pages) -> String {
    let mut rest = String::from("\n");
    if let Some(short) = &answer.short
        && (*short != answer.answer || answer.probability.is_some())
    {
        let likely = answer.probability.map(|right| format!(" ({:.0} % likely to be right)", right * 100.0));
        let _ = writeln!(rest, "\nshort answer: {short}{}", likely.unwrap_or_default());
    }
    rest.push_str(&judged(&answer.statements, &answer.citations, pages));
    if let Some(confidence) = answer.confidence {
        let nodes = if answer.cited_nodes.is_empty() { "none".to_owned() } else { answer.cited_nodes.join(", ") };
        let _ = writeln!(rest, "\nconfidence: {confidence}\nnodes: {nodes}");
    }
    if let Some(note) = &answer.note {
        let _ = writeln!(rest, "\nnote: {note}");
    }
    rest
}

/// What the documents do not support, and what supports the rest.
fn judged(statements: &[Statement], citations: &[Citation], pages: &Pages) -> String {
    let mut rest = String::new();
    for Statement { text, verdict, citation, .. } in statements {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match (verdict, citation) {
            (Support::Supported, _) => {}
            (Support::Contradicted, Some(citation)) => {
                let _ = writeln!(rest, "\nCONTRADICTED by the documents: {text}");
                quote("the documents say", citation, pages, &mut rest);
            }
            (Support::Quoted, Some(citation)) => {
                rest.push('\n');
                quote("NOT CONFIRMED AS THE ANSWER, words of", citation, pages, &mut rest);
            }
            _ => drop(writeln!(rest, "\nNOT SUPPORTED by the documents: {text}")),
        }
    }
    for (number, citation) in (1..).zip(citations) {
        rest.push('\n');
        quote(&format!("[{number}]"), citation, pages, &mut rest);
    }
    rest
}

fn quote(title: &str, citation: &Citation, pages: &Pages, out: &mut String) {
    let Citation { path, page, start, end, quote, .. } = citation;
    let page = pages.get(page).map_or_else(String::new, |name| format!(", {name}"));
    let _ = writeln!(out, "{title} {}{page}, characters {start} to {end}", shown(path));
    for line in quote.lines() {
        let _ = writeln!(out, "    {line}");
    }
}

#[cfg(test)]
mod tests {
    use memory::{Citation, Statement, Support};
    use store::{Digest, DocId, Document, Layer, Meta, Passage, PassageId, Span};

    use super::{judged, page_name};

    fn citation(quote: &str) -> Citation {
        Citation { path: "a.txt".into(), page: 7, label: None, start: 0, end: 4, quote: quote.into() }
    }

    fn statement(text: &str, verdict: Support, citation: Option<Citation>) -> Statement {
        Statement { text: text.into(), start: 0, end: 4, verdict, citation }
    }

    #[test]
    fn a_page_has_the_name_that_its_source_gives_it() {
        let digest = Digest::of(&[]);
        let (kind, title) = ("pdf".to_owned(), "The Wall".to_owned());
        let document = Document { id: DocId(1), path: "wall.pdf".into(), kind, title, digest, created_seconds: 0 };
        let named = |label: Option<&str>| {
            let span = Span { start_char: 0, end_char: 4, start_byte: 0, end_byte: 4 };
            let meta = Meta { label: label.map(str::to_owned), ..Meta::default() };
            let (id, layer) = (PassageId(7), Layer::Page);
            page_name(&Passage { id, document: DocId(1), layer, ordinal: 2, span, tokens: 4, meta }, &document)
        };
        assert_eq!(named(Some("page 12")), "page 12");
        assert_eq!([named(None), named(Some("The Wall"))], ["page 3", "page 3"], "a title is no name of a page");
    }

    #[test]
    fn what_is_not_supported_is_marked_and_has_no_number() {
        let statements = [
            statement("Jim sold a pizza.", Support::Unsupported, None),
            statement("Della got $30.", Support::Contradicted, Some(citation("She got $20."))),
            statement("Jim slept.", Support::Quoted, Some(citation("Jim slept."))),
            statement("Jim was poor.", Support::Supported, Some(citation("Jim had no money."))),
        ];
        let want = "\nNOT SUPPORTED by the documents: Jim sold a pizza.\n\nCONTRADICTED by the documents: Della got $30.\n\
                    the documents say a.txt, page 1, characters 0 to 4\n    She got $20.\n\n\
                    NOT CONFIRMED AS THE ANSWER, words of a.txt, page 1, characters 0 to 4\n    Jim slept.\n\n\
                    [1] a.txt, page 1, characters 0 to 4\n    Jim had no money.\n";
        let citations = [citation("Jim had no money.")];
        assert_eq!(judged(&statements, &citations, &[(7, "page 1".into())].into()), want);
        let replaced = "\n[1] a.txt, characters 0 to 4\n    Jim had no money.\n";
        assert_eq!(judged(&[], &citations, &[(8, "page 1".into())].into()), replaced);
    }
}
