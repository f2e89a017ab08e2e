//! AdamW (arXiv 1711.05101) with a learning-rate schedule and clipping by the global norm.

use candle_core::{Tensor, Var};

use crate::error::Result;

/// How the learning rate falls after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Decay {
    /// Half a cosine, to 0.
    Cosine,
    /// A line, to 0.
    Linear,
}

/// Settings of the optimiser.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub rate: f32,
    pub warm_up: usize,
    pub steps: usize,
    pub decay: Decay,
    /// Decoupled weight decay.
    pub weight_decay: f32,
    /// Largest global norm of a gradient.
    pub clip: f32,
}

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

impl Settings {
    /// Learning rate of a step, counted from 0.
    pub fn rate_at(&self, step: usize) -> f32 {
        if step < self.warm_up {
            return self.rate * (step + 1) as f32 / self.warm_up as f32;
        }
        let after = (step - self.warm_up) as f32 / (self.steps - self.warm_up).max(1) as f32;
        match self.decay {
            Decay::Linear => self.rate * (1.0 - after).max(0.0),
            Decay::Cosine => self.rate * 0.5 * (1.0 + (std::f32::consts::PI * after.min(1.0)).cos()),
        }
    }
}

/// Values, first and second moments of one variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    pub value: Vec<f32>,
    pub first: Vec<f32>,
    pub second: Vec<f32>,
}

/// The optimiser with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamW {
    pub settings: Settings,
    pub parameters: Vec<Parameter>,
}

impl AdamW {
    /// Begins with the values of the variables.
    ///
    /// # Errors
    /// If a variable cannot be read.
    pub fn new(settings: Settings, variables: &[&Var]) -> Result<AdamW> {
        let parameter = |variable: &&Var| -> Result<Parameter> {
            let value = variable.flatten_all()?.to_vec1::<f32>()?;
            let zeros = vec![0.0; value.len()];
            Ok(Parameter { first: zeros.clone(), second: zeros, value })
        };
        Ok(AdamW { settings, parameters: variables.iter().map(parameter).collect::<Result<_>>()? })
    }

    /// One update by `gradients`, which are clipped; returns their norm before. If that is not finite nothing changes.
    pub fn update(&mut self, step: usize, gradients: &[Vec<f32>]) -> f32 {
        let squares: f64 = gradients.iter().flatten().map(|g| f64::from(*g).powi(2)).sum();
        let norm = squares.sqrt() as f32;
        if !norm.is_finite() {
            return norm;
        }
        let shrink = if norm > self.settings.clip { self.settings.clip / norm } else { 1.0 };
        let rate = self.settings.rate_at(step);
        let count = i32::try_from(step + 1).unwrap_or(i32::MAX);
        let (correct1, correct2) = (1.0 - BETA1.powi(count), 1.0 - BETA2.powi(count));
        for (parameter, gradient) in self.parameters.iter_mut().zip(gradients) {
            let Parameter { value, first, second } = parameter;
            for (((value, first), second), g) in value.iter_mut().zip(first).zip(second).zip(gradient) {
                let g = *g * shrink;
                *first = BETA1 * *first + (1.0 - BETA1) * g;
                *second = BETA2 * *second + (1.0 - BETA2) * g * g;
                let change = (*first / correct1) / ((*second / correct2).sqrt() + EPSILON);
                *value -= rate * (change + self.settings.weight_decay * *value);
            }
        }
        norm
    }

    /// The largest magnitude of a value; NaN if one is.
    pub fn largest(&self) -> f32 {
        let values = self.parameters.iter().flat_map(|parameter| &parameter.value);
        values.fold(0.0, |most: f32, value| if most.is_nan() || value.abs() <= most { most } else { value.abs() })
    }

    /// Copies the values into the variables.
    ///
    /// # Errors
    /// If the device refuses them.
    pub fn store(&self, variables: &[&Var]) -> Result<()> {
        for (parameter, variable) in self.parameters.iter().zip(variables) {
            variable.set(&Tensor::from_slice(&parameter.value, variable.shape(), variable.device())?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings =
        Settings { rate: 0.1, warm_up: 4, steps: 20, decay: Decay::Linear, weight_decay: 0.01, clip: 1.0 };

    #[test]
    fn the_rate_rises_and_falls_to_zero() {
        for decay in [Decay::Linear, Decay::Cosine] {
            let settings = Settings { decay, ..SETTINGS };
            let rates: Vec<f32> = (0..20).map(|step| settings.rate_at(step)).collect();
            assert!((rates[0] - 0.025).abs() < 1e-6 && (rates[4] - 0.1).abs() < 1e-6, "{rates:?}");
            assert!(rates[..4].is_sorted() && rates[4..].is_sorted_by(|a, b| a >= b));
            assert!(rates[19] < 0.01 && settings.rate_at(20) < 1e-6);
        }
    }

    /// torch.optim.AdamW(lr=0.1, weight_decay=0.01) on [1, -2] with gradients [0.3, -0.4] and then [0.1, 0.2], without
    /// warm-up and decay.
    #[test]
    fn updates_are_those_of_pytorch() {
        let settings = Settings { warm_up: 0, steps: usize::MAX, ..SETTINGS };
        let variable = Var::new(&[1f32, -2.0], &candle_core::Device::Cpu).unwrap();
        let mut optimiser = AdamW::new(settings, &[&variable]).unwrap();
        assert!((optimiser.update(0, &[vec![0.3, -0.4]]) - 0.5).abs() < 1e-6);
        optimiser.update(1, &[vec![0.1, 0.2]]);
        let want = TORCH_ADAMW;
        for (got, want) in optimiser.parameters[0].value.iter().zip(want) {
            assert!((got - want).abs() < 1e-6, "{got}, want {want}");
        }
    }

    const TORCH_ADAMW: [f32; 2] = [0.810_994_6, -1.869_468_3];

    #[test]
    fn a_large_gradient_is_shortened_to_the_limit() {
        let variable = Var::new(&[0f32, 0.0], &candle_core::Device::Cpu).unwrap();
        let mut optimiser = AdamW::new(SETTINGS, &[&variable]).unwrap();
        assert_eq!(optimiser.update(0, &[vec![30.0, 40.0]]), 50.0);
        let first = &optimiser.parameters[0].first;
        assert!((first[0] - 0.06).abs() < 1e-6 && (first[1] - 0.08).abs() < 1e-6, "{first:?}");
        let before = optimiser.parameters.clone();
        assert!(optimiser.update(1, &[vec![f32::INFINITY, 0.0]]).is_infinite());
        assert!(optimiser.update(1, &[vec![f32::NAN, 0.0]]).is_nan());
        assert_eq!(optimiser.parameters, before, "nothing that is not finite is learned");
        for (values, largest) in [([-3.0, 2.0], 3.0), ([1.0, f32::NEG_INFINITY], f32::INFINITY)] {
            optimiser.parameters[0].value = values.into();
            assert_eq!(optimiser.largest(), largest);
        }
        for values in [[f32::NAN, 1.0], [1.0, f32::NAN]] {
            optimiser.parameters[0].value = values.into();
            assert!(optimiser.largest().is_nan());
        }
    }
}
