//! How exact a mean over questions is.

/// With fewer questions than this a mean has no interval, and no difference is called significant.
pub(super) const FEWEST: usize = 20;

/// Half the width of a 95 % confidence interval in standard errors: a quantile of the normal distribution.
const STANDARD_ERRORS: f64 = 1.96;

/// Half the width of the 95 % confidence interval of the mean of `scores`, by the normal approximation: 1.96 times the
/// standard deviation (with n - 1) over the square root of n. Questions count as independent draws. `None` for fewer than
/// [`FEWEST`] scores, and if all are equal, since the deviation of further scores is unknown then.
pub(super) fn margin(scores: &[f64]) -> Option<f64> {
    let first = *scores.first()?;
    if scores.len() < FEWEST || scores.iter().all(|score| *score == first) {
        return None;
    }
    let count = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / count;
    let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(STANDARD_ERRORS * (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_1_96_standard_errors() {
        // 25 right of 100: the variance is 0.25 * 0.75 * 100 / 99.
        let scores: Vec<f64> = (0..100).map(|number| f64::from(number % 4 == 0)).collect();
        let found = margin(&scores).unwrap();
        assert!((found - 1.96 * (0.1875_f64 / 99.0).sqrt()).abs() < 1e-12, "{found}");
        // Four times as many questions halve it, but for n - 1.
        let more = margin(&scores.repeat(4)).unwrap();
        assert!((found / more - (399.0_f64 / 99.0).sqrt()).abs() < 1e-12, "{more}");
    }

    #[test]
    fn few_or_equal_scores_have_no_margin() {
        let scores: Vec<f64> = (0..FEWEST).map(|number| f64::from(number % 2 == 0)).collect();
        assert!(margin(&scores).is_some());
        assert_eq!(margin(&scores[1..]), None);
        assert_eq!(margin(&[0.1; 100]), None);
        assert_eq!(margin(&[]), None);
    }
}
