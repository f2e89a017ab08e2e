//! The exact distribution that a request draws from, by sorting the whole row, in `f64`.

use super::Draw;

/// The tokens that can be drawn and their probabilities, heaviest first; empty if none is allowed. At temperature 0 the one
/// token.
///
/// # Panics
/// If an adjusted token does not exist.
pub fn distribution(logits: &[f32], draw: &Draw<'_>) -> Vec<(u32, f64)> {
    let mut logits = logits.to_vec();
    for adjustment in draw.adjustments {
        let logit = &mut logits[adjustment.token as usize];
        *logit = draw.penalties.adjusted(*logit, *adjustment);
    }
    let allowed = |id: u32| {
        draw.mask.is_none_or(|mask| mask.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1))
    };
    let mut tokens: Vec<(u32, f64)> = (0..).zip(logits.into_iter().map(f64::from)).collect();
    tokens.retain(|(id, logit)| allowed(*id) && *logit > f64::NEG_INFINITY);
    tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let Some(best) = tokens.first().map(|(_, logit)| *logit) else { return tokens };
    if draw.temperature <= 0.0 {
        return vec![(tokens[0].0, 1.0)];
    }
    if draw.top_k > 0 {
        tokens.truncate(draw.top_k);
    }
    tokens.iter_mut().for_each(|(_, x)| *x = ((*x - best) / f64::from(draw.temperature)).exp());
    tokens.retain(|(_, weight)| *weight >= f64::from(draw.min_p));
    if draw.top_p < 1.0 {
        let wanted = f64::from(draw.top_p) * tokens.iter().map(|(_, weight)| weight).sum::<f64>();
        let mut before = 0.0;
        let kept = tokens.iter().take_while(|(_, weight)| {
            let keeps = before == 0.0 || before < wanted;
            before += weight;
            keeps
        });
        let kept = kept.count();
        tokens.truncate(kept);
    }
    let total: f64 = tokens.iter().map(|(_, weight)| weight).sum();
    tokens.iter_mut().for_each(|(_, weight)| *weight /= total);
    tokens
}
