//! A low-dimensional layout of text vectors in which texts on one theme are close together (RAPTOR, section 3).
//!
//! RAPTOR uses UMAP. This is the deterministic part of UMAP: the fuzzy graph of nearest neighbours (UMAP,
//! section 3.1) and its spectral layout, the starting point of UMAP; the stochastic optimisation is left out. Of 146
//! sentences in ten dimensions it keeps the nearest neighbours with a trustworthiness of 0.93, umap-learn with 0.94; in
//! fewer dimensions it is up to 0.05 behind (`tests/golden/layout.py`).
//!
//! # Cost
//! Every vector is compared with every other: 1,000 texts take about a tenth of a second.

use random::Random;

/// Lays out unit vectors in `dims` dimensions by their `neighbours` nearest neighbours.
pub(super) fn layout(vectors: &[&[f32]], neighbours: usize, dims: usize) -> Vec<Vec<f64>> {
    let links = symmetric(&fuzzy_neighbours(vectors, neighbours));
    let axes = smoothest(&links, dims + 1);
    // The first axis is constant; the others are scaled as if each point were at distance 1.
    let scale = (vectors.len() as f64).sqrt();
    (0..vectors.len()).map(|point| axes[1..].iter().map(|axis| axis[point] * scale).collect()).collect()
}

/// For each point, its neighbours with the strength of the link.
type Links = Vec<Vec<(usize, f64)>>;

/// The nearest neighbours of each point by cosine; the nearest of all has strength 1, and strengths fall with distance
/// so that they sum to the logarithm of their number.
fn fuzzy_neighbours(vectors: &[&[f32]], neighbours: usize) -> Links {
    let of_point = |(place, vector): (usize, &&[f32])| {
        let distance = |(other, to): (usize, &&[f32])| (other, (1.0 - dot(vector, to)).max(0.0));
        let mut near: Vec<(usize, f64)> =
            vectors.iter().enumerate().filter(|(other, _)| *other != place).map(distance).collect();
        near.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        near.truncate(neighbours.saturating_sub(1).max(1));
        let nearest = near.first().map_or(0.0, |(_, distance)| *distance);
        let width = width(&near, nearest, (neighbours.max(2) as f64).log2());
        near.into_iter().map(|(other, distance)| (other, strength(distance, nearest, width))).collect()
    };
    vectors.iter().enumerate().map(of_point).collect()
}

fn strength(distance: f64, nearest: f64, width: f64) -> f64 {
    (-(distance - nearest).max(0.0) / width).exp()
}

/// The width at which the strengths of the links sum to `wanted`, found by halving.
fn width(near: &[(usize, f64)], nearest: f64, wanted: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1e3);
    for _ in 0..64 {
        let middle = f64::sqrt(low * high);
        let sum: f64 = near.iter().map(|(_, distance)| strength(*distance, nearest, middle)).sum();
        if sum > wanted { high = middle } else { low = middle }
    }
    high
}

/// The fuzzy union of the links of both ends: a + b - ab.
fn symmetric(links: &Links) -> Links {
    let mut union: Vec<std::collections::BTreeMap<usize, f64>> = vec![<_>::default(); links.len()];
    for (from, links) in links.iter().enumerate() {
        for (to, strength) in links {
            for (a, b) in [(from, *to), (*to, from)] {
                let known = union[a].entry(b).or_insert(0.0);
                *known += strength - *known * strength;
            }
        }
    }
    union.into_iter().map(|links| links.into_iter().collect()).collect()
}

/// The number of iterations. More iterations do not change clusters measurably.
const STEPS: usize = 100;

/// Unit vectors that differ least along links (the first eigenvectors of the normalised Laplacian), the smoothest first,
/// by subspace iteration from a fixed start.
fn smoothest(links: &Links, count: usize) -> Vec<Vec<f64>> {
    let degrees: Vec<f64> = links.iter().map(|links| links.iter().map(|(_, strength)| strength).sum()).collect();
    let mut random = Random::new(224);
    let mut axes: Vec<Vec<f64>> = vec![degrees.iter().map(|degree: &f64| degree.sqrt()).collect()];
    axes.extend((1..count).map(|_| degrees.iter().map(|_| random.unit() - 0.5).collect::<Vec<f64>>()));
    orthonormal(&mut axes);
    for _ in 0..STEPS {
        // The first axis is known and fixed.
        for axis in &mut axes[1..] {
            let follow = |(point, links): (usize, &Vec<(usize, f64)>)| {
                let pull = |(other, strength): &(usize, f64)| strength * axis[*other] / degrees[*other].sqrt();
                let pulled: f64 = links.iter().map(pull).sum();
                0.5 * (axis[point] + pulled / degrees[point].sqrt())
            };
            *axis = links.iter().enumerate().map(follow).collect();
        }
        orthonormal(&mut axes);
    }
    axes
}

/// Makes each vector orthogonal to those before it and of length 1; one whose remainder is zero becomes zero.
fn orthonormal(axes: &mut [Vec<f64>]) {
    for place in 0..axes.len() {
        let (before, rest) = axes.split_at_mut(place);
        let axis = &mut rest[0];
        // Twice, to remove the rounding errors of the first pass.
        for other in before.iter().chain(before.iter()) {
            let shared: f64 = axis.iter().zip(other).map(|(a, b)| a * b).sum();
            axis.iter_mut().zip(other).for_each(|(a, b)| *a -= shared * b);
        }
        let length = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
        let scale = if length > 1e-12 { 1.0 / length } else { 0.0 };
        axis.iter_mut().for_each(|x| *x *= scale);
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    f64::from(super::vectors::dot(a, b))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Vectors around some directions, slightly apart.
    fn around(directions: &[[f32; 3]], each: usize) -> Vec<Vec<f32>> {
        let mut random = Random::new(3);
        let mut vectors = Vec::new();
        for direction in directions {
            for _ in 0..each {
                let near: Vec<f32> = direction.iter().map(|x| x + 0.2 * random.unit() as f32).collect();
                let length = near.iter().map(|x| x * x).sum::<f32>().sqrt();
                vectors.push(near.iter().map(|x| x / length).collect());
            }
        }
        vectors
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn what_is_alike_lies_together() {
        let vectors = around(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 12);
        let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
        let points = layout(&vectors, 8, 2);
        assert!(points.iter().all(|point| point.len() == 2));
        for (place, point) in points.iter().enumerate() {
            let group = |other: usize| other / 12 == place / 12;
            let farthest_own = (0..36).filter(|o| group(*o)).map(|o| distance(point, &points[o])).fold(0.0, f64::max);
            let nearest_other =
                (0..36).filter(|o| !group(*o)).map(|o| distance(point, &points[o])).fold(f64::INFINITY, f64::min);
            assert!(farthest_own < nearest_other, "point {place}: {farthest_own} against {nearest_other}");
        }
        assert_eq!(points, layout(&vectors, 8, 2), "the same twice");
    }

    #[test]
    fn strengths_are_those_of_umap() {
        let vectors = around(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 10);
        let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
        for links in fuzzy_neighbours(&vectors, 6) {
            assert_eq!(links.len(), 5);
            assert_eq!(links[0].1, 1.0, "the nearest is a neighbour for certain");
            let sum: f64 = links.iter().map(|(_, strength)| strength).sum();
            assert!((sum - 6_f64.log2()).abs() < 1e-6, "{sum}");
        }
        let union = symmetric(&vec![vec![(1, 0.5)], vec![(0, 0.5), (2, 1.0)], vec![]]);
        assert_eq!(union, [vec![(1, 0.75)], vec![(0, 0.75), (2, 1.0)], vec![(1, 1.0)]]);
    }

    /// Vectors of a story's sentences and how well umap-learn keeps their neighbours; made by `tests/golden/layout.py`.
    const GOLDEN: &str = include_str!("../../../tests/golden/layout.json");

    #[derive(Deserialize)]
    struct Golden {
        near: usize,
        first_coordinates: Vec<Kept>,
        umap: Vec<Umap>,
        thousandths: Vec<Vec<f32>>,
    }

    #[derive(Deserialize)]
    struct Kept {
        dims: usize,
        kept: f64,
    }

    #[derive(Deserialize)]
    struct Umap {
        texts: usize,
        neighbours: usize,
        dims: usize,
        least: f64,
        mean: f64,
    }

    /// The other places of each, the nearest first.
    fn nearest(count: usize, distance: impl Fn(usize, usize) -> f64) -> Vec<Vec<usize>> {
        let of_place = |place: usize| {
            let mut others: Vec<usize> = (0..count).filter(|other| *other != place).collect();
            others.sort_by(|a, b| distance(place, *a).total_cmp(&distance(place, *b)));
            others
        };
        (0..count).map(of_place).collect()
    }

    /// How far the `near` nearest neighbours of each point are neighbours of its vector: 1 if all are (Venna and Kaski 2001).
    fn trustworthiness(vectors: &[&[f32]], points: &[Vec<f64>], near: usize) -> f64 {
        let count = vectors.len();
        let wanted = nearest(count, |a, b| 1.0 - dot(vectors[a], vectors[b]));
        let found = nearest(count, |a, b| distance(&points[a], &points[b]));
        let rank = |place: usize, other: &usize| 1 + wanted[place].iter().position(|wanted| wanted == other).unwrap();
        let too_far = |place: usize| {
            found[place][..near].iter().map(|other| rank(place, other).saturating_sub(near)).sum::<usize>()
        };
        let strangers: usize = (0..count).map(too_far).sum();
        1.0 - 2.0 * strangers as f64 / (count * near * (2 * count - 3 * near - 1)) as f64
    }

    /// The most by which the layout may keep neighbours worse than UMAP does on average.
    const MAX_LOSS: f64 = 0.05;

    #[test]
    fn neighbours_are_kept_as_umap_keeps_them() {
        let golden: Golden = serde_json::from_str(GOLDEN).expect("the golden file has this form");
        let unit = |vector: &Vec<f32>| {
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter().map(|x| x / length).collect::<Vec<f32>>()
        };
        let vectors: Vec<Vec<f32>> = golden.thousandths.iter().map(unit).collect();
        let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
        for Kept { dims, kept } in golden.first_coordinates {
            let points: Vec<Vec<f64>> =
                vectors.iter().map(|vector| vector[..dims].iter().map(|x| f64::from(*x)).collect()).collect();
            let found = trustworthiness(&vectors, &points, golden.near);
            assert!((found - kept).abs() < 2e-4, "scikit-learn measures {kept}, and this {found}");
        }
        for Umap { texts, neighbours, dims, least, mean } in golden.umap {
            let vectors = &vectors[..texts];
            let found = trustworthiness(vectors, &layout(vectors, neighbours, dims), golden.near);
            let case = format!("{texts} texts, {neighbours} neighbours, {dims} dimensions");
            println!("{case}: {found:.4}, UMAP {mean:.4} ({least:.4} at the least)");
            assert!(found > mean - MAX_LOSS, "{case}: {found}, UMAP {mean}");
        }
    }

    #[test]
    fn equal_vectors_are_no_trouble() {
        let one = [1.0_f32, 0.0];
        let points = layout(&[one.as_slice(); 14], 5, 10);
        assert!(points.iter().flatten().all(|x| x.is_finite()));
    }
}
