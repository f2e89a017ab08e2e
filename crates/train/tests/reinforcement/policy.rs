//! The loss of the policy: its gradients, and tokens that have no part in it.

use candle_core::{Device, Tensor};
use portable::Lora;
use train::batch::Pass;
use train::examples::Example;
use train::gradient::{score, zeros};
use train::lessons::{Learned, Learner};
use train::policy::{Policy, SampledBy, Update};

use super::tiny::{differing, fresh, stepped, tiny};

#[test]
fn replies_that_were_better_become_more_probable() {
    let tiny = tiny();
    let prompt = &tiny.tasks("pizza").tasks[0].tokens;
    let example = |reply: [u32; 2], weight| {
        let tokens = [&prompt[..], &reply].concat();
        Example { answer: prompt.len()..tokens.len(), tokens, forced: Vec::new(), weight }
    };
    let group = [example([65, 66], 1.0), example([67, 68], -1.0)];
    let lora = fresh(&tiny);
    let log_probs = |lora: &Lora| {
        let pass = Pass::new(&[&group[..]]);
        let scored = score(&tiny.network, Some(lora), &pass).unwrap();
        [0, 2].map(|from| scored[from..from + 2].iter().map(|token| token.log_prob).sum::<f32>())
    };
    let before = log_probs(&lora);
    for (sampled_by, kl) in [(SampledBy::Trained, 0.0), (SampledBy::Reference, 0.1)] {
        let mut sums = zeros(&lora);
        let update = Update {
            policy: Policy { clip: 0.2, kl },
            learner: Learner { network: &tiny.network, lora: &lora, kept: 9 },
            reference: Some(&lora),
            sampled_by,
            pass_tokens: 256,
            samples: 2,
        };
        let learned = update.learn(&[&group[..]], 0.5, &mut sums).unwrap();
        assert!((learned.loss + (before[0] + before[1]) / 4.0).abs() < 1e-4);
        assert_eq!(learned.rewarded, Some((0.5, 0.0)), "the reference is the adapter itself");
        let after = log_probs(&stepped(&tiny, &sums));
        assert!(after[0] > before[0] && after[1] < before[1], "{before:?} became {after:?}");
    }
}

#[test]
fn forced_tokens_have_no_part_in_gradients_loss_and_divergence() {
    let tiny = tiny();
    let prompt = &tiny.tasks("pizza").tasks[0].tokens;
    let lora = fresh(&tiny);
    // The adapter has an effect, so that it differs from the reference, which is the base.
    for variable in lora.variables() {
        let values: Vec<f32> = (0..variable.elem_count()).map(|at| 0.05 * ((at % 7) as f32 - 3.0)).collect();
        variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    let learn = |forced: &[usize]| {
        let tokens = [&prompt[..], &[65, 66, 67]].concat();
        let forced = forced.iter().map(|at| prompt.len() + at).collect();
        let example = Example { answer: prompt.len()..tokens.len(), tokens, forced, weight: 0.7 };
        let update = Update {
            // No ratio is clipped.
            policy: Policy { clip: 100.0, kl: 0.1 },
            learner: Learner { network: &tiny.network, lora: &lora, kept: 9 },
            reference: None,
            sampled_by: SampledBy::Reference,
            pass_tokens: 256,
            samples: 1,
        };
        let mut sums = zeros(&lora);
        (update.learn(&[&[example][..]], 0.5, &mut sums).unwrap(), sums)
    };
    let none: &[usize] = &[];
    let [(all, whole), (outer, most), (inner, rest)] = [none, &[1], &[0, 2]].map(learn);
    let means = |learned: Learned| [learned.loss, learned.rewarded.unwrap().1];
    for ((all, outer), inner) in means(all).into_iter().zip(means(outer)).zip(means(inner)) {
        let difference = (3.0 * all - 2.0 * outer - inner).abs();
        assert!(inner != 0.0 && difference < 1e-3 * (1.0 + all.abs()), "{all} of {outer} and {inner}");
    }
    let together: Vec<Vec<f32>> =
        most.iter().zip(&rest).map(|(most, rest)| most.iter().zip(rest).map(|(a, b)| a + b).collect()).collect();
    assert_eq!(differing(&whole, &together), 0);
    assert!(differing(&whole, &most) > 0);
}
