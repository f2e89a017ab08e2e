//! ComoRAG (paper 003): answering from a long story by a loop of probing, reading and putting together, over three layers
//! of knowledge.
//!
//! Ahead of time ([`prepare`]) a document becomes chunks of 512 tokens and three layers over them (section 2.2): the
//! *veridical* layer, the chunks with a graph of the entities and facts in them (after HippoRAG 2); the *semantic* layer,
//! a tree of summaries by theme (after RAPTOR); the *episodic* layer, summaries of windows in the order of the text.
//! When a question cannot be answered from what it finds in the layers, the loop begins (section 2.3, algorithm 1):
//! *self-probe* thinks of new queries, *tri-retrieve* searches the layers with each, *mem-encode* turns what was found
//! into cues, *mem-fuse* puts earlier cues together, *try-answer* tries again, *mem-update* adds the new cues to the pool.
//!
//! # Departures
//! * A text's tree and windows belong to one document; the paper's corpus is one story. A document that comes or goes
//!   leaves those of the others alone.
//! * Retrieval in the veridical layer follows HippoRAG 2 (appendix B.1): facts, a filter, personalised PageRank. The
//!   filter answers with the numbers of facts that it was shown; there it writes facts, which are matched by spelling.
//! * Names are compared in lower case without punctuation, in any script; the released code drops all but Latin letters.
//! * The weights of a fact's edge and of likeness between the same two entities add up; there one replaces the other.
//!   Chunks near to the query have a weight of 0.05 in the walk, as in HippoRAG 2; the released code says 0.005.
//! * UMAP is replaced by its graph and the spectral layout that it begins from, without chance (layout.rs), in fewer
//!   than ten dimensions where there are few texts; it keeps neighbours nearly as well as umap-learn (a trustworthiness
//!   at most 0.05 lower). Axes of the layout have a variance of 1, and no Gaussian one below 0.01, where scikit-learn
//!   adds 0.000001: else few texts in many dimensions would be a cluster each. A text is in every cluster of which it
//!   is a member with more than 0.1, as in RAPTOR; the released code says 0.01. A cluster longer than 3,500 tokens, or
//!   than the model's context can hold, is clustered again, as in RAPTOR; one that no mixture divides is cut in its
//!   order. Up to 11 texts are one cluster.
//! * A tree ends with one summary or five levels, as there, and from the second level on also with one that is no smaller
//!   than the level below.
//! * Windows of the episodic layer are as long as the formula says for the document's real number of chunks; the
//!   released code computes it before there are any. Windows that the model's context cannot hold are shorter.
//! * Evidence is chosen by rank within the budget and then put in the order of the text; the released code cuts what it
//!   has already put in order, which loses the best. What stands in the pool already is not retrieved again.
//! * The budget of 6,000 tokens is scaled down where the responder's context is smaller, and divided among the layers in
//!   use. Each layer's share bounds what mem-encode reads of it too; a fused cue is at most as long as the share of the
//!   history.
//! * Try-answer is shown the fused cues of all cycles so far, the newest first to have its place; equation 3 has that of its
//!   own cycle alone.
//! * Self-probe sees the cues of the cycle before, as section 2.3 says; by line 22 of algorithm 1 it would see the pool.
//! * Try-answer and mem-encode write the paper's sections as fields of JSON, so that a failure is `*` and no accident of
//!   markup; probes may be fewer than three. A reply that cannot be used is asked for once more, and then counts as a
//!   failure, as no cue, or as no probes. No prompt has examples in it: small models copy them.
//! * A loop that has no new probes, or finds nothing that is not in the pool, ends, after one more attempt with the cues
//!   that there are; it would only repeat itself.
//! * The failure signal is handed out as a sentence. Temperature and seed are the session's; there they are 0.
//! * Options of a multiple-choice question are shown to try-answer alone, as the paper says.

mod agents;
mod alike;
mod answer;
mod build;
mod clusters;
mod cycle;
mod drawing;
mod entities;
mod extract;
mod graph;
mod knowledge;
mod layout;
mod mixture;
mod pack;
mod pagerank;
mod pool;

mod prompts;
mod retrieve;
mod shares;
mod shelf;
mod summarise;
mod tree;
mod veridical;
mod windows;

pub(crate) use build::{missing, prepare};
pub(crate) use cycle::ask;
pub(crate) use drawing::drawing;
pub use knowledge::{Knowledge, Options};

/// The inner product: of unit vectors, the cosine.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Scores scaled so that the best is 1 and the worst 0; all 1 if they are equal.
fn min_max(scores: &[f32]) -> Vec<f32> {
    let low = scores.iter().copied().fold(f32::INFINITY, f32::min);
    let high = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter().map(|score| if high > low { (score - low) / (high - low) } else { 1.0 }).collect()
}
