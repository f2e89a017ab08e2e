//! An answer as text with marks (`[1]`), its sources as footnotes, and where the marks are, for structured annotations.

use std::fmt::Write;

use calls::{Finish, Reply, Usage};
use memory::{Citation, Statement, Support};
use serde::Deserialize;
use store::DocId;

use super::Address;

/// What an answer consists of (`memory::Answer` and what the server adds).
#[derive(Debug, Deserialize)]
pub(super) struct Answered {
    answer: String,
    short: Option<String>,
    statements: Vec<Statement>,
    citations: Vec<Citation>,
    note: Option<String>,
    understood: Option<String>,
    usage: Usage,
}

/// An answer as a chat model gives it.
#[derive(Debug)]
pub(crate) struct Recalled {
    /// With marks, and with footnotes unless they are switched off.
    pub text: String,
    pub marks: Vec<Mark>,
    /// In the order of their numbers, which begin with 1.
    pub sources: Vec<Source>,
    /// What was done, a line each.
    pub steps: Vec<String>,
    pub finish: Finish,
    pub usage: Usage,
}

/// A span of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The name of the document.
    pub title: String,
    /// The id of an uploaded file, or `CORPUS/ID`; none if it was deleted meanwhile.
    pub file_id: Option<String>,
    /// First character in the document, and the one after the last.
    pub start: u32,
    pub end: u32,
    pub quote: String,
    /// The page, at this span.
    pub url: String,
}

/// The mark of a source in the text, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Index of the source.
    pub source: usize,
    pub start: usize,
    pub end: usize,
}

/// Separates the text from its footnotes.
const FOOT: &str = "\n\n---\n";

impl Recalled {
    /// The reply of a model, without sources.
    pub fn plain(reply: Reply) -> Recalled {
        let (marks, sources, steps) = (Vec::new(), Vec::new(), Vec::new());
        Recalled { text: reply.text, marks, sources, steps, finish: reply.finish, usage: reply.usage }
    }

    /// Numbers the sources by their first use and marks the statements that they support or contradict.
    pub(super) fn new(
        answered: Answered,
        mut steps: Vec<String>,
        documents: &[(DocId, String)],
        corpus: &str,
        address: &Address,
        footnotes: bool,
    ) -> Recalled {
        let Answered { answer, short, statements, citations, note, understood, usage } = answered;
        steps.extend(understood.map(|question| format!("Understood as: {question}")));
        let mut numbered: Vec<&Citation> = Vec::new();
        for citation in statements.iter().filter_map(|statement| statement.citation.as_ref()).chain(&citations) {
            if !numbered.contains(&citation) {
                numbered.push(citation);
            }
        }
        let index_of = |citation: &Citation| numbered.iter().position(|one| *one == citation);
        let mut places: Vec<(usize, usize)> = Vec::new();
        for Statement { end, citation, .. } in &statements {
            places.extend(citation.as_ref().and_then(index_of).map(|source| (*end as usize, source)));
        }
        // Citations of no statement are of the whole answer.
        let end = answer.chars().count();
        let unused = (0..numbered.len()).filter(|source| places.iter().all(|(_, used)| used != source));
        let unused: Vec<(usize, usize)> = unused.map(|source| (end, source)).collect();
        places.extend(unused);
        places.sort_by_key(|(place, _)| *place);

        let (mut text, marks) = marked(&answer, &headline(short.as_deref(), &answer), &places);
        let source = |citation: &&Citation| {
            let Citation { path, start, end, quote, .. } = citation;
            let document = documents.iter().find(|(_, known)| known == path).map(|(DocId(id), _)| *id);
            let url = address.of_source(corpus, document, *start, *end);
            let file_id = document.map(|document| format!("{corpus}/{document}"));
            Source { title: path.clone(), file_id, start: *start, end: *end, quote: quote.clone(), url }
        };
        let sources: Vec<Source> = numbered.iter().map(source).collect();
        if footnotes {
            let number_of = |citation: &Citation| index_of(citation).map(|index| index + 1);
            text.push_str(&footnotes_of(&sources, &statements, number_of, note.as_deref()));
        }
        Recalled { text, marks, sources, steps, finish: Finish::Stop, usage }
    }
}

/// The short form before an answer that does not begin with it.
fn headline(short: Option<&str>, answer: &str) -> String {
    let begins = |short: &str| answer.to_lowercase().starts_with(&short.to_lowercase());
    short.filter(|short| !begins(short)).map_or_else(String::new, |short| format!("**{short}**\n\n"))
}

/// The answer after its headline, with a mark at each place: before the full stop, if one ends there.
fn marked(answer: &str, headline: &str, places: &[(usize, usize)]) -> (String, Vec<Mark>) {
    let characters: Vec<char> = answer.chars().collect();
    let (mut text, mut marks) = (headline.to_owned(), Vec::new());
    let (mut length, mut at) = (headline.chars().count(), 0);
    for (end, source) in places {
        let end = (*end).min(characters.len());
        let ends = end > 0 && matches!(characters[end - 1], '.' | '!' | '?' | '。');
        let end = if ends { end - 1 } else { end }.max(at);
        text.extend(&characters[at..end]);
        length += end - at;
        at = end;
        let mark = format!("[{}]", source + 1);
        let start = length + 1;
        marks.push(Mark { source: *source, start, end: start + mark.len() });
        length += 1 + mark.len();
        text.extend([" ", &mark]);
    }
    text.extend(&characters[at..]);
    (text, marks)
}

/// A line for each source, for each statement that the sources do not support, and for the note.
fn footnotes_of(
    sources: &[Source],
    statements: &[Statement],
    number_of: impl Fn(&Citation) -> Option<usize>,
    note: Option<&str>,
) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (number, Source { title, quote, url, .. }) in (1..).zip(sources) {
        lines.push(format!("[{number}] [{}]({url}): “{}”", title.replace(['[', ']'], " "), on_one_line(quote)));
    }
    for Statement { text, verdict, citation, .. } in statements {
        let finding = match verdict {
            Support::Supported => continue,
            Support::Contradicted => "Contradicted by the documents",
            Support::Unsupported => "Not supported by the documents",
            Support::Quoted => "Not confirmed as the answer",
        };
        let mut line = format!("{finding}: “{}”", on_one_line(text));
        if let Some(number) = citation.as_ref().and_then(&number_of) {
            let _ = write!(line, " [{number}]");
        }
        lines.push(line);
    }
    lines.extend(note.map(|note| format!("Note: {note}")));
    if lines.is_empty() { String::new() } else { format!("{FOOT}{}", lines.join("\n\n")) }
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An answer that a client sends back, without its marks and footnotes.
pub(super) fn without_marks(text: &str) -> String {
    let text = text.rfind(FOOT).map_or(text, |start| &text[..start]);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(" [") {
        let (before, mark) = rest.split_at(start);
        out.push_str(before);
        let digits = mark[2..].bytes().take_while(u8::is_ascii_digit).count();
        let is_mark = digits > 0 && mark[2 + digits..].starts_with(']');
        let length = if is_mark { digits + 3 } else { 2 };
        if !is_mark {
            out.push_str(&mark[..length]);
        }
        rest = &mark[length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use store::DocId;

    use super::{Mark, Recalled, without_marks};
    use crate::recall::Address;

    fn recalled(answered: Value, footnotes: bool) -> Recalled {
        let mut whole = json!({ "citations": [], "statements": [],
            "usage": { "calls": 1, "prompt_tokens": 2, "cached_tokens": 1, "output_tokens": 3, "seconds": 0.0 } });
        answered.as_object().expect("fields").iter().for_each(|(name, value)| whole[name] = value.clone());
        let answered = serde_json::from_value(whole).expect("an answer");
        let documents = [(DocId(7), "wall.txt".to_owned())];
        Recalled::new(answered, Vec::new(), &documents, "pell", &Address::of("h"), footnotes)
    }

    fn cites(path: &str, start: u32, quote: &str) -> Value {
        json!({ "path": path, "page": 1, "start": start, "end": start + 4, "quote": quote })
    }

    #[test]
    fn statements_are_marked_and_their_sources_follow() {
        let wall = cites("wall.txt", 3, "It\nbroke.");
        let answer = "Das Mäuerchen 🧱 brach. In May! Who knows?";
        let statement = |text: &str, start: usize, verdict: &str, citation: Option<&Value>| json!({ "text": text, "start": start, "end": start + text.chars().count(), "verdict": verdict, "citation": citation });
        let statements = json!([
            statement("Das Mäuerchen 🧱 brach.", 0, "supported", Some(&wall)),
            statement("In May!", 23, "contradicted", Some(&wall)),
            statement("Who knows?", 31, "unsupported", None),
        ]);
        let answered =
            json!({ "answer": answer, "statements": statements, "citations": [wall, cites("gone.txt", 0, "x")] });
        let told = recalled(answered.clone(), true);
        let foot = "\n\n---\n[1] [wall.txt](h/#/c/pell/sources/7/3-7): “It broke.”\n\n[2] [gone.txt](h/#/c/pell/sources): “x”\n\n\
            Contradicted by the documents: “In May!” [1]\n\nNot supported by the documents: “Who knows?”";
        let text = "Das Mäuerchen 🧱 brach [1]. In May [1]! Who knows [2]?";
        assert_eq!(told.text, format!("{text}{foot}"));
        let characters: Vec<char> = told.text.chars().collect();
        for Mark { source, start, end } in &told.marks {
            assert_eq!(characters[*start..*end].iter().collect::<String>(), format!("[{}]", source + 1));
        }
        assert_eq!(
            (told.marks.len(), told.sources[0].file_id.as_deref(), &told.sources[1].file_id),
            (3, Some("pell/7"), &None)
        );
        assert_eq!(recalled(answered, false).text, text);
        assert_eq!(without_marks(&told.text), answer);
    }

    #[test]
    fn the_short_form_comes_first() {
        let answered = json!({ "answer": "It broke in May 1921.", "short": "1921", "citations": [cites("wall.txt", 0, "q")], "note": "half is read" });
        let told = recalled(answered, true);
        assert_eq!(
            told.text,
            "**1921**\n\nIt broke in May 1921 [1].\n\n---\n[1] [wall.txt](h/#/c/pell/sources/7/0-4): “q”\n\nNote: half is read"
        );
        assert_eq!(told.text.get(told.marks[0].start..told.marks[0].end), Some("[1]"));
        assert_eq!(recalled(json!({ "answer": "Not in the documents." }), true).text, "Not in the documents.");
    }

    #[test]
    fn only_marks_are_removed() {
        assert_eq!(without_marks("a [1], b [12]. [x] [ ] f[3] [1"), "a, b. [x] [ ] f[3] [1");
    }
}
