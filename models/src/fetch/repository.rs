//! Which files of a repository make a model or an adapter.

use std::path::Path;

use super::FetchError;
use super::file_names::{is_below_a_folder, shards_of};
use super::name::HubName;
use crate::manifest::{FileSpec, Format, Role, Sha256Hex};

/// A repository at a revision.
#[derive(Debug)]
pub(super) struct Repository {
    pub commit: String,
    pub licence: Option<String>,
    pub files: Vec<RepoFile>,
}

/// A file of a repository, with what the hub promises of it.
#[derive(Debug)]
pub(super) struct RepoFile {
    /// The path in the repository.
    pub name: String,
    pub bytes: Option<u64>,
    pub sha256: Option<Sha256Hex>,
}

/// The quantisations that are taken where none is named, best first.
const USUAL: [&str; 4] = ["Q4_K_M", "Q4_0", "Q5_K_M", "Q8_0"];

const ADAPTER: [(Role, &str); 2] =
    [(Role::Config, "adapter_config.json"), (Role::Weights, "adapter_model.safetensors")];

/// The files beside the weights that loading a folder may read.
const BESIDE: [(Role, &str); 14] = [
    (Role::Config, "config.json"),
    (Role::Tokenizer, "tokenizer.json"),
    (Role::TokenizerConfig, "tokenizer_config.json"),
    (Role::SentenceConfig, "sentence_bert_config.json"),
    (Role::SparseHead, "sparse_linear.pt"),
    (Role::SparseHead, "sparse_linear.safetensors"),
    (Role::MultiVectorHead, "colbert_linear.pt"),
    (Role::MultiVectorHead, "colbert_linear.safetensors"),
    (Role::Other, "special_tokens_map.json"),
    (Role::Other, "generation_config.json"),
    (Role::Other, "chat_template.jinja"),
    (Role::Other, "modules.json"),
    (Role::Other, "config_sentence_transformers.json"),
    (Role::Other, "1_Pooling/config.json"),
];

impl Repository {
    /// The files that a name means: a GGUF file with its shards, named or found by its quantisation; otherwise the
    /// checkpoint in safetensors or PyTorch's format, PEFT's adapter, or the GGUF file of a usual quantisation.
    ///
    /// # Errors
    /// [`FetchError::NotInRepository`] with the GGUF files that there are.
    pub fn select(&self, name: &HubName) -> Result<(Format, Vec<FileSpec>), FetchError> {
        let ggufs = self.ggufs();
        let gguf = |first: &str| {
            let shards =
                shards_of(Path::new(first)).into_iter().map(|shard| shard.to_string_lossy().replace('\\', "/"));
            let shards = shards.map(|shard| self.spec(Role::Weights, &shard)).collect::<Option<Vec<_>>>();
            shards.map(|shards| (Format::Gguf, shards))
        };
        let of_quant = |quant: &str| {
            let found: Vec<&str> = ggufs.iter().copied().filter(|file| has_quant(file, quant)).collect();
            if let [only] = found[..] { Some(only) } else { None }
        };
        let chosen = match &name.part {
            Some(part) if name.is_file() => gguf(part),
            Some(quant) => of_quant(quant).and_then(gguf),
            None => self.checkpoint().or_else(|| self.adapter()).or_else(|| match ggufs[..] {
                [only] => gguf(only),
                _ => USUAL.into_iter().find_map(of_quant).and_then(gguf),
            }),
        };
        chosen.ok_or_else(|| FetchError::NotInRepository {
            name: name.to_string(),
            known: ggufs.iter().map(|file| (*file).to_owned()).collect(),
        })
    }

    /// The GGUF files of language models, of shards the first.
    fn ggufs(&self) -> Vec<&str> {
        let names = self.files.iter().map(|file| file.name.as_str());
        let is_first = |name: &&str| shards_of(Path::new(name)).first().is_some_and(|first| first == Path::new(name));
        let is_other = |name: &str| ["mmproj", "imatrix"].iter().any(|word| name.contains(word));
        let is_gguf = |name: &&str| name.to_lowercase().ends_with(".gguf") && !is_other(&name.to_lowercase());
        let mut names: Vec<&str> = names.filter(is_gguf).filter(is_first).collect();
        names.sort_unstable();
        names
    }

    /// A folder with `config.json` and all shards of the weights.
    fn checkpoint(&self) -> Option<(Format, Vec<FileSpec>)> {
        self.spec(Role::Config, "config.json")?;
        let is_shard = |name: &str| name.starts_with("model-00001-of-") && name.ends_with(".safetensors");
        let sharded = || self.files.iter().map(|file| file.name.as_str()).find(|name| is_shard(name));
        let (format, first) = if self.has("model.safetensors") {
            (Format::Safetensors, "model.safetensors")
        } else if let Some(first) = sharded() {
            (Format::Safetensors, first)
        } else {
            (Format::Pytorch, "pytorch_model.bin")
        };
        let shards = shards_of(Path::new(first)).into_iter();
        let weights = shards.map(|shard| self.spec(Role::Weights, &shard.to_string_lossy()));
        let mut files = weights.collect::<Option<Vec<_>>>()?;
        files.extend(BESIDE.iter().filter_map(|(role, name)| self.spec(*role, name)));
        Some((format, files))
    }

    fn adapter(&self) -> Option<(Format, Vec<FileSpec>)> {
        let files = ADAPTER.iter().map(|(role, name)| self.spec(*role, name)).collect::<Option<Vec<_>>>()?;
        Some((Format::Safetensors, files))
    }

    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// A file as it is to be installed, if the repository has it under a name that stays below a folder.
    fn spec(&self, role: Role, name: &str) -> Option<FileSpec> {
        let file = self.files.iter().find(|file| file.name == name && is_below_a_folder(name))?;
        Some(FileSpec { role, name: name.to_owned(), bytes: file.bytes, sha256: file.sha256.clone() })
    }
}

/// Whether the name of a GGUF file has this quantisation between other words: `a-Q4_K_M.gguf` has `q4_k_m`, and not `q4_k`.
fn has_quant(file: &str, quant: &str) -> bool {
    let (file, quant) = (file.to_lowercase(), quant.to_lowercase());
    let stem = file.rsplit('/').next().unwrap_or(&file);
    stem.match_indices(&quant).any(|(at, _)| {
        let before = stem[..at].chars().next_back();
        let after = stem[at + quant.len()..].chars().next();
        before.is_none_or(|c| !c.is_alphanumeric()) && after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_files() {
        let check = |files: &[&str], typed: &str, want: Result<(Format, &[&str]), &[&str]>| {
            let file = |name: &&str| RepoFile { name: (*name).to_owned(), bytes: None, sha256: None };
            let files = files.iter().map(file).collect();
            let repository = Repository { commit: String::new(), licence: None, files };
            match (repository.select(&typed.parse().unwrap()), want) {
                (Ok((format, specs)), Ok((want_format, want))) => {
                    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
                    assert_eq!((format, &names[..]), (want_format, want), "{typed}");
                }
                (Err(FetchError::NotInRepository { known, .. }), Err(want)) => assert_eq!(known, want, "{typed}"),
                (found, want) => panic!("{typed}: {found:?} instead of {want:?}"),
            }
        };
        let quants =
            ["a-IQ4_XS.gguf", "a-Q4_K.gguf", "a-Q4_K_M.gguf", "a-q8_0.gguf", "mmproj-a-Q8_0.gguf", "README.md"];
        let known = ["a-IQ4_XS.gguf", "a-Q4_K.gguf", "a-Q4_K_M.gguf", "a-q8_0.gguf"];
        check(&quants, "hf:o/a", Ok((Format::Gguf, &["a-Q4_K_M.gguf"])));
        check(&quants, "hf:o/a:q4_k", Ok((Format::Gguf, &["a-Q4_K.gguf"])));
        check(&quants, "hf:o/a:Q8_0", Ok((Format::Gguf, &["a-q8_0.gguf"])));
        check(&quants, "hf:o/a:mmproj-a-Q8_0.gguf", Ok((Format::Gguf, &["mmproj-a-Q8_0.gguf"])));
        check(&quants, "hf:o/a:Q2_K", Err(&known));
        check(&quants, "hf:o/a:b.gguf", Err(&known));
        let shards = ["Q8_0/a-Q8_0-00001-of-00002.gguf", "Q8_0/a-Q8_0-00002-of-00002.gguf"];
        check(&shards, "hf:o/a:q8_0", Ok((Format::Gguf, &shards)));
        check(&shards, "hf:o/a", Ok((Format::Gguf, &shards)));
        check(&shards[..1], "hf:o/a", Err(&shards[..1]));
        check(&["x-f16.gguf", "y-f16.gguf"], "hf:o/a:f16", Err(&["x-f16.gguf", "y-f16.gguf"]));
        check(&["../a.gguf"], "hf:o/a", Err(&["../a.gguf"]));

        let folder = ["config.json", "tokenizer.json", "model.safetensors", "onnx/model.onnx", "a-Q8_0.gguf"];
        check(&folder, "hf:o/a", Ok((Format::Safetensors, &["model.safetensors", "config.json", "tokenizer.json"])));
        check(&folder, "hf:o/a:q8_0", Ok((Format::Gguf, &["a-Q8_0.gguf"])));
        let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "config.json"];
        check(&shards, "hf:o/a", Ok((Format::Safetensors, &shards)));
        check(&[shards[0], shards[2]], "hf:o/a", Err(&[]));
        let pickled = ["pytorch_model.bin", "config.json", "modules.json", "1_Pooling/config.json"];
        check(&pickled, "hf:o/a", Ok((Format::Pytorch, &pickled)));
        let adapter = ["adapter_config.json", "adapter_model.safetensors"];
        check(&[adapter[0], adapter[1], "tokenizer.json"], "hf:o/a", Ok((Format::Safetensors, &adapter)));
        check(&["README.md"], "hf:o/a", Err(&[]));
    }
}
