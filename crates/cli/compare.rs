//! `memlocal ask --compare`: one question, several methods, one table.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use calls::{Priority, TenantId, WorkflowId};
use launch::eprintln;
use launch::failure::{hint_of, refusal};
use launch::output::{print_line, print_table};
use launch::{Backend, wait_for};
use memory::{Answer, Method, Session, Settings, Trace};
use serde_json::{Value, json};
use store::Writer;

use crate::args::Ask;
use crate::documents::{Documents, prepare_corpus};
use crate::gone::fill_exactly;
use crate::settings;

/// The result of a method, and its elapsed time: its calls run concurrently.
type Outcome = (&'static dyn Method, Duration, Result<Answer>);

/// Runs every method in sequence: it prepares the corpus and answers. The first method adds the documents.
pub fn run(
    ask: &Ask,
    methods: &[&'static dyn Method],
    documents: &mut Documents,
    writer: &mut Writer,
    backend: &Backend,
) -> Result<()> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (number, method) in (1..).zip(methods) {
        eprintln!("{method}:");
        let settings = Settings { method: *method, ..settings::of_ask(ask)? };
        let began = Instant::now();
        let answer = answer(ask, settings, WorkflowId(number), documents, writer, backend);
        outcomes.push((*method, began.elapsed(), answer));
    }
    if ask.json {
        let objects: Vec<Value> = outcomes.iter().map(object).collect();
        print_line(serde_json::to_string_pretty(&objects)?)?;
    } else {
        let header = ["method", "calls", "computed", "cached", "written", "seconds", "citations", "answer"];
        print_table(&header, outcomes.iter().map(row))?;
    }
    match outcomes.into_iter().find_map(|(.., outcome)| outcome.err()) {
        Some(error) => {
            let cause = format!("not all methods have answered: {error:#}");
            Err(match hint_of(&error) {
                Some(hint) => refusal(cause, hint),
                None => anyhow!(cause),
            })
        }
        None => Ok(()),
    }
}

fn answer(
    ask: &Ask,
    settings: Settings,
    workflow: WorkflowId,
    documents: &mut Documents,
    writer: &mut Writer,
    backend: &Backend,
) -> Result<Answer> {
    let trace = Trace::off();
    let priority = Priority::Interactive;
    let (caller, embedder) = (backend.caller(), &backend.embedder);
    let tenant = TenantId::LOCAL;
    let session = Session { caller, embedder, settings, trace: &trace, workflow, tenant, priority, on_text: None };
    if ask.documents.docs.is_empty() {
        prepare_corpus(writer, &session)?;
    } else {
        fill_exactly(writer, documents, &session)?;
    }
    wait_for(memory::ask(&ask.question, writer, &session))
}

fn object((method, took, outcome): &Outcome) -> Value {
    match outcome {
        Ok(answer) => {
            let mut object = json!(answer);
            object["seconds"] = took.as_secs_f64().into();
            object
        }
        Err(error) => json!({ "method": method, "error": format!("{error:#}") }),
    }
}

/// The numbers include the method's preparation of the corpus.
fn row((method, took, outcome): &Outcome) -> Vec<String> {
    let name = method.to_string();
    match outcome {
        Ok(Answer { answer, citations, usage, .. }) => {
            let computed = usage.prompt_tokens - usage.cached_tokens;
            let numbers = [usage.calls, computed, usage.cached_tokens, usage.output_tokens].map(|n| n.to_string());
            let said = answer.split_whitespace().collect::<Vec<_>>().join(" ");
            let rest = [format!("{:.1}", took.as_secs_f64()), citations.len().to_string(), said];
            [name].into_iter().chain(numbers).chain(rest).collect()
        }
        Err(error) => {
            let blank = std::iter::repeat_n(String::new(), 6);
            [name].into_iter().chain(blank).chain([format!("error: {error:#}")]).collect()
        }
    }
}
