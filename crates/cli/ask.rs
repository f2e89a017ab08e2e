//! `memlocal ask`: a question, its answer, and where that stands.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use calls::{Lane, OnText, WorkflowId};
use memory::{Answer, MemoryError, Method, Session, Settings, missing};
use store::{Corpora, Corpus};

use crate::args::{Args, Ask};
use crate::failure::SKIPPED;
use crate::ingest::{fill, interruptible, open, read, settings, shown, trace};
use crate::{home, machine};

pub fn run(ask: &Ask, args: &Args) -> Result<ExitCode> {
    if ask.question.trim().is_empty() {
        return Err(MemoryError::EmptyQuestion.into());
    }
    let corpora = home::corpora(args)?;
    let (sources, skipped) = if ask.docs.is_empty() { (Vec::new(), 0) } else { read(&ask.docs) };
    if sources.is_empty() && !ask.docs.is_empty() {
        anyhow::bail!("none of the inputs could be read");
    }
    let name = ask.corpus.clone().unwrap_or_else(|| corpus_of(&ask.docs));
    if ask.docs.is_empty() {
        // A wrong name is said before any model is loaded.
        corpora.open(&name)?;
    }
    let engine = machine::start(&ask.models, ask.method.method != Method::Direct, args)?;
    let trace = trace(ask.trace.as_deref())?;
    let on_text = (!ask.json).then(|| OnText::new(print_piece));
    let session = Session {
        caller: &engine,
        embedder: &engine,
        settings: Settings {
            max_iterations: ask.max_iterations,
            k: ask.k,
            output: ask.output,
            evidence_tokens: ask.evidence_tokens,
            ..settings(&ask.method)
        },
        trace: &trace,
        workflow: WorkflowId(1),
        lane: Lane::Interactive,
        on_text,
    };
    if !sources.is_empty() {
        fill(&mut open(&corpora, &name)?, &sources, &session)?;
    }
    let corpus = ready(&corpora, &name, &session)?;
    if std::io::stderr().is_terminal() && !ask.json {
        eprintln!("asking {} by {} …", session.caller.model(calls::Role::Responder), session.settings.method);
    }
    let answer = interruptible(async { Ok(memory::ask(&ask.question, &corpus, &session).await?) })?;
    if ask.json {
        println!("{}", serde_json::to_string_pretty(&answer)?);
    } else {
        print_rest(&answer)?;
    }
    Ok(if skipped == 0 { ExitCode::SUCCESS } else { ExitCode::from(SKIPPED) })
}

/// Opens a corpus whose pages have what the method needs. Missing vectors are computed here, which takes moments; pages
/// that were never memorised are left to `ingest`, which may take hours.
fn ready(corpora: &Corpora, name: &str, session: &Session<'_>) -> Result<Corpus> {
    let corpus = corpora.open(name)?;
    let lacks = missing(&corpus, session)?;
    if lacks.abstracts > 0 || lacks.vectors == 0 {
        return Ok(corpus);
    }
    drop(corpus);
    fill(&mut corpora.open_writer(name)?, &[], session)?;
    Ok(corpora.open(name)?)
}

/// The corpus in which `--docs` is kept: one for each set of paths.
fn corpus_of(docs: &[PathBuf]) -> String {
    let mut paths: Vec<String> = docs.iter().map(|path| absolute(path)).collect();
    paths.sort();
    let texts: Vec<&str> = paths.iter().map(String::as_str).collect();
    let digest = store::Digest::of(&texts).to_string();
    format!("docs-{}", &digest[..12])
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn print_piece(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// What follows the streamed answer.
fn print_rest(answer: &Answer) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out)?;
    for (number, citation) in answer.citations.iter().enumerate() {
        let place = shown(&citation.path);
        writeln!(
            out,
            "\n[{}] {place}, page {}, characters {} to {}",
            number + 1,
            citation.page,
            citation.start,
            citation.end
        )?;
        for line in citation.quote.lines() {
            writeln!(out, "    {line}")?;
        }
    }
    let usage = &answer.usage;
    eprintln!(
        "\n{} calls, {} prompt tokens ({} cached), {} written, {:.1} s",
        usage.calls, usage.prompt_tokens, usage.cached_tokens, usage.output_tokens, usage.seconds
    );
    Ok(())
}
