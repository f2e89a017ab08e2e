//! Entities and facts of the whole corpus: each is stored once, with all chunks that name it, and is removed with the
//! last of these chunks.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use store::{Bond, Corpus, Digest, NewDerived, PassageId, Writer};

use super::extract::{TRIPLES_NOTE, Triple, author_of, noted_triples};
use super::names::normal;
use crate::core::error::Result;
use crate::core::session::Session;

/// The kind of an entity in the store; its text is its name.
pub(super) const ENTITY: &str = "comorag.entity/1";
/// The kind of a fact in the store; its text is a JSON list of subject, predicate and object.
pub(super) const FACT: &str = "comorag.fact/1";

/// The chunks whose facts are noted, but not yet among the facts of the corpus.
pub(super) fn unlinked(corpus: &Corpus) -> Result<Vec<(PassageId, Vec<Triple>)>> {
    let linked: HashSet<PassageId> = corpus.derived(FACT)?.into_iter().flat_map(|fact| fact.sources).collect();
    let mut triples = noted_triples(corpus)?;
    triples.retain(|(chunk, _)| !linked.contains(chunk));
    Ok(triples)
}

/// Adds the facts of these chunks, and the entities in them, to those of the corpus: all of them or none.
pub(super) fn link(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    let mut entities: BTreeMap<String, BTreeSet<PassageId>> = BTreeMap::new();
    let mut facts: BTreeMap<Triple, BTreeSet<PassageId>> = BTreeMap::new();
    for (chunk, triples) in unlinked(writer)? {
        for triple in triples {
            let fact = triple.map(|part| normal(&part));
            for end in [&fact[0], &fact[2]] {
                entities.entry(end.clone()).or_default().insert(chunk);
            }
            facts.entry(fact).or_default().insert(chunk);
        }
    }
    let author = author_of(TRIPLES_NOTE, session);
    let texts = |fact: &Triple| (serde_json::json!(fact).to_string(), Digest::of(&fact.each_ref().map(String::as_str)));
    let facts = facts.into_iter().map(|(fact, chunks)| (FACT, texts(&fact), chunks));
    let entities = entities.into_iter().map(|(name, chunks)| {
        let key = Digest::of(&[&name]);
        (ENTITY, (name, key), chunks)
    });
    let all: Vec<_> = entities.chain(facts).map(|(kind, text, chunks)| (kind, text, Vec::from_iter(chunks))).collect();
    let items: Vec<NewDerived<'_>> = all
        .iter()
        .map(|(kind, (text, key), chunks)| NewDerived {
            kind,
            key: *key,
            text,
            sources: chunks,
            bond: Bond::Any,
            author: &author,
        })
        .collect();
    writer.put_derived(&items)?;
    Ok(())
}

/// A fact as it was stored.
pub(super) fn parts(text: &str) -> Option<Triple> {
    serde_json::from_str(text).ok()
}
