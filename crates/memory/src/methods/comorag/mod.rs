//! ComoRAG (arXiv:2508.10419): answering questions about long stories by a loop of probing, retrieval and consolidation
//! over three layers of knowledge.
//!
//! Ahead of time (`prepare`) a document becomes chunks of 512 tokens and three layers over them (section 2.2): the
//! *veridical* layer, the chunks with a graph of the entities and facts in them (after HippoRAG 2); the *semantic* layer,
//! a tree of summaries by theme (after RAPTOR); the *episodic* layer, summaries of windows in the order of the text.
//! If the first retrieval does not lead to an answer, the loop begins (section 2.3, algorithm 1): *self-probe* writes new
//! queries, *tri-retrieve* searches the layers with each, *mem-encode* turns the evidence into cues, *mem-fuse*
//! consolidates earlier cues, *try-answer* tries again, *mem-update* adds the new cues to the memory pool.
//!
//! # Departures
//! * A text's tree and windows belong to one document; the paper's corpus is one story. Adding or removing a
//!   document does not change those of the others.
//! * Retrieval in the veridical layer follows HippoRAG 2 (appendix B.1): facts, a filter, personalised PageRank. The
//!   filter answers with the numbers of facts that it was shown; the released one writes facts, which are matched by spelling.
//! * Names are compared in lower case without punctuation, in any script; the released code drops all but Latin letters.
//! * The weights of a fact's edge and of likeness between the same two entities add up; there one replaces the other.
//!   Chunks near to the query have a weight of 0.05 in the walk, as in HippoRAG 2; the released code says 0.005.
//! * UMAP is replaced by its graph and the spectral layout that it begins from, without chance (umap.rs), in fewer
//!   than ten dimensions where there are few texts; it keeps neighbours nearly as well as umap-learn (a trustworthiness
//!   at most 0.05 lower). Axes of the layout have a variance of 1, and no Gaussian one below 0.01, where scikit-learn
//!   adds 0.000001: else few texts in many dimensions would be a cluster each. A text is in every cluster of which it
//!   is a member with more than 0.1, as in RAPTOR; the released code says 0.01. A cluster longer than 3,500 tokens, or
//!   than the model's context can hold, is clustered again, as in RAPTOR; one that no mixture divides is cut in its
//!   order. Up to 11 texts are one cluster.
//! * A tree ends with one summary or five levels, as there, and from the second level on also with one that is no smaller
//!   than the level below.
//! * The semantic layer holds summaries alone; RAPTOR retrieves the texts under them too, which here are the veridical layer.
//!   The episodic layer has one level; the paper's recursive one is optional. The ablations without metacognition and
//!   without regulation have no switch.
//! * Windows of the episodic layer are as long as the formula says for the document's real number of chunks; the
//!   released code computes it before there are any. Windows that the model's context cannot hold are shorter. They do not
//!   overlap, as in the released code; the paper calls them sliding.
//! * Chunks of 512 tokens are shorter where that is more than an eighth of the memorizer's context.
//! * Evidence is chosen by rank within the budget and then put in the order of the text; the released code cuts what it
//!   has already put in order, which loses the best. Evidence from which a cue was written is not retrieved again;
//!   other evidence may be, because it may help another probe.
//! * The structures of a corpus are read from the store for each question and not kept in memory between questions, so that
//!   removed text is held nowhere; what takes longest, the pairs of similar names, is kept beside the corpus.
//! * The budget of 6,000 tokens is scaled down where the responder's context is smaller, and divided among the layers in
//!   use. Each layer's share bounds what mem-encode reads of it too; a fused cue is at most as long as the share of the
//!   history, and a longer one is cut at the end of a sentence.
//! * Try-answer is shown the fused cues of all cycles so far, the newest first to have its place; equation 3 has that of its
//!   own cycle alone. After the first attempt it is shown the new cues without their evidence, as in the released code;
//!   equation 3 has memory units, of which both are part.
//! * The vector of a memory unit is that of its probe and its cue, as in the released code; the paper compares the cue.
//! * Self-probe sees the cues of the cycle before, as section 2.3 says, and the fused cues of the cycles before it; by line 22 of
//!   algorithm 1 it would see the pool.
//! * Try-answer and mem-encode write the paper's sections as fields of JSON, so that a failure is `*` and no accident of
//!   markup; probes may be fewer than three. An invalid reply is requested once more, and then counts as a failure,
//!   as no cue, or as no probes; of an extraction that was cut twice all names or facts but the last are used. Mem-encode may
//!   write an empty list of findings; in the small profile it writes `""` instead. Findings and fused accounts that only state
//!   that there is nothing to find are left out.
//! * Extraction and the fact filter have demonstrations except in the small profile, whose models copy them, and fewer than
//!   the released code's ten for the filter. Try-answer has none: its sections are fields of the JSON.
//! * Prompts state the lengths of sections, findings and accounts in words, so that a reply fits into the released
//!   number of tokens; longer fields are bounded by the output format.
//! * A loop that has no new probes ends, since it would only repeat itself; cues that no attempt has seen are fused and shown
//!   to one more attempt first. So does a loop that finds nothing that is not in the pool, after an attempt with the cues of the
//!   cycle before. Algorithm 1 has every cycle.
//! * The failure signal is handed out as a sentence. Words after the signal and refusals in words ("The text does not mention
//!   it.") are failures too. Temperature and seed are the session's; there they are 0.
//! * In the small profile try-answer chooses the answer from the chunks that its context comes from, and fails if they hold none.
//! * Options of a multiple-choice question are shown to try-answer alone, as the paper says.
//! * In the paper profile chunks and summaries of several documents are shown with the folder and the name of their document, which
//!   questions may name. Findings and fused accounts have none: they are an agent's own words about several pieces, which mem-encode
//!   reads with their documents, and the paper shows them as they were written.

mod agents;
mod answer;
mod budget;
mod build;
mod clusters;
mod cycle;
mod derive;
mod entities;
mod extract;
mod gmm;
mod graph;
mod graph_view;
mod knowledge;
mod mentions;
mod names;
mod options;
mod pack;
mod pagerank;
mod pool;
mod prompts;
mod retrieve;
mod summarise;
mod summary_index;
mod synonyms;
mod tree;
mod umap;
mod vectors;
mod veridical;
mod windows;

use futures_util::future::LocalBoxFuture;
use store::{Corpus, Writer};

use crate::core::about::{About, Paper};
use crate::core::access::Access;
use crate::core::error::Result;
use crate::core::graph_view::GraphKind;
use crate::core::method::{Method, Settings};
use crate::core::options::MethodOptions;
use crate::core::outcome::Answer;
use crate::core::preparation::{Missing, Progress};
use crate::core::session::Session;

pub use knowledge::Knowledge;
pub use options::Options;

/// The method.
pub struct Comorag;

static ABOUT: About = About {
    paper: Some(Paper {
        title: "ComoRAG: A Cognitive-Inspired Memory-Organized RAG for Stateful Long Narrative Reasoning",
        authors: "Juyuan Wang, Rongchen Zhao, Wei Wei, Yufeng Wang, Mo Yu, Jie Zhou, Jin Xu, Liyan Xu",
        arxiv: Some("2508.10419"),
    }),
    module: include_str!("mod.rs"),
};

impl Method for Comorag {
    fn name(&self) -> &'static str {
        "comorag"
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn own_options(&self) -> MethodOptions {
        MethodOptions::of::<Options>(options::OPTIONS)
    }

    fn preparation_flags(&self, settings: &Settings) -> String {
        let options: Options = settings.options();
        let used: Vec<String> = options.used().map(|layer| layer.to_string()).collect();
        if used.len() == Knowledge::ALL.len() { String::new() } else { format!("--layers {}", used.join(",")) }
    }

    fn missing(&self, corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
        build::missing(corpus, session)
    }

    fn prepare<'a>(
        &'a self,
        writer: &'a mut Writer,
        session: &'a Session<'_>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(build::prepare(writer, session, progress))
    }

    fn ask<'a>(
        &'a self,
        question: &'a str,
        corpus: Access<'a>,
        session: &'a Session<'_>,
    ) -> LocalBoxFuture<'a, Result<Answer>> {
        Box::pin(async move { cycle::ask(question, &corpus, session).await })
    }

    fn graph(&self) -> Option<&'static GraphKind> {
        Some(&graph_view::GRAPH)
    }
}
