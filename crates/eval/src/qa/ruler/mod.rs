//! RULER (Hsieh et al. 2024): thirteen tasks at any length, generated from a seed, or read from RULER's own files.
//!
//! The text is memorised and the prompt has only the question, as in GAM. Lengths count tokens of text, question and
//! answer under the model's own tokenizer.
//!
//! # Departures
//! * Public-domain novels in place of Paul Graham's essays, XQuAD's English paragraphs in place of SQuAD's.
//! * Each task has the rules of its own prompt for the answer, in our words; the beginning of the answer is not given.
//! * The worked examples of `vt` and `cwe` are not shown.
//! * Where more words are wanted for `cwe` than the lists have, they come from the novels.

mod aggregate;
mod materials;
mod needles;
mod official;
mod questions;
mod trace;

use std::ops::Range;

pub use materials::Materials;
pub(super) use official::load;

use super::case::{Case, Cases, Evidence, Question, document};
use crate::Random;

/// One of the thirteen tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// RULER's own name.
    pub name: &'static str,
    /// The group by which GAM reports.
    pub group: &'static str,
    /// Tokens kept for the answer.
    output_tokens: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Needles(needles::Needles),
    Trace,
    Common,
    Frequent,
    Squad,
    Hotpot,
}

/// A text to memorise, a question about it, and the values of a right answer.
pub(crate) struct Sample {
    pub text: String,
    pub question: String,
    pub golds: Vec<String>,
    /// Its span in the text.
    pub evidence: Vec<Range<usize>>,
}

const fn task(name: &'static str, group: &'static str, output_tokens: usize, kind: Kind) -> Task {
    Task { name, group, output_tokens, kind }
}

impl Task {
    /// All tasks, in RULER's order.
    pub const ALL: [Task; 13] = [
        task("niah_single_1", "retrieval", 128, Kind::Needles(needles::SINGLE_1)),
        task("niah_single_2", "retrieval", 128, Kind::Needles(needles::SINGLE_2)),
        task("niah_single_3", "retrieval", 128, Kind::Needles(needles::SINGLE_3)),
        task("niah_multikey_1", "retrieval", 128, Kind::Needles(needles::MULTIKEY_1)),
        task("niah_multikey_2", "retrieval", 128, Kind::Needles(needles::MULTIKEY_2)),
        task("niah_multikey_3", "retrieval", 128, Kind::Needles(needles::MULTIKEY_3)),
        task("niah_multivalue", "retrieval", 128, Kind::Needles(needles::MULTIVALUE)),
        task("niah_multiquery", "retrieval", 128, Kind::Needles(needles::MULTIQUERY)),
        task("vt", "tracing", 30, Kind::Trace),
        task("cwe", "aggregation", 120, Kind::Common),
        task("fwe", "aggregation", 50, Kind::Frequent),
        task("qa_1", "question answering", 32, Kind::Squad),
        task("qa_2", "question answering", 32, Kind::Hotpot),
    ];

    /// The task of a name.
    pub fn named(name: &str) -> Option<Task> {
        Task::ALL.into_iter().find(|task| task.name == name)
    }

    /// The rules for answers to this task: what RULER's own prompt says of the answer, in our words.
    pub fn answer_rules(self) -> &'static str {
        match self.kind {
            Kind::Needles(_) => NEEDLES_RULES,
            Kind::Trace => TRACE_RULES,
            Kind::Common => COMMON_RULES,
            Kind::Frequent => FREQUENT_RULES,
            Kind::Squad | Kind::Hotpot => QA_RULES,
        }
    }

    fn make(self, materials: &Materials, size: usize, length: usize, random: &mut Random) -> Sample {
        match self.kind {
            Kind::Needles(needles) => needles::make(needles, materials, size, random),
            Kind::Trace => trace::make(size, random),
            Kind::Common => aggregate::common(materials, size, length, random),
            Kind::Frequent => aggregate::frequent(size, length, random),
            Kind::Squad => questions::make(&materials.squad, size, random),
            Kind::Hotpot => questions::make(&materials.hotpot, size, random),
        }
    }
}

const NEEDLES_RULES: &str = "\
- The text hides sentences that give the special magic numbers, words or uuids of a key. Give every value of the keys that \
the question names, exactly as it is written.
- Give the values alone, separated by commas.";

const TRACE_RULES: &str = "\
- Follow the chain of assignments from the value on: VAR B = VAR A gives B the value of A. Every variable of the chain counts.
- Give the names of the variables alone, separated by commas.";

const COMMON_RULES: &str = "\
- Compare how often the words of the list occur, and give the ten that occur most often.
- Give the words alone, separated by commas.";

const FREQUENT_RULES: &str = "\
- Compare how often the coded words occur, and give the three that occur most often. The dots are no words.
- Give the coded words alone, separated by commas, without an explanation.";

const QA_RULES: &str = "\
- Answer from the given documents.
- Give only the answer, and no other words.";

/// Generates `samples` cases of every task with materials, each at most `length_tokens` long. Tasks that do not fit are
/// left out, and noted.
pub fn generate(
    materials: &Materials,
    tasks: &[Task],
    length_tokens: usize,
    samples: usize,
    seed: u64,
    count: &dyn Fn(&str) -> usize,
) -> Cases {
    let mut cases = Cases { files: materials.files.clone(), ..Cases::default() };
    cases.notes.push(format!("made by seed {seed} with at most {length_tokens} tokens a sample"));
    for task in tasks {
        if !materials.serve(*task) {
            cases.notes.push(format!("{} is left out: there are no questions to make it of", task.name));
            continue;
        }
        let make = |size, number: usize| {
            task.make(materials, size, length_tokens, &mut Random::named(seed, &format!("{}-{number}", task.name)))
        };
        let room = length_tokens.saturating_sub(task.output_tokens);
        let fits = |sample: &Sample| count(&sample.text) + count(&sample.question) <= room;
        let size = largest(|size| fits(&make(size, 0)));
        let mut too_long = 0;
        for number in 0..samples {
            let mut size = size;
            let mut sample = make(size, number);
            while !fits(&sample) && size > 1 {
                size -= (size / 100).max(1);
                sample = make(size, number);
            }
            if fits(&sample) {
                cases.cases.push(case(*task, number, sample));
            } else {
                too_long += 1;
            }
        }
        if too_long > 0 {
            cases.notes.push(format!("{too_long} of {samples} samples of {} are left out: they are longer", task.name));
        }
    }
    cases
}

/// No material grows beyond this size.
const MOST: usize = 1 << 22;

/// The largest size that fits, by doubling and halving; 1 if none does.
fn largest(mut fits: impl FnMut(usize) -> bool) -> usize {
    let (mut good, mut bad) = (1, 2);
    while bad < MOST && fits(bad) {
        (good, bad) = (bad, bad * 2);
    }
    while bad - good > (good / 200).max(1) {
        let middle = usize::midpoint(good, bad);
        if fits(middle) { good = middle } else { bad = middle }
    }
    good
}

fn case(task: Task, number: usize, sample: Sample) -> Case {
    let id = format!("{}-{number}", task.name);
    let evidence = sample.evidence.into_iter().zip(0..);
    let question = Question {
        id: number.to_string(),
        text: sample.question,
        golds: sample.golds,
        groups: vec![task.name.to_owned(), task.group.to_owned()],
        evidence: evidence.map(|(bytes, number)| Evidence { id: number.to_string(), source: 0, bytes }).collect(),
        ..Question::default()
    };
    Case { sources: vec![document(&id, None, sample.text)], id, questions: vec![question] }
}

/// Pieces with a separator between them, and the spans of some of them.
pub(crate) fn joined(pieces: &[String], seam: &str, wanted: &[usize]) -> (String, Vec<Range<usize>>) {
    let mut text = String::new();
    let mut places = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            text.push_str(seam);
        }
        if wanted.contains(&number) {
            places.push(text.len()..text.len() + piece.len());
        }
        text.push_str(piece);
    }
    (text, places)
}
