//! The suites of questions by name: their formats and scorers.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use memory::AnswerForm;

use super::case::{Cases, Question};
use super::load::{answers, books, detective, follow_ups, locomo, longbench, longmemeval, narrative, wiki};
use super::ruler;
use crate::score::Scorer;
use crate::{Error, Result, names};

/// A data set of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QaSuite {
    LoCoMo,
    LongMemEval,
    HotpotQa,
    Ruler,
    NarrativeQa,
    InfiniteBench,
    DetectiveQa,
    LongBenchV2,
    LongReason,
    MuSiQue,
    TwoWiki,
    /// Questions of several data sets, some without an answer; see `load/answers.rs`.
    Answers,
    /// Questions that refer to the one before them; see `load/follow_ups.rs`.
    FollowUps,
}

impl QaSuite {
    const NAMES: [(QaSuite, &'static str); 13] = [
        (QaSuite::LoCoMo, "locomo"),
        (QaSuite::LongMemEval, "longmemeval"),
        (QaSuite::HotpotQa, "hotpotqa"),
        (QaSuite::Ruler, "ruler"),
        (QaSuite::NarrativeQa, "narrativeqa"),
        (QaSuite::InfiniteBench, "infinitebench"),
        (QaSuite::DetectiveQa, "detectiveqa"),
        (QaSuite::LongBenchV2, "longbench-v2"),
        (QaSuite::LongReason, "longreason-200"),
        (QaSuite::MuSiQue, "musique"),
        (QaSuite::TwoWiki, "2wiki"),
        (QaSuite::Answers, "answers"),
        (QaSuite::FollowUps, "follow-ups"),
    ];

    /// The papers' scorers for it; comparisons use the first.
    pub fn scorers(self) -> &'static [Scorer] {
        use Scorer::{
            Bleu1, EmSquad, F1Gam, F1Locomo, F1Squad, LongMemEvalJudge, McLetter, MindgraphCascade, MindgraphJudge,
            RulerGam, RulerNvidia,
        };
        match self {
            QaSuite::LoCoMo => &[F1Locomo, F1Gam, Bleu1],
            QaSuite::LongMemEval => &[LongMemEvalJudge, F1Squad],
            QaSuite::Ruler => &[RulerGam, RulerNvidia],
            QaSuite::HotpotQa
            | QaSuite::NarrativeQa
            | QaSuite::MuSiQue
            | QaSuite::TwoWiki
            | QaSuite::Answers
            | QaSuite::FollowUps => &[F1Squad, EmSquad],
            QaSuite::InfiniteBench => &[F1Squad, EmSquad, McLetter],
            QaSuite::DetectiveQa | QaSuite::LongBenchV2 => &[McLetter],
            QaSuite::LongReason => &[MindgraphCascade, MindgraphJudge],
        }
    }

    /// Whether a scorer applies to a question: letters for options, words for free answers. The answer that LoCoMo has for an
    /// adversarial question is wrong: only its own scorer expects a refusal instead. Where outcomes are counted, a question without an
    /// answer has nothing to compare with.
    pub fn applies(self, scorer: Scorer, question: &Question) -> bool {
        let has_options = !question.options.is_empty();
        match scorer {
            _ if self.has_outcomes() && question.is_unanswerable() => false,
            _ if self == QaSuite::LoCoMo && question.category_number() == ADVERSARIAL => scorer == Scorer::F1Locomo,
            Scorer::McLetter => has_options,
            _ if scorer.judge().is_some() => true,
            _ => !has_options,
        }
    }

    /// The rules for answers that can be compared with the gold answers; every method puts them into the prompt of the
    /// responder.
    pub fn answer_rules(self) -> &'static str {
        match self {
            QaSuite::LoCoMo => LOCOMO_RULES,
            QaSuite::LongMemEval => LONGMEMEVAL_RULES,
            QaSuite::Ruler => RULER_RULES,
            QaSuite::HotpotQa => HOTPOTQA_RULES,
            QaSuite::NarrativeQa => NARRATIVEQA_RULES,
            QaSuite::DetectiveQa | QaSuite::LongBenchV2 => LETTER_RULES,
            QaSuite::Answers | QaSuite::FollowUps => ANSWERS_RULES,
            _ => SHORT_RULES,
        }
    }

    /// The rules for one question: those of its task, where the suite's tasks have prompts of their own.
    pub fn rules_for(self, question: &Question) -> &'static str {
        let of_task = (self == QaSuite::Ruler).then(|| ruler::Task::named(question.category())).flatten();
        of_task.map_or_else(|| self.answer_rules(), ruler::Task::answer_rules)
    }

    /// What its gold answers consist of: spans and phrases, or letters, lists of values and sentences.
    pub fn answer_form(self) -> AnswerForm {
        match self {
            QaSuite::LongMemEval | QaSuite::Ruler | QaSuite::DetectiveQa | QaSuite::LongBenchV2 => AnswerForm::Free,
            _ => AnswerForm::Short,
        }
    }

    /// Turns on either side of a hit that MemCoT reads too (the paper: 4 on LoCoMo, 15 on LongMemEval's many short
    /// sessions).
    pub fn window(self) -> usize {
        if self == QaSuite::LongMemEval { 15 } else { 4 }
    }

    /// Whether reports count right, wrong and abstaining answers ([`super::Outcome`]). Such a suite has parts, and a
    /// limit applies to each of them.
    pub fn has_outcomes(self) -> bool {
        matches!(self, QaSuite::Answers | QaSuite::FollowUps)
    }

    /// The categories that are asked unless others are named; all of them if there are none.
    pub fn usual_categories(self) -> &'static [&'static str] {
        match self {
            QaSuite::LoCoMo => &["1", "2", "3", "4"],
            _ => &[],
        }
    }

    /// Reads the suite's questions from a file or a folder in the published format. RULER's are read from
    /// files that RULER has generated; [`ruler::generate`] generates them from materials.
    ///
    /// # Errors
    /// [`Error::Record`] with file, line and field; [`Error::NotTheData`] where the path is something else.
    pub fn load(self, path: &Path) -> Result<Cases> {
        let cases = match self {
            QaSuite::LoCoMo => locomo::load(path),
            QaSuite::LongMemEval => longmemeval::load(path),
            QaSuite::HotpotQa | QaSuite::MuSiQue | QaSuite::TwoWiki => wiki::load(path),
            QaSuite::Ruler => ruler::load(path),
            QaSuite::NarrativeQa => narrative::load(path),
            QaSuite::InfiniteBench => books::load(path),
            QaSuite::DetectiveQa => detective::load(path),
            QaSuite::LongBenchV2 => longbench::load_v2(path),
            QaSuite::LongReason => longbench::load_longreason(path),
            QaSuite::Answers => answers::load(path),
            QaSuite::FollowUps => follow_ups::load(path),
        }?;
        if cases.questions() == 0 {
            let problem = "there are no questions in it that can be asked".to_owned();
            return Err(Error::NotTheData { path: path.to_owned(), problem });
        }
        Ok(cases)
    }
}

/// The number of LoCoMo's category of adversarial questions.
const ADVERSARIAL: usize = 5;

const LOCOMO_RULES: &str = "\
- Answer with a short phrase, in the exact words of the text where possible.
- Write a date as in 15 July 2023; work it out from the date of the conversation. Write a duration as in 18 days.
- Give the phrase alone: no sentence, no explanation.";

const LONGMEMEVAL_RULES: &str = "\
- Answer in one or two short sentences.
- If it was never said, say so.
- Where things have changed, the newest state counts.";

const RULER_RULES: &str = "\
- Give what is asked for alone: the values, names or words, separated by commas.";

const HOTPOTQA_RULES: &str = "\
- Give only the answer, and no other words: a name, a date, a number or a phrase of a few words, as the documents have it.
- Put together what several documents say where none alone has the answer.
- Where the question can be answered by yes or no, answer yes or no.";

const NARRATIVEQA_RULES: &str = "\
- Answer as concisely as you can: with a single phrase, if that is possible.
- Name people and things as the story does.
- Do not explain the answer.";

const LETTER_RULES: &str = "\
- Answer with the letter of the right option in brackets alone, as in [A].";

const SHORT_RULES: &str = "\
- Give the answer string alone, as short as it can be: no sentence, no explanation.
- Where there are options, answer with the letter of the right one in brackets, as in [A].";

const ANSWERS_RULES: &str = "\
- Give the answer string alone, as short as it can be, in the words of the text: no sentence, no explanation.
- If the text does not hold the answer, write: Not in the documents.";

impl fmt::Display for QaSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(names::name(&QaSuite::NAMES, self))
    }
}

impl FromStr for QaSuite {
    type Err = String;

    fn from_str(typed: &str) -> std::result::Result<Self, String> {
        names::value(&QaSuite::NAMES, typed)
    }
}
