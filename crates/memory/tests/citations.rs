//! Citations: a quote equals the characters of its source from `start` to `end`, in every script.

use calls::Scripted;
use memory::rag::Rag;
use memory::{Citation, Settings, rag};
use proptest::prelude::*;
use sources::Source;
use store::PassageId;

use crate::scratch::{CONTEXT_TOKENS, Scratch, conversation, document, script};

fn rag() -> Settings {
    Settings { method: &Rag, ..Settings::default() }
}

/// Asks and checks every citation against the source.
fn cited(sources: &[Source], question: &str, answer: &str, settings: &Settings) -> Vec<Citation> {
    let scratch = Scratch::new();
    scratch.ingest(sources, &script(&[]), settings).expect("nothing is called");
    let caller = Scripted::new(CONTEXT_TOKENS).answer("answer", answer);
    let citations = scratch.ask(question, &caller, settings).answer.expect("the script is whole").citations;
    let corpus = scratch.corpus();
    for Citation { path, page, start, end, quote, .. } in &citations {
        let source = sources.iter().find(|source| source.path == *path).expect("a citation names its source");
        let chars = source.text.chars().skip(*start as usize).take((end - start) as usize);
        assert_eq!(chars.collect::<String>(), *quote);
        assert!(!quote.trim().is_empty());
        let span = corpus.passage(PassageId(*page)).expect("a citation names its page").span;
        assert!(*start < span.end_char && span.start_char < *end, "{start}..{end} is not on page {page}");
    }
    citations
}

fn quotes(citations: &[Citation]) -> Vec<&str> {
    citations.iter().map(|citation| citation.quote.as_str()).collect()
}

#[test]
fn the_sentence_that_says_it_is_quoted() {
    let check = |text: &str, answer: &str, want: &str| {
        let citations = cited(&[document("a.txt", &[text])], "What happened?", answer, &rag());
        assert_eq!(quotes(&citations).first(), Some(&want), "{answer}");
    };
    let wrapped = "The keeper of the light, Ada\r\nBrook, climbed the stairs each night. The harbour\r\nwall fell in November.\r\n";
    check(wrapped, "The wall fell in November.", "The harbour\r\nwall fell in November.");
    check(
        wrapped,
        "Ada Brook climbed the stairs.",
        "The keeper of the light, Ada\r\nBrook, climbed the stairs each night.",
    );
    check("她在一九一一年结婚。灯塔在海边很高。风暴来了。", "灯塔在海边。", "灯塔在海边很高。");
    check(
        "👩‍🚀 flew to the moon with Zoë. The 🚢 sank off the coast at noon.",
        "It sank off the coast.",
        "The 🚢 sank off the coast at noon.",
    );
    let combining = "Cafe\u{301} owner Jose\u{301} sold bread. The re\u{301}sume\u{301} was lost in the post.";
    check(combining, "the résumé was lost", "The re\u{301}sume\u{301} was lost in the post.");
}

#[test]
fn a_short_sentence_is_quoted_if_it_supports_the_answer_and_a_longer_one_that_does_not_is_not() {
    let quoted = |text: &str| {
        let citations = cited(&[document("a.txt", &[text])], "What happened?", "The ship sank.", &rag());
        quotes(&citations).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(quoted("Ada climbed the stairs of the light each night. The ship sank."), ["The ship sank."]);
    assert!(quoted("The ship. A ship of the company had left the harbour of Pell.").is_empty());
}

#[test]
fn the_turn_that_says_it_is_quoted() {
    let said = [
        ("Ann", "I bought a grey horse in Pell."),
        ("Bo", "Lovely!\nWhat is its name?"),
        ("Ann", "Its name is Comet."),
    ];
    let citations =
        cited(&[conversation("talk.json", &said)], "What is the name of the horse?", "Its name is Comet.", &rag());
    assert_eq!(quotes(&citations)[0], "Ann (D1:3): Its name is Comet.");
}

/// Found with pages of an 8k context, which split the sessions of conversations.
#[test]
fn a_turn_that_a_page_cuts_in_two_is_quoted_whole_and_once() {
    let long = "and then we walked along the beach ".repeat(4);
    let said = [
        ("Ann", long.as_str()),
        ("Bo", "My horse Comet won the race at Pell yesterday and I was proud of it"),
        ("Ann", &long),
    ];
    for page_tokens in 34..60 {
        let settings = Settings { page_tokens: Some(page_tokens), ..rag() };
        let citations =
            cited(&[conversation("talk.json", &said)], "Which horse won?", "Comet won the race at Pell.", &settings);
        let whole = "Bo (D1:2): My horse Comet won the race at Pell yesterday and I was proud of it";
        assert_eq!(quotes(&citations)[0], whole, "pages of {page_tokens} tokens");
        assert_eq!(quotes(&citations).iter().filter(|quote| **quote == whole).count(), 1);
    }
}

#[test]
fn a_sentence_that_a_page_cuts_in_two_is_quoted_from_its_second_half() {
    let text = "The old man told us at great length about his horse, which he had named Comet after the star.";
    let one = rag::Options { k: 1, ..rag::Options::default() };
    let settings = Settings { page_tokens: Some(10), ..rag().with_options(one) };
    let citations = cited(&[document("a.txt", &[text])], "Comet star", "Comet, after the star.", &settings);
    assert_eq!(quotes(&citations), [text]);
}

#[test]
fn a_citation_has_the_name_that_the_source_gives_to_its_page() {
    let (question, answer) = ("When did the ship sink?", "The ship sank in May.");
    let mut source = document("a.pdf", &["The light was lit in March.", "The ship sank in May."]);
    for (section, name) in source.sections.iter_mut().zip(["page 11", "page 12"]) {
        section.title = Some(name.to_owned());
    }
    let citations = cited(&[source], question, answer, &rag());
    assert_eq!((citations[0].page, citations[0].label.as_deref()), (2, Some("page 12")));
    let unnamed = cited(&[document("a.txt", &["The ship sank in May."])], question, answer, &rag());
    assert_eq!(unnamed[0].label, None);
}

/// Words of many scripts, and the separators between them.
fn texts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[a-z]{1,9}",
        "[A-Z][a-z]{1,5}[.!?,;:]",
        "[\u{4e00}-\u{4e40}]{1,6}[。！？]?",
        "[\u{ac00}-\u{ac40}]{1,4}",
        "[\u{5d0}-\u{5ea}]{1,6}",
        "[\u{915}-\u{939}]\u{93e}[\u{915}-\u{939}]\u{94d}।?",
        Just("👩‍👩‍👧‍👦".to_owned()),
        Just("🇨🇭".to_owned()),
        "[a-z][\u{300}-\u{304}]{1,3}",
        Just("“Oh!”".to_owned()),
        Just("#".to_owned()),
        Just("-".to_owned()),
    ];
    let gap = prop_oneof![
        8 => Just(" "),
        2 => Just("\n"),
        1 => Just("\r\n"),
        1 => Just("\n\n"),
        1 => Just("\u{2028}"),
        1 => Just("\u{a0}"),
        1 => Just("\u{3000}"),
        1 => Just(""),
    ];
    prop::collection::vec((word, gap), 1..120)
        .prop_map(|words| words.into_iter().flat_map(|(word, gap)| [word, gap.to_owned()]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_quote_is_in_its_document(text in texts(), answer in texts(), page_tokens in 3..80_usize) {
        let settings = Settings { page_tokens: Some(page_tokens), ..rag() };
        let source = document("any.txt", &[&text]);
        prop_assume!(!text.trim().is_empty());
        let answer = text.chars().step_by(2).take(20).collect::<String>() + &answer;
        cited(&[source], "what?", &answer, &settings);
    }

    #[test]
    fn every_quote_is_in_its_conversation(said in prop::collection::vec(texts(), 1..8), page_tokens in 3..80_usize) {
        let settings = Settings { page_tokens: Some(page_tokens), ..rag() };
        let turns: Vec<(&str, &str)> = said.iter().map(|text| ("Ann", text.as_str())).collect();
        cited(&[conversation("any.json", &turns)], "what did Ann say?", &said[0], &settings);
    }
}
