//! Normalised names of entities, for comparison.

use unicode_segmentation::UnicodeSegmentation;

/// A normalised name: its words in lower case, without punctuation around them.
pub(super) fn normal(name: &str) -> String {
    let word = |piece: &str| match piece.contains(char::is_alphanumeric) {
        true => piece.to_lowercase(),
        false => " ".to_owned(),
    };
    let words: String = name.split_word_bounds().map(word).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::normal;

    #[test]
    fn names_are_compared_in_any_script() {
        let check = |name: &str, want: &str| assert_eq!(normal(name), want, "{name}");
        check("  Ada  BROOK, ", "ada brook");
        check("Ada's lamp", "ada's lamp");
        check("(the) Sunday-Comet!", "the sunday comet");
        check("Élodie «Ñandú»", "élodie ñandú");
        check("南京市", "南京市");
        check("हिन्दी।", "हिन्दी");
        check("- … !", "");
    }
}
