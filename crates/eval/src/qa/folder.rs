//! The folder of a run of questions.
//!
//! ```text
//! FOLDER/qa-SUITE/plan.json          what the run is to do, and digests of its data, before it begins
//!                /manifest.json      plan, machine, commit, digests of models and data, digests of prompts
//!                /transcript.jsonl   every call with its reply
//!                /tape.jsonl         tokens and vectors, for a replay with no model
//!                /results.jsonl      item by item: question, gold answers, answer, scores
//!                /report.md .json    the numbers
//!                /plots/             pictures of them
//!                /work/              corpora; gone when the run is finished
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use memory::Profile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::item::{Column, Item, Line, Measured, Prepared};
use super::lines::{self, Appender};
use super::plan::Plan;
use super::tape::Tape;
use crate::host::peak_memory_bytes;
use crate::run_folder::{PLAN, create_empty, put_json};
use crate::score::Scorer;
use crate::{Error, FileDigest, Manifest, Result};

/// An open run folder.
#[derive(Debug)]
pub struct QaFolder {
    path: PathBuf,
    tape: Tape,
    results: Mutex<Appender>,
    data: Vec<FileDigest>,
}

/// Written before a run starts.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    #[serde(flatten)]
    plan: Plan,
    /// The files with the questions or their materials; absent in folders of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digests: Option<Vec<FileDigest>>,
}

/// The provenance of a run of questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QaManifest {
    pub plan: Plan,
    /// Corrections and omissions in the data, with reasons.
    pub notes: Vec<String>,
    pub scorers: Vec<ScorerDigest>,
    /// The profile of each model's agents; of agents with models of their own, the researcher's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, Profile>,
    /// Steps with digests of their instructions.
    pub prompts: Vec<(String, String)>,
    /// SHA-256 of these.
    pub prompts_sha256: String,
    /// The peak memory of the process.
    pub peak_memory_bytes: Option<u64>,
    #[serde(flatten)]
    pub run: Manifest,
}

/// A scorer and its version at the time of scoring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScorerDigest {
    pub name: String,
    pub version: u32,
    /// The digest of its judge's prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_prompts_sha256: Option<String>,
}

impl QaManifest {
    /// Describes a run that ends now.
    ///
    /// # Errors
    /// [`Error::Plan`] for a plan with unknown names.
    pub fn new(plan: Plan, notes: Vec<String>, tape: &Tape, run: Manifest) -> Result<QaManifest> {
        let prompts = tape.instructions();
        let mut digest = Sha256::new();
        prompts.iter().for_each(|(step, instructions)| digest.update(format!("{step} {instructions}\n")));
        Ok(QaManifest {
            profiles: tape.profiles(plan.profile()?),
            scorers: plan.scorers()?.into_iter().map(ScorerDigest::of).collect(),
            plan,
            notes,
            prompts,
            prompts_sha256: format!("{:x}", digest.finalize()),
            peak_memory_bytes: peak_memory_bytes(),
            run,
        })
    }
}

impl ScorerDigest {
    /// Describes the current version of a scorer.
    pub fn of(scorer: Scorer) -> ScorerDigest {
        ScorerDigest {
            name: scorer.to_string(),
            version: scorer.version(),
            judge_prompts_sha256: scorer.judge().map(crate::score::Judge::prompts_sha256),
        }
    }
}

impl QaFolder {
    /// Creates a folder for a plan.
    ///
    /// # Errors
    /// [`Error::Occupied`] if it is not empty, [`Error::Write`], and those of [`Plan::files`].
    pub fn create(path: &Path, plan: &Plan) -> Result<QaFolder> {
        QaFolder::begin(path, plan, digests(plan)?)
    }

    fn begin(path: &Path, plan: &Plan, data: Vec<FileDigest>) -> Result<QaFolder> {
        create_empty(path)?;
        write_plan(path, plan, &data)?;
        QaFolder::open(path.to_owned(), Tape::open(path)?, data)
    }

    /// Resumes an interrupted run; starts it if there is none.
    ///
    /// # Errors
    /// [`Error::OtherPlan`] if the run in the folder has another plan, [`Error::OtherData`] if it has other data or no
    /// record of its data, and those of its files.
    pub fn resume(path: &Path, plan: &Plan) -> Result<QaFolder> {
        let data = digests(plan)?;
        if !path.join(PLAN).exists() {
            return QaFolder::begin(path, plan, data);
        }
        let Begun { plan: before, digests } = read_json(&path.join(PLAN))?;
        let same = Plan { limit: plan.limit, models: plan.models.clone(), width: plan.width, ..before };
        if same != *plan {
            return Err(Error::OtherPlan { path: path.to_owned() });
        }
        let problem = match digests {
            Some(before) if before == data => None,
            Some(_) => Some("was begun with other data"),
            None => Some("does not say with which data it was begun"),
        };
        if let Some(problem) = problem {
            return Err(Error::OtherData { path: path.to_owned(), problem });
        }
        write_plan(path, plan, &data)?;
        QaFolder::open(path.to_owned(), Tape::open(path)?, data)
    }

    pub(super) fn replaying(path: PathBuf, tape: Tape) -> Result<QaFolder> {
        QaFolder::open(path, tape, Vec::new())
    }

    fn open(path: PathBuf, tape: Tape, data: Vec<FileDigest>) -> Result<QaFolder> {
        let file = path.join(RESULTS);
        // Truncates what a killed process did not finish, before appending.
        drop(lines::read::<Line>(&file)?);
        Ok(QaFolder { path, tape, results: Mutex::new(Appender::open(file)?), data })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The data files as they were when this process started with the run.
    pub fn data(&self) -> &[FileDigest] {
        &self.data
    }

    /// Its tape.
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    pub(super) fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    pub(super) fn put(&self, line: &Line) -> Result<()> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).append(line)
    }

    /// The keys of answered questions. Failed questions are not among them: they are asked again.
    pub(super) fn answered(&self) -> Result<BTreeSet<(Column, (String, String))>> {
        Ok(self.items()?.1.iter().filter(|item| item.failed.is_none()).map(Item::key).collect())
    }

    /// The results so far.
    ///
    /// # Errors
    /// Those of the file.
    pub fn items(&self) -> Result<(Vec<Prepared>, Vec<Item>)> {
        items(&self.path)
    }

    /// Writes the manifest, and removes the corpora.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(&self, manifest: &QaManifest) -> Result<()> {
        put_json(&self.path.join(MANIFEST), manifest)?;
        match fs::remove_dir_all(self.work()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::writing(&self.work())(error)),
            _ => Ok(()),
        }
    }
}

/// The manifest of a finished run.
///
/// # Errors
/// [`Error::Read`], [`Error::Record`].
pub fn manifest(run: &Path) -> Result<QaManifest> {
    read_json(&run.join(MANIFEST))
}

/// The results of a run, each once, in an order that does not depend on the order of completion.
///
/// # Errors
/// Those of the file.
pub fn items(run: &Path) -> Result<(Vec<Prepared>, Vec<Item>)> {
    let (mut prepared, mut items) = (BTreeMap::new(), BTreeMap::new());
    for line in lines::read::<Line>(&run.join(RESULTS))? {
        match line {
            Line::Prepared(line) => {
                prepared.insert((line.model.clone(), line.method.clone(), line.case.clone()), line);
            }
            Line::Answered(item) => {
                items.insert(item.key(), *item);
            }
            Line::Measured(_) => {}
        }
    }
    Ok((prepared.into_values().collect(), items.into_values().collect()))
}

/// The cost of phases, each summed once: seconds and fallbacks are added, peaks are maximised.
///
/// # Errors
/// Those of the file.
pub fn measured(run: &Path) -> Result<Vec<Measured>> {
    let mut all: Vec<Measured> = Vec::new();
    for line in lines::read::<Line>(&run.join(RESULTS))? {
        let Line::Measured(new) = line else { continue };
        match all.iter_mut().find(|known| known.scope == new.scope) {
            Some(known) => {
                known.seconds = known.seconds.zip(new.seconds).map(|(known, new)| known + new);
                known.fallbacks += new.fallbacks;
                known.peak_memory_bytes = known.peak_memory_bytes.max(new.peak_memory_bytes);
            }
            None => all.push(new),
        }
    }
    Ok(all)
}

fn digests(plan: &Plan) -> Result<Vec<FileDigest>> {
    FileDigest::of_all(plan.files()?)
}

fn write_plan(path: &Path, plan: &Plan, data: &[FileDigest]) -> Result<()> {
    put_json(&path.join(PLAN), &Begun { plan: plan.clone(), digests: Some(data.to_owned()) })
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let mut records = crate::data::records::Records::<T>::read(path)?.into_values();
    let empty = || Error::NotTheData { path: path.to_owned(), problem: "there is nothing in it".into() };
    records.next().ok_or_else(empty)
}

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const RESULTS: &str = "results.jsonl";
/// In a published run: names of the omitted files, with digests.
pub(super) const LEFT_OUT: &str = "left-out.json";
