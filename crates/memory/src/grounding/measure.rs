//! Quality of probabilities: AUROC, Brier score, reliability in bins of equal mass.

/// The probability that a true case scores higher than a false one, ties counted half (Mann-Whitney). `None` without
/// cases of both kinds.
pub fn auroc(cases: &[(f64, bool)]) -> Option<f64> {
    let mut order: Vec<&(f64, bool)> = cases.iter().collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut before) = (0.0, 0.0);
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        let rank = before + 0.5 * (same.len() as f64 + 1.0);
        ranks += rank * same.iter().filter(|(_, truth)| *truth).count() as f64;
        before += same.len() as f64;
    }
    let positive = cases.iter().filter(|(_, truth)| *truth).count() as f64;
    let negative = cases.len() as f64 - positive;
    (positive > 0.0 && negative > 0.0).then(|| (ranks - 0.5 * positive * (positive + 1.0)) / (positive * negative))
}

/// The mean squared distance of probability and outcome; 0 is best. `None` without cases.
pub fn brier(cases: &[(f64, bool)]) -> Option<f64> {
    let square = |(probability, truth): &(f64, bool)| (probability - f64::from(u8::from(*truth))).powi(2);
    (!cases.is_empty()).then(|| cases.iter().map(square).sum::<f64>() / cases.len() as f64)
}

/// One bin of a reliability diagram.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct ReliabilityBin {
    pub cases: usize,
    /// The mean of the stated probabilities.
    pub stated: f64,
    /// The share of true cases.
    pub observed: f64,
}

/// A reliability diagram: `bins` bins with equally many cases (up to one), by rising probability. Empty bins are left out.
pub fn reliability(cases: &[(f64, bool)], bins: usize) -> Vec<ReliabilityBin> {
    let mut order = cases.to_vec();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let border = |bin: usize| bin * order.len() / bins.max(1);
    let bin = |at: usize| {
        let inside = &order[border(at)..border(at + 1)];
        let n = inside.len() as f64;
        (!inside.is_empty()).then(|| ReliabilityBin {
            cases: inside.len(),
            stated: inside.iter().map(|(probability, _)| probability).sum::<f64>() / n,
            observed: inside.iter().filter(|(_, truth)| *truth).count() as f64 / n,
        })
    };
    (0..bins).filter_map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auroc_counts_pairs_in_the_right_order_and_ties_half() {
        assert_eq!(auroc(&[(0.1, false), (0.4, false), (0.35, true), (0.8, true)]), Some(0.75));
        assert_eq!(auroc(&[(0.5, false), (0.5, true)]), Some(0.5));
        assert_eq!(auroc(&[(0.5, true)]), None);
    }

    #[test]
    fn brier_is_the_mean_squared_error() {
        assert_eq!(brier(&[(1.0, true), (0.5, false)]), Some(0.125));
        assert_eq!(brier(&[]), None);
    }

    #[test]
    fn reliability_bins_have_equal_mass() {
        let cases = [(0.9, true), (0.1, false), (0.2, true), (0.8, true)];
        let bins = reliability(&cases, 2);
        assert_eq!(bins.len(), 2);
        assert_eq!((bins[0].cases, bins[0].observed), (2, 0.5));
        assert!((bins[0].stated - 0.15).abs() < 1e-12 && bins[1].observed == 1.0);
        assert_eq!(reliability(&cases, 10).iter().map(|bin| bin.cases).sum::<usize>(), 4);
    }
}
