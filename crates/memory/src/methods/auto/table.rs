//! Which method for which model: the table of `auto`.

use calls::Agent;

use crate::core::method::Method;
use crate::core::profile::Profile;
use crate::core::session::Session;
use crate::methods::{gam::Gam, rag::Rag};

/// Models of a size.
pub(super) struct Class {
    /// The smallest of them, in parameters.
    from_parameters: u64,
    /// The longest text that they answer from as a whole; at most half of their context.
    pub whole_text_tokens: usize,
    /// The method for longer texts.
    pub beyond: &'static dyn Method,
    /// Why that method.
    pub why: &'static str,
}

/// The classes, the smallest first.
///
/// * Research is from 6 billion parameters on: the results of GAM's paper are of Qwen2.5-14B and GPT-4o-mini. With the
///   published weights that were run here (135 million) F1 over 25 questions is 69 by `rag`, 57 by `gam` and 77 by `memcot`,
///   where ten points are noise (`benches/runs/2026-12-01-xeon-amx-2c/by-method-five.txt`).
/// * 1,024 tokens for models below a billion: SmolLM2-135M reads a page or two of 512 tokens.
/// * The other lengths are not measured here. They are cautious next to the effective lengths that RULER reports for models
///   trained on long texts (Hsieh et al., arXiv:2404.06654, table 3: 4K to 64K where 32K to 200K are claimed).
static CLASSES: [Class; 4] = [
    Class { from_parameters: 0, whole_text_tokens: 1024, beyond: &Rag, why: SMALL },
    Class { from_parameters: 1_000_000_000, whole_text_tokens: 2048, beyond: &Rag, why: SMALL },
    Class { from_parameters: 2_500_000_000, whole_text_tokens: 4096, beyond: &Rag, why: SMALL },
    Class { from_parameters: 6_000_000_000, whole_text_tokens: 8192, beyond: &Gam, why: LARGE },
];

const SMALL: &str = "a model below 6 billion parameters retrieves once and answers";
const LARGE: &str = "a model from 6 billion parameters on, or of unknown size, does research";

/// The class of the model of an agent. A profile in the settings counts in place of the size, and so does the paper profile
/// for a model of unknown size.
pub(super) fn class(session: &Session<'_>, agent: Agent) -> &'static Class {
    let parameters = match (session.settings.profile, session.caller.models().parameters(agent)) {
        (Some(Profile::Small), _) => 0,
        (Some(Profile::Paper), _) | (None, None) => u64::MAX,
        (None, Some(parameters)) => parameters,
    };
    of(parameters)
}

fn of(parameters: u64) -> &'static Class {
    CLASSES.iter().rev().find(|class| class.from_parameters <= parameters).unwrap_or(&CLASSES[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::auto::Auto;

    #[test]
    fn larger_models_read_more_and_do_research() {
        let check = |parameters, method: &str, tokens| {
            let class = of(parameters);
            assert_eq!((class.beyond.name(), class.whole_text_tokens), (method, tokens), "{parameters}");
        };
        check(135_000_000, "rag", 1024);
        check(1_700_000_000, "rag", 2048);
        check(3_100_000_000, "rag", 4096);
        check(7_600_000_000, "gam", 8192);
        check(u64::MAX, "gam", 8192);
        assert!(CLASSES.is_sorted_by_key(|class| class.from_parameters));
        assert!(CLASSES.iter().all(|class| Auto.may_choose().contains(&class.beyond)));
    }
}
