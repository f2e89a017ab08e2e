//! Which sentences tell an answer of another thing than the question is about.

use super::things::is_of_another_thing;

fn is_other(question: &str, sentence: &str, answer: &str) -> bool {
    let start = sentence.find(answer).unwrap();
    is_of_another_thing(question, sentence, &(start..start + answer.len()))
}

fn check(question: &str, others: &[(&str, &str)], own: &[(&str, &str)]) {
    for (sentence, answer) in others {
        assert!(is_other(question, sentence, answer), "{question} {sentence} {answer}");
    }
    for (sentence, answer) in own {
        assert!(!is_other(question, sentence, answer), "{question} {sentence} {answer}");
    }
}

#[test]
fn what_a_part_of_a_thing_does_the_thing_does_not() {
    check(
        "How much does the kettle weigh?",
        &[("The base of the kettle weighs 310 grams.", "310 grams"), ("The kettle's lid weighs 80 g.", "80 g")],
        &[
            ("The kettle weighs 1.2 kg.", "1.2 kg"),
            ("The kettle with the base weighs 1.5 kg.", "1.5 kg"),
            ("This model of the kettle weighs 1.2 kg.", "1.2 kg"),
        ],
    );
    let lid = ("The lid of the kettle weighs 80 g.", "80 g");
    check("How much does the lid of the kettle weigh?", &[], &[lid]);
    let opens = ("The friends of the museum come when it opens at nine.", "nine");
    check("When does the museum open?", &[], &[opens]);
    check("When was the kettle sold?", &[("The base of the kettle was sold in May.", "May")], &[]);
}

#[test]
fn the_verb_of_the_question_may_have_another_subject() {
    check(
        "How much does the kettle cost?",
        &[
            ("Accessories: The spare filter costs 8.90 euros.", "8.90 euros"),
            ("The spare filter has the number 31 and costs 8.90 euros.", "8.90 euros"),
            ("The lid will cost 6 euros.", "6 euros"),
        ],
        &[
            ("The kettle costs 49 euros.", "49 euros"),
            ("It costs 49 euros.", "49 euros"),
            ("The appliance costs 49 euros.", "49 euros"),
            ("The kettle is red and costs 49 euros.", "49 euros"),
        ],
    );
    let filter = ("The spare filter costs 8.90 euros.", "8.90 euros");
    check("How much does the spare filter cost?", &[], &[filter]);
    check("What did Ann buy?", &[], &[("The girl bought a ring.", "a ring")]);
    check("When did the siege end?", &[], &[("The conflict ended in 1945.", "1945")]);
    check("When did the soldiers attack?", &[], &[("A group of soldiers attacked in May.", "May")]);
}

#[test]
fn a_noun_behind_a_semicolon_is_not_what_is_stated_before() {
    let cod = "Add the cod and cook it for six minutes; the mussels come in for three.";
    check("How long are the mussels cooked?", &[(cod, "six")], &[(cod, "three")]);
    check("How long is the cod cooked?", &[], &[(cod, "six")]);
    let founded = ("It was founded in 1950; the clinic has grown since.", "1950");
    check("When was the clinic founded?", &[], &[founded]);
}

#[test]
fn the_noun_of_the_question_may_have_another_word_before_it() {
    let fee = ("The annual fee is 85 euros.", "85 euros");
    check("How much is the entrance fee?", &[fee], &[("The entrance fee is 5 euros.", "5 euros")]);
    check("How much is the annual fee?", &[], &[fee]);
    check("How much is the entrance fee?", &[], &[("The fee is 5 euros.", "5 euros")]);
    check("How much is the fee?", &[], &[fee]);
    check("When was the old bridge built?", &[], &[("The bridge was built in 1950.", "1950")]);
    let source = ("The primary source of water is a lake.", "a lake");
    check("What is the main source of water?", &[("The second source of water is a lake.", "a lake")], &[source]);
    let rate = ("It accepted 5.3% of applicants, the second lowest acceptance rate of all.", "5.3%");
    check("What is the admission rate?", &[("The inflation rate is 5.3%.", "5.3%")], &[rate]);
}

#[test]
fn a_phrase_of_the_question_may_have_another_noun() {
    let motor = ("The warranty of the motor is five years.", "five years");
    check("How long is the warranty of the motor?", &[], &[motor]);
    check("How long is the warranty of the pump?", &[motor], &[]);
    check("How long is the warranty of the machine?", &[], &[motor]);
    let seal = ("The warranty on the door seal is 2 years.", "2 years");
    check("How long is the warranty on the motor?", &[seal], &[]);
    let costs = "Shipping to Austria costs 4 euros, to Norway 9 euros; here it is free.";
    check("How much does shipping to Norway cost?", &[(costs, "4 euros")], &[(costs, "9 euros")]);
    check("How much does shipping to Austria cost?", &[(costs, "9 euros")], &[(costs, "4 euros")]);
    let duty = "In January Ann Lee has the duty, in February Tom Roe.";
    check("Who has the duty in January?", &[(duty, "Tom Roe")], &[(duty, "Ann Lee")]);
    let won = "In Rome, in June, Ann won the cup of the city.";
    check("Who won the cup in June?", &[], &[(won, "Ann")]);
    check("Who won the cup of the region?", &[], &[(won, "Ann")]);
    let minutes = "The team lost in the first round, with 11 points in the final three minutes.";
    check("How many points did they score in the last three minutes?", &[], &[(minutes, "11")]);
    check("Who led the regime of Sudan?", &[], &[("Sudan had a regime of Hassan Turabi.", "Hassan Turabi")]);
    let paid = "The rent is paid to the Lessor's daughter, Helene Oster.";
    check("Who is the daughter of the lessee?", &[(paid, "Helene Oster")], &[]);
    check("Who is the lessee's daughter?", &[(paid, "Helene Oster")], &[]);
    check("Who is the daughter of the lessor?", &[], &[(paid, "Helene Oster")]);
    let us = "Ann Lee is the head of the United States.";
    check("Who is the head of the US?", &[], &[(us, "Ann Lee")]);
    check("Who tried to close the gate?", &[], &[("Ann tried to shut the gate.", "Ann")]);
}

#[test]
fn a_phrase_of_the_question_is_in_the_part_of_the_sentence_with_the_answer() {
    let defects = "Defects are to be reported to the caretaker, Mr Emil Vasko, telephone 555-0142.";
    check("What is the telephone number of the landlord?", &[(defects, "555-0142")], &[]);
    check("What is the telephone number of the caretaker?", &[], &[(defects, "555-0142")]);
    let lasts = "The guarantee lasts three years for the appliance and one year for the glass jug.";
    check("How long does the guarantee on the filter last?", &[(lasts, "three years")], &[]);
    check("How long does the guarantee on the appliance last?", &[], &[(lasts, "three years")]);
    let stalls = "Stalls cost 15 pounds, and for charities they are free.";
    check("What does a stall cost for charities?", &[(stalls, "15 pounds")], &[(stalls, "free")]);
    let report = "The date is of the first report, which misquoted its own source, a report of Pell.";
    check("What was the source of the mistake?", &[(report, "a report of Pell")], &[]);
    check("What was the source of the report?", &[], &[(report, "a report of Pell")]);
    let bag = "It lasts ten years, and so does the strap.";
    check("How long does the lock of the bag last?", &[], &[(bag, "ten years")]);
    check("What is the number of the seats?", &[], &[("The hall holds 300 people.", "300")]);
    check("When did the club of the school win?", &[], &[("Pell Chess Club won in 1990.", "1990")]);
}

#[test]
fn what_a_sentence_excludes_it_tells_nothing_of() {
    let camera = "The camera weighs 2 kg without its leather case.";
    check("How heavy is the case of the camera?", &[(camera, "2 kg")], &[]);
    check("How heavy is the camera?", &[], &[(camera, "2 kg")]);
    check("How heavy is the camera without the case?", &[], &[(camera, "2 kg")]);
}

#[test]
fn another_word_in_the_place_of_one_of_the_question_is_another_thing() {
    let folk = "Skyclad, often regarded as the first folk metal band, was formed in Pell.";
    check("What is regarded as the first black metal band?", &[(folk, "Skyclad")], &[]);
    check("What is regarded as the first folk metal band?", &[], &[(folk, "Skyclad")]);
    let gates = "The cars of Wola have another type of number.";
    check("Which cars have the same type of number?", &[(gates, "Wola")], &[]);
    check("Which cars have another type of number?", &[], &[(gates, "Wola")]);
    let main = "Ann paid the large annual membership fee.";
    check("Who paid the large yearly membership fee?", &[], &[(main, "Ann")]);
}

#[test]
fn a_word_between_a_rank_and_its_noun_is_not_left_out() {
    let train = "A bridge collapsed, and the first train did not run until 12 May 1871.";
    check("When did the first tourist train run?", &[(train, "12 May 1871")], &[]);
    check("When did the first train run?", &[], &[(train, "12 May 1871")]);
    let tower = "The tallest tower is in Pell.";
    check("Where is the tallest wooden tower?", &[(tower, "Pell")], &[]);
    check("Where is the tallest tower?", &[], &[(tower, "Pell")]);
    check("Where is the tallest wooden tower?", &[], &[("The tallest tower, a wooden one, is in Pell.", "Pell")]);
    check("Where is the old wooden tower?", &[], &[("The old tower is in Pell.", "Pell")]);
    check("When did the last night bus leave?", &[("The last bus left at nine.", "nine")], &[]);
    check("Who was the second female doctor?", &[("The second doctor was Ann.", "Ann")], &[]);
    check("Who was the only survivor found?", &[], &[("The only survivor was Ann.", "Ann")]);
    let church = "The largest church is St. Ann.";
    check("What is the largest brick church?", &[(church, "St. Ann")], &[]);
    check("What is the largest known church?", &[], &[(church, "St. Ann")]);
}
