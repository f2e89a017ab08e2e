//! The order in which running sequences get the rows of a step.

use std::collections::HashMap;

use crate::request::{QueueKey, SequenceId, TenantId, risen};
use crate::round_robin::Turn;
use crate::scheduler::{Scheduler, next_token};

impl Scheduler {
    /// Running sequences in the order in which they get rows, and whether each computes its prompt. Decodes are first. Prompts of
    /// a tenant keep the order in which they are due; those of the same priority alternate between tenants, and the tenant
    /// whose prompt was first in a step is the last in the next.
    pub(crate) fn order(&mut self) -> Vec<(bool, SequenceId)> {
        let turns = self.inherited_turns();
        let mut by_due: Vec<(QueueKey, SequenceId)> =
            self.running.iter().map(|(id, sequence)| (*turns.get(id).unwrap_or(&sequence.turn), *id)).collect();
        by_due.sort_unstable();
        let mut order = Vec::with_capacity(by_due.len());
        // The prompts of each tenant, and how many of them are in the order.
        let mut prompts: HashMap<TenantId, (Vec<SequenceId>, usize)> = HashMap::new();
        for (_, id) in by_due {
            match &self.running[&id] {
                sequence if sequence.is_decoding() => order.push((false, id)),
                sequence => {
                    self.prompt_turns.join(sequence.tenant, self.clock);
                    prompts.entry(sequence.tenant).or_default().0.push(id);
                }
            }
        }
        self.prompt_turns.retain(|tenant| prompts.contains_key(&tenant));
        loop {
            let priority = |turn: &Turn| {
                let (prompts, taken) = &prompts[&turn.tenant];
                let left = prompts[*taken..].iter().map(|id| self.priority(*id));
                left.min().map(|priority| ((priority, *taken), turn.tenant))
            };
            let next = self.prompt_turns.iter().filter_map(priority).min_by_key(|(key, _)| *key);
            let Some((prompts, taken)) = next.and_then(|(_, tenant)| prompts.get_mut(&tenant)) else { return order };
            order.push((true, prompts[*taken]));
            *taken += 1;
        }
    }

    /// The priority of a running sequence among those of other tenants.
    fn priority(&self, id: SequenceId) -> u64 {
        let sequence = &self.running[&id];
        risen(sequence.priority, self.clock - sequence.admitted)
    }

    /// The turns of sequences that fill a page for one which is due earlier.
    fn inherited_turns(&self) -> HashMap<SequenceId, QueueKey> {
        let mut turns = HashMap::new();
        for (id, sequence) in self.running.iter().filter(|(_, sequence)| !sequence.is_decoding()) {
            let (_, Some(filler)) = next_token(*id, sequence, &self.tree) else { continue };
            let turn = turns.entry(filler).or_insert(sequence.turn);
            *turn = sequence.turn.min(*turn);
        }
        turns.retain(|filler, turn| self.running.get(filler).is_some_and(|sequence| *turn < sequence.turn));
        turns
    }
}
