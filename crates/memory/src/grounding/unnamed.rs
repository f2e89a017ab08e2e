//! Whether the sentence of an answer lacks what the question asks about.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use super::asserted::stems;
use super::claims::SUBJECTS;
use super::question::AUXILIARIES;
use super::subject::noun_phrase;
use super::things::GENERIC;
use super::words::{Word, words};
use crate::core::cite::sentences;

/// Whether a sentence is about "it", lacks the noun behind "how much", and what is before has none of the words of the question
/// that it lacks: "It had been 5 mg in May" behind a sentence about iron does not tell how much lead there was in May.
pub(super) fn is_of_unnamed(question: &str, text: &str, sentence: &Range<usize>) -> bool {
    let asked = words(question);
    let is_much = |pair: &[Word]| pair[0].lower == "how" && matches!(pair[1].lower.as_str(), "many" | "much");
    let Some(noun) = asked.windows(2).position(is_much).and_then(|how| asked.get(how + 2)?.stem.clone()) else {
        return false;
    };
    let (given, before) = (words(&text[sentence.clone()]), words_before(text, sentence));
    let refers = given.iter().any(|word| matches!(word.lower.as_str(), "it" | "they"));
    let mut unmet = asked.iter().filter_map(|word| word.stem.as_ref()).filter(|stem| !has(&given, stem));
    let mut is_here = || has(&given, &noun) || unmet.any(|stem| has(&before, stem));
    refers && !before.is_empty() && !GENERIC.contains(&noun) && !is_here()
}

/// Whether a question asks what something is called that a sentence lacks, and no pronoun there refers to what is before: "bands of
/// cilia called ctenes" does not tell what the hairs are called. "A group" or "a process" can have another noun there.
pub(super) fn is_called_of_unnamed(question: &str, text: &str, sentence: &Range<usize>) -> bool {
    let asked = words(question);
    let is_asked = asked.last().is_some_and(|last| matches!(last.lower.as_str(), "called" | "named"));
    let auxiliary = asked.iter().position(|word| AUXILIARIES.contains(&word.lower.as_str()));
    let Some(at) = auxiliary.filter(|_| is_asked) else { return false };
    let phrase = noun_phrase(&asked[at + 1..]);
    let behind = asked.get(at + 2 + phrase.len()).is_some();
    // The last word of the phrase is "called" itself where nothing is between them.
    let nouns = if behind { phrase } else { &phrase[..phrase.len().saturating_sub(1)] };
    let Some(noun) = nouns.last().and_then(|noun| noun.stem.as_ref()) else { return false };
    let given = words(&text[sentence.clone()]);
    let refers = || given.iter().any(|word| SUBJECTS.contains(&word.lower.as_str()) || word.lower == "these");
    let is_here = has(&given, noun) || refers() && has(&words_before(text, sentence), noun);
    !GENERIC.contains(noun) && !is_here
}

/// The words of the sentence before one, and of those before it as long as they begin with a pronoun.
fn words_before(text: &str, sentence: &Range<usize>) -> Vec<Word> {
    let all = sentences(&text[..sentence.start]);
    let words_of = |range: &Range<usize>| words(&text[range.clone()]);
    let refers =
        |range: &&Range<usize>| words_of(range).first().is_some_and(|first| SUBJECTS.contains(&first.lower.as_str()));
    let referring = all.iter().rev().take_while(refers).count();
    all.iter().rev().take(referring + 1).flat_map(words_of).collect()
}

/// Whether a question asks what something causes and a sentence has no word for an effect: "a cause of concern are attacks, which
/// reached an all-time high" does not tell that they cause the high. "How many deaths did it cause?" names the effect itself.
pub(super) fn has_no_effect(question: &str, sentence: &str) -> bool {
    let asked = words(question);
    let [what, auxiliary, ..] = &asked[..] else { return false };
    let is_asked = what.lower == "what"
        && AUXILIARIES.contains(&auxiliary.lower.as_str())
        && asked.last().is_some_and(|last| matches!(last.lower.as_str(), "cause" | "caused" | "causing"));
    let given = words(sentence);
    let is_of_effect = |at: usize| {
        let is_cause_of = || {
            matches!(given[at].lower.as_str(), "cause" | "causes")
                && given.get(at + 1).is_some_and(|next| next.lower == "of")
        };
        let is_effect = |stem: &String| EFFECTS.contains(stem);
        given[at].lower == "because" || given[at].stem.as_ref().is_some_and(is_effect) && !is_cause_of()
    };
    is_asked && !(0..given.len()).any(is_of_effect)
}

fn has(words: &[Word], stem: &str) -> bool {
    words.iter().any(|word| word.stem.as_deref() == Some(stem))
}

/// Words for an effect.
static EFFECTS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    stems(
        "arouse bring cause consequence contribute create drive due effect force generate give impact induce inspire \
        lead make mean produce prompt provoke raise reason responsible result spark trigger",
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    /// A question, the sentence before and the sentence of the answer.
    type Case<'a> = (&'a str, &'a str, &'a str);

    fn check(rule: fn(&str, &str, &Range<usize>) -> bool, others: &[Case<'_>], own: &[Case<'_>]) {
        let is_other = |(question, before, sentence): &Case<'_>| {
            let text = format!("{before} {sentence}");
            rule(question, &text, &(before.len() + 1..text.len()))
        };
        for case in others {
            assert!(is_other(case), "{case:?}");
        }
        for case in own {
            assert!(!is_other(case), "{case:?}");
        }
    }

    #[test]
    fn the_quantity_of_another_thing_is_not_that_of_the_noun_behind_how_much() {
        check(
            is_of_unnamed,
            &[
                (
                    "How much salt is left?",
                    "The sugar is in the sack.",
                    "They bought it for 5 euros, and 2 kg are left.",
                ),
                ("How many keys are in the drawer?", "The pens are red.", "In the drawer they have 30 of them."),
                ("How much milk is in the can?", "The water is cold.", "It fills the can with 5 litres."),
                ("How many goats graze in the yard?", "The hens are old.", "There are 12, and they graze in the yard."),
                ("How much coal was sold in May?", "The price of oil fell.", "In May it was sold for 5 euros."),
            ],
            &[
                ("How much water did the lake lose?", "The lake shrank.", "It lost 5 million litres."),
                ("How many people live in Pell?", "Pell is a port.", "It has 5,000 inhabitants."),
                ("How many people were lost in Pell?", "Plague came in May.", "Pell lost 5,000 to it."),
                ("How many guests can the hall hold?", "The hall is old. It was built of wood.", "It has 400 seats."),
                ("How much does the case weigh?", "The lamp is red.", "It weighs 5 kg."),
                ("How many people came?", "The fair was big.", "They counted 500 guests."),
                ("How much salt is left?", "The sugar is in the sack.", "2 kg of salt are left of it."),
                ("How much salt is left?", "The sugar is in the sack.", "2 kg are left."),
            ],
        );
    }

    #[test]
    fn the_name_of_another_thing_is_not_that_of_the_one_that_is_asked_about() {
        check(
            is_called_of_unnamed,
            &[
                ("What are the hairs of worms called?", "Worms are old.", "They bear bands of cilia called setae."),
                ("What is the old ferry called?", "It has a crew.", "Its captain is called Ann Lee."),
                (
                    "What are the hairs called?",
                    "Worms have hairs.",
                    "Along their bodies are bands of cilia called setae.",
                ),
                ("What was the eldest son named?", "He had a dog.", "It was named Rex."),
            ],
            &[
                ("What are the hairs of worms called?", "They have hair.", "It is called setae."),
                ("What is the old ferry called?", "", "The ferry Pell Star is old."),
                ("What is the old ferry called?", "The ferry is old. It has a crew.", "It is called Pell Star."),
                ("What is a group of lions called?", "", "A family of lions is a pride."),
                ("What is Ann's dog called?", "", "It is called Rex."),
                ("Who named the ferry?", "", "Ann Lee did."),
            ],
        );
    }

    #[test]
    fn what_a_thing_causes_takes_a_word_for_an_effect() {
        for sentence in [
            "Attacks on teachers reached an all-time high.",
            "There were 5 attacks, with concern in Pell.",
            "A cause of concern are attacks on teachers, which reached an all-time high.",
        ] {
            assert!(has_no_effect("What are the attacks on teachers causing?", sentence), "{sentence}");
        }
        for sentence in
            ["Attacks on teachers led to concern.", "Teachers leave because of attacks.", "They cause concern."]
        {
            assert!(!has_no_effect("What did the attacks on teachers cause?", sentence), "{sentence}");
        }
        assert!(!has_no_effect("What caused the fire?", "The fire began in a candle."));
        assert!(!has_no_effect("How many deaths did the flood cause?", "The flood killed 300 people."));
    }
}
