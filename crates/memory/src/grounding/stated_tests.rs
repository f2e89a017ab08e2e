//! Which sentences can state the answer to a question.

use super::stated::*;

fn states(question: &str, quote: &str, answer: &str) -> bool {
    states_beside(question, "", quote, answer)
}

fn states_beside(question: &str, before: &str, quote: &str, answer: &str) -> bool {
    let text = format!("{before} {quote}");
    let start = before.len() + 1;
    let at = start + quote.find(answer).unwrap();
    let (quote, answer) = (start..text.len(), at..at + answer.len());
    can_state(question, &Stating { text: &text, heading: "notes of 3 May 2023", quote, answer })
}

#[test]
fn what_one_speaker_says_of_himself_is_not_about_another() {
    let quote = "Tim (D21:13): I've been playing for about four months now.";
    assert!(!states("How long has John been playing the piano?", quote, "four months"));
    assert!(states("How long has Tim been playing the piano?", quote, "four months"));
    assert!(states("How long did it take?", quote, "four months"));
    assert!(states("How old is John's son?", "Tim: John's son is four.", "four"));
    let piano = "He has been playing: for four months.";
    assert!(states_beside("How long has John been playing?", "John was tired.", piano, "four months"));
    let speakers = speakers(&["Hi.\n", &format!("John: Hey.\n{quote}")]);
    let of_another = |question: &str| {
        let at = quote.find("four months").unwrap();
        let (unit, answer) = (0..quote.len(), at..at + "four months".len());
        is_of_another(question, &Stating { text: quote, heading: "", quote: unit, answer }, &speakers)
    };
    assert!(of_another("How long has John been playing?"));
    assert!(!of_another("How long has Tim been playing?") && !of_another("How long did it take?"));
    assert!(!of_another("How long did the lessons in Paris take?"), "no speaker has that name");
}

#[test]
fn the_name_of_a_place_does_not_make_the_narrator_the_person() {
    let start = "I start at the clinic in Rome on 2 January.";
    assert!(!states_beside("When does Julia start at the clinic in Rome?", "Hi Julia!", start, "2 January"));
    assert!(!states("When does Julia start at the clinic in Rome?", &format!("Tim: {start}"), "2 January"));
    assert!(states("When does Julia start at the clinic in Rome?", &format!("Julia: {start}"), "2 January"));
    let she = "She starts at the clinic in Rome on 2 January.";
    assert!(states_beside("When does Julia start at the clinic in Rome?", "Julia moves.", she, "2 January"));
    let met = "I met Julia in Rome on 2 January.";
    assert!(states("When was Julia in Rome?", met, "2 January"));
}

#[test]
fn the_name_of_the_listener_is_not_enough() {
    let (question, before) = ("Where did Ann go camping?", "Ann: I am back.");
    let camp = |said: &str| states_beside(question, before, &format!("Tim: {said}"), "the beach");
    assert!(!camp("Hey Ann! Good to see you. We went camping at the beach."));
    assert!(!camp("Ann, I went to the beach."));
    assert!(!camp("Ann is so kind. We loved camping at the beach."));
    assert!(camp("I went to the beach with Ann."));
    assert!(camp("Ann was here. She went camping at the beach."));
    assert!(camp("Wow, you went to the beach!"));
}

#[test]
fn the_speaker_of_direct_speech_is_not_another_person() {
    let story = "Instead of obeying, Jim tumbled down on the couch and smiled, his hands under his head.\n\n\
        \"Dell,\" said he, \"I sold the watch to buy your combs.\"";
    let at = story.find("\"Dell").unwrap();
    let watch = story.find("the watch").unwrap();
    let (quote, answer) = (at..story.len(), watch..watch + 9);
    let stating = Stating { text: story, heading: "", quote, answer };
    let jim = |question: &str| can_state(question, &stating);
    assert!(jim("What did Jim sell?") && jim("What was sold?"));
    assert!(!jim("What did Della sell?"));
    let saw = |quote: &str| states_beside("What did Ann see?", "Ann came.", quote, "a hat");
    assert!(!saw("I saw a hat."), "a narrator without a name");
    assert!(saw("She saw a hat.") && saw("Ann saw a hat. I saw none."));
}

#[test]
fn a_question_states_nothing() {
    let states = |quote: &str| states("What does Ann want to study?", quote, "law");
    assert!(!states("Tim: Good. Does Ann want to study law?") && !states("\"Will Ann study law?\""));
    assert!(states("Tim: Ann wants to study law. Do you?"));
}

#[test]
fn an_answer_has_the_part_in_its_sentence_that_is_asked_for() {
    let named = "She named the farm Sunnybrook, as Ann had wished.";
    assert!(!states("Who named the farm?", named, "Sunnybrook"));
    assert!(states("What did she name the farm?", named, "Sunnybrook"));
    let film = "They meet Sal (Tom Reed), a mobster.";
    assert!(!states("Who is the mobster?", film, "Tom Reed") && states("Who is the mobster?", film, "Sal"));
    let game = "Turku won by 11 points, and the home team lost 24 to 10.";
    assert!(!states("What was the final score?", game, "11 points"));
    assert!(states("What was the final score?", game, "24 to 10"));
    let round = "They won the divisional round, finishing with a score of 23–16 by scoring 11 points in the end.";
    assert!(!states("What was the final score of the round?", round, "11 points"));
    assert!(states("What was the final score of the round?", round, "23–16"));
    assert!(states("What was the highest score?", "The highest score was 98 points.", "98 points"));
    let signs = "Ida gave a sign language translation of the hymn.";
    assert!(!states("What did Ida translate?", signs, "sign language"));
    assert!(states("What kind of translation did Ida give?", signs, "sign language"));
    assert!(states("What did Ida translate?", "Ida translated the hymn in her translation.", "the hymn"));
    let ring = "Ann bought a ring in Rome.";
    assert!(!states("What did Ann buy?", ring, "Rome") && states("What did Ann buy?", ring, "a ring"));
}

#[test]
fn a_comparison_takes_more_than_one_sentence() {
    assert!(!states("Which is larger, Porto or Lisbon?", "Lisbon is the largest city.", "Lisbon"));
    assert!(states("Which city is the largest?", "Lisbon is the largest city.", "Lisbon"));
}

#[test]
fn what_the_question_names_is_near() {
    let (question, nina) = ("In what year did Lima open the port?", "It opened the port in 1970.");
    assert!(states_beside(question, "Lima grew.", nina, "1970"));
    assert!(!states_beside(question, "Quito grew.", nina, "1970"));
    assert!(
        !states("Who won in 1866?", "Ann Lee won.", "Ann Lee") && states("Who won in 2023?", "Ann Lee won.", "Ann Lee")
    );
    assert!(!states("Which of the 12 men won?", "Ann Lee won.", "Ann Lee"));
    assert!(!states("Who won the 5K run?", "Ann Lee won the run.", "Ann Lee"));
    assert!(states("Who won the 5K run?", "Ann Lee won the 5k run.", "Ann Lee"));
    assert!(!states("Who won on Monday?", "Ann Lee won on Sunday.", "Ann Lee"));
    assert!(states("Who won on Sunday?", "Ann Lee won on Sunday.", "Ann Lee"));
    assert!(states("Who won on Sunday?", "Ann Lee won on Sun 3 May.", "Ann Lee"));
}

#[test]
fn an_answer_is_of_the_thing_and_the_dimension_that_are_asked_for() {
    let base = "The base of the kettle weighs 310 grams.";
    assert!(!states("How much does the kettle weigh?", base, "310 grams"));
    assert!(states("How much does the base weigh?", base, "310 grams"));
    let pool = "The pool is 25 metres long.";
    assert!(!states("How deep is the pool?", pool, "25 metres") && !states("How deep is it?", pool, "25 metres long"));
    assert!(states("How long is the pool?", pool, "25 metres"));
    let debt = "Ann was away for ten years, deep in debt.";
    assert!(states("How long was Ann away?", debt, "ten years"), "a word behind a comma is not of the measure");
}

#[test]
fn the_quantity_of_another_thing_is_not_that_of_the_noun_behind_how_much() {
    let iron = "The iron content exceeds the limit.";
    let sample = "In the sample of March it had been 5 mg.";
    assert!(!states_beside("How much lead was in the sample of March?", iron, sample, "5 mg"));
    assert!(states_beside("How much iron was in the sample of March?", iron, sample, "5 mg"));
}

#[test]
fn an_answer_that_a_later_sentence_corrects_is_not_stated() {
    let states = |behind: &str| {
        let (sentence, answer) = ("The meeting is on Monday.", 18..24);
        let text = format!("{sentence} {behind}");
        let quote = 0..sentence.len();
        can_state("When is the meeting?", &Stating { text: &text, heading: "", quote, answer })
    };
    assert!(!states("Correction: the meeting is on Tuesday, not Monday."));
    assert!(!states("The meeting has been moved to Tuesday.") && !states("The meeting is cancelled."));
    assert!(states("The dinner is on Tuesday.") && states("The dinner is cancelled."));
}

#[test]
fn an_answer_is_of_the_cell_that_is_asked_for() {
    let table = "| Host | RAM | Disk |\n|---|---|---|\n| alder | 16 GB | 1 TB |\n| birch | 64 GB | 2 TB |\n| cedar | 8 GB | 3 TB |";
    let states = |question: &str, answer: &str| {
        let at = table.find(answer).unwrap();
        let start = table[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = table[at..].find('\n').map_or(table.len(), |end| at + end);
        let answer = at..at + answer.len();
        can_state(question, &Stating { text: table, heading: "", quote: start..end, answer })
    };
    let question = "How much RAM does cedar have?";
    assert!(states(question, "8 GB"), "the name of a column is near its cells");
    assert!(!states(question, "3 TB") && !states(question, "64 GB"));
}

#[test]
fn the_first_person_of_a_message_is_its_sender() {
    let head = "From: Ann Lee <ann@home.example>\nTo: Tom Lee <tom@home.example>\n\nIt rained. It rained. It rained.";
    let states = |question: &str, quote: &str, answer: &str| states_beside(question, head, quote, answer);
    let moved = "I moved to Rome.";
    assert!(states("Where did Ann move?", moved, "Rome") && states("Where did Ann Lee move?", moved, "Rome"));
    for name in ["Ann Marie Lee", "Annie Lee"] {
        assert!(states(&format!("Where did {name} move?"), moved, "Rome"), "{name}");
    }
    assert!(!states("Where did Eva Lee move?", moved, "Rome"), "another person with the last name");
    assert!(!states("Where did Tom move?", moved, "Rome") && !states("Where did Tom Lee move?", moved, "Rome"));
    assert!(!states("Where did Tom move?", "Dear Tom, I moved to Rome.", "Rome"));
    assert!(states("Where did Tom move?", "Tom moved to Rome with my son.", "Rome"));
}

#[test]
fn an_answer_has_what_is_asked_for_and_new_words() {
    let quote = "The forest has over half of all trees, 390 billion of 16,000 kinds, and takes 4 kg of salt.";
    assert!(!states("What percentage of all trees does the forest have?", quote, "390 billion"));
    assert!(states("What percentage of all trees does the forest have?", quote, "over half"));
    assert!(!states("How many pounds of salt does it take?", quote, "4"));
    assert!(states("How many kilograms of salt does it take?", quote, "4"));
    assert!(states("How many kinds has the forest?", quote, "16,000"));
    assert!(!states("What has the forest of all trees?", quote, "The forest"));
    assert!(!states("What is the sign of the epoch?", "The epoch (P) ended.", "P"));
    let clinic = "The clinic was founded in 1950 by Ida Holm of the 49ers.";
    assert!(!states("Who founded the clinic?", clinic, "1950") && !states("Who ran it?", clinic, "in 1950"));
    assert!(states("Who founded the clinic?", clinic, "Ida Holm") && states("Who won?", clinic, "the 49ers"));
    for value in ["140 euros", "1950", "3 May 2023", "5 km"] {
        assert!(is_value_for_person("Who charged Ann?", value), "{value}");
        assert!(!is_value_for_person("What did Ann pay?", value), "{value}");
    }
    for person in ["Mr. Lee", "the 49ers", "12 men", "Louis 14"] {
        assert!(!is_value_for_person("Who charged Ann?", person), "{person}");
    }
}

#[test]
fn a_name_that_only_tells_whose_child_a_pronoun_is_is_not_the_person() {
    let born = "She was born on 3 November 1879, the fourth child of the pharmacist Konrad Thoss.";
    assert!(!states("When was Konrad Thoss born?", born, "3 November 1879"));
    let before = "Ilse Thoss founded the society.";
    assert!(states_beside("When was Ilse Thoss born?", before, born, "3 November 1879"));
    assert!(states("When did Ann come to Rome?", "In May Ann came to Rome, where she was born.", "In May"));
}
