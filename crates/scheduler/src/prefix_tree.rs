//! Which runs of tokens, counted from the start of a sequence, have their keys and values in which pages.
//!
//! A node is one full page. Its key is a hash chained from its parent's, 128 bits wide, and the tokens themselves are
//! compared as well, so that a hash collision never gives one text the keys and values of another. The chain begins with the
//! namespace, and each namespace has roots of its own. Pinned pages, which all namespaces share, are not in the tree.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::PAGE_TOKENS;
use crate::page_pool::PageId;
use crate::request::{Namespace, SequenceId, WorkflowId};

/// A node of the tree; valid while it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(usize);

/// Where the pages of a namespace begin: at the start of a sequence, or behind pinned pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Root {
    pub namespace: Namespace,
    /// The number of pinned pages before it.
    pub pinned: usize,
}

/// What a page continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent {
    /// Nothing in the tree: it is the first of its prefix.
    Root(Root),
    Node(NodeId),
}

/// The hash of a page and all before it, the namespace included.
pub(crate) type PrefixHash = [u8; 16];
/// Their order does not depend on how many there are: a snapshot lists the pages of a prefix several times.
type Children = BTreeMap<PrefixHash, NodeId>;

/// Whether a page's keys and values are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// No sequence computes it at present.
    Open,
    /// This sequence will compute it.
    By(SequenceId),
    /// The step under way computes it.
    ThisStep(SequenceId),
    Ready,
}

#[derive(Debug)]
struct Node {
    page: PageId,
    tokens: Box<[u32]>,
    hash: PrefixHash,
    parent: Parent,
    children: Children,
    /// Sequences that hold it, and the restoring of saved pages. A holder of a node also holds its ancestors.
    holders: usize,
    fill: Fill,
    last_use: u64,
    /// True if it was part of a prefix that other prompts begin with too.
    stable: bool,
    /// Workflows under way that begin their prompts with it.
    wanted_by: Vec<WorkflowId>,
}

/// How soon a page is likely to be read again; the least likely is taken first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NextUse {
    /// The end of a prompt, or an answer.
    Unlikely,
    /// The beginning of prompts, but no open workflow uses them.
    Someday,
    /// A workflow under way asks about it again.
    Soon,
}

impl Node {
    fn next_use(&self) -> NextUse {
        match (self.wanted_by.is_empty(), self.stable) {
            (false, _) => NextUse::Soon,
            (true, true) => NextUse::Someday,
            (true, false) => NextUse::Unlikely,
        }
    }
}

/// Full pages by what is written in them.
#[derive(Debug, Default)]
pub struct PrefixTree {
    nodes: Vec<Option<Node>>,
    vacant: Vec<usize>,
    /// First pages of prefixes; a root without any has no entry.
    roots: HashMap<Root, Children>,
    /// Leaves without holders; whose next use is farthest first, then the longest unused.
    evictable: BTreeSet<(NextUse, u64, NodeId)>,
    /// Nodes without holders.
    idle: usize,
    /// Those of them that a workflow under way wants.
    wanted_idle: usize,
    clock: u64,
}

impl PrefixTree {
    /// Pages in the tree.
    pub fn pages(&self) -> usize {
        self.nodes.len() - self.vacant.len()
    }

    /// Pages without holders and that can therefore be taken.
    pub fn idle_pages(&self) -> usize {
        self.idle
    }

    /// Those of them that workflows under way will ask for again.
    pub(crate) fn wanted_idle_pages(&self) -> usize {
        self.wanted_idle
    }

    /// The child of `parent` that continues with exactly these tokens.
    pub(crate) fn child(&self, parent: Parent, tokens: &[u32]) -> Option<NodeId> {
        self.child_of_hash(parent, &self.hash(parent, tokens), tokens)
    }

    /// The same where the hash of the page is known: it depends on the namespace and the tokens only.
    pub(crate) fn child_of_hash(&self, parent: Parent, hash: &PrefixHash, tokens: &[u32]) -> Option<NodeId> {
        let id = *self.children(parent)?.get(hash)?;
        (*self.node(id).tokens == *tokens).then_some(id)
    }

    /// Whether the keys and values of a page are computed.
    pub(crate) fn is_ready(&self, id: NodeId) -> bool {
        self.node(id).fill == Fill::Ready
    }

    /// The ready child of `parent` that agrees longest with `tokens`, and for how many.
    pub(crate) fn nearest_child(&self, parent: Parent, tokens: &[u32]) -> Option<(NodeId, usize)> {
        let ready = self.children(parent)?.values().filter(|id| self.node(**id).fill == Fill::Ready);
        let agreeing = ready.map(|id| {
            let common = self.node(*id).tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
            (common, std::cmp::Reverse(*id))
        });
        let (common, std::cmp::Reverse(id)) = agreeing.max()?;
        (common > 0).then_some((id, common))
    }

    /// Adds a page, held once by the caller; the parent must be held too.
    pub(crate) fn insert(&mut self, parent: Parent, tokens: &[u32], page: PageId, fill: Fill) -> NodeId {
        debug_assert_eq!(tokens.len(), PAGE_TOKENS);
        debug_assert!(self.child(parent, tokens).is_none());
        let hash = self.hash(parent, tokens);
        let node = Node {
            page,
            tokens: tokens.into(),
            hash,
            parent,
            children: Children::new(),
            holders: 1,
            fill,
            last_use: self.clock,
            stable: false,
            wanted_by: Vec::new(),
        };
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            self.nodes.len() - 1
        });
        self.nodes[index] = Some(node);
        match parent {
            Parent::Node(parent) => self.change(parent, |above| {
                above.children.insert(hash, NodeId(index));
            }),
            Parent::Root(root) => {
                self.roots.entry(root).or_default().insert(hash, NodeId(index));
            }
        }
        NodeId(index)
    }

    /// Keeps a node, whose ancestors the caller holds, from being evicted.
    pub(crate) fn hold(&mut self, id: NodeId) {
        self.change(id, |node| node.holders += 1);
    }

    /// Says that prompts begin with this node, and which workflow's, if it is under way.
    pub(crate) fn want(&mut self, id: NodeId, workflow: Option<WorkflowId>) {
        self.change(id, |node| {
            node.stable = true;
            if let Some(workflow) = workflow.filter(|workflow| !node.wanted_by.contains(workflow)) {
                node.wanted_by.push(workflow);
            }
        });
    }

    /// Says that a workflow asks no more.
    pub(crate) fn close_workflow(&mut self, workflow: WorkflowId) {
        for id in (0..self.nodes.len()).map(NodeId) {
            if self.nodes[id.0].as_ref().is_some_and(|node| node.wanted_by.contains(&workflow)) {
                self.change(id, |node| node.wanted_by.retain(|wanting| *wanting != workflow));
            }
        }
    }

    /// Ends a [`PrefixTree::hold`] by a sequence, or by a holder that fills no page (`None`); descendants must be let go before
    /// their ancestors. Returns the page of a node that left the tree because it was never filled.
    pub(crate) fn let_go(&mut self, id: NodeId, holder: Option<SequenceId>) -> Option<PageId> {
        self.clock += 1;
        let clock = self.clock;
        self.change(id, |node| {
            node.holders -= 1;
            node.last_use = clock;
            if matches!(node.fill, Fill::By(filler) | Fill::ThisStep(filler) if Some(filler) == holder) {
                node.fill = Fill::Open;
            }
        });
        let node = self.node(id);
        (node.holders == 0 && node.fill != Fill::Ready).then(|| self.remove(id))
    }

    /// Removes the page whose next use is farthest; tails go before the prefixes that lead to them.
    pub(crate) fn evict(&mut self) -> Option<PageId> {
        let (_, _, id) = *self.evictable.first()?;
        Some(self.remove(id))
    }

    /// The same, if no workflow under way wants that page.
    pub(crate) fn evict_unwanted(&mut self) -> Option<PageId> {
        let (next_use, _, id) = *self.evictable.first()?;
        (next_use < NextUse::Soon).then(|| self.remove(id))
    }

    /// The ready nodes of a namespace that the prompts of a workflow begin with, without those behind pinned pages; parents before
    /// their children. As long as they stay in the tree their order stays the same.
    pub(crate) fn wanted_by(&self, namespace: Namespace, workflow: WorkflowId) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut next: Vec<NodeId> =
            self.roots.get(&Root { namespace, pinned: 0 }).into_iter().flat_map(Children::values).copied().collect();
        while let Some(id) = next.pop() {
            let node = self.node(id);
            if node.wanted_by.contains(&workflow) && node.fill == Fill::Ready {
                found.push(id);
                next.extend(node.children.values());
            }
        }
        found
    }

    pub(crate) fn parent(&self, id: NodeId) -> Parent {
        self.node(id).parent
    }

    pub(crate) fn tokens(&self, id: NodeId) -> &[u32] {
        &self.node(id).tokens
    }

    pub(crate) fn page(&self, id: NodeId) -> PageId {
        self.node(id).page
    }

    pub(crate) fn fill(&self, id: NodeId) -> Fill {
        self.node(id).fill
    }

    pub(crate) fn set_fill(&mut self, id: NodeId, fill: Fill) {
        self.node_mut(id).fill = fill;
    }

    fn remove(&mut self, id: NodeId) -> PageId {
        self.strike_off(id);
        let node = self.nodes[id.0].take().expect("a node is removed once");
        debug_assert!(node.children.is_empty() && node.holders == 0);
        self.vacant.push(id.0);
        match node.parent {
            Parent::Root(root) => self.remove_root(root, node.hash),
            Parent::Node(parent) => self.change(parent, |above| {
                above.children.remove(&node.hash);
            }),
        }
        node.page
    }

    /// Changes a node and the books about it.
    fn change(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        self.strike_off(id);
        change(self.nodes[id.0].as_mut().expect("a held node is in the tree"));
        self.enter(id);
    }

    /// Enters a node into the books of idle pages, if it is one.
    fn enter(&mut self, id: NodeId) {
        let node = self.node(id);
        if node.holders == 0 {
            let (next_use, last_use, leaf) = (node.next_use(), node.last_use, node.children.is_empty());
            self.idle += 1;
            self.wanted_idle += usize::from(next_use == NextUse::Soon);
            if leaf {
                self.evictable.insert((next_use, last_use, id));
            }
        }
    }

    /// Strikes a node off those books.
    fn strike_off(&mut self, id: NodeId) {
        let node = self.node(id);
        if node.holders == 0 {
            let (next_use, last_use) = (node.next_use(), node.last_use);
            self.idle -= 1;
            self.wanted_idle -= usize::from(next_use == NextUse::Soon);
            self.evictable.remove(&(next_use, last_use, id));
        }
    }

    fn children(&self, parent: Parent) -> Option<&Children> {
        match parent {
            Parent::Root(root) => self.roots.get(&root),
            Parent::Node(id) => Some(&self.node(id).children),
        }
    }

    fn remove_root(&mut self, root: Root, hash: PrefixHash) {
        let first = self.roots.get_mut(&root).expect("a node without a parent is the first of its root");
        first.remove(&hash);
        if first.is_empty() {
            self.roots.remove(&root);
        }
    }

    /// The hash of a page that continues `parent`.
    pub(crate) fn hash(&self, parent: Parent, tokens: &[u32]) -> PrefixHash {
        let mut hasher = blake3::Hasher::new();
        match parent {
            Parent::Root(root) => hasher.update(&root.namespace.0.to_le_bytes()),
            Parent::Node(parent) => hasher.update(&self.node(parent).hash),
        };
        for token in tokens {
            hasher.update(&token.to_le_bytes());
        }
        let mut hash = PrefixHash::default();
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        hash
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes[id.0].as_ref().expect("a held node is in the tree")
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id.0].as_mut().expect("a held node is in the tree")
    }

    /// Checks the tree against itself and against what sequences say they hold.
    pub(crate) fn check(&self, holders: &HashMap<NodeId, usize>) -> Result<(), String> {
        let (mut idle, mut wanted_idle) = (0, 0);
        for (index, node) in self.nodes.iter().enumerate() {
            let (id, Some(node)) = (NodeId(index), node) else { continue };
            let held = holders.get(&id).copied().unwrap_or(0);
            let leaf = node.children.is_empty();
            idle += usize::from(held == 0);
            wanted_idle += usize::from(held == 0 && !node.wanted_by.is_empty());
            if node.holders != held {
                return Err(format!("{id:?} counts {} holders, but {held} hold it", node.holders));
            }
            if held == 0 && node.fill != Fill::Ready {
                return Err(format!("{id:?} is {:?} and has no holder", node.fill));
            }
            if self.evictable.contains(&(node.next_use(), node.last_use, id)) != (held == 0 && leaf) {
                return Err(format!("{id:?}: {held} holders, leaf {leaf}, but wrong in the eviction order"));
            }
            match node.parent {
                Parent::Root(root) => {
                    if self.roots.get(&root).and_then(|first| first.get(&node.hash)) != Some(&id) {
                        return Err(format!("{id:?} is not the first of {root:?}"));
                    }
                }
                Parent::Node(parent) => {
                    let above = self.nodes[parent.0].as_ref().ok_or_else(|| format!("{id:?} has lost its parent"))?;
                    if above.holders < held.min(1) || above.children.get(&node.hash) != Some(&id) {
                        return Err(format!("{id:?} and its parent disagree"));
                    }
                }
            }
        }
        if (idle, wanted_idle) != (self.idle, self.wanted_idle) {
            let counted = (self.idle, self.wanted_idle);
            return Err(format!("{idle} idle pages, {wanted_idle} of them wanted, counted as {counted:?}"));
        }
        Ok(())
    }
}
