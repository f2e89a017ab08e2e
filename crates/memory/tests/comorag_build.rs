//! ComoRAG's layers (paper 003, section 2.2): what the build stores, that a killed build resumes, and that removing a
//! document removes exactly what was derived from it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use calls::{Call, Finish, Scripted};
use memory::comorag::{Comorag, Knowledge, Options};
use memory::{Missing, Profile, Settings};
use sources::Source;
use store::{Corpus, Digest, Error, Layer};

use crate::fill;
use crate::killed::{Killed, Stored, log, write_down};
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, calls_of, document, fallbacks, input};

const KINDS: [&str; 4] = ["comorag.entity/1", "comorag.fact/1", "comorag.summary/1", "comorag.window/1"];

fn settings() -> Settings {
    let comorag = Options { chunk_tokens: 12, ..Options::default() };
    Settings { method: &Comorag, ..Settings::default().with_options(comorag) }
}

/// A text of `chunks` chunks.
fn story(path: &str, chunks: usize) -> Source {
    let words = ["lamp", "harbour", "wedding", "storm", "keeper", "crown", "boat"];
    let sentence =
        |chunk: usize| format!("{path} {chunk} tells of one {} and two more things there. ", words[chunk % 7]);
    document(path, &[&(0..chunks).map(sentence).collect::<String>()])
}

fn sources() -> Vec<Source> {
    vec![story("ann", 30), story("bob", 5), story("cat", 1)]
}

/// The property that distinguishes one call from another.
fn mark(call: &Call) -> String {
    let turns: Vec<String> = call.prompt.messages().into_iter().map(|message| message.content).collect();
    let mut texts = vec![call.step];
    texts.extend(turns.iter().map(String::as_str));
    format!("m{}", &Digest::of(&texts).to_string()[..12])
}

/// Every reply names its call.
fn reply(call: &Call) -> String {
    let mark = mark(call);
    match call.step {
        "comorag.entities" => format!(r#"{{"named_entities":["{mark}"]}}"#),
        "comorag.triples" => {
            let words: Vec<String> = input(call, "PASSAGE").split_whitespace().map(str::to_owned).collect();
            serde_json::json!({ "triples": [[words[0], "tells of", words[5]], [words[0], mark, "things"]] }).to_string()
        }
        "comorag.summarize" | "comorag.narrate" => format!("Summary {mark}"),
        other => panic!("no test asks for {other} here"),
    }
}

/// Every marker of a reply that is stored.
fn stored(corpus: &Corpus) -> Result<BTreeSet<String>, Error> {
    let mut texts = Vec::new();
    for chunk in corpus.passages(Layer::Chunk)? {
        texts.extend(corpus.notes(chunk.id)?.into_iter().map(|note| note.text));
    }
    for kind in KINDS {
        texts.extend(corpus.derived(kind)?.into_iter().map(|derived| derived.text));
    }
    let is_mark = |word: &&str| word.len() == 13 && word.starts_with('m');
    let words = texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    Ok(words.filter(is_mark).map(str::to_owned).collect())
}

fn build(folder: &Path, sources: &[Source]) -> Outcome {
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        write_down(folder, &mark(call));
        reply(call)
    });
    Scratch::at(folder).ingest(sources, &caller, &settings())?;
    Ok(())
}

#[test]
fn every_layer_covers_every_chunk() -> Outcome {
    let scratch = Scratch::new();
    assert_eq!(scratch.writer().counts()?.documents, 0);
    build(scratch.folder(), &sources())?;
    let corpus = scratch.corpus();
    corpus.verify()?;
    let chunks: Vec<_> = corpus.passages(Layer::Chunk)?.into_iter().map(|chunk| chunk.id).collect();
    assert!(chunks.len() > 30, "{} chunks", chunks.len());
    for document in corpus.documents()? {
        let text = corpus.document_text(document.id)?;
        let of_document = corpus.passages_of(document.id, Layer::Chunk)?;
        let cut: String = of_document.iter().map(|chunk| &text[chunk.span.bytes()]).collect();
        assert_eq!(cut, text, "chunks are the text, whole and in order");
    }
    for kind in KINDS {
        let covered: BTreeSet<_> = corpus.derived(kind)?.into_iter().flat_map(|derived| derived.sources).collect();
        assert_eq!(covered.len(), chunks.len(), "{kind}");
        assert_eq!(corpus.derived_without_vectors(kind, "letters")?, [], "{kind}");
    }
    for window in corpus.derived("comorag.window/1")? {
        let documents: BTreeSet<_> = window
            .sources
            .iter()
            .map(|chunk| corpus.passage(*chunk).map(|chunk| chunk.document))
            .collect::<Result<_, _>>()?;
        assert_eq!(documents.len(), 1, "a window is of one document");
    }
    assert_eq!(scratch.missing(&settings()), Missing::default());
    Ok(())
}

#[test]
fn what_is_built_is_not_built_again() -> Outcome {
    let scratch = Scratch::new();
    build(scratch.folder(), &sources())?;
    let (calls, digest) = (log(scratch.folder()), scratch.corpus().digest()?);
    let different: BTreeSet<&String> = calls.iter().collect();
    assert_eq!(different.len(), calls.len(), "no call is made twice");
    build(scratch.folder(), &sources())?;
    assert_eq!(log(scratch.folder()).len(), calls.len());
    assert_eq!(scratch.corpus().digest()?, digest);
    // Another document adds its own calls only.
    build(scratch.folder(), &[story("dan", 4)])?;
    let new = log(scratch.folder()).split_off(calls.len());
    assert!(new.iter().all(|call| !calls.contains(call)));
    assert!(!new.is_empty());
    Ok(())
}

#[test]
fn only_the_layers_in_use_are_built() -> Outcome {
    let check = |layer: Knowledge, kinds: &[&str]| -> Outcome {
        let scratch = Scratch::new();
        let caller = Rules::new(CONTEXT_TOKENS, reply);
        let options = Options { layers: vec![layer], ..settings().options() };
        let settings = settings().with_options(options);
        scratch.ingest(&sources(), &caller, &settings)?;
        for kind in KINDS {
            assert_eq!(!scratch.corpus().derived(kind)?.is_empty(), kinds.contains(&kind), "{layer} {kind}");
        }
        assert_eq!(scratch.missing(&settings), Missing::default());
        Ok(())
    };
    check(Knowledge::Veridical, &KINDS[..2])?;
    check(Knowledge::Semantic, &KINDS[2..3])?;
    check(Knowledge::Episodic, &KINDS[3..])
}

#[test]
fn extraction_that_makes_no_sense_is_not_asked_for_for_ever() -> Outcome {
    let scratch = Scratch::new();
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| match call.step {
        "comorag.entities" | "comorag.triples" => "There was a lamp.".to_owned(),
        _ => reply(call),
    });
    scratch.ingest(&sources(), &caller, &settings())?;
    assert_eq!(scratch.corpus().derived("comorag.fact/1")?, []);
    assert_eq!(scratch.missing(&settings()), Missing::default());
    Ok(())
}

#[test]
fn the_facts_before_the_end_of_a_reply_that_was_cut_are_used() -> Outcome {
    let names = r#"{"named_entities":["Ada Brook","Tom Reed","Ada"]}"#;
    let facts =
        r#"{"triples":[["Ada Brook","married","Tom Reed"],["Ada Brook","kept","the lamp"],["Ada","kept","t"]]}"#;
    let caller = [("comorag.entities", names), ("comorag.triples", facts)]
        .into_iter()
        .fold(Scripted::new(CONTEXT_TOKENS), |script, (step, reply)| script.ended(step, reply, Finish::LoopClosed));
    let scratch = Scratch::new();
    let options = Options { layers: vec![Knowledge::Veridical], ..settings().options() };
    let events = scratch.ingest(&[story("cat", 1)], &caller, &settings().with_options(options))?;
    assert_eq!(fallbacks(&events).len(), 2, "the trace has both replies");
    let named = input(&calls_of("comorag.triples", &caller)[0], "NAMED_ENTITIES");
    assert_eq!(named, r#"["Ada Brook","Tom Reed"]"#);
    let facts = scratch.corpus().derived("comorag.fact/1")?.into_iter().map(|fact| fact.text);
    let want = [r#"["ada brook","kept","the lamp"]"#, r#"["ada brook","married","tom reed"]"#].map(str::to_owned);
    assert_eq!(facts.collect::<BTreeSet<_>>(), BTreeSet::from(want));
    Ok(())
}

#[test]
fn a_removed_document_takes_exactly_what_rests_on_it() -> Outcome {
    let (with, without) = (Scratch::new(), Scratch::new());
    build(with.folder(), &[story("gone", 14), story("ann", 30), story("bob", 5)])?;
    build(without.folder(), &[story("ann", 30), story("bob", 5)])?;
    let mut writer = with.writer();
    let gone = writer.document_at("gone")?.ok_or("the document is there")?.id;
    writer.remove_document(gone)?;
    writer.verify()?;
    assert_eq!(writer.digest()?, without.corpus().digest()?);
    drop(writer);
    assert_eq!(with.missing(&settings()), Missing::default(), "nothing that others rest on is gone");
    Ok(())
}

#[test]
fn a_killed_build_repeats_no_call_whose_reply_was_stored() -> Outcome {
    let killed = Killed {
        test: "comorag_build::a_killed_build_repeats_no_call_whose_reply_was_stored",
        kills: 16,
        seed: 11,
        moments: (60, 9000),
        calls: None,
        settings: &settings(),
        build: &|folder| build(folder, &sources()),
        stored: &|corpus| Ok(Stored { calls: stored(corpus)?, vectors: None }),
    };
    killed.check()
}

#[test]
fn alike_names_are_compared_once_and_the_same_without_what_was_kept() -> Outcome {
    const KEPT: &str = "comorag.alike";
    let scratch = Scratch::new();
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| match call.step {
        // Singular and plural: lamp and lamps, boat and boats.
        "comorag.triples" => {
            let words: Vec<String> = input(call, "PASSAGE").split_whitespace().map(str::to_owned).collect();
            let several = format!("{}s", words[5]);
            serde_json::json!({ "triples": [[words[0], "tells of", words[5]], [several, "are", "things"]] }).to_string()
        }
        "comorag.entities" | "comorag.summarize" | "comorag.narrate" => reply(call),
        _ => fill::reply(call),
    });
    let build = |sources: &[Source]| scratch.ingest(sources, &caller, &settings());
    build(&sources())?;
    // The hits with their scores, which depend on all edges of the graph.
    let found = || -> Vec<String> {
        let asked = scratch.ask("Who tells of the lamp?", &caller, &settings());
        assert!(asked.answer.is_ok());
        asked.events.iter().map(|event| format!("{event:?}")).collect()
    };
    let file = scratch.corpus().cache_file(KEPT);
    let whole = fs::read(&file)?;
    let expect = found();
    let key = Digest(whole[..32].try_into()?);
    scratch.writer().keep(KEPT, &key, &[])?;
    assert_ne!(found(), expect, "what is kept is used");
    for bytes in [&whole[..whole.len() - 1], &whole[..7], &[]] {
        fs::write(&file, bytes)?;
        assert_eq!(found(), expect, "{} bytes", bytes.len());
    }
    fs::remove_file(&file)?;
    assert_eq!(found(), expect);
    build(&sources())?;
    assert_eq!(fs::read(&file)?, whole, "the build keeps it again");
    build(&[story("dan", 6)])?;
    assert_ne!(fs::read(&file)?[..32], whole[..32], "more names, other pairs");
    Ok(())
}

#[test]
fn extraction_is_demonstrated_but_to_small_models() {
    for (profile, want) in [(Profile::Paper, true), (Profile::Small, false)] {
        let seen = Mutex::new(Vec::new());
        let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
            let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
            seen.lock().expect("no call panics").push((call.step, prompt.contains("Captain Orsini")));
            fill::reply(call)
        });
        let settings = Settings { profile: Some(profile), ..settings() };
        Scratch::new().ingest(&[document("a.txt", &["Ada kept the lamp."])], &caller, &settings).expect("it is built");
        drop(caller);
        let seen = seen.into_inner().expect("no call panics");
        for step in ["comorag.entities", "comorag.triples"] {
            assert!(seen.contains(&(step, want)) && !seen.contains(&(step, !want)), "{profile}: {seen:?}");
        }
    }
}
