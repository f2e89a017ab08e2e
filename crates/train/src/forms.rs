//! Training data: converts question-answering items to examples in the product's format for short answers.
//!
//! An item's passages get distractors, in an order drawn by the seed; the answer is a span of the text where the item
//! allows, `yes` or `no`, or that the documents do not have it. Some questions are made unanswerable by leaving out the
//! passage with the answer, others are asked about another passage of the same document or story.

mod shelf;
mod wording;

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use calls::reading;
use flate2::read::MultiGzDecoder;
use random::Random;
use serde::Deserialize;

use crate::error::{Result, TrainError, io};
use crate::examples::{Line, Message};
use shelf::{Answered, Shelf};
use wording::{Text, key};

/// A passage and its title.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
struct Passage {
    title: String,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(untagged)]
enum Context {
    Text(String),
    Passages(Vec<Passage>),
}

/// A line of a source file.
#[derive(Debug, Clone, Deserialize)]
struct Item {
    id: String,
    source: String,
    kind: Kind,
    context: Context,
    question: String,
    answers: Vec<String>,
    supporting: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Single,
    Multihop,
    Story,
    Dialogue,
    Boolean,
    Unanswerable,
}

/// The parameters of the conversion.
#[derive(Debug, Clone)]
pub struct Making {
    /// Folder of `*.jsonl.gz`.
    pub from: PathBuf,
    pub seed: u64,
    /// Files whose names start with one of these are left out.
    pub without: Vec<String>,
    /// The most items of files, by the beginning of their names.
    pub most: Vec<(String, usize)>,
    /// Share of contexts whose questions are held out, in percent.
    pub held_out_percent: u64,
    /// The largest share of examples whose answer is that the documents do not have it, in percent.
    pub unanswerable_percent: usize,
}

impl Making {
    /// Whether the questions about an item's context are held out. The first passage decides, whatever the seed and the other
    /// settings, so what one data set holds out is not trained on by another one.
    fn holds_out(&self, item: &Item) -> bool {
        let digest = match &item.context {
            Context::Text(text) => key(text),
            Context::Passages(passages) => key(passages.first().map_or("", |passage| passage.text.as_str())),
        };
        let [first, second, ..] = *digest.as_bytes();
        u64::from(u16::from_be_bytes([first, second])) % 100 < self.held_out_percent
    }
}

/// The result of the conversion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made {
    pub lines: Vec<Line>,
    pub held_out: Vec<Line>,
    /// By file: items read, examples made.
    pub files: Vec<(String, usize, usize)>,
    /// Examples whose answer is that the documents do not have it.
    pub unanswerable: usize,
    /// Such examples that were left out because there were too many.
    pub surplus: usize,
    /// Groups that were left out of training because they share a passage with the held-out contexts.
    pub shared: usize,
}

/// Characters of passages, so that most examples are short.
const SHORT: std::ops::Range<usize> = 400..2200;
const LONG: std::ops::Range<usize> = 2200..3600;
/// The most words of an answer.
const ANSWER_WORDS: usize = 15;

/// Converts all files of a folder to examples.
///
/// # Errors
/// If a file cannot be read or a line is not an item.
pub fn make(making: &Making) -> Result<Made> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&making.from)
        .map_err(io(&making.from))?
        .map(|entry| Ok(entry.map_err(io(&making.from))?.path()))
        .collect::<Result<_>>()?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl.gz") && !making.without.iter().any(|prefix| name.starts_with(prefix.as_str()))
    });
    paths.sort();
    let files: Vec<(String, Vec<Item>)> = paths
        .iter()
        .map(|path| Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), read(path)?)))
        .collect::<Result<_>>()?;
    let items = || files.iter().flat_map(|(_, items)| items);
    let answered = Answered::new(items());
    let held_out_items = items().filter(|item| making.holds_out(item));
    let kept_out: HashSet<blake3::Hash> =
        held_out_items.flat_map(own_passages).map(|passage| key(&passage.text)).collect();
    let nothing = HashSet::new();
    let mut made = Made::default();
    let (mut groups, mut held_out) = (Vec::new(), Vec::new());
    for (name, items) in &files {
        let most = making.most.iter().find(|(prefix, _)| name.starts_with(prefix.as_str()));
        let most = most.map_or(usize::MAX, |(_, most)| *most);
        let mut random = Random::named(making.seed, name);
        let shelf = Shelf::new(items, &answered);
        let mut count = 0;
        for group in by_context(items, &mut random) {
            if count >= most {
                break;
            }
            let is_held_out = making.holds_out(group[0]);
            let barred = if is_held_out { &nothing } else { &kept_out };
            let Some((passages, questions)) = example(&group, &shelf, barred, &mut random) else { continue };
            if own_passages(group[0]).iter().any(|passage| barred.contains(&key(&passage.text))) {
                made.shared += 1;
                continue;
            }
            count += questions.len();
            let lines: Vec<Line> = questions.iter().map(|(asked, answer)| line(&passages, asked, answer)).collect();
            if is_held_out { held_out.push(lines) } else { groups.push(lines) }
        }
        made.files.push((name.clone(), items.len(), count));
    }
    for (groups, lines) in [(&mut groups, &mut made.lines), (&mut held_out, &mut made.held_out)] {
        Random::named(making.seed, "order").shuffle(groups);
        lines.extend(groups.drain(..).flatten());
        made.surplus += bound(lines, making.unanswerable_percent, &mut Random::named(making.seed, "unanswerable"));
    }
    if made.lines.is_empty() {
        return Err(TrainError::NoExamples {
            path: making.from.clone(),
            reason: "no *.jsonl.gz with usable items".into(),
        });
    }
    made.unanswerable = made.lines.iter().chain(&made.held_out).filter(|line| is_unanswerable(line)).count();
    Ok(made)
}

/// Leaves out unanswerable lines at random until at most `percent` of all are; returns the number left out.
fn bound(lines: &mut Vec<Line>, percent: usize, random: &mut Random) -> usize {
    let mut unanswerable: Vec<usize> = (0..lines.len()).filter(|at| is_unanswerable(&lines[*at])).collect();
    let answerable = lines.len() - unanswerable.len();
    let Some(most) = (answerable * percent).checked_div(100_usize.saturating_sub(percent)) else { return 0 };
    random.shuffle(&mut unanswerable);
    let surplus: HashSet<usize> = unanswerable.into_iter().skip(most).collect();
    let mut places = 0_usize..;
    lines.retain(|_| places.next().is_some_and(|at| !surplus.contains(&at)));
    surplus.len()
}

fn is_unanswerable(line: &Line) -> bool {
    match line {
        Line::Chat { messages } => messages.last().is_some_and(|last| last.content == reading::NOT_FOUND),
        Line::Text { completion, .. } => completion == reading::NOT_FOUND,
    }
}

/// The share of single passages, and of sections of stories, that get no distractors: most calls show one passage.
const ALONE: f64 = 0.6;

/// The most questions about the same passages.
const MAX_QUESTIONS: usize = 6;

/// Items with the same context, in a random order of contexts and of items. Questions about one text are neighbours, so that
/// training computes the text once for them.
fn by_context<'a>(items: &'a [Item], random: &mut Random) -> Vec<Vec<&'a Item>> {
    let mut order: Vec<&Item> = items.iter().collect();
    random.shuffle(&mut order);
    let mut groups: Vec<Vec<&Item>> = Vec::new();
    let mut open: HashMap<&Context, usize> = HashMap::new();
    for item in order {
        let at = open.get(&item.context).copied().filter(|at| groups[*at].len() < MAX_QUESTIONS);
        let at = at.unwrap_or(groups.len());
        if at == groups.len() {
            open.insert(&item.context, at);
            groups.push(Vec::new());
        }
        groups[at].push(item);
    }
    groups
}

/// Writes lines as JSON lines.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, lines: &[Line]) -> Result<()> {
    let mut out = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut out, line).map_err(|error| io(path)(error.into()))?;
        out.push(b'\n');
    }
    let mut file = std::fs::File::create(path).map_err(io(path))?;
    file.write_all(&out).map_err(io(path))
}

fn read(path: &Path) -> Result<Vec<Item>> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(io(path))?;
    BufReader::new(MultiGzDecoder::new(file)).read_to_string(&mut text).map_err(io(path))?;
    let parse = |(number, line): (usize, std::io::Result<String>)| {
        let line = line.map_err(io(path))?;
        let failed = |reason: String| TrainError::Data { path: path.to_owned(), line: number + 1, reason };
        serde_json::from_str(&line).map_err(|error| failed(error.to_string()))
    };
    text.as_bytes().lines().enumerate().map(parse).collect()
}

fn line(passages: &[Passage], question: &str, answer: &str) -> Line {
    let user = reading::user(passages.iter().map(|p| (p.title.as_str(), p.text.as_str())), question);
    let turn = |role: &str, content: &str| Message { role: role.into(), content: content.into() };
    Line::Chat { messages: vec![turn("system", reading::SYSTEM), turn("user", &user), turn("assistant", answer)] }
}

/// The document of a passage: sections of a story are titled `STORY, part N`.
fn document(title: &str) -> &str {
    title.rsplit_once(", part ").map_or(title, |(story, _)| story)
}

fn own_passages(item: &Item) -> Vec<Passage> {
    match &item.context {
        Context::Text(text) => vec![Passage { title: String::new(), text: text.clone() }],
        Context::Passages(passages) => passages.clone(),
    }
}

fn holds(text: &str, answer: &str) -> bool {
    !answer.is_empty() && text.to_lowercase().contains(&answer.to_lowercase())
}

/// A question and its answer.
type Asked = (String, String);

/// The passages for items with the same context, and each question with its answer; `None` if no item gives a valid example.
/// Neither `barred` passages nor questions about them are added to those of the context.
fn example(
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

/// Whether an item names a passage as supporting, by its title or by one of its sentences.
fn is_named(item: &Item, passage: &Passage) -> bool {
    item.supporting.iter().any(|s| *s == passage.title || passage.text.contains(s.as_str()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    fn folder(items: &[serde_json::Value]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        add(&folder, "a.jsonl.gz", items);
        folder
    }

    /// Appends a member to a file, which is created if it does not exist.
    fn add(folder: &tempfile::TempDir, name: &str, items: &[serde_json::Value]) {
        let path = folder.path().join(name);
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        let mut file = GzEncoder::new(file, Compression::fast());
        for item in items {
            writeln!(file, "{item}").unwrap();
        }
        file.finish().unwrap();
    }

    fn making(folder: &Path, seed: u64) -> Making {
        Making {
            from: folder.to_owned(),
            seed,
            without: Vec::new(),
            most: Vec::new(),
            held_out_percent: 10,
            unanswerable_percent: 100,
        }
    }

    fn items() -> Vec<serde_json::Value> {
        let item = |n: usize| {
            let text =
                format!("The tower number {n} is in town{n}x. It was built long ago by some people of that place.");
            serde_json::json!({ "id": format!("{n}"), "source": "test", "kind": "single",
                "context": [{ "title": format!("Tower {}", n % 5), "text": text }],
                "question": format!("Where is tower {n}?"), "answers": [format!("town{n}x")], "supporting": [] })
        };
        let mut items: Vec<_> = (0..200).map(item).collect();
        items.push(serde_json::json!({ "id": "b", "source": "test", "kind": "boolean", "context": "Fish swim.",
            "question": "Do fish swim?", "answers": ["yes"], "supporting": [] }));
        items.push(serde_json::json!({ "id": "u", "source": "test", "kind": "unanswerable", "context": "Fish swim.",
            "question": "Who swims fastest?", "answers": [], "supporting": [] }));
        items
    }

    #[test]
    fn examples_show_the_answer_unless_they_say_that_it_is_not_there() {
        let folder = folder(&items());
        let made = make(&making(folder.path(), 1)).unwrap();
        let mut missing = 0;
        for line in made.lines.iter().chain(&made.held_out) {
            let Line::Chat { messages } = line else { panic!("no conversation") };
            let [system, user, assistant] = &messages[..] else { panic!("three turns") };
            assert_eq!(system.content, reading::SYSTEM);
            assert!(user.content.starts_with("CONTEXT\n[1]"));
            let (context, question) = user.content.split_once("QUESTION\n").unwrap();
            let asked = question.trim_start_matches("Where is tower ").trim_end_matches('?');
            if assistant.content == reading::NOT_FOUND {
                missing += 1;
                assert!(!context.contains(&format!("town{asked}x")), "{user:?}");
            } else if assistant.content != "yes" {
                assert_eq!(assistant.content, format!("town{asked}x"));
                assert!(context.contains(&assistant.content));
            }
        }
        // 200 towers, each with a question about another one of its title, and the two others.
        assert_eq!(made.lines.len() + made.held_out.len(), 402);
        assert!(missing > 200 && missing == made.unanswerable, "{missing}");
    }

    #[test]
    fn the_same_seed_makes_the_same_and_contexts_are_on_one_side() {
        let folder = folder(&items());
        let made = make(&making(folder.path(), 1)).unwrap();
        assert_eq!(made, make(&making(folder.path(), 1)).unwrap());
        assert_ne!(made.lines, make(&making(folder.path(), 2)).unwrap().lines);
        assert!(!made.held_out.is_empty());
    }

    #[test]
    fn stories_are_asked_about_other_sections_too() {
        let part = |n: usize| serde_json::json!({ "title": format!("Snow, part {n}"), "text": format!("The fox number{n} ran home.") });
        let item = |n: usize| {
            serde_json::json!({ "id": format!("{n}"), "source": "test", "kind": "story", "context": [part(n), part(n + 1)],
                "question": format!("Who ran in {n}?"), "answers": [format!("fox number{n}")], "supporting": [format!("Snow, part {n}")] })
        };
        let folder = folder(&(0..40).map(|n| item(n * 2)).collect::<Vec<_>>());
        let made = make(&making(folder.path(), 1)).unwrap();
        let lines: Vec<String> =
            made.lines.iter().chain(&made.held_out).map(|line| serde_json::to_string(line).unwrap()).collect();
        let (missing, found): (Vec<&String>, Vec<&String>) =
            lines.iter().partition(|line| line.ends_with("documents.\"}]}"));
        assert_eq!((missing.len(), found.len()), (40, 40));
        assert!(found.iter().any(|line| !line.contains("[2]")), "sections are also shown alone");
        for line in missing {
            let asked = line.split("Who ran in ").nth(1).and_then(|rest| rest.split('?').next()).unwrap();
            assert!(!line.contains(&format!("number{asked} ")), "{line}");
        }
    }

    /// The user's and the assistant's turn of each line.
    fn turns(lines: &[Line]) -> Vec<(&str, &str)> {
        let mut turns = Vec::new();
        for line in lines {
            let Line::Chat { messages } = line else { panic!("no conversation") };
            turns.push((messages[1].content.as_str(), messages[2].content.as_str()));
        }
        turns
    }

    fn item(id: &str, kind: &str, context: &[(&str, &str)], question: &str, answers: &[&str]) -> serde_json::Value {
        let passage = |(title, text): &(&str, &str)| serde_json::json!({ "title": title, "text": text });
        serde_json::json!({ "id": id, "source": "test", "kind": kind, "question": question, "answers": answers,
            "context": context.iter().map(passage).collect::<Vec<_>>(), "supporting": [] })
    }

    #[test]
    fn no_passage_of_a_held_out_context_is_trained_on() {
        // Each context has a passage of the next one, and a second file has the passages in another layout.
        let text = |n: usize| format!("The bridge of place{n}x was built by people of that place.");
        let (mut pairs, mut copies) = (Vec::new(), Vec::new());
        for n in 0..200 {
            let (title, own, next) = (format!("Bridge {}", n % 5), text(n), text(n + 1));
            let context = [(title.as_str(), own.as_str()), (title.as_str(), next.as_str())];
            let answer = format!("place{n}x");
            pairs.push(item(&format!("{n}"), "multihop", &context, "Where is it?", &[answer.as_str()]));
            let copy = text(n).to_uppercase().replace(' ', "\n  ");
            let (context, answer) = ([(title.as_str(), copy.as_str())], format!("PLACE{n}X"));
            let (id, question) = (format!("copy {n}"), format!("Where is {n}?"));
            copies.push(item(&id, "single", &context, &question, &[answer.as_str()]));
        }
        let folder = folder(&pairs);
        add(&folder, "b.jsonl.gz", &copies);
        for seed in 1..4 {
            let made = make(&making(folder.path(), seed)).unwrap();
            let own = (0..200).filter(|n| {
                let digest = key(&text(*n));
                let [first, second, ..] = *digest.as_bytes();
                u16::from_be_bytes([first, second]) % 100 < 10
            });
            let held_out: Vec<String> = own.flat_map(|n| [format!("place{n}x"), format!("place{}x", n + 1)]).collect();
            assert!(!held_out.is_empty() && !made.held_out.is_empty() && made.lines.len() > 200);
            for (user, _) in turns(&made.lines) {
                assert!(!Text::of(user).may_give(&held_out), "seed {seed}: {user}");
            }
            // At least the second passages of the held-out pairs have contexts of their own.
            assert!(made.shared > 0, "seed {seed}");
            let unaware = make(&Making { held_out_percent: 0, ..making(folder.path(), seed) }).unwrap();
            assert_eq!((unaware.shared, unaware.held_out.len()), (0, 0));
        }
    }

    #[test]
    fn unanswerable_examples_have_a_bound() {
        let only = item("1", "unanswerable", &[("Fish", "Fish swim.")], "Who swims?", &[]);
        let (mixed, only) = (folder(&items()), folder(&[only]));
        let bounded =
            |percent, seed| make(&Making { unanswerable_percent: percent, ..making(mixed.path(), seed) }).unwrap();
        let all = bounded(100, 1);
        let made = bounded(20, 1);
        for (lines, whole) in [(&made.lines, &all.lines), (&made.held_out, &all.held_out)] {
            let share = |lines: &[Line]| (lines.iter().filter(|line| is_unanswerable(line)).count(), lines.len());
            let ((before, of), (missing, kept)) = (share(whole), share(lines));
            assert!(100 * before > 20 * of && 100 * missing <= 20 * kept, "{missing} of {kept}");
            assert!(100 * (missing + 1) > 20 * (kept + 1), "one more would be too many: {missing} of {kept}");
            // The others are the same in the same order.
            let mut rest = whole.iter();
            assert!(lines.iter().all(|line| rest.any(|other| other == line)));
            assert_eq!(kept - missing, of - before);
        }
        assert_eq!(made.surplus, all.lines.len() + all.held_out.len() - made.lines.len() - made.held_out.len());
        assert_eq!((made.unanswerable + made.surplus, all.surplus), (all.unanswerable, 0));
        assert_eq!(made, bounded(20, 1));
        assert_eq!(bounded(0, 1).unanswerable, 0);
        // Without any other example none is left.
        let making = Making { held_out_percent: 0, unanswerable_percent: 50, ..making(only.path(), 1) };
        assert!(make(&making).unwrap_err().to_string().contains("usable items"));
    }

    #[test]
    fn a_question_is_not_borrowed_if_the_passage_may_answer_it() {
        let digits = "The tower has 25 steps. Ann keeps it.";
        let names = "The gate has twenty-five steps. Bob shut it.";
        let asked = |id: &str, text: &str, question: &str, answer: &str| {
            item(id, "single", &[("Castle", text)], question, &[answer])
        };
        let folder = folder(&[
            asked("1", digits, "How many steps has the tower?", "25"),
            asked("2", names, "How many steps has the gate?", "twenty-five"),
            asked("3", digits, "Who is there?", "Ann"),
            asked("4", digits, "Is the tower kept?", "yes"),
        ]);
        // In another file the same passage has another layout and answers the question "Who is there?".
        add(&folder, "b.jsonl.gz", &[asked("5", &names.replace(' ', "\n"), "Who is there?", "Bob")]);
        // A text that is never without its answer, so that there is an example for each seed.
        let fish = item("6", "boolean", &[("Fish", "Fish swim.")], "Do fish swim?", &["yes"]);
        add(&folder, "c.jsonl.gz", &[fish]);
        for seed in 0..20 {
            let made = make(&Making { held_out_percent: 0, ..making(folder.path(), seed) }).unwrap();
            for (user, answer) in turns(&made.lines) {
                assert_ne!(answer, reading::NOT_FOUND, "seed {seed}: {user}");
            }
        }
    }

    #[test]
    fn what_a_source_marks_as_unanswerable_gets_no_other_passage_of_its_document() {
        let mut items: Vec<serde_json::Value> = Vec::new();
        for n in 0..60 {
            let (title, text) = (format!("Town {}", n % 3), format!("Fact number{n} of the town is true."));
            let (id, question) = (format!("{n}"), format!("Who wrote fact {n}?"));
            items.push(item(&id, "unanswerable", &[(title.as_str(), text.as_str())], &question, &[]));
        }
        let folder = folder(&items);
        let made = make(&Making { held_out_percent: 0, ..making(folder.path(), 1) }).unwrap();
        let titles = |user: &str| -> Vec<char> {
            user.lines().filter_map(|line| line.split_once("] Town ")?.1.chars().next()).collect()
        };
        let shown: Vec<Vec<char>> = turns(&made.lines).iter().map(|(user, _)| titles(user)).collect();
        assert!(shown.len() == 60 && shown.iter().any(|titles| titles.len() > 1), "{shown:?}");
        for (titles, (user, _)) in shown.iter().zip(turns(&made.lines)) {
            let asked: usize = user.trim_end_matches('?').rsplit(' ').next().unwrap().parse().unwrap();
            let own = char::from_digit((asked % 3) as u32, 10).unwrap();
            assert_eq!(titles.iter().filter(|title| **title == own).count(), 1, "{user}");
        }
    }

    #[test]
    fn all_members_of_a_file_are_read_and_items_without_passages_are_left_out() {
        let folder = folder(&items());
        let whole = make(&making(folder.path(), 1)).unwrap().files[0].clone();
        let kinds = ["single", "story", "multihop", "unanswerable"];
        let empty: Vec<serde_json::Value> = kinds.iter().map(|kind| item(kind, kind, &[], "Who?", &["Ann"])).collect();
        add(&folder, "a.jsonl.gz", &empty);
        let made = make(&making(folder.path(), 1)).unwrap();
        assert_eq!(made.files[0], (whole.0, whole.1 + 4, whole.2));
    }

    #[test]
    fn files_can_be_left_out() {
        let folder = folder(&items());
        let making = Making { without: vec!["a".into()], ..making(folder.path(), 1) };
        assert!(make(&making).unwrap_err().to_string().contains("no *.jsonl.gz"));
    }
}
