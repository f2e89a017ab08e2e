//! The order in which running sequences get the rows of a step.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::request::{QueueKey, SequenceId, TenantId, risen};
use crate::scheduler::{Scheduler, next_token};

impl Scheduler {
    /// Running sequences in the order in which they get rows, and whether each computes its prompt. Decodes are first. Prompts of
    /// a tenant keep the order in which they are due; of prompts of the same priority, that of the tenant with the fewest tokens is
    /// next, where its prompts that are already in the order count in full. Many tokens of a reply are ordered as a prompt;
    /// they were counted when they were appended.
    pub(crate) fn order(&self) -> Vec<(bool, SequenceId)> {
        let turns = self.inherited_turns();
        let mut by_due: Vec<(QueueKey, SequenceId)> =
            self.running.iter().map(|(id, sequence)| (*turns.get(id).unwrap_or(&sequence.turn), *id)).collect();
        by_due.sort_unstable();
        let mut order = Vec::with_capacity(by_due.len());
        let mut prompts: BTreeMap<TenantId, VecDeque<SequenceId>> = BTreeMap::new();
        for (_, id) in by_due {
            match &self.running[&id] {
                sequence if sequence.is_decoding() => order.push((false, id)),
                sequence => prompts.entry(sequence.tenant).or_default().push_back(id),
            }
        }
        let mut tokens: BTreeMap<TenantId, u64> =
            prompts.keys().map(|tenant| (*tenant, self.counters.ahead(*tenant))).collect();
        loop {
            let place = |(tenant, prompts): (&TenantId, &VecDeque<SequenceId>)| {
                let priority = prompts.iter().map(|id| self.priority(*id)).min()?;
                Some((priority, tokens[tenant], *tenant))
            };
            let Some((.., tenant)) = prompts.iter().filter_map(place).min() else { return order };
            let Some(id) = prompts.get_mut(&tenant).and_then(VecDeque::pop_front) else { return order };
            order.push((true, id));
            *tokens.entry(tenant).or_default() += self.running[&id].uncomputed() as u64;
        }
    }

    /// The priority of a running sequence among those of other tenants. It does not rise while its tenant has more tokens than
    /// another that waits, which is then next.
    fn priority(&self, id: SequenceId) -> u64 {
        let sequence = &self.running[&id];
        let is_ahead = self.counters.ahead(sequence.tenant) > 0;
        risen(sequence.priority, if is_ahead { 0 } else { self.clock - sequence.admitted })
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
