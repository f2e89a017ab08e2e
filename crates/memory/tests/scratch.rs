//! Corpora for tests, in folders that are removed when the test ends, and a run of a method against a script.

use std::error::Error;
use std::path::{Path, PathBuf};

use calls::{
    Call, Caller, Embedder, OnText, OutputFormat, Priority, Role, Scripted, ScriptedEmbedder, TenantId, WorkflowId,
};
use memory::{Answer, Event, Missing, Result, Session, Settings, Trace};
use serde_json::Value;
use sources::{Kind, Section, Source, Turn};
use store::{Corpora, Corpus, Layer, Writer};
use tempfile::TempDir;

pub type Outcome = std::result::Result<(), Box<dyn Error>>;

/// A context that gives pages of 512 tokens; an agent may write 512 tokens.
pub const CONTEXT_TOKENS: usize = 8192;

/// The memorizer's replies for [`lighthouse`].
const ABSTRACTS: [&str; 4] = [
    "Ada Brook keeps the lighthouse.",
    "A storm broke the harbour wall at Pell.",
    "Ada Brook married Tom Reed.",
    "The new lamp came from Paris.",
];

/// Four pages with one abstract each; their ids are 1 to 4.
const PAGES: [&str; 4] = [
    "The keeper Ada Brook lit the lamp of the lighthouse every evening at six.",
    "In November a storm broke the harbour wall near Pell.",
    "Ada Brook married the boat builder Tom Reed in 1911.",
    "The new lamp was bought in Paris for 900 crowns.",
];

/// A folder of corpora with one corpus in use: "scratch".
pub struct Scratch {
    folder: PathBuf,
    corpora: Corpora,
    /// Removed with the test, unless the test's caller removes the folder.
    _own: Option<TempDir>,
}

/// The outcome of a question.
pub struct Asked {
    pub answer: Result<Answer>,
    pub events: Vec<Event>,
}

impl Scratch {
    pub fn new() -> Scratch {
        let own = tempfile::tempdir().expect("the system has a folder for temporary files");
        let scratch = Scratch::at(own.path());
        Scratch { _own: Some(own), ..scratch }
    }

    /// In a folder that the caller removes.
    pub fn at(folder: &Path) -> Scratch {
        Scratch { folder: folder.to_owned(), corpora: Corpora::new(folder), _own: None }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The corpus "scratch" with the four pages of the lighthouse, memorised and embedded.
    pub fn lighthouse() -> Scratch {
        let scratch = Scratch::new();
        let memorizer = ABSTRACTS
            .iter()
            .fold(Scripted::new(CONTEXT_TOKENS), |script, abstract_| script.answer("gam.memorize", *abstract_));
        scratch.ingest(&[document("pell.txt", &PAGES)], &memorizer, &Settings::default()).expect("the script is whole");
        scratch
    }

    pub fn writer(&self) -> Writer {
        let known = self.corpora.open_writer("scratch");
        known.or_else(|_| self.corpora.create("scratch")).expect("the corpus is not open elsewhere")
    }

    pub fn corpus(&self) -> Corpus {
        self.corpora.open("scratch").expect("the corpus was made before")
    }

    /// Adds sources to the corpus and prepares it for the method of the settings; returns the events.
    pub fn ingest(&self, sources: &[Source], caller: &dyn Caller, settings: &Settings) -> Result<Vec<Event>> {
        self.ingest_with(sources, caller, &ScriptedEmbedder, settings)
    }

    pub fn ingest_with(
        &self,
        sources: &[Source],
        caller: &dyn Caller,
        embedder: &dyn Embedder,
        settings: &Settings,
    ) -> Result<Vec<Event>> {
        let trace = Trace::kept();
        let session = session(caller, embedder, settings, &trace);
        let mut writer = self.writer();
        for source in sources {
            memory::add(source, &mut writer, &session)?;
        }
        block_on(memory::prepare(&mut writer, &session, &mut |_| {}))?;
        Ok(trace.events())
    }

    pub fn missing(&self, settings: &Settings) -> Missing {
        let (caller, trace) = (Scripted::new(CONTEXT_TOKENS), Trace::off());
        let session = session(&caller, &ScriptedEmbedder, settings, &trace);
        memory::missing(&self.corpus(), &session).expect("the corpus can be read")
    }

    pub fn ask(&self, question: &str, caller: &dyn Caller, settings: &Settings) -> Asked {
        self.ask_with(question, caller, &ScriptedEmbedder, settings)
    }

    pub fn ask_with(&self, question: &str, caller: &dyn Caller, embedder: &dyn Embedder, settings: &Settings) -> Asked {
        let trace = Trace::kept();
        let session = session(caller, embedder, settings, &trace);
        let answer = block_on(memory::ask(question, &self.corpus(), &session));
        Asked { answer, events: trace.events() }
    }

    /// Asks what is ready.
    pub fn ask_what_is_ready(&self, question: &str, caller: &dyn Caller, settings: &Settings, why: &str) -> Asked {
        let trace = Trace::kept();
        let session = session(caller, &ScriptedEmbedder, settings, &trace);
        let answer = block_on(memory::ask_what_is_ready(question, &self.corpus(), session, why));
        Asked { answer, events: trace.events() }
    }

    /// Asks while a reader holds the corpus open.
    pub fn ask_aloud(&self, question: &str, caller: &dyn Caller, settings: &Settings, on_text: OnText) -> Asked {
        let trace = Trace::kept();
        let session = Session { on_text: Some(on_text), ..session(caller, &ScriptedEmbedder, settings, &trace) };
        let answer = block_on(memory::ask(question, &self.corpus(), &session));
        Asked { answer, events: trace.events() }
    }

    /// Asks and stores what the method builds on the way.
    pub fn ask_and_keep(&self, question: &str, caller: &dyn Caller, settings: &Settings) -> Asked {
        let trace = Trace::kept();
        let session = session(caller, &ScriptedEmbedder, settings, &trace);
        let answer = block_on(memory::ask(question, &mut self.writer(), &session));
        Asked { answer, events: trace.events() }
    }

    /// Asks and writes a trace.
    pub fn ask_traced(
        &self,
        question: &str,
        caller: &dyn Caller,
        settings: &Settings,
        out: impl std::io::Write + Send + 'static,
    ) -> Result<Answer> {
        let trace = Trace::to(out);
        block_on(memory::ask(question, &self.corpus(), &session(caller, &ScriptedEmbedder, settings, &trace)))
    }

    /// The stored memo: pages and abstracts.
    pub fn memo(&self) -> Vec<(i64, String)> {
        let notes = self.corpus().notes_named(Layer::Page, "abstract").expect("the corpus can be read");
        notes.into_iter().map(|note| (note.passage.0, note.text)).collect()
    }
}

pub fn session<'a>(
    caller: &'a dyn Caller,
    embedder: &'a dyn Embedder,
    settings: &Settings,
    trace: &'a Trace,
) -> Session<'a> {
    Session {
        caller,
        embedder,
        settings: settings.clone(),
        trace,
        workflow: WorkflowId(7),
        tenant: TenantId::LOCAL,
        priority: Priority::Interactive,
        on_text: None,
    }
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a thread can have a runtime");
    runtime.block_on(work)
}

/// A text with the given sections; each is a page if it is short enough.
pub fn document(path: &str, sections: &[&str]) -> Source {
    let mut text = String::new();
    let section = |words: &&str| {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let start = text.len();
        text.push_str(words);
        Section { span: start..text.len(), title: None, time: None, turns: Vec::new() }
    };
    let sections = sections.iter().map(section).collect();
    Source { path: path.into(), kind: Kind::Text, title: None, text, encoding: None, sections }
}

/// A conversation of one session, as speaker and text.
pub fn conversation(path: &str, said: &[(&str, &str)]) -> Source {
    let mut text = "=== SESSION 0 ===\n".to_owned();
    let turn = |(number, (speaker, words)): (usize, &(&str, &str))| {
        text.push('\n');
        let (id, start) = (format!("D1:{}", number + 1), text.len());
        text.extend([speaker, " (", &id, "): ", words]);
        Turn { span: start..text.len(), id, speaker: (*speaker).to_owned(), time: None }
    };
    let turns = said.iter().enumerate().map(turn).collect();
    let section = Section { span: 0..text.len(), title: None, time: None, turns };
    Source { path: path.into(), kind: Kind::Conversation, title: None, text, encoding: None, sections: vec![section] }
}

/// A session: its name, its time, and its turns as speaker and text.
pub type Sitting<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// A conversation of several sessions.
pub fn sessions(path: &str, sessions: &[Sitting<'_>]) -> Source {
    let mut text = String::new();
    let section = |(number, (name, time, said)): (usize, &Sitting<'_>)| {
        let session = text.len();
        text.extend(["=== ", name, " ==="]);
        let turn = |(turn, (speaker, words)): (usize, &(&str, &str))| {
            text.push('\n');
            let (id, start) = (format!("D{}:{}", number + 1, turn + 1), text.len());
            text.extend([speaker, " (", &id, "): ", words]);
            Turn { span: start..text.len(), id, speaker: (*speaker).to_owned(), time: None }
        };
        let turns = said.iter().enumerate().map(turn).collect();
        let span = session..text.len();
        text.push_str("\n\n");
        Section { span, title: Some((*name).to_owned()), time: Some((*time).to_owned()), turns }
    };
    let sections = sessions.iter().enumerate().map(section).collect();
    Source { path: path.into(), kind: Kind::Conversation, title: None, text, encoding: None, sections }
}

/// A script of steps and answers, in their order.
pub fn script(answers: &[(&'static str, &str)]) -> Scripted {
    answers.iter().fold(Scripted::new(CONTEXT_TOKENS), |script, (step, text)| script.answer(step, *text))
}

/// The calls of one step.
pub fn calls_of(step: &str, caller: &Scripted) -> Vec<Call> {
    caller.seen().into_iter().filter(|call| call.step == step).collect()
}

/// The headings of inputs.
const NAMES: [&str; 38] = [
    "QUESTION",
    "REQUEST",
    "TRIED_REQUESTS",
    "MEMORY",
    "RESULT",
    "RESULT_SOURCES",
    "EVIDENCE_CONTEXT",
    "INPUT_MESSAGE",
    "QUERY",
    "SEARCH_QUERIES",
    "KNOWN_INFORMATION",
    "RETRIEVED",
    "CONTEXT_WINDOWS",
    "SHORT_MEMORY",
    "NEW_INFORMATION",
    "FAILED_QUERIES",
    "TEXT",
    "PASSAGE",
    "PASSAGES",
    "NAMED_ENTITIES",
    "FACTS",
    "FINAL_OBJECTIVE",
    "CONTENT",
    "ORIGINAL_QUERY",
    "CONTEXT",
    "PREVIOUS_PROBES",
    "PREVIOUS_ANALYSIS",
    "CURRENT_QUERY",
    "DETAIL_ARTICLE",
    "SUMMARY_BY_SEMANTIC",
    "SUMMARY_BY_EPISODIC",
    "HISTORY_INFO",
    "OPTIONS",
    "GRAPH_STATE",
    "TEXT_BLOCK",
    "MIND_GRAPH",
    "GRAPH_STATS",
    "COMMUNITY",
];

/// The section of a call's prompt under a heading such as `QUESTION`, up to the next heading or the last paragraph.
pub fn input(call: &Call, name: &str) -> String {
    let messages = call.prompt.messages();
    let turn = messages.iter().find(|message| message.role == Role::User).expect("there is a user turn");
    let heading = format!("{name}:\n");
    let start = turn.content.find(&heading).unwrap_or_else(|| panic!("no {name} in {}", turn.content)) + heading.len();
    let rest = &turn.content[start..];
    let next = NAMES.iter().filter_map(|name| rest.find(&format!("\n\n{name}:\n"))).min();
    rest[..next.or_else(|| rest.rfind("\n\n")).unwrap_or(rest.len())].trim().to_owned()
}

/// The schema of a call's answer.
pub fn schema(call: &Call) -> &Value {
    match &call.output_format {
        OutputFormat::Json(schema) => schema,
        other => panic!("{} has the output_format {other:?}", call.step),
    }
}

/// The steps in which a reply was given up, with the reason.
pub fn fallbacks(events: &[Event]) -> Vec<(&str, &str)> {
    let fallbacks = events.iter().filter_map(|event| match event {
        Event::Fallback { step, reason } => Some((step.as_str(), reason.as_str())),
        _ => None,
    });
    fallbacks.collect()
}
