//! Choosing the short answer: the surface score of each candidate and, where there is one, a model's likelihood of it.
//!
//! score(c) = surface(c) + W * ln p(c, end | evidence, question) / chars(c)^A, where `end` is the end of the turn: without
//! it prefixes of an answer would win. Subtracting L * ln p(c, end | question), pointwise mutual information (Holtzman et
//! al. 2021, arXiv 2104.08315), was tried with L from 0 to 1: 0 was best, so the second call is not made. "Not in the
//! text" is scored like a candidate; how far the best one is ahead of it is part of the result.
//!
//! Where that leaves the choice open, a caller may have the model write an answer from the whole evidence and draft again
//! with it ([`Draft::with_reply`]): sentences that hold words of the reply rank higher, and score(c) grows by
//! [`weights::AGREEMENT`] times the F1 of the words of c and the new words of the reply. The answer is still a span.

use super::abstain;
use super::candidates::{self, Candidate, Place};
use super::features::Shape;
use super::passage::{Passage, Sentence};
use super::question::{Kind, Question};
use super::reading::Reading;
use super::verdict::{Checks, Verdict, verify};
use super::weights;
use super::words::words;

/// The reply that a model may give instead of a candidate.
pub const NOT_THERE: &str = "not in the text";

/// Candidates that a model is asked about.
const SCORED: usize = 16;

/// Sentences that a model is shown.
const SHOWN: usize = 5;

/// A short answer to a question.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct ShortAnswer {
    /// As the source has it; "yes" or "no" for a question of that kind.
    pub text: String,
    /// Where it is in the evidence, the best place first; for "yes" and "no" the sentence that decided it, or several that did so together.
    pub places: Vec<Place>,
    /// In natural-logarithm units; comparable within one question.
    pub score: f64,
    /// The probability that it is right, of a reading; of a span its share among the candidates.
    pub probability: f64,
}

/// The answers that were chosen.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Chosen {
    /// Best first: one, or several where the question asks for a list; none if nothing can be an answer.
    pub answers: Vec<ShortAnswer>,
    /// The probability that the evidence holds an answer; none where it is not fitted, for yes or no and for two that are compared without
    /// a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answerable: Option<f64>,
    /// The log-likelihood of the candidate that a model rates highest minus that of [`NOT_THERE`] (natural logarithms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// The answers that a model read, the most probable first; empty if spans were chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Reading>,
}

/// A question with its candidates, ready to be scored.
#[derive(Debug)]
pub struct Draft {
    question: Question,
    candidates: Vec<Candidate>,
    shown: Vec<Place>,
    /// The sentences, and how well each and those beside it match the question.
    contexts: Vec<(Place, f32)>,
    features: [f64; 8],
}

impl Draft {
    /// Reads a question and the evidence texts, which are in the order of retrieval.
    pub fn new(question: &str, evidence: &[&str]) -> Draft {
        Draft::read(question, Question::parse(question), evidence)
    }

    /// As [`new`](Self::new), with a model's own reply to the question.
    pub fn with_reply(question: &str, evidence: &[&str], reply: &str) -> Draft {
        Draft::read(question, Question::parse(question).with_reply(reply), evidence)
    }

    fn read(question: &str, parsed: Question, evidence: &[&str]) -> Draft {
        let passage = Passage::read(&parsed, evidence);
        let candidates = match parsed.kind {
            Kind::Polar => polar(question, evidence, &passage),
            _ => candidates::propose(&parsed, &passage, candidates::MOST),
        };
        let place = |s: &Sentence| Place { text: s.text, start: s.range.start, end: s.range.end };
        let shown = passage.sentences.iter().filter(|sentence| sentence.rank < SHOWN).map(place).collect();
        let contexts = passage.sentences.iter().map(|sentence| (place(sentence), sentence.context)).collect();
        let features = abstain::features(&parsed, &passage, &candidates);
        Draft { question: parsed, candidates, shown, contexts, features }
    }

    /// The candidates, best first by surface score.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The sentences that a model should be shown, in the order of the evidence.
    pub fn shown(&self) -> &[Place] {
        &self.shown
    }

    /// The features of [`abstain`](super::ABSTENTION_FEATURES).
    pub fn features(&self) -> &[f64; 8] {
        &self.features
    }

    /// How well the sentence that a place begins in, and those beside it, match the question: the share of its terms, weighted
    /// by rarity, with half of what is beside it; 0 outside of sentences.
    pub fn context(&self, place: &Place) -> f64 {
        let holds =
            |sentence: &Place| sentence.text == place.text && (sentence.start..sentence.end).contains(&place.start);
        self.contexts.iter().find(|(sentence, _)| holds(sentence)).map_or(0.0, |(_, context)| f64::from(*context))
    }

    /// The sentences of these places that match the question best, each with the index of its place, best first; of places that are one
    /// sentence none. Of equals the one of the earlier place is first.
    pub fn sentences_of(&self, places: &[Place], most: usize) -> Vec<(usize, Place)> {
        let mut found: Vec<(usize, Place, f32)> = Vec::new();
        for (at, whole) in places.iter().enumerate() {
            let within = self.contexts.iter().filter(|(sentence, _)| whole.holds(sentence));
            let within: Vec<_> = within.map(|(sentence, context)| (at, *sentence, *context)).collect();
            if within.len() > 1 {
                found.extend(within);
            }
        }
        found.sort_by(|(.., a), (.., b)| b.total_cmp(a));
        found.truncate(most);
        found.into_iter().map(|(at, sentence, _)| (at, sentence)).collect()
    }

    /// The logarithm of the share that candidates overlapping these places have among all, by surface features, at
    /// least -10.
    pub fn share(&self, places: &[Place]) -> f64 {
        let overlaps = |candidate: &Candidate| candidate.places.iter().any(|a| places.iter().any(|b| a.overlaps(b)));
        let top = self.candidates.first().map_or(0.0, |candidate| candidate.surface);
        let weight = |candidate: &Candidate| f64::from(candidate.surface - top).exp();
        let overlapping: f64 = self.candidates.iter().filter(|candidate| overlaps(candidate)).map(weight).sum();
        let all: f64 = self.candidates.iter().map(weight).sum();
        (overlapping / all.max(f64::MIN_POSITIVE)).ln().max(-10.0)
    }

    /// The share of the content words of an answer that are words of the question.
    pub fn echo(&self, answer: &str) -> f64 {
        self.question.echo(&words(answer))
    }

    /// The texts that a model should score: the best candidates and, last, [`NOT_THERE`].
    pub fn continuations(&self) -> Vec<String> {
        let best = self.candidates.iter().take(SCORED);
        let one_line = |candidate: &Candidate| candidate.text.split_whitespace().collect::<Vec<_>>().join(" ");
        best.map(one_line).chain([NOT_THERE.to_owned()]).collect()
    }

    /// Chooses by surface scores alone, or with the likelihood of each of [`continuations`](Self::continuations): its
    /// log-probability and that of its end, summed, in natural logarithms.
    ///
    /// # Panics
    /// If there are not as many likelihoods as continuations.
    pub fn choose(&self, likelihoods: Option<&[f64]>) -> Chosen {
        let scored = match likelihoods {
            Some(_) => &self.candidates[..self.candidates.len().min(SCORED)],
            None => &self.candidates[..],
        };
        assert!(likelihoods.is_none_or(|all| all.len() == scored.len() + 1), "one likelihood for each continuation");
        let scores: Vec<f64> = scored
            .iter()
            .enumerate()
            .map(|(at, candidate)| mixed(candidate, likelihoods.map(|likelihoods| likelihoods[at])))
            .collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - top).exp()).sum();
        let mut answers: Vec<ShortAnswer> = scored
            .iter()
            .zip(&scores)
            .map(|(candidate, score)| ShortAnswer {
                text: candidate.text.clone(),
                places: candidate.places.clone(),
                score: *score,
                probability: (score - top).exp() / total,
            })
            .collect();
        answers.sort_by(|a, b| b.score.total_cmp(&a.score));
        let margin = likelihoods.and_then(<[f64]>::split_last).map(|(not_there, rest)| {
            let best = rest.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            best - not_there
        });
        let answerable = match self.question.kind {
            _ if scored.is_empty() => Some(0.0),
            Kind::Polar => None,
            _ => Some(abstain::answerable(&self.features)),
        };
        let most = if self.question.is_list { MAX_OF_LIST } else { 1 };
        Chosen { answers: non_overlapping(answers, most), answerable, margin, readings: Vec::new() }
    }
}

/// The score of a candidate from its surface and a model's likelihood.
fn mixed(candidate: &Candidate, likelihood: Option<f64>) -> f64 {
    let surface = f64::from(candidate.surface);
    likelihood.map_or(surface, |likelihood| {
        let chars = candidate.text.chars().count().max(1) as f64;
        surface + weights::MODEL * likelihood / chars.powf(weights::LENGTH_POWER)
    })
}

/// Most answers of a question that asks for a list, and how far behind the best one they may be.
const MAX_OF_LIST: usize = 6;
const LIST_MARGIN: f64 = 0.7;

/// The best answers that share no place, within the margin.
fn non_overlapping(answers: Vec<ShortAnswer>, most: usize) -> Vec<ShortAnswer> {
    let mut kept: Vec<ShortAnswer> = Vec::new();
    for answer in answers {
        if kept.len() == most || kept.first().is_some_and(|best| best.score - answer.score > LIST_MARGIN) {
            break;
        }
        let is_free = |kept: &ShortAnswer| !kept.places.iter().any(|a| answer.places.iter().any(|b| a.overlaps(b)));
        if kept.iter().all(is_free) {
            kept.push(answer);
        }
    }
    kept
}

/// "Yes" and "no", decided beforehand by whether the evidence supports the question as a statement.
fn polar(question: &str, evidence: &[&str], passage: &Passage<'_>) -> Vec<Candidate> {
    let statement = question.trim().trim_end_matches('?');
    let verdict = verify(statement, evidence, Checks::default());
    let best = passage.sentences.iter().find(|sentence| sentence.rank == 0);
    let best = best.map(|s| Place { text: s.text, start: s.range.start, end: s.range.end });
    let (yes, no, place) = match verdict {
        Verdict::Supported(place) => (1.0, 0.0, Some(place)),
        Verdict::Contradicted(place) => (0.0, 1.0, Some(place)),
        Verdict::Unsupported => (0.1, 0.0, best),
    };
    let candidate = |text: &str, surface: f32| Candidate {
        text: text.to_owned(),
        places: place.into_iter().collect(),
        shape: Shape::Word,
        surface,
        features: Vec::new(),
    };
    let mut both = vec![candidate("yes", yes), candidate("no", no)];
    both.sort_by(|a, b| b.surface.total_cmp(&a.surface));
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str = "Jim had sold the gold watch to buy the combs. Della paid $21 for a platinum chain on Monday.";

    fn best(question: &str) -> String {
        Draft::new(question, &[STORY]).choose(None).answers[0].text.clone()
    }

    #[test]
    fn the_same_evidence_is_rated_alike_in_every_run() {
        let text = "The lighthouse of Pell was built in 1871 by Martha Quill. The keeper Ada Brook bought a new lamp in Paris. \
            The ferry of Pell sailed to Harwick and the keeper of the harbour counted its lamps. ";
        let (question, texts) =
            ("Which keeper of the lighthouse of Pell bought a new lamp for the harbour?", [text; 3]);
        let rated = || {
            let draft =
                Draft::with_reply(question, &texts, "Ada Brook bought the new lamp of the lighthouse in Paris.");
            let surfaces: Vec<u32> = draft.candidates().iter().map(|candidate| candidate.surface.to_bits()).collect();
            let contexts: Vec<u32> = draft.contexts.iter().map(|(_, context)| context.to_bits()).collect();
            (draft.features().map(f64::to_bits), surfaces, contexts)
        };
        let first = rated();
        // Sets of the standard library have another order each time that they are made.
        assert!((0..20).all(|_| rated() == first));
    }

    #[test]
    fn the_type_of_the_question_decides_among_spans_of_one_sentence() {
        assert_eq!(best("How much did Della pay for the chain?"), "$21");
        assert_eq!(best("Who had sold the gold watch?"), "Jim");
        assert_eq!(best("Did Jim sell the watch?"), "yes");
        assert_eq!(best("Did Jim never sell the watch?"), "no");
    }

    #[test]
    fn the_sentences_that_match_best_are_those_of_longer_places() {
        let text = "Jim slept. Jim sold the watch. It rained. Who bought the watch?";
        let whole = |start: &str, end: &str| Place {
            text: 0,
            start: text.find(start).unwrap(),
            end: text.find(end).unwrap() + end.len(),
        };
        let draft = Draft::new("Who sold the watch?", &[text]);
        let found = |places: &[Place], most: usize| -> Vec<(usize, &str)> {
            let sentences = draft.sentences_of(places, most).into_iter();
            sentences.map(|(at, place)| (at, &text[place.start..place.end])).collect()
        };
        let places = [whole("It rained", "watch?"), whole("Jim slept", "sold the watch.")];
        assert_eq!(found(&places, 2), [(1, "Jim sold the watch."), (0, "It rained.")], "what is beside it counts half");
        assert_eq!(found(&places, 1), [(1, "Jim sold the watch.")]);
        assert!(found(&[whole("Jim sold", "sold the watch.")], 2).is_empty(), "it is one sentence");
        assert!(found(&[], 2).is_empty());
    }

    #[test]
    fn answers_are_bytes_of_the_source() {
        let draft = Draft::new("What did Jim buy?", &[STORY]);
        assert!(draft.candidates().len() > 5);
        for candidate in draft.candidates() {
            assert!(candidate.places.iter().any(|place| STORY[place.start..place.end] == candidate.text));
        }
    }

    #[test]
    fn a_model_that_is_sure_outvotes_the_surface() {
        let draft = Draft::new("What did Jim buy?", &[STORY]);
        let texts = draft.continuations();
        assert_eq!(texts.last().map(String::as_str), Some(NOT_THERE));
        let sure_of =
            |said: &str| texts.iter().map(|text| if text == said { 0.0 } else { -400.0 }).collect::<Vec<f64>>();
        let chosen = draft.choose(Some(&sure_of("combs")));
        assert_eq!(chosen.answers[0].text, "combs");
        assert_eq!(chosen.answers.len(), 1);
        assert_eq!(chosen.margin, Some(400.0));
        assert_eq!(draft.choose(Some(&sure_of(NOT_THERE))).margin, Some(-400.0));
    }

    #[test]
    fn lists_take_several_spans_that_do_not_overlap() {
        let text = "The teams Ajax, Porto and Celtic reached the final round.";
        let chosen = Draft::new("Which teams reached the final round?", &[text]).choose(None);
        for (at, a) in chosen.answers.iter().enumerate() {
            for b in &chosen.answers[at + 1..] {
                assert!(a.places[0].end <= b.places[0].start || b.places[0].end <= a.places[0].start);
            }
        }
        assert!(!chosen.answers.is_empty());
    }

    #[test]
    fn nothing_is_chosen_from_nothing() {
        let chosen = Draft::new("Who sold it?", &[]).choose(None);
        assert!(chosen.answers.is_empty());
        assert_eq!(chosen.answerable, Some(0.0));
    }
}
