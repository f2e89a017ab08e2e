//! mc:letter: does the answer name the right option? ComoRAG and MindGraph compare letters.

/// 1 if an answer to a question with options names the option of the gold letter.
pub fn mc_letter(prediction: &str, gold: &str, options: &[String]) -> f64 {
    let gold = gold.trim().chars().next().map(|letter| letter.to_ascii_uppercase());
    f64::from(gold.is_some() && letter(prediction, options) == gold)
}

/// The letter in an answer: the last in brackets, `[B]` or `(B)`; or the one at its beginning or after
/// "answer is" or "option"; or that of the only option whose text occurs in it.
pub fn letter(prediction: &str, options: &[String]) -> Option<char> {
    let letters: Vec<char> = ('A'..='Z').take(options.len()).collect();
    let known = |letter: char| Some(letter.to_ascii_uppercase()).filter(|letter| letters.contains(letter));
    let bracketed = letters.iter().filter_map(|letter| {
        let forms = [format!("[{letter}]"), format!("({letter})")];
        forms.iter().filter_map(|form| prediction.rfind(form)).max().map(|at| (at, *letter))
    });
    if let Some((_, letter)) = bracketed.max() {
        return Some(letter);
    }
    let alone = |text: &str| {
        let word = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut chars = word.chars();
        let letter = chars.next()?;
        // "A" in "A man" is no letter; in "A." and "A" it is.
        let ends = chars.as_str().is_empty() || chars.as_str().starts_with(['.', ')', ':', ',', '\n', ']', '*']);
        known(letter).filter(|_| ends && letter.is_uppercase())
    };
    let behind = |words: &str| prediction.to_lowercase().rfind(words).map(|at| at + words.len());
    let behind = [behind("answer is"), behind("answer:"), behind("option")].into_iter().flatten();
    // Lower case may change the length of non-ASCII characters.
    let said = behind.filter_map(|at| prediction.get(at..)).find_map(alone);
    said.or_else(|| alone(prediction.trim())).or_else(|| only_option(prediction, options, &letters))
}

fn only_option(prediction: &str, options: &[String], letters: &[char]) -> Option<char> {
    let said = prediction.to_lowercase();
    let has = |option: &String| {
        !option.trim().is_empty() && said.contains(option.trim().to_lowercase().trim_end_matches('.'))
    };
    let mut named = options.iter().zip(letters).filter(|(option, _)| has(option));
    let first = named.next()?;
    named.next().is_none().then_some(*first.1)
}
