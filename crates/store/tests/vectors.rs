//! Vectors: which are accepted, and which passages they find.

use std::collections::BTreeSet;

use store::{DenseIndex, Error, Layer, Part, Passage, PassageId, VectorProblem, Writer};

use crate::scratch::{Outcome, Scratch, beginning, put_lines, whole};

fn pages(writer: &mut Writer, text: &str) -> store::Result<Vec<Passage>> {
    put_lines(writer, "a", text)?;
    writer.passages(Layer::Page)
}

#[test]
fn bad_vectors_are_refused() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let pages = pages(&mut writer, "one\ntwo\n")?;
    writer.put_vectors("tiny", &[(pages[0].id, whole(&pages[0], &[3.0, 4.0]))])?;
    let mut check = |parts: Vec<Part>, expected: VectorProblem| {
        let good = whole(&pages[0], &[0.0, 1.0]);
        let put = writer.put_vectors("tiny", &[(pages[0].id, good), (pages[1].id, parts)]);
        assert!(
            matches!(put, Err(Error::BadVector { problem, .. }) if problem == expected),
            "{put:?} instead of {expected:?}"
        );
    };
    check(whole(&pages[1], &[1.0, 2.0, 3.0]), VectorProblem::Dimensions { expected: 2, found: 3 });
    check(whole(&pages[1], &[]), VectorProblem::Dimensions { expected: 2, found: 0 });
    check(whole(&pages[1], &[1.0, f32::NAN]), VectorProblem::NotFinite);
    check(whole(&pages[1], &[f32::NEG_INFINITY, 0.0]), VectorProblem::NotFinite);
    check(whole(&pages[1], &[0.0, -0.0]), VectorProblem::Zero);
    check(whole(&pages[0], &[1.0, 0.0]), VectorProblem::OutsidePassage);
    check(vec![], VectorProblem::NoParts);
    assert_eq!(writer.vectors("tiny", pages[0].id)?[0].vector, [0.6, 0.8], "a refused batch changes nothing");
    assert_eq!(writer.without_vectors(Layer::Page, "tiny")?, [pages[1].id]);
    let unknown = writer.put_vectors("tiny", &[(PassageId(99), whole(&pages[0], &[1.0, 0.0]))]);
    assert!(matches!(unknown, Err(Error::UnknownPassage(PassageId(99)))), "{unknown:?}");
    let empty = writer.put_vectors("new", &[(pages[0].id, whole(&pages[0], &[]))]);
    assert!(matches!(empty, Err(Error::BadVector { problem: VectorProblem::Zero, .. })), "{empty:?}");
    Ok(())
}

#[test]
fn a_passage_scores_as_its_best_part() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let pages = pages(&mut writer, "one\ntwo\nthree\n")?;
    let part = |vector: [f32; 2]| Part { span: beginning(&pages[0], 2), vector: vector.to_vec() };
    writer.put_vectors(
        "tiny",
        &[
            (pages[0].id, vec![part([0.0, -1.0]), part([0.0, 5.0]), part([1.0, 0.0])]),
            (pages[1].id, whole(&pages[1], &[1.0, 1.0])),
            (pages[2].id, whole(&pages[2], &[0.0, 2.0])),
        ],
    )?;
    let index = DenseIndex::open(&writer, Layer::Page, "tiny")?;
    let ids = |hits: Vec<store::Hit>| hits.into_iter().map(|hit| hit.passage).collect::<Vec<_>>();
    assert_eq!(
        ids(index.search(&[0.0, 1.0], 9)?),
        [pages[0].id, pages[2].id, pages[1].id],
        "equal scores stand in the order of ids"
    );
    assert_eq!(ids(index.search(&[0.0, 1.0], 1)?), [pages[0].id]);
    assert_eq!(ids(index.search(&[0.0, 1.0], 0)?), []);
    assert_eq!(
        ids(index.search_among(&[0.0, 1.0], 9, &BTreeSet::from([pages[1].id, pages[2].id, PassageId(99)]))?),
        [pages[2].id, pages[1].id]
    );
    let best = index.search(&[0.0, 7.0], 1)?[0].score;
    assert!((best - 1.0).abs() < 1e-6, "{best} is not the cosine");
    assert!(matches!(index.search(&[1.0], 1), Err(Error::BadVector { .. })));
    assert!(matches!(index.search(&[f32::NAN, 1.0], 1), Err(Error::BadVector { .. })));
    Ok(())
}

#[test]
fn embedders_and_layers_are_kept_apart() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let pages = pages(&mut writer, "one\ntwo\n")?;
    writer.put_vectors("small", &[(pages[0].id, whole(&pages[0], &[1.0]))])?;
    writer.put_vectors("large", &[(pages[1].id, whole(&pages[1], &[1.0, 0.0, 0.0]))])?;
    let found = |layer, embedder: &str, query: &[f32]| -> store::Result<Vec<PassageId>> {
        let hits = DenseIndex::open(&writer, layer, embedder)?.search(query, 9)?;
        Ok(hits.into_iter().map(|hit| hit.passage).collect())
    };
    assert_eq!(found(Layer::Page, "small", &[1.0])?, [pages[0].id]);
    assert_eq!(found(Layer::Page, "large", &[1.0, 0.0, 0.0])?, [pages[1].id]);
    assert_eq!(found(Layer::Turn, "large", &[1.0, 0.0, 0.0])?, []);
    assert_eq!(found(Layer::Page, "unknown", &[1.0])?, []);
    assert_eq!(writer.without_vectors(Layer::Page, "large")?, [pages[0].id]);
    assert_eq!(writer.without_vectors(Layer::Page, "unknown")?, [pages[0].id, pages[1].id]);
    Ok(())
}

#[test]
fn putting_vectors_again_replaces_them() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let page = pages(&mut writer, "one\n")?.remove(0);
    let part = Part { span: page.span, vector: vec![1.0, 0.0] };
    writer.put_vectors("tiny", &[(page.id, vec![part.clone(), part])])?;
    writer.put_vectors("tiny", &[(page.id, whole(&page, &[0.0, 1.0]))])?;
    assert_eq!(writer.vectors("tiny", page.id)?, whole(&page, &[0.0, 1.0]));
    Ok(writer.verify()?)
}
