//! Gaussian mixtures with full covariances, fitted by expectation maximisation, with the number of components chosen by
//! the Bayesian information criterion (RAPTOR, section 3).
//!
//! Initialised by k-means, as in scikit-learn; so on data with clear groups it converges to scikit-learn's result.
//!
//! # Cost
//! Points x components x dimensions² for each of at most 100 steps.

use random::Random;

/// Settings of the fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fitting {
    /// Added to every variance, so that a single point is a Gaussian too (scikit-learn's `reg_covar`).
    pub least_variance: f64,
    pub seed: u64,
}

/// A weighted sum of Gaussians.
#[derive(Debug)]
pub(super) struct Mixture {
    parts: Vec<Gaussian>,
    /// Of all points together, natural logarithm.
    log_likelihood: f64,
    points: usize,
}

#[derive(Debug)]
struct Gaussian {
    /// Logarithm of its share of the points.
    log_weight: f64,
    mean: Vec<f64>,
    /// The lower triangle L of the covariance L L^T, row by row.
    factor: Vec<Vec<f64>>,
}

const MAX_STEPS: usize = 100;
/// Iteration ends when the mean log-likelihood grows by less.
const TOLERANCE: f64 = 1e-5;

impl Mixture {
    /// The mixture of 1 to `most` components with the lowest BIC, the smaller of equal ones. There must be a point.
    pub fn best(points: &[Vec<f64>], most: usize, fitting: Fitting) -> Mixture {
        let mut best = Mixture::fit(points, 1, fitting);
        for components in 2..=most.min(points.len()) {
            let other = Mixture::fit(points, components, fitting);
            if other.bic() < best.bic() {
                best = other;
            }
        }
        best
    }

    /// Fits this many components.
    pub fn fit(points: &[Vec<f64>], components: usize, fitting: Fitting) -> Mixture {
        let mut shares = one_hot(&means_of_groups(points, components, fitting.seed), points);
        let mut parts = maximise(points, &shares, fitting.least_variance);
        let mut log_likelihood = f64::NEG_INFINITY;
        for _ in 0..MAX_STEPS {
            let sum = expect(points, &parts, &mut shares);
            let gain = (sum - log_likelihood) / points.len() as f64;
            log_likelihood = sum;
            if gain.abs() < TOLERANCE {
                break;
            }
            parts = maximise(points, &shares, fitting.least_variance);
        }
        Mixture { log_likelihood: expect(points, &parts, &mut shares), parts, points: points.len() }
    }

    /// -2 ln(likelihood) + parameters x ln(points); lower is better.
    pub fn bic(&self) -> f64 {
        let (k, d) = (self.parts.len() as f64, self.parts[0].mean.len() as f64);
        let parameters = k * d * (d + 1.0) / 2.0 + k * d + k - 1.0;
        parameters * (self.points as f64).ln() - 2.0 * self.log_likelihood
    }

    /// The probability that a point came from each component.
    pub fn membership(&self, point: &[f64]) -> Vec<f64> {
        let mut logs: Vec<f64> = self.parts.iter().map(|part| part.log_density(point)).collect();
        normalise(&mut logs);
        logs
    }
}

impl Gaussian {
    /// ln(weight x density) at a point.
    fn log_density(&self, point: &[f64]) -> f64 {
        // Solves L y = x - mean by forward substitution; the length of y is the Mahalanobis distance.
        let mut solved = vec![0.0; point.len()];
        let (mut distance, mut log_root) = (0.0, 0.0);
        for (row, factor) in self.factor.iter().enumerate() {
            let known: f64 = factor[..row].iter().zip(&solved).map(|(a, b)| a * b).sum();
            solved[row] = (point[row] - self.mean[row] - known) / factor[row];
            distance += solved[row] * solved[row];
            log_root += factor[row].ln();
        }
        let dims = point.len() as f64;
        self.log_weight - 0.5 * (dims * std::f64::consts::TAU.ln() + distance) - log_root
    }
}

/// The responsibility of each component for each point; returns the log-likelihood of all points.
fn expect(points: &[Vec<f64>], parts: &[Gaussian], shares: &mut [Vec<f64>]) -> f64 {
    let mut sum = 0.0;
    for (point, shares) in points.iter().zip(shares) {
        for (part, share) in parts.iter().zip(shares.iter_mut()) {
            *share = part.log_density(point);
        }
        sum += normalise(shares);
    }
    sum
}

/// Turns logarithms into shares that sum to 1; returns the logarithm of their sum.
fn normalise(logs: &mut [f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    let log_sum = most + sum.ln();
    logs.iter_mut().for_each(|log| *log = (*log - log_sum).exp());
    log_sum
}

/// The Gaussians with the maximum likelihood for these responsibilities.
fn maximise(points: &[Vec<f64>], shares: &[Vec<f64>], least_variance: f64) -> Vec<Gaussian> {
    let gaussian = |component: usize| {
        let weight: f64 = shares.iter().map(|shares| shares[component]).sum::<f64>() + 10.0 * f64::EPSILON;
        let dims = points[0].len();
        let mut mean = vec![0.0; dims];
        for (point, shares) in points.iter().zip(shares) {
            mean.iter_mut().zip(point).for_each(|(mean, x)| *mean += shares[component] * x / weight);
        }
        let mut covariance = vec![vec![0.0; dims]; dims];
        for (point, shares) in points.iter().zip(shares) {
            let share = shares[component] / weight;
            for row in 0..dims {
                let from_mean = share * (point[row] - mean[row]);
                for column in 0..=row {
                    covariance[row][column] += from_mean * (point[column] - mean[column]);
                }
            }
        }
        Gaussian { log_weight: (weight / points.len() as f64).ln(), mean, factor: cholesky(covariance, least_variance) }
    };
    (0..shares[0].len()).map(gaussian).collect()
}

/// The lower Cholesky factor of a covariance whose lower triangle is given.
fn cholesky(mut matrix: Vec<Vec<f64>>, least_variance: f64) -> Vec<Vec<f64>> {
    for row in 0..matrix.len() {
        matrix[row][row] += least_variance;
        for column in 0..=row {
            let known: f64 = (0..column).map(|i| matrix[row][i] * matrix[column][i]).sum();
            let left = matrix[row][column] - known;
            // Rounding may leave a slightly negative value.
            matrix[row][column] =
                if row == column { left.max(least_variance).sqrt() } else { left / matrix[column][column] };
        }
    }
    matrix
}

/// Assigns each point wholly to the nearest mean.
fn one_hot(means: &[Vec<f64>], points: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let shares = |point: &Vec<f64>| {
        let mut shares = vec![0.0; means.len()];
        shares[nearest(means, point).0] = 1.0;
        shares
    };
    points.iter().map(shares).collect()
}

/// k-means: distant seeds (k-means++), then means of the nearest points until the assignment is stable.
fn means_of_groups(points: &[Vec<f64>], groups: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut means = scattered(points, groups, seed);
    for _ in 0..MAX_STEPS {
        let mut sums = vec![(vec![0.0; points[0].len()], 0.0); means.len()];
        for point in points {
            let (sum, count) = &mut sums[nearest(&means, point).0];
            sum.iter_mut().zip(point).for_each(|(sum, x)| *sum += x);
            *count += 1.0;
        }
        let mut moved = false;
        for (mean, (sum, count)) in means.iter_mut().zip(sums) {
            if count > 0.0 {
                let new: Vec<f64> = sum.into_iter().map(|sum| sum / count).collect();
                moved |= new != *mean;
                *mean = new;
            }
        }
        if !moved {
            break;
        }
    }
    means
}

/// The first mean is a random point; each further one is drawn by its squared distance from the existing ones.
fn scattered(points: &[Vec<f64>], groups: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Random::new(seed);
    let mut means = vec![points[random.below(points.len())].clone()];
    while means.len() < groups {
        let far: Vec<f64> = points.iter().map(|point| nearest(&means, point).1).collect();
        let mut left = random.unit() * far.iter().sum::<f64>();
        let drawn = far.iter().position(|distance| {
            left -= distance;
            left < 0.0
        });
        means.push(points[drawn.unwrap_or(means.len() % points.len())].clone());
    }
    means
}

/// The nearest mean and its squared distance.
fn nearest(means: &[Vec<f64>], point: &[f64]) -> (usize, f64) {
    let distance = |mean: &Vec<f64>| mean.iter().zip(point).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    means.iter().map(distance).enumerate().fold((0, f64::INFINITY), |best, other| match other.1 < best.1 {
        true => other,
        false => best,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// scikit-learn's result for the same points; made by `tests/golden/mixture.py`.
    const GOLDEN: &str = include_str!("../../../tests/golden/mixture.json");

    const FITTING: Fitting = Fitting { least_variance: 1e-6, seed: 224 };

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    }

    fn rows(value: &Value) -> Vec<Vec<f64>> {
        value.as_array().into_iter().flatten().map(numbers).collect()
    }

    fn near(got: f64, want: f64, what: &str) {
        assert!((got - want).abs() <= 1e-3 * want.abs().max(1.0), "{what}: {got} instead of {want}");
    }

    #[test]
    fn mixtures_are_those_of_scikit_learn() {
        let golden: Value = serde_json::from_str(GOLDEN).expect("the golden file is JSON");
        for case in golden["cases"].as_array().expect("there are cases") {
            let (name, points) = (case["name"].as_str().unwrap_or_default(), rows(&case["points"]));
            for (components, want) in (1..).zip(numbers(&case["bic"])) {
                near(Mixture::fit(&points, components, FITTING).bic(), want, &format!("{name}, BIC of {components}"));
            }
            let best = Mixture::best(&points, 4, FITTING);
            let want = numbers(&case["weights"]);
            assert_eq!(best.parts.len(), want.len(), "{name}: components");
            // The order of components is arbitrary.
            for (weight, mean) in want.iter().zip(rows(&case["means"])) {
                let distance =
                    |part: &&Gaussian| part.mean.iter().zip(&mean).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                let part = best.parts.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("one is near");
                near(part.log_weight.exp(), *weight, name);
                part.mean.iter().zip(mean).for_each(|(got, want)| near(*got, want, name));
            }
            for (point, want) in points.iter().zip(numbers(&case["surest"])) {
                near(best.membership(point).into_iter().fold(0.0, f64::max), want, &format!("{name}, membership"));
            }
        }
    }

    #[test]
    fn few_or_equal_points_are_no_trouble() {
        for points in [vec![vec![1.0, 2.0]], vec![vec![0.5]; 7], vec![vec![0.0, 0.0], vec![1e9, -1e9]]] {
            let best = Mixture::best(&points, 50, FITTING);
            assert!(best.bic().is_finite());
            for point in &points {
                let sum: f64 = best.membership(point).iter().sum();
                assert!((sum - 1.0).abs() < 1e-9, "{points:?}");
            }
        }
    }
}
