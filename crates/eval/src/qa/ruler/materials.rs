//! The materials of RULER's texts: word lists, novels, and paragraphs with questions.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Kind, Task};
use crate::data::files;
use crate::data::records::Records;
use crate::data::squad;
use crate::{Error, Result};

/// Word lists, sentences of novels, and questions over paragraphs.
#[derive(Debug, Default)]
pub struct Materials {
    pub(super) adjectives: Vec<String>,
    pub(super) nouns: Vec<String>,
    /// Words for lists: adjectives, nouns and verbs, then those of the novels.
    pub(super) words: Vec<String>,
    pub(super) sentences: Vec<String>,
    pub(super) squad: Pool,
    pub(super) hotpot: Pool,
    /// The files that were read.
    pub(super) files: Vec<PathBuf>,
}

/// Paragraphs, and questions with the paragraphs that they need.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub paragraphs: Vec<String>,
    pub questions: Vec<Asked>,
}

#[derive(Debug)]
pub(super) struct Asked {
    pub question: String,
    pub golds: Vec<String>,
    /// Its paragraphs.
    pub needed: Vec<usize>,
    /// Paragraphs to fill up with first.
    pub first: Vec<usize>,
}

#[derive(Deserialize)]
struct Hotpot {
    question: String,
    answer: String,
    supporting_facts: Vec<(String, i64)>,
    context: Vec<(String, Vec<String>)>,
}

impl Materials {
    /// Reads a folder with `ruler/*list.txt` and `novels/*.txt`, and optionally `xquad/xquad.en.json` for `qa_1` and
    /// HotpotQA's own file in `hotpotqa` for `qa_2`.
    ///
    /// # Errors
    /// [`Error::Read`] for missing lists, [`Error::NotTheData`] for a folder without novels, and those of the files.
    pub fn open(folder: &Path) -> Result<Materials> {
        let mut materials = Materials::default();
        materials.adjectives = materials.list(&folder.join("ruler/adjectivelist.txt"))?;
        materials.nouns = materials.list(&folder.join("ruler/nounlist.txt"))?;
        let verbs = materials.list(&folder.join("ruler/verblist.txt"))?;
        materials.read_novels(&folder.join("novels"))?;
        let lists = [&materials.adjectives, &materials.nouns, &verbs];
        let listed: BTreeSet<String> = lists.into_iter().flatten().cloned().collect();
        let from_novels: BTreeSet<String> = materials
            .sentences
            .iter()
            .flat_map(|sentence| sentence.split(|c: char| !c.is_ascii_lowercase()))
            .filter(|word| word.len() > 3 && !listed.contains(*word))
            .map(str::to_owned)
            .collect();
        materials.words = listed.into_iter().chain(from_novels).collect();
        let (squad, hotpot) = (folder.join("xquad/xquad.en.json"), folder.join("hotpotqa"));
        if squad.is_file() {
            materials.read_squad(&squad)?;
        }
        if hotpot.is_dir() {
            materials.read_hotpot(&files::find(&hotpot, &["distractor", "dev"])?)?;
        }
        Ok(materials)
    }

    /// The files that were read.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether a task can be generated.
    pub(super) fn serve(&self, task: Task) -> bool {
        match task.kind {
            Kind::Squad => !self.squad.questions.is_empty(),
            Kind::Hotpot => !self.hotpot.questions.is_empty(),
            _ => true,
        }
    }

    fn list(&mut self, path: &Path) -> Result<Vec<String>> {
        let file = fs::read_to_string(path).map_err(Error::reading(path))?;
        self.files.push(path.to_owned());
        let words: Vec<String> =
            file.lines().map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        if words.is_empty() {
            return Err(Error::NotTheData { path: path.to_owned(), problem: "there are no words in it".into() });
        }
        Ok(words)
    }

    fn read_novels(&mut self, folder: &Path) -> Result<()> {
        let mut novels = Vec::new();
        for entry in fs::read_dir(folder).map_err(Error::reading(folder))? {
            let path = entry.map_err(Error::reading(folder))?.path();
            novels.extend(Some(path).filter(|path| path.extension().is_some_and(|extension| extension == "txt")));
        }
        novels.sort();
        for path in novels {
            let novel = fs::read_to_string(&path).map_err(Error::reading(&path))?;
            let one_line = |sentence: &str| sentence.split_whitespace().collect::<Vec<_>>().join(" ");
            let novel = novel.replace(".\n", ". ");
            let sentences = novel.split_inclusive(". ").map(one_line);
            self.sentences.extend(sentences.filter(|sentence| !sentence.is_empty()));
            self.files.push(path);
        }
        if self.sentences.is_empty() {
            return Err(Error::NotTheData { path: folder.to_owned(), problem: "there are no novels in it".into() });
        }
        Ok(())
    }

    fn read_squad(&mut self, path: &Path) -> Result<()> {
        for article in squad::read(path)? {
            let places = self.squad.paragraphs.len()..self.squad.paragraphs.len() + article.paragraphs.len();
            for (place, paragraph) in places.clone().zip(article.paragraphs) {
                self.squad.paragraphs.push(paragraph.context);
                let questions = paragraph.qas.into_iter().map(|qa| Asked {
                    golds: qa.golds(),
                    question: qa.question,
                    needed: vec![place],
                    first: places.clone().filter(|other| *other != place).collect(),
                });
                self.squad.questions.extend(questions);
            }
        }
        self.files.push(path.to_owned());
        Ok(())
    }

    fn read_hotpot(&mut self, path: &Path) -> Result<()> {
        let mut places: HashMap<String, usize> = HashMap::new();
        for hotpot in Records::<Hotpot>::read(path)?.into_values() {
            let mut needed = Vec::new();
            for (title, sentences) in hotpot.context {
                let paragraph = format!("{title}\n{}", sentences.concat());
                let paragraphs = &mut self.hotpot.paragraphs;
                let place = *places.entry(paragraph).or_insert_with_key(|paragraph| {
                    paragraphs.push(paragraph.clone());
                    paragraphs.len() - 1
                });
                needed.extend(hotpot.supporting_facts.iter().any(|(fact, _)| *fact == title).then_some(place));
            }
            let (question, golds) = (hotpot.question, vec![hotpot.answer]);
            self.hotpot.questions.push(Asked { question, golds, needed, first: Vec::new() });
        }
        self.files.push(path.to_owned());
        Ok(())
    }
}
