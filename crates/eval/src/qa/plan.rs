//! The parameters of a run: which questions are asked, and how.

use std::collections::BTreeMap;
use std::path::PathBuf;

use memory::{Layout, Method, Profile, Settings, methods};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::case::Cases;
use super::ruler::{self, Materials, Task};
use super::suite::QaSuite;
use crate::score::Scorer;
use crate::{Error, Result};

/// The parameters of a run; names are as on the command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub suite: String,
    pub data: PathBuf,
    pub methods: Vec<String>,
    pub models: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memorizer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub researcher: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builder: Option<String>,
    /// Adapters that models are named with, `NAME=PATH` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapters: Vec<String>,
    pub embedder: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantise: Option<String>,
    /// The factor by which YaRN extends the models' context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yarn: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    pub scorers: Vec<String>,
    /// Only the first questions, at most this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The number of questions drawn by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// Prefixes of the ids of the cases to ask; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// Prefixes of the categories to ask; all if empty.
    pub categories: Vec<String>,
    pub seed: u64,
    pub layout: String,
    /// The profile of all agents; by default each has that of its model's size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    pub output: String,
    pub temperature: f32,
    /// Tokens of a page; by default the value of the preset for the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_tokens: Option<usize>,
    /// Tokens of a page by method, as the preset has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub method_page_tokens: BTreeMap<String, usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_tokens: Option<usize>,
    /// Hits of each search; by default the value of each method's paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<usize>,
    /// Hits of each search by method, as the preset has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub method_k: BTreeMap<String, usize>,
    /// How `rag` searches [default: fused].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// MemCoT's store [default: hybrid].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memcot_store: Option<String>,
    /// ComoRAG's layers; all of them if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// MemCoT's turns on either side; by default the paper's value for the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// Rounds of research, search or probing; by default the value of each method's paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<usize>,
    /// Whether the tokens and log-probabilities of all calls are recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rollouts: bool,
    /// Concurrent questions.
    pub width: usize,
    /// RULER's length, tasks and samples of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruler: Option<RulerPlan>,
}

/// The parameters of RULER's generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulerPlan {
    pub length_tokens: usize,
    /// By name; all if empty.
    pub tasks: Vec<String>,
    pub samples: usize,
}

impl Plan {
    /// The suite.
    ///
    /// # Errors
    /// [`Error::Plan`] for an unknown name.
    pub fn suite(&self) -> Result<QaSuite> {
        self.suite.parse().map_err(Error::Plan)
    }

    /// The methods.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn methods(&self) -> Result<Vec<&'static dyn Method>> {
        self.methods.iter().map(|name| methods::find(name).map_err(Error::Plan)).collect()
    }

    /// The scorers.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn scorers(&self) -> Result<Vec<Scorer>> {
        self.scorers.iter().map(|name| name.parse().map_err(Error::Plan)).collect()
    }

    /// The profile of all agents, if the plan names one.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn profile(&self) -> Result<Option<Profile>> {
        self.profile.as_deref().map(str::parse).transpose().map_err(Error::Plan)
    }

    /// Tokens of a method's pages, if the plan or its preset says so.
    pub(super) fn page_tokens_of(&self, method: &dyn Method) -> Option<usize> {
        self.page_tokens.or_else(|| self.method_page_tokens.get(method.name()).copied())
    }

    /// The settings of a method's run.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn settings(&self, method: &'static dyn Method) -> Result<Settings> {
        let suite = self.suite()?;
        let mut settings = Settings {
            method,
            layout: self.layout.parse::<Layout>().map_err(Error::Plan)?,
            profile: self.profile()?,
            page_tokens: self.page_tokens_of(method),
            evidence_tokens: self.evidence_tokens,
            temperature: self.temperature,
            seed: self.seed,
            answer_rules: Some(suite.answer_rules()),
            answer_form: suite.answer_form(),
            ..Settings::default()
        };
        let mut options = Map::from_iter([
            ("output".to_owned(), json!(self.output)),
            ("window".to_owned(), json!(self.window.unwrap_or(suite.window()))),
            ("layers".to_owned(), json!(self.layers)),
        ]);
        let k = self.k.or_else(|| self.method_k.get(method.name()).copied());
        let counts = [("k", k), ("max_iterations", self.max_iterations)];
        let counts = counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), Value::from(count?))));
        options.extend(counts);
        options.extend(self.search.as_ref().map(|tool| ("search".to_owned(), json!(tool))));
        options.extend(self.memcot_store.as_ref().map(|store| ("memcot_store".to_owned(), json!(store))));
        methods::set_options(&options, &mut settings).map_err(Error::Plan)?;
        Ok(settings)
    }

    /// The files with the questions or their materials.
    ///
    /// # Errors
    /// As [`Plan::cases`].
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        if self.ruler.is_some() {
            return Ok(Materials::open(&self.data)?.files().to_vec());
        }
        Ok(self.cases(&|_| 0)?.files)
    }

    /// The questions. `count` counts tokens for the generator.
    ///
    /// # Errors
    /// Those of [`QaSuite::load`] and [`Materials::open`].
    pub fn cases(&self, count: &dyn Fn(&str) -> usize) -> Result<Cases> {
        let mut cases = match &self.ruler {
            Some(ruler) => {
                let named = |name: &String| {
                    Task::named(name).ok_or_else(|| Error::Plan(format!("`{name}` is no task of RULER")))
                };
                let mut tasks = ruler.tasks.iter().map(named).collect::<Result<Vec<_>>>()?;
                if tasks.is_empty() {
                    tasks = Task::ALL.to_vec();
                }
                let materials = Materials::open(&self.data)?;
                ruler::generate(&materials, &tasks, ruler.length_tokens, ruler.samples, self.seed, count)
            }
            None => self.suite()?.load(&self.data)?,
        };
        if !self.cases.is_empty() {
            cases.only_of(&self.cases);
        }
        if !self.categories.is_empty() {
            cases.only(&self.categories);
        }
        if let Some(most) = self.sample {
            cases.sample(most, self.seed);
        }
        match self.limit {
            Some(most) if self.suite()?.has_outcomes() => cases.limit_each(most),
            Some(most) => cases.limit(most),
            None => {}
        }
        if cases.questions() == 0 {
            return Err(Error::NotTheData { path: self.data.clone(), problem: "no question is left to ask".into() });
        }
        Ok(cases)
    }
}
