use super::resolved;

/// A question with its answer.
type Said = (&'static str, &'static str);

/// One earlier turn, the question after it, and the question that it becomes.
const REPLACED: [(Said, &str, &str); 32] = [
    // Persons.
    (("Who founded the company?", "Ada Example."), "When was he born?", "When was Ada Example born?"),
    (("Who founded Acme?", "Ada Example"), "Who taught her?", "Who taught Ada Example?"),
    (("Who founded Acme?", "Ada Example"), "What was her first job?", "What was Ada Example's first job?"),
    (
        ("Who founded Acme?", "Ada Example"),
        "Where did she study, and what did she sell?",
        "Where did Ada Example study, and what did she sell?",
    ),
    (
        ("Who founded Acme?", "Ada Example"),
        "What did she say before she left?",
        "What did Ada Example say before she left?",
    ),
    (
        ("Who founded Acme?", "Acme was founded by Ada Example in 1850."),
        "When was she born?",
        "When was Ada Example born?",
    ),
    (("When was Tom Reed born?", "1850"), "Who was his wife?", "Who was Tom Reed's wife?"),
    (("When was Tom Reed born?", "1850"), "He studied what in Paris?", "Tom Reed studied what in Paris?"),
    (("When was Tom Reed born?", "1850"), "Where did he marry Ann Lee?", "Where did Tom Reed marry Ann Lee?"),
    (("Who was Tom Reed's wife?", "Ann Lee"), "When did she die?", "When did Ann Lee die?"),
    (("Who was Tom Reed's wife?", "Ann Lee"), "When did he die?", "When did Tom Reed die?"),
    (("When did Dr. J. R. Ewing arrive?", "1911"), "What did he bring?", "What did Dr. J. R. Ewing bring?"),
    (("When were some of Reed's letters published?", "1920"), "Who met him?", "Who met Reed?"),
    // Things.
    (("Who founded Acme?", "Ada Example"), "When was it sold?", "When was Acme sold?"),
    (("Who founded Acme?", "Ada Example"), "What year was it sold?", "What year was Acme sold?"),
    (("Where is the Summer Theatre?", "Boston"), "When was it built?", "When was the Summer Theatre built?"),
    (("What is the capital of Poland?", "Warsaw"), "How large is it?", "How large is Warsaw?"),
    (("How long is the Rhine Gorge?", "65 km"), "Its rocks are how old?", "The Rhine Gorge's rocks are how old?"),
    (("When was the bridge built?", "1850"), "Who designed it?", "Who designed the bridge?"),
    (("When did the ship reach Boston?", "1850"), "Who built it?", "Who built the ship?"),
    (("When was Warsaw's stock exchange founded?", "1817"), "Who led it?", "Who led Warsaw's stock exchange?"),
    (
        ("What is the name of the highest tower?", "The Spire"),
        "What\u{2019}s it made of?",
        "What\u{2019}s the Spire made of?",
    ),
    (
        ("When did the European Convention on Human Rights begin?", "1953"),
        "Who signed it?",
        "Who signed the European Convention on Human Rights?",
    ),
    // Several, and groups.
    (("How many games did the Panthers win?", "15"), "Who coached them?", "Who coached the Panthers?"),
    (("How many games did the Panthers win?", "15"), "Who was their coach?", "Who was the Panthers' coach?"),
    (
        ("How many games did the Panthers win?", "15"),
        "How many points did they score?",
        "How many points did the Panthers score?",
    ),
    (("Who are Tom and Ann?", "Friends"), "Where did they meet?", "Where did Tom and Ann meet?"),
    (("Which team won in 2015?", "Denver"), "Who did they beat?", "Who did Denver beat?"),
    // Places, and nouns with "that" or "this".
    (("Where is the Summer Theatre?", "Boston"), "How many people live there?", "How many people live in Boston?"),
    (("How many schools are in Wales?", "90"), "Who travels from there?", "Who travels from Wales?"),
    (
        ("Which company built the V&A?", "Holland Works"),
        "Where was that company based?",
        "Where was Holland Works based?",
    ),
    (
        ("When did Los Angeles International Airport open?", "1930"),
        "Who runs this airport?",
        "Who runs Los Angeles International Airport?",
    ),
];

/// One earlier turn, and a question after it that stays as it is.
const LEFT: [(Said, &str); 30] = [
    // Two names of the same standing, or an answer that is not clear.
    (("Who did Tom Reed marry?", "Ann Lee"), "When was he born?"),
    (("When did Tom Reed and Bob Hill arrive?", "1911"), "Where did he live?"),
    (("When did the ship hit the bridge?", "1911"), "Who built it?"),
    (("Which team won Super Bowl 50?", "Denver Broncos"), "When was it played?"),
    (("Who founded Acme?", "Not in the documents."), "When was he born?"),
    (("What did the old man sell in Boston?", "a boat"), "Who bought it?"),
    // A mismatch in number, in gender, or of person and thing.
    (("Who founded Acme?", "Ada Example"), "Where did they go?"),
    (("Who was Tom Reed's wife?", "Ann Lee"), "Where did they go?"),
    (("When did Queen Anne die?", "1714"), "What did he write?"),
    (("When was Tom Reed born?", "1850"), "How tall is it?"),
    (("When did the University of Warsaw open?", "1816"), "When was he born?"),
    (("When was Acme founded?", "1850"), "What is found there?"),
    // A pronoun that may refer to something in its own question.
    (("When was Tom Reed born?", "1850"), "Which player broke his arm?"),
    (("When was Tom Reed born?", "1850"), "Who lost his watch?"),
    (("When was Tom Reed born?", "1850"), "What did the king say when he left?"),
    (("When was Tom Reed born?", "1850"), "Where did Bob Hill go after he left?"),
    (("When was Tom Reed born?", "1850"), "Before he died, what did Bob Hill write?"),
    (("When was Tom Reed born?", "1850"), "Who was Tom Reed when he left?"),
    (("When was Tom Reed born?", "1850"), "Did he defeat him?"),
    (("When was Acme founded?", "1850"), "How did the town get its name?"),
    (("When did the Panthers win?", "2015"), "How do bees find their hive?"),
    // Words that refer to nothing, and capitals.
    (("When was Acme founded?", "1850"), "Is it true that prices fell?"),
    (("When was Acme founded?", "1850"), "How long did it take to build the bridge?"),
    (("When was Acme founded?", "1850"), "Did it rain?"),
    (("When was Acme founded?", "1850"), "Who leads the IT department?"),
    (("How many schools are in Wales?", "90"), "Is there a museum?"),
    (("Which company built the V&A?", "Holland Works"), "Where was that team based?"),
    // No pronoun, and other languages.
    (("Who founded Acme?", "Ada Example"), "When?"),
    (("Wann wurde Tom Reed geboren?", "1850"), "Wo kommt er her?"),
    (("¿Cuándo nació Tom Reed?", "1850"), "¿Dónde he leído his?"),
];

#[test]
fn a_pronoun_is_replaced_by_what_the_turn_before_it_names() {
    for (turn, question, want) in REPLACED {
        assert_eq!(resolved(question, &[turn]).as_deref(), Some(want), "{question} after {turn:?}");
    }
}

#[test]
fn a_pronoun_without_one_clear_referent_stays() {
    for (turn, question) in LEFT {
        assert_eq!(resolved(question, &[turn]), None, "{question} after {turn:?}");
    }
    assert_eq!(resolved("When was he born?", &[]), None, "nothing is before it");
}

#[test]
fn pronouns_of_earlier_questions_are_replaced_first() {
    let founder = ("Who founded Acme?", "Ada Example");
    let cases: [(&[Said], &str, Option<&str>); 6] = [
        (&[founder, ("When was she born?", "1850")], "Where did she die?", Some("Where did Ada Example die?")),
        // "It" showed that Acme is a thing.
        (&[founder, ("When did it open?", "1850")], "Where was she born?", Some("Where was Ada Example born?")),
        (&[founder, ("Why?", "To sell boats.")], "Was she rich?", Some("Was Ada Example rich?")),
        // The last question names another thing.
        (&[founder, ("How high is the tower?", "90 m")], "Where did she live?", None),
        (&[founder, ("When did she buy it?", "1850")], "Did he sell it?", Some("Did he sell Acme?")),
        // Acme may be no person, and an earlier turn names one.
        (&[founder, ("When did Acme open?", "1850")], "Where was she born?", None),
    ];
    for (turns, question, want) in cases {
        assert_eq!(resolved(question, turns).as_deref(), want, "{question} after {turns:?}");
    }
}
