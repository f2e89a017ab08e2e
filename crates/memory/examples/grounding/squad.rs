//! SQuAD's exact match and F1 over the normal form that candidates are merged by.

use std::collections::HashMap;

use memory::grounding::normal_form;

pub fn is_exact(text: &str, answers: &[String]) -> bool {
    answers.iter().any(|answer| normal_form(answer) == normal_form(text))
}

pub fn f1(text: &str, answers: &[String]) -> f64 {
    answers.iter().map(|answer| one(text, answer)).fold(0.0, f64::max)
}

fn one(text: &str, answer: &str) -> f64 {
    let (text, answer) = (normal_form(text), normal_form(answer));
    let mut left: HashMap<&str, usize> = HashMap::new();
    answer.split(' ').for_each(|word| *left.entry(word).or_default() += 1);
    let mut shared = 0.0;
    for word in text.split(' ') {
        if let Some(left) = left.get_mut(word).filter(|left| **left > 0) {
            *left -= 1;
            shared += 1.0;
        }
    }
    if shared == 0.0 {
        return 0.0;
    }
    let (precision, recall) = (shared / text.split(' ').count() as f64, shared / answer.split(' ').count() as f64);
    2.0 * precision * recall / (precision + recall)
}
