//! The researcher: rounds of plan, search, integrate and reflect (section 2.2.2, equations 3 to 5).

use std::collections::BTreeSet;
use std::pin::pin;

use calls::{Agent, Prompt, Stability, schema};
use futures_util::future::{Either, select, try_join_all};
use futures_util::join;
use serde::Deserialize;
use store::{Corpus, Hit, Layer, PassageId};

use super::memorizer::{Entry, memo, parts, render};
use super::options::{Options, OutputForm};
use super::prompts::{
    FOLLOW_UP, FOLLOW_UP_THOUGHT, INFO_CHECK, INFO_CHECK_THOUGHT, INTEGRATE, INTEGRATE_THOUGHT, PLAN, PLAN_THOUGHT,
};
use crate::core::answer;
use crate::core::by_terms::cite;
use crate::core::embed::Indexed;
use crate::core::error::Result;
use crate::core::evidence::{Evidence, Item, budget, pack};
use crate::core::library::Library;
use crate::core::outcome::Answer;
use crate::core::prompt::{Input, Instructions, build, build_inputs_first, phrase_of, string_of, think_first, words};
use crate::core::session::{Ask, Session};
use crate::core::settings::Layout;
use crate::core::trace::Trace;

/// The result of research: the integrated notes and the pages that they come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Research {
    pub content: String,
    pub sources: Vec<PassageId>,
    /// Every page that was read.
    pub read: Vec<PassageId>,
}

impl Research {
    /// The notes as the integration agent sees them, with their pages.
    fn notes(&self) -> String {
        if self.sources.is_empty() {
            return self.content.clone();
        }
        let pages: Vec<String> = self.sources.iter().map(|page| format!("({page})")).collect();
        format!("{} [pages {}]", self.content, pages.join(", "))
    }
}

/// Answers a question: research, then one call to the responder.
pub(super) async fn ask(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let library = Library::open(corpus, Layer::Page, Indexed::HeaderAndContent, session.embedder)?;
    let research = research(question, &library, session).await?;
    respond(question, &research, corpus, session).await
}

/// Runs the research loop.
///
/// # Errors
/// If a call or the store fails. An invalid reply is no error: the round continues without it.
pub async fn research(question: &str, library: &Library<'_>, session: &Session<'_>) -> Result<Research> {
    let options: Options = session.settings.options();
    let memo = memo(library.corpus())?;
    let mut result = Research::default();
    let mut request = question.to_owned();
    let mut integrated = BTreeSet::new();
    for round in 1..=options.max_iterations {
        let plan = plan(&request, &memo, round, session).await?;
        let mut found = search(&plan, options.k, library, session).await?;
        // What a search finds again is in the notes already; a page that the plan names is read again.
        found.retain(|found| found.tool == PAGE_INDEX || !integrated.contains(&found.page));
        if !found.is_empty() {
            integrated.extend(integrate(question, &found, &mut result, library.corpus(), session).await?);
        }
        let is_last = round == options.max_iterations;
        let Some(new_requests) = reflect(question, &result, is_last, session).await? else { break };
        request = if new_requests.is_empty() { question.to_owned() } else { new_requests.join(" ") };
    }
    Ok(result)
}

/// Equation 3: the tools and their queries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    #[allow(dead_code)] // for readers of the trace
    info_needs: Vec<String>,
    tools: Vec<Tool>,
    keyword_collection: Vec<String>,
    vector_queries: Vec<String>,
    page_index: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tool {
    Keyword,
    Vector,
    PageIndex,
}

/// Items of the lists of a plan, and pages that it may name by number.
const MAX_QUERIES: usize = 5;
const MAX_KEYWORDS: usize = 8;
const MAX_PAGES: usize = 5;

/// Words of a need, a query or a request, and of a keyword.
const QUERY_WORDS: usize = 60;
const KEYWORD_WORDS: usize = 12;

async fn plan(request: &str, memo: &[Entry], round: usize, session: &Session<'_>) -> Result<Plan> {
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
    let ask = agent(Agent::Researcher, "gam.plan", build, PLAN, PLAN_THOUGHT, inputs, session);
    let ask = Ask { draw: round as u64 - 1, ..ask };
    Ok(session.json(ask, schema, check).await?.unwrap_or_else(|| Plan::search_for(request)))
}

impl Plan {
    /// True if any tool is used with a query.
    fn searches(&self) -> bool {
        self.uses(Tool::Keyword) || self.uses(Tool::Vector) || self.uses(Tool::PageIndex)
    }

    fn uses(&self, tool: Tool) -> bool {
        // Punctuation alone finds nothing.
        let blank = |texts: &[String]| !texts.iter().any(|text| text.contains(char::is_alphanumeric));
        let nothing = match tool {
            Tool::Keyword => blank(&self.keyword_collection),
            Tool::Vector => blank(&self.vector_queries),
            Tool::PageIndex => self.page_index.is_empty(),
        };
        self.tools.contains(&tool) && !nothing
    }

    /// The plan where no valid plan was written: a search for the request itself.
    fn search_for(request: &str) -> Plan {
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

/// A page, and the tool that found it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    page: PassageId,
    tool: &'static str,
}

/// The tool that reads pages by number.
const PAGE_INDEX: &str = "page_index";

/// Runs the tools of a plan concurrently and orders the pages that they find, each once: first the pages that the plan
/// names by number, which the planner chose from their abstracts, then those of the keyword and the vector tool
/// interleaved by rank.
async fn search(plan: &Plan, k: usize, library: &Library<'_>, session: &Session<'_>) -> Result<Vec<Found>> {
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Integration {
    content: String,
    sources: Vec<i64>,
}

/// Equation 4: integrates the pages into the notes and returns the pages that are in them now. An invalid reply keeps the
/// old notes.
async fn integrate(
    question: &str,
    found: &[Found],
    result: &mut Research,
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Vec<PassageId>> {
    let step = "gam.integrate";
    let most_words = words(session.output_tokens(Agent::Researcher, MAX_OUTPUT_TOKENS));
    let rules = format!("{}\nThe notes may have {most_words} words.", INTEGRATE.rules);
    let instructions = Instructions { rules: &rules, ..INTEGRATE };
    let ask = |evidence: &str| {
        let inputs = vec![
            Input::new("QUESTION", Stability::Volatile, question),
            Input::new("EVIDENCE_CONTEXT", Stability::Volatile, evidence),
            Input::new("RESULT", Stability::Volatile, result.notes()),
        ];
        agent(Agent::Researcher, step, build, instructions, INTEGRATE_THOUGHT, inputs, session)
    };
    let bare = ask("");
    let budget = budget(Agent::Researcher, session.prompt_tokens(&bare), bare.reply_tokens(), session);
    let items = found.iter().map(|found| Item::page(found.page, found.tool, corpus)).collect::<Result<Vec<_>>>()?;
    let Evidence { text, pages } = pack(step, Agent::Researcher, &items, budget, session)?;
    if pages.is_empty() {
        return Ok(pages);
    }
    let shown: BTreeSet<i64> = pages.iter().chain(&result.sources).map(|page| page.0).collect();
    let most = shown.len();
    let schema = schema::object([
        ("content", string_of(most_words)),
        ("sources", schema::array_of(shown.iter().copied(), most)),
    ]);
    let check = |integration: &Integration| match integration.sources.iter().find(|page| !shown.contains(page)) {
        Some(page) => Err(format!("page {page} was not shown")),
        None => Ok(()),
    };
    let integration = session.json(ask(&text), schema, check).await?;
    for page in &pages {
        if !result.read.contains(page) {
            result.read.push(*page);
        }
    }
    let Some(Integration { content, mut sources }) = integration else { return Ok(Vec::new()) };
    content.trim().clone_into(&mut result.content);
    if result.content.is_empty() {
        // Empty notes have no sources.
        sources.clear();
    }
    let mut seen = BTreeSet::new();
    result.sources = sources.into_iter().filter(|page| seen.insert(*page)).map(PassageId).collect();
    Ok(if result.content.is_empty() { Vec::new() } else { pages })
}

/// Equation 5: requests for what is missing; `None` ends the research. The information check and the follow-up read the
/// same inputs and are requested in one round; if the notes are enough, the follow-up is cancelled.
async fn reflect(
    question: &str,
    result: &Research,
    is_last: bool,
    session: &Session<'_>,
) -> Result<Option<Vec<String>>> {
    // Empty notes are never enough, so they are not checked.
    match (result.content.is_empty(), is_last) {
        (true, true) => return Ok(None),
        (true, false) => return follow_up(question, result, session).await.map(Some),
        // No search would use the requests.
        (false, true) => return is_enough(question, result, session).await.map(|_| None),
        (false, false) => {}
    }
    // The follow-up is traced and counted only if it is used, whichever of the two ends first.
    let trace = Trace::kept();
    let beside = Session { settings: session.settings.clone(), trace: &trace, on_text: None, ..*session };
    let (check, requests) = (pin!(is_enough(question, result, session)), pin!(follow_up(question, result, &beside)));
    let requests = match select(check, requests).await {
        Either::Left((enough, requests)) => {
            if enough? {
                None
            } else {
                Some(requests.await?)
            }
        }
        Either::Right((requests, check)) => {
            if check.await? {
                None
            } else {
                Some(requests?)
            }
        }
    };
    if requests.is_some() {
        session.trace.absorb(&trace)?;
    }
    Ok(requests)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InfoCheck {
    enough: bool,
}

/// Equation 5, information check: whether the notes answer the question; an invalid reply counts as no.
async fn is_enough(question: &str, result: &Research, session: &Session<'_>) -> Result<bool> {
    let inputs = reflection(question, result);
    let ask =
        agent(Agent::Judge, "gam.info_check", build_inputs_first, INFO_CHECK, INFO_CHECK_THOUGHT, inputs, session);
    let schema = schema::object([("enough", schema::boolean())]);
    let check: Option<InfoCheck> = session.json(ask, schema, |_| Ok(())).await?;
    Ok(check.is_some_and(|check| check.enough))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowUp {
    new_requests: Vec<String>,
}

/// Equation 5, follow-up: requests for what is missing; none if the reply is invalid.
async fn follow_up(question: &str, result: &Research, session: &Session<'_>) -> Result<Vec<String>> {
    let inputs = reflection(question, result);
    let ask =
        agent(Agent::Researcher, "gam.follow_up", build_inputs_first, FOLLOW_UP, FOLLOW_UP_THOUGHT, inputs, session);
    let schema = schema::object([("new_requests", schema::array(phrase_of(QUERY_WORDS), MAX_QUERIES))]);
    let reply: Option<FollowUp> = session.json(ask, schema, |_| Ok(())).await?;
    let mut new_requests = reply.map_or_else(Vec::new, |reply| reply.new_requests);
    new_requests.retain(|request| !request.trim().is_empty());
    Ok(new_requests)
}

fn reflection(question: &str, result: &Research) -> Vec<Input> {
    vec![
        Input::new("REQUEST", Stability::Volatile, question),
        Input::new("RESULT", Stability::Volatile, result.content.as_str()),
    ]
}

/// Tokens of a research agent's reply (released code: 2,048).
const MAX_OUTPUT_TOKENS: usize = 2048;

/// A call to an agent, which thinks about `thought` first where its profile has room for it.
fn agent(
    agent: Agent,
    step: &'static str,
    build: fn(Layout, Instructions<'_>, Vec<Input>) -> Prompt,
    instructions: Instructions,
    thought: &str,
    inputs: Vec<Input>,
    session: &Session<'_>,
) -> Ask {
    let (thinking_tokens, max_output_tokens) =
        (session.thinking_tokens(agent), session.output_tokens(agent, MAX_OUTPUT_TOKENS));
    let rules = think_first(instructions.rules, thought, thinking_tokens);
    let prompt = build(session.settings.layout, Instructions { rules: &rules, ..instructions }, inputs);
    Ask { agent, step, prompt, thinking_tokens, max_output_tokens, draw: 0 }
}

/// Sentences that accompany the notes in the output form "with extraction".
const MAX_SNIPPETS: usize = 8;

/// Calls the responder with the research in the output form of the options (table 4).
async fn respond(question: &str, research: &Research, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    // Notes without sources come from all pages that were read.
    let pages = if research.sources.is_empty() { &research.read } else { &research.sources };
    let notes = &research.content;
    let output = if notes.is_empty() { OutputForm::Pages } else { session.settings.options::<Options>().output };
    let items: Vec<Item> = match output {
        OutputForm::Integration => Vec::new(),
        OutputForm::Pages => pages.iter().map(|page| Item::page(*page, "source", corpus)).collect::<Result<_>>()?,
        OutputForm::Extraction => {
            let snippets = cite(question, notes, pages, MAX_SNIPPETS, corpus)?.into_iter();
            snippets.map(|snippet| Item { page: PassageId(snippet.page), text: snippet.quote }).collect()
        }
    };
    let context = if items.is_empty() {
        notes.clone()
    } else {
        let bare = answer::question(question, notes, Stability::Volatile, session);
        let budget = budget(Agent::Responder, session.prompt_tokens(&bare), bare.max_output_tokens, session);
        let evidence = pack("answer", Agent::Responder, &items, budget, session)?;
        format!("{notes}\n\n{}", evidence.text).trim().to_owned()
    };
    let ask = answer::question(question, &context, Stability::Volatile, session);
    answer::respond(question, ask, pages, corpus, session).await
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

    #[test]
    fn a_merged_plan_names_pages_of_every_part_first() {
        let plan = |pages: &[i64]| Plan { page_index: pages.to_vec(), ..Plan::default() };
        let merged = merge(vec![plan(&[1, 2, 3]), plan(&[11, 2]), plan(&[21])]);
        assert_eq!(merged.page_index, [1, 11, 21, 2, 3]);
        assert_eq!(merge(Vec::new()), Plan::default());
    }
}
