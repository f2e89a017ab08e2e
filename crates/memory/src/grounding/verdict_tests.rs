//! Verdicts on hand-written statements: true ones, and 160 that one changed name, place, number, date or negation makes false.

use chrono::NaiveDate;

use super::{Checks, DayOf, Place, Verdict, verify};

fn verdict(claim: &str, evidence: &str) -> Verdict {
    verify(claim, &[evidence], Checks::default())
}

fn is_supported(claim: &str, evidence: &str) -> bool {
    matches!(verdict(claim, evidence), Verdict::Supported(_))
}

/// A sentence, and words of it with what makes it false in their place.
type Fact = (&'static str, [(&'static str, &'static str); 5]);

const FACTS: [Fact; 32] = [
    (
        "Mara Lind opened the harbour office in Tromso on 3 May 1987.",
        [
            ("Mara Lind", "Olof Berg"),
            ("Tromso", "Bergen"),
            ("3 May", "4 May"),
            ("1987", "1978"),
            ("opened", "never opened"),
        ],
    ),
    (
        "The bridge over the Sava was finished by Petar Novak in 1932 with 14 arches.",
        [("Sava", "Drava"), ("Petar", "Ivan"), ("1932", "1923"), ("14", "41"), ("was", "was not")],
    ),
    (
        "In 2011 the Lisbon museum bought 230 drawings from Ines Duarte.",
        [
            ("2011", "2010"),
            ("Lisbon", "Porto"),
            ("230", "320"),
            ("Ines Duarte", "Rui Costa"),
            ("bought", "never bought"),
        ],
    ),
    (
        "Doctor Amal Haddad treated 65 sailors in Valletta during March 1944.",
        [("Amal Haddad", "Karim Haddad"), ("65", "56"), ("Valletta", "Tunis"), ("March", "April"), ("1944", "1945")],
    ),
    (
        "The river Orla froze for 19 days in 1956 near Kowal.",
        [("Orla", "Warta"), ("19", "9"), ("1956", "1965"), ("Kowal", "Torun"), ("froze", "never froze")],
    ),
    (
        "Keiko Mori won the Osaka marathon in 2 hours and 31 minutes in 2004.",
        [("Keiko Mori", "Yumi Sato"), ("Osaka", "Kobe"), ("31", "13"), ("2004", "2014"), ("won", "lost")],
    ),
    (
        "The Arden company employed 1,200 weavers in Leeds in 1871.",
        [("Arden", "Baxter"), ("1,200", "1,300"), ("Leeds", "York"), ("1871", "1817"), ("employed", "never employed")],
    ),
    (
        "Captain Ruiz sold the ship Aurora to Anton Weber for 5,000 pesos.",
        [
            ("Ruiz", "Lopez"),
            ("Aurora", "Esperanza"),
            ("Anton Weber", "Karl Weber"),
            ("5,000", "50,000"),
            ("sold", "bought"),
        ],
    ),
    (
        "The school in Galway was closed on 12 June 1990 because 40 windows were broken.",
        [("Galway", "Cork"), ("12 June", "21 June"), ("1990", "1991"), ("40", "14"), ("was", "was not")],
    ),
    (
        "Elena Petrova wrote three novels in Sofia before 1925.",
        [("Elena", "Maria"), ("three", "four"), ("Sofia", "Varna"), ("before", "after"), ("1925", "1935")],
    ),
    (
        "The tower in Ghent is 91 metres high and has 366 steps.",
        [("Ghent", "Bruges"), ("91", "19"), ("metres", "feet"), ("366", "336"), ("is", "is not")],
    ),
    (
        "Nora Quist is older than Per Quist, who was born in Malmo in 1969.",
        [("older", "younger"), ("Nora", "Anna"), ("Malmo", "Lund"), ("1969", "1996"), ("is", "is not")],
    ),
    (
        "Bishop Ansgar sent 7 monks to Birka in 829.",
        [("Ansgar", "Rimbert"), ("7", "17"), ("Birka", "Hedeby"), ("829", "892"), ("sent", "never sent")],
    ),
    (
        "About 34% of the voters in Oruro chose Luis Vargas in 2009.",
        [
            ("34%", "43%"),
            ("Oruro", "Potosi"),
            ("Luis Vargas", "Juan Rojas"),
            ("2009", "2005"),
            ("voters", "2000 voters"),
        ],
    ),
    (
        "The mine near Kiruna produced 2.5 million tons of ore in 1974.",
        [("Kiruna", "Falun"), ("2.5", "5.2"), ("million", "thousand"), ("tons", "barrels"), ("1974", "1947")],
    ),
    (
        "Professor Ito lent his telescope to Hana Abe on 30 November 1961.",
        [
            ("Ito", "Endo"),
            ("Hana Abe", "Yoko Abe"),
            ("30 November", "30 October"),
            ("1961", "1916"),
            ("lent", "never lent"),
        ],
    ),
    (
        "The train from Brno to Vienna left at 6 with 88 soldiers.",
        [("Brno", "Prague"), ("Vienna", "Linz"), ("6", "8"), ("88", "80"), ("left", "never left")],
    ),
    (
        "Queen Adela founded two abbeys in Normandy after 1066.",
        [("Adela", "Matilda"), ("two", "five"), ("Normandy", "Brittany"), ("after", "before"), ("1066", "1060")],
    ),
    (
        "The storm of 1703 destroyed 400 windmills in Kent.",
        [
            ("1703", "1730"),
            ("400", "40"),
            ("Kent", "Essex"),
            ("destroyed", "never destroyed"),
            ("windmills", "windmills of Holland"),
        ],
    ),
    (
        "Samir Khoury planted 90 olive trees behind the Baker house in 1999.",
        [("Samir", "Nabil"), ("90", "19"), ("Baker", "Miller"), ("1999", "1989"), ("planted", "never planted")],
    ),
    (
        "The parliament in Suva accepted the law on 1 July 2003 by 48 votes.",
        [("Suva", "Apia"), ("accepted", "rejected"), ("1 July", "1 June"), ("2003", "2013"), ("48", "84")],
    ),
    (
        "Greta Holm was the first woman in the Uppsala choir in 1938.",
        [("Greta Holm", "Karin Holm"), ("first", "last"), ("woman", "man"), ("Uppsala", "Lund"), ("1938", "1983")],
    ),
    (
        "The northern wall of Acre was repaired by Yusuf in 1250.",
        [("northern", "southern"), ("Acre", "Jaffa"), ("Yusuf", "Salim"), ("1250", "1205"), ("was", "was not")],
    ),
    (
        "Exports of Chile rose by 12 percent in 1988.",
        [("Chile", "Peru"), ("rose", "fell"), ("12", "21"), ("percent", "dollars"), ("1988", "1998")],
    ),
    (
        "The Corner Bakery in Dover has 25 kinds of bread and opened in February 2015.",
        [("Corner", "Station"), ("Dover", "Calais"), ("25", "52"), ("February", "January"), ("2015", "2005")],
    ),
    (
        "General Orlov lost 3,000 men at Plevna in 1877.",
        [("Orlov", "Popov"), ("3,000", "30,000"), ("Plevna", "Varna"), ("1877", "1887"), ("lost", "never lost")],
    ),
    (
        "Dina Roth can read eleven languages and lives in Zurich.",
        [("Dina", "Lea"), ("Roth", "Braun"), ("eleven", "twelve"), ("Zurich", "Basel"), ("can", "cannot")],
    ),
    (
        "The Falcon flew 640 kilometres from Nairobi to Moroni in May 1951.",
        [("Falcon", "Heron"), ("640", "460"), ("Nairobi", "Kampala"), ("Moroni", "Dodoma"), ("May 1951", "June 1951")],
    ),
    (
        "The oldest map of Quito was drawn in 1573 and is kept in Seville.",
        [("oldest", "youngest"), ("Quito", "Lima"), ("1573", "1537"), ("Seville", "Madrid"), ("was", "was not")],
    ),
    (
        "Tom Avery repaired 16 clocks for the Norwich cathedral in 1820.",
        [
            ("Tom Avery", "Tom Barnes"),
            ("16", "60"),
            ("Norwich", "Ely"),
            ("1820", "1802"),
            ("repaired", "never repaired"),
        ],
    ),
    (
        "Lake Sarez is deeper than 500 metres and was formed in 1911.",
        [("Sarez", "Balkhash"), ("500", "900"), ("metres", "miles"), ("1911", "1919"), ("is", "is not")],
    ),
    (
        "The Helsinki team had 11 players and won every game in 1958.",
        [("Helsinki", "Turku"), ("11", "12"), ("won", "lost"), ("every", "some"), ("1958", "1985")],
    ),
];

#[test]
fn at_most_two_percent_of_160_false_statements_are_supported() {
    let mut wrong = Vec::new();
    let mut all = 0;
    for (fact, changes) in FACTS {
        for (old, new) in changes {
            let claim = fact.replacen(old, new, 1);
            assert_ne!(claim, fact, "{old} is not in {fact}");
            all += 1;
            if is_supported(&claim, fact) {
                wrong.push(claim);
            }
        }
    }
    assert_eq!(all, 160);
    assert!(wrong.len() * 50 <= all, "{} of {all}: {wrong:#?}", wrong.len());
}

#[test]
fn what_the_source_says_is_supported() {
    let unsupported: Vec<&str> = FACTS.iter().map(|(fact, _)| *fact).filter(|fact| !is_supported(fact, fact)).collect();
    assert!(unsupported.is_empty(), "{unsupported:#?}");
}

#[test]
fn the_same_in_other_words_is_supported() {
    let pairs = [
        ("Amal Haddad treated sailors in Valletta in 1944.", FACTS[3].0),
        ("The Arden company employed 1.2 thousand weavers in Leeds.", FACTS[6].0),
        ("A. Weber bought nothing but the ship Aurora was sold by Ruiz.", FACTS[7].0),
        ("M. Lind opened the office in Tromso on 1987-05-03.", FACTS[0].0),
        ("Keiko Mori won the marathon in 2004.", FACTS[5].0),
        ("The mine near Kiruna produced 2,500,000 tons of ore.", FACTS[14].0),
        ("Greta Holm was the first woman in the choir.", FACTS[21].0),
        ("The museum bought two hundred and thirty drawings in 2011.", FACTS[2].0),
    ];
    let shown: Vec<bool> = pairs.iter().map(|(claim, evidence)| is_supported(claim, evidence)).collect();
    assert_eq!(shown, [true, true, false, true, true, true, true, true]);
}

#[test]
fn another_value_in_the_same_frame_contradicts() {
    let contradicted = |claim: &str, at: usize| matches!(verdict(claim, FACTS[at].0), Verdict::Contradicted(_));
    assert!(contradicted("The tower in Ghent is 19 metres high.", 10));
    assert!(contradicted("Keiko Mori lost the Osaka marathon in 2004.", 5));
    assert!(contradicted("The mine near Kiruna produced no ore.", 14));
    assert!(contradicted("The northern wall of Acre was repaired in 1205.", 22));
}

#[test]
fn what_the_source_does_not_speak_of_is_unsupported_and_not_contradicted() {
    for claim in
        ["Ghent has a famous market for flowers.", "She liked the colour green.", "In 1999 the king died in Spain."]
    {
        assert_eq!(verdict(claim, FACTS[10].0), Verdict::Unsupported, "{claim}");
    }
    assert_eq!(verdict("Yes.", FACTS[10].0), Verdict::Unsupported);
    assert_eq!(verify("The tower is high.", &[], Checks::default()), Verdict::Unsupported);
}

#[test]
fn roles_must_not_be_turned() {
    let evidence = "Brazil defeated Uruguay in the final.";
    assert!(is_supported("Brazil defeated Uruguay.", evidence));
    assert!(!is_supported("Uruguay defeated Brazil.", evidence));
    assert!(is_supported("Uruguay was defeated by Brazil.", evidence));
}

#[test]
fn a_function_word_that_is_a_name_is_compared_as_one() {
    let song = "The song was recorded by The Kinks in Leeds.";
    assert!(!is_supported("The song was recorded by The Who in Leeds.", song));
    assert!(is_supported("The song was recorded by The Who in Leeds.", &song.replace("Kinks", "Who")));
    assert!(!is_supported("The US army left Kabul.", "The British army left Kabul."));
    // A sentence inside a sentence begins with a capital too.
    let said = "The keeper said that he would light the lamp.";
    assert!(is_supported("The keeper said: \"However, he would light the lamp.\"", said));
}

#[test]
fn an_acronym_is_the_name_that_it_abbreviates() {
    for (claim, evidence) in [
        ("The US army left Kabul.", "The United States army left Kabul."),
        ("The U.S. army left Kabul.", "The US army left Kabul."),
        ("The United Kingdom left the union.", "The UK left the union."),
        ("Laws of the UK are old.", "The laws of the United Kingdom are old."),
    ] {
        assert!(is_supported(claim, evidence), "{claim}: {evidence}");
    }
    assert!(!is_supported("The United Kingdom left the union.", "The US left the union."));
    assert!(!is_supported("Ivan Torsky was tired.", "It was tired."));
}

#[test]
fn a_name_of_the_sentence_beside_does_not_replace_one_that_the_sentence_has() {
    let evidence = "The French army marched north. A British party left the fort, and Washington followed it.";
    assert!(is_supported("A British party left the fort.", evidence));
    assert!(!is_supported("A French party left the fort, and Washington followed it.", evidence));
    let game = "Newton led the team. Carolina won. With four minutes left, Anderson got the ball, and he scored.";
    assert!(!is_supported("With four minutes left, Carolina got the ball, and he scored.", game));
    // A pronoun may be replaced by the name that it refers to.
    let story = "Tom Reed built boats. In 1911 he married Ada Brook.";
    assert!(is_supported("In 1911 Tom Reed married Ada Brook.", story));
}

#[test]
fn a_speaker_without_a_name_is_no_name_of_the_sentences_beside() {
    assert!(!is_supported("Ida prefers the rolls.", "I prefer the rolls. Leo met Ida."));
    assert!(is_supported("Ida prefers the rolls.", "Ida prefers the rolls. Leo met Ida."));
    assert!(!is_supported("Aron sold a lamp.", "A man sold me a lamp. Leo met Aron."));
}

#[test]
fn a_name_that_acts_is_met_by_a_pronoun_that_can_act() {
    let came = "Elsa Brandt came to Oslo.";
    let taught = format!("{came} Karl Holm taught her the trade.");
    assert!(!is_supported("Elsa Brandt taught Karl Holm the trade.", &taught));
    assert!(is_supported("Elsa Brandt moved to Lund.", &format!("{came} She moved to Lund.")));
    assert!(is_supported("Elsa Brandt was hired in 1899.", &format!("{came} Karl Holm hired her in 1899.")));
}

#[test]
fn a_last_name_is_that_of_the_only_full_name_with_it_in_the_text() {
    let text = "Ana Duarte met the board. It was cold. The day was long. Duarte plans a bridge. It will be red.";
    assert!(is_supported("Ana Duarte plans a bridge.", text));
    assert!(!is_supported("Rui Duarte plans a bridge.", text));
    assert!(!is_supported("Ana Duarte plans a bridge.", &text.replace("The day", "With Rui Duarte the day")));
}

#[test]
fn a_number_with_its_unit_behind_it_is_a_number() {
    let evidence = "Catherine Ndereba ran 42km through Boston.";
    assert!(is_supported("Catherine Ndereba ran 42km.", evidence));
    assert!(!is_supported("Catherine Ndereba ran 45km through Boston.", evidence));
}

#[test]
fn similarity_can_only_take_support_away() {
    let (claim, evidence) = ("Keiko Mori won the marathon.", FACTS[5].0);
    let low = |_: &str, _: &str| -> f32 { 0.1 };
    let high = |_: &str, _: &str| -> f32 { 0.99 };
    assert_eq!(
        verify(claim, &[evidence], Checks { similarity: Some(&low), ..Checks::default() }),
        Verdict::Unsupported
    );
    let similar = Checks { similarity: Some(&high), ..Checks::default() };
    assert!(matches!(verify(claim, &[evidence], similar), Verdict::Supported(_)));
    assert!(!matches!(verify("Yumi Sato won the marathon.", &[evidence], similar), Verdict::Supported(_)));
}

#[test]
fn a_judge_decides_what_is_open_and_overrides_no_veto() {
    use std::cell::RefCell;
    let evidence =
        "The storm broke the wall. Keiko Mori won the Osaka marathon in 2004 under heavy rain. She was thirty.";
    let asked = RefCell::new(Vec::new());
    let judged = |claim: &str, says: Option<bool>| {
        asked.borrow_mut().clear();
        let judge = |_: &str, text: &str| {
            asked.borrow_mut().push(text.to_owned());
            says
        };
        let verdict = verify(claim, &[evidence], Checks { judge: Some(&judge), ..Checks::default() });
        (matches!(verdict, Verdict::Supported(_)), asked.borrow().len())
    };
    let open = "In 2004 Keiko Mori won the marathon of Osaka.";
    assert_eq!(judged(open, Some(true)), (true, 1));
    assert_eq!(*asked.borrow(), [evidence], "the judge reads the sentences beside it too");
    assert_eq!(judged(open, Some(false)), (false, 1));
    assert_eq!(judged(open, None), (true, 1), "without its word the words decide");
    let half = "Keiko Mori won the marathon easily under heavy rain.";
    assert!(!matches!(verify(half, &[evidence], Checks::default()), Verdict::Supported(_)));
    assert_eq!((judged(half, Some(true)), judged(half, None)), ((true, 1), (false, 1)));
    let whole = "Keiko Mori won the Osaka marathon in 2004 under heavy rain.";
    assert_eq!(judged(whole, Some(false)), (true, 0), "word for word");
    assert_eq!(judged("Keiko Mori won the Osaka marathon.", Some(false)), (false, 1), "a part of it");
    assert_eq!(judged("Yumi Sato won the marathon of Osaka.", Some(true)), (false, 0), "another name");
    assert_eq!(judged("Keiko Mori was born in a village near the sea.", Some(true)), (false, 0), "it is not there");
}

#[test]
fn relative_times_are_dates_of_a_text_whose_day_is_known() {
    let turns = "Ann: Yesterday I went to the museum with Tim. Tim: Last week I gave a talk at a school in Pell.";
    let day = |_: Place| NaiveDate::from_ymd_opt(2023, 7, 6);
    let verdict = |claim: &str, day: Option<DayOf<'_>>| verify(claim, &[turns], Checks { day, ..Checks::default() });
    let (museum, talk) = (
        "Ann went to the museum on 5 July 2023.",
        "Tim gave a talk at a school in Pell in the week before 6 July 2023.",
    );
    for claim in [museum, talk, "Ann went to the museum in July 2023."] {
        assert!(matches!(verdict(claim, Some(&day)), Verdict::Supported(_)), "{claim}");
        assert_eq!(verdict(claim, None), Verdict::Unsupported, "{claim}");
    }
    assert!(matches!(verdict("Ann went to the museum on 6 July 2023.", Some(&day)), Verdict::Contradicted(_)));
    assert!(!matches!(
        verdict("Tim gave a talk at a school in Pell on 6 July 2023.", Some(&day)),
        Verdict::Supported(_)
    ));
}

#[test]
fn the_judge_reads_the_day_of_a_text() {
    let seen = std::cell::RefCell::new(Vec::new());
    let judge = |_: &str, text: &str| {
        seen.borrow_mut().push(text.to_owned());
        Some(true)
    };
    let day = |_: Place| NaiveDate::from_ymd_opt(2023, 7, 6);
    let checks = Checks { day: Some(&day), judge: Some(&judge), ..Checks::default() };
    verify("Ann went to the museum on 5 July 2023.", &["Ann: I went to the museum yesterday."], checks);
    assert_eq!(seen.into_inner(), ["(6 July 2023) Ann: I went to the museum yesterday."]);
}

#[test]
fn the_speaker_of_a_turn_is_who_says_i() {
    let talk =
        "Caroline (D2:1): How are you?\nMelanie (D2:2): Hey! I ran a charity race on Saturday. My kids loved it.";
    let span = |claim: &str| match verdict(claim, talk) {
        Verdict::Supported(place) => Some(&talk[place.start..place.end]),
        _ => None,
    };
    let race = "Melanie (D2:2): Hey! I ran a charity race on Saturday.";
    assert_eq!(span("Melanie ran a charity race."), Some(race));
    assert_eq!(span("Melanie ran a charity race on Saturday."), Some(race));
    assert_eq!(span("Melanie ran a charity race on Sunday."), None);
    assert_eq!(span("Caroline ran a charity race."), None, "another speaker");
}

#[test]
fn a_negation_of_another_clause_is_no_contradiction() {
    let sold = "Jim, who had no money, sold his gold watch to Ann.";
    assert_eq!(verdict("Jim sold his gold watch.", sold), Verdict::Unsupported, "only a judge can tell");
    let yes = |_: &str, _: &str| Some(true);
    let judged = verify("Jim sold his gold watch.", &[sold], Checks { judge: Some(&yes), ..Checks::default() });
    assert!(matches!(judged, Verdict::Supported(_)));
    assert!(is_supported("Jim sold his watch.", "Without a word Jim left, and then Jim sold his watch."));
    let kept = "Jim, who was poor, did not sell his watch.";
    assert!(matches!(verdict("Jim sold his watch.", kept), Verdict::Contradicted(_)));
    assert!(is_supported("Jim did not sell his watch.", kept));
}

#[test]
fn names_in_another_order_are_compared_by_what_is_between_them() {
    for (claim, evidence) in [
        ("Paris is the capital of France.", "The capital of France is Paris."),
        ("Steve Jobs is the head of Apple.", "Apple's head is Steve Jobs."),
        ("Ann opened a shop in Paris.", "In Paris, Ann opened a shop."),
        ("Dr. Smith treated Ann.", "Smith treated Ann."),
    ] {
        assert!(is_supported(claim, evidence), "{claim}: {evidence}");
    }
    for (claim, evidence) in [
        ("Ann is the mother of Tim.", "Tim is the mother of Ann."),
        ("Ann is older than Tim.", "Tim is older than Ann."),
        ("Ann's teacher was Tim.", "Tim's teacher was Ann."),
        ("Apple's head sued Tim.", "Tim sued Apple's head."),
    ] {
        assert!(!is_supported(claim, evidence), "{claim}: {evidence}");
    }
}

#[test]
fn a_less_exact_date_is_no_rival() {
    let evidence = "The harbour office was opened in May 1987 by the king.";
    assert_eq!(verdict("The harbour office was opened on 3 May 1987.", evidence), Verdict::Unsupported);
    assert!(matches!(verdict("The harbour office was opened in June 1987.", evidence), Verdict::Contradicted(_)));
    assert!(is_supported("The harbour office was opened in the 1980s.", evidence));
    assert!(!is_supported("The harbour office was opened in 1980.", &evidence.replace("May 1987", "the 1980s")));
    assert!(is_supported(
        "The harbour office was opened on 3 May 1987.",
        &evidence.replace("in May 1987", "on 3.5.1987")
    ));
    assert!(!is_supported("The shop opened on Monday.", "The shop opened on Tuesday."));
}

#[test]
fn the_day_of_a_text_is_for_a_judge() {
    let day = |_: Place| NaiveDate::from_ymd_opt(2023, 7, 6);
    let yes = |_: &str, _: &str| Some(true);
    let claim = "On 6 July 2023 the board bought a boat.";
    let with =
        |judge| verify(claim, &["The board bought a boat."], Checks { day: Some(&day), judge, ..Checks::default() });
    assert_eq!(with(None), Verdict::Unsupported);
    assert!(matches!(with(Some(&yes)), Verdict::Supported(_)));
}

#[test]
fn the_opposite_is_not_supported_in_other_languages() {
    for (claim, evidence) in [
        ("Ana vendió su reloj.", "Ana no vendió su reloj."),
        ("Anna hat ihre Uhr verkauft.", "Anna hat ihre Uhr nicht verkauft."),
        ("Анна продала часы.", "Анна не продала часы."),
    ] {
        assert!(is_supported(claim, claim) && !is_supported(claim, evidence), "{claim}");
    }
}

#[test]
fn the_name_of_a_column_is_no_missing_name_of_a_row() {
    let hosts = "| Host | Manager | RAM |\n|---|---|---|\n| Birch | Sato | 256 GB |\n| Cedar | Holm | 64 GB |\n";
    assert!(!matches!(verdict("Birch has 256 GB of RAM.", hosts), Verdict::Contradicted(_)));
    assert!(!is_supported("Birch has 512 GB of RAM.", hosts) && !is_supported("Birch has 64 GB of RAM.", hosts));
}
