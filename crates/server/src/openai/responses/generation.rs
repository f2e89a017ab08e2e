//! A response that is being made: by a model or from corpora, whole or as events, and kept if the request stores it.

use std::sync::{Arc, Mutex};

use calls::{Call, Finish, OnText};
use serde_json::{Value, json};

use super::super::params::OutputLength;
use super::super::thinking;
use super::kept::{Held, Record};
use super::output::{Output, lock, usage};
use super::request::{Asked, Source};
use super::{conversations, corpus, stored};
use crate::app::App;
use crate::error::{Result, ServerError};
use crate::lost::CorpusState;
use crate::stream::Sink;
use crate::tenant::Tenant;
use crate::warnings::Warnings;

/// A response that is being made.
pub(super) struct Generation {
    pub asked: Asked,
    pub output: Arc<Mutex<Output>>,
    /// What is kept when it has ended.
    pub record: Option<Record>,
    continued: Option<Continued>,
    /// The states of the corpora before the question.
    pub states: Vec<CorpusState>,
    warnings: Warnings,
}

/// The conversation that a response is part of, and the corpora that it may quote.
pub(super) struct Continued {
    pub held: Held,
    pub corpora: Vec<String>,
}

impl Generation {
    pub fn new(
        asked: Asked,
        record: Option<Record>,
        continued: Option<Continued>,
        states: Vec<CorpusState>,
        warnings: Warnings,
        sink: Option<Sink>,
    ) -> Result<Generation> {
        let output = Output::new(&asked.frame, sink)?;
        Ok(Generation { asked, output: Arc::new(Mutex::new(output)), record, continued, states, warnings })
    }

    /// The finished response, which is kept if the request stores it. One that cannot be written has `store: false` and a
    /// warning, unless the request asks for its storage.
    pub async fn run(&mut self, app: &App, tenant: &Arc<Tenant>) -> Result<Value> {
        // It is released when this ends, before the client receives the response.
        let continued = self.continued.take();
        let mut response = match &self.asked.source {
            Source::Model { call, length, thinking_tokens } => {
                app.with_deadline(self.of_model(call, *length, *thinking_tokens, app)).await?
            }
            Source::Corpora(consultation) => corpus::respond(consultation, &self.output, app, tenant)
                .await
                .map(|(finish, usage)| self.finished(finish, usage))?,
        };
        if let Some(Continued { held, corpora }) = continued {
            let output = response["output"].as_array().into_iter().flatten();
            let items = self.asked.input.iter().chain(output).cloned().collect();
            conversations::append(app, tenant, held.id.clone(), items, corpora, self.states.clone()).await?;
        }
        if let Some(record) = &self.record {
            match stored::put(tenant, record.with_response(response.clone()), self.states.clone()).await {
                Err(ServerError::DataFolder(error)) if !self.asked.must_be_stored => {
                    tracing::warn!(%error, "cannot store a response");
                    self.warnings.add("the response is not stored: its file cannot be written".to_owned());
                    response["store"] = false.into();
                }
                put => put?,
            }
        }
        Ok(response)
    }

    /// Sends the events of the response.
    pub async fn stream(&mut self, app: &App, tenant: &Arc<Tenant>) -> Result<()> {
        match self.run(app, tenant).await {
            Ok(response) => {
                let is_complete = response["status"] == "completed";
                let name = if is_complete { "response.completed" } else { "response.incomplete" };
                lock(&self.output).send_response(name, &response);
                Ok(())
            }
            Err(error) => {
                let mut output = lock(&self.output);
                // A refusal before the first event has its own status.
                if !output.has_started() {
                    return Err(error);
                }
                error.log();
                let failed = self.asked.frame.failed(&error, output.finished());
                output.send_response("response.failed", &failed);
                Ok(())
            }
        }
    }

    async fn of_model(&self, call: &Call, length: OutputLength, thinking_tokens: usize, app: &App) -> Result<Value> {
        let output = Arc::clone(&self.output);
        let on_text = OnText::pieces(move |piece| lock(&output).piece(piece));
        let mut call = Call { on_text: Some(on_text), ..call.clone() };
        let prompt_tokens = app.prompt_tokens(&call).await?;
        call.limits = thinking::limits(app, &call, prompt_tokens, length, thinking_tokens)?;
        let agent = call.agent;
        let reply = app.call(call.tenant, call).await?;
        let reasoning_tokens =
            reply.thought.as_ref().map_or(0, |thought| app.caller.tokens().count_tokens(agent, thought));
        Ok(self.finished(reply.finish, usage(reply.usage, reasoning_tokens)))
    }

    /// The response with its output so far. It is incomplete if the limit of tokens ended the output.
    fn finished(&self, finish: Finish, usage: Value) -> Value {
        let is_complete = matches!(finish, Finish::Stop | Finish::Repetition);
        let mut output = lock(&self.output);
        output.end(is_complete);
        let status = if is_complete { "completed" } else { "incomplete" };
        let mut object = self.asked.frame.object(status, output.finished(), Some(usage));
        if !is_complete {
            object["incomplete_details"] = json!({ "reason": "max_output_tokens" });
        }
        object
    }
}
