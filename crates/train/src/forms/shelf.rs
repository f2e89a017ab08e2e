//! The passages and questions of a file, for distractors and for questions that the shown passages do not answer.

use std::collections::{HashMap, HashSet};

use random::Random;

use super::items::{Context, Item, Kind, Passage, document, is_named, own_passages};
use super::wording::{Text, key, words};

/// Questions of a document among which the one that shares most words with a passage is asked about it.
const UNANSWERED_TRIES: usize = 20;

/// The passages of all files that answer each question, both by their keys.
pub(super) struct Answered(HashMap<blake3::Hash, HashSet<blake3::Hash>>);

impl Answered {
    pub(super) fn new<'a>(items: impl Iterator<Item = &'a Item>) -> Answered {
        let mut answered: HashMap<blake3::Hash, HashSet<blake3::Hash>> = HashMap::new();
        for item in items.filter(|item| item.kind != Kind::Unanswerable && !item.answers.is_empty()) {
            let (named, others): (Vec<Passage>, Vec<Passage>) =
                own_passages(item).into_iter().partition(|passage| is_named(item, passage));
            let passages = if named.is_empty() { others } else { named };
            let keys = passages.iter().map(|passage| key(&passage.text));
            answered.entry(key(&item.question)).or_default().extend(keys);
        }
        Answered(answered)
    }

    /// Whether one of the passages answers the question in any file.
    fn by(&self, question: &str, passages: &[Passage]) -> bool {
        let answering = self.0.get(&key(question));
        answering.is_some_and(|keys| passages.iter().any(|passage| keys.contains(&key(&passage.text))))
    }
}

/// All passages of a file, for distractors, and questions that have one passage.
pub(super) struct Shelf<'a> {
    passages: Vec<Passage>,
    by_title: HashMap<String, Vec<usize>>,
    asked_of: HashMap<String, Vec<&'a Item>>,
    answered: &'a Answered,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(items: &'a [Item], answered: &'a Answered) -> Shelf<'a> {
        let mut seen = HashSet::new();
        let mut shelf = Shelf { passages: Vec::new(), by_title: HashMap::new(), asked_of: HashMap::new(), answered };
        for passage in items.iter().flat_map(own_passages) {
            if seen.insert(passage.text.clone()) {
                shelf.by_title.entry(passage.title.clone()).or_default().push(shelf.passages.len());
                shelf.passages.push(passage);
            }
        }
        // Whether a passage answers a question with yes or no is not seen from its words.
        let is_yes_or_no = |answer: &String| matches!(words(answer).first().map(String::as_str), Some("yes" | "no"));
        let is_usable = |item: &&Item| !item.answers.is_empty() && !item.answers.iter().any(is_yes_or_no);
        for item in items.iter().filter(is_usable) {
            if let Context::Passages(passages) = &item.context
                && let Some(first) = passages.first()
                && (item.kind == Kind::Single && passages.len() == 1 || item.kind == Kind::Story)
            {
                shelf.asked_of.entry(document(&first.title).to_owned()).or_default().push(item);
            }
        }
        shelf
    }

    /// A question about another passage of the document that shares words with the passages but not its answer. Questions
    /// about `barred` passages are not taken.
    pub(super) fn unanswered(
        &self,
        title: &str,
        passages: &[Passage],
        barred: &HashSet<blake3::Hash>,
        random: &mut Random,
    ) -> Option<&'a Item> {
        let asked = self.asked_of.get(document(title))?;
        let whole = passages.iter().map(|passage| passage.text.as_str()).collect::<Vec<_>>().join("\n");
        let (lower, text) = (whole.to_lowercase(), Text::of(&whole));
        let words: HashSet<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        let shared = |item: &Item| {
            let question = item.question.to_lowercase();
            question.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3 && words.contains(word)).count()
        };
        (0..UNANSWERED_TRIES)
            .map(|_| *random.pick(asked))
            .filter(|item| !text.may_give(&item.answers) && !self.answered.by(&item.question, passages))
            .filter(|item| !own_passages(item).iter().any(|passage| barred.contains(&key(&passage.text))))
            .max_by_key(|item| shared(item))
    }

    /// A passage of the same document, or of any.
    pub(super) fn draw(&self, title: &str, same: bool, random: &mut Random) -> Option<&Passage> {
        let siblings = self.by_title.get(title).filter(|_| same && !title.is_empty());
        match siblings {
            Some(siblings) => Some(&self.passages[*random.pick(siblings)]),
            None if self.passages.is_empty() => None,
            None => Some(random.pick(&self.passages)),
        }
    }
}
