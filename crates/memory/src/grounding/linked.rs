//! The block that a name of the best block leads to: "Who directed the film that featured Ann Lee?" is answered by the block of the
//! film, whose name only a block about Ann Lee has.

use std::collections::BTreeSet;

use super::blocks::{Block, Counted, blocks, bm25};
use super::candidates::Place;
use super::cells::shown;
use super::defined::{is_about_any, names, stems_of_name};
use super::question::Question;
use super::typed::AnswerType;
use super::words::words;

/// The place of the block that names lead to. The blocks before it match the question best.
const PLACE: usize = 2;

/// What a unit of BM25 of the names counts beside one of the question's words. All paragraphs that answer a question are among the first
/// three blocks for 81 % of 187 questions of HotpotQA, 72 % of 81 of 2WikiMultihopQA and 29 % of 199 of MuSiQue, without names for 69 %,
/// 57 % and 20 %; 0.35 and 1 differ from it by at most 3 points. These are of a prototype in Python whose runs are not kept.
const WEIGHT: f64 = 0.5;

/// What a block gains that is about a name of the first one, in units of BM25: a heading has the name, or a sentence begins with it. With it
/// the first three blocks hold all paragraphs that answer a question for 73 to 74 % of 285 questions of HotpotQA, 69.5 % of 200 of
/// 2WikiMultihopQA and 30 to 32 % of 100 of MuSiQue, by how a block is found to be about a name, without it for 70.2, 69.5 and 30.0 %. Of
/// 1, 2 and 4, which differ by at most 2 points, it was chosen on these questions, by a prototype in Python whose runs are not kept.
const NAMED: f64 = 2.0;

/// Names of a block that others are looked up by.
const MOST_NAMES: usize = 16;

/// Ranked blocks with that one in the third place that matches the question and the names of the first block best, and has what the type
/// of the question requires. The others keep their order, and all keep their scores.
pub fn linked(question: &str, evidence: &[(&str, &str)], mut ranked: Vec<Block>) -> Vec<Block> {
    let Some(first) = ranked.first().filter(|_| ranked.len() > PLACE + 1).map(|block| block.place) else {
        return ranked;
    };
    let asked = Question::parse(question);
    let required = AnswerType::parsed(&asked).filter(|required| required.is_required());
    // In a fixed order, so that sums of floats are the same in every run.
    let known: BTreeSet<String> = asked.terms.into_iter().chain(asked.focus).collect();
    let first_text = &evidence[first.text].1[first.start..first.end];
    let named = words(first_text).into_iter().filter(|word| word.capital);
    let stems: BTreeSet<String> = named.filter_map(|word| word.stem).filter(|stem| !known.contains(stem)).collect();
    let counted: Vec<Counted> = ranked.iter().map(|block| Counted::read(block.place, evidence)).collect();
    let names: Vec<Vec<String>> = names(first_text, &known).into_iter().filter_map(stems_of_name).collect();
    let is_named = |block: &Block| {
        let (heading, whole) = evidence[block.place.text];
        is_about_any(&names, heading, &whole[block.place.start..block.place.end])
    };
    let score = |block: &Block, of_stems: f64| {
        let of_names = if is_named(block) { NAMED } else { 0.0 };
        block.score + WEIGHT * of_stems + of_names
    };
    let scores: Vec<f64> =
        ranked.iter().zip(bm25(&stems, &counted)).map(|(block, of_stems)| score(block, of_stems)).collect();
    let fits = |at: &usize| {
        let place = ranked[*at].place;
        required.is_none_or(|required| required.is_in(&shown(evidence[place.text].1, &place)))
    };
    // Of equals the earlier block.
    let best = (PLACE..ranked.len()).rev().filter(fits).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    if let Some(best) = best {
        ranked[PLACE..=best].rotate_right(1);
    }
    ranked
}

/// The names of the block that matches a question best, as the block has them, which are not words of the question.
pub fn leading_names(question: &str, evidence: &[(&str, &str)]) -> Vec<String> {
    let ranked = blocks(question, evidence);
    let Some(Place { text, start, end }) = ranked.first().map(|block| block.place) else { return Vec::new() };
    let asked = Question::parse(question);
    let known: BTreeSet<String> = asked.terms.into_iter().chain(asked.focus).collect();
    names(&evidence[text].1[start..end], &known).into_iter().take(MOST_NAMES).map(str::to_owned).collect()
}

/// Whether a text with its heading is about one of several names: the heading has it or is part of it, or a sentence begins with it.
pub fn is_about_one(names: &[String], heading: &str, text: &str) -> bool {
    let names: Vec<Vec<String>> = names.iter().filter_map(|name| stems_of_name(name)).collect();
    is_about_any(&names, heading, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headings of the blocks, the first that is read first.
    fn order<'a>(question: &str, evidence: &[(&'a str, &'a str)]) -> Vec<&'a str> {
        let read = linked(question, evidence, blocks(question, evidence));
        read.into_iter().map(|block| evidence[block.place.text].0).collect()
    }

    const FILMS: [(&str, &str); 5] = [
        ("Ann Lee", "Ann Lee is an actress who was featured in the film Musa."),
        ("Ann Roe", "Ann Roe directed a film that featured rain."),
        ("Harbour", "Boats were featured in a picture about the harbour."),
        ("Tram", "The tram of the town was featured once."),
        ("Musa", "Musa was made by Kim Park in the snow."),
    ];

    #[test]
    fn the_block_that_a_name_of_the_best_block_leads_to_is_third() {
        let question = "Who directed the film that featured Ann Lee?";
        let ranked = blocks(question, &FILMS);
        assert_eq!(FILMS[ranked[4].place.text].0, "Musa", "it has no word of the question");
        let found = order(question, &FILMS);
        assert_eq!((found[0], found[2], found.len()), ("Ann Lee", "Musa", 5));
        let others: Vec<&str> = found.into_iter().filter(|heading| *heading != "Musa").collect();
        let before: Vec<&str> = ranked[..4].iter().map(|block| FILMS[block.place.text].0).collect();
        assert_eq!(others, before, "the others keep their order");
    }

    #[test]
    fn without_such_a_name_the_order_is_that_of_the_question() {
        let plain = [FILMS[1], FILMS[2], FILMS[3], ("", "It rained.")];
        let question = "Which boats were featured in a film?";
        let ranked = blocks(question, &plain);
        assert_eq!(linked(question, &plain, ranked.clone()), ranked);
        let few = &FILMS[..3];
        assert_eq!(linked("Who?", few, blocks("Who?", few)), blocks("Who?", few), "the third is read anyway");
        assert!(linked("Who?", &[], Vec::new()).is_empty());
    }

    #[test]
    fn a_block_about_a_name_comes_before_one_that_only_has_it() {
        let evidence = [
            ("", "Ann Lee was featured in the film Musa."),
            ("", "The film of Ann Roe featured rain."),
            ("", "A film featured in a book."),
            ("", "The critics of Musa, Musa, Musa liked the film and called Musa long."),
            ("", "Musa was made by Kim Park in the snow."),
        ];
        let question = "Who directed the film that featured Ann Lee?";
        let read = linked(question, &evidence, blocks(question, &evidence));
        assert_eq!((read[0].place.text, read[2].place.text), (0, 4));
    }

    #[test]
    fn the_names_of_the_best_block_lead_to_other_texts() {
        let question = "Who directed the film that featured Ann Lee?";
        let names = leading_names(question, &FILMS);
        assert_eq!(names, ["Musa"]);
        let about: Vec<bool> = FILMS.iter().map(|(heading, text)| is_about_one(&names, heading, text)).collect();
        assert_eq!(about, [false, false, false, false, true]);
        assert!(leading_names(question, &[]).is_empty());
    }

    #[test]
    fn a_block_without_what_the_question_requires_is_not_moved() {
        let question = "How many prizes did the film that featured Ann Lee win?";
        let evidence = [
            ("Ann Lee", "Ann Lee is one of 12 who were featured in the film Musa, which did win."),
            ("Ann Roe", "Ann Roe did win 3 prizes for a film that featured rain."),
            ("Harbour", "There were 5 boats."),
            ("Tram", "The tram came 2 times."),
            ("Musa", "Musa was made by Kim Park."),
        ];
        assert_eq!(order(question, &evidence)[2], "Harbour");
    }
}
