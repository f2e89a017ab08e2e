//! Plans: which tools search for what (equation 3).

use calls::{Agent, Stability, schema};
use futures_util::future::try_join_all;
use serde::Deserialize;

use super::call::{MAX_QUERIES, QUERY_WORDS, agent};
use super::memorizer::{Entry, parts, render};
use super::prompts::{PLAN, PLAN_THOUGHT};
use crate::core::error::Result;
use crate::core::prompt::{Input, phrase_of};
use crate::core::refusal::is_nothing;
use crate::core::session::{Ask, Session};

/// Equation 3: the tools and their queries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    #[allow(dead_code)] // for readers of the trace
    info_needs: Vec<String>,
    tools: Vec<Tool>,
    pub keyword_collection: Vec<String>,
    pub vector_queries: Vec<String>,
    pub page_index: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tool {
    Keyword,
    Vector,
    PageIndex,
}

/// Keywords of a plan, and pages that it may name by number.
const MAX_KEYWORDS: usize = 8;
const MAX_PAGES: usize = 5;

/// Words of a keyword.
const KEYWORD_WORDS: usize = 12;

pub(super) async fn plan(request: &str, memo: &[Entry], round: usize, session: &Session<'_>) -> Result<Plan> {
    let mut parts = parts(memo, Agent::Researcher, session);
    if parts.is_empty() {
        parts.push(Vec::new());
    }
    let plans = try_join_all(parts.iter().map(|part| plan_part(request, part, round, session))).await?;
    Ok(merge(plans))
}

async fn plan_part(request: &str, memo: &[Entry], round: usize, session: &Session<'_>) -> Result<Plan> {
    let inputs = vec![
        Input::new("QUESTION", Stability::Volatile, request),
        Input::new("MEMORY", Stability::AppendOnly, render(memo)),
    ];
    let pages: Vec<i64> = memo.iter().map(|entry| entry.page.0).collect();
    let schema = schema::object([
        ("info_needs", schema::at_least_one(schema::array(phrase_of(QUERY_WORDS), MAX_QUERIES))),
        ("tools", schema::at_least_one(schema::array_of(["keyword", "vector", "page_index"], 3))),
        ("keyword_collection", schema::array(phrase_of(KEYWORD_WORDS), MAX_KEYWORDS)),
        ("vector_queries", schema::array(phrase_of(QUERY_WORDS), MAX_QUERIES)),
        ("page_index", schema::array_of(pages.clone(), MAX_PAGES)),
    ]);
    let check = |plan: &Plan| match plan.page_index.iter().find(|page| !pages.contains(page)) {
        Some(page) => Err(format!("there is no page {page}")),
        None if !plan.searches() => Err("it searches nothing".into()),
        None => Ok(()),
    };
    let ask = agent(Agent::Researcher, "gam.plan", PLAN, PLAN_THOUGHT, inputs, session);
    let ask = Ask { draw: round as u64 - 1, ..ask };
    Ok(session.json(ask, schema, check).await?.unwrap_or_else(|| Plan::search_for(request)))
}

impl Plan {
    /// True if any tool is used with a query.
    fn searches(&self) -> bool {
        self.uses(Tool::Keyword) || self.uses(Tool::Vector) || self.uses(Tool::PageIndex)
    }

    pub fn uses(&self, tool: Tool) -> bool {
        let blank = |texts: &[String]| texts.iter().all(|text| is_nothing(text));
        let nothing = match tool {
            Tool::Keyword => blank(&self.keyword_collection),
            Tool::Vector => blank(&self.vector_queries),
            Tool::PageIndex => self.page_index.is_empty(),
        };
        self.tools.contains(&tool) && !nothing
    }

    /// The plan where no valid plan was written, or where its searches find no page: a search for the request itself.
    pub fn search_for(request: &str) -> Plan {
        Plan {
            tools: vec![Tool::Keyword, Tool::Vector],
            keyword_collection: vec![request.to_owned()],
            vector_queries: vec![request.to_owned()],
            ..Plan::default()
        }
    }
}

/// Merges the plans over the parts of a memo: every item once, interleaved by rank, so that where a tool takes only the
/// first items, the newest part of the memo counts as much as the oldest.
fn merge(plans: Vec<Plan>) -> Plan {
    fn of<T: PartialEq + Clone>(plans: &[Plan], items: impl Fn(&Plan) -> &Vec<T>) -> Vec<T> {
        interleave(&plans.iter().map(|plan| items(plan).clone()).collect::<Vec<_>>())
    }
    Plan {
        info_needs: of(&plans, |plan| &plan.info_needs),
        tools: of(&plans, |plan| &plan.tools),
        keyword_collection: of(&plans, |plan| &plan.keyword_collection),
        vector_queries: of(&plans, |plan| &plan.vector_queries),
        page_index: of(&plans, |plan| &plan.page_index),
    }
}

/// The first item of each list, then the second of each, and so on; equal items once.
fn interleave<T: PartialEq + Clone>(lists: &[Vec<T>]) -> Vec<T> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut all = Vec::new();
    for item in (0..longest).flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank))) {
        if !all.contains(item) {
            all.push(item.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_plan_names_pages_of_every_part_first() {
        let plan = |pages: &[i64]| Plan { page_index: pages.to_vec(), ..Plan::default() };
        let merged = merge(vec![plan(&[1, 2, 3]), plan(&[11, 2]), plan(&[21])]);
        assert_eq!(merged.page_index, [1, 11, 21, 2, 3]);
        assert_eq!(merge(Vec::new()), Plan::default());
    }
}
