//! GAM's researcher at work on a conversation: the prompts it sends, recorded once against scripted answers.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use calls::{
    Agent, BoxFuture, Call, CallError, Caller, Finish, ModelInfo, Priority, Reply, ScriptedEmbedder, TenantId, Tokens,
    Usage, WorkflowId,
};
use memory::{Session, Settings, Trace, gam};
use serde_json::json;
use sources::{ReadOptions, Source};
use store::Corpora;

use super::workload::{self, Workload};
use super::{EngineUnderTest, SpeedSuite, Unit};
use crate::{Error, Result, Suite};

/// Memorises the file's first conversation and asks its first questions, two rounds each; all questions run side by side.
pub(super) async fn record(file: &Path, questions: usize, engine: &dyn EngineUnderTest) -> Result<Workload> {
    let data = Suite::LoCoMo.load(file)?;
    let collection = data.collections.first().ok_or(Error::NotTheData {
        path: file.to_owned(),
        problem: "it holds no conversation with questions".into(),
    })?;
    let conversation = conversation(file, &collection.name)?;
    let folder = tempfile::tempdir().map_err(Error::Scratch)?;
    let mut writer = Corpora::new(folder.path()).create("trace").map_err(memory::MemoryError::from)?;
    let script = Script { machine: engine.caller(), asked: Mutex::default() };
    let trace = Trace::off();
    let session = Session {
        caller: &script,
        embedder: &ScriptedEmbedder,
        settings: Settings::default().with_options(gam::Options { max_iterations: 2, ..gam::Options::default() }),
        trace: &trace,
        workflow: WorkflowId(1),
        tenant: TenantId::LOCAL,
        priority: Priority::Workflow,
        on_text: None,
    };
    memory::add(&conversation, &mut writer, &session)?;
    memory::prepare(&mut writer, &session, &mut |_| {}).await?;
    let mut chains = Vec::new();
    for (number, query) in collection.queries.iter().take(questions).enumerate() {
        script.begin(&query.text);
        let workflow = WorkflowId(number as u64 + 2);
        memory::ask(
            &query.text,
            &writer,
            &Session { workflow, settings: session.settings.clone(), on_text: None, ..session },
        )
        .await?;
        chains.push(script.end());
    }
    let case = format!("{} questions, {}", chains.len(), collection.name);
    let suite = SpeedSuite::GamTrace;
    Ok(Workload { suite, case, unit: Unit::Seconds, counts_tokens: true, prefilled: false, chains })
}

fn conversation(file: &Path, name: &str) -> Result<Source> {
    let sources = sources::read(file, &ReadOptions::default())?;
    let found = sources.into_iter().find(|source| source.path.ends_with(name));
    found.ok_or_else(|| Error::NotTheData { path: file.to_owned(), problem: format!("{name} cannot be found again") })
}

/// Answers with words of the lengths that agents write, and records the calls.
struct Script<'a> {
    /// The caller whose tokens count.
    machine: &'a dyn Caller,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    question: String,
    calls: Vec<Call>,
    /// Answers so far, so that no two are alike.
    answers: usize,
}

impl Script<'_> {
    fn begin(&self, question: &str) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        question.clone_into(&mut asked.question);
        asked.calls.clear();
    }

    fn end(&self) -> Vec<Call> {
        std::mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner).calls)
    }

    fn reply(&self, call: &Call) -> Reply {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.answers += 1;
        let question = &asked.question;
        let says = |count| workload::words(asked.answers, count);
        let text = match call.step {
            "gam.memorize" => says(40),
            "gam.plan" => {
                let mut keywords: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).collect();
                keywords.sort_by_key(|word| std::cmp::Reverse(word.len()));
                keywords.truncate(3);
                json!({ "info_needs": [question], "tools": ["keyword", "vector"], "keyword_collection": keywords,
                    "vector_queries": [question], "page_index": [] })
                .to_string()
            }
            "gam.integrate" => json!({ "content": says(80), "sources": [] }).to_string(),
            "gam.info_check" => json!({ "enough": false }).to_string(),
            "gam.follow_up" => json!({ "new_requests": [format!("{question} {}", says(4))] }).to_string(),
            _ => says(20),
        };
        let output_tokens = self.machine.tokens().count_tokens(call.agent, &text);
        asked.calls.push(workload::fixed(call.clone(), output_tokens));
        let usage = Usage { calls: 1, output_tokens, ..Usage::default() };
        Reply {
            text,
            thought: None,
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            stopped_by: None,
            end_token: None,
            usage,
            diverged: None,
            logprobs: Vec::new(),
            rendered: String::new(),
            model: "script".into(),
        }
    }
}

impl Caller for Script<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, std::result::Result<Reply, CallError>> {
        Box::pin(async move { Ok(self.reply(&call)) })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.machine.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self
    }
}

impl ModelInfo for Script<'_> {
    fn model(&self, agent: Agent) -> &str {
        self.machine.models().model(agent)
    }

    fn parameters(&self, agent: Agent) -> Option<u64> {
        self.machine.models().parameters(agent)
    }
}
