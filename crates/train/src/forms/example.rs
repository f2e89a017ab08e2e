//! One example: the passages to show for the items of a context, and their questions with the answers to learn.

use std::collections::HashSet;

use calls::reading;
use random::Random;

use super::items::{Item, Kind, Passage, document, is_named, own_passages};
use super::shelf::Shelf;
use super::wording::{Text, key};

/// Characters of passages, so that most examples are short.
const SHORT: std::ops::Range<usize> = 400..2200;
const LONG: std::ops::Range<usize> = 2200..3600;
/// The most words of an answer.
const ANSWER_WORDS: usize = 15;

/// The share of single passages, and of sections of stories, that get no distractors: most calls show one passage.
const ALONE: f64 = 0.6;

fn holds(text: &str, answer: &str) -> bool {
    !answer.is_empty() && text.to_lowercase().contains(&answer.to_lowercase())
}

/// A question and its answer.
pub(super) type Asked = (String, String);

/// The passages for items with the same context, and each question with its answer; `None` if no item gives a valid example.
/// Neither `barred` passages nor questions about them are added to those of the context.
pub(super) fn example(
    items: &[&Item],
    shelf: &Shelf<'_>,
    barred: &HashSet<blake3::Hash>,
    random: &mut Random,
) -> Option<(Vec<Passage>, Vec<Asked>)> {
    let own = own_passages(items[0]);
    let title = own.first()?.title.as_str();
    let whole: String = own.iter().map(|passage| passage.text.as_str()).collect::<Vec<_>>().join("\n");
    let asked: Vec<(&Item, String)> = items.iter().filter_map(|item| Some((*item, answer(item, &whole)?))).collect();
    let spans: Vec<&str> = asked.iter().map(|(_, answer)| answer.as_str()).filter(|answer| is_span(answer)).collect();
    let gives_away = |passage: &Passage| spans.iter().any(|answer| holds(&passage.text, answer));
    let may_answer = |passage: &Passage| {
        let text = Text::of(&passage.text);
        asked.iter().any(|(item, _)| text.may_give(&item.answers))
    };
    let budget = if random.unit() < 0.75 { SHORT } else { LONG };
    let budget = budget.start + random.below(budget.len());
    let is_needed = |passage: &Passage| asked.iter().any(|(item, answer)| needs(item, answer, passage, &own, &whole));
    let (mut chosen, mut rest): (Vec<Passage>, Vec<Passage>) = own.iter().cloned().partition(is_needed);
    if chosen.is_empty() && !spans.is_empty() {
        (chosen, rest) = (own.clone(), Vec::new());
    }
    if asked.is_empty() || chosen.iter().map(|passage| passage.text.len()).sum::<usize>() > LONG.end {
        return None;
    }
    let invented = !items[0].source.starts_with("babi") && own.len() <= 4;
    let single = invented && asked.iter().all(|(item, _)| item.kind == Kind::Single);
    // One in ten texts whose questions are about one fact each is left out: its questions have no answer then.
    let robbed = single && chosen.iter().any(gives_away) && random.unit() < 0.1;
    if robbed {
        chosen.clear();
        rest.retain(|passage| !may_answer(passage));
    }
    random.shuffle(&mut rest);
    let story = items[0].kind == Kind::Story;
    let alone = (own.len() == 1 || story) && !robbed && random.unit() < ALONE;
    // What answers a question that a source marks as unanswerable is unknown; it may be in the same document.
    let is_marked = asked.iter().any(|(_, answer)| answer == reading::NOT_FOUND);
    let is_related = |passage: &Passage| own.iter().any(|own| document(&own.title) == document(&passage.title));
    let is_unfit = |passage: &Passage| {
        own.contains(passage)
            || gives_away(passage)
            || (robbed && may_answer(passage))
            || (is_marked && is_related(passage))
            || barred.contains(&key(&passage.text))
    };
    let mut length: usize = chosen.iter().map(|passage| passage.text.len()).sum();
    let mut tries = 0;
    let is_simple = asked.iter().all(|(item, _)| matches!(item.kind, Kind::Single | Kind::Unanswerable));
    loop {
        let next = match rest.pop() {
            _ if alone => break,
            Some(passage) => passage,
            None if invented && is_simple && tries < 12 => {
                tries += 1;
                let same = random.unit() < 0.6;
                match shelf.draw(title, same, random) {
                    Some(passage) => passage.clone(),
                    None => break,
                }
            }
            None => break,
        };
        if chosen.contains(&next) || (tries > 0 && is_unfit(&next)) {
            continue;
        }
        if length + next.text.len() > budget && !chosen.is_empty() {
            break;
        }
        length += next.text.len();
        chosen.push(next);
    }
    if chosen.is_empty() || length > LONG.end + 400 {
        return None;
    }
    random.shuffle(&mut chosen);
    let given = |answer: String| if robbed { reading::NOT_FOUND.to_owned() } else { answer };
    let questions = asked.into_iter().map(|(item, answer)| (item.question.clone(), given(answer)));
    let mut questions: Vec<Asked> = questions.collect();
    if (single || story) && !title.is_empty() {
        let unanswered = shelf.unanswered(title, &chosen, barred, random);
        questions.extend(unanswered.map(|item| (item.question.clone(), reading::NOT_FOUND.to_owned())));
    }
    Some((chosen, questions))
}

/// Whether the answer to learn is text of a passage.
fn is_span(answer: &str) -> bool {
    !matches!(answer, "yes" | "no" | reading::NOT_FOUND)
}

/// Whether the answer to an item depends on a passage of its context.
fn needs(item: &Item, answer: &str, passage: &Passage, own: &[Passage], whole: &str) -> bool {
    if answer == reading::NOT_FOUND {
        // No passage is needed more than others; a single passage is not left out.
        return own.len() == 1;
    }
    // Paragraphs of one document share its title: in that case the passage with the answer is meant.
    let titles: HashSet<&str> = own.iter().map(|passage| passage.title.as_str()).collect();
    if titles.len() < own.len() && is_span(answer) && holds(whole, answer) {
        return holds(&passage.text, answer);
    }
    match item.supporting.is_empty() {
        true => !is_span(answer) || holds(&passage.text, answer),
        false => is_named(item, passage),
    }
}

/// The answer to learn: a span of the text if one of the alternatives is, else the shortest; [`reading::NOT_FOUND`] if there
/// is none.
fn answer(item: &Item, text: &str) -> Option<String> {
    if item.kind == Kind::Unanswerable || item.answers.is_empty() {
        return Some(reading::NOT_FOUND.to_owned());
    }
    let clean = |answer: &String| answer.trim().trim_end_matches('.').trim().to_owned();
    let answers: Vec<String> = item.answers.iter().map(clean).filter(|answer| !answer.is_empty()).collect();
    if item.kind == Kind::Boolean {
        let answer = answers.first()?.to_lowercase();
        return matches!(answer.as_str(), "yes" | "no").then_some(answer);
    }
    let shortest = |answers: Vec<&String>| answers.into_iter().min_by_key(|answer| answer.len()).cloned();
    let spans = answers.iter().filter(|answer| holds(text, answer)).collect();
    let answer = shortest(spans).or_else(|| shortest(answers.iter().collect()))?;
    (answer.split_whitespace().count() <= ANSWER_WORDS && !item.id.is_empty()).then_some(answer)
}
