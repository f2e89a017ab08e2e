//! An answer with a verdict on each of its claims, and the citations that follow from them.

use super::candidates::Place;
use super::choose::ShortAnswer;
use super::claims::{Claim, claims, is_fragment};
use super::verdict::{Checks, Verdict, verify};
use super::words::normal_form;

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Checked {
    #[serde(flatten)]
    pub claim: Claim,
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The claims of an answer to a question, each with its verdict. "Yes" and "no" are checked as what the question states, and
/// a claim without a verb together with the question.
pub fn check(question: &str, answer: &str, evidence: &[&str], checks: Checks<'_>) -> Vec<Checked> {
    let asked = question.trim().trim_end_matches(['?', ' ']);
    let verdict = |claim: &Claim| match normal_form(&claim.text).as_str() {
        "yes" => verify(asked, evidence, checks),
        "no" => match verify(asked, evidence, checks) {
            Verdict::Supported(place) => Verdict::Contradicted(place),
            Verdict::Contradicted(place) => Verdict::Supported(place),
            Verdict::Unsupported => Verdict::Unsupported,
        },
        _ if is_fragment(&claim.text) => verify(&format!("{asked} {}", claim.text), evidence, checks),
        _ => verify(&claim.text, evidence, checks),
    };
    claims(answer).into_iter().map(|claim| Checked { verdict: verdict(&claim), claim }).collect()
}

/// The share of claims that are supported; 0 for none.
pub fn supported_share(checked: &[Checked]) -> f64 {
    let supported = checked.iter().filter(|checked| matches!(checked.verdict, Verdict::Supported(_))).count();
    if checked.is_empty() { 0.0 } else { supported as f64 / checked.len() as f64 }
}

/// The spans that support claims, each once: those that hold the short answer first, then those that support most claims,
/// then in the order of the claims.
pub fn citations(checked: &[Checked], short: Option<&ShortAnswer>) -> Vec<Place> {
    let mut cited: Vec<(Place, usize)> = Vec::new();
    for checked in checked {
        let Verdict::Supported(place) = checked.verdict else { continue };
        match cited.iter_mut().find(|(known, _)| *known == place) {
            Some((_, claims)) => *claims += 1,
            None => cited.push((place, 1)),
        }
    }
    let holds = |place: &Place| short.is_some_and(|short| short.places.iter().any(|answer| place.holds(answer)));
    cited.sort_by_key(|(place, claims)| (!holds(place), usize::MAX - claims));
    cited.into_iter().map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str =
        "Jim sold his gold watch. Della cut her hair and paid $21 for a chain. The flat cost $8 a week.";

    fn quotes(question: &str, answer: &str, short: Option<&ShortAnswer>) -> Vec<&'static str> {
        let checked = check(question, answer, &[STORY], Checks::default());
        citations(&checked, short).into_iter().map(|place| &STORY[place.start..place.end]).collect()
    }

    #[test]
    fn only_supported_claims_are_cited() {
        assert_eq!(quotes("What did Jim sell?", "Jim sold his gold watch.", None), ["Jim sold his gold watch."]);
        assert!(quotes("What did Jim sell?", "Jim sold a pizza.", None).is_empty());
        assert_eq!(quotes("What did Jim sell?", "his gold watch", None), ["Jim sold his gold watch."]);
        assert!(quotes("What did Jim sell?", "a pizza", None).is_empty());
    }

    #[test]
    fn yes_and_no_are_cited_by_what_the_question_states() {
        assert_eq!(quotes("Did Jim sell his watch?", "Yes.", None), ["Jim sold his gold watch."]);
        assert!(quotes("Did Jim sell his watch?", "No.", None).is_empty());
        assert_eq!(quotes("Did Jim never sell his watch?", "No.", None), ["Jim sold his gold watch."]);
    }

    #[test]
    fn the_span_with_the_short_answer_is_cited_first() {
        let answer = "Jim sold his gold watch. Della paid $21 for a chain.";
        let at = STORY.find("$21").unwrap();
        let places = vec![Place { text: 0, start: at, end: at + 3 }];
        let short = ShortAnswer { text: "$21".into(), places, score: 0.0, probability: 1.0 };
        let cited = quotes("How much did Della pay?", answer, Some(&short));
        assert_eq!(cited, ["Della cut her hair and paid $21 for a chain.", "Jim sold his gold watch."]);
    }

    #[test]
    fn verdicts_have_stable_names_in_json() {
        let checked = check("What did Jim sell?", "Jim sold a pizza.", &[STORY], Checks::default());
        assert_eq!(supported_share(&checked), 0.0);
        let json = serde_json::to_value(&checked[0]).unwrap();
        assert_eq!((&json["verdict"], &json["sentence"]), (&"unsupported".into(), &0.into()));
        let back: Checked = serde_json::from_value(json).unwrap();
        assert_eq!(back, checked[0]);
    }
}
