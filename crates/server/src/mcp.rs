//! The Model Context Protocol over HTTP at /mcp and over standard input and output: five tools, and documents as
//! resources.

use std::sync::Arc;

use axum::http::request::Parts;
use calls::CallError;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{Peer, RequestContext, ServerInitializeError};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::DocId;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::app::App;
use crate::blocking::run_blocking;
use crate::corpora::{
    AskRequest, CancelOnDrop, SearchRequest, TextUpload, answer, document_paths, ingest_text, list_corpora,
    read_document, search_pages,
};
use crate::error::{Result, ServerError};
use crate::tenant::Tenant;

/// The MCP service.
#[derive(Clone)]
pub(crate) struct Mcp {
    app: App,
}

/// The stateless service at /mcp: without sessions there is none to keep or to hijack.
pub(crate) fn over_http(app: &App) -> StreamableHttpService<Mcp, LocalSessionManager> {
    let app = Arc::clone(app);
    // `guard` checks hosts and origins for all routes.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(app.config.max_body_bytes)
        .disable_allowed_hosts();
    StreamableHttpService::new(move || Ok(Mcp { app: Arc::clone(&app) }), Arc::default(), config)
}

/// Serves standard input and output until the input ends.
pub(crate) async fn over_stdio(app: &App) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| ServerError::Worker(format!("MCP: {error}"));
    let service = match (Mcp { app: Arc::clone(app) }).serve(rmcp::transport::stdio()).await {
        // The client disconnected before its first message.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        begun => begun.map_err(|error| failed(&error))?,
    };
    service.waiting().await.map_err(|error| failed(&error))?;
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remember {
    corpus: String,
    name: String,
    text: String,
    method: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    corpus: String,
    query: String,
    tool: Option<String>,
    k: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    corpus: String,
    question: String,
    method: Option<String>,
    profile: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadSource {
    corpus: String,
    document: i64,
    start: Option<usize>,
    end: Option<usize>,
}

/// Default number of characters that `read_source` returns at once.
const CHARS_AT_ONCE: usize = 20_000;

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let mut config = ServerConfig::new(capabilities);
        config.server_info = Implementation::new("memlocal", env!("CARGO_PKG_VERSION"));
        config.instructions = Some(
            "A long memory over private documents. Use `ask` for answers with citations, `search` to find pages, \
             `remember` to keep a text."
                .to_owned(),
        );
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let tenant = self.tenant(&context)?;
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let work = async {
            Ok(match &*request.name {
                "list_corpora" => list_corpora(&tenant).await.map(Value::from),
                "remember" => self.remember(&tenant, arguments).await,
                "search" => self.search(&tenant, arguments).await,
                "ask" => self.ask(&tenant, arguments, &context).await,
                "read_source" => read_source(&tenant, arguments).await,
                other => return Err(ErrorData::invalid_params(format!("there is no tool `{other}`"), None)),
            })
        };
        // A cancelled call or a disconnected client drops the work, which cancels its calls.
        let outcome = tokio::select! {
            () = context.ct.cancelled() => Err(CallError::Cancelled.into()),
            outcome = work => outcome?,
        };
        // Errors are returned to the model, which may correct its call.
        let result = match outcome {
            Ok(value) => CallToolResult::success(vec![ContentBlock::text(value.to_string())]),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.text())]),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<ListResourcesResult, ErrorData> {
        let tenant = self.tenant(&context)?;
        let mut resources = Vec::new();
        for corpus in list_corpora(&tenant).await.map_err(|error| failed(&error))? {
            let Some(corpus) = corpus["name"].as_str() else { continue };
            // A corpus that is being written is listed without its documents.
            let documents = document_paths(&tenant, corpus.to_owned()).await.unwrap_or_default();
            let resource = |(id, name): (DocId, String)| {
                Resource::new(format!("memlocal://{corpus}/{id}"), name).with_mime_type("text/plain")
            };
            resources.extend(documents.into_iter().map(resource));
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<ReadResourceResponse, ErrorData> {
        let unknown = || ErrorData::resource_not_found(format!("there is no {}", request.uri), None);
        let place = request.uri.strip_prefix("memlocal://").and_then(|place| place.split_once('/'));
        let (corpus, id) =
            place.and_then(|(corpus, id)| Some((corpus.to_owned(), DocId(id.parse().ok()?)))).ok_or_else(unknown)?;
        let document = read_document(&self.tenant(&context)?, corpus, id).await.map_err(|error| {
            match error.status().0.as_u16() {
                404 => unknown(),
                _ => failed(&error),
            }
        })?;
        let text = document["text"].as_str().unwrap_or_default();
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri.as_str())]).into())
    }
}

impl Mcp {
    /// The tenant of a request; over standard input, where there are no keys, the anonymous one.
    fn tenant(&self, context: &RequestContext<RoleServer>) -> std::result::Result<Arc<Tenant>, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let tenant = parts.and_then(|parts| parts.extensions.get::<Arc<Tenant>>().cloned());
        match tenant {
            Some(tenant) => Ok(tenant),
            None if self.app.config.keys.is_none() => Ok(self.app.tenants.anonymous()),
            None => Err(failed(&ServerError::NoKey)),
        }
    }

    async fn remember(&self, tenant: &Arc<Tenant>, arguments: Value) -> Result<Value> {
        let Remember { corpus, name, text, method } = read(arguments)?;
        let (owner, new) = (Arc::clone(tenant), corpus.clone());
        run_blocking(move || match owner.corpora.create(&new) {
            Ok(_) | Err(store::Error::CorpusExists { .. } | store::Error::CorpusBusy { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        })
        .await?;
        let job = ingest_text(&self.app, tenant, corpus, TextUpload { name, text, method }).await?;
        let waiting = CancelOnDrop(&job);
        self.app.with_deadline(async { Ok(waiting.0.ended().await) }).await?;
        Ok(job.to_json())
    }

    async fn search(&self, tenant: &Arc<Tenant>, arguments: Value) -> Result<Value> {
        let Search { corpus, query, tool, k } = read(arguments)?;
        let _permit = self.app.admission.acquire()?;
        Ok(search_pages(&self.app, tenant, corpus, SearchRequest { query, tool, k }).await?.into())
    }

    async fn ask(&self, tenant: &Arc<Tenant>, arguments: Value, context: &RequestContext<RoleServer>) -> Result<Value> {
        let Ask { corpus, question, method, profile } = read(arguments)?;
        let _permit = self.app.admission.acquire()?;
        let request = AskRequest { question, method, profile, ..AskRequest::default() };
        let progress = context.meta.get_progress_token().map(|token| notifier(token, context.peer.clone()));
        let report = move |event: &Value| {
            if let Some(progress) = &progress {
                // The connection may have ended.
                let _ = progress.send(event.clone());
            }
        };
        answer(&self.app, tenant, corpus, request, None, report).await
    }
}

/// Sends progress notifications, in the order in which the events come; ends with its sender.
fn notifier(token: ProgressToken, peer: Peer<RoleServer>) -> UnboundedSender<Value> {
    let (sender, mut events) = unbounded_channel::<Value>();
    tokio::spawn(async move {
        let mut number = 0.0;
        while let Some(event) = events.recv().await {
            number += 1.0;
            let message = match (event["step"].as_str(), &event["done"], &event["of"]) {
                (Some(step), done, of) => format!("{step}: {done} of {of}"),
                (None, ..) => "waiting for the preparation of the corpus".to_owned(),
            };
            let progress = ProgressNotificationParam::new(token.clone(), number).with_message(message);
            if peer.notify_progress(progress).await.is_err() {
                return;
            }
        }
    });
    sender
}

/// A range of a document; the response reports how much text there is in total.
async fn read_source(tenant: &Arc<Tenant>, arguments: Value) -> Result<Value> {
    let ReadSource { corpus, document, start, end } = read(arguments)?;
    let mut shown = read_document(tenant, corpus, DocId(document)).await?;
    let text = shown["text"].as_str().unwrap_or_default();
    let chars = text.chars().count();
    let start = start.unwrap_or(0).min(chars);
    let end = end.unwrap_or(start.saturating_add(CHARS_AT_ONCE)).clamp(start, chars);
    let stretch: String = text.chars().skip(start).take(end - start).collect();
    shown["text"] = stretch.into();
    shown["start"] = start.into();
    shown["end"] = end.into();
    shown["characters"] = chars.into();
    Ok(shown)
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T> {
    serde_json::from_value(arguments).map_err(|error| ServerError::Invalid {
        message: format!("the arguments cannot be used: {error}"),
        param: None,
    })
}

fn failed(error: &ServerError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn tools() -> Vec<Tool> {
    let text = |says: &str| json!({ "type": "string", "description": says });
    let number = |says: &str| json!({ "type": "integer", "minimum": 0, "description": says });
    let corpus = text("Name of a corpus, as `list_corpora` gives it");
    let method = text("Method; by default auto, which chooses one for the model and the length of the documents");
    let tool = |name: &'static str, says: &'static str, properties: Value, required: &[&str]| {
        let schema =
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        let schema: JsonObject = if let Value::Object(schema) = schema { schema } else { JsonObject::new() };
        Tool::new(name, says, schema)
    };
    vec![
        tool("list_corpora", "List the corpora and what they hold.", json!({}), &[]),
        tool(
            "remember",
            "Keep a text in a corpus, which is made if it does not exist. One of the same name is replaced.",
            json!({ "corpus": corpus, "name": text("What the text is known by"), "text": text("The text"), "method": method }),
            &["corpus", "name", "text"],
        ),
        tool(
            "search",
            "Find pages of a corpus, with scores.",
            json!({ "corpus": corpus, "query": text("What is sought"), "tool": text("bm25, dense or fused (by default)"), "k": number("Pages to find") }),
            &["corpus", "query"],
        ),
        tool(
            "ask",
            "Answer a question from a corpus, with citations.",
            json!({ "corpus": corpus, "question": text("The question"), "method": method, "profile": text("Form of prompts: paper or small; by default by the model's size") }),
            &["corpus", "question"],
        ),
        tool(
            "read_source",
            "Read the text of a document around a citation.",
            json!({ "corpus": corpus, "document": number("Id of the document"), "start": number("First character"), "end": number("One after the last character") }),
            &["corpus", "document"],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use calls::{BoxFuture, Call, Caller, Reply, Role, ScriptedEmbedder};
    use tokio::io::{AsyncWriteExt, duplex};

    use super::{Arc, CallError, Mcp, ServiceExt, json};
    use crate::app::Shared;
    use crate::config::Config;

    /// A model that never replies.
    #[derive(Default)]
    struct Thinker {
        begun: AtomicUsize,
        given_up: Arc<AtomicUsize>,
    }

    struct GivenUp(Arc<AtomicUsize>);

    impl Drop for GivenUp {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Caller for Thinker {
        fn call(&self, _: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
            Box::pin(async move {
                self.begun.fetch_add(1, Ordering::SeqCst);
                let _dropped = GivenUp(Arc::clone(&self.given_up));
                pending().await
            })
        }

        fn context_tokens(&self, _: Role) -> usize {
            8192
        }

        fn token_spans(&self, _: Role, text: &str) -> Vec<std::ops::Range<usize>> {
            std::iter::once(0..text.len()).collect()
        }

        fn prompt_tokens(&self, _: &Call) -> usize {
            1
        }

        fn model(&self, _: Role) -> &'static str {
            "thinker"
        }
    }

    #[tokio::test]
    async fn a_call_that_is_taken_back_is_given_up() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let thinker = Arc::new(Thinker::default());
        let app = Shared::new(thinker.clone(), Arc::new(ScriptedEmbedder), Config::new(folder.path()));
        let (mut client, server) = duplex(1 << 16);
        let serving = tokio::spawn(Mcp { app }.serve(server));
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let keep =
            json!({ "name": "remember", "arguments": { "corpus": "a", "name": "a", "text": "One.", "method": "gam" } });
        for message in [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": keep }),
        ] {
            client.write_all(format!("{message}\n").as_bytes()).await.expect("it is read");
        }
        let counted = async |count: &AtomicUsize| {
            while count.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let limit = Duration::from_mins(1);
        tokio::time::timeout(limit, counted(&thinker.begun)).await.expect("the model is asked");
        let back = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
        client.write_all(format!("{back}\n").as_bytes()).await.expect("it is read");
        tokio::time::timeout(limit, counted(&thinker.given_up)).await.expect("the call is given up");
        drop((client, serving));
    }
}
