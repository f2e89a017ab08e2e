//! Dividing a budget of tokens in proportion (appendix B.4: 8:2:2:1 of 6,000).

/// Whole shares of `total` in proportion to `weights`, which sum to `total`: what is left after rounding down goes to
/// the largest remainders, to the first of equal ones. All are 0 if all weights are.
pub(super) fn shares(total: usize, weights: &[usize]) -> Vec<usize> {
    let sum: usize = weights.iter().sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let mut shares: Vec<usize> = weights.iter().map(|weight| total * weight / sum).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(total * weights[*place] % sum));
    let left = total - shares.iter().sum::<usize>();
    for place in order.into_iter().take(left) {
        shares[place] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn shares_add_up_by_largest_remainder() {
        let check = |total, weights: &[usize], want: &[usize]| {
            assert_eq!(shares(total, weights), want, "{total} by {weights:?}");
        };
        check(6000, &[8, 2, 2, 1], &[3692, 923, 923, 462]);
        check(10, &[1, 1, 1], &[4, 3, 3]);
        check(6000, &[0, 2, 0, 1], &[0, 4000, 0, 2000]);
        check(3, &[8, 2, 2, 1], &[2, 1, 0, 0]);
        check(7, &[0, 0], &[0, 0]);
        check(0, &[8, 2], &[0, 0]);
    }
}
