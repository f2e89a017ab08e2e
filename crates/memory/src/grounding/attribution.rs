//! Documents that a claim names as its source: "According to notes/may.md, the budget was cut."

use std::ops::Range;

/// A claim without the document that it names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Attributed<'a> {
    pub claim: String,
    /// The document's path.
    pub path: &'a str,
}

/// Words before the name of a document, which go with it; longer ones before those that they end with.
const BEFORE: [&str; 9] =
    ["according to", "as stated in", "as described in", "as mentioned in", "source:", "see", "from", "in", "per"];

/// The claim without a document's path or file name, if it has one of them. Of several documents it is the one with the
/// longest name.
pub(super) fn attributed<'a>(claim: &str, paths: impl Iterator<Item = &'a str>) -> Option<Attributed<'a>> {
    let named = paths.filter(|path| !path.is_empty()).filter_map(|path| Some((path, mention(claim, path)?)));
    let (path, mention) = named.max_by_key(|(_, mention)| mention.len())?;
    let (before, after) = (claim[..mention.start].trim_end(), claim[mention.end..].trim_start());
    let opened = before.trim_end_matches(['(', '[', '"', '\'', '`', '“', '*']).trim_end();
    let closed = after.trim_start_matches([')', ']', '"', '\'', '`', '”', '*', ',', ':']).trim_start();
    let before = without_introduction(opened);
    let claim = if before.is_empty() || closed.is_empty() || closed.starts_with(['.', '!', '?']) {
        format!("{before}{closed}")
    } else {
        format!("{before} {closed}")
    };
    Some(Attributed { claim, path })
}

/// The bytes of a document's path, or of its file name, in a claim.
fn mention(claim: &str, path: &str) -> Option<Range<usize>> {
    let file = path.rsplit(['/', '\\']).next().filter(|file| file.contains('.'));
    std::iter::once(path).chain(file).find_map(|name| {
        let whole = |start: usize| {
            let end = start + name.len();
            let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '\\');
            !claim[..start].ends_with(is_inner) && !claim[end..].starts_with(is_inner)
        };
        let (start, _) = claim.match_indices(name).find(|(start, _)| whole(*start))?;
        Some(start..start + name.len())
    })
}

fn without_introduction(before: &str) -> &str {
    let ends_with = |words: &&&str| {
        let start = before.len().checked_sub(words.len());
        let ending = start.filter(|start| before.is_char_boundary(*start)).map(|start| before.split_at(start));
        ending.is_some_and(|(rest, end)| end.eq_ignore_ascii_case(words) && !rest.ends_with(char::is_alphanumeric))
    };
    let words = BEFORE.iter().find(ends_with).map_or(0, |words| words.len());
    before[..before.len() - words].trim_end().trim_end_matches(',')
}

#[cfg(test)]
mod tests {
    use super::attributed;

    fn check(claim: &str, rest: &str, path: &str) {
        let paths = ["notes/may.md", "notes/may.md.txt", "plan_b.docx", "memo"];
        let found = attributed(claim, paths.into_iter());
        let found = found.as_ref().map(|found| (found.claim.as_str(), found.path));
        assert_eq!(found, (!path.is_empty()).then_some((rest, path)), "{claim}");
    }

    #[test]
    fn a_claim_is_read_without_the_document_that_it_names() {
        check("According to notes/may.md, Ann left.", "Ann left.", "notes/may.md");
        check("In `may.md`, Ann left.", "Ann left.", "notes/may.md");
        check("Ann left (notes/may.md).", "Ann left.", "notes/may.md");
        check("Ann left, as stated in \"plan_b.docx\".", "Ann left.", "plan_b.docx");
        check("The may.md notes say that Ann left.", "The notes say that Ann left.", "notes/may.md");
        check("may.md: Ann left.", "Ann left.", "notes/may.md");
        check("Ann left [may.md.txt].", "Ann left.", "notes/may.md.txt");
        check("notes/may.md", "", "notes/may.md");
    }

    #[test]
    fn words_that_are_no_names_of_documents_stay() {
        for claim in [
            "Ann left in May.",
            "Dismay.md is here.",
            "Ann wrote may.md5.",
            "Ann wrote a memorandum.",
            "Ann may leave.",
        ] {
            check(claim, "", "");
        }
        // A path without an extension is a name as well.
        check("Ann left (memo).", "Ann left.", "memo");
    }
}
