//! Answers that are chosen from the evidence, and verdicts on the statements of any answer.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use calls::{AdapterChoice, CallError, Finish, OnText, OutputFormat, Scripted, ScriptedScorer, reading};
use memory::direct::Direct;
use memory::grounding::NOT_THERE;
use memory::rag::{self, Rag};
use memory::{AnswerForm, Event, Profile, SearchTool, Settings, Statement, Support};

use crate::rules::Rules;
use crate::scratch::{Asked, CONTEXT_TOKENS, Scratch, calls_of, document, fallbacks, script, sessions};

const STORY: &str = include_str!("../../../samples/the-gift-of-the-magi.txt");

fn small() -> Settings {
    Settings { method: &Rag, profile: Some(Profile::Small), answer_form: AnswerForm::Short, ..Settings::default() }
}

fn paper() -> Settings {
    Settings { method: &Rag, ..Settings::default() }
}

/// A model that finds only this text likely.
fn sure_of(text: &'static str) -> Scripted {
    let scorer = ScriptedScorer::new(move |_, continuation| if continuation == text { -0.1 } else { -60.0 });
    Scripted::new(CONTEXT_TOKENS).scored(scorer)
}

fn story() -> Scratch {
    let scratch = Scratch::new();
    scratch.ingest(&[document("magi.txt", &[STORY])], &script(&[]), &paper()).expect("nothing is called");
    scratch
}

/// The pages of a document about a lighthouse.
const LIGHTHOUSE: [&str; 4] = [
    "The keeper Ada Brook lit the lamp of the lighthouse every evening at six.",
    "In November a storm broke the harbour wall near Pell.",
    "Ada Brook married the boat builder Tom Reed in 1911.",
    "The new lamp was bought in Paris for 900 crowns.",
];

fn lighthouse() -> Scratch {
    about_the_lighthouse(&LIGHTHOUSE)
}

/// The same on pages that are long enough to be blocks of their own.
fn lighthouse_in_blocks() -> Scratch {
    let rest = " Gulls cried above the grey water.".repeat(12);
    let pages = LIGHTHOUSE.map(|page| format!("{page}{rest}"));
    about_the_lighthouse(&pages.each_ref().map(String::as_str))
}

fn about_the_lighthouse(pages: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    scratch.ingest(&[document("pell.txt", pages)], &script(&[]), &paper()).expect("nothing is called");
    scratch
}

fn verdicts(statements: &[Statement]) -> Vec<(&str, Support)> {
    statements.iter().map(|statement| (statement.text.as_str(), statement.verdict)).collect()
}

#[test]
fn a_short_answer_is_the_span_that_the_model_finds_likely() {
    let scratch = story();
    for (question, span) in [
        ("What was the fob chain made of?", "platinum"),
        ("What did Jim sell?", "watch"),
        ("How much was the rent of the flat?", "$8 per week"),
    ] {
        let caller = sure_of(span);
        let asked = scratch.ask(question, &caller, &small());
        let answer = asked.answer.expect("scores are enough");
        assert_eq!((answer.answer.as_str(), answer.short.as_deref()), (span, Some(span)), "{question}");
        assert_eq!(answer.abstained, Some(false), "{question}");
        assert!(caller.seen().is_empty(), "nothing is generated");
        assert!(answer.citations.iter().all(|citation| STORY.contains(&citation.quote)));
    }
}

#[test]
fn a_model_that_writes_that_the_documents_do_not_hold_it_abstains() {
    let ask = |reply: &str| {
        let caller = Scripted::new(CONTEXT_TOKENS).answer("answer", reply);
        lighthouse().ask("Who founded Pell?", &caller, &paper()).answer.expect("it replies")
    };
    let withheld = ask("Not in the documents.");
    assert_eq!((withheld.abstained, withheld.statements.len()), (Some(true), 0));
    let in_words = ask("The text does not say who founded Pell.");
    assert_eq!((in_words.abstained, in_words.statements.len()), (Some(true), 0));
    let answered = ask("Ada Brook lit the lamp of the lighthouse.");
    assert_eq!((answered.abstained, answered.statements.len()), (None, 1));
}

#[test]
fn scoring_counts_in_the_usage_and_is_in_the_trace() {
    let caller = sure_of("platinum");
    let Asked { answer, events } = story().ask("What was the fob chain made of?", &caller, &small());
    let usage = answer.expect("scores are enough").usage;
    let scored = events.iter().find_map(|event| match event {
        Event::Score { step, scores, prompt_tokens, prompt, .. } => Some((step, scores, *prompt_tokens, prompt)),
        _ => None,
    });
    let (step, scores, prompt_tokens, prompt) = scored.expect("the trace has the scores");
    assert_eq!((step.as_str(), usage.calls, usage.prompt_tokens), ("answer.spans", 1, prompt_tokens));
    assert!(prompt_tokens > 50 && prompt.contains("platinum fob chain"));
    assert_eq!(scores.last().map(|score| score.text.as_str()), Some(NOT_THERE));
    let short = events.iter().any(|event| matches!(event, Event::Short { answers, .. } if answers[0] == "platinum"));
    assert!(short);
}

#[test]
fn the_sentence_of_the_text_that_holds_the_short_answer_states_it() {
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let caller = sure_of("platinum");
    let answer = story().ask("What was the fob chain made of?", &caller, &settings).answer.expect("scores are enough");
    assert!(answer.answer.starts_with("It was a platinum fob chain"), "{}", answer.answer);
    assert_eq!(answer.short.as_deref(), Some("platinum"));
    let [Statement { text, verdict: Support::Supported, citation: Some(citation), .. }] = &answer.statements[..] else {
        panic!("{:?}", answer.statements)
    };
    assert_eq!((text, &answer.citations[..]), (&answer.answer, std::slice::from_ref(citation)));
    assert!(STORY.contains(&citation.quote));
}

#[test]
fn a_short_answer_alone_is_supported_only_if_the_model_is_sure() {
    let support = |caller: &Scripted| {
        let answer = story().ask("What was the fob chain made of?", caller, &small()).answer;
        let answer = answer.expect("scores are enough");
        (answer.statements[0].verdict, answer.citations.len())
    };
    let (verdict, citations) = support(&torn("I do not know."));
    assert!(verdict != Support::Supported && citations == 0, "{verdict}");
}

/// A model that finds all texts equally likely and writes this reply.
fn torn(reply: &'static str) -> Scripted {
    Scripted::new(CONTEXT_TOKENS).scored(ScriptedScorer::new(|_, _| -1.0)).answer("answer", reply)
}

#[test]
fn where_no_span_is_clearly_best_the_model_writes_a_reply_and_spans_that_agree_with_it_are_preferred() {
    let question = "What did Jim sell?";
    for (reply, want) in [("Jim sold a gold watch.", "watch"), ("Jim sold the combs.", "combs")] {
        let caller = torn(reply);
        let Asked { answer, events } = story().ask(question, &caller, &small());
        let answer = answer.expect("scores and a reply are enough");
        let short = answer.short.expect("the story has an answer");
        assert!(short.to_lowercase().contains(want) && STORY.contains(&short), "{reply}: {short}");
        assert_eq!(caller.seen().len(), 1, "one reply is written");
        let scored = events.iter().filter(|event| matches!(event, Event::Score { .. })).count();
        assert_eq!((scored, answer.usage.calls), (2, 3), "the spans are scored before and after it");
    }
    let answer = story().ask(question, &torn("Jim sold a pizza."), &small()).answer.expect("a reply is enough");
    assert!(!answer.answer.contains("pizza"), "what the evidence does not hold is not answered: {}", answer.answer);
}

#[test]
fn a_question_that_the_text_does_not_speak_of_is_not_answered() {
    let caller = sure_of("platinum");
    let asked = story().ask("Which university did Abraham Lincoln attend in Helsinki?", &caller, &small());
    let answer = asked.answer.expect("scores are enough");
    assert_eq!(answer.answer, "Not in the documents.");
    assert_eq!((answer.abstained, answer.short), (Some(true), None));
    assert!(answer.answerable.is_some_and(|answerable| answerable < 0.5), "{:?}", answer.answerable);
    assert!(answer.citations.is_empty() && answer.statements.is_empty());
}

#[test]
fn without_a_scorer_the_surface_decides_and_nothing_is_called() {
    let caller = Scripted::new(CONTEXT_TOKENS);
    let asked = story().ask("What was the fob chain made of?", &caller, &small());
    let answer = asked.answer.expect("no call is needed");
    assert!(STORY.contains(&answer.short.expect("a span was chosen")));
    assert_eq!((caller.seen().len(), answer.usage.calls), (0, 0));
}

#[test]
fn options_and_rules_of_their_own_are_answered_by_generation() {
    let scratch = lighthouse();
    let choices = vec!["Tom Reed".to_owned(), "Bob Hill".to_owned()];
    let options = Settings { choices, ..small() };
    let caller = sure_of("Tom Reed").answer("answer", "[A]");
    let answer = scratch.ask("Whom did Ada Brook marry?", &caller, &options).answer.expect("the script is whole");
    assert_eq!((answer.answer.as_str(), answer.short), ("[A] Tom Reed", None));
    let [Statement { text, start, end, .. }] = &answer.statements[..] else { panic!("{:?}", answer.statements) };
    assert_eq!((text.as_str(), *start, *end), ("Tom Reed", 4, 12));
    let rules = Settings { answer_rules: Some("- Answer in French."), answer_form: AnswerForm::Free, ..small() };
    let caller = sure_of("Tom Reed").answer("answer", "Avec Tom Reed.");
    let answer = scratch.ask("Whom did Ada Brook marry?", &caller, &rules).answer.expect("the script is whole");
    assert_eq!(answer.answer, "Avec Tom Reed.");
}

/// A model with an adapter for reading, which writes this.
fn reader(reply: &str) -> Scripted {
    Scripted::new(CONTEXT_TOKENS).with_adapter(reading::ADAPTER).answer("answer.read", reply)
}

#[test]
fn a_model_that_is_trained_to_read_writes_the_answer_and_the_source_is_quoted() {
    let caller = reader("900 Crowns");
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let scratch = lighthouse_in_blocks();
    let answer = scratch.ask("How much did the new lamp cost?", &caller, &settings).answer.expect("a reply is enough");
    assert_eq!(answer.answer, "The new lamp was bought in Paris for 900 crowns.");
    assert_eq!(answer.short.as_deref(), Some("900 crowns"), "as the source has it");
    assert_eq!(answer.citations[0].quote, answer.answer);
    let seen = caller.seen();
    let messages: Vec<_> = seen.iter().map(|call| call.prompt.messages()).collect();
    let passages = |at: usize| messages[at][1].content.matches("pell\n").count();
    assert_eq!(
        (0..seen.len()).map(passages).collect::<Vec<_>>(),
        [1, 1, 1, 1, 3, 1, 1],
        "each block alone, then the best three, then two sentences"
    );
    for (call, messages) in seen.iter().zip(&messages) {
        assert_eq!(call.adapter, AdapterChoice::Named(reading::ADAPTER.into()));
        assert_eq!(messages[0].content, reading::SYSTEM);
        assert!(messages[1].content.ends_with("QUESTION\nHow much did the new lamp cost?"));
    }
    let first = &messages[0][1].content;
    assert!(first.starts_with("CONTEXT\n[1] pell\nThe new lamp was bought"), "the block that matches best: {first}");
    let sentence = &messages[5][1].content;
    assert!(
        sentence.starts_with("CONTEXT\n[1] pell\nThe new lamp was bought in Paris for 900 crowns.\n\n"),
        "{sentence}"
    );
}

#[test]
fn a_block_that_a_name_of_the_best_one_leads_to_is_read_together_with_it() {
    let films = [
        "Ann Lee is an actress who was featured in the film Musa. Ann Lee sings.",
        "Ann Roe directed a film that featured rain.",
        "Boats were featured in a picture about the harbour.",
        "The tram of the town was featured once.",
        "Musa was made by Kim Park in the snow. Musa ran for a year.",
    ];
    let rest = " Gulls cried above the grey water.".repeat(12);
    let text = films.map(|film| format!("{film}{rest}")).join("\n\n");
    let caller = reader("Kim Park");
    let scratch = about_the_lighthouse(&[text.as_str()]);
    scratch.ask("Who directed the film that featured Ann Lee?", &caller, &small()).answer.expect("a reply is enough");
    let calls = caller.seen();
    assert_eq!(calls.len(), films.len() + 3, "each block alone, then three together, and two sentences");
    let joint = calls[films.len()].prompt.messages()[1].content.clone();
    assert!(joint.contains("Ann Lee is an actress") && joint.contains("Musa was made by Kim Park"), "{joint}");
}

#[test]
fn a_page_about_a_name_of_the_best_block_is_looked_up() {
    let scratch = Scratch::new();
    let mut pages: Vec<String> = (1..=12).map(|tram| format!("Tram {tram} was featured in a film.")).collect();
    pages.insert(0, "Ann Lee was featured in the film Musa.".to_owned());
    pages.push("Musa was made by Kim Park in the snow.".to_owned());
    let named = |(at, page): (usize, &String)| document(&format!("{at}.txt"), &[page.as_str()]);
    let sources: Vec<_> = pages.iter().enumerate().map(named).collect();
    scratch.ingest(&sources, &script(&[]), &paper()).expect("nothing is called");
    let caller = reader("Kim Park");
    let settings = small().with_options(rag::Options { k: 1, ..rag::Options::default() });
    let question = "Who directed the film that featured Ann Lee?";
    let Asked { answer, events } = scratch.ask(question, &caller, &settings);
    answer.expect("a reply is enough");
    let looked_up =
        |event: &Event| matches!(event, Event::Search { queries, .. } if queries.iter().any(|query| query == "Musa"));
    assert!(events.iter().any(looked_up), "{events:?}");
    let prompts: Vec<String> =
        calls_of("answer.read", &caller).into_iter().map(|call| call.prompt.messages()[1].content.clone()).collect();
    assert!(prompts.iter().any(|prompt| prompt.contains("Musa was made by Kim Park")), "{prompts:?}");
    let dense = small().with_options(rag::Options { k: 1, search: SearchTool::Dense });
    let Asked { answer, events } = scratch.ask(question, &reader("Kim Park"), &dense);
    answer.expect("a reply is enough");
    assert!(!events.iter().any(looked_up), "a search by meaning alone searches for no words: {events:?}");
}

#[test]
fn a_reading_that_the_words_of_question_and_text_do_not_favour_is_no_supported_statement() {
    let caller = reader("900 crowns");
    let answer = lighthouse().ask("What did the lamp cost?", &caller, &small()).answer.expect("a reply is enough");
    assert_eq!((answer.short.as_deref(), answer.statements[0].verdict), (Some("900 crowns"), Support::Quoted));
    assert!(answer.citations.is_empty() && answer.statements[0].citation.is_some());
}

#[test]
fn a_reading_in_a_sentence_of_the_words_of_the_question_alone_is_supported() {
    let scratch = Scratch::new();
    let pages = ["Mara Lind opened the office in Tromso. Gulls cried above the grey water of the harbour."];
    scratch.ingest(&[document("tromso.txt", &pages)], &script(&[]), &paper()).expect("nothing is called");
    let answer = scratch.ask("Where did Mara Lind open the office?", &reader("Tromso"), &small()).answer;
    let answer = answer.expect("a reply is enough");
    assert_eq!((answer.short.as_deref(), answer.statements[0].verdict), (Some("Tromso"), Support::Supported));
    assert_eq!(answer.citations[0].quote, "Mara Lind opened the office in Tromso.");
}

#[test]
fn a_time_that_a_turn_gives_by_its_day_is_answered_with_the_date() {
    let turns = [("Ann", "Yesterday I took the children to the museum."), ("Bob", "I was at the lake last month.")];
    let source = sessions("talk.json", &[("session_1", "1:56 pm on 6 July, 2023", &turns)]);
    let scratch = Scratch::new();
    scratch.ingest(&[source], &script(&[]), &paper()).expect("nothing is called");
    let ask = |question: &str, reply: &str, answer_form: AnswerForm| {
        let settings = Settings { answer_form, ..small() };
        scratch.ask(question, &reader(reply), &settings).answer.expect("a reply is enough")
    };
    let answer = ask("When did Ann take the children to the museum?", "Yesterday", AnswerForm::Sentence);
    assert_eq!(answer.short.as_deref(), Some("5 July 2023"));
    assert!(answer.answer.contains("Yesterday I took the children"), "{}", answer.answer);
    let answer = ask("When was Bob at the lake?", "last month", AnswerForm::Short);
    assert_eq!((answer.answer.as_str(), answer.short.as_deref()), ("June 2023", Some("June 2023")));
    assert!(answer.statements[0].citation.as_ref().is_some_and(|place| place.quote.contains("last month")));
    let answer = ask("What does Bob call the time?", "last month", AnswerForm::Short);
    assert_eq!(answer.short.as_deref(), Some("last month"), "the question asks for no time");
}

#[test]
fn a_statement_with_a_time_is_answered_with_the_date_too() {
    let turns = [("Ann", "The official opening of my studio is tomorrow."), ("Bob", "I am glad.")];
    let source = sessions("talk.json", &[("session_1", "1:56 pm on 19 June, 2023", &turns)]);
    let scratch = Scratch::new();
    scratch.ingest(&[source], &script(&[]), &paper()).expect("nothing is called");
    let caller = reader("The official opening of my studio is tomorrow");
    let answer = scratch.ask("When does Ann open her studio?", &caller, &small()).answer.expect("a reply is enough");
    assert_eq!(answer.short.as_deref(), Some("20 June 2023"));
}

#[test]
fn which_of_two_options_is_the_first_is_decided_by_their_dates() {
    let pages = ["Lucie Moor (born 21 May 1985) is a Czech player. Rita Regg (born 27 November 1965) is a player."];
    let scratch = Scratch::new();
    scratch.ingest(&[document("players.txt", &pages)], &script(&[]), &paper()).expect("nothing is called");
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let caller = reader("Lucie Moor");
    let asked = scratch.ask("Which player was born first, Lucie Moor or Rita Regg?", &caller, &settings);
    let answer = asked.answer.expect("no reply is needed");
    assert_eq!((answer.short.as_deref(), answer.abstained), (Some("Rita Regg"), Some(false)));
    assert_eq!(answer.answer, "Rita Regg (born 27 November 1965) is a player.");
    assert_eq!(answer.statements[0].verdict, Support::Quoted, "one sentence compares nothing");
    assert!(calls_of("answer.read", &caller).is_empty());
    let asked = scratch.ask("Which player lives in Rome, Lucie Moor or Rita Regg?", &caller, &settings);
    assert_eq!(asked.answer.expect("a reply is enough").short.as_deref(), Some("Lucie Moor"));
}

#[test]
fn whether_two_are_the_same_is_decided_by_what_each_is_and_both_are_cited() {
    let pages = ["Medici is a board game. It is long.", "Senet is a board game of Egypt. Chess is a game of kings."];
    let scratch = Scratch::new();
    scratch.ingest(&[document("games.txt", &pages)], &script(&[]), &paper()).expect("nothing is called");
    let caller = reader("no");
    let ask = |question: &str, answer_form: AnswerForm| {
        let settings = Settings { answer_form, ..small() };
        scratch.ask(question, &caller, &settings).answer.expect("a reply is enough")
    };
    for form in [AnswerForm::Sentence, AnswerForm::Short] {
        let answer = ask("Are Medici and Senet both board games?", form);
        assert_eq!(
            (answer.answer.as_str(), answer.short.as_deref(), answer.abstained),
            ("yes", Some("yes"), Some(false))
        );
        assert_eq!(verdicts(&answer.statements), [("yes", Support::Supported)]);
        let quotes: Vec<&str> = answer.citations.iter().map(|citation| citation.quote.as_str()).collect();
        assert_eq!(quotes, ["Medici is a board game.", "Senet is a board game of Egypt."]);
        assert!(calls_of("answer.read", &caller).is_empty());
    }
    let answer = ask("Are Medici and Chess both board games?", AnswerForm::Short);
    assert_eq!((answer.short.as_deref(), answer.citations.len()), (Some("no"), 0), "the reader decides");
}

#[test]
fn yes_or_no_without_support_is_shown_as_the_sentence_that_comes_closest() {
    let (denied, shared) = ("The Tenant shall not sublet the flat or any part of it.", "The Tenant shares the garden.");
    let scratch = Scratch::new();
    let page = format!("{denied} {shared}");
    scratch.ingest(&[document("contract.txt", &[page.as_str()])], &script(&[]), &paper()).expect("nothing is called");
    let ask = |question: &str, reply: &str, answer_form: AnswerForm| {
        let settings = Settings { answer_form, ..small() };
        scratch.ask(question, &reader(reply), &settings).answer.expect("a reply is enough")
    };
    // The documents contradict what the model reads.
    let answer = ask("Can the tenant sublet the flat?", "yes", AnswerForm::Sentence);
    assert_eq!((answer.short.as_deref(), answer.probability, answer.abstained), (Some("no"), None, Some(false)));
    assert_eq!(verdicts(&answer.statements), [(denied, Support::Quoted)]);
    assert!(answer.answer == denied && answer.citations.is_empty());
    let answer = ask("Can the tenant sublet the flat?", "yes", AnswerForm::Short);
    assert_eq!((answer.answer.as_str(), answer.short.as_deref()), ("no", Some("no")));
    assert!(answer.citations.is_empty() && answer.probability.is_none());
    // No sentence decides it.
    let answer = ask("Is the garden closed in winter?", "no", AnswerForm::Sentence);
    assert_eq!((answer.answer.as_str(), answer.short.as_deref(), answer.probability), (shared, Some("no"), None));
    assert_eq!(verdicts(&answer.statements), [(shared, Support::Quoted)]);
    // No sentence has its words.
    let answer = ask("Is Paris old?", "yes", AnswerForm::Sentence);
    assert_eq!((answer.answer.as_str(), answer.probability), ("yes", None));
    assert_eq!(verdicts(&answer.statements), [("yes", Support::Unsupported)]);
}

#[test]
fn a_row_of_a_table_is_read_with_the_names_of_its_columns() {
    let scratch = Scratch::new();
    let page = "| Host | RAM |\n|---|---|\n| alder | 16 GB |\n| birch | 64 GB |";
    scratch.ingest(&[document("hosts.md", &[page])], &script(&[]), &paper()).expect("nothing is called");
    let caller = reader("64 GB");
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let answer = scratch.ask("How much RAM does birch have?", &caller, &settings).answer.expect("a reply is enough");
    assert_eq!((answer.answer.as_str(), answer.short.as_deref()), ("Host: birch | RAM: 64 GB", Some("64 GB")));
    let quote = answer.statements[0].citation.as_ref().map(|citation| citation.quote.as_str());
    assert_eq!(quote, Some("| birch | 64 GB |"), "as the source has it");
    let calls = calls_of("answer.read", &caller);
    let shown: Vec<String> = calls.iter().map(|call| call.prompt.messages()[1].content.clone()).collect();
    assert!(shown[0].contains("Host: birch | RAM: 64 GB") && !shown[0].contains("alder"), "{shown:?}");
}

#[test]
fn a_statement_has_no_mark_of_markdown_but_its_quote_has() {
    let scratch = Scratch::new();
    let page = "- The lamp of Pell was bought for 900 crowns.\n- It rained.";
    scratch.ingest(&[document("notes.md", &[page])], &script(&[]), &paper()).expect("nothing is called");
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let asked = scratch.ask("How much was paid for the lamp of Pell?", &reader("900 crowns"), &settings);
    let answer = asked.answer.expect("a reply is enough");
    assert_eq!(answer.answer, "The lamp of Pell was bought for 900 crowns.");
    let statement = &answer.statements[0];
    assert_eq!((statement.text.as_str(), statement.end as usize), (answer.answer.as_str(), answer.answer.len()));
    let quote = statement.citation.as_ref().map(|citation| citation.quote.as_str());
    assert_eq!(quote, Some("- The lamp of Pell was bought for 900 crowns."));
}

#[test]
fn a_number_answers_no_question_for_a_person() {
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let ask = |question: &str| {
        let asked = lighthouse().ask(question, &reader("1911"), &settings);
        asked.answer.expect("a reply is enough").short
    };
    assert_eq!(ask("When did Ada Brook marry Tom Reed?").as_deref(), Some("1911"));
    assert_ne!(ask("Who married Tom Reed?").as_deref(), Some("1911"));
}

#[test]
fn which_of_two_options_has_more_is_decided_by_their_numbers() {
    let pages = ["Rosa is a genus of 300 species of shrubs. Marsilea is a genus of ferns. There are 65 species."];
    let scratch = Scratch::new();
    scratch.ingest(&[document("plants.txt", &pages)], &script(&[]), &paper()).expect("nothing is called");
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let caller = reader("Marsilea");
    let asked = scratch.ask("Which genus has more species, Marsilea or Rosa?", &caller, &settings);
    let answer = asked.answer.expect("no reply is needed");
    assert_eq!((answer.short.as_deref(), answer.statements[0].verdict), (Some("Rosa"), Support::Quoted));
    assert_eq!(answer.answer, "Rosa is a genus of 300 species of shrubs.");
    assert!(calls_of("answer.read", &caller).is_empty());
}

#[test]
fn a_question_for_several_is_answered_by_the_whole_enumeration() {
    let pages = ["Mara Lind won the cup of Pell with Ajax, Porto and Celtic. Gulls cried above the grey water."];
    let scratch = Scratch::new();
    scratch.ingest(&[document("teams.txt", &pages)], &script(&[]), &paper()).expect("nothing is called");
    let ask = |question: &str, answer_form: AnswerForm| {
        let settings = Settings { answer_form, ..small() };
        scratch.ask(question, &reader("Porto"), &settings).answer.expect("a reply is enough")
    };
    let answer = ask("With which three teams did Mara Lind win the cup of Pell?", AnswerForm::Sentence);
    assert_eq!(answer.short.as_deref(), Some("Ajax, Porto and Celtic"));
    assert_eq!(answer.answer, "Mara Lind won the cup of Pell with Ajax, Porto and Celtic.");
    let answer = ask("With which team did Mara Lind win the cup of Pell?", AnswerForm::Short);
    assert_eq!(answer.short.as_deref(), Some("Porto"));
}

#[test]
fn what_another_speaker_says_of_himself_is_withheld() {
    let turns = [("Ann", "I was at home all summer."), ("Bob", "I sailed to Sweden in my boat last month.")];
    let source = sessions("talk.json", &[("session_1", "1:56 pm on 6 July, 2023", &turns)]);
    let scratch = Scratch::new();
    scratch.ingest(&[source], &script(&[]), &paper()).expect("nothing is called");
    let ask = |question: &str| scratch.ask(question, &reader("Sweden"), &small()).answer.expect("a reply is enough");
    assert_eq!(ask("Where did Bob sail to in his boat?").short.as_deref(), Some("Sweden"));
    let answer = ask("Where did Ann sail to in her boat?");
    assert_eq!((answer.short, answer.abstained), (None, Some(true)), "{}", answer.answer);
    assert!(answer.answerable.is_some_and(|likely| likely <= 0.2), "{:?}", answer.answerable);
    assert!(answer.note.is_some_and(|note| note.contains("whom the question does not name")));
}

#[test]
fn the_day_of_a_turn_counts_before_that_of_its_session() {
    let turns = [("Ann", "Hello Bob."), ("Ann", "I sold my first boat yesterday.")];
    let mut source = sessions("talk.json", &[("session_1", "1:56 pm on 1 July, 2023", &turns)]);
    source.sections[0].turns[1].time = Some("2023-07-09 08:00".to_owned());
    let scratch = Scratch::new();
    scratch.ingest(&[source], &script(&[]), &paper()).expect("nothing is called");
    let asked = scratch.ask("When did Ann sell her first boat?", &reader("yesterday"), &small());
    assert_eq!(asked.answer.expect("a reply is enough").short.as_deref(), Some("8 July 2023"));
}

#[test]
fn a_message_of_a_mailbox_has_a_day_too() {
    let mut source = document("mail.mbox", &["Dear Bob, I sold my first boat yesterday. Ann"]);
    source.sections[0].time = Some("2023-07-09 08:00 UTC".to_owned());
    let scratch = Scratch::new();
    scratch.ingest(&[source], &script(&[]), &paper()).expect("nothing is called");
    let asked = scratch.ask("When did Ann sell her first boat?", &reader("yesterday"), &small());
    assert_eq!(asked.answer.expect("a reply is enough").short.as_deref(), Some("8 July 2023"));
}

#[test]
fn an_answer_of_another_type_than_the_question_asks_for_is_chosen_again() {
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let greedy = (0..5).fold(Scripted::new(CONTEXT_TOKENS), |script, _| script.answer("answer.read", "Paris"));
    let caller = greedy.with_adapter(reading::ADAPTER).answer("answer.read", "900 crowns");
    let scratch = lighthouse_in_blocks();
    let answer = scratch.ask("How much did the lamp cost?", &caller, &settings).answer.expect("a reply is enough");
    assert_eq!(answer.short.as_deref(), Some("900 crowns"));
    let formats = calls_of("answer.read", &caller).into_iter().map(|call| call.output_format);
    let choices: Vec<Vec<String>> = formats
        .filter_map(|format| match format {
            OutputFormat::Choice(spans) => Some(spans),
            _ => None,
        })
        .collect();
    assert!(!choices.is_empty() && choices.iter().flatten().all(|span| span.contains("crowns")), "{choices:?}");
    // Words that have no number may still be when something happened.
    let caller = reader("In November");
    lighthouse().ask("When did the storm come?", &caller, &settings).answer.expect("a reply is enough");
    assert!(calls_of("answer.read", &caller).iter().all(|call| matches!(call.output_format, OutputFormat::Text)));
}

#[test]
fn an_answer_that_has_what_the_question_requires_comes_before_others() {
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    // The best block has the sum; the others have none, agree on a place, and leave nothing to choose from.
    let greedy = ["900 crowns", "Paris", "Paris", "Paris", "900 crowns"];
    let script = Scripted::new(CONTEXT_TOKENS).with_adapter(reading::ADAPTER);
    let caller = greedy.into_iter().fold(script, |script, reply| script.answer("answer.read", reply));
    let answer =
        lighthouse().ask("How much did the lamp cost?", &caller, &settings).answer.expect("replies are enough");
    assert_eq!(answer.short.as_deref(), Some("900 crowns"));
}

#[test]
fn a_misspelled_answer_takes_the_spelling_of_the_source() {
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let answer = |reply: &str| {
        lighthouse().ask("Whom did Ada Brook marry?", &reader(reply), &settings).answer.expect("a reply is enough")
    };
    let misspelled = answer("Tom Reid");
    assert_eq!(misspelled.short.as_deref(), Some("Tom Reed"));
    assert_eq!(misspelled.citations[0].quote, "Ada Brook married the boat builder Tom Reed in 1911.");
    assert_eq!(answer("Tim Rudd").short.as_deref(), Some("Tim Rudd"), "another name");
}

#[test]
fn a_conjunction_that_a_reading_begins_with_is_left_out() {
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let scratch = lighthouse();
    let answer =
        scratch.ask("Whom did Ada Brook marry?", &reader("and Tom Reed"), &settings).answer.expect("an answer");
    assert_eq!(answer.short.as_deref(), Some("Tom Reed"));
}

#[test]
fn a_model_that_is_trained_to_read_chooses_blocks_from_more_pages() {
    let pages: Vec<String> = (1..=12).map(|day| format!("On day {day} Ada Brook wrote about the boats.")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let scratch = Scratch::new();
    scratch.ingest(&[document("log.txt", &pages)], &script(&[]), &paper()).expect("nothing is called");
    let caller = reader("the boats");
    let settings = small().with_options(rag::Options { k: 1, ..rag::Options::default() });
    scratch.ask("What did Ada Brook write about?", &caller, &settings).answer.expect("a reply is enough");
    let prompts = calls_of("answer.read", &caller).into_iter().map(|call| call.prompt.messages()[1].content.clone());
    let lines: HashSet<String> = prompts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    assert_eq!(lines.iter().filter(|line| line.contains("Ada Brook wrote")).count(), 4, "{lines:?}");
}

/// The price was on another page than the hair, so a block had one of both.
#[test]
fn a_paragraph_that_a_page_cuts_in_two_is_read_whole() {
    for page_tokens in (100..220).step_by(20) {
        let settings = Settings { page_tokens: Some(page_tokens), ..small() };
        let scratch = Scratch::new();
        scratch.ingest(&[document("magi.txt", &[STORY])], &script(&[]), &settings).expect("nothing is called");
        let caller = reader("Twenty dollars");
        let question = "How much money did Della get for her hair?";
        let answer = scratch.ask(question, &caller, &settings).answer.expect("a reply is enough");
        let prompts =
            calls_of("answer.read", &caller).into_iter().map(|call| call.prompt.messages()[1].content.clone());
        let whole = |text: &String| text.contains("Will you buy my hair?") && text.contains("Twenty dollars,\" said");
        assert!(prompts.into_iter().any(|text| whole(&text)), "pages of {page_tokens} tokens");
        assert_eq!(answer.short.as_deref(), Some("Twenty dollars"));
        assert!(answer.statements.iter().all(|statement| statement.citation.is_some()), "{:?}", answer.statements);
    }
}

#[test]
fn a_model_that_is_trained_to_read_may_find_nothing() {
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let caller = reader(reading::NOT_FOUND);
    let answer = lighthouse().ask("What did the boat cost?", &caller, &settings).answer.expect("a reply is enough");
    assert_eq!((answer.answer.as_str(), answer.short, answer.abstained), ("Not in the documents.", None, Some(true)));
    let unlikely = answer.answerable.expect("it is estimated");
    let caller = reader("900 crowns");
    let answer = lighthouse().ask("What did the boat cost?", &caller, &settings).answer.expect("a reply is enough");
    assert!(answer.answerable.is_some_and(|likely| likely > unlikely + 0.3), "{:?} {unlikely}", answer.answerable);
}

#[test]
fn words_of_its_own_are_checked_against_the_sources() {
    let settings = Settings { answer_form: AnswerForm::Sentence, ..small() };
    let caller = reader("Bob Hill");
    let answer = lighthouse().ask("Whom did Ada Brook marry?", &caller, &settings).answer.expect("a reply is enough");
    assert_eq!((answer.answer.as_str(), answer.short.as_deref()), ("Bob Hill", Some("Bob Hill")));
    assert!(answer.citations.is_empty() && answer.statements[0].verdict != Support::Supported);
}

#[test]
fn a_cut_reply_is_no_answer_of_a_reader() {
    let caller =
        sure_of("Tom Reed").with_adapter(reading::ADAPTER).ended("answer.read", "Tom Reed Tom", Finish::Length);
    let answer = lighthouse().ask("Whom did Ada Brook marry?", &caller, &small()).answer.expect("scores are enough");
    assert_eq!(answer.short.as_deref(), Some("Tom Reed"), "a span is chosen instead");
}

#[test]
fn a_chosen_answer_is_streamed_once_it_is_chosen() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = Arc::clone(&heard);
    let on_text = OnText::new(move |piece| {
        listening.lock().unwrap_or_else(PoisonError::into_inner).push(piece.to_owned());
    });
    let asked = story().ask_aloud("What was the fob chain made of?", &sure_of("platinum"), &small(), on_text);
    assert_eq!(asked.answer.expect("scores are enough").answer, "platinum");
    assert_eq!(*heard.lock().unwrap_or_else(PoisonError::into_inner), ["platinum"]);
}

/// The answer of a large model to a question about the lighthouse.
fn said(question: &str, answer: &str) -> memory::Answer {
    let caller = script(&[("answer", answer)]);
    lighthouse().ask(question, &caller, &paper()).answer.expect("the script is whole")
}

#[test]
fn a_number_that_the_source_has_otherwise_is_contradicted_and_not_cited() {
    let answer = said("What did the lamp cost?", "The new lamp was bought in Paris for 500 crowns.");
    let [statement] = &answer.statements[..] else { panic!("{:?}", answer.statements) };
    assert_eq!(statement.verdict, Support::Contradicted);
    let against = statement.citation.as_ref().expect("the span that says otherwise");
    assert_eq!(against.quote, "The new lamp was bought in Paris for 900 crowns.");
    assert!(answer.citations.is_empty());
}

#[test]
fn only_supported_statements_have_citations() {
    let text = "The new lamp was bought in Paris. Ada Brook sold the lighthouse to the king.";
    let answer = said("What happened?", text);
    let want = [
        ("The new lamp was bought in Paris.", Support::Supported),
        ("Ada Brook sold the lighthouse to the king.", Support::Unsupported),
    ];
    assert_eq!(verdicts(&answer.statements), want);
    let quotes: Vec<&str> = answer.citations.iter().map(|citation| citation.quote.as_str()).collect();
    assert_eq!(quotes, ["The new lamp was bought in Paris for 900 crowns."]);
    let second = &answer.statements[1];
    assert_eq!(&text[second.start as usize..second.end as usize], second.text);
    assert!(second.citation.is_none());
}

#[test]
fn yes_is_cited_by_what_the_question_states() {
    let quotes = |question: &str, answer: &str| {
        let citations = said(question, answer).citations;
        citations.into_iter().map(|citation| citation.quote).collect::<Vec<_>>()
    };
    let wedding = "Ada Brook married the boat builder Tom Reed in 1911.";
    assert_eq!(quotes("Did Ada Brook marry Tom Reed?", "Yes."), [wedding]);
    assert!(quotes("Did Ada Brook marry Tom Reed?", "No.").is_empty());
    assert!(quotes("Did Ada Brook marry the king of Spain?", "Yes.").is_empty());
    // The small profile decides it by the same comparison.
    let caller = sure_of("yes");
    let answer = lighthouse().ask("Did Ada Brook marry Tom Reed?", &caller, &small()).answer;
    let answer = answer.expect("scores are enough");
    assert_eq!((answer.answer.as_str(), answer.citations[0].quote.as_str()), ("yes", wedding));
}

#[test]
fn verdicts_need_no_vectors() {
    let settings = Settings { method: &Direct, ..Settings::default() };
    let caller = script(&[("answer", "A storm broke the harbour wall.")]);
    let answer = lighthouse().ask("What happened in November?", &caller, &settings).answer;
    assert_eq!(answer.expect("the script is whole").statements[0].verdict, Support::Supported);
}

/// Two statements whose words are in the text in another order.
const REORDERED: &str =
    "Every evening at six Ada Brook lit the lamp. Near Pell a storm broke the wall of the harbour in November.";

fn judged() -> Settings {
    Settings { profile: Some(Profile::Paper), ..paper() }
}

#[test]
fn a_large_judge_is_asked_about_statements_that_the_words_leave_open() {
    let reply = |call: &calls::Call| {
        let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
        match call.step {
            "answer" => format!("{REORDERED} The new lamp was bought in Paris for 900 crowns."),
            "answer.verify" if prompt.contains("STATEMENT:\nEvery evening") => "yes".to_owned(),
            "answer.verify" if prompt.contains("STATEMENT:\nNear Pell") => "no".to_owned(),
            step => panic!("{step}: {prompt}"),
        }
    };
    let caller = Rules::new(CONTEXT_TOKENS, reply);
    let Asked { answer, events } = lighthouse().ask("What happened?", &caller, &judged());
    let answer = answer.expect("every call has a reply");
    let verdicts: Vec<Support> = answer.statements.iter().map(|statement| statement.verdict).collect();
    assert_eq!(verdicts, [Support::Supported, Support::Unsupported, Support::Supported]);
    assert_eq!((caller.rounds(), caller.most_at_once()), (2, 2), "both are asked about at the same time");
    let outputs: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Call { step, output, .. } if step == "answer.verify" => Some(output.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((outputs.len(), answer.usage.calls), (2, 3), "the trace and the usage have the calls: {outputs:?}");
    assert_eq!(answer.citations.len(), 2, "{:?}", answer.citations);
}

#[test]
fn no_judge_is_asked_in_the_small_profile_nor_by_benchmarks_nor_of_unknown_size() {
    let rules = Settings { answer_rules: Some("- Be brief."), answer_form: AnswerForm::Free, ..judged() };
    let small = Settings { answer_rules: Some("- Be brief."), answer_form: AnswerForm::Free, ..small() };
    for settings in [paper(), rules, small] {
        let caller = script(&[("answer", REORDERED)]);
        let answer = lighthouse().ask("What happened?", &caller, &settings).answer.expect("the script is whole");
        assert_eq!(caller.steps(), ["answer"]);
        assert!(answer.statements.iter().all(|statement| statement.verdict == Support::Supported), "{answer:?}");
    }
}

#[test]
fn the_words_decide_where_the_judge_gives_no_word() {
    let cut = script(&[("answer", REORDERED)]).ended("answer.verify", "", Finish::Length);
    let Asked { answer, events } = lighthouse().ask("What happened?", &cut, &judged());
    let answer = answer.expect("the script is whole");
    assert!(answer.statements.iter().all(|statement| statement.verdict == Support::Supported), "{answer:?}");
    assert!(fallbacks(&events).iter().all(|(step, _)| *step == "answer.verify") && !fallbacks(&events).is_empty());
    let call = &calls_of("answer.verify", &cut)[0];
    assert_eq!(call.output_format, OutputFormat::Choice(vec!["yes".into(), "no".into()]));
    let other = CallError::OutOfForm { step: "answer.verify", reason: "it is none of the 2 choices".into() };
    let maybe = script(&[("answer", REORDERED)]).fail("answer.verify", other);
    let answer = lighthouse().ask("What happened?", &maybe, &judged()).answer.expect("the answer is written already");
    assert!(answer.statements.iter().all(|statement| statement.verdict == Support::Supported), "{answer:?}");
}
