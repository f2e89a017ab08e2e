//! Every call goes to its agent's model and fits that model's context, whatever the contexts of the others are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use calls::{Agent, BoxFuture, Call, CallError, Caller, ModelInfo, Reply, Scripted, Tokens};
use memory::comorag::Comorag;
use memory::gam::Gam;
use memory::memcot::{Memcot, MemcotStore};
use memory::mindgraph::Mindgraph;
use memory::rag::Rag;
use memory::{Method, Settings, comorag, memcot, mindgraph};

use crate::fill;
use crate::scratch::{Scratch, document};

const QUESTION: &str = "What did Ada Brook keep?";

/// A model per agent, each with a context of its own.
#[derive(Default)]
struct Team {
    /// The step of every call with the agent that it was sent to.
    seen: Mutex<Vec<(&'static str, Agent)>>,
}

fn context_tokens(agent: Agent) -> usize {
    match agent {
        Agent::Memorizer => 1600,
        Agent::Researcher => 2400,
        Agent::Judge => 1200,
        Agent::Builder => 2000,
        Agent::Responder => 2800,
    }
}

impl Team {
    fn seen(&self) -> BTreeSet<(&'static str, Agent)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Takes as many steps as possible: no reply ends the loop, and the graph has communities to report on.
    fn reply(&self, call: &Call) -> String {
        let steps = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = steps.iter().filter(|(step, _)| *step == call.step).count();
        match (call.step, nth) {
            ("gam.info_check", _) => r#"{"enough":false}"#.to_owned(),
            ("comorag.answer", _) => {
                r#"{"content_understanding":"","question_analysis":[],"final_answer":"*"}"#.to_owned()
            }
            ("mindgraph.build", _) => {
                r#"{"operations":[{"op":"add_node","id":"ada","type":"entity","content":"A keeper.","src":"Ada Brook"}]}"#
                    .to_owned()
            }
            ("mindgraph.answer", 1) => r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"index"}]}"#.to_owned(),
            _ => fill::reply(call),
        }
    }
}

impl Caller for Team {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push((call.step, call.agent));
            let model = self.model(call.agent).to_owned();
            let script = Scripted::new(context_tokens(call.agent)).answer(call.step, self.reply(&call));
            Ok(Reply { model, ..script.call(call).await? })
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn models(&self) -> &dyn ModelInfo {
        self
    }
}

impl Tokens for Team {
    fn context_tokens(&self, agent: Agent) -> usize {
        context_tokens(agent)
    }

    fn token_spans(&self, agent: Agent, text: &str) -> Vec<Range<usize>> {
        Scripted::new(context_tokens(agent)).token_spans(agent, text)
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        Scripted::new(context_tokens(call.agent)).prompt_tokens(call)
    }
}

impl ModelInfo for Team {
    fn model(&self, agent: Agent) -> &str {
        match agent {
            Agent::Memorizer => "small memorizer",
            Agent::Researcher => "large researcher",
            Agent::Judge => "strict judge",
            Agent::Builder => "tidy builder",
            Agent::Responder => "kind responder",
        }
    }
}

/// The agents of all steps of a method, from the first page to the answer.
fn steps(settings: &Settings) -> BTreeMap<&'static str, Agent> {
    let pages: Vec<String> = (0..24)
        .map(|page| {
            let sentence =
                |line: usize| format!("Ada Brook kept lamp {line} of house {page} at Pell all winter long. ");
            (0..12).map(sentence).collect()
        })
        .collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let (team, scratch) = (Team::default(), Scratch::new());
    scratch.ingest(&[document("pell.txt", &pages)], &team, settings).expect("every call fits its own model");
    let answer = scratch.ask(QUESTION, &team, settings).answer.expect("every call fits its own model");
    assert_eq!(answer.model, "kind responder", "{}", settings.method);
    let seen = team.seen();
    let steps: BTreeMap<_, _> = seen.iter().copied().collect();
    assert_eq!(steps.len(), seen.len(), "no step has two agents: {seen:?}");
    steps
}

#[test]
fn every_step_is_its_roles() {
    use Agent::{Builder, Judge, Memorizer, Researcher, Responder};
    let mindgraph = mindgraph::Options { questions: vec![QUESTION.into()], ..mindgraph::Options::default() };
    let by = |method: &'static dyn Method| Settings {
        method,
        page_tokens: Some(200),
        ..Settings::default().with_options(mindgraph.clone())
    };
    let check = |settings: &Settings, want: &[(&'static str, Agent)]| {
        assert_eq!(steps(settings), want.iter().copied().collect(), "{}", settings.method);
    };
    let research = [
        ("gam.memorize", Memorizer),
        ("gam.plan", Researcher),
        ("gam.integrate", Researcher),
        ("gam.info_check", Judge),
        ("gam.follow_up", Researcher),
        ("answer", Responder),
    ];
    check(&by(&Gam), &research);
    let search = [
        ("memcot.zoom_in", Researcher),
        ("memcot.zoom_out", Researcher),
        ("memcot.judge", Judge),
        ("memcot.respond", Responder),
    ];
    check(&by(&Memcot), &search);
    let graph = [("memcot.extract", Builder), ("memcot.glean", Builder), ("memcot.keywords", Researcher)];
    let store = memcot::Options { store: MemcotStore::Lightrag, ..memcot::Options::default() };
    check(&by(&Memcot).with_options(store), &[&search[..], &graph[..]].concat());
    let comorag = comorag::Options { chunk_tokens: 60, max_cycles: 1, ..comorag::Options::default() };
    let probing = [
        ("comorag.entities", Builder),
        ("comorag.triples", Builder),
        ("comorag.summarize", Memorizer),
        ("comorag.narrate", Memorizer),
        ("comorag.filter", Judge),
        ("comorag.encode", Researcher),
        ("comorag.probe", Researcher),
        ("comorag.fuse", Researcher),
        ("comorag.answer", Responder),
    ];
    check(&by(&Comorag).with_options(comorag), &probing);
    let building = [("mindgraph.build", Builder), ("mindgraph.report", Memorizer), ("mindgraph.answer", Responder)];
    check(&by(&Mindgraph), &building);
    check(&by(&Rag), &[("answer", Responder)]);
}
