//! Measures verdicts on statements made from XQuAD: sentences of a paragraph as they stand (to be supported), and the same with
//! one name, number, date or negation changed, or read against another paragraph (not to be supported).

use memory::Random;
use memory::grounding::{Checks, Verdict, verify};

use crate::{Done, data};

/// What was done to a sentence.
const CHANGES: [&str; 7] = ["nothing", "number", "date", "name", "negation", "other paragraph", "name nearby"];

/// The changes that the rate at the end is of: a name of the same paragraph, which the sentences beside may hold, counts
/// by itself.
const COUNTED: std::ops::Range<usize> = 1..6;

const SEED: u64 = 7;

pub fn measure(file: &str) -> Done {
    let items = data::xquad(file, data::Half::Report)?;
    let mut paragraphs: Vec<(&str, &str)> = Vec::new();
    for item in &items {
        let own = item.evidence[item.gold].as_str();
        let other = item.evidence[(item.gold + 1) % item.evidence.len()].as_str();
        if paragraphs.last().is_none_or(|(last, _)| *last != own) {
            paragraphs.push((own, other));
        }
    }
    let (mut random, mut nearby) = (Random::new(SEED), Random::new(SEED));
    let mut counts = [[0_usize; 3]; CHANGES.len()];
    for &(own, other) in &paragraphs {
        for sentence in own.split_inclusive(". ").map(str::trim).filter(|sentence| sentence.len() > 40) {
            for (change, count) in counts.iter_mut().enumerate() {
                let claim = match change {
                    0 | 5 => Some(sentence.to_owned()),
                    1 => other_number(sentence),
                    2 => other_year(sentence),
                    3 => other_name(sentence, other, &mut random),
                    6 => other_name(sentence, own, &mut nearby),
                    _ => negated(sentence),
                };
                let Some(claim) = claim else { continue };
                let verdict = verify(&claim, &[if change == 5 { other } else { own }], Checks::default());
                let column = match verdict {
                    Verdict::Supported(_) => 0,
                    Verdict::Contradicted(_) => 1,
                    Verdict::Unsupported => 2,
                };
                count[column] += 1;
                if (change == 0) != (column == 0) {
                    eprintln!("{}: {verdict:?}: {claim}", CHANGES[change]);
                }
            }
        }
    }
    let mut wrong = (0, 0);
    for (at, [supported, contradicted, unsupported]) in counts.into_iter().enumerate() {
        let all = supported + contradicted + unsupported;
        println!(
            "{}: {all} statements, supported {supported}, contradicted {contradicted}, unsupported {unsupported}",
            CHANGES[at]
        );
        if COUNTED.contains(&at) {
            wrong = (wrong.0 + supported, wrong.1 + all);
        }
    }
    println!("supported though false: {} of {} ({:.2} %)", wrong.0, wrong.1, 100.0 * wrong.0 as f64 / wrong.1 as f64);
    Ok(())
}

/// The first run of digits that is no year, plus three.
fn other_number(sentence: &str) -> Option<String> {
    let digits = runs(sentence).into_iter().find(|run| run.len() != 4)?;
    let value: u64 = sentence[digits.clone()].parse().ok()?;
    Some(format!("{}{}{}", &sentence[..digits.start], value + 3, &sentence[digits.end..]))
}

/// The first year, eleven years later.
fn other_year(sentence: &str) -> Option<String> {
    let digits = runs(sentence).into_iter().find(|run| run.len() == 4)?;
    let value: u64 = sentence[digits.clone()].parse().ok()?;
    (1000..2100)
        .contains(&value)
        .then(|| format!("{}{}{}", &sentence[..digits.start], value + 11, &sentence[digits.end..]))
}

fn runs(sentence: &str) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in sentence.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
        match runs.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// A capitalised word inside the sentence replaced by one of another paragraph that the sentence does not have.
fn other_name(sentence: &str, other: &str, random: &mut Random) -> Option<String> {
    let named = |text: &str| -> Vec<String> {
        let words = text.split([' ', ',', '.', ';', '(', ')', '"']).skip(1);
        let is_name = |word: &&str| {
            word.len() > 3 && word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphabetic)
        };
        words.filter(is_name).map(str::to_owned).collect()
    };
    let old = named(sentence);
    let new: Vec<String> = named(other).into_iter().filter(|name| !sentence.contains(name)).collect();
    (!old.is_empty() && !new.is_empty())
        .then(|| sentence.replacen(random.pick(&old).as_str(), random.pick(&new).as_str(), 1))
}

/// The first auxiliary verb with "not" behind it.
fn negated(sentence: &str) -> Option<String> {
    let verb = [" was ", " is ", " were ", " are ", " has ", " had ", " can "];
    let (at, found) = verb.iter().filter_map(|verb| sentence.find(verb).map(|at| (at, *verb))).min()?;
    Some(format!("{}{found}not {}", &sentence[..at], &sentence[at + found.len()..]))
}
