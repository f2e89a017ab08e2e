//! Spans: characters and bytes of the same range of text.

use proptest::prelude::*;
use proptest::sample::Index;
use store::{Error, Layer, Meta, NewDocument, NewPassage, Offsets};

use crate::scratch::{Outcome, Scratch};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn characters_and_bytes_agree(text in "(\\PC|[a-z 字é👍\\r\\n]){0,900}", a in any::<Index>(), b in any::<Index>()) {
        let boundaries: Vec<usize> = text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect();
        let (first, last) = (a.index(boundaries.len()), b.index(boundaries.len()));
        let (first, last) = (first.min(last), first.max(last));
        let span = Offsets::new(&text).span(boundaries[first]..boundaries[last]).expect("the ends are boundaries");
        prop_assert_eq!(span.chars(), first..last);
        let by_chars: String = text.chars().skip(first).take(last - first).collect();
        prop_assert_eq!(&text[span.bytes()], by_chars);
    }

    #[test]
    fn only_ranges_of_whole_characters_have_spans(text in "[a字é👍]{0,80}", start in 0..400_usize, end in 0..400_usize) {
        prop_assert_eq!(Offsets::new(&text).span(start..end).is_some(), text.get(start..end).is_some());
    }
}

#[test]
fn a_passage_that_is_not_in_its_text_is_refused() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut check = |bytes: std::ops::Range<usize>| {
        let passages = [NewPassage { layer: Layer::Chunk, bytes: bytes.clone(), tokens: 1, meta: Meta::default() }];
        let put =
            writer.put_document(&NewDocument { path: "p", kind: "text", title: "", text: "né", passages: &passages });
        assert!(matches!(put, Err(Error::BadSpan { .. })), "{bytes:?} gave {put:?}");
    };
    check(0..2);
    check(2..3);
    check(0..4);
    #[allow(clippy::reversed_empty_ranges)]
    check(1..0);
    assert_eq!(writer.documents()?, []);
    Ok(())
}
