//! Variable tracing: a chain of assignments in noise; the question asks for the variables that have a value.

use super::needles::NOISE;
use super::{Sample, joined};
use crate::Random;

/// Variables of the chain: one value and four hops.
const VARIABLES: usize = 5;

/// A sample whose haystack has `size` lines of noise.
pub(super) fn make(size: usize, random: &mut Random) -> Sample {
    let value = (10_000 + random.below(90_000)).to_string();
    let mut names: Vec<String> = Vec::new();
    while names.len() < VARIABLES {
        let name: String = (0..5).map(|_| char::from(b'A' + random.below(26) as u8)).collect();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut chain = vec![format!("VAR {} = {value}", names[0])];
    chain.extend(names.windows(2).map(|pair| format!("VAR {} = VAR {} ", pair[1], pair[0])));
    let mut lines = vec![NOISE.to_owned(); size];
    let mut places: Vec<usize> = (0..VARIABLES).map(|_| random.below(size + 1)).collect();
    places.sort_unstable();
    let wanted: Vec<usize> = places.iter().zip(0..).map(|(place, before)| place + before).collect();
    for (place, assignment) in wanted.iter().zip(chain) {
        lines.insert(*place, assignment);
    }
    let (text, evidence) = joined(&lines, "\n", &wanted);
    let question = format!(
        "The text holds chains of variable assignments. Find all variables that are assigned the value {value} in the text."
    );
    Sample { text, question, golds: names, evidence }
}
