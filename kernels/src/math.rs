//! Elementary functions in plain `f32`, the same bits on every machine and easy to vectorise.

/// The numbers in [`exp`].
pub(crate) mod exp_constants {
    /// Below, the result is 0.
    pub const LOWEST: f32 = -87.336_54;
    /// Above, the result stays.
    pub const HIGHEST: f32 = 88.722_83;
    /// ln 2 in two parts.
    pub const LN2_HIGH: f32 = 0.693_359_4;
    pub const LN2_LOW: f32 = -2.121_944_4e-4;
    /// `(e^r - 1 - r) / r²`, the highest power first (Cephes).
    pub const POLYNOMIAL: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5];
}

/// The numbers in [`exp2`].
pub(crate) mod exp2_constants {
    /// Below, the result is 0.
    pub const LOWEST: f32 = -126.0;
    /// `(2^r - 1) / r` for `r` within ½ of 0, the highest power first: the smallest relative error of `2^r`.
    pub const POLYNOMIAL: [f32; 4] = [0.009_582_853, 0.055_906_426, 0.240_240_99, 0.693_124_2];
}

/// `2^x` for `x <= 0`, relative error below 3e-6; 1 for 0, 0 below -126, NaN for NaN.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    use exp2_constants as c;
    let n = x.round_ties_even();
    let r = x - n;
    let mut p = c::POLYNOMIAL[0];
    for term in &c::POLYNOMIAL[1..] {
        p = p.mul_add(r, *term);
    }
    let e = p.mul_add(r, 1.0);
    if x < c::LOWEST { 0.0 } else { scale(e, n) }
}

/// The largest magnitude of a block; NaN if one of its numbers is.
#[inline(always)]
pub(crate) fn largest_magnitude(x: &[f32; 32]) -> f32 {
    // Without their sign, floats are ordered as their bits are, and NaN is above infinity. In lanes, so that it is vectorised.
    let mut largest = [0u32; 16];
    for x in x.as_chunks::<16>().0 {
        largest.iter_mut().zip(x).for_each(|(largest, x)| *largest = (*largest).max(x.abs().to_bits()));
    }
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            largest[i] = largest[i].max(largest[i + width]);
        }
    }
    f32::from_bits(largest[0])
}

/// `e^x`, within 2 units in the last place; 0 below -87.3, stays at the largest value from 88.7 on, NaN for NaN.
///
/// Cephes' reduction: `x = n ln 2 + r`, a polynomial in `r`, then `n` put into the exponent.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    use exp_constants as c;
    let clamped = x.clamp(c::LOWEST, c::HIGHEST);
    let n = (clamped * std::f32::consts::LOG2_E).round_ties_even();
    let r = n.mul_add(-c::LN2_LOW, n.mul_add(-c::LN2_HIGH, clamped));
    let mut p = c::POLYNOMIAL[0];
    for term in &c::POLYNOMIAL[1..] {
        p = p.mul_add(r, *term);
    }
    let e = p.mul_add(r * r, r) + 1.0;
    // A mask, because a branch keeps loops over this function from being vectorised.
    let mask = u32::from(x < c::LOWEST).wrapping_sub(1);
    f32::from_bits(scale(e, n).to_bits() & mask)
}

/// `x · 2^n` for whole `n` within -126 ..= 128.
#[inline(always)]
pub(crate) fn scale(x: f32, n: f32) -> f32 {
    // Next to 1.5 · 2^23 the bits of an f32 count whole numbers; of NaN they are anything, and the product is NaN.
    const NEAR: f32 = 12_582_912.0;
    let n = ((n + NEAR).to_bits() as i32).wrapping_sub(NEAR.to_bits() as i32);
    // Two factors, since 2^128 alone is no f32.
    let half = n >> 1;
    x * power_of_two(half) * power_of_two(n - half)
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `x / (1 + e^-x)`.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// `0.5 x (1 + tanh u)` with `u = √(2/π) (x + 0.044715 x³)`, the tanh approximation of GELU, as `x / (1 + e^-2u)`.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    // -2 √(2/π)
    const SCALE: f32 = -1.595_769_1;
    let cubic = (0.044_715 * x * x).mul_add(x, x);
    x / (1.0 + exp(SCALE * cubic))
}

/// `x Φ(x)` with the Gauss integral itself, as BERT and XLM-R use it, not its tanh approximation.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    0.5 * x * erfc(-x * std::f32::consts::FRAC_1_SQRT_2)
}

/// The polynomial in [`erfc`], the highest power first.
pub(crate) const ERFC: [f32; 10] = [
    0.170_872_77,
    -0.822_152_23,
    1.488_515_87,
    -1.135_203_98,
    0.278_868_07,
    -0.186_288_06,
    0.096_784_18,
    0.374_091_96,
    1.000_023_68,
    -1.265_512_23,
];

/// `1 - erf(x)`, relative error below 1.2e-7 (Numerical Recipes 6.2).
#[inline(always)]
fn erfc(x: f32) -> f32 {
    let z = x.abs();
    let t = 1.0 / 0.5f32.mul_add(z, 1.0);
    let mut p = ERFC[0];
    for term in &ERFC[1..] {
        p = p.mul_add(t, *term);
    }
    let tail = t * exp(z.mul_add(-z, p));
    if x >= 0.0 { tail } else { 2.0 - tail }
}

/// The sum of `term(i)` for `i` in `0..len` in 16 interleaved lanes, then pairwise: a fixed order that vectorises.
#[inline(always)]
pub fn sum_in_lanes(len: usize, term: impl Fn(usize, f32) -> f32) -> f32 {
    let mut lanes = [0f32; 16];
    let whole = len / 16 * 16;
    for start in (0..whole).step_by(16) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum = term(start + lane, *sum);
        }
    }
    for (lane, i) in (whole..len).enumerate() {
        lanes[lane] = term(i, lanes[lane]);
    }
    for width in [8, 4, 2, 1] {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, tolerance: f64, ours: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) {
        for i in -90_000..=88_000 {
            let x = i as f32 / 1000.0;
            let (got, want) = (f64::from(ours(x)), exact(f64::from(x)));
            let error = (got - want).abs() / want.abs().max(1e-30);
            assert!(error < tolerance || (got - want).abs() < 1e-37, "{name}({x}) = {got}, want {want}");
        }
    }

    #[test]
    fn exp_is_close_everywhere() {
        check("exp", 2.5e-7, exp, |x| if x < -87.336_54 { 0.0 } else { x.exp() });
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(1000.0) > 3e38);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn exp2_is_close_where_it_is_defined() {
        for i in -126_000..=0 {
            let x = i as f32 / 1000.0;
            let (got, want) = (f64::from(exp2(x)), f64::from(x).exp2());
            assert!((got - want).abs() < 3e-6 * want, "exp2({x}) = {got}, want {want}");
        }
        assert_eq!([0.0, -126.1, -1e30, f32::NEG_INFINITY].map(exp2), [1.0, 0.0, 0.0, 0.0]);
        assert!(exp2(f32::NAN).is_nan());
    }

    #[test]
    fn silu_is_close_everywhere() {
        check("silu", 1e-6, silu, |x| x / (1.0 + (-x).exp()));
    }

    #[test]
    fn gelu_tanh_is_close_everywhere() {
        let exact =
            |x: f64| x / (1.0 + (-2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).exp());
        for i in -12_000..=12_000 {
            let x = i as f32 / 1000.0;
            let (got, want) = (f64::from(gelu_tanh(x)), exact(f64::from(x)));
            // Far below 0 the rounding of the exponent, up to 2^-17, is the error of the result.
            let error = (got - want).abs() / want.abs().max(1e-6);
            assert!(error < 2e-5, "gelu_tanh({x}) = {got}, want {want}");
        }
        // torch.nn.functional.gelu(x, approximate="tanh")
        let known = [(-3.0, -0.003_637_39), (-1.0, -0.158_808), (0.0, 0.0), (0.5, 0.345_714), (2.0, 1.954_597_7)];
        for (x, want) in known {
            assert!((gelu_tanh(x) - want).abs() < 5e-7, "gelu_tanh({x}) = {}", gelu_tanh(x));
        }
        assert!(gelu_tanh(-1e10).abs() < 1e-20 && gelu_tanh(1e10) == 1e10 && gelu_tanh(f32::NAN).is_nan());
    }

    #[test]
    fn gelu_meets_known_values() {
        // scipy.stats.norm.cdf(x) * x
        let known =
            [(-3.0, -0.004_049_694), (-1.0, -0.158_655_26), (0.0, 0.0), (0.5, 0.345_731_23), (2.0, 1.954_499_7)];
        for (x, want) in known {
            assert!((gelu(x) - want).abs() < 5e-7, "gelu({x}) = {}", gelu(x));
        }
    }
}
