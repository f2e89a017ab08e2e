//! The interface between methods (`memory`) and inference (`engine`, `remote`).
//!
//! A [`Call`] has the agent ([`Agent`]), the prompt ([`Prompt`], stable parts first), the format of the reply
//! ([`OutputFormat`]) and its [`Limits`]. A [`Caller`] turns it into a [`Reply`]; an [`Embedder`] turns texts into vectors.
//! What training, methods and scorers must share is here too: the prompt of [`reading`] and the [`number_words`].
//!
//! ```
//! use calls::{Agent, Call, OutputFormat, Prompt, Stability};
//!
//! let prompt = Prompt::new().system("Answer from the text.").user(Stability::Volatile, "Is the lamp lit?");
//! let options = OutputFormat::Choice(vec!["yes".to_owned(), "no".to_owned()]);
//! let call = Call { output_format: options, ..Call::new(Agent::Responder, "demo.choose", prompt, 8) };
//! assert_eq!(call.limits.reply_tokens(), 8);
//! ```
//!
//! Not here: the wording of any prompt but the one that adapters are trained on ([`reading`]; the others are in `memory`), tokens, devices and sampling (that is `engine`), HTTP.

mod call;
mod caller;
mod error;
mod future;
pub mod loops;
pub mod number_words;
mod permits;
mod prompt;
pub mod reading;
mod reply;
pub mod schema;
mod score;
mod scripted;
mod state;
mod tools;

pub use call::{
    AdapterChoice, Agent, Call, Limits, OnText, OutputFormat, Piece, Priority, Sampling, TenantId, WorkflowId,
};
pub use caller::{Caller, Embedder, Embedding, Heads, Kept, ModelInfo, Prefixes, Status, Tokens};
pub use error::CallError;
pub use future::BoxFuture;
pub use permits::{Permit, Permits};
pub use prompt::{Message, Prompt, Role, Segment, Stability, Turn};
pub use reply::{Divergence, Finish, Reply, TokenLogprob, Usage};
pub use score::{Score, ScoreRequest, Scored, Scorer, ScriptedScorer};
pub use scripted::{Scripted, ScriptedEmbedder};
pub use state::{ModelDetails, ModelState};
pub use tools::{ResultOf, Tool, ToolCall, ToolUse};
