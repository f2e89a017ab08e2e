//! Search tools over a small collection, with an embedder that counts letters.

use std::ops::Range;

use calls::{BoxFuture, CallError, Embedder, Embedding, ScriptedEmbedder, TenantId};
use eval::retrieval::{Comparison, Rankings, Summary, Tool, rank};
use eval::score::Found;
use eval::{Collection, Dataset, Error, Passage, Query, Suite, Wanted};
use store::fuse::{RRF_K, by_score, rrf};
use store::{Bm25, Hit, LexicalIndex, PassageId};

use crate::now;

fn passage(id: &str, title: &str, text: &str) -> Passage {
    Passage { id: id.into(), title: title.into(), text: text.into() }
}

fn query(id: &str, text: &str, groups: &[&str], wanted: &[(usize, u32)]) -> Query {
    let wanted = wanted.iter().map(|(place, grade)| Wanted { place: *place, grade: *grade }).collect();
    Query { id: id.into(), text: text.into(), groups: groups.iter().map(ToString::to_string).collect(), wanted }
}

fn data() -> Dataset {
    let collection = Collection {
        sessions: Vec::new(),
        name: "fruit, mostly".into(),
        passages: vec![
            passage("p0", "Figs", "A tree bears them in summer."),
            passage("p1", "Walls", "The tree is near the wall."),
            passage("p2", "Tales", &"once upon a time ".repeat(20)),
        ],
        queries: vec![
            query("q0", "figs summer", &["short"], &[(0, 1)]),
            query("q1", "llaw", &["backwards"], &[(1, 2), (0, 1)]),
        ],
    };
    Dataset { collections: vec![collection], notes: vec!["a note".into()], files: vec!["folder/fruit.json".into()] }
}

fn comparison(tools: &[Tool]) -> Comparison<'_> {
    Comparison {
        tools,
        bm25: Bm25::default(),
        embedder: Some(&ScriptedEmbedder),
        depths: Suite::MuSiQue.recall_depths(),
        windows: &[],
    }
}

fn rankings(tools: &[Tool]) -> Rankings {
    now(rank(&data(), comparison(tools), &mut |_, _| ())).unwrap()
}

#[test]
fn each_tool_reports_the_ranks_of_the_wanted_passages() {
    fn check(tool: Tool, expect: [&[Option<usize>]; 2]) {
        let ranks = |found: &Vec<Vec<Found>>| found[found.len() - 1].iter().map(|found| found.rank).collect::<Vec<_>>();
        let found: Vec<_> = rankings(&[tool]).queries.iter().map(|query| ranks(&query.found)).collect();
        assert_eq!(found, expect, "{tool}");
    }
    // No passage has the word "llaw", but one has the same letters.
    check(Tool::Bm25, [&[Some(1)], &[None, None]]);
    check(Tool::Bm25Fields, [&[Some(1)], &[None, None]]);
    check(Tool::Dense, [&[Some(1)], &[Some(1), Some(3)]]);
    check(Tool::Fused, [&[Some(1)], &[Some(1), Some(3)]]);
}

#[test]
fn titles_and_texts_apart_weigh_a_title_more() {
    let mut data = data();
    // Many texts are about figs, but only one title is.
    data.collections[0].passages = vec![
        passage("p0", "Fruit", "Figs, and figs again."),
        passage("p1", "Fig", "A leaf."),
        passage("p2", "", "A fig."),
    ];
    data.collections[0].queries = vec![query("q", "fig", &[], &[(1, 1)])];
    let found = now(rank(&data, comparison(&[Tool::Bm25, Tool::Bm25Fields]), &mut |_, _| ())).unwrap();
    assert_eq!(found.queries[0].found.iter().map(|found| found[0].rank).collect::<Vec<_>>(), [Some(3), Some(1)]);
}

#[test]
fn texts_longer_than_the_window_are_cut_and_counted() {
    let found = rankings(&[Tool::Dense]);
    assert_eq!((found.cut_passages, found.cut_queries), (1, 0));
    let found = rankings(&[Tool::Bm25]);
    assert_eq!((found.cut_passages, found.cut_queries), (0, 0));
    let mut long = data();
    long.collections[0].queries[0].text = "fig ".repeat(65);
    let found = now(rank(&long, comparison(&[Tool::Bm25, Tool::Bm25Fields, Tool::Dense, Tool::Fused]), &mut |_, _| ()))
        .unwrap();
    assert_eq!((found.cut_passages, found.cut_queries), (1, 1));
}

#[test]
fn progress_counts_every_text_that_is_embedded() {
    fn check(tools: &[Tool], expect: &[(usize, usize)]) {
        let mut two = data();
        two.collections.push(two.collections[0].clone());
        let mut seen = Vec::new();
        now(rank(&two, comparison(tools), &mut |done, of| seen.push((done, of)))).unwrap();
        assert_eq!(seen, expect);
    }
    check(&[Tool::Dense], &[(3, 10), (5, 10), (8, 10), (10, 10)]);
    check(&[Tool::Bm25], &[]);
}

#[test]
fn a_tool_that_embeds_needs_an_embedder() {
    fn check(tool: Tool, needs: bool) {
        let comparison = Comparison { embedder: None, ..comparison(std::slice::from_ref(&tool)) };
        let refused = matches!(now(rank(&data(), comparison, &mut |_, _| ())), Err(Error::NoEmbedder));
        assert_eq!(refused, needs, "{tool}");
    }
    check(Tool::Bm25, false);
    check(Tool::Bm25Fields, false);
    check(Tool::Dense, true);
    check(Tool::Fused, true);
    check(Tool::FusedSparse, true);
    check(Tool::FusedAll, true);
    check(Tool::Sparse, true);
    check(Tool::Colbert, true);
}

#[test]
fn fused_hits_are_those_of_a_search_for_the_same_number() {
    // By words the order is p3, p2, p1, p0; the letter vectors give another order.
    let mut data = data();
    data.collections[0].passages = (0..8)
        .map(|number| {
            passage(&format!("p{number}"), "", &format!("{}{}", "fig ".repeat(number + 1), "zz ".repeat(9 - number)))
        })
        .collect();
    data.collections[0].queries = vec![query("q", "fig", &[], &(0..8).map(|place| (place, 1)).collect::<Vec<_>>())];
    let tools = [Tool::Bm25, Tool::Dense, Tool::Fused];
    let found = now(rank(&data, Comparison { depths: &[1, 2], ..comparison(&tools) }, &mut |_, _| ())).unwrap();
    let names: Vec<String> = found.columns.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["bm25", "dense", "fused@1", "fused@2", "fused@10"]);
    let texts: Vec<String> = data.collections[0].passages.iter().map(|passage| passage.text.clone()).collect();
    let lexical = LexicalIndex::build((0..).map(PassageId).zip(texts.iter().map(String::as_str)), Bm25::default());
    let vectors = now(ScriptedEmbedder.embed([texts.clone(), vec!["fig".to_owned()]].concat())).unwrap();
    let asked = &vectors[texts.len()];
    let cosine = |vector: &Vec<f32>| asked.iter().zip(vector).map(|(a, b)| a * b).sum();
    let mut dense: Vec<Hit> = (0..)
        .map(PassageId)
        .zip(vectors[..texts.len()].iter().map(cosine))
        .map(|(passage, score)| Hit { passage, score })
        .collect();
    dense.sort_by(|a, b| b.score.total_cmp(&a.score));
    let expect = by_score(&lexical.search("fig", texts.len()), &dense, &dense);
    for (k, fused) in [1, 2, 10].into_iter().zip(&found.queries[0].found[2..]) {
        for (place, found) in (0..).zip(fused) {
            let rank = expect.iter().take(k).position(|hit| hit.passage == PassageId(place)).map(|above| above + 1);
            assert_eq!(found.rank, rank, "passage {place} at {k}");
        }
    }
}

#[test]
fn neighbours_of_a_hit_in_its_session_are_found_with_it() {
    let mut data = data();
    let texts = ["figs in summer", "nothing", "no more", "walls", "figs too"];
    data.collections[0].passages =
        texts.iter().enumerate().map(|(number, text)| passage(&format!("p{number}"), "", text)).collect();
    data.collections[0].sessions = vec![0..3, 3..5];
    data.collections[0].queries = vec![query("q", "summer", &[], &[(0, 1), (1, 1), (2, 1), (3, 1)])];
    let windows = Comparison { windows: &[1, 4], ..comparison(&[Tool::Bm25]) };
    let found = now(rank(&data, windows, &mut |_, _| ())).unwrap();
    let ranks: Vec<Vec<Option<usize>>> =
        found.queries[0].found.iter().map(|found| found.iter().map(|found| found.rank).collect()).collect();
    let expect = [
        [Some(1), None, None, None],
        [Some(1), Some(1), None, None],
        // The wall is in another session.
        [Some(1), Some(1), Some(1), None],
    ];
    assert_eq!(ranks, expect);
    let summary = Summary::new(Suite::LoCoMo, &data, &windows, &found);
    assert_eq!(summary.score("all", Tool::Bm25, 4, "recall@5"), Some(0.75));
    let page = summary.to_string();
    assert!(page.contains("| group | tool | W | recall@2 |") && page.contains("| all | bm25 | 4 | 0.7500 |"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    summary.draw(folder.path()).unwrap();
    for picture in
        ["recall-by-window.svg", "recall-by-window.png", "recall-by-k.svg", "recall-by-k.png", "ndcg.svg", "ndcg.png"]
    {
        assert!(folder.path().join(picture).is_file(), "{picture}");
    }
}

/// Embeds a text by its letters: the count of each, and a vector per distinct letter.
struct Heads;

impl Embedder for Heads {
    fn encode_for(
        &self,
        _: TenantId,
        texts: Vec<String>,
        _: calls::Heads,
    ) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>> {
        let embedding = |text: &String| {
            let letters: Vec<u8> = text.bytes().filter(u8::is_ascii_lowercase).map(|letter| letter - b'a').collect();
            let count = |id: u8| letters.iter().fold(0.0, |count, letter| count + f32::from(*letter == id));
            let unit = |id: &u8| (0..26).map(|place| f32::from(place == *id)).collect();
            let sparse = (0..26).filter(|id| count(*id) > 0.0).map(|id| (u32::from(id), count(id))).collect();
            let dense = ScriptedEmbedder.dims();
            Embedding {
                dense: vec![0.0; dense],
                sparse: Some(sparse),
                colbert: Some(letters.iter().map(unit).collect()),
            }
        };
        Box::pin(async move { Ok(texts.iter().map(embedding).collect()) })
    }

    fn dims(&self) -> usize {
        ScriptedEmbedder.dims()
    }

    fn window_tokens(&self) -> usize {
        ScriptedEmbedder.window_tokens()
    }

    fn special_tokens(&self) -> usize {
        ScriptedEmbedder.special_tokens()
    }

    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        ScriptedEmbedder.token_spans(text)
    }

    fn name(&self) -> &'static str {
        "heads"
    }
}

#[test]
fn sparse_and_colbert_search_by_the_heads_of_the_embedder() {
    let passages = ["zzza", "xyz", "bcd"].iter().zip(["p0", "p1", "p2"]).map(|(text, id)| passage(id, "", text));
    let collection = Collection {
        sessions: Vec::new(),
        name: "letters".into(),
        passages: passages.collect(),
        queries: vec![query("q", "xyz", &[], &[(0, 1), (1, 1), (2, 1)])],
    };
    let data = Dataset { collections: vec![collection], ..Dataset::default() };
    let tools = [Tool::Sparse, Tool::Colbert];
    let comparison = Comparison { embedder: Some(&Heads), ..comparison(&tools) };
    let found = now(rank(&data, comparison, &mut |_, _| ())).unwrap();
    let ranks: Vec<Vec<_>> =
        found.queries[0].found.iter().map(|found| found.iter().map(|found| found.rank).collect()).collect();
    // Sparse: 3 products of z against 1 + 1 + 1, the lower first. ColBERT: one of three tokens against all three.
    assert_eq!(ranks, [[Some(1), Some(2), Some(3)], [Some(2), Some(1), Some(3)]]);
    let without = Comparison { embedder: Some(&ScriptedEmbedder), ..comparison };
    let error = now(rank(&data, without, &mut |_, _| ())).unwrap_err().to_string();
    assert_eq!(error, "the embedder letters has no head for sparse");
    let without = Comparison { tools: &[Tool::FusedAll], ..without };
    let error = now(rank(&data, without, &mut |_, _| ())).unwrap_err().to_string();
    assert_eq!(error, "the embedder letters has no head for fused-all");
}

#[test]
fn heads_are_fused_by_the_ranks_that_they_give() {
    let texts = ["zzza", "xyz", "bcd", "xaz", "yy yy"];
    let collection = Collection {
        sessions: Vec::new(),
        name: "letters".into(),
        passages: texts.iter().map(|text| passage(text, "", text)).collect(),
        queries: vec![query("q", "xyz", &[], &(0..5).map(|place| (place, 1)).collect::<Vec<_>>())],
    };
    let data = Dataset { collections: vec![collection], ..Dataset::default() };
    let check = |fused: Tool, parts: &[Tool]| {
        assert_eq!(fused.to_string().parse(), Ok(fused));
        let tools = [&[fused], parts].concat();
        let comparison = Comparison { embedder: Some(&Heads), depths: &[2], ..comparison(&tools) };
        let found = now(rank(&data, comparison, &mut |_, _| ())).unwrap();
        let [at_2, at_10, parts @ ..] = &found.queries[0].found[..] else { panic!("{fused} at 2 and at 10") };
        for (k, column) in [(2, at_2), (10, at_10)] {
            let lists: Vec<Vec<Hit>> = parts
                .iter()
                .map(|part| {
                    let mut ranked: Vec<_> =
                        (0..).zip(part).filter_map(|(id, found)| Some((found.rank?, id))).collect();
                    ranked.sort_unstable();
                    ranked.into_iter().take(2 * k).map(|(_, id)| Hit { passage: PassageId(id), score: 0.0 }).collect()
                })
                .collect();
            let expect = rrf(&lists, RRF_K);
            for (place, found) in (0..).zip(column) {
                let rank = expect.iter().take(k).position(|hit| hit.passage == PassageId(place)).map(|above| above + 1);
                assert_eq!(found.rank, rank, "{fused} at {k}: passage {place}");
            }
        }
        let page = Summary::new(Suite::MuSiQue, &data, &comparison, &found).to_string();
        let names = parts_of(&tools[1..]);
        assert!(page.contains(&format!("{fused}: for a number at k the first 2 k of {names}, by")), "{page}");
    };
    check(Tool::FusedSparse, &[Tool::Dense, Tool::Sparse]);
    check(Tool::FusedAll, &[Tool::Bm25, Tool::Dense, Tool::Sparse, Tool::Colbert]);
}

fn parts_of(tools: &[Tool]) -> String {
    tools.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[test]
fn raw_results_hold_the_ranks_of_all_that_was_wanted() {
    let expect = "\
collection,query,groups,wanted,bm25,dense
\"fruit, mostly\",q0,short,p0,1,1
\"fruit, mostly\",q1,backwards,p1=2 p0,- -,1 3
";
    assert_eq!(rankings(&[Tool::Bm25, Tool::Dense]).to_csv(), expect);
}

#[test]
fn a_summary_names_data_and_tools_and_lists_the_scores() {
    let tools = [Tool::Bm25, Tool::Dense];
    let summary = Summary::new(Suite::MuSiQue, &data(), &comparison(&tools), &rankings(&tools));
    let expect = "\
# Retrieval: musique

3 passages, 2 queries of fruit.json.
BM25 with k1 = 0.9, b = 0.4.
Dense: letters, which reads 64 tokens of a text besides the special ones.
1 passages and 0 queries were longer and were cut to that.

| group | queries | tool | ndcg@10 | recall@2 | recall@5 | recall@10 | recall@20 |
|---|---:|---|---:|---:|---:|---:|---:|
| all | 2 | bm25 | 0.5000 | 0.5000 | 0.5000 | 0.5000 | 0.5000 |
| all | 2 | dense | 0.9751 | 0.7500 | 1.0000 | 1.0000 | 1.0000 |
| backwards | 1 | bm25 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0000 |
| backwards | 1 | dense | 0.9502 | 0.5000 | 1.0000 | 1.0000 | 1.0000 |
| short | 1 | bm25 | 1.0000 | 1.0000 | 1.0000 | 1.0000 | 1.0000 |
| short | 1 | dense | 1.0000 | 1.0000 | 1.0000 | 1.0000 | 1.0000 |

Changed or left out of the data:

- a note
";
    assert_eq!(summary.to_string(), expect);
    assert_eq!(summary.score("short", Tool::Dense, 0, "recall@2"), Some(1.0));
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["rows"][1]["tool"], "dense");
    assert_eq!(json["rows"][1]["recall@2"], 0.75);
    assert_eq!(json["cut_passages"], 1);
    assert_eq!(json["suite"], "musique");
}
