//! The Leiden algorithm (Traag, Waltman and van Eck 2019) for modularity at resolution 1, seeded: move nodes, refine,
//! aggregate, until every community is one node of the aggregate.
//!
//! The only randomness comes from the seed, and the input is a sorted list, so that the same network always has the
//! same communities. The best of a few runs is taken: networks here have hundreds of nodes, and a run is fast.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use random::Random;

/// An undirected weighted network without parallel links.
#[derive(Debug, Clone)]
pub(super) struct Network {
    /// Neighbours and weights of each node, in the order of the neighbours.
    links: Vec<Vec<(usize, f64)>>,
    /// Weight of the links of each node to itself.
    loops: Vec<f64>,
}

/// The community of each node.
type Partition = Vec<usize>;

/// Runs from which the best is taken, and how often each starts again from its own result.
const RUNS: u64 = 8;
const ITERATIONS: usize = 8;

/// How far refinement departs from the best merge (paper and graspologic: 0.001).
const RANDOMNESS: f64 = 0.001;

/// Gains below this are rounding.
const MIN_GAIN: f64 = 1e-12;

impl Network {
    /// A network of `nodes` nodes with links of weight 1; directions, repetitions and links to itself do not count.
    pub fn new(nodes: usize, links: impl IntoIterator<Item = (usize, usize)>) -> Network {
        let ordered = |(a, b): (usize, usize)| (a.min(b), a.max(b));
        let links: BTreeSet<(usize, usize)> = links.into_iter().map(ordered).filter(|(a, b)| a != b).collect();
        let mut network = Network { links: vec![Vec::new(); nodes], loops: vec![0.0; nodes] };
        for (a, b) in links {
            network.links[a].push((b, 1.0));
            network.links[b].push((a, 1.0));
        }
        network.links.iter_mut().for_each(|links| links.sort_unstable_by_key(|(to, _)| *to));
        network
    }

    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// True if a node has no links.
    pub fn is_isolated(&self, node: usize) -> bool {
        self.links[node].is_empty()
    }

    /// The network of some of its nodes, which must be sorted.
    pub fn part(&self, nodes: &[usize]) -> Network {
        let links = nodes.iter().enumerate().flat_map(|(new, node)| {
            let neighbours = self.links[*node].iter().filter_map(|(to, _)| nodes.binary_search(to).ok());
            neighbours.map(move |to| (new, to))
        });
        Network::new(nodes.len(), links)
    }

    /// Weight of the ends of links at a node.
    fn degree(&self, node: usize) -> f64 {
        self.links[node].iter().map(|(_, weight)| weight).sum::<f64>() + 2.0 * self.loops[node]
    }

    fn degrees(&self) -> Vec<f64> {
        (0..self.len()).map(|node| self.degree(node)).collect()
    }

    /// Weight of a node's links into each community next to it.
    fn towards(&self, node: usize, partition: &Partition) -> BTreeMap<usize, f64> {
        let mut towards = BTreeMap::new();
        for (to, weight) in &self.links[node] {
            *towards.entry(partition[*to]).or_default() += weight;
        }
        towards
    }

    /// The network whose nodes are the communities of a partition numbered from 0.
    fn aggregate(&self, partition: &Partition, communities: usize) -> Network {
        let mut links: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); communities];
        let mut loops = vec![0.0; communities];
        for node in 0..self.len() {
            let own = partition[node];
            loops[own] += self.loops[node];
            for (to, weight) in &self.links[node] {
                if partition[*to] == own {
                    loops[own] += weight / 2.0;
                } else {
                    *links[own].entry(partition[*to]).or_default() += weight;
                }
            }
        }
        Network { links: links.into_iter().map(|links| links.into_iter().collect()).collect(), loops }
    }
}

/// The share of links within communities beyond what chance gives (Newman and Girvan).
pub(super) fn modularity(network: &Network, partition: &Partition) -> f64 {
    let total: f64 = network.degrees().iter().sum();
    if total == 0.0 {
        return 0.0;
    }
    let mut within: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for node in 0..network.len() {
        let own = within.entry(partition[node]).or_default();
        let inside = network.links[node].iter().filter(|(to, _)| partition[*to] == partition[node]);
        own.0 += inside.map(|(_, weight)| weight).sum::<f64>() + 2.0 * network.loops[node];
        own.1 += network.degree(node);
    }
    within.values().map(|(inside, degree)| inside / total - (degree / total).powi(2)).sum()
}

/// The communities of a network, each connected; numbered from 0 in the order of their first nodes.
pub(super) fn leiden(network: &Network, seed: u64) -> Partition {
    let runs = (0..RUNS).map(|run| {
        let mut random = Random::new(seed.wrapping_add(run.wrapping_mul(0x2545_f491_4f6c_dd1d)));
        let mut partition: Partition = (0..network.len()).collect();
        let mut best = f64::NEG_INFINITY;
        for _ in 0..ITERATIONS {
            let next = connected(network, &iterate(network, partition.clone(), &mut random));
            let gained = modularity(network, &next);
            if gained <= best + MIN_GAIN {
                break;
            }
            (partition, best) = (next, gained);
        }
        (best, partition)
    });
    // The first of equals.
    let best = runs.reduce(|best, run| if run.0 > best.0 + MIN_GAIN { run } else { best });
    best.map_or_else(Vec::new, |(_, partition)| partition)
}

/// One run from a partition: down through the aggregates, and back to the nodes.
fn iterate(network: &Network, mut partition: Partition, random: &mut Random) -> Partition {
    let mut level = network.clone();
    // Which node of the level each node is part of.
    let mut part_of: Vec<usize> = (0..network.len()).collect();
    loop {
        move_nodes(&level, &mut partition, random);
        let (refined, count) = number(&refine(&level, &partition, random));
        if count == level.len() {
            return part_of.iter().map(|node| partition[*node]).collect();
        }
        let mut coarse = vec![0; count];
        (0..level.len()).for_each(|node| coarse[refined[node]] = partition[node]);
        part_of.iter_mut().for_each(|node| *node = refined[*node]);
        level = level.aggregate(&refined, count);
        partition = number(&coarse).0;
    }
}

/// Moves nodes to the communities that gain most, until none gains.
fn move_nodes(network: &Network, partition: &mut Partition, random: &mut Random) {
    let degrees = network.degrees();
    let total: f64 = degrees.iter().sum();
    let mut volume = vec![0.0; network.len()];
    let mut size = vec![0usize; network.len()];
    for node in 0..network.len() {
        volume[partition[node]] += degrees[node];
        size[partition[node]] += 1;
    }
    let mut queue: VecDeque<usize> = shuffled(network.len(), random).into();
    let mut queued = vec![true; network.len()];
    while let Some(node) = queue.pop_front() {
        queued[node] = false;
        let own = partition[node];
        volume[own] -= degrees[node];
        size[own] -= 1;
        let towards = network.towards(node, partition);
        let gain = |community: usize, weight: f64| weight - degrees[node] * volume[community] / total;
        let mut best = (own, gain(own, towards.get(&own).copied().unwrap_or(0.0)));
        for (community, weight) in &towards {
            let gain = gain(*community, *weight);
            if gain > best.1 + MIN_GAIN {
                best = (*community, gain);
            }
        }
        if best.1 < -MIN_GAIN {
            // Better alone; there are as many numbers as nodes, so one is free.
            best.0 = size.iter().position(|size| *size == 0).unwrap_or(own);
        }
        partition[node] = best.0;
        volume[best.0] += degrees[node];
        size[best.0] += 1;
        if best.0 != own {
            for (to, _) in &network.links[node] {
                if partition[*to] != best.0 && !queued[*to] {
                    queued[*to] = true;
                    queue.push_back(*to);
                }
            }
        }
    }
}

/// Splits each community into parts that are well connected within it: nodes join at random, with a probability that
/// rises with the gain.
fn refine(network: &Network, partition: &Partition, random: &mut Random) -> Partition {
    let degrees = network.degrees();
    let total: f64 = degrees.iter().sum();
    let mut community_volume = vec![0.0; network.len()];
    (0..network.len()).for_each(|node| community_volume[partition[node]] += degrees[node]);
    let mut refined: Partition = (0..network.len()).collect();
    let mut volume = degrees.clone();
    let mut alone = vec![true; network.len()];
    // Weight of the links of each part to the rest of its community.
    let mut outward: Vec<f64> = (0..network.len())
        .map(|node| network.towards(node, partition).get(&partition[node]).copied().unwrap_or(0.0))
        .collect();
    let well_connected = |part: usize, community: usize, volume: &[f64], outward: &[f64]| {
        let rest = community_volume[community] - volume[part];
        outward[part] + MIN_GAIN >= volume[part] * rest / total
    };
    for node in shuffled(network.len(), random) {
        let community = partition[node];
        if !alone[node] || !well_connected(node, community, &volume, &outward) {
            continue;
        }
        let mut towards: BTreeMap<usize, f64> = BTreeMap::new();
        for (to, weight) in network.links[node].iter().filter(|(to, _)| partition[*to] == community) {
            *towards.entry(refined[*to]).or_default() += weight;
        }
        let mut choices = vec![(node, 0.0, 0.0)];
        for (part, weight) in towards {
            let gain = weight - degrees[node] * volume[part] / total;
            if gain >= 0.0 && well_connected(part, community, &volume, &outward) {
                choices.push((part, weight, gain));
            }
        }
        let (part, weight) = choose(&choices, total, random);
        if part != node {
            refined[node] = part;
            volume[part] += degrees[node];
            outward[part] += outward[node] - 2.0 * weight;
            alone[node] = false;
            alone[part] = false;
        }
    }
    refined
}

/// Gives every connected part of a community a number of its own, in the order of the first nodes.
fn connected(network: &Network, partition: &Partition) -> Partition {
    let mut numbers = vec![usize::MAX; network.len()];
    let mut next = 0;
    for start in 0..network.len() {
        if numbers[start] != usize::MAX {
            continue;
        }
        numbers[start] = next;
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            for (to, _) in &network.links[node] {
                if numbers[*to] == usize::MAX && partition[*to] == partition[node] {
                    numbers[*to] = next;
                    open.push(*to);
                }
            }
        }
        next += 1;
    }
    numbers
}

/// Numbers communities from 0 in the order of their first nodes; how many there are.
fn number(partition: &Partition) -> (Partition, usize) {
    let mut numbers = BTreeMap::new();
    let numbered = partition.iter().map(|community| {
        let next = numbers.len();
        *numbers.entry(*community).or_insert(next)
    });
    let numbered = numbered.collect();
    (numbered, numbers.len())
}

/// The numbers below `count` in random order.
fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    random.shuffle(&mut numbers);
    numbers
}

/// One of the choices (part, weight, gain), with a probability that rises with its gain in modularity.
fn choose(choices: &[(usize, f64, f64)], total: f64, random: &mut Random) -> (usize, f64) {
    let most = choices.iter().map(|choice| choice.2).fold(0.0, f64::max);
    let likelihood = |gain: f64| (2.0 * (gain - most) / total / RANDOMNESS).exp();
    let sum: f64 = choices.iter().map(|choice| likelihood(choice.2)).sum();
    let mut left = random.unit() * sum;
    let drawn = choices.iter().find(|choice| {
        left -= likelihood(choice.2);
        left < 0.0
    });
    drawn.or(choices.last()).map_or((0, 0.0), |(part, weight, _)| (*part, *weight))
}

#[cfg(test)]
pub(super) mod tests;
