//! What a client may do about an error: one table from causes to hints.

use calls::CallError;
use memory::MemoryError;

use super::ServerError;

impl ServerError {
    /// What the client may do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        use CallError as C;
        use store::Error as E;
        if let Some(obstacle) = self.obstacle() {
            return Some(obstacle.hint().to_owned());
        }
        Some(match self {
            Self::NoPath(_) => {
                "clients of OpenAI take a base URL that ends with /v1, those of Anthropic and Ollama one without it; /docs lists all \
                 paths"
                    .into()
            }
            Self::OpenAiFiles => {
                "/v1/files is OpenAI's API: use a client of OpenAI, or omit the header `anthropic-version`".into()
            }
            Self::CorpusLocked(_) => "GET /v1/jobs lists the jobs; try again when the current one has ended".into(),
            Self::NoThreads => "ask without `thread`, or start the server without --no-threads".into(),
            Self::OperatorOnly => "start the server with --operator NAME, the name of your key".into(),
            Self::Pulling => "try again when it is there: GET /v1/shelf shows the models".into(),
            Self::Invalid { hint, .. } | Self::Pull { hint, .. } | Self::Load { hint, .. } => return hint.clone(),
            Self::ModelsFixed(name) => {
                format!("start the server with --load-models, or with --model {name}")
            }
            Self::Fixed(name) => {
                format!("start the server without --model {name}, and have it loaded by a request that names it")
            }
            Self::LoadsWaiting { .. } => "try again when the model is loaded; GET /v1/shelf shows it".into(),
            Self::NoRoom { .. } => "choose a smaller model, or a smaller KV cache with --kv-tokens".into(),
            Self::CrossSite(source) if source.contains("://") => {
                format!("to let pages of this origin ask, start the server with --allow-origin {source}")
            }
            Self::CrossSite(origin) if origin == "null" => {
                "open the page from this server: a file, or a page without an origin, may not ask".into()
            }
            Self::CrossSite(host) => {
                format!(
                    "to serve under this host name, as behind a proxy, start the server with --allow-origin https://{host}"
                )
            }
            Self::EngineEnded => "start the server again; its log has the cause".into(),
            Self::NoDatabase => "check that PostgreSQL runs and that this machine reaches it".into(),
            Self::Call(C::NoConnection { .. }) => {
                "start the server that --engine names, or start this one with another URL".into()
            }
            Self::NoKey | Self::WrongKey => "`memlocal keys add NAME` creates a key".into(),
            Self::PrivateAdapter => "start the server again without this --adapter".into(),
            Self::Method { allowed, .. } => format!("send {}", allowed.join(" or ")),
            Self::TooLarge { .. } => {
                "send less at once, or start the server with a larger --max-body or --max-upload".into()
            }
            Self::Busy { .. } | Self::Call(C::Overloaded { .. } | C::Busy { .. }) => {
                "try again when other requests have ended".into()
            }
            Self::DeadlineExceeded(_) => {
                "start the server with a longer --deadline, or use a method with fewer calls".into()
            }
            Self::Call(C::TooLong { step: "answer", .. }) => {
                "use a method that retrieves what it needs, such as rag".into()
            }
            Self::Call(C::TooLong { .. }) => "shorten the prompt, ask for fewer tokens, or use a longer context".into(),
            Self::Store(E::UnknownCorpus { .. }) => {
                "GET /v1/corpora lists all corpora, POST /v1/corpora creates one".into()
            }
            Self::Store(E::InvalidName { name }) => format!("`{}` is a valid name", store::CorpusName::like(name)),
            Self::Store(E::CorpusBusy { .. }) => {
                "wait until that process is done, or stop it: its finished work is stored".into()
            }
            Self::Store(E::Locked { .. }) => "try again when that process is done".into(),
            Self::Thread(_) => {
                "try again when other requests have ended, or allow the server more threads (ulimit -u)".into()
            }
            Self::Memory(MemoryError::EmptyCorpus { corpus }) => {
                format!("add documents: POST /v1/corpora/{corpus}/documents, or the tool `remember` of MCP")
            }
            Self::Memory(MemoryError::NotReady { corpus, method, .. }) => {
                format!("prepare it: POST /v1/corpora/{corpus}/prepare with the method {method}")
            }
            Self::Memory(MemoryError::NoVectors { corpus, .. }) => {
                format!("search by words (bm25), or prepare it: POST /v1/corpora/{corpus}/prepare with the method rag")
            }
            _ => return None,
        })
    }

    /// Message and hint as one text.
    pub(crate) fn text(&self) -> String {
        self.hint().map_or_else(|| self.to_string(), |hint| format!("{self}\nhint: {hint}"))
    }

    /// Message and hint for clients of MCP, who have tools in place of paths.
    pub(crate) fn tool_text(&self) -> String {
        use store::Error as E;
        let hint = match self {
            Self::CorpusLocked(_) => "try again when the job has ended, which `job` shows",
            Self::Store(E::UnknownCorpus { .. }) => "list_corpora lists all corpora, remember makes one",
            Self::Memory(MemoryError::EmptyCorpus { .. }) => "add documents with remember",
            Self::Memory(MemoryError::NotReady { .. } | MemoryError::NoVectors { .. }) => "prepare it with prepare",
            other => return other.text(),
        };
        format!("{self}\nhint: {hint}")
    }
}
