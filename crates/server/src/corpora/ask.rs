//! POST /v1/corpora/{corpus}/ask: answers a question by any method; streams its steps and returns the answer with
//! citations.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{OnText, WorkflowId};
use memory::{MIN_EVIDENCE_TOKENS, MemoryError, Session, Settings, Trace, methods};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::answered::Answered;
use super::ready::prepare;
use super::search::check_length;
use super::settings::{default_settings, method};
use super::thread::{self, Place};
use crate::admitted::AdmittedJson;
use crate::app::{App, fresh_id, priority, random};
use crate::blocking::{run_blocking, run_on_thread};
use crate::error::{Result, ServerError};
use crate::limits::{MAX_PAGES, TEMPERATURE, count, in_range};
use crate::lost::CorpusState;
use crate::stream::{Framing, respond};
use crate::tenant::{CurrentTenant, Tenant};

/// A question and its settings; defaults are those of the command line.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskRequest {
    pub question: String,
    /// `auto` by default.
    pub method: Option<String>,
    /// Send steps and text as they arrive: events `step`, `text` and `answer`.
    pub stream: Option<bool>,
    pub temperature: Option<f32>,
    pub seed: Option<u64>,
    /// Maximum pages per search; for `memcot` turns. This option and the next two are refused if the method does not have them.
    pub k: Option<usize>,
    /// Maximum rounds of research, search, probing or tool use, depending on the method.
    pub max_iterations: Option<usize>,
    /// What the research of `gam` passes to the answer: `integration`, `pages` or `extraction`.
    pub output: Option<String>,
    /// Order of the parts of prompts: `shared-first` or `paper`.
    pub layout: Option<String>,
    /// Form of prompts: `paper` or `small`; by default that of each model's size.
    pub profile: Option<String>,
    /// Maximum tokens of retrieved pages in one prompt, 64 or more.
    pub evidence_tokens: Option<usize>,
    /// Seconds to wait for the preparation of the corpus, at most those of the server (`--prepare-wait`), by default all
    /// of them; then the answer is from what is ready.
    pub prepare_wait: Option<u64>,
    /// The id of the thread to which question and answer are appended.
    pub thread: Option<String>,
    /// The turn of the thread that asks this question already, from 0: it gets a further answer.
    pub turn: Option<usize>,
    /// True if the question may refer to the turns before it. Models from 3B parameters on rewrite it first so that it is
    /// understood alone; for smaller ones rules replace its pronouns. The answer has the result as `understood`. With smaller models
    /// `rag` also searches for the words of the questions before it, and the answer has the query as `searched_with`.
    pub follow_up: Option<bool>,
    /// The turns before the question, in a conversation that is not a thread.
    #[serde(skip)]
    pub earlier: Vec<memory::Turn>,
}

/// Receives what happens while a question is answered: the name of an event (`step`, `text`) and its fields.
pub(crate) type Watch = Arc<dyn Fn(&str, &Value) + Send + Sync>;

/// No method needs more.
const MAX_ROUNDS: usize = 100;

/// Answer a question from a corpus.
#[utoipa::path(post, path = "/v1/corpora/{corpus}/ask", tag = "Memory", params(("corpus" = String, Path)),
    request_body = AskRequest, responses((status = 200, content((Answered = "application/json"), (String = "text/event-stream"))), (status = 404),
        (status = 409, description = "The corpus holds no documents")))]
pub(super) async fn ask(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    AdmittedJson(request, permit): AdmittedJson<AskRequest>,
) -> Result<Response> {
    if !request.stream.unwrap_or(false) {
        return Ok(Json(answer(&app, &tenant, corpus, request, None, |_| {}).await?).into_response());
    }
    respond(Framing::Events, |sink| async move {
        let _permit = permit;
        let report = |progress: &Value| sink.event("step", progress);
        let out = sink.clone();
        let watch: Watch = Arc::new(move |name, value| out.event(name, value));
        let answer = answer(&app, &tenant, corpus, request, Some(watch), report).await?;
        sink.event("answer", &answer);
        Ok(())
    })
    .await
}

/// Prepares what is missing, within the time for it, and answers from what is ready then. `watch` gets
/// steps and text, and `report` gets the progress of the preparation. The trace is kept also if this fails.
pub(crate) async fn answer(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: String,
    request: AskRequest,
    watch: Option<Watch>,
    report: impl Fn(&Value),
) -> Result<Value> {
    let started = Instant::now();
    if request.question.trim().is_empty() {
        return Err(MemoryError::EmptyQuestion.into());
    }
    check_length("question", &request.question)?;
    let settings = Settings { keep_prefixes: app.config.keep_prefixes, ..settings(&request)? };
    if request.follow_up.unwrap_or(false) && request.thread.is_none() {
        return Err(ServerError::invalid("`follow_up` needs the `thread` whose turns it refers to", "follow_up"));
    }
    let place = place(app, tenant, &corpus, &request).await?;
    let wait = request.prepare_wait.map(Duration::from_secs);
    let (id, record) = (fresh_id("trace")?, Record::new(watch.clone()));
    let (kept, name) = (Arc::clone(&record.kept), corpus.clone());
    // The work runs on a thread, which does not know this task.
    let priority = priority();
    let work = {
        let (app, tenant, corpus, settings) = (Arc::clone(app), Arc::clone(tenant), corpus.clone(), settings.clone());
        let id = id.clone();
        move |why: String, state: CorpusState| async move {
            let corpus = tenant.open(&corpus)?;
            let trace = Trace::to(record);
            let mut session = Session {
                caller: &*app.caller,
                embedder: &*app.embedder,
                settings,
                trace: &trace,
                workflow: WorkflowId(random()?),
                tenant: tenant.id,
                priority,
                on_text: watch.map(|watch| OnText::new(move |text| watch("text", &json!({ "text": text })))),
            };
            let turns = match &place {
                Some(place) if request.follow_up.unwrap_or(false) => thread::before(&corpus, place)?,
                _ => request.earlier,
            };
            let understood = memory::standalone(&request.question, &turns, &session).await?;
            session.settings.search_query = memory::search_query(&request.question, &turns, &session);
            let answer = memory::ask_what_is_ready(&understood, &corpus, session, &why).await?;
            let mut answer =
                serde_json::to_value(answer).map_err(|error| ServerError::Memory(MemoryError::Trace(error.into())))?;
            if understood != request.question {
                answer["understood"] = understood.into();
            }
            answer["elapsed_seconds"] = started.elapsed().as_secs_f64().into();
            answer["trace"] = id.into();
            // While the corpus is open: a document that is deleted later is forgotten by the thread too.
            if let Some(place) = place
                && let Some(turn) = thread::append(&corpus, &place, &request.question, &answer, &state)?
            {
                (answer["thread"], answer["turn"]) = (place.thread.into(), turn.into());
            }
            Ok(answer)
        }
    };
    let mut state = None;
    let outcome = app
        .with_deadline(async {
            let why = prepare(app, tenant, &corpus, &settings, wait, report).await?;
            let (owner, name) = (Arc::clone(tenant), corpus.clone());
            let now = run_blocking(move || owner.forget.state(&name)).await?;
            state = Some(now.clone());
            run_on_thread(move || work(why, now)).await
        })
        .await;
    let lines = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    // Without a state no page was read.
    if let Some(state) = state {
        tenant.traces.put(id, name, state, lines);
    }
    outcome
}

/// The place in a thread for the answer, which is checked before the question is asked.
async fn place(app: &App, tenant: &Arc<Tenant>, corpus: &str, request: &AskRequest) -> Result<Option<Place>> {
    let Some(thread) = request.thread.clone() else {
        return match request.turn {
            None => Ok(None),
            Some(_) => Err(ServerError::invalid("`turn` needs the `thread` that it belongs to", "turn")),
        };
    };
    if !app.config.keep_threads {
        return Err(ServerError::NoThreads);
    }
    let place = Place { thread, turn: request.turn };
    let (tenant, corpus, question) = (Arc::clone(tenant), corpus.to_owned(), request.question.clone());
    run_blocking(move || {
        thread::check(&tenant.open(&corpus)?, &place, &question)?;
        Ok(Some(place))
    })
    .await
}

fn settings(request: &AskRequest) -> Result<Settings> {
    let default = default_settings();
    if let Some(tokens) = request.evidence_tokens.filter(|tokens| *tokens < MIN_EVIDENCE_TOKENS) {
        let reason = format!("`evidence_tokens` is {tokens}; a passage needs {MIN_EVIDENCE_TOKENS} or more");
        return Err(ServerError::invalid(reason, "evidence_tokens"));
    }
    let named = |reason: String, param: &str| ServerError::invalid(reason, param);
    let mut settings = Settings {
        method: method(request.method.as_deref())?,
        layout: request
            .layout
            .as_deref()
            .map_or(Ok(default.layout), str::parse)
            .map_err(|reason| named(reason, "layout"))?,
        profile: request
            .profile
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|reason: String| named(reason, "profile"))?,
        temperature: in_range(request.temperature, default.temperature, TEMPERATURE, "temperature")?,
        seed: request.seed.unwrap_or(default.seed),
        evidence_tokens: request.evidence_tokens,
        ..default
    };
    let counts = [("k", request.k, MAX_PAGES), ("max_iterations", request.max_iterations, MAX_ROUNDS)];
    for (param, value, most) in counts {
        if let Some(number) = value {
            set(param, count(number, most, param)?.into(), &mut settings)?;
        }
    }
    if let Some(output) = &request.output {
        set("output", output.as_str().into(), &mut settings)?;
    }
    Ok(settings)
}

/// Sets an option, which has to have an effect on the method.
fn set(name: &str, value: Value, settings: &mut Settings) -> Result<()> {
    if let Some((_, having)) = methods::without_effect([name].into_iter(), &[settings.method]) {
        let reason = format!("`{name}` has no effect on the method {}; these have it: {having}", settings.method);
        return Err(ServerError::invalid(reason, name));
    }
    let changes = serde_json::Map::from_iter([(name.to_owned(), value)]);
    methods::set_options(&changes, settings).map_err(|reason| ServerError::invalid(reason, name))
}

/// Records the lines of a trace and forwards them as steps.
struct Record {
    line: Vec<u8>,
    kept: Arc<Mutex<Vec<u8>>>,
    watch: Option<Watch>,
}

impl Record {
    fn new(watch: Option<Watch>) -> Record {
        Record { line: Vec::new(), kept: Arc::default(), watch }
    }
}

impl Write for Record {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Each flush ends one line.
    fn flush(&mut self) -> io::Result<()> {
        if let Some(watch) = &self.watch
            && let Ok(Value::Object(mut event)) = serde_json::from_slice(&self.line)
        {
            // Prompts are long; the trace contains them.
            event.remove("prompt");
            watch("step", &event.into());
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.line);
        Ok(())
    }
}
