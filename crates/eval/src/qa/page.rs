//! Renders a report as Markdown.

use std::fmt;

use super::folder::ScorerDigest;
use super::load::follow_ups::WAYS;
use super::margin::FEWEST;
use super::papers::Table;
use super::report::{ALL, DEPTHS, NDCG_DEPTH, RECALL_ALL, RECALL_ANY, RECALL_OF_ALL, Report, SESSION};
use super::rows::{Answered, Cost, OutcomeRow, Row, StepRow};
use crate::Endings;

impl fmt::Display for Report {
    /// Writes it as Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Questions: {}\n\n{} questions. Scores in percent.", self.suite, self.questions)?;
        if self.rows.iter().any(|row| !row.margins.is_empty()) {
            writeln!(f, "± is half the width of the 95 % confidence interval of a mean: 1.96 standard errors")?;
            writeln!(f, "(normal approximation; questions count as independent). Means over fewer than {FEWEST}")?;
            writeln!(f, "questions, or of equal scores, have none. A difference may be significant although")?;
            writeln!(f, "intervals overlap, since the questions are the same: see `memlocal-bench compare`.")?;
        }
        self.write_scores(f)?;
        self.write_follow_ups(f)?;
        self.write_outcomes(f)?;
        self.write_evidence(f)?;
        self.write_costs(f)?;
        self.write_endings(f)?;
        self.write_answers(f)?;
        self.published.iter().try_for_each(|table| self.write_published(table, f))?;
        writeln!(f, "\n## How it was scored\n")?;
        for ScorerDigest { name, version, judge_prompts_sha256 } in &self.scorers {
            match judge_prompts_sha256 {
                Some(sha256) => {
                    let judge = self.judge.as_deref().unwrap_or("the run's own model");
                    let prompts = &sha256[..12];
                    writeln!(f, "- {name}, version {version}, with a local judge ({judge}, prompts {prompts})")?;
                }
                None => writeln!(f, "- {name}, version {version}")?,
            }
        }
        writeln!(f, "\nInstructions in the prompts: {}.", self.prompts_sha256.get(..12).unwrap_or("none"))?;
        if let Some(bytes) = self.peak_memory_bytes {
            writeln!(f, "Peak memory: {} GB.", gigabytes(bytes))?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "\nChanged or left out of the data:\n")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "- {note}"))
    }
}

impl Report {
    fn write_scores(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.scorers.iter().map(|scorer| scorer.name.as_str()).collect();
        write!(f, "\n| model | method | group | questions | failed |")?;
        names.iter().try_for_each(|name| write!(f, " {name} |"))?;
        writeln!(f, "\n|---|---|---|---:|---:|{}", "---:|".repeat(names.len()))?;
        for Row { model, method, group, questions, failed, scores, margins, .. } in &self.rows {
            write!(f, "| {model} | {method} | {group} | {questions} | {failed} |")?;
            let score = |name: &str| with_margin(scores.get(name).copied(), margins.get(name).copied());
            names.iter().try_for_each(|name| write!(f, " {} |", score(name)))?;
            writeln!(f)?;
        }
        Ok(())
    }

    /// Scores of follow-ups, beside those without their history and of the questions in full.
    fn write_follow_ups(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.rows.iter().any(|row| row.group == WAYS[0]) {
            return Ok(());
        }
        writeln!(f, "\n## Follow-ups\n\n| model | method | score | {} |", WAYS.join(" | "))?;
        writeln!(f, "|---|---|---|{}", "---:|".repeat(WAYS.len()))?;
        for column in self.columns() {
            for ScorerDigest { name, .. } in &self.scorers {
                write!(f, "| {} | {} | {name} |", column.0, column.1)?;
                let score = |way: &str| with_margin(self.number(&column, way, name), self.margin(&column, way, name));
                WAYS.iter().try_for_each(|way| write!(f, " {} |", score(way)))?;
                writeln!(f)?;
            }
        }
        Ok(())
    }

    fn write_outcomes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.outcomes.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n## Right, wrong, abstained\n\nRight: the words of a gold answer occur in the answer, or F1 is at least 0.5."
        )?;
        writeln!(f, "Correct: right, or abstained where the documents do not hold the answer. Supported to quoted:")?;
        writeln!(f, "statements by verdict; of wrong answers: supported statements of these. AUROC: how well the")?;
        writeln!(f, "confidence separates questions with and without an answer, and right and wrong answers (50 is")?;
        writeln!(f, "chance). Brier: mean squared distance of the confidence from 1 with an answer, 0 without.\n")?;
        write!(f, "| model | method | group | questions | right | wrong | abstained | correct, % |")?;
        writeln!(
            f,
            " supported | of wrong answers | contradicted | unsupported | quoted | AUROC answerable, % | AUROC right, % | Brier answerable |"
        )?;
        writeln!(f, "|---|---|---|{}", "---:|".repeat(13))?;
        for row in &self.outcomes {
            let OutcomeRow { model, method, group, questions, right, wrong, abstained, correct, .. } = row;
            write!(f, "| {model} | {method} | {group} | {questions} | {right} | {wrong} | {abstained} |")?;
            write!(f, " {} |", percent(Some(*correct as f64 / (*questions).max(1) as f64)))?;
            write!(f, " {} | {} | {} |", row.supported, row.supported_wrong, row.contradicted)?;
            write!(f, " {} | {} |", row.unsupported, row.quoted)?;
            write!(f, " {} | {} |", percent(row.auroc_answerable), percent(row.auroc_right))?;
            writeln!(f, " {} |", row.brier_answerable.map_or_else(String::new, |brier| format!("{brier:.3}")))?;
        }
        self.write_reliability(f)
    }

    fn write_reliability(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = self.outcomes.iter().filter(|row| row.group == ALL && !row.reliability.is_empty()).peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        writeln!(
            f,
            "\n## Reliability of the confidence\n\nAll questions in bins of equal size, by rising confidence.\n"
        )?;
        writeln!(f, "| model | method | questions | confidence, % | answerable, % |\n|---|---|---:|---:|---:|")?;
        for row in rows {
            for bin in &row.reliability {
                let (stated, observed) = (percent(Some(bin.stated)), percent(Some(bin.observed)));
                writeln!(f, "| {} | {} | {} | {stated} | {observed} |", row.model, row.method, bin.cases)?;
            }
        }
        Ok(())
    }

    fn write_evidence(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.group == ALL && !row.evidence.is_empty()).collect();
        let recalls = DEPTHS.iter().map(|k| format!("recall@{k}"));
        let rest = [
            RECALL_OF_ALL.to_owned(),
            format!("{RECALL_ANY}@{NDCG_DEPTH}"),
            format!("{RECALL_ALL}@{NDCG_DEPTH}"),
            format!("ndcg@{NDCG_DEPTH}"),
        ];
        let names: Vec<String> = recalls.chain(rest).collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n## Retrieved evidence\n\nIn percent, among the first k passages that searches and MemCoT's zoom-out retrieved, and among the first k sessions \
             of these, each counted once.\n"
        )?;
        write!(f, "| model | method | of |")?;
        names.iter().try_for_each(|name| write!(f, " {name} |"))?;
        writeln!(f, "\n|---|---|---|{}", "---:|".repeat(names.len()))?;
        for (row, (of, before)) in
            rows.iter().flat_map(|row| [("passages", ""), ("sessions", SESSION)].map(|of| (row, of)))
        {
            let number = |name: &String| row.evidence.get(&format!("{before}{name}")).copied();
            if names.iter().any(|name| number(name).is_some()) {
                write!(f, "| {} | {} | {of} |", row.model, row.method)?;
                names.iter().try_for_each(|name| write!(f, " {} |", percent(number(name))))?;
                writeln!(f)?;
            }
        }
        Ok(())
    }

    fn write_costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## What it took\n\nPreparation in all, the rest by question; seconds")?;
        writeln!(
            f,
            "by the clock where one question is asked at a time, else those of its calls. Given up: replies or steps that the method\ncontinued without. Cached: prompt tokens from the prefix cache. Written: tokens of replies. Compaction: the prompt of the"
        )?;
        writeln!(f, "responder's first call, in percent of the tokens of the text.\n")?;
        write!(f, "| model | method | prepare: calls | prompt tokens | cached | written | given up | s |")?;
        write!(f, " question: calls | prompt tokens | cached | written | given up | s |")?;
        writeln!(f, " compaction, % | peak memory, GB |\n|---|---|{}", "---:|".repeat(14))?;
        for cost in &self.costs {
            let Cost { model, method, questions, prepare, answer, .. } = cost;
            let each = |total: usize| total as f64 / (*questions).max(1) as f64;
            write!(f, "| {model} | {method} | {} | {} |", prepare.calls, prepare.prompt_tokens)?;
            write!(f, " {} | {} |", prepare.cached_tokens, prepare.output_tokens)?;
            let seconds = cost.prepare_seconds.unwrap_or(prepare.seconds);
            write!(f, " {} | {seconds:.1} |", cost.prepare_fallbacks)?;
            write!(f, " {:.1} | {:.0} |", each(answer.calls), each(answer.prompt_tokens))?;
            write!(f, " {:.0} | {:.0} |", each(answer.cached_tokens), each(answer.output_tokens))?;
            let seconds = cost.answer_seconds.unwrap_or(answer.seconds) / (*questions).max(1) as f64;
            write!(f, " {:.1} | {seconds:.1} |", each(cost.answer_fallbacks))?;
            let memory = cost.peak_memory_bytes.map_or_else(|| "-".to_owned(), gigabytes);
            writeln!(f, " {} | {memory} |", percent(cost.compaction))?;
        }
        Ok(())
    }

    fn write_endings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.endings.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n## How replies ended\n\nReplies that were cut off by their token limit, by the repetition guard, or by"
        )?;
        writeln!(f, "closing their format before the model ended it.\n")?;
        writeln!(f, "| model | method | step | replies | at the limit | repetition | closed early | cut, % |")?;
        writeln!(f, "|---|---|---|{}", "---:|".repeat(5))?;
        for StepRow { model, method, step, endings } in &self.endings {
            let Endings { calls, length, repetition, closed_early } = endings;
            write!(f, "| {model} | {method} | {step} | {calls} | {length} | {repetition} | {closed_early} |")?;
            writeln!(f, " {} |", percent(Some(endings.cut_rate())))?;
        }
        Ok(())
    }

    /// The answers, if they are few enough to print.
    fn write_answers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.answers.is_empty() {
            writeln!(f, "\n## The answers")?;
        }
        let mut asked = None;
        for Answered { case, question, golds, model, method, answer, citations, failed } in &self.answers {
            if asked != Some((case, question)) {
                asked = Some((case, question));
                writeln!(f, "\n{case}: {} ({})\n", one_line(question), one_line(&golds.join(" / ")))?;
            }
            let text = failed.as_ref().map_or_else(|| one_line(answer), |reason| format!("failed: {reason}"));
            writeln!(f, "- {model}, {method}: {text}")?;
            for cited in citations {
                writeln!(f, "  - {}: {}", one_line(&cited.to_string()), one_line(&cited.citation.quote))?;
            }
        }
        Ok(())
    }

    /// A paper's table with our rows first and the set-up of each row.
    fn write_published(&self, table: &Table, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { paper, number, setup, columns, rows, .. } = table;
        writeln!(f, "\n## Beside {paper}, table {number}\n")?;
        writeln!(
            f,
            "| by | model | method | {} | what differs |",
            columns.iter().map(|name| name.replace(" | ", ", ")).collect::<Vec<_>>().join(" | ")
        )?;
        writeln!(f, "|---|---|---|{}---|", "---:|".repeat(columns.len()))?;
        for column in self.columns() {
            write!(f, "| here | {} | {} |", column.0, column.1)?;
            for name in columns {
                let (scorer, group) = name.split_once(" | ").unwrap_or((name, ALL));
                let (score, margin) = (self.number(&column, group, scorer), self.margin(&column, group, scorer));
                write!(f, " {} |", with_margin(score, margin))?;
            }
            writeln!(f, " {} questions; {} |", self.questions, self.setup)?;
        }
        for row in rows {
            write!(f, "| {paper} | {} | {} |", row.model, row.method)?;
            row.values.iter().try_for_each(|value| write!(f, " {value:.2} |"))?;
            writeln!(f, " {setup} |")?;
        }
        Ok(())
    }
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.2}", value * 100.0))
}

/// A mean, and half the width of its confidence interval if it has one.
fn with_margin(mean: Option<f64>, margin: Option<f64>) -> String {
    let margin = margin.map_or_else(String::new, |margin| format!(" ± {:.2}", margin * 100.0));
    percent(mean) + &margin
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e9)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
