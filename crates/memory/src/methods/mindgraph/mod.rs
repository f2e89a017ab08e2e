//! MindGraph (paper without an arXiv number): a concept graph as working memory, built for a question and read with two
//! tools.
//!
//! The *builder* reads a text block by block, with the question and the graph so far in view, and proposes edits
//! (section 3.2): add_node, add_edge, edit_node, delete_node, each with a quote whose place in the text is found
//! ([`Match`]). The edits of a block are kept as a note on it, and the graph is their replay. The *answering* model reads
//! the graph and may look up the text around a node's quote or a map of the graph's communities (section 3.3), at most 40
//! times.
//!
//! # Departures
//! * A block is 8,192 tokens as in the paper, and at most a quarter of the builder's context: 2,048 of 8,192. A proposal
//!   has at most 4,096 tokens, and an eighth of the context, and an operation for every 80 of them: 51, or 12 in a context of
//!   8,192.
//! * A corpus of several documents has one graph; blocks come in the order of their documents, and in the paper profile each names
//!   the folder and the name of its document. Blocks do not overlap, end at white space, and stay as they were cut unless the
//!   model cannot read them.
//! * Graphs and reports are made at temperature 0; the answer has the temperature of the settings.
//! * A graph need not know its question ([`Focus::None`]), and the graphs of several questions can be built in one reading
//!   ([`Focus::Set`]). In the layout that puts shared text first, one question's calls begin with the question and the
//!   graph, several questions' calls with the block.
//! * Prompts show ids, types and contents of nodes, sources, targets and relations of edges, in the order in which they
//!   came and a line each. Where a graph is larger than its room, the oldest nodes lose their contents, then the oldest
//!   edges go, then the oldest nodes; the trace says how many, and only nodes that were shown can be edited, deleted, looked
//!   up or cited. Where the builder was not shown the content of a node, what it writes about that node is added to the
//!   content. The paper's graphs have 200 nodes at most.
//! * add_node with a known id adds to the content of that node, which keeps its type and its first place: what the builder writes
//!   as new is what its block says. add_edge waits for its ends until the block is over. The same edge twice is one edge with two
//!   places. delete_node takes the node's edges along. Edits that are invalid are rejected one by one and listed in the trace.
//! * edit_node carries a quote, as the text of the paper says and its printed prompt does not; one without is taken too.
//! * A quote is looked for in its block: exactly, with spelling evened out, then with a tenth of its characters wrong, and of
//!   one with an ellipsis the longest part; else the node is unverified, and looking it up shows the beginning of its block.
//!   Engines that enforce quotes can only quote what is there.
//! * A block of which two replies in a row are no JSON, or which the builder cannot read even without the graph, is skipped
//!   for good, and the graph's statistics say so. Of a proposal that was cut twice all operations but the last are used, each
//!   once; the trace and the stored edits say so.
//! * Tools are called by JSON replies instead of an API for functions; a turn may hold four calls. An invalid call is
//!   answered with an error text and counts as a round; a call that was answered is not offered again.
//! * A quarter of the responder's context is for turns and results of tools, and the graph is cut to leave it. Of the results
//!   of a turn the first that fit are shown, and the others named. The 40th round, or the one after a turn of which no result
//!   fits, must answer.
//! * Communities are split while they have more than ten nodes, as in GraphRAG. Nodes without edges are a community of their
//!   own; GraphRAG drops all but the largest component.
//! * A report is kept under a digest of what it shows of its community. The paper keeps reports under the graph's: ours
//!   outlive changes elsewhere in the graph. With read access, as the server has for a question, missing reports
//!   are written and not kept. Reports have 1 to 10 findings, GraphRAG's 5 to 10.
//! * Ids, descriptions, relations, quotes and answers have maximum lengths, which the prompts state, and an answer cites at most
//!   16 nodes.
//! * The options of a multiple-choice question are not shown to the builder, so that one graph serves the question with
//!   and without them; in the paper they are part of the question.
//! * The builder and the answering model think before each reply in at most 1,024 tokens, a sixteenth of the context, and
//!   not at all in the small profile; the paper's models reason on their own.
//! * In the small profile there are no tools: the answer is chosen from the pages that the quotes of nodes are on.
//! * A turn that was cut twice is no call and no answer: the model receives an error, and after the last round the answer
//!   is that the graph does not say.
//! * lookup_source shows the passages of up to four sources of a node, of more the two oldest and the two newest; the paper's
//!   nodes have one.
//! * Citations are the sentences around the quotes of the cited nodes and of the edges between them, and those of passages that
//!   were looked up, as far as they support the answer.
//! * `petgraph` is not used: its stable graph gives the numbers of deleted nodes to new ones, and prompts need the order in
//!   which nodes came.

mod builder;
mod community;
mod export;
mod focus;
mod graph;
mod journal;
mod leiden;
mod operation;
mod prompts;
mod quote;
mod report;
mod responder;
mod tools;
mod view;

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

pub use crate::core::outcome::Confidence;
pub use builder::build;
pub use community::{Community, communities};
pub use export::export;
pub use focus::{Focus, Options, Target};
pub use graph::{Edge, Graph, Node, Source};
pub use journal::graph;
pub use operation::{Edit, Kind, Operation, Place};
pub use quote::{Match, Quotable};

/// The method.
pub struct Mindgraph;

static ABOUT: About = About {
    paper: Some(Paper {
        title: "MindGraph: Faithful Concept-Graph Memory for Long-Context Reasoning",
        authors: "Anonymous authors",
        arxiv: None,
    }),
    module: include_str!("mod.rs"),
};

impl Method for Mindgraph {
    fn name(&self) -> &'static str {
        "mindgraph"
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn own_options(&self) -> MethodOptions {
        MethodOptions::of::<Options>(focus::OPTIONS)
    }

    fn preparation_flags(&self, settings: &Settings) -> String {
        match settings.options::<Options>().focus {
            Focus::None => "--focus none".to_owned(),
            Focus::Question | Focus::Set => "--questions FILE, where a line of FILE is the question".to_owned(),
        }
    }

    fn embeds(&self) -> bool {
        false
    }

    fn prepares_for_question(&self) -> bool {
        true
    }

    fn expect_question(&self, question: &str, settings: &mut Settings) {
        let mut options: Options = settings.options();
        options.questions.push(question.to_owned());
        settings.set_options(options);
    }

    fn expect_any_question(&self, settings: &mut Settings) {
        settings.set_options(Options { focus: Focus::None, ..settings.options() });
    }

    fn missing(&self, corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
        Ok(Missing { calls: builder::missing(corpus, session)?, vectors: 0 })
    }

    fn prepare<'a>(
        &'a self,
        writer: &'a mut Writer,
        session: &'a Session<'_>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(build(writer, session, progress))
    }

    fn ask<'a>(
        &'a self,
        question: &'a str,
        corpus: Access<'a>,
        session: &'a Session<'_>,
    ) -> LocalBoxFuture<'a, Result<Answer>> {
        Box::pin(responder::ask(question, corpus, session))
    }

    fn graph(&self) -> Option<&'static GraphKind> {
        Some(&export::GRAPH)
    }
}
