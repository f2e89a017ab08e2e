//! The Model Context Protocol over HTTP at /mcp and over standard input and output: tools, prompts, and documents as
//! resources.

mod lines;
mod prompts;
mod resources;
mod tools;
mod work;

use std::sync::Arc;

use axum::http::request::Parts;
use calls::CallError;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResponse,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ResourceTemplate, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use store::DocId;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::app::App;
use crate::corpora::read_document;
use crate::error::{Result, ServerError};
use crate::tenant::Tenant;
use lines::Lines;

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

/// Serves a client, whose messages are lines, until the input ends.
pub(crate) async fn over_lines<R, W>(app: &App, read: R, write: W) -> Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: &dyn std::fmt::Display| ServerError::Worker(format!("MCP: {error}"));
    let service = match (Mcp { app: Arc::clone(app) }).serve(Lines::new(read, write)).await {
        // The client disconnected before its first message.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        begun => begun.map_err(|error| failed(&error))?,
    };
    service.waiting().await.map_err(|error| failed(&error))?;
    Ok(())
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let mut config = ServerConfig::new(capabilities);
        config.server_info = Implementation::new("memlocal", env!("CARGO_PKG_VERSION"));
        config.instructions = Some(
            "A long memory over private documents. Use `ask` for answers with citations, `search` to find pages, \
             `remember` to keep a text. `read_source` shows the text around a citation, by the id of its document."
                .to_owned(),
        );
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let tenant = self.tenant(&context)?;
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let work = self.run(&request.name, &tenant, arguments, &context);
        // A cancelled call or a disconnected client drops the work, which cancels its calls.
        let outcome = tokio::select! {
            () = context.ct.cancelled() => Err(CallError::Cancelled.into()),
            outcome = work => outcome.ok_or_else(|| {
                ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None)
            })?,
        };
        // Errors are returned to the model, which may correct its call.
        let result = match outcome {
            Ok(value) => CallToolResult::structured(value),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.tool_text())]),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<ListResourcesResult, ErrorData> {
        let tenant = self.tenant(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        let (resources, next_cursor) = resources::part(&tenant, cursor.as_deref(), resources::PART).await?;
        Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources) })
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("memlocal://{corpus}/{document}", "document")
            .with_title("A document")
            .with_description("The text of a document, by the name of its corpus and its id (`list_documents`)")
            .with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<GetPromptResponse, ErrorData> {
        Ok(prompts::written(&request.name, &request.arguments.unwrap_or_default())?.into())
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
                // The corpus may have a name that none can have.
                400 | 404 => unknown(),
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
}

fn failed(error: &ServerError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use calls::ScriptedEmbedder;
    use serde_json::json;
    use test_support::thinker::Thinker;
    use tokio::io::{AsyncWriteExt, duplex};

    use super::{Arc, Mcp, ServiceExt};
    use crate::app::Shared;
    use crate::config::Config;

    #[tokio::test]
    async fn a_call_that_the_client_cancels_is_aborted() {
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
        let counted = async |count: &dyn Fn() -> usize| {
            while count() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let limit = Duration::from_mins(1);
        tokio::time::timeout(limit, counted(&|| thinker.begun())).await.expect("the model is asked");
        let back = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
        client.write_all(format!("{back}\n").as_bytes()).await.expect("it is read");
        tokio::time::timeout(limit, counted(&|| thinker.given_up())).await.expect("the call is given up");
        drop((client, serving));
    }
}
