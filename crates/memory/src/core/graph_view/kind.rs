//! A kind of graph: how a method shows and exports the graph that it makes.

use store::Corpus;

use super::{Format, GraphView};
use crate::core::error::Result;

/// A kind of graph that a method makes of a corpus.
#[derive(Debug)]
pub struct GraphKind {
    pub name: &'static str,
    /// The graph as far as it is built. A method with a graph for each question gives the graph of this question, or
    /// without a question the one built for any.
    pub view: fn(&Corpus, Option<&str>) -> Result<GraphView>,
    /// The same graph as a file.
    pub export: fn(&Corpus, Option<&str>, Format) -> Result<String>,
}
