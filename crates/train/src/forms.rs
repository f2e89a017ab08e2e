//! Training data: converts question-answering items to examples in the product's format for short answers.
//!
//! An item's passages get distractors, in an order drawn by the seed; the answer is a span of the text where the item
//! allows, `yes` or `no`, or that the documents do not have it. Some questions are made unanswerable by leaving out the
//! passage with the answer, others are asked about another passage of the same document or story.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use calls::reading;
use flate2::read::GzDecoder;
use random::Random;
use serde::Deserialize;

use crate::error::{Result, TrainError, io};
use crate::examples::{Line, Message};

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
    let mut made = Made::default();
    let (mut groups, mut held_out) = (Vec::new(), Vec::new());
    for path in &paths {
        let items = read(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let most = making.most.iter().find(|(prefix, _)| name.starts_with(prefix.as_str()));
        let most = most.map_or(usize::MAX, |(_, most)| *most);
        let mut random = Random::named(making.seed, &name);
        let shelf = Shelf::new(&items);
        let mut count = 0;
        for group in by_context(&items, &mut random) {
            if count >= most {
                break;
            }
            let Some((passages, questions)) = example(&group, &shelf, &mut random) else { continue };
            count += questions.len();
            made.unanswerable += questions.iter().filter(|(_, answer)| answer == reading::NOT_FOUND).count();
            let lines: Vec<Line> = questions.iter().map(|(asked, answer)| line(&passages, asked, answer)).collect();
            // By its first own passage, so that no context is in both sets.
            let key = own_passages(group[0]).first().map(|passage| passage.text.clone()).unwrap_or_default();
            let digest = blake3::hash(key.as_bytes());
            let bucket = u64::from(u16::from_be_bytes([digest.as_bytes()[0], digest.as_bytes()[1]]));
            if bucket % 100 < making.held_out_percent { held_out.push(lines) } else { groups.push(lines) }
        }
        made.files.push((name, items.len(), count));
    }
    if groups.is_empty() {
        return Err(TrainError::NoExamples {
            path: making.from.clone(),
            reason: "no *.jsonl.gz with usable items".into(),
        });
    }
    for (groups, lines) in [(&mut groups, &mut made.lines), (&mut held_out, &mut made.held_out)] {
        Random::named(making.seed, "order").shuffle(groups);
        lines.extend(groups.drain(..).flatten());
    }
    Ok(made)
}

/// Questions of a document among which the one that shares most words with a passage is asked about it.
const UNANSWERED_TRIES: usize = 20;

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
    BufReader::new(GzDecoder::new(file)).read_to_string(&mut text).map_err(io(path))?;
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

/// All passages of a file, for distractors, and questions that have one passage.
struct Shelf<'a> {
    passages: Vec<Passage>,
    by_title: HashMap<String, Vec<usize>>,
    asked_of: HashMap<String, Vec<&'a Item>>,
}

impl<'a> Shelf<'a> {
    fn new(items: &'a [Item]) -> Shelf<'a> {
        let mut seen = HashSet::new();
        let mut shelf = Shelf { passages: Vec::new(), by_title: HashMap::new(), asked_of: HashMap::new() };
        for passage in items.iter().flat_map(own_passages) {
            if seen.insert(passage.text.clone()) {
                shelf.by_title.entry(passage.title.clone()).or_default().push(shelf.passages.len());
                shelf.passages.push(passage);
            }
        }
        for item in items.iter().filter(|item| !item.answers.is_empty()) {
            if let Context::Passages(passages) = &item.context
                && (item.kind == Kind::Single && passages.len() == 1 || item.kind == Kind::Story)
            {
                shelf.asked_of.entry(document(&passages[0].title).to_owned()).or_default().push(item);
            }
        }
        shelf
    }

    /// A question about another passage of the document that shares words with the passages but not its answer.
    fn unanswered(&self, title: &str, passages: &[Passage], random: &mut Random) -> Option<&'a Item> {
        let asked = self.asked_of.get(document(title))?;
        let text = passages.iter().map(|passage| passage.text.to_lowercase()).collect::<Vec<_>>().join("\n");
        let words: HashSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let shared = |item: &Item| {
            let question = item.question.to_lowercase();
            question.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3 && words.contains(word)).count()
        };
        (0..UNANSWERED_TRIES)
            .map(|_| *random.pick(asked))
            .filter(|item| !item.answers.iter().any(|answer| holds(&text, answer)))
            .filter(|item| item.kind != Kind::Story || !passages.iter().any(|p| item.supporting.contains(&p.title)))
            .max_by_key(|item| shared(item))
    }

    /// A passage of the same document, or of any.
    fn draw(&self, title: &str, same: bool, random: &mut Random) -> Option<&Passage> {
        let siblings = self.by_title.get(title).filter(|_| same && !title.is_empty());
        match siblings {
            Some(siblings) => Some(&self.passages[*random.pick(siblings)]),
            None if self.passages.is_empty() => None,
            None => Some(random.pick(&self.passages)),
        }
    }
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
fn example(items: &[&Item], shelf: &Shelf<'_>, random: &mut Random) -> Option<(Vec<Passage>, Vec<Asked>)> {
    let own = own_passages(items[0]);
    let whole: String = own.iter().map(|passage| passage.text.as_str()).collect::<Vec<_>>().join("\n");
    let asked: Vec<(&Item, String)> = items.iter().filter_map(|item| Some((*item, answer(item, &whole)?))).collect();
    let spans: Vec<&str> = asked.iter().map(|(_, answer)| answer.as_str()).filter(|answer| is_span(answer)).collect();
    let gives_away = |passage: &Passage| spans.iter().any(|answer| holds(&passage.text, answer));
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
        rest.retain(|passage| !gives_away(passage));
    }
    random.shuffle(&mut rest);
    let story = items[0].kind == Kind::Story;
    let alone = (own.len() == 1 || story) && !robbed && random.unit() < ALONE;
    let title = own.first().map_or("", |passage| passage.title.as_str());
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
        if chosen.contains(&next) || (own.contains(&next) && tries > 0) || (tries > 0 && gives_away(&next)) {
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
        let unanswered = shelf.unanswered(title, &chosen, random);
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
        // Supporting names titles or sentences.
        false => item.supporting.iter().any(|s| *s == passage.title || passage.text.contains(s.as_str())),
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    fn folder(items: &[serde_json::Value]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut file =
            GzEncoder::new(std::fs::File::create(folder.path().join("a.jsonl.gz")).unwrap(), Compression::fast());
        for item in items {
            writeln!(file, "{item}").unwrap();
        }
        file.finish().unwrap();
        folder
    }

    fn making(folder: &Path, seed: u64) -> Making {
        Making { from: folder.to_owned(), seed, without: Vec::new(), most: Vec::new(), held_out_percent: 10 }
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

    #[test]
    fn files_can_be_left_out() {
        let folder = folder(&items());
        let making = Making { without: vec!["a".into()], ..making(folder.path(), 1) };
        assert!(make(&making).unwrap_err().to_string().contains("no *.jsonl.gz"));
    }
}
