//! Reproducible sampling of the next token from logits.

use calls::Sampling;
use models::sample::MAX_TOP_K;

/// Samples tokens for one sequence. The token at position `i` depends on the seed and on `i` alone, whatever else is in
/// the batch.
#[derive(Debug, Clone)]
pub struct Sampler {
    sampling: Sampling,
}

impl Sampler {
    /// A sampler with these parameters.
    pub fn new(sampling: Sampling) -> Sampler {
        Sampler { sampling }
    }

    /// The number of most likely tokens that sampling needs, if it is small; `None` if it needs all logits.
    pub fn few(&self) -> Option<usize> {
        let Sampling { temperature, top_k, .. } = self.sampling;
        if temperature <= 0.0 { Some(1) } else { Some(top_k).filter(|top_k| (1..=MAX_TOP_K).contains(top_k)) }
    }

    /// The token at output position `position` from all logits; `-inf` excludes a token. `None` if all are excluded.
    ///
    /// Ties are broken in favour of the lower id.
    pub fn sample(&self, logits: &[f32], position: usize) -> Option<u32> {
        let Sampling { temperature, top_p, top_k, .. } = self.sampling;
        let tokens = (0..).zip(logits.iter().copied()).filter(|(_, logit)| *logit > f32::NEG_INFINITY);
        if temperature <= 0.0 {
            let best = tokens.reduce(|a, b| if b.1 > a.1 { b } else { a })?;
            return Some(best.0);
        }
        let mut tokens: Vec<(u32, f32)> = tokens.collect();
        if top_k > 0 || top_p < 1.0 {
            tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        }
        self.draw(&tokens, position)
    }

    /// The same from the most likely allowed tokens in descending order, if [`Sampler::few`] of them suffice.
    pub fn draw(&self, tokens: &[(u32, f32)], position: usize) -> Option<u32> {
        let Sampling { temperature, top_p, top_k, min_p, seed } = self.sampling;
        let best = tokens.iter().map(|(_, logit)| *logit).reduce(f32::max)?;
        if temperature <= 0.0 {
            return tokens.first().map(|(id, _)| *id);
        }
        let top = if top_k > 0 { &tokens[..top_k.min(tokens.len())] } else { tokens };
        let weight = |(id, logit): &(u32, f32)| (*id, f64::from((logit - best) / temperature).exp());
        // The most likely token has weight 1.
        let mut kept: Vec<(u32, f64)> = top.iter().map(weight).filter(|(_, w)| *w >= f64::from(min_p)).collect();
        keep_top_p(&mut kept, f64::from(top_p));
        let total: f64 = kept.iter().map(|(_, weight)| weight).sum();
        let mut left = uniform(seed, position) * total;
        let drawn = kept.iter().find(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
        drawn.or(kept.last()).map(|(id, _)| *id)
    }
}

/// Keeps the smallest number of leading tokens whose weights reach the fraction `top_p` of the total.
fn keep_top_p(kept: &mut Vec<(u32, f64)>, top_p: f64) {
    if top_p >= 1.0 {
        return;
    }
    let wanted = top_p * kept.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut sum = 0.0;
    let enough = kept.iter().position(|(_, weight)| {
        sum += weight;
        sum >= wanted
    });
    kept.truncate(enough.map_or(kept.len(), |last| last + 1));
}

/// A number in `[0, 1)` that depends only on its arguments (SplitMix64's finaliser).
fn uniform(seed: u64, position: usize) -> f64 {
    let mut x = seed.wrapping_add((position as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use models::sample::TopKRequest;

    use super::*;

    const LOGITS: [f32; 5] = [1.0, 3.0, f32::NEG_INFINITY, 3.0, 2.0];

    fn drawn(sampling: Sampling) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..2000).filter_map(|i| Sampler::new(sampling).sample(&LOGITS, i)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    #[test]
    fn greedy_takes_the_first_of_the_best() {
        assert_eq!(Sampler::new(Sampling::GREEDY).sample(&LOGITS, 7), Some(1));
        assert_eq!(Sampler::new(Sampling::GREEDY).sample(&[f32::NEG_INFINITY; 3], 0), None);
        assert_eq!(Sampler::new(Sampling::GREEDY).sample(&[], 0), None);
    }

    #[test]
    fn each_limit_keeps_what_it_says() {
        let hot = Sampling::at(1.0, 5);
        assert_eq!(drawn(hot), [0, 1, 3, 4]);
        assert_eq!(drawn(Sampling { top_k: 2, ..hot }), [1, 3]);
        assert_eq!(drawn(Sampling { top_k: 3, ..hot }), [1, 3, 4]);
        assert_eq!(drawn(Sampling { min_p: 0.3, ..hot }), [1, 3, 4]);
        assert_eq!(drawn(Sampling { min_p: 0.5, ..hot }), [1, 3]);
        assert_eq!(drawn(Sampling { top_p: 0.5, ..hot }), [1, 3]);
        assert_eq!(drawn(Sampling { top_p: 0.3, ..hot }), [1]);
    }

    #[test]
    fn few_tokens_are_enough_where_it_says_so() {
        let check = |sampling: Sampling, few: Option<usize>| {
            let sampler = Sampler::new(sampling);
            assert_eq!(sampler.few(), few, "{sampling:?}");
            let Some(wanted) = few else { return };
            let top = models::sample::top_k(&LOGITS, TopKRequest { mask: None, wanted }).unwrap();
            let same = |position| sampler.draw(&top, position) == sampler.sample(&LOGITS, position);
            assert!((0..200).all(same), "{sampling:?}");
        };
        let hot = Sampling::at(1.0, 5);
        check(Sampling::GREEDY, Some(1));
        check(Sampling { top_k: 1, ..hot }, Some(1));
        check(Sampling { top_k: 3, top_p: 0.9, min_p: 0.1, ..hot }, Some(3));
        check(Sampling { top_k: MAX_TOP_K, ..hot }, Some(MAX_TOP_K));
        check(Sampling { top_k: MAX_TOP_K + 1, ..hot }, None);
        check(hot, None);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_frequencies_follow_the_softmax() {
        let draw = |seed, i| Sampler::new(Sampling::at(1.0, seed)).sample(&LOGITS, i);
        assert!((0..100).all(|i| draw(1, i) == draw(1, i)));
        assert!((0..100).any(|i| draw(1, i) != draw(2, i)));
        let share = (0..20_000).filter(|i| draw(3, *i) == Some(4)).count() as f64 / 20_000.0;
        let exact = 2f64.exp() / (1f64.exp() + 2.0 * 3f64.exp() + 2f64.exp());
        assert!((share - exact).abs() < 0.01, "{share} for {exact}");
    }
}
