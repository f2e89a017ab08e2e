//! Adapters as PEFT's folders: `adapter_config.json` and `adapter_model.safetensors`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use super::low_rank::{Adapter, Factor, LowRank, Projection, module_name};
use crate::error::{ModelError, Result};
use crate::{files, tensor_file};

pub(super) const CONFIG: &str = "adapter_config.json";
pub(super) const WEIGHTS: &str = "adapter_model.safetensors";

/// How an adapter that is saved was made; one rank and one alpha for all modules.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved<'a> {
    pub base: &'a str,
    pub rank: usize,
    pub alpha: f32,
    pub targets: &'a [Projection],
    pub precision: SavedPrecision,
}

/// How the numbers of an adapter are kept in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SavedPrecision {
    #[default]
    F32,
    F16,
}

impl Adapter {
    /// Reads PEFT's adapter folder.
    ///
    /// # Errors
    /// If a file is missing or damaged, the adapter needs something that is not computed here, or a module does not fit a
    /// decoder.
    pub fn open(folder: &Path) -> Result<Adapter> {
        Adapter::open_peft(folder, folder.join(WEIGHTS))
    }

    /// Reads a folder whose weights are in the file `path`.
    pub(super) fn open_peft(folder: &Path, path: PathBuf) -> Result<Adapter> {
        let config = folder.join(CONFIG);
        if let Some(missing) = [&config, &path].into_iter().find(|path| !files::is_file(path)) {
            let missing = missing.file_name().unwrap_or(missing.as_os_str()).to_string_lossy().into_owned();
            return Err(ModelError::NotAnAdapter { path: folder.to_owned(), missing });
        }
        Adapter::from_peft(&config, &files::read(&config)?, &path, &files::read(&path)?)
    }

    /// Reads the contents of PEFT's two files; the paths are for errors.
    pub(super) fn from_peft(config_path: &Path, config: &[u8], path: &Path, weights: &[u8]) -> Result<Adapter> {
        let damaged = |reason: String| ModelError::Damaged { path: config_path.to_owned(), reason };
        let settings = serde_json::from_slice(config).map_err(|error| damaged(error.to_string()))?;
        let settings = Settings::read(&settings)?;
        let damaged = |reason: String| ModelError::Damaged { path: path.to_owned(), reason };
        let tensors = SafeTensors::deserialize(weights).map_err(|error| damaged(error.to_string()))?;
        let mut found: BTreeMap<(usize, Projection), [Option<Factor>; 2]> = BTreeMap::new();
        for (name, tensor) in tensors.iter() {
            let place =
                place(name).ok_or_else(|| ModelError::AdapterUnsupported { what: format!("tensor `{name}`") })?;
            let &[rows, cols] = tensor.shape() else { return Err(damaged(format!("`{name}` is no matrix"))) };
            let values = floats(name, &tensor)?;
            let (layer, projection, second) = place;
            found.entry((layer, projection)).or_default()[usize::from(second)] = Some(Factor { rows, cols, values });
        }
        let mut modules = BTreeMap::new();
        for ((layer, projection), factors) in found {
            let module = module_name(layer, projection);
            let [Some(a), Some(b)] = factors else {
                return Err(damaged(format!("`{module}` lacks one of its matrices")));
            };
            let (rank, scale) = settings.of(&module);
            if a.rows != rank || b.cols != rank {
                let reason = format!("`{module}` is of rank {} and {}, its configuration says {rank}", a.rows, b.cols);
                return Err(damaged(reason));
            }
            modules.insert((layer, projection), LowRank { rank, scale, a: a.values, b: b.values });
        }
        if modules.is_empty() {
            return Err(damaged("it holds no module".into()));
        }
        Ok(Adapter { modules })
    }

    /// Writes the two files durably; each is replaced at once or not at all. The weights are written in pieces: their bytes
    /// are not in memory together.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, folder: &Path, how: &Saved<'_>) -> Result<()> {
        let io = |path: &Path, source| ModelError::Io { path: path.to_owned(), source };
        let created = std::fs::create_dir_all(folder).and_then(|()| files::sync_name(folder));
        created.map_err(|source| io(folder, source))?;
        let tensors = self.tensors();
        let (dtype, width) = match how.precision {
            SavedPrecision::F32 => (Dtype::F32, 4),
            SavedPrecision::F16 => (Dtype::F16, 2),
        };
        let described = tensors.iter().map(|tensor| {
            let Tensor { name, shape, values } = tensor;
            (name.clone(), dtype, shape.to_vec(), width * values.len())
        });
        let metadata = [("format".to_owned(), "pt".to_owned())];
        let header = tensor_file::header(metadata, described).map_err(|error| ModelError::config(error.to_string()))?;
        let targets: Vec<&str> = how.targets.iter().map(|target| target.name()).collect();
        let config = json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": how.base,
            "r": how.rank,
            "lora_alpha": how.alpha,
            "lora_dropout": 0.0,
            "target_modules": targets,
            "bias": "none",
            "fan_in_fan_out": false,
            "use_rslora": false,
            "use_dora": false,
            "modules_to_save": null,
            "rank_pattern": {},
            "alpha_pattern": {},
            "inference_mode": true,
        });
        let config = format!("{config:#}\n");
        let weights = folder.join(WEIGHTS);
        let written = files::replace(&weights, |file| {
            file.write_all(&header)?;
            tensors.iter().try_for_each(|tensor| write_values(tensor.values, how.precision, file))
        });
        written.map_err(|source| io(&weights, source))?;
        let path = folder.join(CONFIG);
        files::replace(&path, |file| file.write_all(config.as_bytes())).map_err(|source| io(&path, source))
    }

    /// The matrices of all modules, by name: the order in which the safetensors library writes them.
    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = Vec::with_capacity(2 * self.modules.len());
        for ((layer, projection), LowRank { rank, a, b, .. }) in &self.modules {
            let name = format!("base_model.model.{}", module_name(*layer, *projection));
            let (rows, cols) = (b.len() / rank, a.len() / rank);
            tensors.push(Tensor { name: format!("{name}.lora_A.weight"), shape: [*rank, cols], values: a });
            tensors.push(Tensor { name: format!("{name}.lora_B.weight"), shape: [rows, *rank], values: b });
        }
        tensors.sort_by(|one, other| one.name.cmp(&other.name));
        tensors
    }
}

/// A matrix of a file of weights.
struct Tensor<'a> {
    name: String,
    /// Rows, columns.
    shape: [usize; 2],
    /// By rows.
    values: &'a [f32],
}

/// Numbers of a matrix that are converted to bytes together.
const PIECE: usize = 1 << 16;

fn write_values(values: &[f32], precision: SavedPrecision, file: &mut impl Write) -> io::Result<()> {
    values.chunks(PIECE).try_for_each(|piece| file.write_all(&bytes(piece, precision)))
}

/// Layer, projection, and whether it is the second matrix (B).
fn place(tensor: &str) -> Option<(usize, Projection, bool)> {
    let rest = tensor.strip_prefix("base_model.model.model.layers.")?.strip_suffix(".weight")?;
    let (layer, rest) = rest.split_once('.')?;
    let (part, rest) = rest.split_once('.')?;
    let (name, factor) = rest.split_once('.')?;
    let projection = Projection::named(name).filter(|projection| projection.part() == part)?;
    let second = match factor {
        "lora_A" => false,
        "lora_B" => true,
        _ => return None,
    };
    Some((layer.parse().ok()?, projection, second))
}

fn floats(name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>> {
    let pairs = || tensor.data().chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    match tensor.dtype() {
        Dtype::F32 => Ok(tensor.data().chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect()),
        Dtype::F16 => Ok(pairs().map(|pair| half::f16::from_le_bytes(pair).to_f32()).collect()),
        Dtype::BF16 => Ok(pairs().map(|pair| half::bf16::from_le_bytes(pair).to_f32()).collect()),
        other => Err(ModelError::AdapterUnsupported { what: format!("type {other:?} of tensor `{name}`") }),
    }
}

fn bytes(values: &[f32], precision: SavedPrecision) -> Vec<u8> {
    match precision {
        SavedPrecision::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        SavedPrecision::F16 => values.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect(),
    }
}

/// Fields of a configuration that say nothing about how the adapter is computed, or that are read.
const HARMLESS: [&str; 22] = [
    "alpha_pattern",
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "init_lora_weights",
    "layers_pattern",
    "layers_to_transform",
    "lora_alpha",
    "lora_dropout",
    "megatron_core",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "target_modules",
    "task_type",
    "use_rslora",
];

fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Rank and scale of every module.
struct Settings {
    rank: usize,
    alpha: f64,
    ranks: Vec<(String, usize)>,
    alphas: Vec<(String, f64)>,
    by_root: bool,
}

impl Settings {
    fn read(config: &Value) -> Result<Settings> {
        let unsupported = |what: String| Err(ModelError::AdapterUnsupported { what });
        match config["peft_type"].as_str() {
            Some("LORA") => {}
            other => return unsupported(format!("`peft_type` = {}", other.unwrap_or("unknown"))),
        }
        // What is not known to be harmless must be off: PEFT has many variants of LoRA, and new ones with every version.
        for (name, value) in config.as_object().into_iter().flatten() {
            if !HARMLESS.contains(&name.as_str()) && !is_off(value) {
                return unsupported(format!("`{name}` = {value}"));
            }
        }
        // These begin by changing the base model's weights.
        if let Some(start @ ("olora" | "loftq" | "corda" | "lora_ga")) = config["init_lora_weights"].as_str() {
            return unsupported(format!("`init_lora_weights` = {start}"));
        }
        if config["init_lora_weights"].as_str().is_some_and(|start| start.starts_with("pissa")) {
            return unsupported("`init_lora_weights` = pissa".into());
        }
        match &config["bias"] {
            Value::Null => {}
            Value::String(bias) if bias == "none" => {}
            bias => return unsupported(format!("`bias` = {bias}")),
        }
        let rank = |value: &Value| value.as_u64().and_then(|rank| usize::try_from(rank).ok()).filter(|rank| *rank > 0);
        let missing = |name: &str, value: &Value| ModelError::config(format!("the adapter's `{name}` is {value}"));
        let patterns = |name: &str| config[name].as_object().into_iter().flatten();
        // PEFT takes them as regular expressions at the end of a module's name.
        let is_plain = |pattern: &str| pattern.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
        for name in ["rank_pattern", "alpha_pattern"] {
            if let Some((pattern, _)) = patterns(name).find(|(pattern, _)| !is_plain(pattern)) {
                return unsupported(format!("`{name}` with the regular expression `{pattern}`"));
            }
        }
        let ranks = patterns("rank_pattern")
            .map(|(module, value)| Ok((module.clone(), rank(value).ok_or_else(|| missing("rank_pattern", value))?)));
        let alphas = patterns("alpha_pattern").map(|(module, value)| {
            Ok((module.clone(), value.as_f64().ok_or_else(|| missing("alpha_pattern", value))?))
        });
        Ok(Settings {
            rank: rank(&config["r"]).ok_or_else(|| missing("r", &config["r"]))?,
            alpha: config["lora_alpha"].as_f64().ok_or_else(|| missing("lora_alpha", &config["lora_alpha"]))?,
            ranks: ranks.collect::<Result<_>>()?,
            alphas: alphas.collect::<Result<_>>()?,
            by_root: config["use_rslora"].as_bool().unwrap_or(false),
        })
    }

    fn of(&self, module: &str) -> (usize, f32) {
        let fits = |pattern: &str| module == pattern || module.ends_with(&format!(".{pattern}"));
        let rank = self.ranks.iter().find(|(pattern, _)| fits(pattern)).map_or(self.rank, |(_, rank)| *rank);
        let alpha = self.alphas.iter().find(|(pattern, _)| fits(pattern)).map_or(self.alpha, |(_, alpha)| *alpha);
        let divisor = if self.by_root { (rank as f64).sqrt() } else { rank as f64 };
        (rank, (alpha / divisor) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Adapter {
        let module = |seed: f32| LowRank { rank: 2, scale: 2.0, a: vec![seed, 1.0, -2.0, 0.5], b: vec![0.25; 6] };
        let modules = [((0, Projection::Query), module(1.0)), ((3, Projection::Down), module(2.0))];
        Adapter { modules: modules.into() }
    }

    fn saved(folder: &Path, change: impl Fn(&mut Value)) {
        let targets = [Projection::Query, Projection::Down];
        let precision = SavedPrecision::F32;
        some().save(folder, &Saved { base: "tiny", rank: 2, alpha: 4.0, targets: &targets, precision }).unwrap();
        let path = folder.join(CONFIG);
        let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut config);
        std::fs::write(path, config.to_string()).unwrap();
    }

    #[test]
    fn a_saved_adapter_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        saved(folder.path(), |_| {});
        assert_eq!(Adapter::open(folder.path()).unwrap(), some());
    }

    /// Layers 10 and 2 show that the order is that of names.
    #[test]
    fn the_weights_of_a_saved_adapter_have_the_bytes_that_safetensors_writes() {
        let folder = tempfile::tempdir().unwrap();
        let module = |seed: f32| LowRank { rank: 2, scale: 2.0, a: vec![seed, 1.0, -2.0, 0.5], b: vec![0.1; 6] };
        let modules = [2, 10].map(|layer| ((layer, Projection::Query), module(layer as f32)));
        let adapter = Adapter { modules: modules.into() };
        for (precision, dtype) in [(SavedPrecision::F32, Dtype::F32), (SavedPrecision::F16, Dtype::F16)] {
            let how = Saved { base: "tiny", rank: 2, alpha: 4.0, targets: &[Projection::Query], precision };
            adapter.save(folder.path(), &how).unwrap();
            let tensors = adapter.tensors();
            let tensors = tensors.iter().map(|Tensor { name, shape, values }| (name, shape, bytes(values, precision)));
            let tensors: Vec<_> = tensors.collect();
            let views = tensors.iter().map(|(name, shape, bytes)| {
                let view = TensorView::new(dtype, shape.to_vec(), bytes).unwrap();
                (name.as_str(), view)
            });
            let metadata = [("format".to_owned(), "pt".to_owned())].into();
            let want = safetensors::serialize(views, Some(metadata)).unwrap();
            assert!(std::fs::read(folder.path().join(WEIGHTS)).unwrap() == want, "{precision:?}");
        }
    }

    /// Linux writes to `/dev/null` and refuses to sync it.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_adapter_that_cannot_be_synced_is_not_saved() {
        let folder = tempfile::tempdir().unwrap();
        let how = Saved { base: "tiny", rank: 2, alpha: 4.0, targets: &[], precision: SavedPrecision::F32 };
        for name in [WEIGHTS, CONFIG] {
            let beside = folder.path().join(format!("{name}.part"));
            std::os::unix::fs::symlink("/dev/null", &beside).unwrap();
            some().save(folder.path(), &how).unwrap_err();
            assert!(!folder.path().join(name).try_exists().unwrap(), "{name}");
            assert!(!beside.is_symlink(), "{name}");
        }
    }

    #[test]
    fn patterns_and_rslora_change_the_scale() {
        let folder = tempfile::tempdir().unwrap();
        saved(folder.path(), |config| {
            config["alpha_pattern"] = json!({ "down_proj": 8 });
            config["use_rslora"] = json!(true);
        });
        let scales: Vec<f32> = Adapter::open(folder.path()).unwrap().modules.values().map(|m| m.scale).collect();
        assert_eq!(scales, [4.0 / 2f32.sqrt(), 8.0 / 2f32.sqrt()]);
        saved(folder.path(), |config| config["rank_pattern"] = json!({ "model.layers.3.mlp.down_proj": 4 }));
        let error = Adapter::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("rank 2") && error.contains("says 4"), "{error}");
    }

    #[test]
    fn what_is_not_computed_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let cases = [
            ("use_dora", json!(true)),
            ("modules_to_save", json!(["lm_head"])),
            ("bias", json!("all")),
            ("lora_bias", json!(true)),
            ("fan_in_fan_out", json!(true)),
            ("peft_type", json!("IA3")),
            ("init_lora_weights", json!("pissa_niter_4")),
            ("use_something_new", json!(true)),
            ("alpha_pattern", json!({ ".*down_proj": 8 })),
            ("rank_pattern", json!({ "(q|k)_proj": 4 })),
        ];
        for (name, value) in cases {
            saved(folder.path(), |config| config[name] = value.clone());
            let error = Adapter::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains(name) || error.contains("IA3"), "{name}: {error}");
        }
    }
}
