//! Clusters of texts to be summarised together (RAPTOR, section 3): a mixture over all, a mixture within each part of
//! it, and again where a cluster is too long for one call.

use std::collections::BTreeSet;

use super::gmm::{Fitting, Mixture};
use super::umap::layout;

/// A text to be clustered with similar ones.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Of length 1.
    pub vector: Vec<f32>,
    pub tokens: usize,
}

/// A text belongs to every cluster of which it is a member with more than this probability (RAPTOR).
const MIN_MEMBERSHIP: f64 = 0.1;
/// At most this many texts are one cluster (RAPTOR). The dimensions of a layout are the number of texts divided by it,
/// since a Gaussian with more dimensions than points fits anything.
const FEW: usize = 11;
/// Dimensions of a layout (RAPTOR, which always uses this number).
const MAX_DIMS: usize = 10;
/// Components that are tried (RAPTOR).
const MAX_COMPONENTS: usize = 50;
/// Axes of a layout have a variance of 1. Texts that hardly differ cannot be separated there, or each of them would
/// be a cluster.
const FITTING: Fitting = Fitting { least_variance: 0.01, seed: 224 };
/// Neighbours of the layout within a part (RAPTOR).
const LOCAL_NEIGHBOURS: usize = 10;

/// Clusters of nodes, each of at most `most_tokens` unless a single node has more; a node may be in several. Members
/// are in the order of the nodes, clusters in the order of their members.
pub(super) fn clusters(nodes: &[Node], most_tokens: usize) -> Vec<Vec<usize>> {
    let mut found = BTreeSet::new();
    divide(&(0..nodes.len()).collect::<Vec<_>>(), nodes, most_tokens, &mut found);
    found.into_iter().collect()
}

fn divide(members: &[usize], nodes: &[Node], most_tokens: usize, found: &mut BTreeSet<Vec<usize>>) {
    for cluster in by_theme(members, nodes) {
        if tokens(&cluster, nodes) <= most_tokens {
            found.insert(cluster);
        } else if cluster.len() < members.len() {
            divide(&cluster, nodes, most_tokens, found);
        } else {
            found.extend(in_order(&cluster, nodes, most_tokens));
        }
    }
}

fn tokens(members: &[usize], nodes: &[Node]) -> usize {
    members.iter().map(|member| nodes[*member].tokens).sum()
}

/// The clusters of the whole, and the clusters within each of them.
fn by_theme(members: &[usize], nodes: &[Node]) -> Vec<Vec<usize>> {
    // As many neighbours as in the released code: a fifth, from 5 to 30.
    let neighbours = (members.len() / 5).clamp(5, 30);
    let parts = mixture_of(members, nodes, neighbours);
    parts.iter().flat_map(|part| mixture_of(part, nodes, LOCAL_NEIGHBOURS)).collect()
}

fn mixture_of(members: &[usize], nodes: &[Node], neighbours: usize) -> Vec<Vec<usize>> {
    if members.len() <= FEW {
        return [members.to_vec()].into_iter().filter(|all| !all.is_empty()).collect();
    }
    let vectors: Vec<&[f32]> = members.iter().map(|member| nodes[*member].vector.as_slice()).collect();
    let points = layout(&vectors, neighbours, (members.len() / FEW).min(MAX_DIMS));
    let mixture = Mixture::best(&points, MAX_COMPONENTS.min(members.len() - 1), FITTING);
    let shares: Vec<Vec<f64>> = points.iter().map(|point| mixture.membership(point)).collect();
    let of_component = |component: usize| {
        let belongs = |(share, _): &(&Vec<f64>, &usize)| share[component] > MIN_MEMBERSHIP;
        shares.iter().zip(members).filter(belongs).map(|(_, member)| *member).collect::<Vec<_>>()
    };
    let components = 0..shares.first().map_or(0, Vec::len);
    components.map(of_component).filter(|cluster| !cluster.is_empty()).collect()
}

/// Cuts a cluster that no mixture divides in its order, after the last text that fits.
fn in_order(members: &[usize], nodes: &[Node], most_tokens: usize) -> Vec<Vec<usize>> {
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    let mut used_tokens = 0;
    for member in members {
        let tokens = nodes[*member].tokens;
        match pieces.last_mut() {
            Some(piece) if used_tokens + tokens <= most_tokens => {
                piece.push(*member);
                used_tokens += tokens;
            }
            _ => {
                pieces.push(vec![*member]);
                used_tokens = tokens;
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;

    /// Nodes around this many directions, interleaved.
    fn themes(count: usize, each: usize, tokens: usize) -> Vec<Node> {
        let mut random = Random::new(5);
        let node = |place: usize| {
            let mut vector: Vec<f32> = (0..count).map(|_| 0.1 * random.unit() as f32).collect();
            vector[place % count] += 1.0;
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            Node { vector: vector.iter().map(|x| x / length).collect(), tokens }
        };
        (0..count * each).map(node).collect()
    }

    fn check(nodes: &[Node], most_tokens: usize) -> Vec<Vec<usize>> {
        let found = clusters(nodes, most_tokens);
        assert_eq!(found, clusters(nodes, most_tokens), "the same twice");
        let members: BTreeSet<usize> = found.iter().flatten().copied().collect();
        assert_eq!(members.len(), nodes.len(), "every node is in a cluster");
        for cluster in &found {
            assert!(cluster.is_sorted() && !cluster.is_empty());
            assert!(cluster.len() == 1 || tokens(cluster, nodes) <= most_tokens, "{cluster:?} is too long");
        }
        found
    }

    #[test]
    fn few_texts_are_one_cluster_if_they_can_be_read_at_once() {
        assert_eq!(check(&themes(1, 1, 500), 3500), [vec![0]]);
        assert_eq!(check(&themes(3, 3, 300), 3500), [(0..9).collect::<Vec<_>>()]);
        assert_eq!(check(&themes(3, 3, 1000), 3500), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8]]);
        assert_eq!(check(&themes(1, 3, 4000), 3500), [vec![0], vec![1], vec![2]]);
        assert_eq!(check(&[], 3500), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn themes_are_kept_apart() {
        let nodes = themes(3, 14, 100);
        for cluster in check(&nodes, 3500) {
            assert!(cluster.iter().all(|member| member % 3 == cluster[0] % 3), "{cluster:?} mixes themes");
        }
    }

    #[test]
    fn long_clusters_are_divided_again() {
        check(&themes(2, 16, 500), 3500);
        check(&themes(1, 24, 500), 1200);
        let equal = vec![Node { vector: vec![1.0, 0.0], tokens: 500 }; 30];
        check(&equal, 3500);
    }

    /// If Gaussians may be arbitrarily narrow, most points of many dimensions get one of their own.
    #[test]
    fn few_texts_stand_alone() {
        let mut random = Random::new(9);
        let mut point = |place: usize| -> Vec<f64> {
            let group = |dim: usize| if dim == place / 20 { 20.0 } else { 0.0 };
            (0..MAX_DIMS).map(|dim| group(dim) + 0.2 * (random.unit() - 0.5)).collect()
        };
        let points: Vec<Vec<f64>> = (0..60).map(&mut point).collect();
        let components = |fitting| Mixture::best(&points, MAX_COMPONENTS, fitting).membership(&points[0]).len();
        assert_eq!(components(FITTING), 3);
        let narrow = components(Fitting { least_variance: 1e-6, ..FITTING });
        assert!(narrow > 6, "{narrow} components need no least variance");
    }
}
