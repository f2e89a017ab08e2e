//! Training data: converts question-answering items to examples in the product's format for short answers.
//!
//! An item's passages get distractors, in an order drawn by the seed; the answer is a span of the text where the item
//! allows, `yes` or `no`, or that the documents do not have it. Some questions are made unanswerable by leaving out the
//! passage with the answer, others are asked about another passage of the same document or story.

mod example;
mod items;
mod shelf;
#[cfg(test)]
mod tests;
mod wording;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use calls::reading;
use random::Random;

use crate::error::{Result, TrainError, io};
use crate::examples::{Line, Message};
use example::example;
use items::{Context, Item, Passage, own_passages, read};
use shelf::{Answered, Shelf};
use wording::key;

/// The parameters of the conversion.
#[derive(Debug, Clone)]
pub struct Making {
    /// Folder of `*.jsonl.gz`.
    pub from: PathBuf,
    pub seed: u64,
    /// Files whose names start with one of these are left out.
    pub without: Vec<String>,
    /// The number of examples behind which no context of a file is taken any more, by the beginning of the file's name.
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

/// Converts all files of a folder to examples.
///
/// # Errors
/// If a file cannot be read, a line is not an item, or `most` names no file.
pub fn make(making: &Making) -> Result<Made> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&making.from)
        .map_err(io(&making.from))?
        .map(|entry| Ok(entry.map_err(io(&making.from))?.path()))
        .collect::<Result<_>>()?;
    paths.retain(|path| {
        let name = name_of(path);
        name.ends_with(".jsonl.gz") && !making.without.iter().any(|prefix| name.starts_with(prefix.as_str()))
    });
    paths.sort();
    let is_unknown = |prefix: &str| !paths.iter().any(|path| name_of(path).starts_with(prefix));
    if let Some((prefix, _)) = making.most.iter().find(|(prefix, _)| is_unknown(prefix)) {
        let folder = making.from.display();
        return Err(TrainError::Settings(format!("--most {prefix}: no file that is read from {folder} begins so")));
    }
    let files: Vec<(String, Vec<Item>)> =
        paths.iter().map(|path| Ok((name_of(path), read(path)?))).collect::<Result<_>>()?;
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

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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

fn line(passages: &[Passage], question: &str, answer: &str) -> Line {
    let user = reading::user(passages.iter().map(|p| (p.title.as_str(), p.text.as_str())), question);
    let turn = |role: &str, content: &str| Message { role: role.into(), content: content.into() };
    Line::Chat { messages: vec![turn("system", reading::SYSTEM), turn("user", &user), turn("assistant", answer)] }
}
