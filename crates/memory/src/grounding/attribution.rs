//! Documents that a claim names as its source: "According to notes/may.md, the budget was cut."
//!
//! Only a few forms name a source; elsewhere the name of a document is a word of the claim, as in "The port is set in
//! config.toml." A name that does not look like one of a file, such as "memo", needs quotation marks.

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// A claim without the source that it names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Attributed<'a> {
    pub claim: String,
    /// The documents: several if their files have the same name, or if all of them are named.
    pub paths: Vec<&'a str>,
    /// The source comes first, so it is that of the whole sentence.
    pub leads: bool,
}

/// Words before the name of a source.
const INTRODUCTIONS: [&str; 15] = [
    "according to",
    "as stated in",
    "as described in",
    "as mentioned in",
    "as noted in",
    "based on",
    "source:",
    "sources:",
    "see",
    "laut",
    "gemäß",
    "selon",
    "d'après",
    "según",
    "secondo",
];

/// The same, where a comma follows the name.
const BEFORE_COMMA: [&str; 3] = ["in", "from", "per"];

const ARTICLES: [&str; 8] =
    ["the file", "the document", "the page", "the note", "the notes", "file", "document", "page"];

/// Verbs of which a document can be the subject.
const VERBS: [&str; 10] =
    ["says", "states", "mentions", "reports", "notes", "shows", "confirms", "describes", "explains", "records"];

/// Beginnings of places in a document: "(notes/may.md, page 3)".
const PLACES: [&str; 4] = ["page", "p.", "line", "section"];

const QUOTES: [char; 10] = ['"', '\'', '`', '“', '”', '‘', '’', '«', '»', '*'];

/// The claim without its source, if it names one of these documents.
pub(super) fn attributed<'a>(claim: &str, paths: &[&'a str]) -> Option<Attributed<'a>> {
    let leading = leading(claim, paths).map(|(paths, rest)| Attributed { claim: rest.to_owned(), paths, leads: true });
    let found = leading.or_else(|| trailing(claim, paths)).or_else(|| bracketed(claim, paths))?;
    (found.claim.chars().any(char::is_alphanumeric)).then_some(found)
}

/// "According to NAME, ...", "NAME: ..." and "The file NAME states that ...".
fn leading<'a, 'b>(claim: &'b str, paths: &[&'a str]) -> Option<(Vec<&'a str>, &'b str)> {
    for (introductions, needs_comma) in [(&INTRODUCTIONS[..], false), (&BEFORE_COMMA[..], true)] {
        for rest in introductions.iter().filter_map(|words| without_words(claim, words)) {
            let Some((named, rest)) = named(without_article(rest), paths) else { continue };
            let behind = rest.trim_start().strip_prefix([',', '，', ':']);
            let spaced = rest.strip_prefix(' ').filter(|_| !needs_comma);
            if let Some(rest) = behind.or(spaced) {
                return Some((named, rest.trim_start()));
            }
        }
    }
    let (named, rest) = named(without_article(claim), paths)?;
    if let Some(rest) = rest.trim_start().strip_prefix(':') {
        return Some((named, rest.trim_start()));
    }
    let rest = VERBS.iter().find_map(|verb| without_words(rest.trim_start(), verb))?;
    Some((named, without_words(rest, "that").unwrap_or(rest)))
}

/// "..., according to NAME."
fn trailing<'a>(claim: &str, paths: &[&'a str]) -> Option<Attributed<'a>> {
    let starts = claim.match_indices(char::is_whitespace).map(|(at, space)| at + space.len());
    let (start, named) = starts.filter(|start| *start < claim.len()).find_map(|start| {
        let rest = INTRODUCTIONS.iter().find_map(|words| without_words(&claim[start..], words))?;
        let (named, rest) = named(without_article(rest), paths)?;
        rest.chars().all(|c| c.is_whitespace() || c.is_ascii_punctuation()).then_some((start, named))
    })?;
    let before = claim[..start].trim_end_matches([' ', ',', ';', '(', '[', '.', '—', '–', '-']);
    Some(Attributed { claim: format!("{before}."), paths: named, leads: false })
}

/// "... (NAME)." and "... [NAME, OTHER NAME]."
fn bracketed<'a>(claim: &str, paths: &[&'a str]) -> Option<Attributed<'a>> {
    claim.match_indices(['(', '[']).find_map(|(open, bracket)| {
        let inner = &claim[open + 1..];
        let close = inner.find(if bracket == "(" { ')' } else { ']' })?;
        let content = &inner[..close];
        let content = INTRODUCTIONS.iter().find_map(|words| without_words(content, words)).unwrap_or(content);
        let mut all = Vec::new();
        for piece in content.split([',', ';']).flat_map(|piece| piece.split(" and ")).map(str::trim) {
            match named(piece, paths).filter(|(_, rest)| rest.trim().is_empty()) {
                Some((named, _)) => all.extend(named),
                None if !all.is_empty() && PLACES.iter().any(|place| piece.starts_with(place)) => (),
                None => return None,
            }
        }
        let (before, after) = (claim[..open].trim_end(), inner[close + 1..].trim_end());
        Some(Attributed { claim: format!("{before}{after}"), paths: all, leads: false })
    })
}

/// The documents whose name a text begins with, with or without folders, the longest name counting, and the text behind it.
fn named<'a, 'b>(text: &'b str, paths: &[&'a str]) -> Option<(Vec<&'a str>, &'b str)> {
    let bare = text.trim_start_matches(QUOTES);
    let is_quoted = bare.len() < text.len();
    let length = |path: &str| {
        // With as many of its folders as the claim has.
        let shorter = path.match_indices(['/', '\\']).map(|(at, _)| &path[at + 1..]);
        let bytes = |name: &str| {
            let bytes = bytes_of(name, bare).filter(|bytes| ends_name(&bare[*bytes..]))?;
            (is_quoted || looks_like_file(name)).then_some(bytes)
        };
        std::iter::once(path).chain(shorter).filter_map(bytes).max().unwrap_or(0)
    };
    let longest = paths.iter().map(|path| length(path)).max().filter(|longest| *longest > 0)?;
    let mut found: Vec<&str> = paths.iter().copied().filter(|path| length(path) == longest).collect();
    found.sort_unstable();
    found.dedup();
    Some((found, bare[longest..].trim_start_matches(QUOTES)))
}

/// The bytes that a name takes at the beginning of a text. Case does not count in ASCII, nor does the Unicode form: macOS
/// writes "Ü" in the names of files as two characters, and models as one.
fn bytes_of(name: &str, text: &str) -> Option<usize> {
    let mut characters = text.graphemes(true);
    let is_same = |a: char, b: char| a.eq_ignore_ascii_case(&b);
    name.graphemes(true).try_fold(0, |bytes, of_name| {
        let of_text = characters.next()?;
        let (mut a, mut b) = (of_name.nfc(), of_text.nfc());
        let begins = a.by_ref().all(|a| b.next().is_some_and(|b| is_same(a, b)));
        (begins && b.next().is_none()).then_some(bytes + of_text.len())
    })
}

fn looks_like_file(name: &str) -> bool {
    name.contains(['.', '/', '\\', '_'])
}

/// Whether a name can end before this text: "may.md" does not end in "may.md.txt" or "may.md5".
fn ends_name(rest: &str) -> bool {
    let mut chars = rest.chars();
    match chars.next() {
        Some('.') => chars.next().is_none_or(|next| !next.is_alphanumeric()),
        Some(next) => !next.is_alphanumeric() && !matches!(next, '_' | '-' | '/' | '\\' | '@'),
        None => true,
    }
}

/// The text behind these words at its beginning.
fn without_words<'b>(text: &'b str, words: &str) -> Option<&'b str> {
    let begins = text.get(..words.len())?.eq_ignore_ascii_case(words);
    let rest = &text[words.len()..];
    (begins && rest.starts_with(char::is_whitespace)).then(|| rest.trim_start())
}

fn without_article(text: &str) -> &str {
    ARTICLES.iter().find_map(|words| without_words(text, words)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::attributed;

    const PATHS: [&str; 6] = ["/home/ann/notes/may.md", "old/may.md", "notes/may.md.txt", "plan_b.docx", "memo", "Ann"];

    fn check(claim: &str, rest: &str, paths: &[&str]) {
        let found = attributed(claim, &PATHS).unwrap_or_else(|| panic!("{claim}"));
        assert_eq!((found.claim.as_str(), &found.paths[..]), (rest, paths), "{claim}");
    }

    #[test]
    fn a_claim_is_read_without_the_source_that_it_names() {
        let (may, plan) = (&["/home/ann/notes/may.md"][..], &["plan_b.docx"][..]);
        check("According to notes/may.md, Bob left.", "Bob left.", may);
        check("According to the file notes/may.md Bob left.", "Bob left.", may);
        check("In `plan_b.docx`, Bob left.", "Bob left.", plan);
        check("Laut Plan_B.docx, ist Bob da.", "ist Bob da.", plan);
        check("plan_b.docx: Bob left.", "Bob left.", plan);
        check("The file plan_b.docx states that Bob left.", "Bob left.", plan);
        check("Bob left (notes/may.md).", "Bob left.", may);
        check("/home/ann/notes/may.md: Bob left.", "Bob left.", may);
        check("Bob left [source: notes/may.md, page 3].", "Bob left.", may);
        check("Bob left, as stated in \"plan_b.docx\".", "Bob left.", plan);
        check("Bob left. Source: plan_b.docx", "Bob left.", plan);
        check("Bob left (\"memo\").", "Bob left.", &["memo"]);
        check("Bob left (notes/may.md.txt).", "Bob left.", &["notes/may.md.txt"]);
    }

    #[test]
    fn names_are_the_same_in_every_unicode_form() {
        let (composed, decomposed) = ("notes/\u{dc}bersicht.md", "notes/U\u{308}bersicht.md");
        for name in [composed, decomposed] {
            for path in [composed, decomposed] {
                for claim in
                    [format!("According to {name}, Jos\u{65}\u{301} left."), format!("Jos\u{65}\u{301} left ({name}).")]
                {
                    let found = attributed(&claim, &[path, "notes/bersicht.md"]).unwrap_or_else(|| panic!("{claim}"));
                    // The rest keeps its form, by which it is compared with the evidence.
                    assert_eq!(
                        (found.claim.as_str(), &found.paths[..]),
                        ("Jos\u{65}\u{301} left.", &[path][..]),
                        "{claim}"
                    );
                }
            }
        }
        for other in ["Ubersicht.md", "U\u{301}bersicht.md", "\u{dc}bersicht.md\u{301}"] {
            assert_eq!(
                attributed(&format!("According to {other}, Ann left."), &[composed, decomposed]),
                None,
                "{other}"
            );
        }
        let both = attributed("According to \u{dc}bersicht.md, Ann left.", &[composed, decomposed]);
        assert_eq!(both.map(|found| found.paths.len()), Some(2));
    }

    #[test]
    fn several_documents_may_be_the_source() {
        check("Bob left (may.md).", "Bob left.", &["/home/ann/notes/may.md", "old/may.md"]);
        check("Bob left (notes/may.md, plan_b.docx).", "Bob left.", &["/home/ann/notes/may.md", "plan_b.docx"]);
    }

    #[test]
    fn only_a_source_that_comes_first_is_that_of_the_whole_sentence() {
        let leads = |claim: &str| attributed(claim, &PATHS).is_some_and(|found| found.leads);
        assert!(leads("According to plan_b.docx, Bob left."));
        assert!(!leads("Bob left (plan_b.docx)."));
    }

    #[test]
    fn other_names_of_documents_are_words_of_the_claim() {
        for claim in [
            "Ann moved in 2019.",
            "From Ann, Bob got a letter.",
            "Bob (Ann) left.",
            "Bob wrote a memo.",
            "The port is set in plan_b.docx.",
            "Bob deleted notes/may.md in June.",
            "Bob left (may.md5).",
            "Bob left (draft.may.md).",
            "Bob left (plan_b.docx was shut).",
            "Bob left (notes/may.md, in June).",
            "According to Bob, notes/may.md is old.",
            "notes/may.md",
            "Source: notes/may.md.",
            "in",
            "(",
            "",
        ] {
            assert_eq!(attributed(claim, &PATHS), None, "{claim}");
        }
    }
}
