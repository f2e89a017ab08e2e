//! Fits and measures `memory::grounding`. Prints what goes into `grounding/weights.rs`; writes nothing into the repository.
//!
//! ```text
//! grounding recall XQUAD.json                  gold answers among the candidates of the gold paragraph
//! grounding fit TRAIN.jsonl...                 weights of the surface score
//! grounding surface SET                        F1 of the surface score alone
//! grounding fit-abstention TRAIN.jsonl SET     weights of the probability that there is an answer
//! grounding abstention SET                     AUROC, Brier score and reliability of that probability
//! grounding fit-reading RESULTS.jsonl          weights of the probability that a reading is right, from results of `bench qa`
//! grounding fit-model SCORED.jsonl             weights of a model's likelihood, from `dump` lines with `lm` and `prior` scores
//! grounding verdicts XQUAD.json                verdicts on true and on changed statements
//! grounding answers SET                        verdicts on gold answers and on other spans
//! grounding short-answers SET                 verdicts on chosen short answers beside their F1, as JSON lines
//! grounding dump SET                           questions, evidence and candidates as JSON lines, for a language model's scores
//! ```
//!
//! SET is `xquad:FILE` (calibration half), `xquad-report:FILE`, `hotpot:FILE` or `train:FILE`.

mod abstention;
mod answers;
mod data;
mod fit;
mod logistic;
mod mix;
mod reading;
mod squad;
mod verdicts;

use std::process::ExitCode;

use memory::grounding;

use data::Item;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["recall", file] => recall(file),
        ["fit", ref files @ ..] if !files.is_empty() => fit::surface(files),
        ["fit-abstention", file, set] => abstention::fit(file, set),
        ["abstention", set] => abstention::measure(set),
        ["fit-reading", file] => reading::fit(file),
        ["fit-model", file] => mix::fit(file),
        ["verdicts", file] => verdicts::measure(file),
        ["answers", set] => answers::measure(set),
        ["surface", set] => surface(set),
        ["short-answers", set] => short_answers(set),
        ["dump", set] => dump(set),
        _ => Err("the first lines of this program's source list its commands".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<(), Box<dyn std::error::Error>>;

fn recall(file: &str) -> Done {
    for (half, name) in [(data::Half::Calibration, "calibration"), (data::Half::Report, "report")] {
        let items = data::xquad(file, half)?;
        let (mut all, mut capped, mut count) = (0_usize, 0_usize, 0);
        for item in &items {
            let found = grounding::candidates(&item.question, &[&item.evidence[item.gold]], usize::MAX);
            count += found.len();
            if half == data::Half::Calibration && !found.iter().any(|c| squad::is_exact(&c.text, &item.answers)) {
                eprintln!("missed: {:?}", item.answers[0]);
            }
            let place = found.iter().position(|candidate| squad::is_exact(&candidate.text, &item.answers));
            all += usize::from(place.is_some());
            capped += usize::from(place.is_some_and(|place| place < grounding::MOST));
        }
        let n = items.len() as f64;
        println!(
            "{name}: {} questions, recall of all runs {:.3}, of the best {} {:.3}, runs a question {:.0}",
            items.len(),
            all as f64 / n,
            grounding::MOST,
            capped as f64 / n,
            count as f64 / n
        );
    }
    Ok(())
}

fn surface(set: &str) -> Done {
    let items = data::set(set)?;
    for (name, gold_only) in [("gold paragraph", true), ("article", false)] {
        let (mut f1, mut exact, mut oracle) = (0.0, 0.0, 0.0);
        for item in &items {
            let draft = grounding::Draft::new(&item.question, &item.texts(gold_only));
            let found = draft.candidates();
            let score = |text: &str| squad::f1(text, &item.answers);
            f1 += found.first().map_or(0.0, |best| score(&best.text));
            exact += found.first().map_or(0.0, |best| f64::from(u8::from(squad::is_exact(&best.text, &item.answers))));
            oracle += found.iter().map(|candidate| score(&candidate.text)).fold(0.0, f64::max);
        }
        let percent = 100.0 / items.len() as f64;
        println!(
            "{name}: {} questions, F1 {:.1}, exact {:.1}, best candidate's F1 {:.1}",
            items.len(),
            f1 * percent,
            exact * percent,
            oracle * percent
        );
    }
    Ok(())
}

fn short_answers(set: &str) -> Done {
    for item in data::set(set)? {
        let texts = item.texts(false);
        let draft = grounding::Draft::new(&item.question, &texts);
        let chosen = draft.choose(None);
        let Some(best) = chosen.answers.first() else { continue };
        let checked = grounding::check(&item.question, &best.text, &texts, grounding::Checks::default());
        let candidate = draft.candidates().iter().find(|candidate| candidate.text == best.text);
        let line = serde_json::json!({
            "question": item.question,
            "kind": grounding::kind(&item.question),
            "answers": item.answers,
            "chosen": best,
            "answerable": chosen.answerable,
            "features": candidate.map(|candidate| &candidate.features),
            "shape": candidate.map(|candidate| candidate.shape),
            "checked": checked,
            "f1": squad::f1(&best.text, &item.answers),
        });
        println!("{line}");
    }
    Ok(())
}

fn dump(set: &str) -> Done {
    for item in data::set(set)? {
        println!("{}", line(&item));
    }
    Ok(())
}

fn line(item: &Item) -> serde_json::Value {
    let texts = item.texts(false);
    let found = grounding::candidates(&item.question, &texts, grounding::MOST);
    let sentences: Vec<&str> = grounding::best_sentences(&item.question, &texts, 5)
        .into_iter()
        .map(|place| &texts[place.text][place.start..place.end])
        .collect();
    let candidates: Vec<serde_json::Value> = found
        .iter()
        .map(|candidate| {
            serde_json::json!({
                "text": candidate.text,
                "surface": candidate.surface,
                "shape": candidate.shape,
                "f1": squad::f1(&candidate.text, &item.answers),
            })
        })
        .collect();
    serde_json::json!({
        "question": item.question,
        "kind": grounding::kind(&item.question),
        "answers": item.answers,
        "gold": item.evidence[item.gold],
        "sentences": sentences,
        "candidates": candidates,
    })
}
