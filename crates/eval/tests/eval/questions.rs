//! Whole runs with rule-based models: end to end, killed and resumed, scored again, replayed, compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{BoxFuture, Call, CallError, Caller, Finish, ModelInfo, Reply, Scripted, ScriptedEmbedder, Tokens};
use eval::qa::{
    Backend, Item, Plan, Preset, Progress, QaFolder, QaManifest, Report, RulerPlan, Scope, Tape, ask, compare, items,
    measured, publish, replay, sweep, write_report,
};
use eval::{Beginning, Error, Manifest};
use memory::memcot::{self, MemcotStore};
use memory::{SearchTool, rag};
use serde_json::{Value, json};
use test_support::prompt::input;
use test_support::{fill, oracle};

use crate::{Files, evaluation_data};

/// A rule-based model, which closes after a number of calls.
pub struct Rule {
    script: Scripted,
    reply: fn(&Call) -> String,
    calls: AtomicUsize,
    most: usize,
    /// The step that never has room.
    refused: Option<&'static str>,
    /// Whether every second reply reaches its token limit.
    cuts: bool,
}

const CONTEXT_TOKENS: usize = 8192;

impl Rule {
    pub fn new(reply: fn(&Call) -> String, most: usize) -> Rule {
        let calls = AtomicUsize::new(0);
        Rule { script: Scripted::new(CONTEXT_TOKENS), reply, calls, most, refused: None, cuts: false }
    }

    pub fn cutting(self) -> Rule {
        Rule { cuts: true, ..self }
    }

    fn refusing(self, step: &'static str) -> Rule {
        Rule { refused: Some(step), ..self }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Caller for Rule {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            // Yields first, as an engine would.
            tokio::task::yield_now().await;
            if self.calls() == self.most {
                return Err(CallError::Closed);
            }
            if self.refused == Some(call.step) {
                return Err(CallError::Failed { step: call.step, reason: "no room".into() });
            }
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            let mut reply = Scripted::new(CONTEXT_TOKENS).answer(call.step, (self.reply)(&call)).call(call).await?;
            // A time with many digits, which must be unchanged after a round trip through the disk.
            reply.usage.seconds = reply.usage.prompt_tokens as f64 / 7.0;
            // The first token is forced.
            (0..).zip(&mut reply.logprobs).for_each(|(id, token)| (token.id, token.drawn) = (Some(id), id > 0));
            if self.cuts && number % 2 == 1 {
                reply.finish = Finish::Length;
            }
            Ok(reply)
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.script.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.script.models()
    }
}

/// Answers that Ann went to the beach, if the prompt contains it.
pub fn beach(call: &Call) -> String {
    match call.step {
        "gam.memorize" => "Ann and Bo talk.".into(),
        "gam.plan" => json!({ "info_needs": [], "tools": ["keyword"], "keyword_collection": [input(call, "QUESTION")],
            "vector_queries": [], "page_index": [] })
        .to_string(),
        "gam.integrate" => json!({ "content": shown(call), "sources": [] }).to_string(),
        "gam.info_check" => json!({ "enough": true }).to_string(),
        "gam.follow_up" => json!({ "new_requests": [] }).to_string(),
        "answer" => shown(call),
        step if step.starts_with("judge.") => "yes".into(),
        other => panic!("there is no rule for {other}"),
    }
}

fn shown(call: &Call) -> String {
    let all: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
    if all.contains("sand") { "the beach".into() } else { "Nobody knows.".into() }
}

pub const TALKS: &str = r#"[
 {"sample_id": "c1", "conversation": {"speaker_a": "Ann", "speaker_b": "Bo",
   "session_1_date_time": "1 May 2023", "session_1": [
     {"speaker": "Ann", "dia_id": "D1:1", "text": "I went to the beach and there was sand."},
     {"speaker": "Bo", "dia_id": "D1:2", "text": "How nice."}],
   "session_2_date_time": "2 May 2023", "session_2": [
     {"speaker": "Bo", "dia_id": "D2:1", "text": "I bought a blue car."}]},
  "qa": [{"question": "Where did Ann go?", "answer": "the beach", "evidence": ["D1:1"], "category": 4},
         {"question": "What did Bo buy?", "answer": "a blue car", "evidence": ["D2:1"], "category": 4},
         {"question": "When did Ann go?", "answer": 2023, "evidence": ["D1:1"], "category": 2},
         {"question": "Why did Bo fly?", "adversarial_answer": "a dream", "evidence": ["D1:2"], "category": 5}]},
 {"sample_id": "c2", "conversation": {"speaker_a": "Cy", "speaker_b": "Di", "session_1": [
     {"speaker": "Cy", "dia_id": "D1:1", "text": "My brother is a baker."}]},
  "qa": [{"question": "What is the brother of Cy?", "answer": "a baker", "evidence": ["D1:1"], "category": 1}]}
]"#;

pub fn plan(suite: &str, data: PathBuf, methods: &[&str]) -> Plan {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    Plan {
        suite: suite.into(),
        data,
        methods: names(methods),
        models: names(&["rules"]),
        memorizer: None,
        researcher: None,
        judge: None,
        builder: None,
        adapters: Vec::new(),
        rollouts: false,
        embedder: "letters".into(),
        quantise: None,
        yarn: None,
        preset: None,
        scorers: names(&["f1:locomo", "f1:gam", "locomo:judge"]),
        limit: None,
        sample: None,
        categories: names(&["1", "2", "3", "4"]),
        seed: 0,
        layout: "shared-first".into(),
        profile: None,
        output: "integration".into(),
        temperature: 0.3,
        page_tokens: None,
        method_page_tokens: BTreeMap::new(),
        evidence_tokens: None,
        cases: Vec::new(),
        search: None,
        memcot_store: None,
        layers: Vec::new(),
        k: None,
        method_k: BTreeMap::new(),
        window: None,
        max_iterations: None,
        width: 3,
        ruler: None,
    }
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Asks all open questions, and finishes the run.
pub fn run(folder: &QaFolder, plan: &Plan, rule: &Rule) -> eval::Result<Report> {
    let machine = Backend { model: "rules", caller: rule, embedder: &ScriptedEmbedder };
    let mut last = None;
    let cases = block_on(ask(folder, plan, "rules", Some(machine), &mut |progress| last = Some(progress)))?;
    let of = cases.questions() * plan.methods.len();
    assert!(last.is_none() || last == Some(Progress::Asked { done: of, of }), "{last:?}");
    let manifest = Manifest::new(Beginning::now(vec!["memlocal".into()]), Vec::new(), Vec::new());
    folder.finish(&QaManifest::new(plan.clone(), cases.notes, folder.tape(), manifest)?)?;
    write_report(folder.path())
}

fn answers(items: &[Item]) -> Vec<(&str, &str, &str, &str)> {
    items
        .iter()
        .map(|item| (item.method.as_str(), item.case.as_str(), item.question.id.as_str(), item.answer.as_str()))
        .collect()
}

/// Keys of all calls in a transcript.
pub fn keys(run: &Path) -> Vec<String> {
    let file = fs::read_to_string(run.join("transcript.jsonl")).unwrap();
    let key = |line: &str| serde_json::from_str::<Value>(line).unwrap()["key"].as_str().unwrap().to_owned();
    file.lines().map(key).collect()
}

#[test]
fn a_suite_is_asked_from_end_to_end() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = plan("locomo", files.path("locomo.json"), &["gam", "rag", "direct"]);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    let report = run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
    let path = folder.path();
    let (prepared, found) = items(path).unwrap();
    assert_eq!((prepared.len(), found.len()), (6, 12));
    assert_eq!(answers(&found)[0], ("direct", "c1", "0", "the beach"));
    let rag = ("rules".to_owned(), "rag".to_owned());
    assert_eq!(report.number(&rag, "4 single-hop", "f1:gam"), Some(0.5));
    assert_eq!(report.number(&rag, "all", "locomo:judge"), Some(1.0));
    for name in ["recall@5", "recall_any@5", "recall_all@5"] {
        assert_eq!(report.number(&rag, "all", name), Some(1.0), "{name}");
    }
    assert_eq!(report.number(&("rules".into(), "direct".into()), "all", "recall@5"), Some(0.0));
    assert!(report.number(&rag, "all", "compaction").is_some_and(|ratio| ratio > 0.5));
    let gam = report.costs.iter().find(|cost| cost.method == "gam").unwrap();
    assert_eq!((gam.prepare.calls, gam.questions), (3, 4), "three sessions, three abstracts");
    assert!(!path.join("work").exists());
    for picture in ["scores-f1-locomo", "scores-f1-gam", "recall", "compaction-f1-locomo", "tokens", "seconds"] {
        let svg = fs::read_to_string(path.join(format!("plots/{picture}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("gam") && svg.contains("rules"), "{picture}");
        assert!(path.join(format!("plots/{picture}.png")).is_file());
    }
    let text = report.to_string();
    assert!(text.contains("| here | rules | gam |") && text.contains("| GAM | qwen2.5-14b | gam | 58.93 |"), "{text}");
    assert!(text.contains("locomo:judge, version 1, with a local judge"), "{text}");
    assert!(text.contains("| compaction, % |") && text.contains("Compaction: the prompt of"), "{text}");
    let transcript = fs::read_to_string(path.join("transcript.jsonl")).unwrap();
    let first: Scope = serde_json::from_str(transcript.lines().next().unwrap()).unwrap();
    assert_eq!((first.method.as_str(), first.question), ("gam", None));
    assert!(QaFolder::create(path, &plan).is_err_and(|error| matches!(error, Error::Occupied { .. })));
}

#[test]
fn an_interrupted_run_resumes_without_repeating_a_call() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = plan("locomo", files.path("locomo.json"), &["gam", "rag"]);
    let whole = Rule::new(beach, usize::MAX);
    let folder = QaFolder::create(&files.path("whole"), &plan).unwrap();
    run(&folder, &plan, &whole).unwrap();
    let expect = items(folder.path()).unwrap().1;
    let mut expect_keys = keys(folder.path());
    expect_keys.sort();

    let path = files.path("cut");
    let mut calls = 0;
    for most in [1, 2, 3, 1, 4, usize::MAX] {
        let rule = Rule::new(beach, most);
        let folder = QaFolder::resume(&path, &plan).unwrap();
        let outcome = run(&folder, &plan, &rule);
        assert_eq!(outcome.is_ok(), most == usize::MAX);
        calls += rule.calls();
        // A killed process leaves half a line.
        for name in ["transcript.jsonl", "tape.jsonl", "results.jsonl"].iter().filter(|_| most != usize::MAX) {
            let mut file = fs::OpenOptions::new().append(true).open(path.join(name)).unwrap();
            std::io::Write::write_all(&mut file, b"{\"half\": ").unwrap();
        }
    }
    assert_eq!(calls, whole.calls());
    let mut cut_keys = keys(&path);
    cut_keys.sort();
    assert_eq!(cut_keys, expect_keys);
    assert_eq!(cut_keys.iter().collect::<BTreeSet<_>>().len(), cut_keys.len(), "no call twice");
    assert_eq!(items(&path).unwrap().1, expect);

    let other = Plan { seed: 1, ..plan.clone() };
    assert!(QaFolder::resume(&path, &other).is_err_and(|error| matches!(error, Error::OtherPlan { .. })));
    let none = Rule::new(beach, 0);
    run(&QaFolder::resume(&path, &plan).unwrap(), &plan, &none).unwrap();
    assert_eq!(none.calls(), 0, "a finished run has nothing left to ask");
}

#[test]
fn a_run_that_was_killed_while_it_wrote_its_plan_is_begun_again() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let (plan, path) = (plan("locomo", files.path("locomo.json"), &["rag"]), files.path("run"));
    fs::create_dir(&path).unwrap();
    fs::write(path.join("plan.json.part"), "{ \"suite\":").unwrap();
    drop(QaFolder::resume(&path, &plan).unwrap());
    QaFolder::resume(&path, &plan).unwrap();
}

#[test]
fn a_run_about_other_data_is_not_resumed() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let (data, path) = (files.path("locomo.json"), files.path("run"));
    let plan = plan("locomo", data.clone(), &["rag"]);
    let folder = QaFolder::create(&path, &plan).unwrap();
    let [digest] = folder.data() else { panic!("one file is read") };
    assert_eq!((digest.name.as_str(), digest.bytes), ("locomo.json", TALKS.len() as u64));
    assert!(QaFolder::resume(&path, &plan).is_ok());

    fs::write(&data, TALKS.replace("a blue car", "a red car")).unwrap();
    let error = QaFolder::resume(&path, &plan).unwrap_err().to_string();
    let folder = path.display();
    assert_eq!(error, format!("the run in {folder} was begun with other data; begin again in another folder"));
    fs::write(&data, TALKS).unwrap();
    assert!(QaFolder::resume(&path, &plan).is_ok());

    // The format of earlier versions.
    fs::write(path.join("plan.json"), serde_json::to_string(&plan).unwrap()).unwrap();
    let error = QaFolder::resume(&path, &plan).unwrap_err().to_string();
    let problem = "does not say with which data it was begun; begin again in another folder";
    assert_eq!(error, format!("the run in {folder} {problem}"));
}

/// A rule-based model that answers only when no further call arrives; records the number of concurrent calls.
struct Crowd {
    rule: Rule,
    waiting: AtomicUsize,
    most: AtomicUsize,
    /// The most concurrent calls of the preparation of texts.
    most_prepared: AtomicUsize,
    preparing: AtomicUsize,
}

impl Crowd {
    fn new(reply: fn(&Call) -> String) -> Crowd {
        let zero = || AtomicUsize::new(0);
        let rule = Rule::new(reply, usize::MAX);
        Crowd { rule, waiting: zero(), most: zero(), most_prepared: zero(), preparing: zero() }
    }
}

impl Caller for Crowd {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            let (is_preparing, begin) = (call.step == "gam.memorize", |count: &AtomicUsize, most: &AtomicUsize| {
                most.fetch_max(count.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            });
            begin(&self.waiting, &self.most);
            if is_preparing {
                begin(&self.preparing, &self.most_prepared);
            }
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if is_preparing {
                self.preparing.fetch_sub(1, Ordering::Relaxed);
            }
            self.rule.call(call).await
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.rule.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.rule.models()
    }
}

#[test]
fn questions_of_different_texts_are_asked_at_once() {
    let asked = |number: usize| {
        json!({ "_id": format!("q{number}"), "question": format!("Where did Ann go, {number}?"), "answer": "the beach",
            "supporting_facts": [["Ann", 0]],
            "context": [["Ann", [format!("Ann was at {number}, where there was sand.")]], ["Bo", ["Bo was not."]]] })
    };
    let data = Value::from((0..12).map(asked).collect::<Vec<_>>()).to_string();
    let files = Files::new(&[("hotpot_dev_distractor_v1.json", &data)]);
    let path = files.path("hotpot_dev_distractor_v1.json");
    let ask_with = |width: usize| {
        let scorers = vec!["f1:squad".to_owned()];
        let plan =
            Plan { width, scorers, categories: Vec::new(), ..plan("hotpotqa", path.clone(), &["gam", "direct"]) };
        let folder = QaFolder::create(&files.path(&format!("run-{width}")), &plan).unwrap();
        let crowd = Crowd::new(beach);
        let machine = Backend { model: "rules", caller: &crowd, embedder: &ScriptedEmbedder };
        let mut told = Vec::new();
        let report = &mut |progress| {
            if let Progress::Asked { done, of } = progress {
                told.push((done, of));
            }
        };
        block_on(ask(&folder, &plan, "rules", Some(machine), report)).unwrap();
        assert_eq!(told, (1..=24).map(|done| (done, 24)).collect::<Vec<_>>());
        let found = items(folder.path()).unwrap().1;
        let timed = measured(folder.path()).unwrap().iter().filter(|line| line.seconds.is_some()).count();
        (found, crowd.most.into_inner(), crowd.most_prepared.into_inner(), timed)
    };
    let (alone, most, most_prepared, timed) = ask_with(1);
    // GAM's information check and follow-up are one round.
    assert_eq!((most, most_prepared, timed), (2, 1, 48), "each method of each text, and each question");
    let (together, most, most_prepared, timed) = ask_with(8);
    assert!((8..=16).contains(&most), "{most} calls of eight questions at once");
    assert_eq!((most_prepared, timed), (8, 0), "one text for each question");
    assert_eq!(alone, together);
}

#[test]
fn summaries_are_no_passages_whose_number_they_have() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let base = Plan { cases: vec!["c1".into()], ..plan("locomo", files.path("locomo.json"), &["comorag"]) };
    let recall = |name: &str, layers: &[&str]| {
        let plan = Plan { layers: layers.iter().map(ToString::to_string).collect(), ..base.clone() };
        let folder = QaFolder::create(&files.path(name), &plan).unwrap();
        let report = run(&folder, &plan, &Rule::new(fill::reply, usize::MAX)).unwrap();
        let setup = format!("comorag's layers {}", layers.join(", "));
        assert_eq!(report.setup.contains(&setup), !layers.is_empty(), "{}", report.setup);
        report.number(&("rules".into(), "comorag".into()), "all", "recall@all").unwrap()
    };
    assert_eq!(recall("all", &[]), 1.0);
    assert_eq!(recall("summaries", &["semantic", "episodic"]), 0.0, "no search brings a passage");
}

#[test]
fn turns_that_memcot_reads_around_a_hit_count_as_found() {
    // One turn has the question's word; the evidence is two turns further.
    let turn = |number: usize, text: &str| json!({ "speaker": "Ann", "dia_id": format!("D1:{number}"), "text": text });
    let filler = "Nothing.";
    let texts = ["Zanzibar!", filler, "There was sand.", filler, filler, filler];
    let turns: Vec<Value> = (1..).zip(texts).map(|(number, text)| turn(number, text)).collect();
    let talk = json!([{ "sample_id": "c1", "conversation": { "speaker_a": "Ann", "speaker_b": "Bo", "session_1": turns },
        "qa": [{ "question": "Zanzibar?", "answer": "sand", "evidence": ["D1:3"], "category": 4 }] }]);
    let files = Files::new(&[("locomo.json", &talk.to_string())]);
    let run_with = |name: &str, window: usize| {
        let plan = Plan {
            k: Some(1),
            window: Some(window),
            max_iterations: Some(1),
            ..plan("locomo", files.path("locomo.json"), &["memcot"])
        };
        let folder = QaFolder::create(&files.path(name), &plan).unwrap();
        let report = run(&folder, &plan, &Rule::new(fill::reply, usize::MAX)).unwrap();
        let recall = report.number(&("rules".into(), "memcot".into()), "all", "recall@all");
        (folder.path().to_owned(), recall)
    };
    let (narrow, of_narrow) = run_with("narrow", 1);
    let (wide, of_wide) = run_with("wide", 2);
    assert_eq!((of_narrow, of_wide), (Some(0.0), Some(1.0)));
    let drawn = sweep(&[narrow, wide], &files.path("plots")).unwrap();
    assert!(drawn.contains(&"recall-by-window".to_owned()), "{drawn:?}");
}

#[test]
fn the_manifest_names_the_profile() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let profile_of = |name: &str, profile: Option<&str>| {
        let base = plan("locomo", files.path("locomo.json"), &["direct"]);
        let plan = Plan { profile: profile.map(str::to_owned), ..base };
        let folder = QaFolder::create(&files.path(name), &plan).unwrap();
        run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
        serde_json::to_value(eval::qa::manifest(folder.path()).unwrap()).unwrap()["profiles"].take()
    };
    assert_eq!(profile_of("usual", None), json!({ "rules": "paper" }), "the size of its model is unknown");
    assert_eq!(profile_of("small", Some("small")), json!({ "rules": "small" }));
}

#[test]
fn a_run_can_be_scored_again_and_replayed_without_its_model() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = plan("locomo", files.path("locomo.json"), &["gam", "rag", "direct"]);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
    let path = folder.path();
    let read = |name: &str| fs::read(path.join(name)).unwrap();
    let before = ["report.md", "report.json", "plots/scores-f1-gam.svg"].map(read);
    write_report(path).unwrap();
    assert!(before == ["report.md", "report.json", "plots/scores-f1-gam.svg"].map(read));

    let again = block_on(replay(path, &plan, &mut |_| ())).unwrap();
    assert_eq!(again, folder.items().unwrap().1);

    // Results of earlier versions have no places of citations.
    let citing = again.iter().find(|item| !item.citations.is_empty()).unwrap();
    let mut earlier = citing.clone();
    for cited in &mut earlier.citations {
        (cited.title, cited.page_number, cited.section) = (None, None, None);
    }
    assert!(earlier != *citing && earlier.is_replayed_by(citing) && citing.is_replayed_by(citing));
    assert!(!citing.is_replayed_by(&earlier));
    earlier.answer.push('s');
    assert!(!earlier.is_replayed_by(citing));

    let transcript = fs::read_to_string(path.join("transcript.jsonl")).unwrap();
    fs::write(path.join("transcript.jsonl"), transcript.replace("the beach", "the moon")).unwrap();
    // No judge has scored the other answer.
    let plan = Plan { scorers: vec!["f1:gam".into()], ..plan };
    let changed = block_on(replay(path, &plan, &mut |_| ())).unwrap();
    assert!(answers(&changed).iter().any(|(.., answer)| *answer == "the moon"), "answers come from the transcript");
    fs::write(path.join("tape.jsonl"), "").unwrap();
    let lost = block_on(replay(path, &plan, &mut |_| ()));
    assert!(lost.is_err_and(|error| matches!(error, Error::NotOnTape { .. })));
    assert_eq!(Tape::read(path).unwrap().instructions().len(), 6);
}

#[test]
fn what_is_published_of_a_run_has_no_word_of_its_data() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = plan("locomo", files.path("locomo.json"), &["gam", "rag"]);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
    let path = folder.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let adapter = format!("reader={}", files.path("adapter").display());
    manifest["command"] = json!(["memlocal-bench", "qa", "--data", files.path("locomo.json"), "--adapter", adapter]);
    fs::write(&path, manifest.to_string()).unwrap();
    let shown = files.path("shown");
    publish(folder.path(), &shown).unwrap();
    assert!(matches!(publish(folder.path(), &shown), Err(Error::Occupied { .. })));

    let (before, after) = (items(folder.path()).unwrap().1, items(&shown).unwrap().1);
    assert_eq!(answers(&after), answers(&before));
    assert!(
        before.iter().zip(&after).all(|(before, after)| after.scores == before.scores && after.usage == before.usage)
    );
    let same = compare(folder.path(), &shown).unwrap();
    assert!(same.iter().all(|pair| pair.questions == 4 && pair.mean_a == pair.mean_b && pair.low == 0.0), "{same:?}");
    assert_eq!(same.len(), 6, "two columns by three scorers");

    let citations = || before.iter().flat_map(|item| &item.citations);
    let cited = citations().find(|cited| cited.citation.quote.contains("sand")).unwrap();
    assert!(citations().all(|cited| cited.page_number.is_some()));
    let report = fs::read_to_string(folder.path().join("report.md")).unwrap();
    assert!(report.contains(&format!("\n  - {cited}: ")) && report.contains(", page 1, "), "{report}");
    for cited in after.iter().flat_map(|item| &item.citations) {
        let (title, section) = (&cited.title, &cited.section);
        assert!(cited.citation.quote.is_empty() && title.is_none() && section.is_none(), "{cited}");
        assert!(cited.page_number.is_some(), "the number of a page is no text");
    }
    let names: BTreeSet<String> =
        fs::read_dir(&shown).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let want = ["left-out.json", "manifest.json", "plots", "report.json", "report.md", "results.jsonl"];
    assert_eq!(names, want.map(str::to_owned).into());
    for name in want.into_iter().filter(|name| *name != "plots") {
        let text = fs::read_to_string(shown.join(name)).unwrap();
        // A question, a gold answer, a turn, and the path of the data.
        for word in ["Where did", "a blue car", "sand", files.path("").to_str().unwrap()] {
            assert!(!text.contains(word), "{name} has `{word}`");
        }
    }
    let published: Value = serde_json::from_slice(&fs::read(shown.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(
        published["command"],
        json!(["memlocal-bench", "qa", "--data", "locomo.json", "--adapter", "reader=adapter"])
    );
    let left_out: Value = serde_json::from_slice(&fs::read(shown.join("left-out.json")).unwrap()).unwrap();
    assert_eq!(left_out[0]["name"], "transcript.jsonl");
    // Without gold answers every score would be 0.
    assert!(matches!(write_report(&shown), Err(Error::Published { .. })));
    assert_eq!(left_out[0]["bytes"], fs::metadata(folder.path().join("transcript.jsonl")).unwrap().len());
}

#[test]
fn columns_are_compared_by_the_questions_that_both_were_asked() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = plan("locomo", files.path("locomo.json"), &["rag", "direct"]);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
    let nothing = Rule::new(|_| "Nobody knows.".into(), usize::MAX);
    let other = QaFolder::create(&files.path("other"), &plan).unwrap();
    run(&other, &plan, &nothing).unwrap();

    let within = compare(folder.path(), folder.path()).unwrap();
    assert_eq!(within.len(), 3, "one pair by three scorers");
    assert!(within.iter().all(|pair| pair.mean_a == pair.mean_b && pair.p == 1.0), "{within:?}");
    let between = compare(folder.path(), other.path()).unwrap();
    assert_eq!(between.len(), 6, "two columns by three scorers");
    let gam = between.iter().find(|pair| pair.scorer == "f1:gam" && pair.a.1 == "rag").unwrap();
    assert_eq!((gam.questions, gam.mean_a, gam.mean_b), (4, 0.25, 0.0));
    assert!(gam.low == -0.75 && gam.high == 0.0 && gam.p > 0.05, "{gam}");
    let said = gam.to_string();
    assert!(said.contains("rules by rag 25.00 %, rules by rag 0.00 %, difference -25.00 points ("), "{said}");
    assert!(said.ends_with(": too few to say"), "{said}");
    let judge = between.iter().find(|pair| pair.scorer == "locomo:judge").unwrap();
    assert!(judge.p < 0.05, "{judge}");

    // The scores beside the answers may be those of an earlier version of a scorer.
    let path = other.path().join("results.jsonl");
    let results = fs::read_to_string(&path).unwrap();
    let score = |value: &str| format!("\"f1:gam\":{{\"value\":{value}}}");
    assert!(results.contains(&score("0.0")), "{results}");
    fs::write(&path, results.replace(&score("0.0"), &score("1.0"))).unwrap();
    assert_eq!(compare(folder.path(), other.path()).unwrap(), between);
}

#[test]
fn an_adversarial_question_is_scored_by_locomos_own_scorer_alone() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = Plan { categories: vec!["5".into()], ..plan("locomo", files.path("locomo.json"), &["direct"]) };
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    // What the data set has as the answer is to be refused.
    let report = run(&folder, &plan, &Rule::new(|_| "a dream".into(), usize::MAX)).unwrap();
    let found = items(folder.path()).unwrap().1;
    let [item] = &found[..] else { panic!("{found:?}") };
    assert_eq!(item.scores.keys().collect::<Vec<_>>(), ["f1:locomo"]);
    assert!(item.verdicts.is_empty(), "no judge is asked: {:?}", item.verdicts);
    let number = |name: &str| report.number(&item.column(), "all", name);
    assert_eq!(["f1:locomo", "f1:gam", "locomo:judge"].map(number), [Some(0.0), None, None]);
}

#[test]
fn a_mean_over_enough_questions_has_an_interval() {
    let qa = |number: usize| {
        let (question, answer) = match number % 2 {
            0 => (format!("Where did Ann go on trip {number}?"), "the beach"),
            _ => (format!("What did Bo buy on trip {number}?"), "a blue car"),
        };
        json!({ "question": question, "answer": answer, "evidence": ["D1:1"], "category": 4 })
    };
    let turn = json!({ "speaker": "Ann", "dia_id": "D1:1", "text": "I went to the beach and there was sand." });
    let conversation =
        json!({ "speaker_a": "Ann", "speaker_b": "Bo", "session_1_date_time": "1 May 2023", "session_1": [turn] });
    let report = |name: &str, questions: usize| {
        let qa: Vec<Value> = (0..questions).map(qa).collect();
        let talks = json!([{ "sample_id": "c1", "conversation": conversation, "qa": qa }]).to_string();
        let files = Files::new(&[("locomo.json", &talks)]);
        let plan = plan("locomo", files.path("locomo.json"), &["direct"]);
        let folder = QaFolder::create(&files.path(name), &plan).unwrap();
        run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap()
    };
    let column = ("rules".to_owned(), "direct".to_owned());
    // 12 of 24 answers are right, so the variance is 0.25 * 24 / 23. The judge takes all of them.
    let enough = report("enough", 24);
    let margin = enough.margin(&column, "all", "f1:gam").unwrap();
    assert!((margin - 1.96 * (0.25_f64 / 23.0).sqrt()).abs() < 1e-12, "{margin}");
    let page = enough.to_string();
    let row = "| rules | direct | all | 24 | 0 | 50.00 ± 20.43 | 50.00 ± 20.43 | 100.00 |";
    assert!(page.contains(row) && page.contains("1.96 standard errors"), "{page}");
    let few = report("few", 18);
    assert_eq!(few.margin(&column, "all", "f1:gam"), None);
    let (page, row) = (few.to_string(), "| rules | direct | all | 18 | 0 | 50.00 | 50.00 | 100.00 |");
    assert!(page.contains(row) && !page.contains('±'), "{page}");
}

#[test]
fn a_question_that_a_method_cannot_answer_is_a_result() {
    let long = TALKS.replace("How nice.", &"It was long. ".repeat(4000));
    let files = Files::new(&[("locomo.json", &long)]);
    let plan = plan("locomo", files.path("locomo.json"), &["direct"]);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    let report = run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
    let all = report.rows.iter().find(|row| row.group == "all").unwrap();
    assert_eq!((all.questions, all.failed), (4, 3));
    let failed = items(folder.path()).unwrap().1.into_iter().find_map(|item| item.failed).unwrap();
    assert!(failed.contains("the context holds 8192"), "{failed}");
}

#[test]
fn rules_find_every_needle_of_ruler_through_all_of_gam() {
    let Some(data) = evaluation_data("ruler/nounlist.txt") else { return };
    let data = data.parent().unwrap().parent().unwrap().to_owned();
    let files = Files::new(&[]);
    let tasks = eval::qa::ruler::Task::ALL.iter().filter(|task| task.group == "retrieval");
    let ruler = RulerPlan { length_tokens: 8000, tasks: tasks.map(|task| task.name.to_owned()).collect(), samples: 2 };
    let scorers = vec!["ruler:gam".to_owned(), "ruler:nvidia".to_owned()];
    let plan = Plan { ruler: Some(ruler), scorers, categories: Vec::new(), ..plan("ruler", data, &["gam"]) };
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    let report = run(&folder, &plan, &Rule::new(oracle::reply, usize::MAX)).unwrap();
    println!("{report}");
    assert_eq!(report.questions, 16);
    let gam = ("rules".to_owned(), "gam".to_owned());
    assert_eq!(report.number(&gam, "retrieval", "ruler:gam"), Some(1.0));
    assert_eq!(report.number(&gam, "all", "ruler:nvidia"), Some(1.0));
    let answers = transcript(folder.path()).into_iter().filter(|(_, step, _)| step == "answer");
    let rules: Vec<bool> =
        answers.map(|(_, _, prompt)| prompt.contains("Give every value of the keys that the question names")).collect();
    assert!(!rules.is_empty() && rules.iter().all(|has_rules| *has_rules), "every task has its own rules");
}

#[test]
fn presets_know_their_suites() {
    let preset = Preset::named("gam/table1-qwen2.5-14b").unwrap();
    assert_eq!(preset.models, ["qwen2.5-14b-instruct"]);
    assert_eq!((preset.k.get("gam"), preset.page_tokens.get("gam")), (Some(&5), Some(&2048)));
    let yarn = ["locomo", "ruler"].map(|suite| preset.yarn(suite.parse().unwrap()));
    assert_eq!(yarn, [None, Some(4.0)], "Qwen2.5 reads 32K as it is and 128K by YaRN");
    let memcot = Preset::named("memcot/table1-qwen2.5-14b").unwrap();
    assert_eq!((memcot.k.get("memcot"), memcot.k.get("rag")), (Some(&10), None));
    assert!(preset.check("hotpotqa".parse().unwrap()).is_ok());
    let rounds = ["hotpotqa", "ruler"].map(|suite| preset.max_iterations(suite.parse().unwrap()));
    assert_eq!(rounds, [Some(3), Some(5)]);
    assert_eq!(Preset::named("memcot/table1-qwen2.5-14b").unwrap().memcot_store.as_deref(), Some("lightrag"));
    for name in ["gam/table1-qwen2.5-14b", "memcot/table1-qwen2.5-14b", "memcot/table2-qwen2.5-7b", "comorag/table1"] {
        let plan = Plan { search: Preset::named(name).unwrap().search, ..plan("locomo", PathBuf::new(), &["rag"]) };
        let rag: rag::Options = plan.settings("rag".parse().unwrap()).unwrap().options();
        assert_eq!(rag.search, SearchTool::Dense, "{name}");
    }
    assert_eq!((preset.layout.as_str(), preset.profile.as_str()), ("paper", "paper"));
    let twin = Preset::named("gam/table1-qwen2.5-14b/shared-first").unwrap();
    assert_eq!((twin.layout.as_str(), twin.profile.as_str(), twin.seed), ("shared-first", "paper", preset.seed));
    let error = preset.check("musique".parse().unwrap()).unwrap_err().to_string();
    assert_eq!(error, "gam/table1-qwen2.5-14b is about locomo, hotpotqa, ruler, narrativeqa, not musique");
    let error = Preset::named("gam").unwrap_err().to_string();
    assert!(error.contains("comorag/table1, comorag/table1/shared-first, mindgraph/table2,"), "{error}");
}

/// The transcript of a run: method, step and prompt of every call.
fn transcript(run: &Path) -> Vec<(String, String, String)> {
    let file = fs::read_to_string(run.join("transcript.jsonl")).unwrap();
    let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
    let line = |line: &str| {
        let record = serde_json::from_str(line).unwrap();
        (text(&record, "method"), text(&record, "step"), text(&record, "prompt"))
    };
    file.lines().map(line).collect()
}

const ANSWERS: [&str; 4] = ["answer", "memcot.respond", "comorag.answer", "mindgraph.answer"];
const METHODS: [&str; 6] = ["gam", "memcot", "comorag", "mindgraph", "rag", "direct"];

#[test]
fn only_the_call_that_answers_is_shown_the_options() {
    let novel = "Ada Brook kept the lighthouse at Pell. In 1911 she married the boat builder Tom Reed.";
    let questions = r#"{"novel_id": 7, "questions": [{"question": "Whom did she marry?",
        "options": {"A": "Xerxes", "B": "Zenobia"}, "answer": "A"}]}"#;
    let files = Files::new(&[("7-novel.txt", novel), ("7.json", questions)]);
    let scorers = vec!["mc:letter".to_owned()];
    let plan = Plan { scorers, categories: Vec::new(), ..plan("detectiveqa", files.folder().to_owned(), &METHODS) };
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    let report = run(&folder, &plan, &Rule::new(fill::reply, usize::MAX)).unwrap();
    let mut asked = BTreeSet::new();
    for (method, step, prompt) in transcript(folder.path()) {
        let told = prompt.contains("Zenobia");
        assert_eq!(told, ANSWERS.contains(&step.as_str()), "{method}: {step}");
        if ANSWERS.contains(&step.as_str()) {
            assert!(told && prompt.contains("the letter of the right option in brackets"), "{method}: {prompt}");
            asked.insert(method);
        }
    }
    assert_eq!(asked.len(), METHODS.len(), "{asked:?}");
    for item in items(folder.path()).unwrap().1 {
        assert_eq!(item.answer, "[A] Xerxes", "{}", item.method);
        assert_eq!(report.number(&item.column(), "all", "mc:letter"), Some(1.0));
    }
    assert_eq!(block_on(replay(folder.path(), &plan, &mut |_| ())).unwrap(), items(folder.path()).unwrap().1);
}

#[test]
fn longmemevals_evidence_is_found_by_turn_and_by_session() {
    let said = |text: &str, has_answer: bool| json!({ "role": "user", "content": text, "has_answer": has_answer });
    let item = |id: &str, answer: &str| {
        json!({ "question_id": id, "question_type": "multi-session", "question": "How old is the dog Rex?",
            "answer": answer, "question_date": "2023/05/30 (Tue) 21:48",
            "haystack_dates": ["2023/05/03 (Wed) 10:00", "2023/05/01 (Mon) 10:00", "2023/05/02 (Tue) 10:00"],
            "haystack_session_ids": ["answer_b", "sharegpt_c", "answer_a"],
            "answer_session_ids": ["answer_a", "answer_b"],
            "haystack_sessions": [
                [said("The dog Rex had a birthday and is ten.", true), said("He got a bone.", true)],
                [said("It was dull.", false)],
                [said("We have a pet now.", false)]] })
    };
    let data = json!([item("q1", "ten"), item("q2_abs", "The cat's age was never told.")]).to_string();
    let files = Files::new(&[("longmemeval.json", &data)]);
    let scorers = vec!["longmemeval:judge".to_owned(), "f1:squad".to_owned()];
    let base = plan("longmemeval", files.path("longmemeval.json"), &["memcot"]);
    let plan = Plan { scorers, categories: Vec::new(), k: Some(1), window: Some(1), max_iterations: Some(1), ..base };
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    let report = run(&folder, &plan, &Rule::new(fill::reply, usize::MAX)).unwrap();
    let number = |group: &str, name: &str| report.number(&("rules".into(), "memcot".into()), group, name);
    // One turn is found and widened to its session: one of two sessions, and none of the other.
    assert_eq!(number("all", "recall@all"), Some(1.0));
    assert_eq!((number("all", "session_recall@1"), number("all", "session_recall@all")), (Some(0.5), Some(0.5)));
    assert_eq!((number("all", "session_recall_any@5"), number("all", "session_recall_all@5")), (Some(1.0), Some(0.0)));
    assert_eq!(number("abstention", "longmemeval:judge"), Some(1.0));
    assert_eq!(number("abstention", "recall@all"), None, "there is nothing to be found");
    let page = report.to_string();
    assert!(
        page.contains("| rules | memcot | passages | ") && page.contains("| rules | memcot | sessions | 50.00 |"),
        "{page}"
    );
    for (_, step, prompt) in transcript(folder.path()) {
        assert!(!prompt.contains("answer_"), "the id of a session gives it away in {step}: {prompt}");
        let told = prompt.contains("the reason for that") && prompt.contains("The cat's age was never told.");
        assert!(step != "judge.longmemeval" || told || prompt.contains("RIGHT ANSWER:\nten"), "{prompt}");
    }
    let wrong = data.replace("\"answer_session_ids\":[\"answer_a\"", "\"answer_session_ids\":[\"answer_z\"");
    fs::write(files.path("longmemeval.json"), wrong).unwrap();
    let error = QaFolder::create(&files.path("other"), &plan).unwrap_err().to_string();
    assert!(error.contains("answer_session_ids") && error.contains("`answer_z` is none of"), "{error}");
}

#[test]
fn the_day_of_a_question_reaches_every_method() {
    let data = r#"[{"question_id": "q1", "question_type": "temporal-reasoning", "question": "How long ago was it?",
        "answer": "a week", "question_date": "2023/05/30 (Tue) 21:48", "haystack_dates": ["2023/05/23 (Tue) 10:00"],
        "haystack_sessions": [[{"role": "user", "content": "Today I went to the beach and there was sand."}]]}]"#;
    let files = Files::new(&[("longmemeval.json", data)]);
    let (scorers, data) = (vec!["f1:squad".to_owned()], files.path("longmemeval.json"));
    let plan = Plan { scorers, categories: Vec::new(), ..plan("longmemeval", data, &METHODS) };
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    run(&folder, &plan, &Rule::new(fill::reply, usize::MAX)).unwrap();
    let told: BTreeSet<String> = transcript(folder.path())
        .into_iter()
        .filter(|(_, step, _)| ANSWERS.contains(&step.as_str()))
        .map(|(method, _, prompt)| {
            assert!(prompt.contains("Today is 2023/05/30 (Tue) 21:48.\nHow long ago was it?"), "{method}: {prompt}");
            method
        })
        .collect();
    assert_eq!(told.len(), METHODS.len(), "{told:?}");
    let memcot: memcot::Options = plan.settings("memcot".parse().unwrap()).unwrap().options();
    assert_eq!((memcot.window, memcot.store), (15, MemcotStore::Hybrid), "W of many short sessions");
    let over_graph = Plan { memcot_store: Some("lightrag".into()), ..plan };
    assert_eq!(
        over_graph.settings("memcot".parse().unwrap()).unwrap().options::<memcot::Options>().store,
        MemcotStore::Lightrag
    );
}

#[test]
fn each_method_by_itself_is_measured_and_a_text_it_cannot_prepare_is_a_result() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let one = Plan { width: 1, cases: vec!["c2".into()], ..plan("locomo", files.path("locomo.json"), &["gam", "rag"]) };
    let folder = QaFolder::create(&files.path("run"), &one).unwrap();
    let report = run(&folder, &one, &Rule::new(beach, usize::MAX).refusing("gam.memorize")).unwrap();
    let failed: Vec<(String, Option<String>)> =
        items(folder.path()).unwrap().1.into_iter().map(|item| (item.method, item.failed)).collect();
    let [(gam, Some(reason)), (rag, None)] = &failed[..] else { panic!("{failed:?}") };
    assert_eq!((gam.as_str(), rag.as_str()), ("gam", "rag"));
    assert!(reason.starts_with("it could not prepare the text: ") && reason.contains("no room"), "{reason}");
    let stretches: Vec<(String, Option<String>)> =
        measured(folder.path()).unwrap().into_iter().map(|line| (line.scope.method, line.scope.question)).collect();
    let expect = [("gam", None), ("gam", Some("0")), ("rag", None), ("rag", Some("0"))];
    assert_eq!(stretches, expect.map(|(method, question)| (method.to_owned(), question.map(str::to_owned))));
    let page = report.to_string();
    assert!(page.contains("- only 1 of 2 cases are asked: c2"), "{page}");
    assert!(page.contains("c2: What is the brother of Cy? (a baker)\n\n- rules, gam: failed: "), "{page}");
    assert!(page.contains("\n- rules, rag: Nobody knows.\n"), "{page}");
    assert!(report.costs.iter().all(|cost| cost.answer_seconds.is_some()));
}

#[test]
fn a_run_of_which_only_some_questions_were_timed_has_no_time_by_the_clock() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let (path, one) = (files.path("run"), Plan { width: 1, ..plan("locomo", files.path("locomo.json"), &["rag"]) });
    run(&QaFolder::create(&path, &one).unwrap(), &one, &Rule::new(beach, 2)).unwrap_err();
    let timed = measured(&path).unwrap().into_iter().filter(|line| line.scope.question.is_some());
    assert_eq!(timed.count(), 1, "the first question with its judge takes two calls");
    let several = Plan { width: 3, ..one };
    let folder = QaFolder::resume(&path, &several).unwrap();
    let report = run(&folder, &several, &Rule::new(beach, usize::MAX)).unwrap();
    assert_eq!((report.costs[0].questions, report.costs[0].answer_seconds), (4, None));
}

#[test]
fn runs_that_differ_in_one_thing_are_drawn_together() {
    let files = Files::new(&[("locomo.json", TALKS), ("elsewhere/locomo.json", TALKS)]);
    let run_with = |name: &str, data: &str, k: usize, rounds: usize, methods: &[&str]| {
        let base = plan("locomo", files.path(data), methods);
        let plan = Plan { k: Some(k), max_iterations: Some(rounds), ..base };
        let folder = QaFolder::create(&files.path(name), &plan).unwrap();
        run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
        folder.path().to_owned()
    };
    let first = run_with("a", "locomo.json", 1, 1, &["gam", "rag"]);
    let k = run_with("b", "elsewhere/locomo.json", 2, 1, &["gam"]);
    let rounds = run_with("c", "locomo.json", 1, 2, &["gam"]);
    let draw =
        |runs: &[&PathBuf]| sweep(&runs.iter().map(|run| (*run).clone()).collect::<Vec<_>>(), &files.path("plots"));
    assert_eq!(draw(&[&first, &k]).unwrap(), ["score-by-k", "recall-by-k"]);
    assert_eq!(draw(&[&first, &rounds]).unwrap(), ["score-by-rounds", "recall-by-rounds"]);
    let svg = fs::read_to_string(files.path("plots/score-by-rounds.svg")).unwrap();
    assert!(svg.contains("f1:locomo against rounds") && svg.contains("rules, gam, k 1"), "{svg}");
    assert!(!svg.contains("rules, rag"), "one point is no line");
    assert!(files.path("plots/score-by-rounds.png").is_file());
    let error = draw(&[&k, &rounds]).unwrap_err();
    assert!(matches!(error, Error::NotComparable { .. }), "they differ in two things: {error}");
}
