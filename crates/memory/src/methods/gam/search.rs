//! The searches of a plan.

use std::collections::BTreeSet;

use futures_util::join;
use store::{Hit, PassageId};

use super::plan::{Plan, Tool};
use crate::core::error::Result;
use crate::core::library::Library;
use crate::core::session::Session;

/// A page, and the tool that found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub page: PassageId,
    pub tool: &'static str,
}

/// The tool that reads pages by number.
pub(super) const PAGE_INDEX: &str = "page_index";

/// The pages that a plan for a request finds; if it finds none, those that a search for the request itself finds.
pub(super) async fn search(
    plan: &Plan,
    request: &str,
    k: usize,
    library: &Library<'_>,
    session: &Session<'_>,
) -> Result<Vec<Found>> {
    let found = run(plan, k, library, session).await?;
    if found.is_empty() { run(&Plan::search_for(request), k, library, session).await } else { Ok(found) }
}

/// Runs the tools of a plan concurrently and orders the pages that they find, each once: first the pages that the plan
/// names by number, which the planner chose from their abstracts, then those of the keyword and the vector tool
/// interleaved by rank.
async fn run(plan: &Plan, k: usize, library: &Library<'_>, session: &Session<'_>) -> Result<Vec<Found>> {
    let keyword = async {
        match plan.uses(Tool::Keyword) {
            true => library.keyword(&plan.keyword_collection, k, session),
            false => Ok(Vec::new()),
        }
    };
    let vector = async {
        match plan.uses(Tool::Vector) {
            true => library.vector(&plan.vector_queries, k, session).await,
            false => Ok(Vec::new()),
        }
    };
    let page_index = async {
        match plan.uses(Tool::PageIndex) {
            true => library.page_index(&plan.page_index, k, session),
            false => Ok(Vec::new()),
        }
    };
    let (keyword, vector, page_index) = join!(keyword, vector, page_index);
    Ok(order((PAGE_INDEX, page_index?), [("keyword", keyword?), ("vector", vector?)]))
}

fn order(numbered: (&'static str, Vec<Hit>), scored: [(&'static str, Vec<Hit>); 2]) -> Vec<Found> {
    let pages = |(tool, hits): (&'static str, Vec<Hit>)| {
        hits.into_iter().map(|hit| Found { page: hit.passage, tool }).collect::<Vec<_>>()
    };
    // Scores of different tools are not comparable, ranks are. Both lists in turn: the page's first tool is kept.
    let [keyword, vector] = scored.map(pages);
    let by_rank = (0..keyword.len().max(vector.len())).flat_map(|rank| [keyword.get(rank), vector.get(rank)]);
    let mut seen = BTreeSet::new();
    let mut found = pages(numbered);
    found.extend(by_rank.flatten().cloned());
    found.retain(|found| seen.insert(found.page));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_pages_come_first_and_the_tools_follow_interleaved_by_rank() {
        let hit = |page, score| Hit { passage: PassageId(page), score };
        let keyword = vec![hit(7, 5.5), hit(3, 1.5)];
        let vector = vec![hit(3, 1.75), hit(9, 0.5), hit(8, -0.25)];
        let page_index = vec![hit(6, 0.0), hit(1, 0.0), hit(7, 0.0)];
        let found = order(("page_index", page_index), [("keyword", keyword), ("vector", vector)]);
        let got: Vec<(i64, &str)> = found.iter().map(|found| (found.page.0, found.tool)).collect();
        let want =
            [(6, "page_index"), (1, "page_index"), (7, "page_index"), (3, "vector"), (9, "vector"), (8, "vector")];
        assert_eq!(got, want);
    }
}
