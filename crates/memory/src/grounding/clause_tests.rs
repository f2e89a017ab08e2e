//! Statements that take words of one clause of a sentence for those of another, beside those that it makes.

use super::statement_tests::{answers, tell_apart};
use super::{Checks, Verdict, verify};

#[test]
fn a_measure_is_of_the_dimension_beside_it() {
    let bridge = "The bridge is 1.2 km long and 30 m wide.";
    tell_apart(&[
        ("The bridge is 30 m long.", "The bridge is 30 m wide.", bridge),
        ("The bridge has a length of 30 m.", "The bridge is 1.2 kilometres long.", bridge),
        ("The bridge is 30 million wide.", "The bridge is 30 metres wide.", bridge),
        ("", "The country has 30 million people.", "The country has 30 m people."),
        ("", "The profit was 30 million pounds.", "The profit was £30 m in 2020."),
    ]);
    assert!(
        answers("How long is the bridge?", "1.2 km", bridge) && !answers("How long is the bridge?", "30 m", bridge)
    );
}

#[test]
fn the_number_of_a_whole_is_not_that_of_its_part() {
    tell_apart(&[
        (
            "40 students passed the exam.",
            "31 students passed the exam.",
            "Of the 40 students, 31 passed the exam and nine failed.",
        ),
        ("40 students passed the exam.", "", "31 of the 40 students passed the exam."),
        ("", "40 students took the exam.", "Of the 40 students who took the exam, 31 passed."),
    ]);
}

#[test]
fn a_number_belongs_to_the_words_of_its_part_of_a_list() {
    tell_apart(&[
        (
            "60 percent of them voted against the plan.",
            "60 percent voted for the plan.",
            "60 percent voted for the plan and 40 percent against it.",
        ),
        (
            "The firm sold 12 percent of the cars by mail.",
            "The firm sold 12 percent of the cars in Spain.",
            "The firm sold 12 percent of the cars in Spain and 8 percent by mail.",
        ),
    ]);
}

#[test]
fn an_answer_with_another_verb_than_that_of_the_question_does_not_answer() {
    let clara = "Clara grew up in Graz, but she was born in Linz.";
    assert!(!answers("Where was Clara born?", "Graz", clara) && answers("Where was Clara born?", "Linz", clara));
    assert!(answers("Where did Clara grow up?", "Graz", clara));
    let king = "In 2002 the king, who was ill, sold his house.";
    assert!(answers("When did the king sell his house?", "2002", king));
    assert!(answers("Where was the man buried?", "Rome", "The man was killed and buried in Rome."));
    let students = "Of the 40 students, 31 passed the exam.";
    assert!(!answers("How many students passed the exam?", "40", students));
}

#[test]
fn a_pronoun_is_about_the_noun_of_the_question() {
    let cars = "The car is dark blue. The van is red.";
    assert!(!answers("What colour is the car?", "It is red.", cars));
    assert!(answers("What colour is the car?", "It is dark blue.", cars));
    assert!(answers("What colour is the van?", "It is red.", cars));
}

#[test]
fn a_role_is_of_the_name_that_it_is_joined_with() {
    let museum = "Nora Klein is the deputy director of the museum; its director is Paul Voss.";
    let arco = "Mark Stone, the former CEO of Arco, met Lisa Grant, the current CEO.";
    let spain = "The current king of Spain, Felipe, met Emmanuel Macron, the president of France.";
    tell_apart(&[
        ("Paul Voss is the deputy director.", "Nora Klein is the deputy director.", museum),
        ("Mark Stone is the current CEO.", "Lisa Grant is the current CEO.", arco),
        ("Emmanuel Macron is the current king of Spain.", "Felipe is the current king of Spain.", spain),
        ("", "The plant is the largest park.", "The plant in the desert of Nevada is the largest park."),
    ]);
}

#[test]
fn a_complement_is_not_the_subject_of_another_verb() {
    let app = "The app is free for students; others pay 5 euros a month.";
    tell_apart(&[("The app is free for others.", "The app is free for students.", app)]);
    let eva = "Eva speaks Polish, Czech and German, and she is learning Greek.";
    assert!(answers("Which languages does she speak?", "Eva speaks Polish, Czech and German.", eva));
    assert!(!answers("Which languages does she speak?", "Eva speaks Polish, Czech and Greek.", eva));
}

#[test]
fn a_pronoun_refers_to_the_noun_of_the_sentence_before() {
    let law = "The law was passed in 1922. It was repealed in 1931.";
    let Verdict::Supported(place) = verify("The law was repealed in 1931.", &[law], Checks::default()) else {
        panic!("it is not supported");
    };
    assert_eq!(&law[place.start..place.end], law, "the span has what the pronoun refers to");
    tell_apart(&[
        ("The law was repealed in 1922.", "", law),
        ("The law was passed in 1931.", "", law),
        ("The laws were repealed in 1931.", "", "The council passed the laws. It was repealed in 1931."),
    ]);
    assert!(answers("When was the law repealed?", "1931", law) && !answers("When was the law repealed?", "1922", law));
}

#[test]
fn neither_and_nor_negate_once() {
    let text = "Neither Ann nor Bob smokes, but Carl does.";
    tell_apart(&[("Ann smokes.", "Neither Ann nor Bob smokes.", text)]);
    assert!(answers("Which of them smokes?", "Neither Ann nor Bob smokes.", text));
}

#[test]
fn a_subject_may_be_behind_its_verb() {
    let text = "Just outside stood two tall soldiers.";
    assert!(answers("Who stood just outside?", "two tall soldiers", text));
}
