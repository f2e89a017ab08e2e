//! Words of a question that only ask, so that the sentence with the answer does not have them.

use std::ops::Range;

use super::dates::dates_of;
use super::numbers::is_duration;
use super::question::{ASKING, AUXILIARIES, Kind, kind};
use super::typed::has_share;
use super::values::Values;
use super::words::{Word, bare, is_past, stem, words};

/// A question without the words that only ask: "year" before a date, "percentage" before a share and "happened" behind "what", and
/// the question words of other languages, since those of English are function words.
pub(super) fn without_asking(question: &str, answer: &str) -> String {
    let words = words(question);
    let only_asks = |at: usize| {
        let lower = words[at].lower.as_str();
        let happens = || lower.starts_with("happen") && at.checked_sub(1).is_some_and(|at| words[at].lower == "what");
        Some(at) == typed_focus(&words, answer)
            || happens()
            || is_of_measure(&words, at, answer)
            || !is_english(&words) && QUESTION_WORDS.split_ascii_whitespace().any(|word| word == lower)
    };
    let cut: Vec<Range<usize>> =
        (0..words.len()).filter(|at| only_asks(*at)).map(|at| words[at].range.clone()).collect();
    let mut rest = question.to_owned();
    cut.into_iter().rev().for_each(|range| rest.replace_range(range, ""));
    rest
}

/// Whether a word behind "how" only asks for a number: "many", or "old" and "long" before an age and a time.
fn is_of_measure(question: &[Word], at: usize, answer: &str) -> bool {
    let is_behind_how = at.checked_sub(1).is_some_and(|at| question[at].lower == "how");
    let units = || Values::read(answer, &|_| false).numbers.into_iter().map(|number| number.unit);
    let is_time = |unit: Option<String>| unit.is_some_and(|unit| is_duration(&unit));
    is_behind_how
        && match question[at].lower.as_str() {
            "many" | "often" => true,
            "old" => units().any(|unit| unit.is_none_or(|unit| is_duration(&unit))),
            "long" => units().any(is_time),
            _ => false,
        }
}

/// The stem of what a number in the answer counts: "student" for "How many students passed?", "year" for "How old is Ann?".
pub(super) fn counted(question: &str) -> Option<String> {
    let words = words(question);
    let how = words.iter().position(|word| word.lower == "how")?;
    match words.get(how + 1)?.lower.as_str() {
        "old" => stem("year"),
        "many" => {
            let phrase = words[how + 2..].iter().take_while(|word| word.stem.is_some() && !is_past(&word.lower));
            phrase.last()?.stem.clone()
        }
        _ => None,
    }
}

/// Whether any statement answers a question: "What happened?".
pub(super) fn asks_what_happened(question: &str) -> bool {
    matches!(&words(question)[..], [what, verb] if what.lower == "what" && verb.lower.starts_with("happen"))
}

/// Whether a question is asked in English.
pub(super) fn is_english(question: &[Word]) -> bool {
    question.first().is_some_and(|word| AUXILIARIES.contains(&word.lower.as_str()))
        || question.iter().any(|word| ASKING.contains(&bare(&word.lower)))
}

/// The place of the noun behind "what" or "which" for which the answer has a value.
fn typed_focus(question: &[Word], answer: &str) -> Option<usize> {
    let at = question.iter().position(|word| ASKING.contains(&bare(&word.lower)))?;
    let (kind, focus) = kind(question, at);
    let is_typed = match kind {
        Kind::Time => !dates_of(answer).is_empty(),
        Kind::Share => has_share(answer),
        _ => false,
    };
    focus.filter(|focus| is_typed && *focus == at + 1)
}

/// Whether a lower-case word asks for the subject of a statement.
pub(super) fn asks_for_subject(lower: &str) -> bool {
    matches!(lower, "who" | "what" | "wer" | "qui" | "quién" | "chi" | "quem" | "vem" | "kto" | "кто")
}

/// Question words of German and Dutch, of French, Spanish, Italian, Portuguese and Romanian, of Polish, Swedish, Russian and
/// Greek, and the characters of those of Chinese.
const QUESTION_WORDS: &str = "\
wer wem wen wessen wo wohin woher wann warum weshalb wieso wie wieviel welche welcher welches welchen welchem \
wat waar wanneer waarom hoe hoeveel welk \
qui que quoi où quand comment pourquoi combien quel quelle quels quelles est ce qu'est qu'a \
qué quién quiénes dónde adónde cuándo cómo cuál cuáles cuánto cuánta cuántos cuántas \
chi che cosa dove quando come quale quali qual quanto quanta quanti quante perché \
quem onde como quais quantos quantas porquê \
cine ce unde când cum care cât câte câți \
kto kogo komu co gdzie kiedy dlaczego jak jaki jaka jakie który która które ile \
vem vad var när varför hur vilken vilket vilka \
кто кого кому что где куда откуда когда почему как какой какая какое какие сколько \
ποιος ποια ποιο τι πού πότε γιατί πώς πόσο \
谁 誰 什 么 麼 哪 里 何 几 怎 吗 呢 时 候";

#[cfg(test)]
mod tests {
    use super::without_asking;

    #[test]
    fn words_that_only_ask_are_left_out() {
        for (question, answer, rest) in [
            ("Wo wohnt Anna", "Rom", " wohnt Anna"),
            ("¿Cuándo murió Ana", "1921", "¿ murió Ana"),
            ("Où habite Anna", "Rome", " habite Anna"),
            ("In what year did Ann move", "1921", "In what  did Ann move"),
            ("In what year did Ann move", "the year of the flood", "In what year did Ann move"),
            ("What percentage of men left", "34%", "What  of men left"),
            ("What is the year of the flood", "1921", "What is the year of the flood"),
            ("Where did Ann come from", "Rome", "Where did Ann come from"),
            ("What happened to Ann", "She left.", "What  to Ann"),
        ] {
            assert_eq!(without_asking(question, answer), rest);
        }
    }
}
