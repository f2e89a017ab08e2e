//! Statements that take words of one clause of a sentence for those of another, beside those that it makes.

use super::statement_tests::{answers, tell_apart};
use super::{Checks, Verdict, check, verify};

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
        (
            "There are three keys for the front door and two for the flat.",
            "There are two keys for the front door and three for the flat.",
            "The keys, two for the front door and three for the flat, are new.",
        ),
    ]);
}

#[test]
fn how_often_something_is_done_belongs_to_the_words_of_its_clause() {
    let filter = "The filter should be cleaned every six months, and the boiler must be inspected once a year.";
    tell_apart(&[
        ("The filter should be cleaned once a year.", "The filter should be cleaned every six months.", filter),
        ("The boiler must be inspected every six months.", "The boiler must be inspected every year.", filter),
    ]);
    let exchanged = "The filter should be cleaned once a year, and the boiler must be inspected every six months.";
    assert!(!answers("How often are filter and boiler serviced?", exchanged, filter));
    assert!(answers("How often are filter and boiler serviced?", filter, filter));
}

#[test]
fn a_date_belongs_to_the_words_of_its_part_of_a_list() {
    let city = "The city replaced the old windows in 2019, and the roof in 2022.";
    tell_apart(&[
        ("The roof was replaced in 2019.", "The windows were replaced in 2019.", city),
        ("The city replaced the roof in 2019.", "The city replaced the windows in 2019.", city),
        (
            "",
            "The city replaced the windows in 2019 following a fire.",
            "The city replaced the old windows in 2019, following a fire in 2017.",
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
    let troops = "The troops left the Rhineland in 1930 and the German army reoccupied it in 1936.";
    assert!(answers("When did the German army reoccupy the Rhineland?", "1936", troops));
    assert!(!answers("When did the German army reoccupy the Rhineland?", "1930", troops));
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

#[test]
fn words_that_ask_for_a_number_need_not_be_in_the_sentence() {
    let students = "Of the 40 students, 31 passed the exam.";
    let lake = "The lake has a depth of 40 m and a length of 2 km.";
    for (question, answer, evidence) in [
        ("How many passed?", "31", students),
        ("How many students passed the exam?", "31", students),
        ("How deep is the lake?", "40 m", lake),
        ("How long is the lake?", "2 km", lake),
        ("How long did the trip to Rome take?", "four months", "The trip to Rome took four months."),
        ("How old is Ann Lee?", "22", "Ann Lee is 22 years old."),
    ] {
        assert!(answers(question, answer, evidence), "{question} {answer}");
    }
    for (question, answer, evidence) in [
        ("How many students passed the exam?", "40", students),
        ("How many students passed the exam?", "30", "The students passed the exam in 30 minutes."),
        ("How deep is the lake?", "2 km", lake),
        ("How deep is the lake?", "40 m", "The lake is 40 m from the house."),
        ("How old is Ann Lee?", "22", "Ann Lee has 22 cars."),
    ] {
        assert!(!answers(question, answer, evidence), "{question} {answer}");
    }
}

#[test]
fn a_pronoun_does_not_refer_to_the_agent_of_a_passive_or_to_another_number() {
    let bridge = "The old bridge was built by the Romans. It was destroyed in 1944.";
    tell_apart(&[
        ("The Romans were destroyed in 1944.", "The old bridge was destroyed in 1944.", bridge),
        ("The Romans were destroyed in 1944.", "", "The Romans built the old bridge. It was destroyed in 1944."),
        ("France was enlarged in 1860.", "Paris was enlarged in 1860.", "Paris is in France. It was enlarged in 1860."),
        ("", "Ann Lee was born in 1950.", "The book was written by Ann Lee. She was born in 1950."),
    ]);
    assert!(!answers("When were the Romans destroyed?", "1944", bridge));
    assert!(answers("When was the old bridge destroyed?", "1944", bridge));
}

#[test]
fn what_another_does_does_not_contradict_an_answer() {
    let verdict = |question, answer, evidence| check(question, answer, &[evidence], Checks::default())[0].verdict;
    for answer in ["Bob lives in Rome.", "Rome"] {
        assert_eq!(verdict("Where does Bob live?", answer, "Anna lives in Rome."), Verdict::Unsupported, "{answer}");
    }
    let oslo = verdict("Where does Bob live?", "Rome", "Bob lives in Oslo.");
    assert!(matches!(oslo, Verdict::Contradicted(_)));
}

#[test]
fn a_noun_phrase_with_a_participle_states_nothing() {
    let house = "Bob sold a house built in 1920.";
    assert!(!answers("What did Ann buy?", "a house built in 1920", house));
    assert!(answers("What did Bob sell?", "a house built in 1920", house));
    let cure = "Anna left Paris to be cured in Rome.";
    assert!(answers("What happened to the court?", "Anna left Paris.", cure));
    let stores = "Apple stores in Europe also sell phones.";
    assert!(!answers("What fell at Apple?", "Apple stores in Europe", stores));
}

#[test]
fn the_subject_of_a_passive_verb_is_not_another_word_beside_it() {
    let (bridge, ann) = ("The bridge was built in Rome in 1950.", "Ann killed Bob in Rome.");
    tell_apart(&[
        ("Rome was built in 1950.", "The bridge was built in 1950.", bridge),
        ("Bob was killed.", "Ann was killed.", "Ann was killed by Bob."),
        ("Ann was killed.", "Bob was killed by Ann.", ann),
        ("Ann arrested Bob.", "Ann was arrested with Bob.", "Ann was arrested with Bob in Rome."),
    ]);
    let built = "What was built in 1950?";
    assert!(!answers(built, "Rome", bridge) && answers(built, "The bridge", bridge));
    assert!(!answers("Who was killed?", "Ann", ann));
}

#[test]
fn a_date_behind_before_or_after_is_not_the_date() {
    tell_apart(&[
        ("The treaty was signed in 1990.", "The treaty was signed after 1990.", "The treaty was signed after 1990."),
        ("The treaty was signed in May 1990.", "", "The treaty was signed before May 1990."),
    ]);
    let treaty = "The treaty was signed after 1990.";
    assert!(!answers("When was the treaty signed?", "1990", treaty));
    assert!(answers("When was the treaty signed?", "after 1990", treaty));
}

#[test]
fn what_has_stopped_is_no_more() {
    tell_apart(&[("Ann works at Siem.", "Ann stopped working at Siem.", "Ann stopped working at Siem in 2010.")]);
}

#[test]
fn an_answer_has_the_type_that_the_question_requires() {
    let welding = "Gas welding was shown in 1901.";
    assert!(answers("Which welding was shown in 1901?", "Gas welding", welding));
    assert!(!answers("Which welding was shown in 1901?", "welding", welding));
    let war = "In Europe, on 18 May 1756, England declared war on France.";
    assert!(answers("When did England declare war on France?", "18 May 1756", war));
    assert!(!answers("When did England declare war on France?", "Europe", war));
    assert!(answers("When did Ann sail to Rome?", "after the war", "Ann sailed to Rome after the war."));
    let plague = "The plague came to Venice 22 times between 1361 and 1528.";
    assert!(answers("How many times did the plague come to Venice?", "22", plague));
    assert!(!answers("How many times did the plague come to Venice?", "between 1361 and 1528", plague));
    let jingle = "In 2015 the firm stopped the use of its 1998 jingle.";
    assert!(answers("When did the firm stop the use of its jingle?", "2015", jingle));
    assert!(!answers("When did the firm stop the use of its jingle?", "1998", jingle));
    assert!(!answers("How many students passed the exam?", "Ann", "Ann and 30 students passed the exam."));
    assert!(!answers("Who named the farm?", "Sunnybrook", "She named the farm Sunnybrook."));
}
