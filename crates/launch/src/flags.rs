//! Command-line flags that several commands share: where data live, which device computes, which models work.

mod values;

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum as _;
use clap::builder::styling::{AnsiColor, Styles};
use models::{KvPrecision, Quantisation};

use values::threads;
pub use values::{at_least_one, bundled_adapter, bytes, evidence_tokens, extension, temperature};

/// Colours of help texts.
pub const STYLES: Styles =
    Styles::styled().header(AnsiColor::Yellow.on_default()).literal(AnsiColor::Green.on_default());

/// The help heading of the model flags; the section `[models]` of the config file takes the flags under it.
pub const MODELS_HEADING: &str = "Models";

/// The language model and the embedding model where none is named.
pub const DEFAULT_MODEL: &str = "smollm2-135m-instruct";
pub const DEFAULT_EMBEDDER: &str = "all-minilm-l6-v2";

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "This machine")]
pub struct GlobalFlags {
    /// Folder for models and corpora [default: MEMLOCAL_HOME, or where the platform puts data]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// File of `memlocal bundle` whose models and corpora are used [default: this program, if it is a bundle]
    #[arg(long, global = true, value_name = "FILE", env = "MEMLOCAL_BUNDLE")]
    pub bundle: Option<PathBuf>,
    /// Connect to no other machine; HF_HUB_OFFLINE=1 does the same
    #[arg(long, global = true)]
    pub offline: bool,
    /// PostgreSQL with pgvector that keeps corpora, texts and vectors, for all processes that name the same one:
    /// postgres://USER:PASSWORD@HOST/DATABASE. The data folder holds copies, brought up to date when a corpus is opened
    #[arg(long, global = true, value_name = "URL", env = "MEMLOCAL_VECTORS", hide_env_values = true)]
    pub vectors: Option<String>,
    /// File of settings [default: `config.toml` in the data folder, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "MEMLOCAL_CONFIG")]
    pub config: Option<PathBuf>,
    /// GPU to compute on: its number, several with commas, auto (one if there is one) or none. Layers that do not fit on it
    /// are computed on the CPU
    #[arg(long, global = true, value_name = "N,...|auto", default_value_t = Gpu::None, env = "MEMLOCAL_GPU")]
    gpu: Gpu,
    /// Compute on the CPU, whatever else is set; --gpu none
    #[arg(long, global = true)]
    cpu: bool,
    /// What computes the networks: kernels (written for CPUs and NVIDIA GPUs) or portable (candle's operations, on any
    /// device; slower) [default: kernels, on Apple's GPUs portable]
    #[arg(long, global = true, value_name = "NAME", env = "MEMLOCAL_BACKEND")]
    pub backend: Option<BackendChoice>,
    /// Threads to compute with [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
    /// Tokens that the KV cache of each language model holds, for running prompts and for cached prefixes [default: the
    /// model's context, 16384 at least]
    #[arg(long, global = true, value_name = "N", value_parser = at_least_one)]
    pub kv_tokens: Option<usize>,
    /// How keys and values are kept: f16; bf16, for faster attention on processors with AVX512-BF16 or AMX; q8_0, in half the
    /// memory; or auto, which is bf16 if the kernels compute on such a processor, else f16, and on the CPU q8_0 if only that
    /// fits into memory. On GPUs bf16 and q8_0 with --backend portable only
    #[arg(long, global = true, value_name = "FORMAT", default_value = "auto")]
    kv: KvFormat,
    /// Maximum speculative tokens per step, over all running requests; 0 turns speculation off. Answers are the same
    /// [default: 8, on NVIDIA GPUs 15]
    #[arg(long, alias = "guesses", global = true, value_name = "N")]
    pub draft_tokens: Option<usize>,
}

impl GlobalFlags {
    /// The GPU to compute on.
    pub fn gpu(&self) -> Gpu {
        if self.cpu { Gpu::None } else { self.gpu.clone() }
    }

    /// The numbers of the GPUs to compute on, if they are named by numbers.
    pub fn gpu_numbers(&self) -> &[usize] {
        match &self.gpu {
            Gpu::Numbers(numbers) if !self.cpu => numbers,
            _ => &[],
        }
    }

    /// How keys and values are kept if they fit. What `auto` is does not depend on whether a GPU is found, so that memory can be
    /// planned without one.
    pub fn kv(&self) -> KvPrecision {
        let by_cpu_kernels = self.gpu() == Gpu::None && self.backend != Some(BackendChoice::Portable);
        match self.kv {
            KvFormat::Auto if by_cpu_kernels && kernels::cpu::active_isa().multiplies_bf16() => KvPrecision::Bf16,
            KvFormat::Auto | KvFormat::F16 => KvPrecision::F16,
            KvFormat::Bf16 => KvPrecision::Bf16,
            KvFormat::Q8_0 => KvPrecision::Q8_0,
        }
    }

    /// True if the CPU may keep keys and values in 8 bits where they fit only so.
    pub fn kv_is_auto(&self) -> bool {
        self.kv == KvFormat::Auto
    }

    /// Makes the format of keys and values independent of free memory, for measurements.
    pub fn fix_kv(&mut self) {
        if self.kv_is_auto() {
            self.kv = if self.kv() == KvPrecision::Bf16 { KvFormat::Bf16 } else { KvFormat::F16 };
        }
    }

    /// Arguments that give another process of memlocal these flags. The URL of `--vectors` is not among them: it may have
    /// a password, and other users of the machine can see command lines.
    pub fn as_arguments(&self) -> Vec<OsString> {
        let path = |path: &Option<PathBuf>| path.clone().map(PathBuf::into_os_string);
        let text = |text: String| Some(OsString::from(text));
        let backend = self.backend.and_then(|backend| backend.to_possible_value());
        let kv = self.kv.to_possible_value();
        let flags: [(&str, Option<OsString>); 9] = [
            ("--data-dir", path(&self.data_dir)),
            ("--bundle", path(&self.bundle)),
            ("--config", path(&self.config)),
            ("--gpu", text(self.gpu().to_string())),
            ("--backend", backend.and_then(|backend| text(backend.get_name().to_owned()))),
            ("--threads", self.threads.and_then(|threads| text(threads.to_string()))),
            ("--kv-tokens", self.kv_tokens.and_then(|tokens| text(tokens.to_string()))),
            ("--kv", kv.and_then(|kv| text(kv.get_name().to_owned()))),
            ("--draft-tokens", self.draft_tokens.and_then(|tokens| text(tokens.to_string()))),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| Some([OsString::from(flag), value?]));
        given.flatten().chain(self.offline.then(|| OsString::from("--offline"))).collect()
    }
}

/// Which GPU computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gpu {
    /// None: the CPU computes.
    None,
    /// The first, if there is one.
    Auto,
    /// The ones with these numbers, in the driver's order; the layers of a model are divided among them.
    Numbers(Vec<usize>),
}

impl FromStr for Gpu {
    type Err = String;

    fn from_str(name: &str) -> Result<Gpu, String> {
        match name {
            "none" => Ok(Gpu::None),
            "auto" => Ok(Gpu::Auto),
            numbers => {
                let wrong = || "it must be a number, numbers with commas between them, auto or none".to_owned();
                let numbers =
                    numbers.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>().map_err(|_| wrong())?;
                let is_twice = (1..numbers.len()).any(|at| numbers[..at].contains(&numbers[at]));
                if is_twice { Err("it names a GPU twice".into()) } else { Ok(Gpu::Numbers(numbers)) }
            }
        }
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gpu::None => f.write_str("none"),
            Gpu::Auto => f.write_str("auto"),
            Gpu::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}

/// What computes the networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendChoice {
    /// The kernels of this project.
    Kernels,
    /// candle's operations.
    Portable,
}

/// How keys and values are to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum KvFormat {
    /// As the processor computes attention fastest, or in 8 bits where only these fit into its memory.
    #[value(name = "auto")]
    Auto,
    #[value(name = "f16")]
    F16,
    #[value(name = "bf16")]
    Bf16,
    #[value(name = "q8_0")]
    Q8_0,
}

/// An adapter, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdapterFlag {
    /// No adapter that a model would have by default.
    None,
    /// The reader that `memlocal train` keeps beside a corpus; without a name, beside the corpus that is asked.
    Corpus(Option<String>),
    /// The adapter at a path, under a name.
    At { name: String, path: PathBuf },
}

impl FromStr for AdapterFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<AdapterFlag, String> {
        if text == "none" {
            return Ok(AdapterFlag::None);
        }
        if text == "corpus" {
            return Ok(AdapterFlag::Corpus(None));
        }
        if let Some(name) = text.strip_prefix("corpus:").filter(|name| !name.is_empty()) {
            return Ok(AdapterFlag::Corpus(Some(name.to_owned())));
        }
        let (name, path) = text.split_once('=').ok_or("it must be NAME=PATH, corpus, corpus:NAME or none")?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || !name.chars().all(is_plain) || ["none", "base"].contains(&name) {
            return Err(format!("`{name}` cannot be a name: letters, digits, `.`, `_` and `-`, not `none` or `base`"));
        }
        if path.is_empty() {
            return Err("the path is missing behind `=`".into());
        }
        Ok(AdapterFlag::At { name: name.to_owned(), path: path.into() })
    }
}

impl fmt::Display for AdapterFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdapterFlag::None => f.write_str("none"),
            AdapterFlag::Corpus(None) => f.write_str("corpus"),
            AdapterFlag::Corpus(Some(name)) => write!(f, "corpus:{name}"),
            AdapterFlag::At { name, path } => write!(f, "{name}={}", path.display()),
        }
    }
}

/// Which models work.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = MODELS_HEADING)]
pub struct ModelFlags {
    /// Language model: a name from `memlocal models list`, `hf:OWNER/REPO[:FILE|QUANT][@REVISION]`, a .gguf file, or a folder
    /// with safetensors; MODEL+ADAPTER runs it with an adapter (--adapter)
    #[arg(long, default_value = DEFAULT_MODEL, value_name = "NAME|PATH", env = "MEMLOCAL_MODEL")]
    pub model: String,
    /// Another model for the memorizer, which writes abstracts
    #[arg(long, value_name = "NAME|PATH")]
    pub memorizer: Option<String>,
    /// Another model for the researcher, which plans and integrates
    #[arg(long, value_name = "NAME|PATH")]
    pub researcher: Option<String>,
    /// Another model for the judge, which checks what is found [default: the researcher's]
    #[arg(long, value_name = "NAME|PATH")]
    pub judge: Option<String>,
    /// Another model for the builder, which extracts facts and graphs [default: the researcher's]
    #[arg(long, value_name = "NAME|PATH")]
    pub builder: Option<String>,
    /// LoRA adapter, once for each: PEFT's folder, its safetensors file, a GGUF adapter, or hf:OWNER/REPO. MODEL+NAME as a model runs with it
    /// (`base+NAME`: the model of --model); over HTTP it is the model MODEL:NAME. `none` turns a model's own adapter off;
    /// `corpus` is the one that `memlocal train` made for the corpus that is asked, `corpus:NAME` that of another
    #[arg(long = "adapter", value_name = "NAME=PATH|corpus[:NAME]|none")]
    pub adapters: Vec<AdapterFlag>,
    /// Make dense weights (bf16, f16, f32) smaller while they are loaded: q8_0 or q4_k
    #[arg(long, value_name = "FORMAT")]
    pub quantise: Option<Quantisation>,
    /// Reach FACTOR times the context that the model was made for (YaRN); short texts change a little too
    #[arg(long, value_name = "FACTOR", value_parser = extension)]
    pub yarn: Option<f32>,
    /// Embedding model
    #[arg(long, default_value = DEFAULT_EMBEDDER, value_name = "NAME|PATH")]
    pub embedder: String,
    /// Make dense weights of the embedding model smaller and faster, or not: q8_0 or stored; its vectors differ slightly
    /// [default: q8_0 for bge-m3, stored for other names and for bge-m3:f32]
    #[arg(long, value_name = "FORMAT")]
    pub quantise_embedder: Option<EmbedderFormat>,
    /// The system message that a server shares among tenants.
    #[arg(skip)]
    pub shared_prompt: Option<String>,
}

/// What the dense weights of an embedding model become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedderFormat {
    Stored,
    Quantised(Quantisation),
}

impl FromStr for EmbedderFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<EmbedderFormat, String> {
        match name {
            "stored" => Ok(EmbedderFormat::Stored),
            name => name.parse().map(EmbedderFormat::Quantised).map_err(|error: String| format!("{error}, stored")),
        }
    }
}

/// The endpoint that answers calls, where that is not this machine's engine.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Remote engine")]
pub struct EndpointFlags {
    /// OpenAI-compatible endpoint on your own network whose model answers every call, http://HOST:PORT/v1 (vLLM, SGLang,
    /// another memlocal); vectors are still made here. MEMLOCAL_ENGINE_KEY holds its key, if it needs one
    #[arg(long, value_name = "URL", conflicts_with_all = ["model", "memorizer", "researcher", "judge", "builder", "adapters", "quantise", "yarn"])]
    pub engine: Option<String>,
    /// Its model [default: the first that it lists]
    #[arg(long, value_name = "NAME")]
    pub engine_model: Option<String>,
    /// Tokens that prompt and answer may have together there [default: what it says]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub engine_context: Option<usize>,
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::OsString;

    use clap::Parser;

    use super::{AdapterFlag, EndpointFlags, GlobalFlags, Gpu, KvPrecision, ModelFlags};

    /// The flags of a command that runs models.
    #[derive(Debug, Parser)]
    pub(crate) struct Flags {
        #[command(flatten)]
        pub models: ModelFlags,
        #[command(flatten)]
        pub endpoint: EndpointFlags,
        #[command(flatten)]
        pub global: GlobalFlags,
    }

    #[test]
    fn gpus_have_the_numbers_that_name_them() {
        let numbers = |args: &[&str]| Flags::parse_from([&["memlocal"], args].concat()).global.gpu_numbers().to_vec();
        assert_eq!(numbers(&["--gpu", "2,3"]), [2, 3]);
        assert!(numbers(&["--gpu", "2,3", "--cpu"]).is_empty());
        assert!(numbers(&["--gpu", "auto"]).is_empty());
    }

    #[test]
    fn keys_and_values_are_in_bf16_where_kernels_for_the_cpu_multiply_it() {
        let kv = |args: &[&str]| Flags::parse_from([&["memlocal"], args].concat()).global.kv();
        let fast = if kernels::cpu::active_isa().multiplies_bf16() { KvPrecision::Bf16 } else { KvPrecision::F16 };
        assert_eq!(kv(&[]), fast);
        assert_eq!(kv(&["--gpu", "0", "--cpu"]), fast);
        assert_eq!(kv(&["--gpu", "0"]), KvPrecision::F16);
        assert_eq!(kv(&["--gpu", "auto"]), KvPrecision::F16, "whether there is one or not");
        assert_eq!(kv(&["--backend", "portable"]), KvPrecision::F16);
        for (name, kept) in [("f16", KvPrecision::F16), ("bf16", KvPrecision::Bf16), ("q8_0", KvPrecision::Q8_0)] {
            assert_eq!(kv(&["--kv", name]), kept);
        }
        for args in [&["memlocal"][..], &["memlocal", "--kv", "q8_0"]] {
            let mut global = Flags::parse_from(args).global;
            let kept = global.kv();
            global.fix_kv();
            assert_eq!((global.kv(), global.kv_is_auto()), (kept, false), "no memory decides about a measurement");
        }
    }

    #[test]
    fn another_process_is_given_the_same_flags() {
        let check = |words: &[&str]| {
            let global = Flags::parse_from(["memlocal"].iter().chain(words)).global;
            let arguments = global.as_arguments();
            let again = Flags::parse_from([OsString::from("memlocal")].into_iter().chain(arguments.clone())).global;
            assert_eq!(again.as_arguments(), arguments, "{words:?}");
            assert_eq!((again.gpu(), again.backend, again.kv), (global.gpu(), global.backend, global.kv), "{words:?}");
            assert_eq!((again.threads, again.kv_tokens), (global.threads, global.kv_tokens), "{words:?}");
            assert_eq!((again.data_dir, again.offline), (global.data_dir, global.offline), "{words:?}");
        };
        check(&[]);
        check(&["--gpu", "1,0", "--backend", "portable", "--kv", "q8_0", "--draft-tokens", "0"]);
        check(&["--gpu", "1", "--cpu", "--data-dir", "a b", "--offline", "--threads", "2", "--kv-tokens", "4096"]);
        let vectors = Flags::parse_from(["memlocal", "--vectors", "postgres://ann:secret@db/a"]).global;
        assert!(vectors.as_arguments().iter().all(|argument| !argument.to_string_lossy().contains("secret")));
    }

    #[test]
    fn gpus_are_numbers_auto_or_none() {
        let parse = |text: &str| text.parse::<Gpu>();
        assert_eq!((parse("auto"), parse("none")), (Ok(Gpu::Auto), Ok(Gpu::None)));
        assert_eq!((parse("1"), parse("1,0")), (Ok(Gpu::Numbers(vec![1])), Ok(Gpu::Numbers(vec![1, 0]))));
        assert_eq!(parse("1,0").unwrap().to_string(), "1,0");
        for wrong in ["", "x", "0,", "-1", "0,0", "auto,1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_adapter_is_a_name_and_a_path_or_none() {
        let parse = |text: &str| text.parse::<AdapterFlag>();
        let at = |name: &str, path: &str| Ok(AdapterFlag::At { name: name.into(), path: path.into() });
        assert_eq!(parse("none"), Ok(AdapterFlag::None));
        assert_eq!(parse("corpus"), Ok(AdapterFlag::Corpus(None)));
        assert_eq!(parse("corpus:notes"), Ok(AdapterFlag::Corpus(Some("notes".into()))));
        assert_eq!(parse("corpus=a"), at("corpus", "a"));
        assert_eq!(parse("plans=a/b=c"), at("plans", "a/b=c"));
        for wrong in ["plans", "corpus:", "=a", "plans=", "a:b=c", "none=c", "base=c", "a+b=c"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
