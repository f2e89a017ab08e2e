//! A failing request ends alone: a tiny model in which one letter gives NaN, callers that panic and limits that cannot
//! be met, next to healthy requests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use calls::{Agent, Call, CallError, Caller, Finish, Limits, OnText, Prompt, Reply, Stability, TenantId};
use candle_core::{Device, Tensor};
use engine::{Config, Engine, Models};
use futures_util::future::join_all;
use models::adapter::Adapter;
use models::{AdaptedRows, Batch, DecoderNetwork, DecoderSpec, KvCache, KvPrecision, LanguageModel, Output};

/// The letter whose embedding is NaN; each byte is a token of that number in the golden tokenizer's order.
const POISON: char = '~';

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                        {% endfor %}<|im_start|>assistant\n";

/// The golden Llama with random weights, its chat template and a poisoned row of the embedding.
fn poisoned(name: &str) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["config.json", "tokenizer.json"] {
        std::fs::copy(golden.join(name), folder.join(name)).unwrap();
    }
    std::fs::write(folder.join("chat_template.jinja"), TEMPLATE).unwrap();
    let mut tensors: HashMap<String, Tensor> =
        candle_core::safetensors::load(golden.join("model.safetensors"), &Device::Cpu).unwrap();
    let embedding = tensors.get_mut("model.embed_tokens.weight").unwrap();
    let mut rows = embedding.to_vec2::<f32>().unwrap();
    let tokenizer = models::Tokenizer::from_file(&golden.join("tokenizer.json")).unwrap();
    let id = tokenizer.encode(&POISON.to_string()).unwrap()[0];
    rows[id as usize].fill(f32::NAN);
    *embedding = Tensor::new(rows, &Device::Cpu).unwrap();
    candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
    folder
}

fn engine(folder: &Path, config: Config) -> Engine {
    let model = LanguageModel::load(folder, &Device::Cpu).unwrap();
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    Engine::start(models, config).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn ask(text: &str) -> Call {
    let prompt = Prompt::new().user(Stability::Volatile, text);
    Call::new(Agent::Responder, "test", prompt, 24)
}

/// Starts a call at whose only text the engine's thread waits until the sender is dropped.
fn hold_up(engine: &Engine) -> (JoinHandle<Result<Reply, CallError>>, mpsc::Sender<()>) {
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let on_text = Some(OnText::new(move |_| {
        let _ = begun.send(());
        let _ = may_go_on.lock().unwrap().recv_timeout(Duration::from_mins(1));
    }));
    let first = std::thread::spawn({
        let engine = engine.clone();
        let call = ask("Wait");
        let limits = Limits { max_output_tokens: 1, ..call.limits };
        move || run(engine.call(Call { on_text, limits, ..call }))
    });
    has_begun.recv().unwrap();
    (first, go_on)
}

#[test]
fn a_request_whose_values_are_no_numbers_ends_alone_and_its_pages_are_not_reused() {
    let folder = poisoned("poisoned");
    let config = Config { kv_tokens: 4096, step_tokens: 64, ..Config::default() };
    let trunk = "The sea is wide and the land is far away from here. ";
    let healthy: Vec<String> = (0..6).map(|i| format!("{trunk}{i} is well")).collect();
    let alone: Vec<String> =
        healthy.iter().map(|text| run(engine(&folder, config).call(ask(text))).unwrap().text).collect();

    // Healthy and failing calls in one batch with a common prefix, the failing ones first, so that the others share
    // pages with them.
    let engine = engine(&folder, config);
    let (first, go_on) = hold_up(&engine);
    let sick: Vec<String> = (0..3).map(|i| format!("{trunk}{i}{POISON}{} is not", "x".repeat(40))).collect();
    let calls = sick.iter().chain(&healthy).map(|text| engine.call(ask(text)));
    let (replies, ()) = run(async { futures_util::join!(join_all(calls), async { drop(go_on) }) });
    assert!(first.join().unwrap().is_ok());
    let mut replies = replies.into_iter();
    for reply in replies.by_ref().take(sick.len()) {
        let Err(CallError::Failed { reason, .. }) = reply else { panic!("{reply:?}") };
        assert!(reason.contains("NaN"), "{reason}");
    }
    let together: Vec<String> = replies.map(|reply| reply.unwrap().text).collect();
    assert_eq!(together, alone);

    // Once more: the results of failing calls are in no cache.
    for text in &sick {
        assert!(matches!(run(engine.call(ask(text))), Err(CallError::Failed { .. })));
    }
    let again: Vec<String> = healthy.iter().map(|text| run(engine.call(ask(text))).unwrap().text).collect();
    assert_eq!(again, alone);
}

#[test]
fn a_page_of_a_failed_request_that_others_read_in_the_same_step_is_computed_again() {
    let folder = poisoned("poisoned-step");
    let trunk = "The sea is wide and the land is far away from here. ";
    let sick = format!("{trunk}{POISON}");
    let healthy: Vec<String> = (0..3).map(|i| format!("{trunk}{i} is well")).collect();
    let config = Config { kv_tokens: 1024, ..Config::default() };
    let reply = |engine: &Engine, text: &str| run(engine.call(ask(text))).unwrap().text;
    let alone: Vec<String> = healthy.iter().map(|text| reply(&engine(&folder, config), text)).collect();

    // They begin in one step.
    let engine = engine(&folder, config);
    let (first, go_on) = hold_up(&engine);
    let calls = std::iter::once(&sick).chain(&healthy).map(|text| engine.call(ask(text)));
    let (replies, ()) = run(async { futures_util::join!(join_all(calls), async { drop(go_on) }) });
    assert!(first.join().unwrap().is_ok());
    let [failed, replies @ ..] = &replies[..] else { panic!() };
    assert!(matches!(failed, Err(CallError::Failed { .. })), "{failed:?}");
    let together: Vec<&str> = replies.iter().map(|reply| &*reply.as_ref().unwrap().text).collect();
    assert_eq!(together, alone);
    let cached = |text: &str| run(engine.call(ask(text))).unwrap().usage.cached_tokens;
    assert!(cached(&healthy[0]) > trunk.len(), "the trunk is cached");

    // Other prompts take every page.
    for number in 0..20 {
        reply(&engine, &format!("{number}: {}", "the tide comes in. ".repeat(5)));
    }
    assert!(cached(&healthy[0]) < trunk.len(), "its pages were evicted");
}

#[test]
fn limits_of_no_tokens_and_beyond_all_numbers_are_refused_and_the_engine_lives() {
    let engine = engine(&poisoned("limits"), Config { kv_tokens: 4096, ..Config::default() });
    let limited = |max_output_tokens| {
        let call = ask("The sea");
        engine.call(Call { limits: Limits { max_output_tokens, ..call.limits }, ..call })
    };
    for most in [usize::MAX, usize::MAX - 5, 1 << 40] {
        let refused = run(limited(most));
        assert!(matches!(refused, Err(CallError::TooLong { max_output_tokens, .. }) if max_output_tokens == most));
    }
    let refused = run(limited(0)).unwrap_err();
    assert!(matches!(&refused, CallError::Sampling { reason, .. } if reason.contains("one token")), "{refused}");
    assert_eq!(run(limited(1)).unwrap().usage.output_tokens, 1);
}

#[test]
fn a_caller_that_panics_ends_its_own_request() {
    let engine = engine(&poisoned("panics"), Config { kv_tokens: 4096, ..Config::default() });
    let alone = run(engine.call(ask("The sea is wide"))).unwrap().text;
    let on_text = Some(OnText::new(|_| panic!("the reader fell over")));
    let panics = Call { on_text, ..ask("The land is far") };
    let (broken, healthy) =
        run(async { futures_util::join!(engine.call(panics), engine.call(ask("The sea is wide"))) });
    let Err(CallError::Failed { reason, .. }) = broken else { panic!("{broken:?}") };
    assert!(reason.contains("the reader fell over"), "{reason}");
    assert_eq!(healthy.unwrap().text, alone);
    assert_eq!(run(engine.call(ask("The sea is wide"))).unwrap().text, alone);
}

/// A network whose engine has a KV cache of one page, so that no page can be copied; it computes with another cache.
#[derive(Debug)]
struct Uncopied {
    network: Box<dyn DecoderNetwork>,
    cache: KvCache,
}

impl DecoderNetwork for Uncopied {
    fn spec(&self) -> &DecoderSpec {
        self.network.spec()
    }

    fn on_gpu(&self) -> bool {
        self.network.on_gpu()
    }

    fn arithmetic(&self) -> String {
        self.network.arithmetic()
    }

    fn takes_kv(&self, precision: KvPrecision) -> bool {
        self.network.takes_kv(precision)
    }

    fn kv_cache(&self, _: usize, precision: KvPrecision) -> models::Result<KvCache> {
        self.network.kv_cache(1, precision)
    }

    fn adapt(&mut self, adapter: &Adapter) -> models::Result<usize> {
        self.network.adapt(adapter)
    }

    fn forward_adapted(&self, batch: Batch<'_>, adapted: &[AdaptedRows], _: &KvCache) -> models::Result<Output> {
        self.network.forward_adapted(batch, adapted, &self.cache)
    }
}

#[test]
fn a_page_that_cannot_be_copied_ends_the_requests_that_need_it_only() {
    let config = Config { kv_tokens: 4096, max_running: 2, ..Config::default() };
    let folder = poisoned("uncopied");
    let model = LanguageModel::load(&folder, &Device::Cpu).unwrap();
    let cache = model.network.kv_cache(config.kv_tokens / models::PAGE_TOKENS, config.kv_precision).unwrap();
    let model = LanguageModel { network: Box::new(Uncopied { network: model.network, cache }), ..model };
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    let uncopied = Engine::start(models, config).unwrap();
    // Tenants have no pages in common, so that the first call of each copies none.
    let of = |tenant, text: &str| Call { tenant: TenantId::new(tenant), ..ask(text) };
    let reply = run(uncopied.call(of(1, "The sea is wide"))).unwrap();
    let calls = [of(2, "The sea is wide"), of(1, "The sea is deep"), of(3, "The sea is wide")];
    let replies = run(join_all(calls.map(|call| uncopied.call(call))));
    let [running, copying, waiting] = &replies[..] else { panic!() };
    let Err(CallError::Failed { reason, .. }) = copying else { panic!("{copying:?}") };
    assert!(reason.starts_with("computation failed: shape mismatch"), "{reason}");
    assert_eq!([running, waiting].map(|reply| reply.as_ref().unwrap().text.clone()), [&*reply.text; 2]);
    assert_eq!(run(uncopied.call(of(4, "The sea is wide"))).unwrap().text, reply.text);
}

#[test]
fn calls_beyond_the_last_permit_are_refused_at_once() {
    let config = Config { kv_tokens: 4096, max_running: 2, max_waiting: 3, ..Config::default() };
    let engine = engine(&poisoned("admission"), config);
    // One call holds a permit until all others are made, so that none of them is answered before the last is made.
    let (first, go_on) = hold_up(&engine);
    let calls = (0..40).map(|_| engine.call(ask("The sea is wide")));
    let (replies, ()) = run(async { futures_util::join!(join_all(calls), async { drop(go_on) }) });
    assert!(first.join().unwrap().is_ok());
    let refused = replies.iter().filter(|reply| matches!(reply, Err(CallError::Overloaded { queued: 5 }))).count();
    assert_eq!((replies.iter().filter(|reply| reply.is_ok()).count(), refused), (4, 36));
    // Their permits are free again.
    assert!(run(engine.call(ask("The sea is wide"))).is_ok_and(|reply| reply.finish != Finish::ClosedEarly));
}

#[test]
fn a_tenant_with_many_calls_leaves_a_place_and_a_turn_to_another() {
    let config = Config { kv_tokens: 4096, max_running: 1, max_waiting: 19, ..Config::default() };
    let engine = engine(&poisoned("tenants"), config);
    let (first, go_on) = hold_up(&engine);
    let ended = Mutex::new(Vec::new());
    let call = async |tenant| {
        let reply = engine.call(Call { tenant, ..ask("The sea is wide") }).await;
        if reply.is_ok() {
            ended.lock().unwrap().push(tenant);
        }
        reply
    };
    let other = TenantId::new(2);
    let calls = (0..40).map(|_| call(TenantId::LOCAL)).chain([call(other)]);
    let (replies, ()) = run(async { futures_util::join!(join_all(calls), async { drop(go_on) }) });
    assert!(first.join().unwrap().is_ok());
    let refused = replies.iter().filter(|reply| matches!(reply, Err(CallError::Overloaded { queued: 20 }))).count();
    assert_eq!(refused, 21, "one tenant may hold every place");
    assert_eq!(replies[40].as_ref().unwrap().text, replies[0].as_ref().unwrap().text);
    let before = ended.lock().unwrap().iter().position(|tenant| *tenant == other).unwrap();
    assert!(before <= 4, "the call of the other tenant is answered after {before} calls");
}
