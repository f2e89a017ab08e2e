//! MindGraph (paper 004): a concept graph as working memory, built for a question and read with two tools.
//!
//! The *builder* reads a text block by block, with the question and the graph so far in view, and proposes edits
//! (section 3.2): add_node, add_edge, edit_node, delete_node, each with a quote whose place in the text is found
//! ([`Match`]). The edits of a block are kept as a note on it, and the graph is their replay. The *answering* model reads
//! the graph and may look up the text around a node's quote or a map of the graph's communities (section 3.3), at most 40
//! times.
//!
//! # Departures
//! What the paper leaves open, and what we do otherwise:
//! * A block is 8,192 tokens as in the paper, and at most a quarter of the builder's context: 2,048 of 8,192. A proposal
//!   has at most 4,096 tokens, and an eighth of the context.
//! * A corpus of several documents has one graph; blocks come in the order of their documents. Blocks do not overlap, end
//!   at white space, and stay as they were cut unless the model cannot read them.
//! * Graphs and reports are made at temperature 0; the answer has the temperature of the settings.
//! * A graph need not know its question ([`Focus::None`]), and the graphs of several questions can be built in one reading
//!   ([`Focus::Set`]). In the layout that puts shared text first, one question's calls begin with the question and the
//!   graph, several questions' calls with the block.
//! * Prompts show ids, types and contents of nodes, sources, targets and relations of edges, in the order in which they
//!   came and a line each. Where a graph is larger than its room, the oldest nodes lose their contents, then the oldest
//!   edges go, then the oldest nodes; the trace says how many, and only nodes that were shown can be edited, deleted, looked
//!   up or cited. The paper's graphs have 200 nodes at most.
//! * add_node with a known id edits that node, which keeps its type and its first place. add_edge waits for its ends until
//!   the block is over. The same edge twice is one edge with two places. delete_node takes the node's edges along. Edits
//!   that make no sense are refused one by one and stand in the trace.
//! * edit_node carries a quote, as the text of the paper says and its printed prompt does not; one without is taken too.
//! * A quote is looked for in its block: exactly, with spelling evened out, then with a tenth of its characters wrong; else
//!   the node is unverified, and looking it up shows the beginning of its block. Engines that enforce
//!   [`calls::schema::quote_of`] can only quote what is there.
//! * A block of which two replies in a row are no JSON, or which the builder cannot read even without the graph, is skipped
//!   for good, and the graph's statistics say so.
//! * Tools are called by JSON replies instead of an API for functions; a turn may hold four calls. A call that makes no
//!   sense is answered by what is wrong with it and counts as a round; a call that was answered is not offered again.
//!   The 40th round, or one after which nothing fits, must answer.
//! * Communities are split while they have more than ten nodes, as in GraphRAG. Nodes without edges are a community of their
//!   own; GraphRAG drops all but the largest component.
//! * A report is kept under a digest of what it shows of its community. The paper keeps reports under the graph's: ours
//!   outlive changes elsewhere in the graph. Who only reads the corpus, as the server does for a question, makes those that
//!   are missing and keeps none. Reports have 1 to 10 findings, GraphRAG's 5 to 10.
//! * Citations are the places of the cited nodes' quotes, where they were found.
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

pub use builder::build;
pub(crate) use builder::missing;
pub use community::{Community, communities};
pub(crate) use export::drawing;
pub use export::export;
pub use focus::{Focus, Options, Target};
pub use graph::{Edge, Graph, Node, Source};
pub use journal::graph;
pub use operation::{Edit, Kind, Operation, Place};
pub use quote::{Match, Quotable};
pub use responder::Confidence;
pub(crate) use responder::ask;
