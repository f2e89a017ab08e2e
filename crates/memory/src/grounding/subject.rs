//! Which words of a clause its subject can be: what "Who named the farm?" asks for.

use std::ops::Range;

use super::claims::{DETERMINERS, PREPOSITIONS, SUBJECTS, is_verb};
use super::negation::Clauses;
use super::passage::Sentence;
use super::question::{ASKING, AUXILIARIES, FORMS_OF_BE, Kind, Question, kind};
use super::statement::Statement;
use super::words::{Word, bare, is_past, stem, words};

/// Whether a question asks for the subject of a verb, and in the sentence an answer is behind that verb and its object: "Sunnybrook"
/// of "She named the farm Sunnybrook" does not tell who named the farm. `answer` is its bytes in the sentence.
pub(super) fn is_behind_object(question: &str, sentence: &str, answer: &Range<usize>) -> bool {
    let Some((verb, object)) = verb_and_object(question) else { return false };
    let given = words(sentence);
    let clauses = Clauses::read(&given, sentence);
    let Some(place) = given.iter().position(|word| answer.contains(&word.range.start)) else { return false };
    let is_object = |word: &Word| {
        word.stem.as_ref().is_some_and(|stem| object.contains(stem)) || OBJECTS.contains(&word.lower.as_str())
    };
    let is_active = |at: usize| {
        let between = &given[at + 1..place];
        let ends = |word: &Word| word.lower == "by" || FORMS_OF_BE.contains(&word.lower.as_str());
        clauses.clause(at) == clauses.clause(place) && between.iter().any(is_object) && !between.iter().any(ends)
    };
    (0..place).any(|at| is_verb_of(&given[at], &verb) && is_active(at))
}

/// The verb behind "who", "what" or "which team", and the words behind the verb; none where the verb is an auxiliary.
fn verb_and_object(question: &str) -> Option<(String, Vec<String>)> {
    let words = words(question);
    let ask = words.iter().position(|word| ASKING.contains(&bare(&word.lower)))?;
    if !matches!(words[ask].lower.as_str(), "who" | "what" | "which") {
        return None;
    }
    let at = kind(&words, ask).1.unwrap_or(ask) + 1;
    let verb = words.get(at).filter(|word| !word.capital && !AUXILIARIES.contains(&word.lower.as_str()))?;
    // "What acquired condition" and "Who went to Rome" have no verb with an object.
    let has_object = words.get(at + 1).is_some_and(|next| !PREPOSITIONS.contains(&next.lower.as_str()));
    if !has_object || is_past(&verb.lower) && !is_verb(&words, at, &|_| false) {
        return None;
    }
    let object: Vec<String> = words[at + 1..].iter().filter_map(|word| word.stem.clone()).collect();
    let stem = verb.stem.clone().filter(|stem| is_verb_of(verb, stem))?;
    (!object.is_empty()).then_some((stem, object))
}

/// Whether a word is a finite form of a verb.
fn is_verb_of(word: &Word, verb: &str) -> bool {
    word.stem.as_deref() == Some(verb) && !word.capital && (is_past(&word.lower) || word.lower.ends_with('s'))
}

/// Whether a question asks who or what acts or is acted on, and in the sentence an answer is behind the verb of the
/// question and directly behind a preposition of place or time: "Rome" of "Ann bought a ring in Rome" is not what Ann
/// bought. For what is acted on, "by" is such a preposition too. One at the end of the question belongs to its verb:
/// "What did Ann look at?"
pub(super) fn is_circumstance(question: &str, parsed: &Question, sentence: &str, answer: &Range<usize>) -> bool {
    let (asked, given) = (words(question), words(sentence));
    let Some(ask) = asked.iter().position(|word| ASKING.contains(&bare(&word.lower))) else { return false };
    let is_fronted = ask.checked_sub(1).is_some_and(|before| PREPOSITIONS.contains(&asked[before].lower.as_str()));
    let behind = kind(&asked, ask).1.unwrap_or(ask) + 1;
    let is_passive = asked.get(behind).is_some_and(|word| FORMS_OF_BE.contains(&word.lower.as_str()));
    let asks = match parsed.kind {
        Kind::Person | Kind::Group => asked[ask].lower != "whose",
        Kind::Thing | Kind::Which => parsed.asks_object || is_passive,
        _ => false,
    };
    let Some(verb) = parsed.verb.as_deref().filter(|_| asks && !is_fronted) else { return false };
    let Some(place) = given.iter().position(|word| answer.contains(&word.range.start)) else { return false };
    let leads = |at: &usize| {
        let lower = given[*at].lower.as_str();
        CIRCUMSTANCES.contains(&lower) || is_passive && lower == "by"
    };
    let before = |at: usize| (0..at).rev().find(|at| !DETERMINERS.contains(&given[*at].lower.as_str()));
    let Some(lead) = Some(place).filter(leads).or_else(|| before(place).filter(leads)) else { return false };
    let clauses = Clauses::read(&given, sentence);
    let is_of_verb = |at: &usize| clauses.clause(*at) == clauses.clause(lead) && is_verb_of(&given[*at], verb);
    let Some(at) = (0..lead).rev().find(is_of_verb) else { return false };
    let mut known = (0..asked.len()).filter(|at| asked[*at].lower == given[lead].lower).peekable();
    let is_followed = |at: usize| {
        let follows = |next: &Word| next.stem.is_some() || DETERMINERS.contains(&next.lower.as_str());
        asked.get(at + 1).is_some_and(follows)
    };
    known.peek().is_none() || known.all(is_followed) && (is_passive || at + 1 != lead)
}

/// Whether a question ends with a verb and its preposition, and in the sentence an answer is before both and a noun is behind
/// them: "Kenya" of "Kenya is known for its runners" is not what Kenya is known for. "By" has who acts behind it, and what is
/// associated with another thing is so the other way round too. "1990" of "In 1990 Ann was born in Rome" has the preposition
/// itself.
pub(super) fn is_before_preposition(question: &str, sentence: &str, answer: &Range<usize>) -> bool {
    let (asked, given) = (words(question), words(sentence));
    let [.., verb, preposition] = &asked[..] else { return false };
    let lower = preposition.lower.as_str();
    let is_asked = verb.stem.is_some() && PREPOSITIONS.contains(&lower) && !matches!(lower, "by" | "to" | "with");
    let Some(place) = given.iter().position(|word| answer.contains(&word.range.start)) else { return false };
    let clauses = Clauses::read(&given, sentence);
    let is_here = |at: usize| clauses.clause(at) == clauses.clause(place);
    let is_noun = |word: &Word| word.stem.is_some() || DETERMINERS.contains(&word.lower.as_str());
    let has_noun = |at: usize| given.get(at + 1).is_some_and(is_noun) && is_here(at + 1);
    let leads = |at: usize| given[at].lower == lower && is_here(at) && has_noun(at);
    let is_article = |at: usize| DETERMINERS.contains(&given[at].lower.as_str());
    // "The castle in the north"
    let is_verb =
        |at: &usize| is_here(*at) && given[*at].stem == verb.stem && !given[*at].capital && !is_article(at - 1);
    let lead = (0..=place).rev().find(|at| !is_article(*at) && (*at < place || given[*at].lower == lower));
    let is_led = lead.is_some_and(|at| given[at].lower == lower);
    let mut behind = (place + 1..given.len()).filter(is_verb);
    is_asked && !is_led && behind.any(|at| (at + 1..given.len().min(at + 4)).any(leads))
}

/// Whether an answer is the name in brackets behind another name, where a question asks who has a role: in "Sal (Tom Reed), a
/// mobster" the mobster is Sal. Behind "the mayor of Pell" it is the mayor's name.
pub(super) fn is_in_brackets_behind_name(question: &str, sentence: &str, answer: &Range<usize>) -> bool {
    let asked = words(question);
    let asks_who =
        matches!(&asked[..], [who, is, ..] if who.lower == "who" && FORMS_OF_BE.contains(&is.lower.as_str()));
    let is_played = asked.iter().any(|word| PLAYED.iter().any(|played| word.lower.starts_with(played)));
    let Some(before) = sentence[..answer.start].strip_suffix('(').map(str::trim_end) else { return false };
    let before = words(before);
    let is_of_name = |word: &&Word| word.capital && !word.is_function();
    let name = before.iter().rev().take_while(is_of_name).count();
    let introduced = before.len().checked_sub(name + 1).map_or("", |at| before[at].lower.as_str());
    asks_who && !is_played && name > 0 && sentence[answer.end..].starts_with(')') && !OWNING.contains(&introduced)
}

/// Whether a name of a statement, by its words in lower case, is in the subject: no verb and no other subject is before it.
pub(super) fn is_in_subject(name: &[String], claim: &[Word]) -> bool {
    let Some(place) = place_of(name, claim) else { return false };
    let first = behind_auxiliary(claim);
    let begins = || place == first + 1 && LOCATIVE.contains(&claim[first].lower.as_str());
    let is_name = |at: usize| claim[at].capital && claim[at].stem.is_some();
    // A verb in the present, or of another language.
    let follows_name = |at: usize| at > first && is_name(at - 1) && !claim[at].capital && claim[at].stem.is_some();
    let ends =
        |at: usize| is_verb(claim, at, &|_| true) || follows_name(at) || SUBJECTS.contains(&claim[at].lower.as_str());
    !begins() && !(first..place).any(ends)
}

/// Where the subject of a question begins: "Does Bob live in Rome", "Where does Bob live". That of a statement begins with it.
fn behind_auxiliary(claim: &[Word]) -> usize {
    let is_auxiliary = |word: &Word| AUXILIARIES.contains(&word.lower.as_str());
    let asks = claim.iter().take(2).any(|word| ASKING.contains(&word.lower.as_str()));
    let verb = (0..claim.len()).find(|at| is_auxiliary(&claim[*at]) || is_verb(claim, *at, &|_| true));
    verb.filter(|at| is_auxiliary(&claim[*at]) && (*at == 0 || asks)).map_or(0, |at| at + 1)
}

/// Whether the pronoun that is the subject of a sentence cannot refer to a name that is the subject of a claim: because one is in the
/// plural, or because the subject of the sentence before is in the number of "it" or "they" and the name is in a phrase
/// behind a preposition there: "The bridge was built by the Romans. It was destroyed."
pub(super) fn cannot_refer(name: &[String], claim: &[Word], shown: &[Word], before: &[Word]) -> bool {
    let number = |words: &[Word], forms: [&[&str]; 2]| {
        words.iter().find_map(|word| forms.iter().position(|forms| forms.contains(&word.lower.as_str())))
    };
    let Some(of_pronoun) = number(shown, PRONOUNS) else { return false };
    let is_thing = !shown.iter().any(|word| matches!(word.lower.as_str(), "he" | "she"));
    let is_of_subject = || is_thing && number(before, AGREEING) == Some(of_pronoun) && is_in_phrase(name, before);
    is_in_subject(name, claim)
        && !is_in_phrase(name, claim)
        && (number(claim, AGREEING).is_some_and(|of_claim| of_claim != of_pronoun) || is_of_subject())
}

/// Whether a pronoun is before a name that is only in a phrase behind a preposition: "She was born in 1879, a child of Jan Pell" is not
/// about Jan Pell.
pub(super) fn is_behind_pronoun(name: &[String], sentence: &[Word]) -> bool {
    let is_pronoun = |word: &Word| PRONOUNS.iter().any(|forms| forms.contains(&word.lower.as_str()));
    place_of(name, sentence).is_some_and(|place| sentence[..place].iter().any(is_pronoun))
        && is_in_phrase(name, sentence)
}

/// Whether a name is in a phrase behind a preposition.
fn is_in_phrase(name: &[String], words: &[Word]) -> bool {
    let Some(place) = place_of(name, words) else { return false };
    let is_of_phrase = |word: &&Word| !word.number && word.stem.is_some() || DETERMINERS.contains(&word.lower.as_str());
    let before = words[..place].iter().rev().find(|word| !is_of_phrase(word));
    before.is_some_and(|word| PREPOSITIONS.contains(&word.lower.as_str()))
}

/// Where a name begins, by its words in lower case.
fn place_of(name: &[String], words: &[Word]) -> Option<usize> {
    let is_here = |run: &[Word]| name.iter().zip(run).all(|(part, word)| part == bare(&word.lower));
    words.windows(name.len().max(1)).position(is_here)
}

/// Pronouns, and forms of verbs that agree with them, in the singular and in the plural.
const PRONOUNS: [&[&str]; 2] = [&["he", "she", "it"], &["they"]];
const AGREEING: [&[&str]; 2] = [&["is", "was", "has", "does"], &["are", "were", "have", "do"]];

/// The stem of the noun that a question is about: "car" of "What colour is the car?".
pub(super) fn topic(question: &str) -> Option<String> {
    let words = words(question);
    let at = words.iter().position(|word| AUXILIARIES.contains(&word.lower.as_str()))?;
    let phrase = noun_phrase(&words[at + 1..]);
    let has_verb =
        !FORMS_OF_BE.contains(&words[at].lower.as_str()) || phrase.last().is_some_and(|word| is_past(&word.lower));
    phrase.iter().rev().nth(usize::from(has_verb))?.stem.clone()
}

/// Whether a sentence begins with another noun than the one that a pronoun of the claim refers to, and one beside it with that noun.
pub(super) fn is_about_another(claim: &Statement, shown: &[Word], beside: &[&Sentence]) -> bool {
    let Some(topic) = &claim.topic else { return false };
    let has_topic = |words: &[Word]| words.iter().any(|word| word.stem.as_ref() == Some(topic));
    let has_pronoun = shown.iter().any(|word| SUBJECTS.contains(&word.lower.as_str()));
    let begins = |other: &&Sentence| has_topic(noun_phrase(&other.words));
    !noun_phrase(shown).is_empty() && !has_topic(shown) && !has_pronoun && beside.iter().any(begins)
}

/// The words behind a determiner that a text begins with, up to a function word or a name.
pub(super) fn noun_phrase(words: &[Word]) -> &[Word] {
    let begins = words.first().is_some_and(|word| DETERMINERS.contains(&word.lower.as_str()));
    let rest = words.get(1..).filter(|_| begins).unwrap_or_default();
    &rest[..rest.iter().take_while(|word| word.stem.is_some() && !word.capital).count()]
}

/// The stems of what the pronoun refers to that a sentence begins with: the subject of the sentence before, if that states
/// what it is or has. Behind other verbs the pronoun may refer to the object.
pub(super) fn referred(before: &[Word], shown: &[Word]) -> Vec<String> {
    let subject = noun_phrase(before);
    let verb = before.get(subject.len() + 1).map_or("", |verb| verb.lower.as_str());
    let agrees = match shown.first().map_or("", |first| first.lower.as_str()) {
        "he" | "she" | "it" => ["is", "was", "has", "had"].contains(&verb),
        "they" => ["are", "were", "have", "had"].contains(&verb),
        _ => false,
    };
    subject.iter().filter(|_| agrees).filter_map(|word| word.stem.clone()).collect()
}

/// Whether a name is in the answer to a question and not in the question.
pub(super) fn is_answer(name: &[String], claim: &Statement) -> bool {
    let count = |part: &String| claim.words.iter().filter(|word| bare(&word.lower) == part).count();
    name.iter().all(|part| count(part) == 1 && stem(part).is_some_and(|stem| claim.answer.contains(&stem)))
}

/// Whether what a statement says can be true of one subject only: it "is the head" of something, or is about an act that is done
/// once.
pub(super) fn is_of_one_subject(claim: &Statement) -> bool {
    let has_role = |pair: &[Word]| FORMS_OF_BE.contains(&pair[0].lower.as_str()) && pair[1].lower == "the";
    let is_done_once = |word: &Word| {
        let stem = word.stem.as_deref().unwrap_or_default();
        !word.capital && is_past(&word.lower) && DONE_ONCE.split_ascii_whitespace().any(|verb| verb == stem)
    };
    claim.words.windows(2).any(has_role) || claim.words.iter().any(is_done_once)
}

/// The stems of verbs for what one person or group does once.
const DONE_ONCE: &str = "compos creat defeat design discov direct found invent paint win write";

/// Pronouns that can be an object.
const OBJECTS: [&str; 5] = ["it", "him", "her", "them", "himself"];

/// Prepositions of place and time.
const CIRCUMSTANCES: [&str; 13] =
    ["after", "at", "before", "during", "from", "in", "into", "near", "on", "since", "through", "under", "until"];

/// The beginnings of words with which a question asks for an actor.
const PLAYED: [&str; 6] = ["act", "play", "portray", "voice", "star", "perform"];

/// Words between a role and the name that it is of.
const OWNING: [&str; 5] = ["of", "the", "for", "in", "at"];

/// Words that begin a statement with a place.
const LOCATIVE: [&str; 5] = ["in", "at", "on", "near", "from"];

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sentence: &str, answer: &str) -> Range<usize> {
        let start = sentence.rfind(answer).unwrap();
        start..start + answer.len()
    }

    #[test]
    fn words_behind_verb_and_object_are_no_subject() {
        for (question, sentence, answer) in [
            ("Who named the farm?", "She named the farm Sunnybrook.", "Sunnybrook"),
            ("Who named the farm?", "Ann named it Sunnybrook.", "Sunnybrook"),
            ("Who gave Tom the book?", "Ann gave Tom a book about Peter.", "Peter"),
            ("Which team won the cup?", "Turku won the cup in Oslo.", "Oslo"),
        ] {
            assert!(is_behind_object(question, sentence, &at(sentence, answer)), "{question} {answer}");
        }
        for (question, sentence, answer) in [
            ("Who named the farm?", "Ann named the farm Sunnybrook.", "Ann"),
            ("Who named the farm?", "The farm was named by Ann.", "Ann"),
            ("Who named the farm?", "The one who named the farm was Ann.", "Ann"),
            ("Who was named in the will?", "The will named Ann.", "Ann"),
            ("What did she name the farm?", "She named the farm Sunnybrook.", "Sunnybrook"),
            ("Who said the words?", "\"I said the words,\" said Ann.", "Ann"),
            ("What acquired condition has it?", "It has acquired a condition such as AIDS.", "AIDS"),
            ("Who went to Rome?", "In 1999 went to Rome Ann.", "Ann"),
        ] {
            assert!(!is_behind_object(question, sentence, &at(sentence, answer)), "{question} {answer}");
        }
    }

    #[test]
    fn the_subject_is_not_what_a_question_with_a_preposition_at_its_end_asks_for() {
        for (question, sentence, answer) in [
            ("What is the country known for?", "Kenya is known chiefly for its runners.", "Kenya"),
            ("What did Ann look at?", "Ann looked at a ship.", "Ann"),
            ("What does the film depend on?", "The second part depends heavily on the book.", "The second part"),
            ("What did the firm specialise in?", "Bell Ltd of Pell specialised in clocks.", "Bell Ltd"),
        ] {
            assert!(is_before_preposition(question, sentence, &at(sentence, answer)), "{question} {answer}");
        }
        for (question, sentence, answer) in [
            ("What is the country known for?", "Kenya is known chiefly for its runners.", "its runners"),
            ("What is Pell known for?", "The clocks that Pell is known for are old.", "The clocks"),
            ("What did Ann look at?", "The ship, Ann looked at it.", "The ship"),
            ("What was Ann bitten by?", "A dog bit Ann by the river.", "A dog"),
            ("What is growth associated with?", "Equality is associated with growth.", "Equality"),
            ("What is the country famous for?", "Runners made Kenya famous.", "Runners"),
            ("What year was Ann born in?", "In 1990 Ann was born in Rome.", "1990"),
            ("Which town is the castle in?", "Pell has a castle in the north.", "Pell"),
        ] {
            assert!(!is_before_preposition(question, sentence, &at(sentence, answer)), "{question} {answer}");
        }
    }

    #[test]
    fn a_place_or_a_time_is_not_what_a_question_for_an_object_asks_for() {
        let is_other = |question: &str, sentence: &str, answer: &str| {
            is_circumstance(question, &Question::parse(question), sentence, &at(sentence, answer))
        };
        for (question, sentence, answer) in [
            ("What did Ann buy?", "Ann bought a ring in Rome.", "Rome"),
            ("What did Ann buy in June?", "In June Ann bought a ring in the old town.", "the old town"),
            ("What did Ann study?", "Ann studied in Prague.", "Prague"),
            ("What was built in 1950?", "In 1950 the bridge was built in Rome.", "Rome"),
            ("Who founded the clinic?", "The clinic was founded in Malmo by Ida Holm.", "Malmo"),
            ("Who founded the clinic?", "The clinic was founded in Malmo by Ida Holm.", "in Malmo"),
            ("Who was killed?", "Ann was killed by Bob.", "Bob"),
        ] {
            assert!(is_other(question, sentence, answer), "{question} {answer}");
        }
        for (question, sentence, answer) in [
            ("What did Ann buy?", "Ann bought a ring in Rome.", "a ring"),
            ("What did Ann look at?", "Ann looked at the moon.", "the moon"),
            ("What did Ann look at yesterday?", "Ann looked at the moon yesterday.", "the moon"),
            ("Which city did Ann live in?", "Ann lived in Rome.", "Rome"),
            ("Where did Ann buy it?", "Ann bought it in Rome.", "Rome"),
            ("In what did Ann trade?", "Ann traded in silk.", "silk"),
            ("Who founded the clinic?", "The clinic was founded by Ida Holm.", "Ida Holm"),
            ("Who was the book written by?", "The book was written by Ann.", "Ann"),
            ("What destroyed the town?", "The town was destroyed in a fire.", "a fire"),
            ("Which city hosted the games?", "The games were held in Rome.", "Rome"),
        ] {
            assert!(!is_other(question, sentence, answer), "{question} {answer}");
        }
    }

    #[test]
    fn a_name_in_brackets_does_not_have_the_role_of_the_name_before() {
        let is_other = |question: &str, sentence: &str, answer: &str| {
            is_in_brackets_behind_name(question, sentence, &at(sentence, answer))
        };
        let film = "They meet Sal (Tom Reed), a mobster.";
        assert!(is_other("Who is the mobster?", film, "Tom Reed"));
        assert!(!is_other("Who is the mobster?", film, "Sal"));
        assert!(!is_other("Who plays the mobster?", film, "Tom Reed"));
        assert!(!is_other("Who is the actor of the mobster?", film, "Tom Reed"));
        assert!(!is_other("Who is the mayor of Pell?", "The mayor of Pell (Tom Reed) left.", "Tom Reed"));
        assert!(!is_other("Who is the mayor?", "The mayor (Tom Reed) left.", "Tom Reed"));
    }

    #[test]
    fn a_name_before_the_verb_is_in_the_subject() {
        let is_subject = |claim: &str, name: &str| is_in_subject(&[name.to_lowercase()], &words(claim));
        for (claim, name) in [
            ("Bob lives in Rome.", "Bob"),
            ("Does Bob live in Rome", "Bob"),
            ("The tower in Ghent is high.", "Ghent"),
            ("In 1999 Bob left Rome.", "Bob"),
        ] {
            assert!(is_subject(claim, name), "{claim}");
        }
        for (claim, name) in [
            ("Bob lives in Rome.", "Rome"),
            ("Anna wohnt in Rom.", "Rom"),
            ("It is in Rome.", "Rome"),
            ("In Rome Bob opened a shop.", "Rome"),
            ("Was Bob born in Rome", "Rome"),
        ] {
            assert!(!is_subject(claim, name), "{claim}");
        }
    }
}
