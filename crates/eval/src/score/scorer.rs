//! The scorers of answers by name.

use std::fmt;
use std::str::FromStr;

use super::{
    Judge, bleu1, cascade, em_squad, f1_gam, f1_hotpotqa, f1_locomo, f1_squad, mc_letter, ruler_all, ruler_gam,
    ruler_part, says_yes,
};
use crate::names;
use crate::qa::Question;

/// A way to score an answer, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scorer {
    F1Locomo,
    F1Gam,
    F1Squad,
    F1HotpotQa,
    EmSquad,
    Bleu1,
    RulerGam,
    RulerNvidia,
    McLetter,
    MindgraphCascade,
    MindgraphJudge,
    LongMemEvalJudge,
    LocomoJudge,
}

/// A score, and the rule or judge that decided it, if there are several.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Mark {
    pub value: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Scorer {
    const NAMES: [(Scorer, &'static str); 13] = [
        (Scorer::F1Locomo, "f1:locomo"),
        (Scorer::F1Gam, "f1:gam"),
        (Scorer::F1Squad, "f1:squad"),
        (Scorer::F1HotpotQa, "f1:hotpotqa"),
        (Scorer::EmSquad, "em:squad"),
        (Scorer::Bleu1, "bleu1"),
        (Scorer::RulerGam, "ruler:gam"),
        (Scorer::RulerNvidia, "ruler:nvidia"),
        (Scorer::McLetter, "mc:letter"),
        (Scorer::MindgraphCascade, "mindgraph:cascade"),
        (Scorer::MindgraphJudge, "mindgraph:judge"),
        (Scorer::LongMemEvalJudge, "longmemeval:judge"),
        (Scorer::LocomoJudge, "locomo:judge"),
    ];

    /// Incremented by every change after which the same answer may score differently.
    pub fn version(self) -> u32 {
        match self {
            Scorer::MindgraphCascade | Scorer::MindgraphJudge => 2,
            _ => 1,
        }
    }

    /// Its judge, if it has one.
    pub fn judge(self) -> Option<Judge> {
        match self {
            Scorer::MindgraphCascade | Scorer::MindgraphJudge => Some(Judge::MindGraph),
            Scorer::LongMemEvalJudge => Some(Judge::LongMemEval),
            Scorer::LocomoJudge => Some(Judge::LoCoMo),
            _ => None,
        }
    }

    /// Whether its judge is needed for this answer.
    pub fn asks(self, question: &Question, answer: &str) -> bool {
        match self {
            _ if !question.options.is_empty() => false,
            Scorer::MindgraphCascade => cascade(answer, &question.golds).is_none(),
            _ => self.judge().is_some(),
        }
    }

    /// The score of an answer. `verdict` is the judge's reply; without one, an answer that needs it is wrong.
    ///
    /// A question with options is scored by its letter, whatever the name of a judge or cascade.
    pub fn score(self, question: &Question, answer: &str, verdict: Option<&str>) -> Mark {
        let Question { golds, options, .. } = question;
        let gold = golds.first().map_or("", String::as_str);
        let mark = |value| Mark { value, by: None };
        let judged = || Mark {
            value: f64::from(verdict.is_some_and(says_yes)),
            by: Some(if verdict.is_some() { "judge" } else { "nobody" }.to_owned()),
        };
        match self {
            Scorer::McLetter => mark(mc_letter(answer, gold, options)),
            _ if self.judge().is_some() && !options.is_empty() => {
                Mark { value: mc_letter(answer, gold, options), by: Some("letter".into()) }
            }
            Scorer::F1Locomo => mark(f1_locomo(answer, gold, question.category_number())),
            Scorer::F1Gam => mark(f1_gam(answer, golds)),
            Scorer::F1Squad => mark(f1_squad(answer, golds)),
            Scorer::F1HotpotQa => mark(f1_hotpotqa(answer, golds)),
            Scorer::EmSquad => mark(em_squad(answer, golds)),
            Scorer::Bleu1 => mark(bleu1(answer, golds)),
            Scorer::RulerGam => mark(ruler_gam(answer, golds)),
            Scorer::RulerNvidia if question.category().starts_with("qa") => mark(ruler_part(answer, golds)),
            Scorer::RulerNvidia => mark(ruler_all(answer, golds)),
            Scorer::MindgraphCascade => match cascade(answer, golds) {
                Some(rung) => Mark { value: 1.0, by: serde_plain(rung) },
                None => judged(),
            },
            Scorer::MindgraphJudge | Scorer::LongMemEvalJudge | Scorer::LocomoJudge => judged(),
        }
    }
}

fn serde_plain(rung: super::Rung) -> Option<String> {
    serde_json::to_value(rung).ok()?.as_str().map(str::to_owned)
}

impl fmt::Display for Scorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(names::name(&Scorer::NAMES, self))
    }
}

impl FromStr for Scorer {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        names::value(&Scorer::NAMES, typed)
    }
}
