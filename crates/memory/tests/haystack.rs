//! RULER's needle-in-a-haystack tasks (NIAH): all eight, small and deterministic.
//!
//! A needle is the sentence "One of the special magic numbers for KEY is: VALUE." The haystack is a repeated group of
//! sentences (noise), a novel (essay), or needles for other keys. As in GAM, the text is memorised and the prompt has
//! only the question.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

pub use memory::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hay {
    Noise,
    Essay,
    Needles,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Words,
    Numbers,
    Uuids,
}

/// One of the tasks.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub name: &'static str,
    pub hay: Hay,
    pub keys: Kind,
    pub values: Kind,
    /// Keys that are inserted.
    pub hidden: usize,
    /// Values per key.
    pub each: usize,
    /// Keys that the question asks for.
    pub asked: usize,
}

const fn task(name: &'static str, hay: Hay, keys: Kind, values: Kind, counts: [usize; 3]) -> Task {
    let [hidden, each, asked] = counts;
    Task { name, hay, keys, values, hidden, each, asked }
}

/// RULER's tasks by RULER's names.
pub const TASKS: [Task; 8] = [
    task("niah_single_1", Hay::Noise, Kind::Words, Kind::Numbers, [1, 1, 1]),
    task("niah_single_2", Hay::Essay, Kind::Words, Kind::Numbers, [1, 1, 1]),
    task("niah_single_3", Hay::Essay, Kind::Words, Kind::Uuids, [1, 1, 1]),
    task("niah_multikey_1", Hay::Essay, Kind::Words, Kind::Numbers, [4, 1, 1]),
    task("niah_multikey_2", Hay::Needles, Kind::Words, Kind::Numbers, [1, 1, 1]),
    task("niah_multikey_3", Hay::Needles, Kind::Uuids, Kind::Uuids, [1, 1, 1]),
    task("niah_multivalue", Hay::Essay, Kind::Words, Kind::Numbers, [1, 4, 1]),
    task("niah_multiquery", Hay::Essay, Kind::Words, Kind::Numbers, [4, 1, 4]),
];

/// A text to memorise, a question, and the values of a right answer.
#[derive(Debug)]
pub struct Sample {
    pub text: String,
    pub question: String,
    pub values: Vec<String>,
}

/// The sources of haystacks, from the evaluation data.
pub struct Barn {
    adjectives: Vec<String>,
    nouns: Vec<String>,
    novel: Vec<String>,
}

impl Barn {
    /// Reads word lists and a novel; returns the reason if they are missing.
    pub fn open() -> Option<Barn> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let folder = env::var_os("MEMLOCAL_DATA").map_or(beside, PathBuf::from);
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).inspect_err(|error| println!("not tested: {}: {error}", path.display())).ok()
        };
        let lines =
            |text: String| text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        let novel = read("novels/345_dracula.txt")?;
        let one_line = |sentence: &str| sentence.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentences = novel.split_inclusive(". ").map(one_line);
        Some(Barn {
            adjectives: lines(read("ruler/adjectivelist.txt")?),
            nouns: lines(read("ruler/nounlist.txt")?),
            novel: sentences.filter(|sentence| !sentence.is_empty()).collect(),
        })
    }

    /// A sample of a task whose text has about this many words.
    pub fn sample(&self, task: &Task, words: usize, random: &mut Random) -> Sample {
        let keys: Vec<String> = (0..task.hidden).map(|_| self.draw(task.keys, random)).collect();
        let mut needles = Vec::new();
        let mut values = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            for _ in 0..task.each {
                let value = self.draw(task.values, random);
                needles.push(needle(key, &value, task.values));
                if number < task.asked {
                    values.push(value);
                }
            }
        }
        let (mut hay, seam) = self.hay(task, words, random);
        for needle in needles {
            hay.insert(random.below(hay.len() + 1), needle);
        }
        Sample { text: hay.join(seam), question: question(&keys[..task.asked], task), values }
    }

    /// Pieces of a haystack, and the separator between them.
    fn hay(&self, task: &Task, words: usize, random: &mut Random) -> (Vec<String>, &'static str) {
        const NOISE: &str = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";
        match task.hay {
            Hay::Noise => (vec![NOISE.to_owned(); words / NOISE.split(' ').count()], "\n"),
            Hay::Essay => {
                let start = random.below(self.novel.len() / 2);
                let mut left = words;
                let within = |sentence: &&String| {
                    let fits = left > 0;
                    left = left.saturating_sub(sentence.split_whitespace().count());
                    fits
                };
                (self.novel[start..].iter().take_while(within).cloned().collect(), " ")
            }
            Hay::Needles => {
                let line = |_| needle(&self.draw(task.keys, random), &self.draw(task.values, random), task.values);
                ((0..words / 10).map(line).collect(), "\n")
            }
        }
    }

    fn draw(&self, kind: Kind, random: &mut Random) -> String {
        match kind {
            Kind::Words => format!("{}-{}", random.pick(&self.adjectives), random.pick(&self.nouns)),
            Kind::Numbers => (1_000_000 + random.below(9_000_000)).to_string(),
            Kind::Uuids => uuid(random),
        }
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Words => "words",
        Kind::Numbers => "numbers",
        Kind::Uuids => "uuids",
    }
}

fn needle(key: &str, value: &str, values: Kind) -> String {
    format!("One of the special magic {} for {key} is: {value}.", name(values))
}

fn question(keys: &[String], task: &Task) -> String {
    let (query, kind) = (list(keys), name(task.values));
    if task.asked * task.each == 1 {
        let kind = kind.trim_end_matches('s');
        return format!("What is the special magic {kind} for {query} mentioned in the provided text?");
    }
    format!("What are all the special magic {kind} for {query} mentioned in the provided text?")
}

fn list(keys: &[String]) -> String {
    match keys {
        [one] => one.clone(),
        [first @ .., last] => format!("{}, and {last}", first.join(", ")),
        [] => String::new(),
    }
}

fn uuid(random: &mut Random) -> String {
    let digits = format!("{:016x}{:016x}", random.bits(), random.bits());
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
