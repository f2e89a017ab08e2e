//! Snapshots are written while other calls run, and a failed one is reported.

use std::fs;
use std::path::{Path, PathBuf};

use calls::{Agent, Call, Caller, Kept, Prefixes, Prompt, Stability, TenantId, WorkflowId};
use engine::{Config, Engine};
use futures_util::FutureExt;

use crate::gate::Gate;
use crate::tiny::{letters, model, run, start};

const WORKFLOW: WorkflowId = WorkflowId(1);

/// An engine on a model of this name that writes a token in each step.
fn engine(name: &str) -> Engine {
    let config = Config { kv_tokens: 16_384, max_draft_tokens: 0, ..Config::default() };
    start(model(name, |tokenizer| tokenizer), config)
}

/// Has the engine compute a prefix of several pages.
fn compute(engine: &Engine, memo: &str) {
    let prompt = Prompt::new().user(Stability::AppendOnly, memo.repeat(20)).user(Stability::Volatile, "Who?");
    let call = Call { workflow: WORKFLOW, ..Call::new(Agent::Researcher, "test", prompt, 4) };
    run(engine.call(call)).unwrap();
}

fn keep(engine: &Engine, folder: &Path) -> Kept {
    run(engine.keep_prefixes(TenantId::LOCAL, WORKFLOW, folder))
}

fn bring(engine: &Engine, folder: &Path) -> Kept {
    run(engine.bring_prefixes(TenantId::LOCAL, folder))
}

fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "kv")).collect()
}

#[test]
fn other_calls_run_before_a_large_snapshot_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let engine = engine("large");
    (0..100).for_each(|number| compute(&engine, &format!("lamp {number:02} ")));
    let (other, gate) = Gate::hold(&engine, letters(&engine, 40));
    let mut saving = engine.keep_prefixes(TenantId::LOCAL, WORKFLOW, folder);
    // Its pages are copied in two parts, and each part is written when the future is polled.
    for part in 0..2 {
        assert!((&mut saving).now_or_never().is_none(), "{part}");
        gate.pass();
        assert!(snapshots(folder).is_empty(), "{part}");
    }
    drop(gate);
    run(other).unwrap();
    let saved = run(saving);
    assert!(saved.tokens > 8_192 && saved.refused.is_empty(), "{saved:?}");
    assert_eq!(bring(&self::engine("large-again"), folder), saved);
}

#[test]
fn a_snapshot_that_cannot_be_written_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let engine = engine("failed");
    compute(&engine, "lamp ");
    let saved = keep(&engine, folder);
    assert!(saved.tokens >= 64 && saved.refused.is_empty(), "{saved:?}");
    let [file] = &snapshots(folder)[..] else { panic!() };

    // A folder in its place.
    fs::remove_file(file).unwrap();
    fs::create_dir(file).unwrap();
    let Kept { tokens, refused } = keep(&engine, folder);
    assert!(tokens == 0 && refused.len() == 1 && refused[0].contains("cannot be saved: "), "{tokens} {refused:?}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "nothing but the folder is there");
    fs::remove_dir(file).unwrap();
    assert_eq!(keep(&engine, folder), saved);
    assert_eq!(bring(&self::engine("failed-again"), folder), saved);
}
