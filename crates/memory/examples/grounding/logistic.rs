//! Logistic regression.

const STEPS: usize = 3000;
const RATE: f64 = 0.3;
const L2: f64 = 1e-4;

/// The bias and the weights of features.
pub struct Weights<const COUNT: usize> {
    bias: f64,
    weights: [f64; COUNT],
}

/// Fits by gradient descent over features that are scaled to mean 0 and variance 1.
pub fn fit<const COUNT: usize>(cases: &[([f64; COUNT], bool)]) -> Weights<COUNT> {
    let n = cases.len() as f64;
    let mean: [f64; COUNT] = std::array::from_fn(|at| cases.iter().map(|(x, _)| x[at]).sum::<f64>() / n);
    let spread: [f64; COUNT] = std::array::from_fn(|at| {
        (cases.iter().map(|(x, _)| (x[at] - mean[at]).powi(2)).sum::<f64>() / n).sqrt().max(1e-9)
    });
    let mut scaled = Weights { bias: 0.0, weights: [0.0; COUNT] };
    for _ in 0..STEPS {
        let (mut slope, mut slopes) = (0.0, [0.0; COUNT]);
        for (x, truth) in cases {
            let x: [f64; COUNT] = std::array::from_fn(|at| (x[at] - mean[at]) / spread[at]);
            let error = scaled.probability(&x) - f64::from(u8::from(*truth));
            slope += error / n;
            (0..COUNT).for_each(|at| slopes[at] += error * x[at] / n);
        }
        scaled.bias -= RATE * slope;
        (0..COUNT).for_each(|at| scaled.weights[at] -= RATE * (slopes[at] + L2 * scaled.weights[at]));
    }
    let weights: [f64; COUNT] = std::array::from_fn(|at| scaled.weights[at] / spread[at]);
    Weights { bias: scaled.bias - weights.iter().zip(&mean).map(|(w, m)| w * m).sum::<f64>(), weights }
}

impl<const COUNT: usize> Weights<COUNT> {
    pub fn probability(&self, x: &[f64; COUNT]) -> f64 {
        let sum = self.bias + self.weights.iter().zip(x).map(|(weight, x)| weight * x).sum::<f64>();
        1.0 / (1.0 + (-sum).exp())
    }

    /// As a Rust array, the bias first.
    pub fn table(&self) -> String {
        let weights: Vec<String> = [self.bias].iter().chain(&self.weights).map(|w| format!("{w:.4}")).collect();
        format!("[{}]", weights.join(", "))
    }
}
