//! Admission: which waiting requests get pages.
//!
//! A request is admitted when all pages that it may need are free or idle. If pages are short, workflows that are
//! under way come first: were another begun in between, each would push out the pages that the others ask for next. Where
//! nothing runs, a few steps are left empty before another is admitted: a workflow that just got a reply may submit again. A
//! request that is more urgent than all workflows under way waits for none of them.

use std::collections::{HashMap, VecDeque};

use crate::PAGE_TOKENS;
use crate::prefix_tree::Fill;
use crate::request::{QueueKey, Request, TenantId, WorkflowId};
use crate::scheduler::{ActiveWorkflow, PATIENCE, PageCopy, Scheduler};
use crate::sequence::{Sequence, Slot, parent_after};
use crate::waiting::Waiting;

/// Steps without a running request after which a workflow counts as closed.
const MAX_SILENT_STEPS: u64 = 4 * PATIENCE;

/// Empty steps in which a workflow under way may ask again before its pages go to another.
const GRACE_STEPS: u64 = 16;

/// What keeps a request waiting.
enum Obstacle {
    /// There are not enough pages.
    Pages,
    /// Its pages would have to be taken from workflows under way.
    OtherWorkflows,
}

impl Scheduler {
    /// Admits waiting requests while pages and places last.
    pub(crate) fn admit(&mut self, copies: &mut Vec<PageCopy>) {
        self.forget_silent_workflows();
        // Admitted prompts count in full, so that one tenant does not get all places before the first is computed.
        let mut uncomputed: HashMap<TenantId, usize> = HashMap::new();
        for sequence in self.running.values() {
            *uncomputed.entry(sequence.tenant).or_default() += sequence.uncomputed();
        }
        let mut passed = Vec::new();
        while self.running.len() < self.config.max_running {
            let ahead =
                |tenant| self.counters.ahead(tenant) + uncomputed.get(&tenant).map_or(0, |tokens| *tokens as u64);
            let Some((turn, mut next)) = self.waiting.pop(self.clock, ahead) else { break };
            let tenant = next.request.tenant;
            match self.start(turn, &mut next, copies) {
                Ok(tokens) => {
                    self.waiting.serve(tenant, tokens, self.clock);
                    *uncomputed.entry(tenant).or_default() += tokens;
                }
                Err(Obstacle::OtherWorkflows) => passed.push((turn, next)),
                Err(Obstacle::Pages) => {
                    // No request overtakes: one that needs many pages would starve.
                    passed.push((turn, next));
                    break;
                }
            }
        }
        self.waiting.put_back(passed);
        self.empty_steps = if self.running.is_empty() { self.empty_steps + 1 } else { 0 };
    }

    /// Gives a request its pages: shared ones as far as the tree knows its prompt, new ones for the rest;
    /// returns how many tokens of the prompt it has to compute.
    fn start(&mut self, turn: QueueKey, next: &mut Waiting, copies: &mut Vec<PageCopy>) -> Result<usize, Obstacle> {
        let mut slots = self.hold_known_prefix(next);
        let request = &next.request;
        let (namespace, prompt) = (request.namespace, &request.prompt);
        let most_tokens = prompt.len() + request.max_output_tokens;
        let known = slots.len();
        if let Err(obstacle) = self.has_room(turn, request, most_tokens.div_ceil(PAGE_TOKENS) - known) {
            self.give_back(request.id, &slots);
            return Err(obstacle);
        }
        let pinned_tokens = slots.iter().filter(|slot| matches!(slot, Slot::Pinned(_))).count() * PAGE_TOKENS;
        let mut ready_tokens = pinned_tokens;
        let tail = &prompt[known * PAGE_TOKENS..prompt.len() - 1];
        let nearest = parent_after(namespace, &slots).and_then(|parent| self.tree.nearest_child(parent, tail));
        let copied = nearest.map(|(node, common)| (self.tree.page(node), common));
        for index in known..prompt.len().div_ceil(PAGE_TOKENS) {
            let page = self.take_page();
            if let (true, Some((from, common))) = (index == known, copied) {
                copies.push(PageCopy { sequence: request.id, from, to: page });
                ready_tokens = known * PAGE_TOKENS + common;
            }
            let tokens = &prompt[index * PAGE_TOKENS..prompt.len().min((index + 1) * PAGE_TOKENS)];
            let parent = parent_after(namespace, &slots).filter(|parent| {
                let is_full = tokens.len() == PAGE_TOKENS;
                is_full && self.tree.child(*parent, tokens).is_none()
            });
            slots.push(match parent {
                Some(parent) => Slot::Shared(self.tree.insert(parent, tokens, page, Fill::By(request.id))),
                None => Slot::Private(page),
            });
        }
        // A copied page counts only if all before it is ready; if not, it is computed like the others.
        if !slots[..known].iter().all(|slot| self.is_ready(slot)) {
            ready_tokens = pinned_tokens;
        }
        self.want(request, &slots, known);
        let sequence = Sequence {
            turn,
            tenant: request.tenant,
            priority: request.priority,
            admitted: self.clock,
            namespace,
            workflow: request.workflow,
            prompt_len: prompt.len(),
            tokens: prompt.clone(),
            most_tokens,
            slots,
            ready_tokens,
            draft: VecDeque::new(),
            draft_is_computed: false,
            shared_tokens: known * PAGE_TOKENS,
            own_prompt_tokens: 0,
        };
        let uncomputed = sequence.uncomputed();
        self.running.insert(request.id, sequence);
        Ok(uncomputed)
    }

    /// Whether a request can have `pages` more pages.
    fn has_room(&self, turn: QueueKey, request: &Request, pages: usize) -> Result<(), Obstacle> {
        let (needed, free) = (self.promised() + pages, self.pool.free() + self.tree.idle_pages());
        if needed > free {
            return Err(Obstacle::Pages);
        }
        let under_way = request.workflow.is_some_and(|workflow| self.workflows.contains_key(&workflow));
        let waited_long = self.clock > turn.due + PATIENCE || self.empty_steps >= GRACE_STEPS;
        if under_way || waited_long || needed <= free - self.tree.wanted_idle_pages() {
            return Ok(());
        }
        if self.workflows.values().all(|workflow| request.priority < workflow.priority) {
            return Ok(());
        }
        Err(Obstacle::OtherWorkflows)
    }

    /// The pinned pages that a request's prompt begins with, and the nodes of its namespace that hold the full pages behind them,
    /// without its last token, held. While it waits, this is repeated in each step, but no page is hashed again.
    fn hold_known_prefix(&mut self, Waiting { request, hashes }: &mut Waiting) -> Vec<Slot> {
        let prompt = &request.prompt[..request.prompt.len() - 1];
        let pinned = self.pinned.iter().filter(|_| request.pinned).zip(prompt.chunks_exact(PAGE_TOKENS));
        let known = pinned.take_while(|((known, _), tokens)| known == *tokens);
        let mut slots: Vec<Slot> = known.map(|((_, page), _)| Slot::Pinned(*page)).collect();
        for (index, tokens) in prompt[slots.len() * PAGE_TOKENS..].chunks_exact(PAGE_TOKENS).enumerate() {
            let Some(parent) = parent_after(request.namespace, &slots) else { break };
            if index == hashes.len() {
                hashes.push(self.tree.hash(parent, tokens));
            }
            let Some(node) = self.tree.child_of_hash(parent, &hashes[index], tokens) else { break };
            self.tree.hold(node);
            slots.push(Slot::Shared(node));
        }
        slots
    }

    /// Notes what others, and this workflow's next calls, will ask for again; the first `known` pages are there already.
    fn want(&mut self, request: &Request, slots: &[Slot], known: usize) {
        let stable = (request.stable_tokens / PAGE_TOKENS).min(slots.len());
        if let Some(workflow) = request.workflow {
            let (last_heard, priority) = (self.clock, request.priority);
            let new = ActiveWorkflow { last_heard, computes: false, priority };
            let under_way = self.workflows.entry(workflow).or_insert(new);
            under_way.last_heard = last_heard;
            under_way.computes |= known < stable;
            under_way.priority = under_way.priority.min(priority);
        }
        for slot in &slots[..stable] {
            if let Slot::Shared(node) = slot {
                self.tree.want(*node, request.workflow);
            }
        }
    }

    fn forget_silent_workflows(&mut self) {
        for workflow in self.running.values().filter_map(|sequence| sequence.workflow) {
            if let Some(under_way) = self.workflows.get_mut(&workflow) {
                under_way.last_heard = self.clock;
            }
        }
        let silent = |under_way: &ActiveWorkflow| under_way.last_heard + MAX_SILENT_STEPS < self.clock;
        let gone: Vec<WorkflowId> =
            self.workflows.iter().filter(|(_, under_way)| silent(under_way)).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|workflow| self.close_workflow(workflow));
    }

    fn is_ready(&self, slot: &Slot) -> bool {
        match slot {
            Slot::Shared(node) => self.tree.is_ready(*node),
            Slot::Pinned(_) => true,
            Slot::Private(_) => false,
        }
    }
}
