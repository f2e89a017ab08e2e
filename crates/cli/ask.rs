//! `memlocal ask`: answers a question, with citations.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use calls::{Agent, Caller, OnText, Priority, TenantId, WorkflowId};
use launch::eprintln;
use launch::failure::{refusal, skipped_some};
use launch::flags::GlobalFlags;
use launch::output::print_line;
use launch::{Backend, absolute, check_folder_of, home, model_name, prefixes_need_local_engine, wait_for};
use memory::{Answer, Choice, MemoryError, Session, choose, default_page_tokens, prepared};
use store::Corpora;

use crate::answer::{print_piece, print_rest};
use crate::args::Ask;
use crate::documents::{Documents, prepare_corpus};
use crate::gone::{fill_exactly, when_free};
use crate::ingest::{open, trace};
use crate::{compare, explain, settings};

pub fn run(ask: &Ask, global: &GlobalFlags) -> Result<ExitCode> {
    if ask.question.trim().is_empty() {
        return Err(no_question(&ask.documents.docs));
    }
    if !is_choice(&ask.options) {
        let hint = "give --option once for each answer to choose from";
        return Err(refusal("a choice needs two or more different options, none of them empty", hint));
    }
    if ask.engine.engine.is_some() && ask.cache.keep_prefixes {
        return Err(prefixes_need_local_engine());
    }
    ask.models.check_adapters_are_used()?;
    let methods =
        ask.methods.as_ref().filter(|_| ask.compare).map_or_else(|| vec![ask.method.method], |list| list.0.clone());
    ask.method.options.check(&methods)?;
    ask.search.options.check(&methods)?;
    if let Some(file) = &ask.trace {
        check_folder_of(file)?;
    }
    let corpora = home::corpora(global)?;
    let docs = &ask.documents.docs;
    let mut documents = Documents::find(docs)?;
    if let Some(name) = &ask.documents.corpus {
        // A wrong name is an error before any model is loaded.
        corpora.open(name)?;
    }
    let embeds = methods.iter().any(|method| method.embeds());
    let backend = Backend::start(&ask.models, &ask.engine, embeds, global)?;
    let name = ask.documents.corpus.clone().unwrap_or_else(|| corpus_of(ask, global, backend.caller()));
    if ask.compare {
        compare::run(ask, &methods, &mut documents, &mut when_free(|| open(&corpora, &name))?, &backend)?;
        return Ok(skipped_some(documents.skipped()));
    }
    let trace = trace(ask.trace.as_deref())?;
    let trace = if ask.cache.explain_cache || ask.cache.keep_prefixes { trace.keeping() } else { trace };
    let on_text = (!ask.json).then(|| OnText::new(print_piece));
    let mut session = Session {
        caller: backend.caller(),
        embedder: &backend.embedder,
        settings: settings::of_ask(ask)?,
        trace: &trace,
        workflow: WorkflowId(1),
        tenant: TenantId::LOCAL,
        priority: Priority::Interactive,
        on_text,
    };
    if !docs.is_empty() {
        // Another process that asks about the same paths reads the same files, so its work is not repeated.
        fill_exactly(&mut when_free(|| open(&corpora, &name))?, &mut documents, &session)?;
    }
    let choice = choose(&corpora.open(&name)?, &session)?;
    if let Some(Choice { method, .. }) = choice {
        session.settings.method = method;
    }
    let chosen = choice.map(|choice| choice.why);
    if ask.explain {
        let why = chosen.as_deref().unwrap_or("named by --method");
        eprintln!("method {}: {why}", session.settings.method);
    }
    if std::io::stderr().is_terminal() && !ask.json {
        eprintln!("asking {} by {} …", session.caller.models().model(Agent::Responder), session.settings.method);
    }
    let began = Instant::now();
    let answer = Answer { chosen, ..answer(&ask.question, &corpora, &name, session)? };
    if ask.json {
        print_line(serde_json::to_string_pretty(&answer)?)?;
    } else {
        print_rest(&answer, &corpora.open(&name)?, began.elapsed())?;
    }
    if ask.cache.explain_cache {
        explain::print(&trace.events());
    }
    explain::print_prefixes(&trace.events());
    Ok(skipped_some(documents.skipped()))
}

/// Whether the options, if there are any, can be chosen from.
fn is_choice(options: &[String]) -> bool {
    let is_usable = |(at, option): (usize, &String)| {
        let is_twice = options[..at].iter().any(|other| other.trim() == option.trim());
        !option.trim().is_empty() && !is_twice
    };
    options.len() != 1 && options.iter().enumerate().all(is_usable)
}

/// Prepares what is missing and answers. A corpus that cannot be written now is asked as far as it is ready, and the answer
/// says so.
fn answer(question: &str, corpora: &Corpora, name: &str, session: Session<'_>) -> Result<Answer> {
    let corpus = corpora.open(name)?;
    if prepared(&corpus, &session)?.is_none() && !session.settings.method.prepares_for_question() {
        return wait_for(memory::ask(question, &corpus, &session));
    }
    drop(corpus);
    let why = match corpora.open_writer(name) {
        Ok(mut writer) => {
            prepare_corpus(&mut writer, &session)?;
            return wait_for(memory::ask(question, &mut writer, &session));
        }
        Err(error @ (store::Error::CorpusBusy { .. } | store::Error::NotPermitted { .. })) => error.to_string(),
        Err(error) => return Err(error.into()),
    };
    wait_for(memory::ask_what_is_ready(question, &corpora.open(name)?, session, &why))
}

/// The error of a missing question, which `--docs` may have taken.
fn no_question(docs: &[PathBuf]) -> anyhow::Error {
    match docs.last().filter(|last| !last.exists()) {
        Some(last) => refusal(
            format!("there is no question, and no file `{}`", last.display()),
            "write the question before --docs, which takes all words after it",
        ),
        None => MemoryError::EmptyQuestion.into(),
    }
}

/// The corpus that stores `--docs`: one for each set of paths, each memorizer and each page size, so that memorised
/// pages are kept when another model is tried. The size is named where flags determine it, also by the context.
fn corpus_of(ask: &Ask, global: &GlobalFlags, caller: &dyn Caller) -> String {
    let mut words: Vec<String> =
        ask.documents.docs.iter().map(|path: &PathBuf| absolute(path).display().to_string()).collect();
    words.sort();
    words.push(model_name(ask.models.memorizer.as_ref().unwrap_or(&ask.models.model), &ask.engine));
    let limits_context = global.kv_tokens.is_some() || ask.engine.engine_context.is_some();
    let by_context = || limits_context.then(|| default_page_tokens(caller.tokens().context_tokens(Agent::Memorizer)));
    let page_tokens = ask.method.page_tokens.or_else(by_context);
    words.push(page_tokens.map_or_else(String::new, |tokens| tokens.to_string()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    format!("docs-{}", &store::Digest::of(&words).to_string()[..12])
}
