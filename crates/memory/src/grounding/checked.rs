//! An answer with a verdict on each of its claims, and the citations that follow from them.

use super::asking::{asks_for_subject, asks_what_happened, counted, without_asking};
use super::attribution::attributed;
use super::candidates::Place;
use super::choose::ShortAnswer;
use super::claims::{
    Claim, SUBJECTS, claims, is_clause_of, is_fragment, is_part_of_clause, is_stated_by, is_statement, is_told_by,
};
use super::naming::has_name;
use super::negation::Clauses;
use super::occurrences::occurrences;
use super::question::AUXILIARIES;
use super::roles::replacing;
use super::stated::{Stating, can_answer};
use super::subject::topic;
use super::values::Values;
use super::verdict::{Checks, Compared, Verdict, verify, verify_compared};
use super::words::words;

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Checked {
    #[serde(flatten)]
    pub claim: Claim,
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The claims of an answer to a question, each with its verdict. "Yes" and "no" are checked as what the question states, and
/// a short claim without subject and verb as an answer to the question. A claim about "she" or "it" needs a sentence about the one name
/// in the question, if that sentence has a name. A claim that names its source is checked against that document alone.
pub fn check(question: &str, answer: &str, evidence: &[&str], checks: Checks<'_>) -> Vec<Checked> {
    let asked = question.trim().trim_end_matches(['?', ' ']);
    let mut leading: Option<(usize, Vec<&str>)> = None;
    let mut verdict = |claim: &Claim| {
        let (word, rest) = without_yes_or_no(&claim.text);
        let (rest, paths) = if let Some(named) = attributed(rest, checks.paths) {
            leading = named.leads.then(|| (claim.sentence, named.paths.clone()));
            (named.claim, Some(named.paths))
        } else {
            let of_sentence = leading.as_ref().filter(|(sentence, _)| *sentence == claim.sentence);
            (rest.to_owned(), of_sentence.map(|(_, paths)| paths.clone()))
        };
        let Some(paths) = paths else { return verdict(asked, word, &rest, evidence, checks) };
        // Texts keep their numbers, by which places refer to them.
        let texts = evidence.iter().zip(checks.paths).map(|(text, of)| if paths.contains(of) { *text } else { "" });
        verdict(asked, word, &rest, &texts.collect::<Vec<_>>(), checks)
    };
    claims(answer).into_iter().map(|claim| Checked { verdict: verdict(&claim), claim }).collect()
}

/// The verdict on a claim: a "yes" or "no", and the rest of it.
fn verdict(asked: &str, word: Option<bool>, rest: &str, evidence: &[&str], checks: Checks<'_>) -> Verdict {
    match if rest.is_empty() { word } else { word_of_echo(rest) } {
        Some(true) => verify(asked, evidence, checks),
        Some(false) => denied(asked, verify(asked, evidence, checks), evidence),
        None if is_part(asked, rest, evidence, checks) => {
            let (claim, statement) = (format!("{asked}? {rest}"), statement(asked, rest));
            let counted = counted(asked);
            let compared =
                Compared { claim: &claim, statement: &statement, answer: rest, counted, ..Compared::default() };
            match verify_compared(compared, evidence, checks) {
                Verdict::Supported(place) if !can_be_in(asked, rest, place, evidence) => Verdict::Unsupported,
                verdict => verdict,
            }
        }
        None if word.is_some_and(|yes| is_opposed(yes, asked, rest)) => Verdict::Unsupported,
        None => {
            let refers = begins_with_pronoun(rest);
            let about: Vec<_> = one_name(asked).filter(|_| refers).into_iter().collect();
            let topic = topic(asked).filter(|_| refers && about.is_empty());
            let compared = Compared { claim: rest, statement: rest, about, topic, ..Compared::default() };
            verify_compared(compared, evidence, checks)
        }
    }
}

/// Whether a word is a name where it begins a text: the evidence has it in no other form than with a capital.
fn is_name(lower: &str, evidence: &[&str]) -> bool {
    let has = |text: &&str| text.contains(lower) && words(text).iter().any(|word| !word.capital && word.lower == lower);
    !evidence.iter().any(has)
}

/// Whether an answer states something only together with the question: a few words without a verb that the evidence does not have as a
/// statement, and that are none by their form, or words that are only a part of a statement there.
fn is_part(asked: &str, text: &str, evidence: &[&str], checks: Checks<'_>) -> bool {
    let sentence = match verify(text, evidence, Checks { judge: None, similarity: None, ..checks }) {
        Verdict::Supported(Place { text: at, start, end }) => Some(&evidence[at][start..end]),
        _ => None,
    };
    !asks_what_happened(asked)
        && match (is_fragment(text, &|lower| is_name(lower, evidence)), sentence) {
            (true, Some(sentence)) => {
                !(is_stated_by(asked, text, sentence) || is_clause_of(text, sentence) || is_told_by(text, sentence))
            }
            (true, None) => !is_statement(text),
            (false, _) => sentence.is_some_and(|sentence| is_part_of_clause(text, sentence)),
        }
}

/// Whether a span can state the answer to a question where it has the words of the answer one after the other.
fn can_be_in(asked: &str, answer: &str, span: Place, evidence: &[&str]) -> bool {
    let text = evidence[span.text];
    let states = |place: &Place| {
        let answer = span.start + place.start..span.start + place.end;
        can_answer(asked, &Stating { text, heading: "", quote: span.start..span.end, answer })
    };
    let places = occurrences(asked, &[&text[span.start..span.end]], answer);
    places.is_empty() || places.iter().any(states)
}

/// Whether the statement after "yes" denies what the question states, or the one after "no" states it, by negations alone: after
/// "Did Ann pay more than $5?" the statement may have another number. After a question with a negation, such as "Didn't
/// Ann pay?", people answer in both ways.
fn is_opposed(yes: bool, asked: &str, statement: &str) -> bool {
    let has_negation = |text: &str| Clauses::read(&words(text), text).any();
    if has_negation(asked) {
        return false;
    }
    match verify(asked, &[statement], Checks::default()) {
        Verdict::Supported(_) => !yes && !has_negation(statement),
        Verdict::Contradicted(_) => yes && has_negation(statement),
        Verdict::Unsupported => false,
    }
}

/// The verdict on "no", from that on what the question states. A sentence about another person denies nothing: "Ann lives in
/// Rome." does not say that Bob does not. One with another name in the same place does.
fn denied(asked: &str, verdict: Verdict, evidence: &[&str]) -> Verdict {
    match verdict {
        Verdict::Supported(place) => Verdict::Contradicted(place),
        Verdict::Contradicted(place) => {
            let (asked_words, given) = (words(asked), words(&evidence[place.text][place.start..place.end]));
            let is_met =
                |name: &Vec<String>| has_name(name, &given) || !replacing(name, &asked_words, &given).is_empty();
            let is_about_it = Values::read(asked, &|_| false).names.iter().all(is_met);
            if is_about_it { Verdict::Supported(place) } else { Verdict::Unsupported }
        }
        Verdict::Unsupported => Verdict::Unsupported,
    }
}

/// The "yes" or "no" that a claim begins with, and the rest of it.
fn without_yes_or_no(claim: &str) -> (Option<bool>, &str) {
    let end = claim.find(|c: char| !c.is_alphabetic()).unwrap_or(claim.len());
    let rest = claim[end..].trim_start_matches([',', '.', '!', ':', ';', '-', '–', '—', ' ']);
    let lower = claim[..end].to_lowercase();
    // "No" is an answer only before a mark: "No man came."
    let is_apart = !claim[end..].starts_with(' ');
    match lower.as_str() {
        "yes" => (Some(true), rest),
        lower if is_apart && YES.contains(&lower) => (Some(true), rest),
        lower if is_apart && NO.contains(&lower) => (Some(false), rest),
        _ => (None, claim),
    }
}

/// "Yes" in German and Dutch, French, Spanish, Italian, Portuguese, Swedish, Polish, Romanian, Russian and Greek.
const YES: [&str; 8] = ["ja", "oui", "sí", "sì", "sim", "tak", "da", "да"];

/// "No" in English and these languages.
const NO: [&str; 10] = ["no", "nein", "nee", "non", "não", "nej", "nie", "nu", "нет", "όχι"];

/// "He did" is yes, "she has not" and "they didn't" are no.
fn word_of_echo(text: &str) -> Option<bool> {
    let words = words(text);
    let [subject, auxiliary, rest @ ..] = &words[..] else { return None };
    let (verb, is_denied) = match auxiliary.lower.strip_suffix("n't") {
        Some(verb) => (verb, true),
        None => (auxiliary.lower.as_str(), false),
    };
    let is_echo = SUBJECTS.contains(&subject.lower.as_str()) && AUXILIARIES.contains(&verb);
    match rest {
        [] if is_echo => Some(!is_denied),
        [not] if is_echo && not.lower == "not" => Some(false),
        _ => None,
    }
}

fn begins_with_pronoun(claim: &str) -> bool {
    let is_pronoun = |lower: &str| matches!(lower, "he" | "she" | "it" | "they" | "his" | "her" | "its" | "their");
    words(claim).first().is_some_and(|word| is_pronoun(&word.lower))
}

/// The name in a question, if it has one alone.
fn one_name(question: &str) -> Option<Vec<String>> {
    let mut names = Values::read(question, &|_| false).names.into_iter();
    names.next().filter(|_| names.next().is_none())
}

/// A question with its answer as one statement. The answer takes the place of "who" or "what" where that is the subject, so that
/// names are in the order of a statement; elsewhere it follows the question.
fn statement(asked: &str, answer: &str) -> String {
    let words = words(asked);
    let is_subject = match &words[..] {
        [who, verb, ..] => asks_for_subject(&who.lower) && !verb.capital && !FRONTING.contains(&verb.lower.as_str()),
        _ => false,
    };
    let rest = without_asking(asked, answer);
    match is_subject {
        true => {
            let rest = rest.trim_start();
            let rest = rest.strip_prefix(&asked[words[0].range.clone()]).unwrap_or(rest);
            format!("{} {}", answer.trim_end_matches(['.', '!', '。']), rest.trim_start())
        }
        false => format!("{rest}? {answer}"),
    }
}

/// Words behind "who" or "what" that make it the object.
const FRONTING: [&str; 14] =
    ["do", "does", "did", "has", "have", "had", "can", "could", "will", "would", "should", "may", "might", "must"];

/// The share of claims that are supported; 0 for none.
pub fn supported_share(checked: &[Checked]) -> f64 {
    let supported = checked.iter().filter(|checked| matches!(checked.verdict, Verdict::Supported(_))).count();
    if checked.is_empty() { 0.0 } else { supported as f64 / checked.len() as f64 }
}

/// The spans that support claims, each once: those that hold the short answer first, then those that support most claims,
/// then in the order of the claims.
pub fn citations(checked: &[Checked], short: Option<&ShortAnswer>) -> Vec<Place> {
    let mut cited: Vec<(Place, usize)> = Vec::new();
    for checked in checked {
        let Verdict::Supported(place) = checked.verdict else { continue };
        match cited.iter_mut().find(|(known, _)| *known == place) {
            Some((_, claims)) => *claims += 1,
            None => cited.push((place, 1)),
        }
    }
    let holds = |place: &Place| short.is_some_and(|short| short.places.iter().any(|answer| place.holds(answer)));
    cited.sort_by_key(|(place, claims)| (!holds(place), usize::MAX - claims));
    cited.into_iter().map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str =
        "Jim sold his gold watch. Della cut her hair and paid $21 for a chain. The flat cost $8 a week.";

    fn quotes(question: &str, answer: &str, short: Option<&ShortAnswer>) -> Vec<&'static str> {
        let checked = check(question, answer, &[STORY], Checks::default());
        citations(&checked, short).into_iter().map(|place| &STORY[place.start..place.end]).collect()
    }

    #[test]
    fn only_supported_claims_are_cited() {
        assert_eq!(quotes("What did Jim sell?", "Jim sold his gold watch.", None), ["Jim sold his gold watch."]);
        assert!(quotes("What did Jim sell?", "Jim sold a pizza.", None).is_empty());
        assert_eq!(quotes("What did Jim sell?", "his gold watch", None), ["Jim sold his gold watch."]);
        assert!(quotes("What did Jim sell?", "a pizza", None).is_empty());
    }

    #[test]
    fn yes_and_no_are_cited_by_what_the_question_states() {
        assert_eq!(quotes("Did Jim sell his watch?", "Yes.", None), ["Jim sold his gold watch."]);
        assert!(quotes("Did Jim sell his watch?", "No.", None).is_empty());
        assert_eq!(quotes("Did Jim never sell his watch?", "No.", None), ["Jim sold his gold watch."]);
    }

    #[test]
    fn yes_and_no_may_come_before_a_statement() {
        let sold = "Jim sold his gold watch.";
        for (question, answer) in [
            ("Did Jim sell his watch?", "Yes, he did."),
            ("Did Jim sell his watch?", "Yes, Jim sold his gold watch."),
            ("Did Jim sell his watch?", "He did."),
            ("Did Jim never sell his watch?", "No, Jim sold his watch."),
        ] {
            assert_eq!(quotes(question, answer, None), [sold], "{question} {answer}");
        }
        for answer in ["No, he did not.", "He didn't.", "No, Jim did not sell his watch.", "Yes, Ann sold his watch."] {
            assert!(quotes("Did Jim sell his watch?", answer, None).is_empty(), "{answer}");
        }
    }

    #[test]
    fn yes_before_a_denial_and_no_before_what_is_asked_are_unsupported() {
        let check = |question: &str, answer: &str, evidence: &str, is_supported: bool| {
            let checked = check(question, answer, &[evidence], Checks::default());
            let found = matches!(checked[0].verdict, Verdict::Supported(_));
            assert_eq!(found, is_supported, "{question} {answer}");
        };
        let (sold, kept) = ("Jim sold his gold watch.", "Jim did not sell his watch.");
        check("Did Jim sell his watch?", "Yes, Jim did not sell his watch.", kept, false);
        check("Did Jim sell his watch?", "No, Jim sold his gold watch.", sold, false);
        check("Didn't Jim sell his watch?", "Yes, Jim sold his gold watch.", sold, true);
        check("Didn't Jim sell his watch?", "No, Jim did not sell his watch.", kept, true);
        let raised = "The fund raised 7 million dollars.";
        check("Did the fund raise over 5 million dollars?", "Yes, the fund raised 7 million dollars.", raised, true);
    }

    #[test]
    fn a_claim_that_names_its_source_is_checked_against_it_alone() {
        let evidence = ["Ann moved in May.", "Bob moved in June.", "Eve moved in July."];
        let check = |paths: [&str; 3], answer: &str, texts: &[Option<usize>]| {
            let checks = Checks { paths: &paths, ..Checks::default() };
            let found = check("Did Ann or Bob move?", answer, &evidence, checks).into_iter().map(|checked| {
                let Verdict::Supported(place) = checked.verdict else { return None };
                assert_eq!(&answer[checked.claim.start..checked.claim.end], checked.claim.text);
                Some(place.text)
            });
            assert_eq!(found.collect::<Vec<_>>(), texts, "{answer}");
        };
        let paths = ["notes/ann.md", "notes/bob.md", "old/bob.md"];
        check(paths, "According to notes/bob.md, Bob moved in June.", &[Some(1)]);
        check(paths, "Yes, according to notes/bob.md, Bob moved in June.", &[Some(1)]);
        check(paths, "Eve moved in July (bob.md).", &[Some(2)]);
        check(paths, "According to notes/ann.md, Bob moved in June.", &[None]);
        check(paths, "According to notes/ann.md, Ann moved in May, and Bob moved in June.", &[Some(0), None]);
        check(paths, "According to notes/ann.md, Ann moved in May. Bob moved in June.", &[Some(0), Some(1)]);
        check(paths, "Ann moved in May.", &[Some(0)]);
        // The name of a document is not always a source.
        check(["Ann", "Bob", "Eve"], "Ann moved in June.", &[None]);
    }

    #[test]
    fn a_short_answer_is_checked_as_the_answer_to_the_question() {
        let is_supported = |question: &str, answer: &str, evidence: &str| {
            let checked = check(question, answer, &[evidence], Checks::default());
            matches!(checked[0].verdict, Verdict::Supported(_))
        };
        for (question, answer, evidence) in [
            ("Who founded Apple?", "Steve Jobs", "Steve Jobs founded Apple."),
            ("Who founded Apple?", "Steve Jobs.", "Apple was founded by Steve Jobs."),
            ("What is the capital of France?", "Paris", "Paris is the capital of France."),
            ("What is the capital of France?", "Paris", "The capital of France is Paris."),
            ("What does Anna do?", "She works as a nurse.", "Anna works as a nurse."),
            ("Whom did Apple hire?", "Steve Jobs", "Apple hired Steve Jobs."),
        ] {
            assert!(is_supported(question, answer, evidence), "{question} {answer}: {evidence}");
        }
        for (question, answer, evidence) in [
            ("Who hired Apple?", "Steve Jobs", "Apple hired Steve Jobs."),
            ("Whom did Apple hire?", "Steve Jobs", "Steve Jobs hired Apple."),
            ("What does Anna do?", "She works as a nurse.", "Bella works as a nurse."),
            ("What does Anna do?", "She works as a nurse.", "Bella: I work as a nurse."),
        ] {
            assert!(!is_supported(question, answer, evidence), "{question} {answer}: {evidence}");
        }
    }

    #[test]
    fn a_short_answer_states_something_by_itself_only_with_subject_and_verb() {
        let is_supported = |question: &str, answer: &str, evidence: &str| {
            let checked = check(question, answer, &[evidence], Checks::default());
            matches!(checked[0].verdict, Verdict::Supported(_))
        };
        for (question, answer, evidence) in [
            ("What happened to the court?", "Anna left Paris.", "Anna left Paris in 1921."),
            ("How did the wedding end?", "The guests fled the town.", "The guests fled the town at night."),
            ("What did he do in 1921?", "left Paris", "He left Paris in 1921."),
            ("What did Ann do in 1921?", "moved to Rome", "Ann moved to Rome in 1921."),
            ("Where did Ann move in 1921?", "the United States", "Ann moved to the United States in 1921."),
            ("Which lamp is allowed?", "The vendor recommends a lamp.", "The vendor recommends a lamp with 60 watts."),
            ("Who owns a machine?", "Cedar belongs to Sato.", "Cedar belongs to Sato, the chemist."),
            ("How does Maya travel?", "Maya takes the tram to work.", "Maya: I take the tram to work."),
            ("Who is an early riser?", "Maya gets up at 3:30 every day.", "Maya: I get up at 3:30 every day."),
            ("Who is poor?", "Pensioners don't pay the fee.", "Pensioners don't pay the fee of 5 pounds."),
        ] {
            assert!(is_supported(question, answer, evidence), "{question} {answer}: {evidence}");
        }
        for (question, answer, evidence) in [
            ("What did Ann do in 1921?", "left Paris", "Bob left Paris in 1921."),
            ("What did Ann do in 1921?", "moved to Rome", "Bob moved to Rome in 1921."),
            ("What did Ann do in 1921?", "was moved to Rome", "Bob was moved to Rome in 1921."),
            ("Where was Ann born?", "the United States", "Bob moved to the United States."),
            ("Who founded Apple?", "Alfred", "Alfred slept."),
            ("Who founded Apple?", "Will Smith", "Will Smith slept."),
            ("How many men came?", "two hundred", "Two hundred birds flew."),
            ("What did Ann buy?", "a used car", "Bob sold a used car."),
            ("What did Ann buy?", "two used cars", "Bob sold two used cars."),
            ("What did Ann draw?", "a red rose", "Bob saw a red rose."),
            ("Where is the logo?", "in the upper left", "The date is in the upper left."),
            ("Where do children sleep?", "London parks in summer", "Children like London parks in summer."),
            ("Where is the logo?", "Upper left corner", "The date is in the upper left corner."),
        ] {
            assert!(!is_supported(question, answer, evidence), "{question} {answer}: {evidence}");
        }
    }

    #[test]
    fn the_words_of_a_short_answer_are_in_the_sentence_however_long_the_question_is() {
        let mut story = "Jim sold the old gold watch and the silver chain to a collector at the town fair.".to_owned();
        story.extend((0..20).map(|number| format!(" The clerk wrote line {number} of the book.")));
        let is_supported = |answer: &str| {
            let question = "To whom did Jim sell the old gold watch and the silver chain at the town fair?";
            matches!(check(question, answer, &[&story], Checks::default())[0].verdict, Verdict::Supported(_))
        };
        assert!(is_supported("a collector"));
        assert!(!is_supported("a pawnbroker"));
    }

    #[test]
    fn the_span_with_the_short_answer_is_cited_first() {
        let answer = "Jim sold his gold watch. Della paid $21 for a chain.";
        let at = STORY.find("$21").unwrap();
        let places = vec![Place { text: 0, start: at, end: at + 3 }];
        let short = ShortAnswer { text: "$21".into(), places, score: 0.0, probability: 1.0 };
        let cited = quotes("How much did Della pay?", answer, Some(&short));
        assert_eq!(cited, ["Della cut her hair and paid $21 for a chain.", "Jim sold his gold watch."]);
    }

    #[test]
    fn verdicts_have_stable_names_in_json() {
        let checked = check("What did Jim sell?", "Jim sold a pizza.", &[STORY], Checks::default());
        assert_eq!(supported_share(&checked), 0.0);
        let json = serde_json::to_value(&checked[0]).unwrap();
        assert_eq!((&json["verdict"], &json["sentence"]), (&"unsupported".into(), &0.into()));
        let back: Checked = serde_json::from_value(json).unwrap();
        assert_eq!(back, checked[0]);
    }
}
