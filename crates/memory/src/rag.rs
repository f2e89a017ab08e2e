//! Retrieval-augmented generation, the baseline: the nearest pages and one call.
//!
//! Pages are found by meaning and by words and the two lists are joined by reciprocal rank (k = 60); the page itself is
//! indexed, without any header. The GAM paper's baseline takes the top 5 pages of 2,048 tokens.

use calls::{Role, Stability};
use futures_util::join;
use store::{Corpus, Layer, fuse};

use crate::answer::{self, Answer};
use crate::error::Result;
use crate::evidence::{Item, budget, pack};
use crate::library::{Indexed, Library};
use crate::session::Session;

/// Answers a question from the nearest pages.
pub(crate) async fn ask(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let library = Library::open(corpus, Layer::Page, Indexed::Content, session.embedder)?;
    let queries = [question.to_owned()];
    let (dense, lexical) = join!(library.vector(&queries, session), async { library.keyword(&queries, session) });
    let mut hits = fuse::rrf(&[dense?, lexical?], fuse::RRF_K);
    hits.truncate(session.settings.k);
    let items = hits.iter().map(|hit| Item::page(hit.passage, "search", corpus)).collect::<Result<Vec<_>>>()?;

    let bare = answer::question(question, "", Stability::Volatile, session);
    let budget = budget(Role::Responder, session.prompt_tokens(&bare), bare.max_output_tokens, session);
    let evidence = pack("answer", Role::Responder, &items, budget, session)?;
    let ask = answer::question(question, &evidence.text, Stability::Volatile, session);
    answer::respond(question, ask, &evidence.pages, corpus, session).await
}
