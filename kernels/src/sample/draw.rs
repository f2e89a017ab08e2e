//! What is drawn from a row, and how.

/// How the next token is drawn from one row.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// Bit `id % 32` of word `id / 32` says whether a token is allowed, no token beyond its end; all are if there is no mask.
    pub mask: Option<&'a [u32]>,
    /// Tokens whose logits change, each at most once.
    pub adjustments: &'a [Adjustment],
    pub penalties: Penalties,
    /// 0 is greedy.
    pub temperature: f32,
    /// 0 keeps all.
    pub top_k: usize,
    /// 1 keeps all.
    pub top_p: f32,
    /// 0 keeps all.
    pub min_p: f32,
    pub seed: u64,
    /// Which token of the reply this is.
    pub position: u64,
}

impl Draw<'_> {
    /// The token of the largest logit.
    pub const GREEDY: Draw<'static> = Draw {
        mask: None,
        adjustments: &[],
        penalties: Penalties::NONE,
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        seed: 0,
        position: 0,
    };
}

/// What changes the logit of one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    pub token: u32,
    /// Occurrences in the reply so far.
    pub count: u32,
    /// True if it occurs in the prompt or the reply.
    pub seen: bool,
    /// Added to the logit.
    pub bias: f32,
}

/// How much less likely tokens become that occurred already.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalties {
    /// For each occurrence in the reply; 0 is none.
    pub frequency: f32,
    /// Once for a token of the reply; 0 is none.
    pub presence: f32,
    /// Factor for tokens of prompt and reply; 1 is none.
    pub repetition: f32,
}

impl Penalties {
    /// No penalty.
    pub const NONE: Penalties = Penalties { frequency: 0.0, presence: 0.0, repetition: 1.0 };

    /// The adjusted logit.
    pub(super) fn adjusted(self, logit: f32, adjustment: Adjustment) -> f32 {
        let Adjustment { count, seen, bias, .. } = adjustment;
        let biased = logit + bias;
        let repeated = match (seen, biased > 0.0) {
            (true, true) => biased / self.repetition,
            (true, false) => biased * self.repetition,
            (false, _) => biased,
        };
        if count == 0 { repeated } else { repeated - self.frequency.mul_add(count as f32, self.presence) }
    }
}

/// The outcome of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    Token(u32),
    /// The mask allows no token whose logit is above -inf.
    Nothing,
    /// A logit is NaN or +inf.
    NotFinite,
}
