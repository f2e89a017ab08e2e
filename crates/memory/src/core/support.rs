//! Verdicts on the statements of an answer, and the citations that follow from them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use futures_util::future::try_join_all;

use crate::core::cite::Citation;
use crate::core::error::{MemoryError, Result};
use crate::core::judge;
use crate::core::outcome::{Statement, Support};
use crate::core::quotable::Quotable;
use crate::core::session::Session;
use crate::core::trace::Event;
use crate::grounding::{self, Checked, Checks, Judge, PairScore, Place, ShortAnswer, Verdict};

/// The statements of an answer, and the citations of those that are supported, in the order of importance.
pub(crate) async fn statements(
    question: &str,
    answer: &str,
    short: Option<&ShortAnswer>,
    quotable: &Quotable,
    session: &Session<'_>,
) -> Result<(Vec<Statement>, Vec<Citation>)> {
    let checked = check(question, answer, quotable, session).await?;
    let citations = grounding::citations(&checked, short).into_iter().map(|place| quotable.citation(place)).collect();
    let statements: Vec<Statement> = checked.into_iter().map(|checked| statement(checked, answer, quotable)).collect();
    if !statements.is_empty() {
        let verdicts = statements.iter().map(|statement| statement.verdict).collect();
        session.trace.record(Event::Statements { step: "answer.check".to_owned(), verdicts })?;
    }
    Ok((statements, citations))
}

fn statement(Checked { claim, verdict }: Checked, answer: &str, quotable: &Quotable) -> Statement {
    let chars = |bytes: usize| u32::try_from(answer[..bytes].chars().count()).unwrap_or(u32::MAX);
    let (support, place) = match verdict {
        Verdict::Supported(place) => (Support::Supported, Some(place)),
        Verdict::Contradicted(place) => (Support::Contradicted, Some(place)),
        Verdict::Unsupported => (Support::Unsupported, None),
    };
    let (start, end) = (chars(claim.start), chars(claim.end));
    Statement { text: claim.text, start, end, verdict: support, citation: place.map(|place| quotable.citation(place)) }
}

/// Checks an answer with the similarity of meaning, where vectors can be computed, and with the judge, where it is asked.
/// Pairs whose texts exceed the window of the embedder are compared by their words alone.
pub(crate) async fn check(
    question: &str,
    answer: &str,
    quotable: &Quotable,
    session: &Session<'_>,
) -> Result<Vec<Checked>> {
    let (texts, paths) = (quotable.texts(), quotable.paths());
    let day = |place: Place| quotable.day(place);
    let embeds = session.settings.method.embeds() && session.embedder.dims() > 0;
    let (mut vectors, mut judged) = (HashMap::new(), HashMap::new());
    loop {
        let (unembedded, unjudged) = (RefCell::new(BTreeSet::new()), RefCell::new(BTreeSet::new()));
        let similarity = |claim: &str, span: &str| {
            let vector = |text: &str| {
                let known: Option<&Option<Vec<f32>>> = vectors.get(text);
                if known.is_none() {
                    unembedded.borrow_mut().insert(text.to_owned());
                }
                known.cloned().flatten()
            };
            match (vector(claim), vector(span)) {
                (Some(claim), Some(span)) => claim.iter().zip(&span).map(|(a, b)| a * b).sum(),
                _ => 1.0,
            }
        };
        let judge = |claim: &str, text: &str| {
            let pair = (claim.to_owned(), text.to_owned());
            let known: Option<&Option<bool>> = judged.get(&pair);
            if known.is_none() {
                unjudged.borrow_mut().insert(pair);
            }
            known.copied().flatten()
        };
        let checks = Checks {
            paths: &paths,
            day: Some(&day),
            similarity: embeds.then_some(&similarity as PairScore<'_>),
            judge: judge::applies(session).then_some(&judge as Judge<'_>),
        };
        let checked = grounding::check(question, answer, &texts, checks);
        let (unembedded, unjudged) = (unembedded.into_inner(), unjudged.into_inner());
        if !unembedded.is_empty() {
            // What is to be judged depends on the similarities.
            vectors.extend(embedded(unembedded, session).await?);
        } else if !unjudged.is_empty() {
            let asked = unjudged.into_iter().map(async |(claim, text)| {
                let says = judge::supports(&claim, &text, session).await?;
                Ok::<_, MemoryError>(((claim, text), says))
            });
            judged.extend(try_join_all(asked).await?);
        } else {
            return Ok(checked);
        }
    }
}

/// The vectors of texts; none of a text that is too long.
async fn embedded(texts: BTreeSet<String>, session: &Session<'_>) -> Result<Vec<(String, Option<Vec<f32>>)>> {
    let window = session.embedder.window_tokens();
    let fits = |text: &String| session.embedder.token_spans(text).len() <= window;
    let (short, long): (Vec<String>, Vec<String>) = texts.into_iter().partition(fits);
    let computed = session.embedder.embed_for(session.tenant, short.clone()).await?.into_iter().map(Some);
    Ok(short.into_iter().zip(computed).chain(long.into_iter().map(|text| (text, None))).collect())
}
