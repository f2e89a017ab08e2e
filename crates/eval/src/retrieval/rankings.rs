//! The hits of each tool by query: the raw results, from which every number follows.

use std::fmt;

use super::Tool;
use crate::run_folder::csv_line;
use crate::score::Found;

/// A ranking of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub tool: Tool,
    /// The number of requested passages, if the first hits depend on it.
    pub k: Option<usize>,
    /// The number of passages on either side of a hit that count as found.
    pub window: usize,
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tool)?;
        self.k.map_or(Ok(()), |k| write!(f, "@{k}"))?;
        if self.window > 0 { write!(f, " +{}", self.window) } else { Ok(()) }
    }
}

/// The hits of the tools for every query of a data set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rankings {
    pub columns: Vec<Column>,
    /// In the order of the data set.
    pub queries: Vec<Ranked>,
    /// The number of passages longer than the embedder's window, of which only the beginnings were embedded.
    pub cut_passages: usize,
    /// The same for queries.
    pub cut_queries: usize,
}

/// The hits of the tools for one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    pub collection: String,
    pub query: String,
    pub groups: Vec<String>,
    /// The ids of its relevant passages.
    pub wanted: Vec<String>,
    /// The ranks in each column, in the same order.
    pub found: Vec<Vec<Found>>,
}

impl Rankings {
    /// A table with a line for each query: its collection, id and groups, its relevant passages (`id`, or
    /// `id=grade` where that is not 1), and for each column their ranks, `-` for what was not found.
    pub fn to_csv(&self) -> String {
        let header = ["collection", "query", "groups", "wanted"].map(str::to_owned);
        let columns = self.columns.iter().map(ToString::to_string);
        let mut table = csv_line(header.into_iter().chain(columns));
        for Ranked { collection, query, groups, wanted, found } in &self.queries {
            let grades = found.first().into_iter().flatten().map(|found| found.grade);
            let wanted = wanted.iter().zip(grades).map(|(id, grade)| match grade {
                1 => id.clone(),
                _ => format!("{id}={grade}"),
            });
            let rank = |found: &Found| found.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
            let ranks = found.iter().map(|of_tool| of_tool.iter().map(rank).collect::<Vec<_>>().join(" "));
            let cells = [collection.clone(), query.clone(), groups.join("; "), wanted.collect::<Vec<_>>().join(" ")];
            table += &csv_line(cells.into_iter().chain(ranks));
        }
        table
    }
}
