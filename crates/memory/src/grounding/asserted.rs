//! Words that a sentence holds without asserting what they say: the complement of a verb or a noun of speech, thought
//! or intention ("denied that", "the plan to"), what someone considers something to be, all that depends on a condition or on a
//! source ("if", "according to", "some say"), one of several things that are joined by "or", what only another does, and what
//! a verb states of a noun that only has the noun of a claim in its phrase: "The wife of the mayor died" does not state that
//! the mayor died.
//!
//! English only. What the claim has itself opens nothing: "Ann denied that Bob left" supports itself.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use super::claims::{DETERMINERS, PREPOSITIONS, SUBJECTS, is_verb};
use super::negation::{Clauses, JOINING};
use super::predicates::{subject_start, verbs};
use super::question::FORMS_OF_BE;
use super::words::{Word, is_past, stem, words};

/// The least share of the words of a claim that are not asserted, by which the claim is not.
const OPEN_SHARE: f32 = 0.5;

/// Whether a sentence holds a claim, or an answer to a question, without asserting it. `answer` has the stems of the answer, if
/// the claim is a question with one.
pub(super) fn is_open(claim: &[Word], answer: &BTreeSet<String>, given: &[Word], clauses: &Clauses) -> bool {
    if is_alternative(claim, given, clauses) || is_reserved(claim, given, clauses) {
        return true;
    }
    let open = unasserted(claim, given, clauses);
    let is_at = |at: usize, stem: &String| given[at].stem.as_ref() == Some(stem);
    let is_found = |stem: &String| (0..given.len()).any(|at| is_at(at, stem));
    let is_only_open = |stem: &String| (0..given.len()).all(|at| open[at] || !is_at(at, stem));
    let answered: Vec<&String> = answer.iter().filter(|stem| is_found(stem)).collect();
    if !answered.is_empty() && answered.into_iter().all(&is_only_open) {
        return true;
    }
    // A name before the verb can be outside of the clause that tells something of it.
    let verb = (0..claim.len()).find(|at| is_verb(claim, *at, &|_| true)).unwrap_or(claim.len());
    let is_plain = |at: usize, word: &Word| at == 0 || at > verb || !word.capital;
    let plain = claim.iter().enumerate().filter(|(at, word)| is_plain(*at, word)).map(|(_, word)| word);
    let stems: BTreeSet<&String> = plain.filter_map(|word| word.stem.as_ref()).filter(|stem| is_found(stem)).collect();
    let only_open = stems.iter().filter(|stem| is_only_open(stem)).count();
    only_open > 0 && only_open as f32 >= OPEN_SHARE * stems.len() as f32
}

/// Whether a claim without "or" has a word that a sentence about the past joins with another one by "or": "Ann or Bob
/// won" does not state that Ann won. A negation denies both of them.
fn is_alternative(claim: &[Word], given: &[Word], clauses: &Clauses) -> bool {
    let has_one = |words: &[Word], list: &[&str]| words.iter().any(|word| list.contains(&word.lower.as_str()));
    let is_of_the_past = has_one(given, &PAST) || given.iter().any(|word| is_past(&word.lower));
    if clauses.any() || !is_of_the_past || has_one(given, &PRESENT) || has_one(claim, &["or"]) {
        return false;
    }
    let is_content = |at: usize| given.get(at).is_some_and(|word| word.stem.is_some());
    let joins_phrase = |at: usize| {
        let lower = given[at].lower.as_str();
        DETERMINERS.contains(&lower) || PREPOSITIONS.contains(&lower)
    };
    let is_said = |at: usize| claim.iter().any(|own| own.stem == given[at].stem);
    (1..given.len().saturating_sub(1)).filter(|or| given[*or].lower == "or" && !clauses.follows_mark(*or)).any(|or| {
        let behind = or + 1 + usize::from(joins_phrase(or + 1));
        is_content(or - 1) && is_content(behind) && (is_said(or - 1) || is_said(behind))
    })
}

/// Whether a word of a claim is in a sentence only in a clause of what alone does something, and the claim lacks that: "Guests
/// have an account, and only members may log in" does not state that guests may log in.
fn is_reserved(claim: &[Word], given: &[Word], clauses: &Clauses) -> bool {
    let begins = |at: usize| {
        let before = at.checked_sub(1);
        before.is_none_or(|before| {
            clauses.clause(before) != clauses.clause(at) || JOINING.contains(&given[before].lower.as_str())
        })
    };
    let is_said = |word: &Word| claim.iter().any(|own| own.stem == word.stem);
    let is_of_another = |only: &usize| {
        let is_article = |word: &&Word| DETERMINERS.contains(&word.lower.as_str()) || word.number;
        let phrase: Vec<&Word> = given[only + 1..].iter().skip_while(is_article).collect();
        let mut names = phrase.iter().skip(1).take_while(|word| word.capital && word.stem.is_some());
        given[*only].lower == "only"
            && begins(*only)
            && phrase.first().is_some_and(|noun| noun.stem.is_some() && !noun.lower.ends_with("ly") && !is_said(noun))
            && !names.any(|name| is_said(name))
    };
    (0..given.len()).filter(is_of_another).any(|only| {
        claim.iter().filter(|own| own.stem.is_some()).any(|own| {
            let mut places = (0..given.len()).filter(|at| given[*at].stem == own.stem).peekable();
            places.peek().is_some() && places.all(|at| clauses.clause(at) == clauses.clause(only))
        })
    })
}

/// Whether a sentence holds an answer to a question without asserting it.
pub(super) fn is_open_answer(question: &str, answer: &str, sentence: &str) -> bool {
    let (mut claim, answer, given) = (words(question), words(answer), words(sentence));
    let stems = answer.iter().filter_map(|word| word.stem.clone()).collect();
    claim.extend(answer);
    is_open(&claim, &stems, &given, &Clauses::read(&given, sentence))
}

/// Whether the words of a claim are, one after the other, a whole main clause of a sentence: from its beginning, or behind a phrase
/// without a verb, to its end.
pub(super) fn is_main_clause(claim: &[Word], given: &[Word], clauses: &Clauses) -> bool {
    let has_verb = |mut range: Range<usize>| range.any(|at| is_verb(given, at, &|_| true));
    let is_joint = |at: usize| matches!(given[at].lower.as_str(), "and" | "but");
    let begins = |start: usize| {
        let of_segment = |at: &usize| clauses.segment(*at) == clauses.segment(start);
        let first = (0..start).find(of_segment).unwrap_or(start);
        let is_joining = first > 0 && JOINING.contains(&given[first].lower.as_str());
        start <= first + usize::from(is_joining)
            || is_joint(start - 1) && has_verb(first..start)
            || clauses.follows_mark(start) && !has_verb(first..start)
    };
    let ends = |end: usize| {
        end == given.len()
            || clauses.segment(end) != clauses.segment(end - 1)
            || is_joint(end) && has_verb(end..given.len())
    };
    let is_here = |run: &[Word]| run.iter().zip(claim).all(|(a, b)| a.lower == b.lower);
    let mut runs = given.windows(claim.len().max(1)).enumerate().filter(|(_, run)| is_here(run));
    runs.any(|(start, run)| begins(start) && ends(start + run.len()))
}

/// Of each word of a sentence, whether it is not asserted, read for a claim.
fn unasserted(claim: &[Word], given: &[Word], clauses: &Clauses) -> Vec<bool> {
    let mut open = vec![false; given.len()];
    let is_same = |own: &Word, at: usize| {
        given.get(at).is_some_and(|word| own.lower == word.lower || own.stem.is_some() && own.stem == word.stem)
    };
    let is_said = |at: usize| match FORMS_OF_BE.contains(&given[at].lower.as_str()) {
        true => claim.windows(2).any(|pair| is_same(&pair[0], at) && is_same(&pair[1], at + 1)),
        // Numbers are compared by their values.
        false => claim.iter().any(|own| is_same(own, at) || own.number && given[at].number),
    };
    let equates = claim.iter().any(|word| FORMS_OF_BE.contains(&word.lower.as_str()));
    for at in (0..given.len()).filter(|at| !is_said(*at)) {
        let opinion = if equates { opinion(given, clauses, at) } else { Vec::new() };
        for place in complement(given, clauses, at).into_iter().chain(opinion) {
            open[place] = true;
        }
    }
    let verbs = all_verbs(given, clauses);
    for (index, &verb) in verbs.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| verbs[before]);
        let heads = heads(given, clauses, verb, before);
        if !heads.is_empty() && !heads.into_iter().any(is_said) {
            let next = verbs.get(index + 1).copied().unwrap_or(given.len());
            let is_here = |at: &usize| {
                clauses.segment(*at) == clauses.segment(verb) && !is_relative_end(given, clauses, verb, *at)
            };
            (verb..next).take_while(is_here).for_each(|at| open[at] = true);
        }
    }
    open
}

/// The verbs of a sentence. In a clause that begins with a conjunction and has no other, a past form is one even before a noun:
/// "because his wife hated sailing".
fn all_verbs(given: &[Word], clauses: &Clauses) -> Vec<usize> {
    let known = verbs(given, clauses);
    let found = (0..clauses.count()).flat_map(|clause| {
        let own = (0..given.len()).filter(|at| clauses.clause(*at) == clause);
        let mut of_clause: Vec<usize> = known.iter().copied().filter(|at| clauses.clause(*at) == clause).collect();
        if of_clause.is_empty() && SUBORDINATING.iter().any(|word| clauses.begins_with(clause, given, word)) {
            of_clause.extend(own.skip(1).find(|at| is_past(&given[*at].lower)));
        }
        of_clause
    });
    found.collect()
}

/// Whether a mark at a place ends the relative clause of a verb.
fn is_relative_end(given: &[Word], clauses: &Clauses, verb: usize, at: usize) -> bool {
    let is_relative = RELATIVE.iter().any(|word| clauses.begins_with(clauses.clause(verb), given, word));
    at > verb && is_relative && clauses.follows_mark(at)
}

/// The words that the word at a place opens.
fn complement(given: &[Word], clauses: &Clauses, at: usize) -> Vec<usize> {
    let lower = |at: usize| given.get(at).map_or("", |word| word.lower.as_str());
    let of_segment = |from: usize| -> Vec<usize> {
        let is_here = |other: &usize| {
            clauses.segment(*other) == clauses.segment(at) && !is_relative_end(given, clauses, at, *other)
        };
        (from..given.len()).take_while(is_here).collect()
    };
    let whole = || (0..given.len()).filter(|other| clauses.segment(*other) == clauses.segment(at)).collect();
    let begins = at == 0 || clauses.segment(at - 1) != clauses.segment(at);
    let is_condition = match lower(at) {
        "if" | "unless" => true,
        "provided" => begins || lower(at + 1) == "that" || clauses.follows_mark(at),
        "case" => {
            at > 0 && lower(at - 1) == "in" && (lower(at + 1) == "of" || given.get(at + 1).is_some_and(is_subject))
        }
        "had" | "should" => begins && given.get(at + 1).is_some_and(|next| next.stem.is_some() || is_subject(next)),
        _ => false,
    };
    match lower(at) {
        "according" if lower(at + 1) == "to" => return whole(),
        _ if is_comment(given, clauses, at) => return whole(),
        // "Karl acted as though he had won."
        "though" if at > 0 && lower(at - 1) == "as" => return of_segment(at),
        "whether" => return of_segment(at),
        "if" if clauses.follows_mark(at) && !begins && is_aside(given, clauses, at) => return Vec::new(),
        // "Ann went to see if Tom was ill."
        "if" if at > 0 && has(&ASKS, &given[at - 1]) => return of_segment(at),
        _ if is_condition => return whole(),
        _ => (),
    }
    let word = &given[at];
    let next = at + 1;
    if has(&REPORTS, word) {
        let is_infinite = lower(next) == "to" && matches!(lower(next + 1), "be" | "have");
        // "Tom said Lisa had stolen it."
        let has_subject =
            || given.get(next).is_some_and(|next| next.capital && next.stem.is_some() || is_subject(next));
        let has_verb = || {
            let is_here = |at: &usize| clauses.clause(*at) == clauses.clause(next) && !clauses.follows_mark(*at);
            (next + 1..given.len()).take_while(is_here).any(|at| is_verb(given, at, &|_| true))
        };
        // "It was believed in Rome that"
        let mut behind = (next..given.len().min(next + BETWEEN)).take_while(|at| !clauses.follows_mark(*at));
        let is_verb = |at: usize| at < given.len() && is_verb(given, at, &|_| true);
        let begins = |that: &usize| *that == next || !(next..*that).any(is_verb) && !is_verb(that + 1);
        let that = behind.find(|at| lower(*at) == "that").filter(begins);
        let is_gerund = given.get(next).is_some_and(is_gerund);
        if let Some(that) = that {
            return of_segment(that);
        }
        if is_infinite || is_gerund || next < given.len() && !clauses.follows_mark(next) && has_subject() && has_verb()
        {
            return of_segment(next);
        }
    }
    // "Too tired to sell it"
    let is_aim = has(&AIMS, word) || lower(at) == "too";
    // "was to be opened", but not "its role is to take evidence" nor "was to the north"
    let is_before = match lower(at) {
        "about" | "eager" | "forward" | "going" | "keen" | "ready" | "reluctant" | "unwilling" | "was" | "were"
        | "willing" => true,
        "is" | "are" => lower(next + 1) == "be",
        _ => false,
    };
    let is_destined = is_before && lower(next) == "to" && is_infinitive(given, next + 1);
    let to = if is_destined { Some(next) } else { is_aim.then(|| aim(given, clauses, at)).flatten() };
    let Some(to) = to else { return Vec::new() };
    let is_here = |other: &usize| {
        let is_finite =
            FINITE.contains(&lower(*other)) || is_verb(given, *other, &|_| true) && !is_past_after(given, *other);
        clauses.clause(*other) == clauses.clause(to) && !(*other > to + 1 && is_finite)
    };
    (to..given.len()).take_while(is_here).collect()
}

/// Whether the clause of an "if" behind a mark is no condition: "Jim sold it, if I remember", "most of it, if not all".
fn is_aside(given: &[Word], clauses: &Clauses, at: usize) -> bool {
    let is_here = |other: &usize| clauses.clause(*other) == clauses.clause(at);
    let clause: Vec<&Word> = (at + 1..given.len()).take_while(is_here).map(|other| &given[other]).collect();
    match clause.first() {
        Some(first) if is_subject(first) => {
            matches!(first.lower.as_str(), "i" | "we" | "you") && clause.iter().any(|word| has(&ASIDES, word))
        }
        _ => clause.iter().filter(|word| word.stem.is_some()).count() < 2,
    }
}

/// The words of the clause of a verb that only tell what someone thinks that something is: "Ann considers Tom the best", "Tom is
/// regarded as the best". In the active those behind the verb.
fn opinion(given: &[Word], clauses: &Clauses, at: usize) -> Vec<usize> {
    let lower = |at: usize| given[at].lower.as_str();
    let clause: Vec<usize> = (0..given.len()).filter(|other| clauses.clause(*other) == clauses.clause(at)).collect();
    let is_opinion = match lower(at) {
        "consider" | "considers" | "considered" | "deem" | "deems" | "deemed" => true,
        "regard" | "regards" | "regarded" => clause.iter().any(|other| *other > at && lower(*other) == "as"),
        // "The process is called osmosis" is a name.
        "call" | "calls" | "called" => at > 0 && (given[at - 1].capital || SUBJECTS.contains(&lower(at - 1))),
        _ => false,
    };
    let is_passive = clause.iter().any(|other| *other < at && FORMS_OF_BE.contains(&lower(*other)));
    clause.into_iter().filter(|other| is_opinion && (is_passive || *other > at)).collect()
}

/// Whether a past form is behind an auxiliary and belongs to it.
fn is_past_after(given: &[Word], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| matches!(given[before].lower.as_str(), "be" | "been" | "have"))
}

/// Where what an aim is about begins: "to", "of" or "from" before a verb, with an object between ("suspected Max of
/// taking it"), "for", or a form of a verb in "-ing".
fn aim(given: &[Word], clauses: &Clauses, at: usize) -> Option<usize> {
    let is_between = |place: &usize| clauses.clause(*place) == clauses.clause(at) && *place <= at + BETWEEN;
    let to = (at + 1..given.len()).take_while(is_between).find(|place| match given[*place].lower.as_str() {
        "to" => is_infinitive(given, place + 1),
        "for" | "on" => *place == at + 1,
        "of" | "from" => given.get(place + 1).is_some_and(|next| next.lower.ends_with("ing")),
        _ => *place == at + 1 && is_gerund(&given[*place]),
    })?;
    let is_object = |place: usize| !PREPOSITIONS.contains(&given[place].lower.as_str());
    (at + 1..to).all(is_object).then_some(to)
}

/// Whether a word has the form of a verb in "-ing"; "during" has none.
fn is_gerund(word: &Word) -> bool {
    let is_verb = word.stem.is_some() || matches!(word.lower.as_str(), "being" | "having");
    is_verb && word.lower.len() > 4 && word.lower.ends_with("ing")
}

/// Whether the clause of a word is a subject with this verb of report, between marks: "The castle, some say, was built
/// in 1210." Beside direct speech it only names the speaker.
fn is_comment(given: &[Word], clauses: &Clauses, at: usize) -> bool {
    let Some(first) = (0..at).find(|other| clauses.clause(*other) == clauses.clause(at)) else { return false };
    let (verb, before) = (&given[at], &given[at - 1]);
    let has_other = |list: &[&str]| list.contains(&given[first].lower.as_str());
    let is_apart =
        (first == 0 || clauses.follows_mark(first)) && (at + 1 == given.len() || clauses.follows_mark(at + 1));
    let is_clause = !has_other(&RELATIVE) && !has_other(&SUBORDINATING) && !has_other(&JOINING);
    // "The latest report" is no clause.
    let is_source = || {
        let lower = before.lower.as_str();
        let is_plural = lower.ends_with('s') && !lower.ends_with("'s");
        let is_noun = before.stem.is_some() && (before.capital || is_plural || is_past(&verb.lower));
        is_noun || SOURCES.contains(&lower) || FORMS_OF_BE.contains(&lower)
    };
    is_apart
        && is_clause
        && !has_other(&PREPOSITIONS)
        && !clauses.has_speech()
        && !verb.capital
        && has(&COMMENTS, verb)
        && is_source()
}

/// Whether the word behind "to" can be a verb: no name, article or number.
fn is_infinitive(given: &[Word], at: usize) -> bool {
    let is_phrase = |word: &Word| DETERMINERS.contains(&word.lower.as_str());
    given.get(at).is_some_and(|word| !word.capital && !word.number && !is_phrase(word))
}

/// The places of the words that the subject of a verb is about, if it has another noun in its phrase; else none.
fn heads(given: &[Word], clauses: &Clauses, verb: usize, before: Option<usize>) -> Vec<usize> {
    let start = subject_start(clauses, verb, before);
    let lower = |at: usize| given[at].lower.as_str();
    let content = |at: &usize| given[*at].stem.is_some() && !given[*at].number;
    // "The company that sued Arno won"
    let of_clause = (0..verb).find(|at| clauses.clause(*at) == clauses.clause(verb)).unwrap_or(verb);
    if RELATIVE.contains(&lower(of_clause)) && of_clause > 0 && !clauses.follows_mark(of_clause) {
        let is_first = before.is_none_or(|other| clauses.clause(other) != clauses.clause(verb));
        let has_subject = given[of_clause + 1].capital || is_subject(&given[of_clause + 1]);
        let is_own = of_clause + 1 == verb || is_first && has_subject;
        return if is_own { Vec::new() } else { antecedent(given, of_clause) };
    }
    if before.is_some_and(|other| clauses.clause(other) == clauses.clause(verb)) {
        return Vec::new();
    }
    let is_phrase = |at: usize| clauses.clause(at) == clauses.clause(verb) || lower(at) == "of";
    let group: Vec<usize> = (start..verb).filter(|at| is_phrase(*at)).collect();
    let Some(&first) = group.first() else { return Vec::new() };
    // "Everyone but Nils signed"
    let is_exception = lower(first) == "but"
        && first > 0
        && !clauses.follows_mark(first)
        && !(0..first).any(|at| is_verb(given, at, &|_| true));
    if is_exception {
        return (0..first).collect();
    }
    let owner = group.iter().position(|at| lower(*at).ends_with("'s") || OWNERS.contains(&lower(*at)));
    let of = group.iter().position(|at| lower(*at) == "of");
    match (owner, of) {
        (Some(owner), of) if of.is_none_or(|of| owner < of) => {
            let end = of.unwrap_or(group.len());
            group[owner + 1..end].iter().copied().filter(content).collect()
        }
        (_, Some(of)) => {
            let found: Vec<usize> = group[..of].iter().copied().filter(content).collect();
            let is_transparent =
                found.last().is_none_or(|last| has(&TRANSPARENT, &given[*last]) || *last + 1 != group[of]);
            // "Few of the members"
            let is_part = |at: &usize| {
                let is_inside = *at > 0 && PREPOSITIONS.contains(&lower(*at - 1));
                *at + 1 == group[of] && !is_inside && (given[*at].number || PARTS.contains(&lower(*at)))
            };
            let part = of.checked_sub(1).map(|before| group[before]).filter(is_part).filter(|_| found.is_empty());
            if is_transparent { part.into_iter().collect() } else { found }
        }
        _ => Vec::new(),
    }
}

fn antecedent(given: &[Word], relative: usize) -> Vec<usize> {
    (0..relative).rev().take_while(|at| given[*at].stem.is_some()).collect()
}

fn is_subject(word: &Word) -> bool {
    let lower = word.lower.as_str();
    SUBJECTS.contains(&lower) || DETERMINERS.contains(&lower)
}

fn has(list: &LazyLock<HashSet<String>>, word: &Word) -> bool {
    word.stem.as_ref().is_some_and(|stem| list.contains(stem))
}

/// The stems of the words of a list.
pub(super) fn stems(list: &str) -> HashSet<String> {
    list.split_ascii_whitespace().filter_map(stem).collect()
}

/// Verbs and nouns before a statement that is not that of the sentence.
static REPORTS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    stems(
        "accusation accuse allegation allege argue argument assert assertion assume assumption belief believe \
        charge claim conclude consider contend declare deny denial doubt dream estimate expect fear feel fiction \
        guess hope hypothesis idea imagine impression insist legend lie maintain myth notion opinion possibility \
        predict pretend promise propose recommend report rumor rumoured rumour say seem speculate state suggest \
        suggestion suppose suspect suspicion tell theory think threaten wish",
    )
});

/// Words before what is not done, not done any more, or only said to be.
static AIMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    stems(
        "accuse advise agree aim allege allow ask attempt authorise authorize avoid ban cease decide demand design \
        deter discourage encourage enough expect forbid forget hope intend intention invite need offer order permit \
        plan pledge postpone prepare prevent prohibit project promise proposal propose quit recommend refrain refuse \
        request require schedule seek seem slate stop suppose suspect threaten tell think try urge vow want wish",
    )
});

/// Verbs of report that need no complement: "some say".
static COMMENTS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    stems(
        "allege argue assert believe claim contend estimate guess insist report say speculate suggest suppose suspect \
        think",
    )
});

/// Verbs before "if" that only ask.
static ASKS: LazyLock<HashSet<String>> =
    LazyLock::new(|| stems("ask check decide doubt know learn question see sure tell test wonder"));

/// Verbs behind "if I" or "if you" in a clause that is no condition.
static ASIDES: LazyLock<HashSet<String>> =
    LazyLock::new(|| stems("like mistaken please prefer recall remember want wish"));

/// Nouns before "of" that are the same as what follows, or a number of it.
static TRANSPARENT: LazyLock<HashSet<String>> = LazyLock::new(|| {
    stems(
        "city town village state kingdom republic island province county district region river battle month year \
        group number lot majority pair couple series set kind type sort form dozens hundreds thousands millions \
        rest part",
    )
});

const RELATIVE: [&str; 3] = ["who", "which", "that"];

/// Conjunctions before a clause with a verb.
const SUBORDINATING: [&str; 6] = ["although", "because", "since", "though", "when", "whose"];

/// Words before a verb of report that are its subject.
const SOURCES: [&str; 13] =
    ["he", "she", "it", "they", "we", "i", "you", "some", "many", "most", "others", "people", "police"];

/// Words before "of" for a part of what follows, beside numbers.
const PARTS: [&str; 4] = ["few", "most", "much", "some"];

/// Verbs of a sentence about the past, and of one where both words that "or" joins can be meant: "Cards or coins are
/// accepted."
const PAST: [&str; 4] = ["was", "were", "had", "did"];
const PRESENT: [&str; 11] = ["is", "are", "has", "have", "can", "may", "must", "will", "should", "could", "would"];

/// Words before a noun that is another's.
const OWNERS: [&str; 5] = ["his", "her", "their", "its", "whose"];

/// Verbs that end what an aim is about.
const FINITE: [&str; 10] = ["is", "are", "was", "were", "has", "had", "will", "would", "failed", "did"];

/// The most words between an aim and its "to".
const BETWEEN: usize = 5;
