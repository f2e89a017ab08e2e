//! The reward of a sampled answer.

use calls::reading;

/// The F1 of words (Rajpurkar et al. 2016) of an answer and the wanted one, from 0 to 1. That the documents have no answer is
/// right or wrong.
pub fn reward(answer: &str, wanted: &str) -> f32 {
    if [answer, wanted].contains(&reading::NOT_FOUND) {
        return f32::from(u8::from(answer == wanted));
    }
    let (answer, wanted) = (words(answer), words(wanted));
    let mut left = wanted.clone();
    for word in &answer {
        if let Some(at) = left.iter().position(|other| other == word) {
            left.swap_remove(at);
        }
    }
    let shared = (wanted.len() - left.len()) as f32;
    if shared == 0.0 { 0.0 } else { 2.0 * shared / (answer.len() + wanted.len()) as f32 }
}

/// The words of a text without articles, unless there are no others.
fn words(text: &str) -> Vec<String> {
    let text: String = text.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let is_article = |word: &String| ["a", "an", "the"].contains(&word.as_str());
    if words.iter().all(is_article) { words } else { words.into_iter().filter(|word| !is_article(word)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_rewarded_by_their_words() {
        assert_eq!(reward("The Eiffel Tower.", "eiffel tower"), 1.0);
        assert_eq!(reward("the tower in Paris", "Eiffel Tower"), 0.4);
        assert_eq!(reward("tower tower", "Eiffel Tower"), 0.5);
        assert_eq!(reward("", "Eiffel Tower"), 0.0);
        assert_eq!([reward("A.", "A"), reward("B", "A"), reward("", "A")], [1.0, 0.0, 0.0]);
        assert_eq!(reward("Not in the documents.", "documents"), 0.0);
        assert_eq!(reward("documents", "Not in the documents."), 0.0);
        assert_eq!(reward("Not in the documents.", "Not in the documents."), 1.0);
    }
}
