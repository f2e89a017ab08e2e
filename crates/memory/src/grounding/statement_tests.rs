//! Statements that a sentence of the evidence nearly makes, beside those that it makes in other words.

use super::{Checks, Verdict, check, verify};

/// Statements with a sentence that supports the second of each and not the first.
pub(super) fn tell_apart(cases: &[(&str, &str, &str)]) {
    let supports =
        |claim: &str, evidence: &str| matches!(verify(claim, &[evidence], Checks::default()), Verdict::Supported(_));
    let failed: Vec<String> = (cases.iter())
        .flat_map(|(wrong, right, evidence)| {
            let wrong =
                (!wrong.is_empty() && supports(wrong, evidence)).then(|| format!("supported: {wrong} | {evidence}"));
            let right = (!right.is_empty() && !supports(right, evidence))
                .then(|| format!("not supported: {right} | {evidence}"));
            [wrong, right]
        })
        .flatten()
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Statements that a sentence does not contradict.
fn are_not_contradicted(cases: &[(&str, &str)]) {
    for (claim, evidence) in cases {
        let verdict = verify(claim, &[evidence], Checks::default());
        assert!(!matches!(verdict, Verdict::Contradicted(_)), "{claim} | {evidence}");
    }
}

/// Whether an answer to a question is supported.
pub(super) fn answers(question: &str, answer: &str, evidence: &str) -> bool {
    check(question, answer, &[evidence], Checks::default())
        .iter()
        .all(|checked| matches!(checked.verdict, Verdict::Supported(_)))
}

#[test]
fn what_a_sentence_only_considers_is_not_supported() {
    tell_apart(&[
        ("Jim sold his watch.", "", "Did Jim sell his watch?"),
        ("Jim sold his watch.", "", "If Jim sold his watch, he is rich."),
        ("Jim sold his gold watch.", "", "Jim would have sold his gold watch."),
        ("Jim sold his watch.", "", "Perhaps Jim sold his watch."),
        ("Jim sold his watch.", "Jim wanted to sell his watch.", "Jim wanted to sell his watch."),
        ("Jim sold his watch.", "Jim will sell his watch.", "Jim will sell his watch."),
        ("Jim sold his watch.", "", "It is not true that Jim sold his watch."),
        ("Jim sold his watch.", "", "Jim almost sold his watch."),
        ("Jim sold his watch.", "", "Jim refused to sell his watch."),
        ("No one left the house.", "Everyone left the house.", "Everyone left the house."),
        ("", "The office opens on 3 May.", "The office will open on 3 May."),
        ("", "Ann went to Rome.", "Ann went to Rome to see if Tom was ill."),
        ("", "Jim sold his watch.", "Jim sold his watch, so he may be poor."),
    ]);
}

#[test]
fn an_exception_is_not_what_the_rest_of_the_sentence_states() {
    tell_apart(&[
        ("Jim bought a watch.", "Jim bought a chain.", "Jim bought a chain instead of a watch."),
        ("Ann left.", "Everyone left except Ann.", "Everyone left except Ann."),
        ("Everyone left.", "", "Everyone left except Ann."),
        ("Parking is forbidden.", "Parking is forbidden except on Mondays.", "Parking is forbidden except on Mondays."),
        ("", "Guests may enter.", "Guests may enter without a ticket."),
        ("", "The team won the match.", "The home team won the match without injuries."),
        ("Injuries won the match.", "", "The home team won the match without injuries."),
    ]);
    are_not_contradicted(&[
        ("Jim sold his watch in 1905.", "Jim did not sell his watch until 1905."),
        ("The team won the match.", "The home team won the match without injuries."),
        ("Jim sold his watch.", "Jim sold nothing but his old watch."),
        ("Tom led the coup in 1991.", "The failed coup was led by Tom in 1991."),
    ]);
}

#[test]
fn numbers_with_letters_codes_and_words_for_scales_are_compared() {
    tell_apart(&[
        ("The laptop has 8GB of memory.", "The laptop has 16 GB of memory.", "The laptop has 16GB of memory."),
        ("The firm paid £6m in 2010.", "The firm paid 5 million pounds in 2010.", "The firm paid £5m in 2010."),
        ("Version 1.2.4 fixed the fault.", "Version 1.2.3 fixed the fault.", "Version 1.2.3 fixed the fault."),
        ("A thousand men died there.", "100 men died there.", "A hundred men died there."),
        ("One ship sank near Kowal.", "Two ships sank near Kowal.", "Two ships sank near Kowal."),
        ("The shop opens at 9am.", "The shop opens at 8 a.m.", "The shop opens at 8am."),
        (
            "Ann was the second woman in the old choir of Lund.",
            "Ann was the 3rd woman in the choir.",
            "Ann was the third woman in the old choir of Lund.",
        ),
        (
            "It was built in the 18th century.",
            "It was built in the 19th century.",
            "It was built in the nineteenth century.",
        ),
        (
            "12 dollars of the exports were lost.",
            "12% of the exports were lost.",
            "12 per cent of the exports were lost.",
        ),
    ]);
}

#[test]
fn a_number_is_of_its_own_unit() {
    tell_apart(&[
        ("34 voters chose Luis.", "34 percent of the voters chose Luis.", "34% of the voters chose Luis."),
        ("Ann sold 7 cars.", "Ann sold 7 bikes.", "Ann sold 5 cars and 7 bikes."),
        ("The ships cost 5 million pounds.", "The ships cost $5 million.", "The ships cost $5 million."),
        ("", "7 cars were sold.", "7 old cars were sold."),
        ("500 men died there.", "Fewer than 500 men died there.", "Fewer than 500 men died there."),
        ("20 men died there.", "Between 10 and 20 men died there.", "Between 10 and 20 men died there."),
        (
            "Ann paid three parts of 3,720 euros each.",
            "Ann paid 3,720 euros in three parts.",
            "Ann paid a deposit of 3,720 euros in three equal parts.",
        ),
        ("", "The guests pay 5 euros each.", "Each of the guests pays 5 euros."),
        ("", "The tickets cost 5 euros each.", "The tickets cost 5 euros a person."),
    ]);
    are_not_contradicted(&[
        ("The fund raised over 5 million dollars.", "The fund raised 7 million dollars."),
        ("About 500 men came.", "498 men came."),
        ("At least 5 men came.", "8 men came."),
        ("15 men died there.", "Between 10 and 20 men died there."),
    ]);
}

#[test]
fn months_are_dates() {
    tell_apart(&[
        (
            "Ann met the mayor of the old town at the market in June.",
            "Ann met the mayor in July.",
            "Ann met the mayor of the old town at the market in July.",
        ),
        ("Ann met the old mayor in May.", "Ann met the old mayor in March.", "Ann met the old mayor in March."),
        ("", "Ann left on 3 May 1987.", "Ann left on the 3rd of May 1987."),
        ("", "Ann left in May 1987.", "Ann left in May of 1987."),
        ("", "Ann left on 5 September.", "Ann left on Sept. 5."),
    ]);
}

#[test]
fn a_value_belongs_to_the_words_of_its_clause() {
    tell_apart(&[
        ("Ann was born in 1960.", "Ann was born in 1950.", "Ann was born in 1950 and died in 1960."),
        ("Ann died in 1950.", "Ann died in 1960.", "Ann was born in 1950 and died in 1960."),
        ("Ann is 7.", "Bob is 7.", "Ann is 5 and Bob is 7."),
        ("Ann was born in 1960.", "Bob was born in 1960.", "Ann was born in 1950 and Bob in 1960."),
        ("", "Ann Lee returned in 1960.", "Ann Lee left in 1950 and returned to Rome in 1960."),
        ("", "Ann sold 7 cars in June.", "Ann sold 5 cars in May and 7 in June."),
        ("", "Ann died in 1960.", "In 1950 Ann left Rome, and in 1960, after the war, she died."),
        ("Bob is a nurse.", "Bob is a cook.", "Ann is a nurse and Bob is a cook."),
        ("Bob lives in Rome.", "Bob lives in Oslo.", "Ann lives in Rome and Bob lives in Oslo with two dogs."),
        ("Ann was born in Rome.", "Ann lives in Rome.", "Ann was born in Oslo and lives in Rome."),
        ("Ann died in Rome.", "Ann died in Oslo.", "Ann studied law in Rome until 1950 and died in Oslo in 1960."),
        ("Jim sold his watch to Ann.", "Jim sold his watch to Bob.", "Jim sold his watch to Bob, and Ann left."),
    ]);
}

#[test]
fn another_word_in_the_place_of_one_does_not_support() {
    tell_apart(&[
        (
            "Jim sold his silver watch to an old collector at the town fair.",
            "Jim sold his watch to a collector.",
            "Jim sold his gold watch to an old collector at the town fair.",
        ),
        (
            "Anna hat ihre alte Uhr gestern auf dem Markt in Rom verloren.",
            "",
            "Anna hat ihre alte Uhr gestern auf dem Markt in Rom verkauft.",
        ),
        ("The dog bit the man.", "The man bit the dog.", "The man bit the dog."),
        ("Bob came before Ann left.", "Ann left before Bob came.", "Ann left before Bob came."),
        ("", "The man was bitten by the dog.", "The dog bit the man."),
        ("Ann moved from Oslo to Rome.", "Ann moved to Oslo from Rome.", "Ann moved from Rome to Oslo."),
        ("The book was given to Bob by Ann.", "The book was given to Ann by Bob.", "The book was given to Ann by Bob."),
        ("", "Ann wrote to Cy and to Bob.", "Ann wrote to Bob and to Cy."),
        ("Few men left the town.", "Many men left the town.", "Many men left the town."),
        ("Higher prices reduce demand.", "Higher prices increase demand.", "Higher prices increase demand."),
        ("Wages fall every year.", "Wages grow every year.", "Wages grow every year."),
        (
            "The new rules of the old town hall cut the demand for hay in winter.",
            "The new rules of the old town hall increase the demand for hay.",
            "The new rules of the old town hall increase the demand for hay in winter.",
        ),
        ("", "Losses were reduced by 5 percent.", "Losses declined by 5 percent."),
        ("Ann often eats meat.", "Ann rarely eats meat.", "Ann rarely eats meat."),
    ]);
}

#[test]
fn a_rise_has_many_names() {
    tell_apart(&[
        ("Sales fell by 12 percent.", "Sales rose by 12 percent.", "Sales went up by 12 percent in May."),
        ("Wages fell by 3 percent.", "Wages rose by 3 percent.", "Wages climbed by 3 percent."),
        ("Rents increased in Rome.", "Rents decreased in Rome.", "Rents in Rome have gone down."),
        ("Rents in Rome went up by 5%.", "Rents in Rome went down by 5%.", "Rents in Rome went down by 5%."),
        ("Exports grew in 2020.", "Exports fell in 2020.", "Exports plunged in 2020."),
        ("Demand declined in May.", "Demand increased in May.", "Demand soared in May."),
        ("Prices rose in Rome.", "", "Prices in Rome are higher than before."),
        ("Prices in Rome rose.", "", "Prices in Rome were published."),
    ]);
    let yes = |_: &str, _: &str| Some(true);
    let judged = |claim: &str, evidence: &str| {
        let verdict = verify(claim, &[evidence], Checks { judge: Some(&yes), ..Checks::default() });
        matches!(verdict, Verdict::Supported(_))
    };
    assert!(judged("Prices rose in Rome.", "Prices in Rome are higher than before."));
    assert!(!judged("Prices rose in Rome.", "Prices in Rome have gone down."));
}

#[test]
fn a_word_that_takes_back_the_next_one_counts() {
    tell_apart(&[
        ("Ann is the president.", "Ann is the vice president.", "Ann is the vice president."),
        ("Lisbon is the largest city.", "Lisbon is the second largest city.", "Lisbon is the second largest city."),
        ("Bob is the mayor of Rome.", "", "Bob is the former mayor of Rome."),
        ("Holm paid for all parks.", "Holm paid for all other parks.", "Holm paid for all other parks."),
        ("", "Ann Lee left Rome.", "The former president Ann Lee left Rome."),
    ]);
}

#[test]
fn a_cause_is_not_what_it_causes() {
    let spring = "Exports fell because taxes rose in spring.";
    tell_apart(&[
        ("Taxes rose because exports fell.", "Exports fell because taxes rose.", spring),
        ("Because exports fell, taxes rose in spring.", "Because taxes rose, exports fell.", spring),
        ("", "Exports fell because taxes rose.", "Since taxes rose in spring, exports fell."),
    ]);
}

#[test]
fn a_name_that_is_only_addressed_does_not_act() {
    tell_apart(&[
        ("Melanie ran a race.", "Caroline ran a race.", "Caroline: Hey Melanie, I ran a race."),
        ("", "Caroline ran a race with Melanie.", "Caroline: I ran a race with Melanie."),
        ("The US left Kabul.", "", "They told us and left Kabul."),
    ]);
}

#[test]
fn spellings_of_the_same_words_are_equal() {
    tell_apart(&[
        ("", "Jos\u{e9} left Bogot\u{e1}.", "Jose\u{301} left Bogota\u{301}."),
        ("", "They are poor.", "They're poor."),
        ("", "They're poor.", "They are poor."),
        ("", "Della\u{2019}s hair was brown.", "Della's hair was brown."),
        ("", "Twenty-two men came.", "22 men came."),
        ("", "In 1950, the firm had 1,200 employees.", "The firm had 1200 employees in 1950."),
        ("", "The distance is 42 kilometres.", "The distance is 42 km."),
        ("", "The fee is $1,000.", "The fee is 1000 dollars."),
        ("", "Use port 8080.", "The server uses port 8080."),
        ("", "It cost 5 pounds.", "It cost \u{a3}5."),
    ]);
}

#[test]
fn words_that_only_ask_need_not_be_in_the_sentence() {
    for (question, answer, evidence) in [
        ("In what year did Ann move to Rome?", "1921", "Ann moved to Rome in 1921."),
        ("What percentage of the men left?", "34%", "34% of the men left."),
        ("Wo wohnt Anna?", "Rom", "Anna wohnt in Rom."),
        ("Wo wohnt Anna?", "In Rom.", "Anna wohnt in Rom."),
        ("Où habite Anna ?", "à Rome", "Anna habite à Rome."),
        ("¿Cuándo murió Ana?", "en 1921", "Ana murió en 1921."),
        ("Dove abita Anna?", "a Roma", "Anna abita a Roma."),
        ("Wer gründete Apple?", "Steve Jobs", "Steve Jobs gründete Apple."),
        ("Hat Anna ihre Uhr verkauft?", "Ja.", "Anna hat ihre Uhr verkauft."),
        ("What happened?", "灯塔在海边。", "灯塔在海边很高。"),
        ("法国的首都是哪里？", "巴黎", "法国的首都是巴黎。"),
    ] {
        assert!(answers(question, answer, evidence), "{question} {answer}");
    }
    for (question, answer, evidence) in [
        ("In what year did Ann move to Rome?", "1921", "Bob died in 1921."),
        ("In what year did Ann move to Rome?", "1921", "Ann left Rome in 1921."),
        ("What percentage of the men left?", "34%", "34% of the women stayed."),
        ("Wo wohnt Anna?", "Rom", "Tom wohnt in Rom."),
        ("Où habite Anna ?", "à Rome", "Anna est morte à Rome."),
        ("Wer stellte Apple ein?", "Steve Jobs", "Apple stellte Steve Jobs ein."),
        ("Hat Anna ihre Uhr verkauft?", "Nein.", "Anna hat ihre Uhr verkauft."),
        ("谁创立了苹果？", "巴黎", "法国的首都是巴黎。"),
    ] {
        assert!(!answers(question, answer, evidence), "{question} {answer}");
    }
}

#[test]
fn an_answer_about_another_does_not_answer() {
    for (question, answer, evidence) in [
        ("Does Bob live in Rome?", "No.", "Anna lives in Rome."),
        ("When did the Tate Modern open?", "It opened in 1987.", "The Louvre opened in 1987."),
        ("Who is Ann?", "Bob", "Ann met Bob."),
        ("What is Ann's watch made of?", "Her watch is gold.", "Bella's watch is gold."),
    ] {
        assert!(!answers(question, answer, evidence), "{question} {answer}");
    }
    for (question, answer, evidence) in [
        ("Was Ann born in Rome?", "No.", "Ann was born in Oslo."),
        ("Does Bob live in Rome?", "No.", "Bob does not live in Rome."),
        ("When did the Tate Modern open?", "It opened in 2000.", "The Tate Modern opened in 2000."),
        ("What is Ann's watch made of?", "Her watch is gold.", "Ann's watch is gold."),
        ("What is Ann's watch made of?", "It is gold.", "It is gold."),
    ] {
        assert!(answers(question, answer, evidence), "{question} {answer}");
    }
}

#[test]
fn a_short_statement_about_the_subject_of_the_question_is_checked_alone() {
    for (question, answer, evidence) in [
        ("Where does Anna reside?", "Anna lives in Rome.", "Anna lives in Rome with two cats."),
        ("Wo lebt Anna?", "Anna wohnt in Rom.", "Anna wohnt in Rom."),
        ("How does the river Orla run?", "The river flows north.", "The river flows north."),
    ] {
        assert!(answers(question, answer, evidence), "{question} {answer}");
    }
    for (question, answer, evidence) in [
        ("Where does Anna reside?", "Anna lives in Rome.", "Anna lives in Oslo."),
        ("What grew at Apple?", "Apple stores in Europe", "Apple stores in Europe closed in 1984."),
        ("What did Ann buy?", "Old abandoned house", "Bob painted an old abandoned house."),
        ("Wer kam mit Anna?", "Anna und Tom", "Anna und Tom schliefen."),
    ] {
        assert!(!answers(question, answer, evidence), "{question} {answer}");
    }
}

#[test]
fn the_subject_of_one_verb_is_not_that_of_another() {
    tell_apart(&[
        (
            "The mayor approved the budget.",
            "The budget was approved by the council.",
            "The council approved the budget on 3 March, although the mayor opposed it.",
        ),
        (
            "The Duke of Alba led the expedition.",
            "Maria Santos led the expedition.",
            "The expedition was led by Maria Santos and financed by the Duke of Alba.",
        ),
        (
            "Emma wrote the letter.",
            "Frank had written the letter.",
            "Emma showed Harriet the letter that Frank had written to Jane.",
        ),
        (
            "Police arrested Ray Holt.",
            "Lou Dean was arrested.",
            "Police questioned Ray Holt and arrested his partner, Lou Dean.",
        ),
        (
            "Czerny was taught by Haydn.",
            "Haydn taught Beethoven.",
            "Haydn taught Beethoven, and Beethoven taught Czerny.",
        ),
        ("Clara was born in Graz.", "Clara was born in Linz.", "Clara grew up in Graz, but she was born in Linz."),
        ("The farmer found the coin.", "A farmer's son found the coin.", "A farmer's son found the coin in 1999."),
        ("Ida is 14.", "Max is 14.", "Ida is three years younger than her brother Max, who is 14."),
        (
            "The company was founded in 1920.",
            "The company was founded in 1887 by two brothers.",
            "Founded in 1887 by two brothers, the company moved to Bern in 1920.",
        ),
        (
            "The city is 12 miles north of the village.",
            "The village is 12 miles north of the city.",
            "The village is about 12 miles north of the city.",
        ),
        ("", "Pell is the second largest port.", "The coast is home to Pell, the second largest port."),
        ("", "Ann choreographed Chopiniana.", "Music was used in the ballet Chopiniana, choreographed by Ann."),
        ("Sales grew by 8% in 2020.", "Sales grew by 8% in 2021.", "Sales grew by 12% in 2020 and by 8% in 2021."),
        ("", "31 students passed the exam.", "Of the 40 students, 31 passed the exam and nine failed."),
        (
            "Her father joined the firm of Karl Holm.",
            "She joined the firm of Karl Holm.",
            "In 1899 she joined the firm of Karl Holm, who had known her father.",
        ),
        ("", "Ann joined the firm.", "When she joined the firm, Ann was 20 years old."),
    ]);
}

#[test]
fn two_persons_with_the_same_last_name_are_told_apart() {
    let text = "John Miller works at the harbour. His cousin Peter Miller works at the airport.";
    tell_apart(&[
        ("John Miller works at the airport.", "John Miller works at the harbour.", text),
        ("Peter Miller works at the harbour.", "Peter Miller works at the airport.", text),
        ("", "J. Miller works at the harbour.", text),
    ]);
    assert!(!answers("Where does John Miller work?", "He works at the airport.", text));
}

#[test]
fn what_another_does_contradicts_only_what_one_alone_can_do() {
    let is_contradicted =
        |claim: &str, text: &str| matches!(verify(claim, &[text], Checks::default()), Verdict::Contradicted(_));
    are_not_contradicted(&[
        ("Bob lives in Rome.", "Anna lives in Rome."),
        ("Carl visited Paris in 2010.", "Maria visited Paris in 2010."),
    ]);
    assert!(is_contradicted("Bob is the mayor of Rome.", "Anna is the mayor of Rome."));
    assert!(is_contradicted("Bob won the race in Rome.", "Anna won the race in Rome."));
    assert!(is_contradicted("Anna lives in Oslo.", "Anna lives in Rome."));
}
