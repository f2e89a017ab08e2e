//! `LoCoMo`'s form: its special cases in a small sample, and the real files if the evaluation data is available.

use std::path::PathBuf;
use std::{env, fs};

use serde_json::Value;
use sources::{Captions, ReadOptions, Source, read};

use crate::{check_spans, complaint, read_bytes, read_bytes_with};

const SAMPLE: &str = r#"[{"qa": [], "sample_id": "conv-1", "conversation": {
    "speaker_a": "Ann", "speaker_b": "Bo",
    "session_10_date_time": "9 May", "session_10": [
        {"speaker": "Bo", "dia_id": "D10:1", "text": "Bye.\n\n"}],
    "session_2_date_time": "3 May", "session_2": [],
    "session_3_date_time": "4 May",
    "session_1_date_time": "2 May", "session_1": [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Hello.\n", "blip_caption": "a photo of a dog", "img_url": []},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "Hi."}]
}}]"#;

#[test]
fn sessions_are_laid_out_as_gams_pages() {
    let sources = read_bytes("talks.json", SAMPLE.as_bytes()).unwrap();
    assert!(sources[0].path.ends_with("talks.json#conv-1"));
    assert_eq!(sources[0].title.as_deref(), Some("Ann and Bo"));
    let sections: Vec<_> = sources[0].sections.iter().map(|s| (s.title.as_deref(), s.time.as_deref())).collect();
    assert_eq!(sections, [(Some("session_1"), Some("2 May")), (Some("session_10"), Some("9 May"))]);
    let expect = "\
=== SESSION 0 - Dialogue Time(available to answer questions): 2 May ===

Ann (D1:1): Hello.

Bo (D1:2): Hi.

=== SESSION 9 - Dialogue Time(available to answer questions): 9 May ===

Bo (D10:1): Bye.";
    assert_eq!(sources[0].text, expect);
}

#[test]
fn captions_are_kept_when_asked_for() {
    let options = ReadOptions { captions: Captions::Kept, ..ReadOptions::default() };
    let sources = read_bytes_with("talks.json", SAMPLE.as_bytes(), &options).unwrap();
    assert!(sources[0].text.contains("\nAnn (D1:1): Hello. [shares a photo of a dog]\nBo (D1:2): Hi.\n"));
}

#[test]
fn broken_samples_name_line_and_field() {
    fn check(old: &str, new: &str, expect: &str) {
        assert!(SAMPLE.contains(old));
        assert_eq!(complaint("talks.json", SAMPLE.replace(old, new).as_bytes()), expect);
    }
    check(r#""dia_id": "D1:2", "#, "", "line 9: field `dia_id` is missing");
    check(r#""D1:2""#, r#""D1:1""#, "line 9: field `dia_id` repeats an earlier one");
    check(r#""text": "Hi.""#, r#""text": null"#, "line 9: field `text` is not a string");
    check(r#""session_2": []"#, r#""session_2": {}"#, "line 1: field `session_2` is not an array");
    check(
        r#""session_2": []"#,
        r#""session_2": [2]"#,
        "line 1: field `session_2` holds something that is not an object",
    );
    check(
        "}}]",
        r#"}}, {"sample_id": "conv-1", "conversation": {}}]"#,
        "line 10: field `sample_id` repeats an earlier one",
    );
    check("}}]", r#"}}, {"sample_id": "conv-2"}]"#, "line 10: field `conversation` is missing");
}

#[test]
fn the_real_conversations_come_out_whole() {
    let data = env::var_os("MEMLOCAL_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    let path = data.join("locomo/locomo_public5.json");
    if !path.exists() {
        return eprintln!("skipped: {} is missing; set MEMLOCAL_DATA to the evaluation data", path.display());
    }
    let sources = read(&path, &ReadOptions::default()).unwrap();
    let samples: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let ids: Vec<&str> = sources.iter().map(|source| source.path.rsplit_once('#').unwrap().1).collect();
    assert_eq!(ids, ["conv-26", "conv-30", "conv-41", "conv-43", "conv-48"]);
    let counts: Vec<_> =
        sources.iter().map(|s| (s.sections.len(), s.sections.iter().map(|s| s.turns.len()).sum())).collect();
    assert_eq!(counts, [(19, 419), (19, 369), (32, 663), (29, 680), (30, 681)]);
    for (source, sample) in sources.iter().zip(samples.as_array().unwrap()) {
        check_spans(source);
        check_against(source, &sample["conversation"]);
    }
}

/// Compares every session with GAM's layout, and every turn with the file.
fn check_against(source: &Source, conversation: &Value) {
    for (i, section) in source.sections.iter().enumerate() {
        let key = format!("session_{}", i + 1);
        let date = conversation[format!("{key}_date_time")].as_str().unwrap();
        assert_eq!(section.time.as_deref(), Some(date));
        let mut page = format!("=== SESSION {i} - Dialogue Time(available to answer questions): {date} ===\n");
        let turns = conversation[&key].as_array().unwrap();
        assert_eq!(section.turns.len(), turns.len());
        for (turn, said) in section.turns.iter().zip(turns) {
            let [speaker, id, text] = ["speaker", "dia_id", "text"].map(|field| said[field].as_str().unwrap());
            assert_eq!((turn.speaker.as_str(), turn.id.as_str()), (speaker, id));
            assert_eq!(&source.text[turn.span.clone()].trim_end(), &format!("{speaker} ({id}): {text}").trim_end());
            page.extend(["\n", speaker, " (", id, "): ", text]);
        }
        assert_eq!(&source.text[section.span.clone()], page.trim());
    }
}
