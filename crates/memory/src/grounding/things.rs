//! Whether the sentence of an answer tells it of another thing than the question is about: "The base of the kettle weighs 310 grams" does
//! not answer "How much does the kettle weigh?".

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use super::asserted::stems;
use super::claims::{DETERMINERS, SUBJECTS};
use super::features::MONTHS;
use super::negation::Clauses;
use super::numbers::is_rank;
use super::question::{AUXILIARIES, FORMS_OF_BE};
use super::subject::noun_phrase;
use super::values::weekday;
use super::words::{Word, is_past, words};

/// Whether the words of a sentence that hold an answer are about another thing:
///
/// * the noun of the question is only the owner of what acts: "the base of the kettle weighs";
/// * the verb of the question has another subject, and the noun is not in the sentence: "the spare filter costs";
/// * the noun is only behind a semicolon that the answer is before;
/// * a phrase of the question has another noun there: "the warranty of the motor" for "the warranty of the pump", or "to
///   Austria it is 4 euros, to Norway 9" for "to Norway";
/// * a phrase of the question has no noun there: "telephone 555-0142" for "the telephone number of the landlord";
/// * it is only in a part of the sentence that the answer is not in: "stalls cost 5 pounds, and for charities they are free";
/// * a noun of the question is only behind "without" there: "the camera weighs 2 kg without its case";
/// * another word is in the place of one of the question: "the first folk metal band" for "the first black metal band", "another
///   type" for "the same type";
/// * a word between a rank and a noun of the question is left out: "the first train" for "the first tourist train";
/// * the noun has another word before it: "the annual fee" for "the entrance fee", but not "the primary source" for "the main source".
///
/// `answer` is its bytes in the sentence.
pub(super) fn is_of_another_thing(question: &str, sentence: &str, answer: &Range<usize>) -> bool {
    let (asked, given) = (words(question), words(sentence));
    let Some(place) = given.iter().position(|word| answer.contains(&word.range.start)) else { return false };
    let clauses = Clauses::read(&given, sentence);
    let stating = Given { words: &given, clauses: &clauses, place };
    let is_about_another = Topic::of(&asked).is_some_and(|topic| {
        is_behind_semicolon(&topic.noun, &given, sentence, answer)
            || stating.is_of_other_sort(&topic, &asked)
            || stating.verb(&topic).is_some_and(|verb| {
                stating.is_of_owner(&topic, &asked, verb) || stating.has_other_subject(&topic, &asked, verb)
            })
    });
    let asked_clauses = Clauses::read(&asked, question);
    is_about_another
        || stating.has_other_phrase(&asked, &asked_clauses)
        || stating.lacks_phrase(&asked, &asked_clauses)
        || stating.excludes(&asked)
        || stating.replaces(&asked)
        || stating.omits(&asked)
}

/// What a question is about: "kettle" and "weigh" of "How much does the kettle weigh?", as stems.
struct Topic {
    noun: String,
    /// The word before the noun: "spare" of "the spare filter".
    modifier: Option<String>,
    /// None behind a form of "be" that is the only verb.
    verb: Option<String>,
}

impl Topic {
    /// `None` where no noun with an article or an owner is behind the auxiliary.
    fn of(asked: &[Word]) -> Option<Topic> {
        let auxiliary = asked.iter().position(|word| AUXILIARIES.contains(&word.lower.as_str()))?;
        // "Who has the old key?" has no other verb.
        if matches!(asked[auxiliary].lower.as_str(), "has" | "have" | "had") {
            return None;
        }
        let phrase = noun_phrase(&asked[auxiliary + 1..]);
        let (last, before) = phrase.split_last()?;
        let next = asked.get(auxiliary + 2 + phrase.len()).map_or("", |word| word.lower.as_str());
        let is_verb = next != "of" && (!is_be(&asked[auxiliary]) || is_past(&last.lower));
        let (nouns, verb) = if is_verb { (before, last.stem.clone()) } else { (phrase, None) };
        let (noun, modifiers) = nouns.split_last()?;
        let modifier = modifiers.last().and_then(|word| word.stem.clone());
        Some(Topic { noun: noun.stem.clone()?, modifier, verb })
    }
}

/// A sentence and the place of the first word of the answer in it.
struct Given<'a> {
    words: &'a [Word],
    clauses: &'a Clauses,
    place: usize,
}

impl Given<'_> {
    /// The last place of the verb of a question before the answer.
    fn verb(&self, topic: &Topic) -> Option<usize> {
        let verb = topic.verb.as_ref()?;
        (0..self.place).rev().find(|at| !self.words[*at].capital && self.words[*at].stem.as_ref() == Some(verb))
    }

    /// Whether the noun is before the verb only as the owner of something else that the question does not name: "the base of the
    /// kettle", "the kettle's base". The price or the model of a thing is no other thing, and a pronoun before the verb may be the thing.
    fn is_of_owner(&self, topic: &Topic, asked: &[Word], verb: usize) -> bool {
        let is_noun = |at: &usize| self.words[*at].stem.as_ref() == Some(&topic.noun);
        let is_other = |at: usize| {
            let Word { stem, number, .. } = &self.words[at];
            !number && stem.as_ref().is_some_and(|stem| !has_stem(asked, stem) && !SAME.contains(stem))
        };
        let is_owner = |at: usize| match self.words[at].lower.ends_with("'s") {
            true => at + 1 < verb && is_other(at + 1),
            false => self.preposition(at).and_then(|at| at.checked_sub(1)).is_some_and(is_other),
        };
        let is_pronoun = |at: usize| SUBJECTS.contains(&self.words[at].lower.as_str());
        let mut places = (0..verb).filter(is_noun).peekable();
        !verb.checked_sub(1).is_some_and(is_pronoun) && places.peek().is_some() && places.all(is_owner)
    }

    /// Whether the noun of a question has another word before it everywhere, behind an article, which does not mean the same, and the word
    /// of the question is not in the sentence.
    fn is_of_other_sort(&self, topic: &Topic, asked: &[Word]) -> bool {
        let Some(modifier) = &topic.modifier else { return false };
        let is_noun = |at: &usize| self.words[*at].stem.as_ref() == Some(&topic.noun);
        let is_content = |word: &&Word| word.stem.is_some() && !word.capital && !word.number;
        let is_other = |at: usize| {
            let run = self.words[..at].iter().rev().take_while(is_content).count();
            let has_article = at.checked_sub(run + 1).is_some_and(|before| is_determiner(&self.words[before]));
            let mut modifiers = self.words[at - run..at].iter().filter_map(|word| word.stem.as_ref());
            run > 0 && has_article && !modifiers.any(|stem| has_stem(asked, stem) || means(stem, modifier))
        };
        let mut places = (0..self.words.len()).filter(is_noun).peekable();
        places.peek().is_some() && places.all(is_other) && !has_stem(self.words, modifier)
    }

    /// The preposition of the phrase that a noun is in: "of" for "kettle" in "the base of the red kettle".
    fn preposition(&self, noun: usize) -> Option<usize> {
        let lower = |at: usize| self.words[at].lower.as_str();
        let is_inside = |at: &usize| DETERMINERS.contains(&lower(*at)) || self.words[*at].stem.is_some();
        let at = (0..noun).rev().find(|at| !is_inside(at))?;
        OWNING.contains(&lower(at)).then_some(at)
    }

    /// Whether a noun that is not in the question is the subject of the verb, and the noun of the question is not in the sentence.
    fn has_other_subject(&self, topic: &Topic, asked: &[Word], verb: usize) -> bool {
        let is_noun = |word: &Word| word.stem.as_ref() == Some(&topic.noun);
        let is_helping = |word: &&Word| AUXILIARIES.contains(&word.lower.as_str()) || word.lower == "been";
        let end = verb - self.words[..verb].iter().rev().take_while(is_helping).count();
        let is_content = |word: &&Word| word.stem.is_some() && !word.capital && !word.number;
        let start = end - self.words[..end].iter().rev().take_while(is_content).count();
        let has_article = start.checked_sub(1).is_some_and(|at| is_determiner(&self.words[at]));
        let is_joined = end.checked_sub(1).is_some_and(|at| self.words[at].lower == "and");
        let subject: &[Word] = match is_joined {
            true => noun_phrase(self.words),
            false if has_article => &self.words[start..end],
            false => &[],
        };
        let is_known =
            |word: &Word| word.stem.as_ref().is_some_and(|stem| has_stem(asked, stem) || GENERIC.contains(stem));
        !GENERIC.contains(&topic.noun)
            && !self.words.iter().any(is_noun)
            && !subject.is_empty()
            && !subject.iter().any(is_known)
    }

    /// Whether a phrase of the question has another noun here. That of the same noun ("the warranty of the motor") counts anywhere in the
    /// part of the sentence with the answer, that of the same preposition alone only if it is before the answer and both are listed.
    fn has_other_phrase(&self, asked: &[Word], asked_clauses: &Clauses) -> bool {
        let mut here = phrases(self.words, self.clauses);
        here.retain(|phrase| !(phrase.at..phrase.end).contains(&self.place));
        phrases(asked, asked_clauses).iter().any(|phrase| {
            let same: Vec<&Phrase<'_>> = here.iter().filter(|other| other.preposition == phrase.preposition).collect();
            match same.iter().find(|other| other.has_noun_of(phrase)) {
                Some(own) => self.is_listed_with(phrase, own, &same),
                None => self.is_replaced(phrase, &same),
            }
        })
    }

    /// Whether the part of the sentence with the answer has no noun of a phrase of the question, which names something, and no pronoun for
    /// it. What follows "the number of" is what is asked for, and the last word of "How long does the strap of the bag last?" is a verb.
    fn lacks_phrase(&self, asked: &[Word], asked_clauses: &Clauses) -> bool {
        let has_auxiliary = |before: &[Word]| before.iter().any(|word| AUXILIARIES.contains(&word.lower.as_str()));
        let is_near = |at: usize| self.clauses.segment(at) == self.clauses.segment(self.place);
        let near = || (0..self.words.len()).filter(|at| is_near(*at)).map(|at| &self.words[at]);
        // "Its own" is of the same sentence.
        let is_own = |at: usize| self.words.get(at + 1).is_some_and(|next| next.lower == "own");
        let is_referring = |at: usize| REFERRING.contains(&self.words[at].lower.as_str()) && !is_own(at);
        let refers = (0..self.words.len()).any(|at| is_near(at) && is_referring(at));
        phrases(asked, asked_clauses).iter().any(|phrase| {
            let is_counted = phrase.preposition == "of"
                && phrase.owned.is_none()
                && phrase.at.checked_sub(2).is_none_or(|before| asked[before].stem.is_none());
            let ends_with_verb =
                phrase.nouns.len() > 1 && phrase.end == asked.len() && has_auxiliary(&asked[..phrase.at]);
            let nouns = &phrase.nouns[..phrase.nouns.len() - usize::from(ends_with_verb)];
            let stems = || nouns.iter().filter_map(|noun| noun.stem.as_ref());
            let is_noun = |word: &&Word| word.stem.as_ref().is_some_and(|stem| stems().any(|noun| noun == stem));
            let is_elsewhere = || self.words.iter().any(|word| is_noun(&word));
            !is_counted
                && phrase.sort() == Sort::Common
                && !stems().any(|stem| GENERIC.contains(stem))
                && !near().any(|word| is_noun(&word))
                && !refers
                && (phrase.has_article || is_elsewhere())
        })
    }

    /// Whether a noun of the question is in the sentence only behind "without" or the like, of which the question has none.
    fn excludes(&self, asked: &[Word]) -> bool {
        let is_excluding = |word: &Word| matches!(word.lower.as_str(), "without" | "except" | "excluding");
        let is_excluded = |at: usize| {
            let is_inside = |word: &&Word| is_determiner(word) || word.stem.is_some() && !is_excluding(word);
            self.words[..at].iter().rev().find(|word| !is_inside(word)).is_some_and(is_excluding)
        };
        let is_only_excluded = |stem: &String| {
            let mut places = (0..self.words.len()).filter(|at| self.words[*at].stem.as_ref() == Some(stem)).peekable();
            places.peek().is_some() && places.all(is_excluded)
        };
        !asked.iter().any(is_excluding) && asked.iter().filter_map(|word| word.stem.as_ref()).any(is_only_excluded)
    }

    /// Whether two words of the question have another word between them in the sentence, which lacks the one of the question, and the two do
    /// not mean the same; or the sentence has "another" where the question has "same".
    fn replaces(&self, asked: &[Word]) -> bool {
        let is_plain = |word: &Word| word.stem.is_some() && !word.capital && !word.number;
        let has = |words: &[Word], lower: &str| words.iter().any(|word| word.lower == lower);
        let is_replaced = |own: &[Word]| {
            let Some(stem) = own[1].stem.as_ref().filter(|_| is_plain(&own[1]) && is_plain(&own[2])) else {
                return false;
            };
            let is_in_place = |at: usize| {
                let other = &self.words[at..at + 3];
                let has_stem_of = |at: usize| own[at].stem.is_some() && own[at].stem == other[at].stem;
                let is_alike = |at: usize| own[at].lower == other[at].lower || has_stem_of(at);
                at + 1 != self.place
                    && is_plain(&other[1])
                    && (is_alike(0) && is_alike(2))
                    && other[1].stem.as_ref().is_some_and(|other| !means(other, stem) && !has_stem(asked, other))
            };
            (own[0].stem.is_some() || own[0].number)
                && !has_stem(self.words, stem)
                && (0..self.words.len().saturating_sub(2)).any(is_in_place)
        };
        let is_another = has(asked, "same") && !has(self.words, "same") && has(self.words, "another");
        is_another || asked.windows(3).any(is_replaced)
    }

    /// Whether the sentence lacks a word that is between a rank or a superlative and a noun in the question, and has these two
    /// beside each other. "The largest known spider" is the largest one.
    fn omits(&self, asked: &[Word]) -> bool {
        let is_plain = |word: &Word| word.stem.is_some() && !word.capital && !word.number;
        let is_highest = |lower: &str| is_rank(lower) || lower.ends_with("est") || matches!(lower, "last" | "only");
        asked.windows(3).any(|own| {
            let is_pair = |pair: &[Word]| pair[0].lower == own[0].lower && pair[1].stem == own[2].stem;
            is_highest(&own[0].lower)
                && is_plain(&own[1])
                && is_plain(&own[2])
                && own[1].lower != "known"
                && own[1].stem.as_ref().is_some_and(|stem| !has_stem(self.words, stem))
                && self.words.windows(2).any(is_pair)
        })
    }

    /// Whether all phrases of the same noun have another one behind the same preposition, in the part of the sentence with the answer.
    fn is_replaced(&self, phrase: &Phrase<'_>, same: &[&Phrase<'_>]) -> bool {
        let mut of_noun = same.iter().filter(|other| phrase.owned.is_some() && other.owned == phrase.owned).peekable();
        let is_near = |at: usize| self.clauses.segment(at) == self.clauses.segment(self.place);
        of_noun.peek().is_some() && of_noun.all(|other| is_near(other.at) && other.is_in_place_of(phrase))
    }

    /// Whether the last phrase with the same preposition before the answer is another one than that of the question, with which it is
    /// listed.
    fn is_listed_with(&self, phrase: &Phrase<'_>, own: &Phrase<'_>, same: &[&Phrase<'_>]) -> bool {
        let Some(last) = same.iter().rfind(|other| other.at < self.place) else { return false };
        let later = own.at.max(last.at);
        let before = later.checked_sub(1).map_or("", |at| self.words[at].lower.as_str());
        let is_listed = self.clauses.follows_mark(later) || matches!(before, "and" | "or" | "but");
        is_listed && last.is_in_place_of(phrase)
    }
}

/// A noun behind a preposition.
struct Phrase<'a> {
    preposition: &'a str,
    /// Where the preposition is, and where the phrase ends.
    at: usize,
    end: usize,
    /// The stem of the noun before the preposition; none for those of which the next noun is what counts, as in "number of".
    owned: Option<&'a String>,
    /// The words behind the preposition without articles.
    nouns: &'a [Word],
    /// Whether an article or an owner is before the words.
    has_article: bool,
}

/// Sorts of nouns that do not replace one another: a place is no time.
#[derive(PartialEq, Eq)]
enum Sort {
    Name,
    Time,
    Common,
}

/// The phrases of a text; "the pump's warranty" has that of "the warranty of the pump".
fn phrases<'a>(words: &'a [Word], clauses: &Clauses) -> Vec<Phrase<'a>> {
    let read = |at: usize| {
        let start = at + 1 + words[at + 1..].iter().take_while(|word| is_determiner(word)).count();
        let first = words.get(start).filter(|first| first.stem.is_some())?;
        let goes_on = |other: &usize| {
            let word = &words[*other];
            let is_alike = match is_time(first) {
                true => is_time(word),
                false => word.capital == first.capital && !(word.capital && is_time(word)),
            };
            clauses.clause(*other) == clauses.clause(start) && word.stem.is_some() && is_alike && !is_past(&word.lower)
        };
        let end = start + 1 + (start + 1..words.len()).take_while(goes_on).count();
        let preposition = words[at].lower.as_str();
        // "To close" is no phrase.
        if preposition == "to" && start == at + 1 && !first.capital {
            return None;
        }
        let before = at.checked_sub(1).map(|before| &words[before]).filter(|before| !before.number);
        let owned = before.and_then(|before| before.stem.as_ref()).filter(|stem| !COUNTING.contains(*stem));
        Some(Phrase { preposition, at, end, owned, nouns: &words[start..end], has_article: start > at + 1 })
    };
    let read_owner = |at: usize| {
        let next = words.get(at + 1).filter(|next| !next.number && clauses.clause(at) == clauses.clause(at + 1))?;
        let owned = next.stem.as_ref().filter(|_| words[at].stem.is_some())?;
        let has_article = at.checked_sub(1).is_some_and(|before| is_determiner(&words[before]));
        Some(Phrase { preposition: "of", at, end: at + 1, owned: Some(owned), nouns: &words[at..=at], has_article })
    };
    let read_at = |at: usize| match words[at].lower.as_str() {
        lower if OWNING.contains(&lower) => read(at),
        lower if lower.ends_with("'s") => read_owner(at),
        _ => None,
    };
    (0..words.len()).filter_map(read_at).collect()
}

impl Phrase<'_> {
    fn sort(&self) -> Sort {
        let first = &self.nouns[0];
        // "The Tenant" of a contract is no name.
        let is_common = || self.has_article && self.nouns.len() == 1 && !first.acronym;
        match is_time(first) {
            true => Sort::Time,
            false if first.capital && !is_common() => Sort::Name,
            false => Sort::Common,
        }
    }

    fn has_noun_of(&self, other: &Phrase<'_>) -> bool {
        self.nouns.iter().filter_map(|noun| noun.stem.as_ref()).any(|stem| has_stem(other.nouns, stem))
    }

    /// Whether its noun is another one than that of a phrase of the question, of the same sort.
    fn is_in_place_of(&self, asked: &Phrase<'_>) -> bool {
        let is_generic = |noun: &Word| noun.stem.as_ref().is_some_and(|stem| GENERIC.contains(stem));
        // "The US" and "the United States" are one.
        let has_acronym = |phrase: &Phrase<'_>| phrase.nouns.iter().any(|noun| noun.acronym);
        self.sort() == asked.sort()
            && has_acronym(self) == has_acronym(asked)
            && !self.has_noun_of(asked)
            && !self.nouns.iter().chain(asked.nouns).any(is_generic)
    }
}

/// "Cook it for six minutes; the mussels come in later" does not tell how long the mussels are cooked. A pronoun that the sentence
/// begins with may refer to the noun.
fn is_behind_semicolon(noun: &str, given: &[Word], sentence: &str, answer: &Range<usize>) -> bool {
    if given.first().is_some_and(|first| SUBJECTS.contains(&first.lower.as_str())) {
        return false;
    }
    let Some(mark) = sentence[answer.end..].find(';').map(|at| answer.end + at) else { return false };
    let mut places = given.iter().filter(|word| word.stem.as_deref() == Some(noun)).peekable();
    places.peek().is_some() && places.all(|word| word.range.start > mark)
}

fn is_be(word: &Word) -> bool {
    FORMS_OF_BE.contains(&word.lower.as_str())
}

fn is_determiner(word: &Word) -> bool {
    DETERMINERS.contains(&word.lower.as_str())
}

/// Whether a word is a number, a month or a day of the week.
fn is_time(word: &Word) -> bool {
    word.number || MONTHS.contains(&word.lower.as_str()) || weekday(&word.lower).is_some()
}

fn has_stem(words: &[Word], stem: &str) -> bool {
    words.iter().any(|word| word.stem.as_deref() == Some(stem))
}

/// Whether two stems before a noun mean the same: "the primary source" is "the main source".
fn means(stem: &str, other: &str) -> bool {
    SYNONYMS.iter().any(|group| group.contains(stem) && group.contains(other))
}

/// Pronouns for things and persons that may be those of a phrase.
const REFERRING: [&str; 8] = ["it", "its", "they", "their", "them", "this", "these", "such"];

/// Prepositions between a thing and what it is of or for.
const OWNING: [&str; 7] = ["of", "for", "from", "in", "on", "to", "with"];

/// Nouns that what follows is of without being another thing: "the price of the kettle", "the ticket for the ferry", "a group of men".
static SAME: LazyLock<HashSet<String>> = LazyLock::new(|| {
    stems("charge cost crowd fare fee group kind lot majority model number pair price sort team ticket type version")
});

/// Words before a noun that mean the same.
static SYNONYMS: LazyLock<Vec<HashSet<String>>> = LazyLock::new(|| {
    let groups = [
        "central chief key leading main major primary principal",
        "big biggest great greatest large largest",
        "high highest tall tallest",
        "entire overall total whole",
        "final last",
        "annual yearly",
        "common normal typical usual",
        "first initial original",
        "acceptance admission",
    ];
    groups.into_iter().map(stems).collect()
});

/// Nouns before "of" that only count or name what follows.
static COUNTING: LazyLock<HashSet<String>> = LazyLock::new(|| {
    stems(
        "amount average kind lot majority name number pair part percent percentage proportion rate share sort total type",
    )
});

/// Nouns that often refer to what another noun names.
pub(super) static GENERIC: LazyLock<HashSet<String>> = LazyLock::new(|| {
    stems(
        "act agency agreement animal appliance area battle bird boat book boy building car child children church city \
        company conflict contract country couple device document event facility family film firm game girl group house \
        institution island item king lady leader machine man men movie novel object organisation organization pair people \
        person place plant president process product programme project queen region river road school ship site song \
        story street structure study system team temple thing tool town tree unit vehicle village war woman women work",
    )
});
