//! Judges: a local model is asked whether an answer is right. Its verdicts cannot be compared with those of the papers'
//! judges, so reports call it local, name it, and print the digest of these prompts.
//!
//! The rules are those of LongMemEval (Wu et al. 2025, five kinds of questions), of the judge that is common on LoCoMo,
//! and of MindGraph (appendix D.4), in our own words. The reply is a choice of `yes` and `no`; the original reads "yes"
//! anywhere in ten tokens.

use calls::{Agent, Call, OutputFormat, Priority, Prompt, Stability};
use sha2::{Digest, Sha256};

use crate::qa::Question;

/// The rules that a judge follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    LongMemEval,
    LoCoMo,
    MindGraph,
}

const LONGMEMEVAL: [(&str, &str); 5] = [
    (
        "single-session-preference",
        "You are given a question, a description of what a personal answer would take up, and an answer. Say yes if the \
         answer recalls and uses what it knows about the person correctly. It need not take up every point.",
    ),
    (
        "temporal-reasoning",
        "You are given a question, the right answer, and another answer. Say yes if the other answer holds the right \
         one, or means the same, or has all the steps that lead to it. If it holds only part of what is needed, say no. \
         Where days, weeks or months are counted, do not punish an answer that is off by one.",
    ),
    (
        "knowledge-update",
        "You are given a question, the right answer, and another answer. Say yes if the other answer holds the right \
         one. It may tell what was true before as well, as long as the newest state is the one asked for.",
    ),
    (
        "abstention",
        "You are given a question that cannot be answered, the reason for that, and an answer. Say yes if the answer \
         sees that the question cannot be answered: it says that something was not told, or that only other things were.",
    ),
    (
        "",
        "You are given a question, the right answer, and another answer. Say yes if the other answer holds the right one, \
         or means the same, or has all the steps that lead to it. If it holds only part of what is needed, say no.",
    ),
];

const LOCOMO: &str = "You are given a question about a conversation, the right answer, and another answer, which may be \
                      much longer. Be generous: say yes if the other answer touches on the same thing as the right one, and for dates \
                      if it means the same day or span, in whatever form. Otherwise say no.";

const MINDGRAPH: &str = "You are given a question, the right answer, and another answer. Be strict but fair: say yes if the \
                         other answer means in essence the same as the right one, in other words or at greater length too. \
                         Where the right answer is a list, all its important items must be there: a list without one of them, or \
                         of largely other items, is no. Otherwise say no.";

impl Judge {
    /// The question whether `answer` is right.
    pub fn call(self, question: &Question, answer: &str) -> Call {
        let heading = if self.is_rubric(question) { "DESCRIPTION" } else { "RIGHT ANSWER" };
        let golds = question.golds.join(" / ");
        let shown = format!(
            "QUESTION:\n{}\n\n{heading}:\n{golds}\n\nANSWER:\n{answer}\n\nIs ANSWER right? Say yes or no.",
            question.text
        );
        let prompt = Prompt::new().system(self.rules(question)).user(Stability::Volatile, shown);
        let call = Call::new(Agent::Judge, self.step(), prompt, MAX_OUTPUT_TOKENS);
        Call { output_format: OutputFormat::Choice(vec!["yes".into(), "no".into()]), priority: Priority::Bulk, ..call }
    }

    /// The step of its calls in the transcript.
    pub fn step(self) -> &'static str {
        match self {
            Judge::LongMemEval => "judge.longmemeval",
            Judge::LoCoMo => "judge.locomo",
            Judge::MindGraph => "judge.mindgraph",
        }
    }

    /// SHA-256 of all its prompts.
    pub fn prompts_sha256(self) -> String {
        let mut digest = Sha256::new();
        match self {
            Judge::LongMemEval => LONGMEMEVAL.iter().for_each(|(_, rules)| digest.update(rules)),
            Judge::LoCoMo => digest.update(LOCOMO),
            Judge::MindGraph => digest.update(MINDGRAPH),
        }
        format!("{:x}", digest.finalize())
    }

    fn rules(self, question: &Question) -> &'static str {
        let kind = if question.is_unanswerable() { "abstention" } else { question.category() };
        match self {
            Judge::LongMemEval => {
                let known = LONGMEMEVAL.iter().find(|(name, _)| *name == kind || name.is_empty());
                known.map_or("", |(_, rules)| rules)
            }
            Judge::LoCoMo => LOCOMO,
            Judge::MindGraph => MINDGRAPH,
        }
    }

    fn is_rubric(self, question: &Question) -> bool {
        self == Judge::LongMemEval && question.category() == "single-session-preference"
    }
}

/// LongMemEval's judge may write ten tokens.
const MAX_OUTPUT_TOKENS: usize = 10;

/// Whether a judge's reply says that the answer is right.
pub fn says_yes(reply: &str) -> bool {
    reply.to_lowercase().contains("yes")
}
