//! Windows of zoom-out (equation 8): W turns on either side, clipped to the session, each turn once.

use memory::memcot::Timeline;
use proptest::prelude::*;
use store::Layer;

use super::{settings, talk};
use crate::scratch::{Scratch, Sitting, script, sessions};

/// The sessions are places 0 to 3, 4 and 5, and 6 and 7.
fn check(anchors: &[usize], window: usize, want: &[usize]) {
    let scratch = talk();
    let timeline = Timeline::of(&scratch.corpus()).unwrap();
    assert_eq!(timeline.around(anchors, window), want, "{anchors:?} by {window}");
}

#[test]
fn a_window_is_clipped_to_its_session() {
    check(&[1], 0, &[1]);
    check(&[1], 1, &[1, 0, 2]);
    check(&[1], 2, &[1, 0, 2, 3]);
    check(&[1], 100, &[1, 0, 2, 3]);
    check(&[3], 2, &[3, 2, 1]);
    check(&[4], 4, &[4, 5]);
    check(&[7], 1, &[7, 6]);
}

#[test]
fn windows_that_meet_are_one() {
    check(&[0, 2], 1, &[0, 2, 1, 3]);
    check(&[2, 0], 1, &[2, 0, 1, 3]);
    check(&[3, 4], 1, &[3, 4, 2, 5]);
    check(&[1, 1], 1, &[1, 0, 2]);
    check(&[], 4, &[]);
}

#[test]
fn a_session_of_several_pages_is_one() {
    let words = "word ".repeat(100);
    let said: Vec<(&str, &str)> = (0..12).map(|_| ("Ann", words.as_str())).collect();
    let source = sessions("long.json", &[("session_1", "May", &said), ("session_2", "June", &said)]);
    let scratch = Scratch::new();
    scratch.ingest(&[source], &script(&[]), &settings(memory::memcot::Options::default())).expect("nothing is called");
    let corpus = scratch.corpus();
    assert!(corpus.passages(Layer::Page).unwrap().len() > 4, "pages of 512 tokens");
    let timeline = Timeline::of(&corpus).unwrap();
    let all = |from: usize| (from..from + 12).collect::<Vec<_>>();
    let sorted = |anchor| {
        let mut around = timeline.around(&[anchor], 100);
        around.sort_unstable();
        around
    };
    assert_eq!((sorted(0), sorted(11), sorted(12)), (all(0), all(0), all(12)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The definition of windows from the turn's side: a turn is in them if an anchor of its session is near.
    #[test]
    fn windows_hold_what_is_near(lengths in prop::collection::vec(1_usize..5, 1..6), picks in prop::collection::vec(0_usize..64, 0..5), window in 0_usize..6) {
        let names: Vec<String> = (0..lengths.len()).map(|number| format!("session_{number}")).collect();
        let said = [("Ann", "Yes."); 5];
        let parts: Vec<Sitting<'_>> =
            names.iter().zip(&lengths).map(|(name, length)| (name.as_str(), "May", &said[..*length])).collect();
        let scratch = Scratch::new();
        scratch
            .ingest(&[sessions("ragged.json", &parts)], &script(&[]), &settings(memory::memcot::Options::default()))
            .expect("nothing is called");
        let timeline = Timeline::of(&scratch.corpus()).unwrap();
        let session_of: Vec<usize> =
            lengths.iter().enumerate().flat_map(|(session, length)| vec![session; *length]).collect();
        let anchors: Vec<usize> = picks.iter().map(|pick| pick % session_of.len()).collect();
        let mut around = timeline.around(&anchors, window);
        around.sort_unstable();
        let near = |place: &usize| {
            anchors.iter().any(|anchor| session_of[*anchor] == session_of[*place] && anchor.abs_diff(*place) <= window)
        };
        prop_assert_eq!(around, (0..session_of.len()).filter(near).collect::<Vec<_>>());
    }
}
