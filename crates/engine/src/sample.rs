//! The sampling options of one call, checked and converted to requests of the sampling kernel. A reply with log-probabilities,
//! or in a format that is validated, gets a copy of its row and draws from it alone, after the step's parallel draw.

use calls::Sampling;
use models::sample::{Adjustment, Draw, Drawn, Penalties, draw_row};

/// Draws tokens for one sequence. The draw at position `i` depends on seed and `i` alone, so that it is the same with any
/// batch and any drafts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampler {
    temperature: f32,
    top_p: f32,
    top_k: usize,
    min_p: f32,
    penalties: Penalties,
    seed: u64,
}

impl Sampler {
    /// A sampler with these options for a vocabulary of this size.
    ///
    /// # Errors
    /// If an option is not a number, a repetition penalty is not above 0, or a biased token does not exist.
    pub fn new(sampling: &Sampling, vocabulary: usize) -> Result<Sampler, String> {
        let Sampling { temperature, top_p, top_k, min_p, seed, .. } = *sampling;
        let Sampling {
            frequency_penalty: frequency, presence_penalty: presence, repetition_penalty: repetition, ..
        } = *sampling;
        for (name, value) in [
            ("temperature", temperature),
            ("top_p", top_p),
            ("min_p", min_p),
            ("frequency_penalty", frequency),
            ("presence_penalty", presence),
            ("repetition_penalty", repetition),
        ] {
            if !value.is_finite() {
                return Err(format!("{name} is {value}"));
            }
        }
        if repetition <= 0.0 {
            return Err(format!("repetition_penalty is {repetition}; it must be above 0"));
        }
        for (token, bias) in &sampling.logit_bias {
            if *token as usize >= vocabulary {
                return Err(format!("logit_bias names token {token}; the model has {vocabulary} tokens"));
            }
            if !bias.is_finite() {
                return Err(format!("logit_bias of token {token} is {bias}"));
            }
        }
        let penalties = Penalties { frequency, presence, repetition };
        Ok(Sampler { temperature, top_p, top_k, min_p, penalties, seed })
    }

    /// The request for the token at `position` of the reply.
    pub(crate) fn request<'a>(
        &self,
        mask: Option<&'a [u32]>,
        adjustments: &'a [Adjustment],
        position: usize,
    ) -> Draw<'a> {
        let Sampler { temperature, top_p, top_k, min_p, penalties, seed } = *self;
        Draw { mask, adjustments, penalties, temperature, top_k, top_p, min_p, seed, position: position as u64 }
    }

    /// Draws from a whole row of logits, which it changes; none if no token is allowed.
    ///
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(crate) fn draw(
        &self,
        logits: &mut [f32],
        mask: &[u32],
        adjustments: &[Adjustment],
        position: usize,
    ) -> Result<Option<u32>, String> {
        match draw_row(logits, &self.request(Some(mask), adjustments, position)) {
            Drawn::Token(token) => Ok(Some(token)),
            Drawn::Nothing => Ok(None),
            Drawn::NotFinite => Err("the computation gave values that are not finite".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_meaning_are_refused() {
        let check = |sampling: Sampling, reason: &str| {
            let refused = Sampler::new(&sampling, 100).expect_err("it is refused");
            assert!(refused.contains(reason), "{refused}");
        };
        let plain = || Sampling::at(1.0, 5);
        assert!(Sampler::new(&Sampling { logit_bias: [(99, -100.0)].into(), ..plain() }, 100).is_ok());
        check(Sampling { temperature: f32::NAN, ..plain() }, "temperature is NaN");
        check(Sampling { presence_penalty: f32::INFINITY, ..plain() }, "presence_penalty is inf");
        check(Sampling { repetition_penalty: 0.0, ..plain() }, "must be above 0");
        check(Sampling { logit_bias: [(100, 1.0)].into(), ..plain() }, "names token 100; the model has 100 tokens");
        check(Sampling { logit_bias: [(3, f32::NAN)].into(), ..plain() }, "token 3 is NaN");
    }

    #[test]
    fn the_same_seed_draws_the_same_tokens_and_another_seed_others() {
        let drawn = |seed| {
            let sampler = Sampler::new(&Sampling::at(1.0, seed), 4).expect("options");
            let draw = |position| sampler.draw(&mut [1.0, 3.0, 3.0, 2.0], &[0b1101], &[], position).expect("numbers");
            (0..100).map(draw).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        assert!(drawn(1).iter().all(|token| matches!(token, Some(0 | 2 | 3))));
    }
}
