//! Measures verdicts on short answers to the questions of a set: the gold answers (to be supported), and the best spans that share no
//! word with a gold answer (not to be supported). Spans that answer in other words count as wrong, so the rate of wrong
//! ones is an upper bound.

use memory::grounding::{self, Checks, Draft, Verdict};

use crate::{Done, data, squad};

/// Wrong spans of one question.
const WRONG: usize = 2;

pub fn measure(set: &str) -> Done {
    let (mut gold, mut wrong) = ([0_usize; 2], [0_usize; 2]);
    for item in data::set(set)? {
        let texts = item.texts(false);
        let draft = Draft::new(&item.question, &texts);
        let others = draft.candidates().iter().map(|candidate| candidate.text.as_str());
        let others = others.filter(|text| squad::f1(text, &item.answers) == 0.0).take(WRONG);
        let own = item.answers.first().map(String::as_str);
        for (answer, is_gold) in own.into_iter().map(|own| (own, true)).chain(others.map(|other| (other, false))) {
            let checked = grounding::check(&item.question, answer, &texts, Checks::default());
            let place = checked.iter().map(|checked| match checked.verdict {
                Verdict::Supported(place) => Some(&texts[place.text][place.start..place.end]),
                _ => None,
            });
            let places: Option<Vec<&str>> = place.collect();
            let count = if is_gold { &mut gold } else { &mut wrong };
            count[0] += usize::from(places.is_some());
            count[1] += 1;
            if is_gold != places.is_some() {
                let name = if is_gold { "gold, not supported" } else { "wrong, supported" };
                let places = places.unwrap_or_default().join(" | ");
                eprintln!("{name}\t{}\t{answer}\t{}\t{places}", item.question, item.answers.join(" | "));
            }
        }
    }
    println!("gold answers supported: {} of {}", gold[0], gold[1]);
    println!("wrong spans supported: {} of {}", wrong[0], wrong[1]);
    Ok(())
}
