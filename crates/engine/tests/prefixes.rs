//! Common prefixes of prompts: shared, explained, saved and restored.

use std::path::{Path, PathBuf};

use calls::{Agent, Call, Caller, Divergence, Kept, Prefixes, Prompt, Role, Stability, TenantId, WorkflowId};
use engine::{Config, Engine};
use futures_util::future::join_all;

use crate::smollm2::{ask, engine, run};

/// A call whose prompt shares a memo of about `words` words.
fn on_memo(memo: &str, words: usize, question: &str) -> Call {
    let memo = (0..words).map(|i| format!("{memo} {i} ")).collect::<Vec<_>>().concat();
    let prompt = Prompt::new()
        .system("You answer from the memo.")
        .user(Stability::AppendOnly, memo)
        .user(Stability::Volatile, question);
    Call { workflow: WorkflowId(1), ..Call::new(Agent::Researcher, "test", prompt, 6) }
}

fn computed(engine: &Engine, call: &Call) -> usize {
    let usage = run(engine.call(call.clone())).unwrap().usage;
    usage.prompt_tokens - usage.cached_tokens
}

/// Tokens of the part that the calls of [`on_memo`] share, in whole pages.
fn shared_pages(engine: &Engine, words: usize) -> usize {
    let [a, b] =
        ["Who?", "Then where was it?"].map(|question| engine.prompt_ids(&on_memo("lamp", words, question)).unwrap());
    a.iter().zip(&b).take_while(|(a, b)| a == b).count() / 32 * 32
}

#[test]
fn a_reply_says_where_its_prompt_left_what_was_cached() {
    let Some(engine) = engine(Config::default()) else { return };
    let diverged = |call: Call| run(engine.call(call)).unwrap().diverged;
    let at = |segment, role, stability| Some(Divergence { segment, role, stability });
    assert_eq!(diverged(on_memo("lamp", 60, "Who?")), at(0, Role::System, Stability::Static));
    assert_eq!(diverged(on_memo("lamp", 60, "Then where?")), at(2, Role::User, Stability::Volatile));
    assert_eq!(diverged(on_memo("lamp", 70, "Who?")), at(1, Role::User, Stability::AppendOnly));
    assert_eq!(diverged(on_memo("lamp", 60, "Who?")), None);
}

#[test]
fn a_group_computes_its_trunk_once_and_a_fork_goes_on_where_it_was_answered() {
    let Some(engine) = engine(Config::default()) else { return };
    let trunk = Call::new(
        Agent::Judge,
        "test",
        Prompt::new().system("Be brief.").user(Stability::Corpus, "The sea is blue and wide. ".repeat(60)),
        40,
    );
    let calls = trunk.group((0..4).map(|i| format!("Say {i}.")));
    let ids: Vec<_> = calls.iter().map(|call| engine.prompt_ids(call).unwrap()).collect();
    let common = ids[0].iter().zip(&ids[1]).take_while(|(a, b)| a == b).count() / 32 * 32;
    let replies = run(join_all(calls.iter().map(|call| engine.call(call.clone()))));
    let mut cached: Vec<usize> = replies.iter().map(|reply| reply.as_ref().unwrap().usage.cached_tokens).collect();
    cached.sort_unstable();
    assert!(common > 300);
    assert_eq!(cached, [0, common, common, common]);

    let reply = run(engine.call(ask("Tell me about the sea.", 100))).unwrap();
    let fork = run(engine.call(ask("Tell me about the sea.", 100).fork(&reply, "And the sky?"))).unwrap();
    let answered = (reply.usage.prompt_tokens + reply.usage.output_tokens) / 32 * 32;
    assert!(reply.usage.output_tokens > 32, "{reply:?}");
    assert!(fork.usage.cached_tokens >= answered, "{} of {answered} cached", fork.usage.cached_tokens);
}

#[test]
fn tenants_share_neither_cached_nor_saved_prefixes() {
    let Some(engine) = engine(Config::default()) else { return };
    let of = |tenant: u64| Call { tenant: TenantId::new(tenant), ..on_memo("lamp", 100, "Who?") };
    let shared = shared_pages(&engine, 100);
    assert!(shared > 100);
    let cached = |call: Call| run(engine.call(call)).unwrap().usage.cached_tokens;
    assert_eq!(cached(of(1)), 0);
    assert_eq!(cached(of(2)), 0, "another tenant has asked the very same");
    assert!(cached(of(1)) >= shared && cached(of(2)) >= shared);
    let folder = folder("tenants");
    let [one, three] = [1, 3].map(TenantId::new);
    assert_eq!(
        run(engine.keep_prefixes(three, WorkflowId(1), &folder)),
        Kept::default(),
        "nothing of theirs is cached"
    );
    assert_eq!(run(engine.keep_prefixes(one, WorkflowId(1), &folder)).tokens, shared);
    let refused = run(engine.bring_prefixes(three, &folder)).refused;
    assert!(refused.len() == 1 && refused[0].contains("for another tenant"), "{refused:?}");
    assert_eq!(cached(of(3)), 0);
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("prefixes-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The one file in a folder.
fn only_file(folder: &Path) -> PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn kept_prefixes_are_there_after_a_restart_and_the_answer_is_the_same() {
    let Some(first) = engine(Config::default()) else { return };
    let folder = folder("restart");
    let call = on_memo("lamp", 300, "Who?");
    let kept = |engine: &Engine| run(engine.keep_prefixes(call.tenant, call.workflow, &folder));
    let brought = |engine: &Engine| run(engine.bring_prefixes(call.tenant, &folder));
    let all = |tokens| Kept { tokens, refused: Vec::new() };
    assert_eq!(brought(&first), all(0), "nothing was kept yet");
    let cold = run(first.call(call.clone())).unwrap();
    run(first.call(Call { workflow: WorkflowId(2), ..on_memo("harbour", 50, "Who?") })).unwrap();
    let shared = shared_pages(&first, 300);
    assert_eq!(kept(&first), all(shared), "neither what prompts end with nor another workflow's is kept");
    drop(first);

    let Some(second) = engine(Config::default()) else { return };
    assert_eq!(brought(&second), all(shared));
    let warm = run(second.call(call.clone())).unwrap();
    assert_eq!((warm.text, warm.usage.cached_tokens), (cold.text.clone(), shared));
    assert_eq!(brought(&second), all(0), "it is all there");
    let written = |folder: &Path| std::fs::metadata(only_file(folder)).unwrap().modified().unwrap();
    let before = written(&folder);
    assert_eq!((kept(&second), written(&folder)), (all(0), before), "nothing is new");

    // Pages evicted in the meantime are restored; the other prompts take more than the page pool.
    let Some(small) = engine(Config { kv_tokens: 3072, ..Config::default() }) else { return };
    assert_eq!(brought(&small), all(shared));
    small.close_workflow(call.workflow);
    (0..4).for_each(|i| {
        let other = Call { workflow: WorkflowId(0), ..on_memo(&format!("other{i}"), 250, "Who?") };
        assert!(computed(&small, &other) > 300);
    });
    assert!(brought(&small).tokens > 0);
    assert_eq!(run(small.call(call.clone())).unwrap().usage.cached_tokens, shared);

    // Every byte of the file is checked, and a refused file costs only time.
    let path = only_file(&folder);
    let whole = std::fs::read(&path).unwrap();
    for at in [0, 9, 14, 40, 300, 5000, whole.len() / 2, whole.len() - 40, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        replace(&path, &flipped);
        let refused = brought(&second).refused;
        assert!(refused.len() == 1 && refused[0].contains("is damaged"), "byte {at}: {refused:?}");
    }
    replace(&path, &whole);
    assert_eq!(brought(&second), all(0));
    let precise = Config { kv_precision: models::KvPrecision::F32, ..Config::default() };
    let Some(other) = engine(precise) else { return };
    let refused = brought(&other).refused;
    assert!(refused.len() == 1 && refused[0].contains("by another model"), "{refused:?}");
    assert!(run(other.call(call)).unwrap().usage.cached_tokens == 0);
}

/// Atomically replaces a file.
fn replace(path: &Path, bytes: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}
