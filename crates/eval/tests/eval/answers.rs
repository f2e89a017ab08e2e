//! Scorers of answers: checked against a second implementation on LoCoMo's gold answers, and by hand.

use std::collections::BTreeMap;
use std::fs;

use eval::qa::{QaSuite, Question};
use eval::score::{
    Judge, Rung, Scorer, bleu1, cascade, compaction, em_squad, f1_gam, f1_hotpotqa, f1_locomo, f1_squad, letter,
    locomo_words, ruler_all, ruler_gam, ruler_part, says_yes, stem,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::evaluation_data;

/// Numbers made by golden/scores.py.
#[derive(Deserialize)]
struct Golden {
    questions: usize,
    means: BTreeMap<String, BTreeMap<String, f64>>,
    ascii_words: usize,
    stems_sha256: String,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../golden/scores.json")).unwrap()
}

fn one(gold: &str) -> Vec<String> {
    vec![gold.to_owned()]
}

fn predict(predictor: &str, gold: &str, before: &str) -> String {
    let words: Vec<&str> = gold.split_whitespace().collect();
    match predictor {
        "gold" => gold.to_owned(),
        "sentence" => format!("It was {gold}."),
        "first half" => words[..words.len().div_ceil(2)].join(" "),
        "with the one before" => format!("{before}, and {gold}"),
        other => panic!("{other}"),
    }
}

#[test]
fn scorers_agree_with_the_second_implementation_on_locomo() {
    let Some(path) = evaluation_data("locomo") else { return };
    let golden = golden();
    let mut cases = QaSuite::LoCoMo.load(&path).unwrap();
    cases.only(&["1", "2", "3", "4"].map(str::to_owned));
    assert_eq!(cases.questions(), golden.questions);
    for (name, expect) in golden.means {
        let (predictor, scorer) = name.split_once(" | ").unwrap();
        let scorer: Scorer = scorer.parse().unwrap();
        let (mut scores, mut before): (BTreeMap<String, Vec<f64>>, String) = (BTreeMap::new(), String::new());
        for question in cases.cases.iter().flat_map(|case| &case.questions) {
            let gold = &question.golds[0];
            let score = scorer.score(question, &predict(predictor, gold, &before), None).value;
            for group in ["all", &question.category_number().to_string()] {
                scores.entry(group.to_owned()).or_default().push(score);
            }
            before.clone_from(gold);
        }
        for (group, scores) in scores {
            let mean = scores.iter().sum::<f64>() / scores.len() as f64;
            assert!((mean - expect[&group]).abs() < 5e-5, "{name}, {group}: {mean} instead of {}", expect[&group]);
        }
    }
}

#[test]
fn stems_of_all_words_of_locomo_are_those_of_nltk() {
    let Some(path) = evaluation_data("locomo") else { return };
    let file = fs::read_to_string(path.join("locomo_public5.json")).unwrap();
    let samples: serde_json::Value = serde_json::from_str(&file).unwrap();
    let mut words = std::collections::BTreeSet::new();
    let mut read = |text: &serde_json::Value| {
        let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
        words.extend(locomo_words(&text).into_iter().filter(|word| word.is_ascii()));
    };
    for sample in samples.as_array().unwrap() {
        for session in sample["conversation"].as_object().unwrap().values().filter_map(|value| value.as_array()) {
            session.iter().for_each(|turn| read(&turn["text"]));
        }
        for qa in sample["qa"].as_array().unwrap() {
            read(&qa["question"]);
            if qa["category"] != 5 {
                read(&qa["answer"]);
            }
        }
    }
    assert_eq!(words.len(), golden().ascii_words);
    let mut digest = Sha256::new();
    words.iter().for_each(|word| digest.update(format!("{word} {}\n", stem(word))));
    assert_eq!(format!("{:x}", digest.finalize()), golden().stems_sha256);
}

#[test]
fn words_are_stemmed_as_nltk_does() {
    let check = |word: &str, expect: &str| assert_eq!(stem(word), expect, "{word}");
    // Porter's own examples, and those of NLTK's extensions.
    for pair in "caresses caress|ponies poni|ties tie|dies die|flies fli|cats cat|agreed agre|feed feed|plastered plaster|\
                 bled bled|motoring motor|sing sing|conflated conflat|troubled troubl|sized size|hopping hop|tanned tan|\
                 falling fall|hissing hiss|fizzed fizz|failing fail|filing file|died die|spied spi|happy happi|enjoy enjoy|\
                 skies sky|dying die|spy spi|relational relat|conditional condit|rational ration|digitizer digit|\
                 radicalli radic|differentli differ|operator oper|feudalism feudal|sensibiliti sensibl|\
                 archaeology archaeolog|geology geolog|hopefully hope|triplicate triplic|formative form|goodness good|\
                 replacement replac|adoption adopt|communism commun|bowdlerize bowdler|probate probat|rate rate|\
                 cease ceas|controll control|roll roll|news news|innings inning|succeed succeed|yyy yyy|a a|us us|2023 2023|\
                 owed owe|yes ye|Running run"
        .split('|')
    {
        let (word, expect) = pair.split_once(' ').unwrap();
        check(word, expect);
    }
}

#[test]
fn locomo_is_scored_by_category() {
    let check = |category, prediction: &str, gold: &str, expect: f64| {
        let score = f1_locomo(prediction, gold, category);
        assert!((score - expect).abs() < 1e-9, "{category} {prediction} / {gold}: {score}");
    };
    check(4, "The running dogs", "a dog ran and runs", 0.8); // dog, run of two and three words
    check(2, "7 May, 2023", "7 May 2023", 1.0);
    check(3, "yes", "Yes; because she said so", 1.0);
    check(1, "pottery, camping", "camping, pottery, swimming", 2.0 / 3.0);
    check(5, "No information available here.", "", 1.0);
    check(5, "It is NOT mentioned.", "", 1.0);
    check(5, "Blue.", "", 0.0);
    check(4, "", "blue", 0.0);
}

#[test]
fn gams_words_keep_the_second_of_two_articles() {
    assert_eq!(f1_gam("the", &one("a")), 1.0); // both are empty
    assert_eq!(f1_gam("a the cat", &one("the cat")), 2.0 / 3.0);
    assert_eq!(f1_gam("a, the cat", &one("cat")), 1.0);
    assert_eq!(f1_gam("well-known", &one("known")), 2.0 / 3.0);
    assert_eq!(f1_gam("nothing", &[]), 0.0);
    assert!((bleu1("red", &one("red house")) - (-1.0f64).exp()).abs() < 1e-12);
    assert_eq!(bleu1("red red house", &one("red house")), 2.0 / 3.0);
    assert_eq!(bleu1("", &one("red")), 0.0);
}

#[test]
fn squad_takes_the_best_gold_answer() {
    let golds = ["Denver Broncos", "the Broncos"].map(str::to_owned);
    assert_eq!(em_squad("broncos!", &golds), 1.0);
    assert_eq!(em_squad("The Denver", &golds), 0.0);
    assert_eq!(f1_squad("The Denver", &golds), 2.0 / 3.0);
    assert_eq!(f1_squad("", &golds), 0.0);
}

#[test]
fn hotpotqa_compares_yes_and_no_as_whole_answers() {
    let different = [("no, he was not", "no"), ("Yes", "no"), ("yes", "yes, he was"), ("noanswer", "the no")];
    for (prediction, gold) in different {
        assert_eq!(f1_hotpotqa(prediction, &one(gold)), 0.0, "{prediction}, {gold}");
    }
    assert!(f1_squad("no, he was not", &one("no")) > 0.0);
    assert_eq!(f1_hotpotqa("No.", &one("no")), 1.0);
    assert_eq!(f1_hotpotqa("no", &["yes", "no"].map(str::to_owned)), 1.0);
    assert_eq!(f1_hotpotqa("The Denver", &one("Denver Broncos")), f1_squad("The Denver", &one("Denver Broncos")));
    let scorer: Scorer = "f1:hotpotqa".parse().unwrap();
    let question = Question { golds: one("no"), ..Question::default() };
    let mark = scorer.score(&question, "no, he was not", None);
    assert_eq!((mark.value, scorer.to_string().as_str()), (0.0, "f1:hotpotqa"));
}

#[test]
fn ruler_looks_for_strings_in_two_ways() {
    let golds = ["1234567", "7654321"].map(str::to_owned);
    assert_eq!((ruler_all("It is 1234567.", &golds), ruler_part("It is 1234567.", &golds)), (0.5, 1.0));
    assert_eq!(ruler_gam("It is 1234567.", &golds), 0.0);
    assert_eq!(ruler_gam("7654321, 1234567", &golds), 1.0);
    assert_eq!(ruler_gam("the first Prime-Minister of it", &one("Prime Minister")), 1.0);
    assert_eq!((ruler_all("ABCDE", &one("abcde")), ruler_part("", &golds)), (1.0, 0.0));
}

#[test]
fn letters_are_found_in_answers() {
    let options = ["a red house", "a blue car", "the old lighthouse", "a horse"].map(str::to_owned);
    let check = |answer: &str, expect: Option<char>| assert_eq!(letter(answer, &options), expect, "{answer}");
    check("[B]", Some('B'));
    check("First [A], but then: [C]", Some('C'));
    check("(D)", Some('D'));
    check("B", Some('B'));
    check("B. a blue car", Some('B'));
    check("The answer is C.", Some('C'));
    check("It was the old lighthouse.", Some('C'));
    check("A man came to the old lighthouse", Some('C'));
    check("a red house or a blue car", None);
    check("[E]", None);
    check("", None);
}

#[test]
fn the_cascade_says_which_rule_accepted() {
    let check = |answer: &str, gold: &str, expect: Option<Rung>| {
        assert_eq!(cascade(answer, &one(gold)), expect, "{answer} / {gold}");
    };
    check("The Old House!", "old house", Some(Rung::Equal));
    check("1,200", "1200", Some(Rung::Number));
    check("twenty-one", "21", Some(Rung::Number));
    check("15 %", "fifteen", Some(Rung::Number));
    check("12", "13", None);
    check("It was the old house on the hill that burned.", "the old house", Some(Rung::Contained));
    check("It is not red", "red", None);
    check("21. That is what they counted in the hall.", "twenty one", Some(Rung::FirstSentence));
    check("His brother Tom killed him", "Tom, the brother, killed the man", Some(Rung::KeyPhrase));
    check("Nobody knows", "the butler", None);
    check("anything", "", None);
}

#[test]
fn judges_are_asked_by_the_rules_of_the_question() {
    let question = |id: &str, kind: &str| Question {
        id: id.into(),
        text: "Where?".into(),
        golds: one("in Pell"),
        groups: vec![kind.into()],
        ..Question::default()
    };
    let rules = |question: &Question| Judge::LongMemEval.call(question, "Pell").prompt.messages()[0].content.clone();
    let kinds = ["multi-session", "temporal-reasoning", "knowledge-update", "single-session-preference"];
    let mut seen: Vec<String> = kinds.iter().map(|kind| rules(&question("q", kind))).collect();
    seen.push(rules(&question("q_abs", "multi-session")));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 5);
    let call = Judge::LoCoMo.call(&question("q", ""), "It is in Pell.");
    assert!(call.prompt.messages()[1].content.contains("RIGHT ANSWER:\nin Pell\n\nANSWER:\nIt is in Pell."));
    let rules = Judge::MindGraph.call(&question("q", ""), "It is in Pell.").prompt.messages()[0].content.clone();
    assert!(rules.contains("at greater length too") && rules.contains("all its important items"), "{rules}");
    assert!(says_yes("Yes.") && !says_yes("no"));
    assert_eq!(Judge::LoCoMo.prompts_sha256().len(), 64);
}

#[test]
fn a_scorer_that_needs_a_judge_scores_by_its_verdict() {
    let question = Question { golds: one("Tom Reed"), ..Question::default() };
    let cascade = Scorer::MindgraphCascade;
    assert!(!cascade.asks(&question, "Tom Reed") && cascade.asks(&question, "somebody"));
    let mark = cascade.score(&question, "somebody", Some("yes"));
    assert_eq!((mark.value, mark.by.as_deref()), (1.0, Some("judge")));
    let mark = cascade.score(&question, "Tom Reed", None);
    assert_eq!((mark.value, mark.by.as_deref()), (1.0, Some("equal")));
    assert_eq!(Scorer::LocomoJudge.score(&question, "Tom Reed", None).value, 0.0);
    let with_options = Question { options: vec!["x".into(), "y".into()], golds: one("B"), ..Question::default() };
    assert!(!cascade.asks(&with_options, "[A]"));
    assert_eq!(cascade.score(&with_options, "[B]", None).value, 1.0);
    assert_eq!((compaction(70, 1000), compaction(1, 0)), (Some(0.07), None));
}
