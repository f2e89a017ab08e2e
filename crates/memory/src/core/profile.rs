//! Which forms of prompts a model can follow.

use crate::core::named::named;

/// A set of prompts and formats, by the size of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Below 3B parameters: no thoughts, no demonstrations in ComoRAG's prompts (which are copied), no paths of documents and no
    /// judge of statements; the answer is a span of the documents. Other prompts and fields are those of the papers.
    Small,
    /// The instructions of the papers in full.
    Paper,
}

named!(Profile: Small = "small", Paper = "paper");

/// Models with fewer parameters have the small profile.
const SMALL_BELOW: u64 = 2_500_000_000;

impl Profile {
    /// The profile of a model; one of unknown size is expected to follow the papers' instructions.
    pub fn of(parameters: Option<u64>) -> Profile {
        if parameters.is_some_and(|parameters| parameters < SMALL_BELOW) { Profile::Small } else { Profile::Paper }
    }
}

#[cfg(test)]
mod tests {
    use super::Profile;

    #[test]
    fn models_below_three_billion_parameters_are_small() {
        assert_eq!(Profile::of(Some(134_000_000)), Profile::Small);
        assert_eq!(Profile::of(Some(1_540_000_000)), Profile::Small);
        assert_eq!(Profile::of(Some(3_090_000_000)), Profile::Paper);
        assert_eq!(Profile::of(None), Profile::Paper);
    }
}
