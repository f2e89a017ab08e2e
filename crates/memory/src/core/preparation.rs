//! How far a corpus is prepared for a method.

/// Missing preparation of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missing {
    /// Passages about which a language model has yet to write something.
    pub calls: usize,
    /// Passages without vectors.
    pub vectors: usize,
}

/// How much of a corpus is prepared for a method, in the method's unit: pages, turns, blocks or derived texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Prepared {
    pub ready: usize,
    pub of: usize,
}

/// Progress of a step of preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The activity, such as "memorising".
    pub step: &'static str,
    /// Its unit, such as "page".
    pub unit: &'static str,
    pub done: usize,
    pub of: usize,
}
