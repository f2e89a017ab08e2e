//! Requests, pages, and the plan of each step; admission is in admission.rs, the order of a step in order.rs.

use std::collections::{BTreeMap, HashMap};

use crate::PAGE_TOKENS;
use crate::page_pool::{PageId, PagePool};
use crate::prefix_tree::{Fill, NodeId, PrefixTree};
use crate::request::{QueueKey, Request, SequenceId, WorkflowId};
use crate::sequence::{Sequence, Slot, parent_after};
use crate::token_counters::TokenCounters;
use crate::waiting::WaitingQueue;

/// Sizes that a scheduler works within.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Pages of the pool.
    pub pages: usize,
    /// Most rows of one step: decodes first, the rest for prompts.
    pub step_tokens: usize,
    /// Sequences that run at once.
    pub max_running: usize,
}

/// Rows of a step that are kept for prompts while sequences decode.
pub const PROMPT_ROWS: usize = 16;

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It needs more pages than there are.
    NeverFits { pages: usize, total_pages: usize },
    /// A prompt without tokens has nothing to continue.
    EmptyPrompt,
}

/// What to do next: first the copies, in order, then one forward pass over the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    pub copies: Vec<PageCopy>,
    pub work: Vec<Work>,
}

/// Contents of one page to be copied to another. The copy counts as done: if it fails, its sequence must be
/// [finished](Scheduler::finish) and the step [abandoned](Scheduler::abandon).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCopy {
    /// The sequence that continues the copied tokens.
    pub sequence: SequenceId,
    pub from: PageId,
    pub to: PageId,
}

/// Some tokens of one sequence to be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub sequence: SequenceId,
    /// Positions of the tokens in the sequence.
    pub start: usize,
    pub tokens: Vec<u32>,
    /// The number of draft tokens, which are the last ones.
    pub drafted: usize,
    /// The sequence's pages from its start to the last of these tokens.
    pub pages: Vec<PageId>,
    /// True if these tokens reach the end, so that the next token can be sampled, and one after each draft token.
    pub wants_logits: bool,
}

impl Work {
    /// How many of the last tokens have logits that are wanted.
    pub fn logit_rows(&self) -> usize {
        if self.wants_logits { self.drafted + 1 } else { 0 }
    }
}

/// What a sequence has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: usize,
    /// Prompt tokens that others had computed.
    pub cached_tokens: usize,
    pub output_tokens: usize,
}

/// What is known of a workflow under way.
#[derive(Debug)]
pub(crate) struct ActiveWorkflow {
    /// The last step in which it had a running request.
    pub last_heard: u64,
    /// True if what its prompts begin with was not all there.
    pub computes: bool,
    /// That of its most urgent request.
    pub priority: u8,
}

/// Requests, pages, and who runs next.
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) config: Config,
    pub(crate) pool: PagePool,
    pub(crate) tree: PrefixTree,
    /// Pages out of the pool that prompts of all namespaces may begin with, and their tokens.
    pub(crate) pinned: Vec<(Vec<u32>, PageId)>,
    pub(crate) waiting: WaitingQueue,
    pub(crate) running: BTreeMap<SequenceId, Sequence>,
    /// Computed prompt tokens and output tokens of each tenant.
    pub(crate) counters: TokenCounters,
    /// Workflows under way.
    pub(crate) workflows: HashMap<WorkflowId, ActiveWorkflow>,
    arrivals: u64,
    /// Steps so far.
    pub(crate) clock: u64,
    /// Steps since anything ran.
    pub(crate) empty_steps: u64,
}

/// Steps after which a waiting request counts as one of the next higher priority, so that low priorities do not starve.
pub(crate) const PATIENCE: u64 = 1000;

impl Scheduler {
    /// A scheduler with nothing to do.
    ///
    /// # Panics
    /// If a step is too small for one token of every running sequence.
    pub fn new(config: Config) -> Scheduler {
        assert!(config.step_tokens >= config.max_running && config.max_running > 0, "{config:?}");
        Scheduler {
            pool: PagePool::new(config.pages),
            tree: PrefixTree::default(),
            pinned: Vec::new(),
            waiting: WaitingQueue::default(),
            running: BTreeMap::new(),
            counters: TokenCounters::default(),
            workflows: HashMap::new(),
            arrivals: 0,
            clock: 0,
            empty_steps: 0,
            config,
        }
    }

    /// Takes pages out of the pool for good, for whole pages of tokens that prompts of all namespaces may begin with; returns
    /// them. They are to be filled before the first request.
    ///
    /// # Panics
    /// If there are too few.
    pub fn pin(&mut self, tokens: &[u32]) -> Vec<PageId> {
        let page = |tokens: &[u32]| (tokens.to_vec(), self.pool.withdraw().expect("the caller has counted the pages"));
        self.pinned = tokens.chunks_exact(PAGE_TOKENS).map(page).collect();
        self.pinned.iter().map(|(_, page)| *page).collect()
    }

    /// Takes a request. How many wait is for the caller to bound.
    ///
    /// # Errors
    /// A [`Refusal`] if it can never run; nothing changes then.
    pub fn submit(&mut self, request: Request) -> Result<(), Refusal> {
        if request.prompt.is_empty() {
            return Err(Refusal::EmptyPrompt);
        }
        let pages = request.prompt.len().saturating_add(request.max_output_tokens).div_ceil(PAGE_TOKENS);
        if pages > self.pool.total() {
            return Err(Refusal::NeverFits { pages, total_pages: self.pool.total() });
        }
        self.arrivals += 1;
        let turn = QueueKey { due: self.clock + PATIENCE * u64::from(request.priority), arrival: self.arrivals };
        self.waiting.push(turn, request, self.clock);
        Ok(())
    }

    /// Ends a sequence, whatever it was doing; its full pages stay for others.
    pub fn finish(&mut self, id: SequenceId) {
        self.waiting.remove(id);
        if let Some(sequence) = self.running.remove(&id) {
            self.give_back(id, &sequence.slots);
        }
    }

    /// Says that a workflow asks no more: its pages are as good as any others.
    pub fn close_workflow(&mut self, workflow: WorkflowId) {
        if self.workflows.remove(&workflow).is_some() {
            self.tree.close_workflow(workflow);
        }
    }

    /// True if nothing runs or waits.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Sequences that run, and requests that wait.
    pub fn queue(&self) -> (usize, usize) {
        (self.running.len(), self.waiting.len())
    }

    /// Adds a token to a sequence. If it was drafted, it is computed already: the token after it is appended too, since no step
    /// computes it again. Several that were not drafted are computed by the next step as one chunk.
    ///
    /// # Panics
    /// If the sequence is not running or was promised no room for it.
    pub fn append(&mut self, id: SequenceId, token: u32) {
        let sequence = self.running.get_mut(&id).expect("only running sequences get tokens");
        assert!(sequence.tokens.len() < sequence.most_tokens, "{id:?} was promised {} tokens", sequence.most_tokens);
        sequence.tokens.push(token);
        self.counters.add(sequence.tenant, 1);
        if sequence.draft.front() == Some(&token) && sequence.draft_is_computed {
            sequence.draft.pop_front();
            sequence.ready_tokens += 1;
            if sequence.ready_tokens.is_multiple_of(PAGE_TOKENS) {
                settle(sequence, &mut self.tree, sequence.ready_tokens / PAGE_TOKENS - 1);
            }
        } else {
            sequence.draft.clear();
        }
    }

    /// Sets the draft of a sequence: tokens that may follow its newest one. The next step computes them beside that token, as far
    /// as there is room; what is then [appended](Scheduler::append) decides which of them stay.
    ///
    /// # Panics
    /// If the sequence is not running.
    pub fn draft(&mut self, id: SequenceId, tokens: &[u32]) {
        let most = self.max_draft_tokens();
        let sequence = self.running.get_mut(&id).expect("only running sequences have drafts");
        let room = (sequence.most_tokens - sequence.tokens.len()).min(most);
        sequence.draft = tokens.iter().copied().take(room).collect();
        sequence.draft_is_computed = false;
    }

    /// Draft tokens that one sequence may have, so that a step has room for those of all.
    fn max_draft_tokens(&self) -> usize {
        self.config.step_tokens / self.config.max_running - 1
    }

    /// Running sequences that decode.
    pub fn decoding(&self) -> usize {
        self.running.values().filter(|sequence| sequence.is_decoding()).count()
    }

    /// What a running sequence has cost; `None` if it does not run.
    pub fn usage(&self, id: SequenceId) -> Option<Usage> {
        let sequence = self.running.get(&id)?;
        Some(Usage {
            prompt_tokens: sequence.prompt_len,
            cached_tokens: sequence.prompt_len - sequence.own_prompt_tokens,
            output_tokens: sequence.tokens.len() - sequence.prompt_len,
        })
    }

    /// Plans the next step of at most `rows` rows, or as many as sequences run: admits who fits, then decodes, then prompts
    /// by priority, those of the tenant with the fewest tokens first, and for each tenant in the order in which they are due. A
    /// prompt that fills a page for another is due when that other is, if that is earlier. Draft tokens leave [`PROMPT_ROWS`]
    /// rows to prompts that wait.
    ///
    /// A step without work while requests wait: pages are short, and a running workflow may be about to continue.
    pub fn step(&mut self, rows: usize) -> Step {
        self.clock += 1;
        let prompts = self.running.values().filter(|sequence| !sequence.is_decoding());
        let prompts = prompts.map(|sequence| (sequence.priority, sequence.tenant));
        self.counters.rebase(self.waiting.priorities().chain(prompts));
        let mut step = Step::default();
        self.admit(&mut step.copies);
        let order = self.order();
        let mut budget = rows.clamp(self.config.max_running, self.config.step_tokens);
        let decodes = order.iter().filter(|(is_prompt, _)| !is_prompt).count();
        let for_prompts = if decodes < order.len() { PROMPT_ROWS.min(budget / 2) } else { 0 };
        for (place, (is_prompt, id)) in order.into_iter().enumerate() {
            if budget == 0 {
                break;
            }
            // Draft tokens leave a row to each decode behind this one.
            let kept = if is_prompt { 0 } else { for_prompts + decodes - place - 1 };
            let room = budget.saturating_sub(kept).max(1);
            if let Some(work) = self.plan(id, room) {
                budget -= work.tokens.len();
                step.work.push(work);
            }
        }
        step
    }

    /// Says that some work of a step was computed: its pages may be read from now on.
    pub fn commit(&mut self, work: &Work) {
        let Some(sequence) = self.running.get_mut(&work.sequence) else { return };
        let end = work.start + work.tokens.len() - work.drafted;
        let prompt_tokens = sequence.prompt_len.min(end) - sequence.prompt_len.min(work.start);
        sequence.own_prompt_tokens += prompt_tokens;
        self.counters.add(sequence.tenant, prompt_tokens);
        sequence.ready_tokens = end;
        sequence.draft_is_computed = true;
        (work.start / PAGE_TOKENS..end / PAGE_TOKENS).for_each(|index| settle(sequence, &mut self.tree, index));
    }

    /// Reports that work of a step failed, so its results are absent. The caller ends the request at fault and abandons later
    /// work of the step, which may have read its pages; that work is planned again.
    pub fn abandon(&mut self, work: &Work) {
        let Some(sequence) = self.running.get(&work.sequence) else { return };
        for index in work.start / PAGE_TOKENS..(work.start + work.tokens.len()) / PAGE_TOKENS {
            if let Some(node) = sequence.node(index) {
                self.tree.set_fill(node, Fill::By(work.sequence));
            }
        }
    }

    /// Plans the next tokens of one sequence, or nothing if it must wait for a page that another fills.
    fn plan(&mut self, id: SequenceId, budget: usize) -> Option<Work> {
        let sequence = self.running.get_mut(&id)?;
        let tree = &mut self.tree;
        let (start, None) = next_token(id, sequence, tree) else { return None };
        let mut end = sequence.tokens.len().min(start + budget);
        for index in start / PAGE_TOKENS..end.div_ceil(PAGE_TOKENS) {
            let Some(node) = sequence.node(index) else { continue };
            match tree.fill(node) {
                Fill::Open => tree.set_fill(node, Fill::By(id)),
                Fill::By(filler) if filler == id => {}
                // Filled by another, or ready: what is before it is enough for now.
                _ => {
                    end = end.min(index * PAGE_TOKENS);
                    break;
                }
            }
        }
        if end <= start {
            return None;
        }
        for index in start / PAGE_TOKENS..end / PAGE_TOKENS {
            if let Some(node) = sequence.node(index) {
                tree.set_fill(node, Fill::ThisStep(id));
            }
        }
        let (mut tokens, wants_logits) = (sequence.tokens[start..end].to_vec(), end == sequence.tokens.len());
        sequence.draft.truncate(if wants_logits { budget - tokens.len() } else { 0 });
        sequence.draft_is_computed = false;
        let drafted = sequence.draft.len();
        tokens.extend(&sequence.draft);
        let pages = self.pages_up_to(id, end + drafted);
        Some(Work { sequence: id, start, tokens, drafted, pages, wants_logits })
    }

    /// The pages of a running sequence for its first `tokens` tokens, allocating those that it has not needed before.
    fn pages_up_to(&mut self, id: SequenceId, tokens: usize) -> Vec<PageId> {
        let count = tokens.div_ceil(PAGE_TOKENS);
        while self.running[&id].slots.len() < count {
            let page = self.take_page();
            if let Some(sequence) = self.running.get_mut(&id) {
                sequence.slots.push(Slot::Private(page));
            }
        }
        let page = |slot: &Slot| match slot {
            Slot::Shared(node) => self.tree.page(*node),
            Slot::Pinned(page) | Slot::Private(page) => *page,
        };
        self.running[&id].slots[..count].iter().map(page).collect()
    }

    /// Pages that running sequences may still ask for.
    pub(crate) fn promised(&self) -> usize {
        self.running.values().map(|s| s.most_tokens.div_ceil(PAGE_TOKENS) - s.slots.len()).sum()
    }

    pub(crate) fn take_page(&mut self) -> PageId {
        let page = self.pool.allocate().or_else(|| self.tree.evict());
        page.expect("admission has counted the pages")
    }

    pub(crate) fn give_back(&mut self, id: SequenceId, slots: &[Slot]) {
        for slot in slots.iter().rev() {
            let page = match slot {
                Slot::Shared(node) => self.tree.let_go(*node, Some(id)),
                Slot::Pinned(_) => None,
                Slot::Private(page) => Some(*page),
            };
            if let Some(page) = page {
                self.pool.release(page);
            }
        }
    }

    /// Pages by use: free, in the tree without holder, in use.
    pub fn pages(&self) -> (usize, usize, usize) {
        let (free, idle) = (self.pool.free(), self.tree.idle_pages());
        (free, idle, self.pool.total() - free - idle)
    }

    /// Checks every invariant that can be seen from the books.
    ///
    /// # Errors
    /// A sentence that says which one is broken.
    pub fn check_integrity(&self) -> Result<(), String> {
        let mut holders: HashMap<NodeId, usize> = HashMap::new();
        let mut private = 0;
        for slot in self.running.values().flat_map(|sequence| &sequence.slots) {
            match slot {
                Slot::Shared(node) => *holders.entry(*node).or_default() += 1,
                Slot::Pinned(_) => {}
                Slot::Private(_) => private += 1,
            }
        }
        self.tree.check(&holders)?;
        let (free, tree, total) = (self.pool.free(), self.tree.pages(), self.pool.total());
        if free + tree + private != total {
            return Err(format!("{free} free + {tree} in the tree + {private} private are not {total} pages"));
        }
        if self.promised() > free + self.tree.idle_pages() {
            return Err(format!("{} pages promised, {free} free", self.promised()));
        }
        if !self.waiting.has_all_tenants() {
            return Err("a tenant with waiting requests is not in the queue".into());
        }
        Ok(())
    }
}

/// The first token of a sequence that is not in pages which are ready or which others fill in this very step; and the
/// sequence that fills its page, if another does.
pub(crate) fn next_token(id: SequenceId, sequence: &Sequence, tree: &PrefixTree) -> (usize, Option<SequenceId>) {
    let mut start = sequence.ready_tokens;
    while let Some(node) = sequence.node(start / PAGE_TOKENS) {
        match tree.fill(node) {
            Fill::ThisStep(filler) if filler == id => break,
            Fill::Ready | Fill::ThisStep(_) => start = (start / PAGE_TOKENS + 1) * PAGE_TOKENS,
            Fill::By(filler) if filler != id => return (start, Some(filler)),
            Fill::By(_) | Fill::Open => break,
        }
    }
    (start, None)
}

/// Publishes a page that is now full, unless its tokens are in the tree already.
fn settle(sequence: &mut Sequence, tree: &mut PrefixTree, index: usize) {
    let page = match sequence.slots[index] {
        Slot::Shared(node) => return tree.set_fill(node, Fill::Ready),
        Slot::Pinned(_) => return,
        Slot::Private(page) => page,
    };
    let tokens = &sequence.tokens[index * PAGE_TOKENS..(index + 1) * PAGE_TOKENS];
    let parent = parent_after(sequence.namespace, &sequence.slots[..index]);
    if let Some(parent) = parent.filter(|parent| tree.child(*parent, tokens).is_none()) {
        sequence.slots[index] = Slot::Shared(tree.insert(parent, tokens, page, Fill::Ready));
    }
}
