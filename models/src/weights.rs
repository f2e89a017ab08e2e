//! Named tensors of a checkpoint of any file format, under their Hugging Face names.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use candle_core::Device;
use kernels::matmul::{Format, Matrix};
use rayon::prelude::*;

use crate::error::{ModelError, Result};
use crate::files;
use crate::gguf::{self, Metadata, expert_of, gguf_name};
use crate::location::Location;
use crate::mapped::MappedFile;
use crate::packed::{Identity, Packed, path_beside};
use crate::pytorch;
use crate::quantise::{Quantisation, quantise};
use crate::shards::{read_safetensors, shard_paths, weight_paths};

/// In which precision weight matrices are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// As the file holds them.
    #[default]
    Stored,
    /// Expanded to `f32`: slow and large, without the rounding of activations that quantised products need.
    F32,
    /// Smaller than the file holds them, where it holds them dense.
    Quantised(Quantisation),
}

/// What computes a network, as far as the memory of its weights depends on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ComputedBy {
    #[default]
    Kernels,
    /// The portable backend on CPUs and NVIDIA GPUs, which expands 16-bit weights to `f32`.
    Portable,
    /// The portable backend on a GPU of Apple, which multiplies them as they are.
    PortableOnMetal,
}

impl ComputedBy {
    /// What multiplies weights on a CPU, or on a GPU.
    pub(crate) fn processor(self, is_gpu: bool) -> Processor {
        match self {
            ComputedBy::Kernels if is_gpu => Processor::Gpu,
            ComputedBy::Kernels => Processor::Cpu,
            ComputedBy::Portable => Processor::Portable,
            ComputedBy::PortableOnMetal => Processor::Metal,
        }
    }
}

/// What multiplies weights, in memory of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    /// The kernels on a CPU.
    Cpu,
    /// The kernels on an NVIDIA GPU.
    Gpu,
    /// The portable backend on a CPU or an NVIDIA GPU.
    Portable,
    /// The portable backend on a GPU of Apple.
    Metal,
}

/// The tensors of one checkpoint.
#[derive(Debug)]
pub struct Weights {
    pub(crate) precision: Precision,
    path: PathBuf,
    files: Vec<MappedFile>,
    tensors: HashMap<String, Location>,
    /// Names of tensors of integers, which no network reads.
    integers: Vec<String>,
    naming: Naming,
    packed: Packed,
}

#[derive(Debug)]
enum Naming {
    /// Hugging Face names, all behind this prefix (`bert.`, `roberta.`, `language_model.` or nothing).
    HuggingFace {
        prefix: String,
    },
    Gguf,
}

/// The prefix of the text decoder in a model that reads images too.
const LANGUAGE_MODEL: &str = "language_model.";

/// The tensors of such a model without those of its image encoder. transformers 4.52 and later write
/// `model.language_model.layers...` for what was `language_model.model.layers...`; the former are renamed to `model.layers...`.
fn text_only(tensors: HashMap<String, Location>) -> HashMap<String, Location> {
    let is_of_images = |name: &str| {
        let name = name.strip_prefix("model.").unwrap_or(name);
        name.starts_with("vision_tower.") || name.starts_with("multi_modal_projector.")
    };
    let renamed = |name: String| match name.strip_prefix("model.").and_then(|rest| rest.strip_prefix(LANGUAGE_MODEL)) {
        Some(rest) => format!("model.{rest}"),
        None => name,
    };
    let of_text = tensors.into_iter().filter(|(name, _)| !is_of_images(name));
    of_text.map(|(name, tensor)| (renamed(name), tensor)).collect()
}

impl Weights {
    /// Maps a GGUF file and, if it is the first of several (`-00001-of-00003.gguf`), the others beside it.
    ///
    /// # Errors
    /// If a file is missing, foreign, truncated, or holds a tensor type without kernel.
    pub fn open_gguf(path: &Path) -> Result<(Weights, Metadata)> {
        let mut files = Vec::new();
        let mut tensors = HashMap::new();
        let mut metadata = None;
        for (index, path) in shard_paths(path).into_iter().enumerate() {
            let file = MappedFile::open(&path)?;
            let (head, found) = gguf::read(&file, index)?;
            metadata.get_or_insert(head);
            tensors.extend(found);
            files.push(file);
        }
        let metadata = metadata.ok_or_else(|| ModelError::config("a GGUF file without parts"))?;
        let (path, precision) = (path.to_owned(), Precision::Stored);
        let (integers, naming, packed) = (Vec::new(), Naming::Gguf, Packed::Off);
        Ok((Weights { precision, path, files, tensors, integers, naming, packed }, metadata))
    }

    /// Maps the weights of a folder: `model.safetensors`, those named by its index, or `pytorch_model.bin`. An image encoder
    /// beside a language model is left out.
    ///
    /// # Errors
    /// If a file is missing or damaged, or holds a tensor type without kernel.
    pub fn open_folder(folder: &Path) -> Result<Weights> {
        let mut weights = Weights::open_files(folder, &weight_paths(folder)?)?;
        let prefix = ["bert.", "roberta.", LANGUAGE_MODEL];
        let prefix = prefix.into_iter().find(|prefix| weights.tensors.keys().any(|name| name.starts_with(prefix)));
        let is_multimodal = |name: &String| name.strip_prefix("model.").unwrap_or(name).starts_with(LANGUAGE_MODEL);
        if weights.tensors.keys().any(is_multimodal) {
            weights.tensors = text_only(weights.tensors);
        }
        let naming = Naming::HuggingFace { prefix: prefix.unwrap_or_default().to_owned() };
        Ok(Weights { naming, ..weights })
    }

    /// Maps `{name}.safetensors` or `{name}.pt` of a folder; `None` if there is neither.
    pub(crate) fn open_head(folder: &Path, name: &str) -> Result<Option<Weights>> {
        let paths = ["safetensors", "pt"].map(|extension| folder.join(format!("{name}.{extension}")));
        let found = paths.into_iter().find(|path| files::is_file(path));
        found.map(|path| Weights::open_files(folder, &[path])).transpose()
    }

    fn open_files(folder: &Path, paths: &[PathBuf]) -> Result<Weights> {
        let mut files = Vec::new();
        let (mut tensors, mut integers) = (HashMap::new(), Vec::new());
        for (index, path) in paths.iter().enumerate() {
            let file = MappedFile::open(path)?;
            if path.extension().is_some_and(|extension| extension == "safetensors") {
                read_safetensors(&file, index, &mut tensors, &mut integers)?;
            } else {
                pytorch::read(&file, index, &mut tensors, &mut integers)?;
            }
            files.push(file);
        }
        let naming = Naming::HuggingFace { prefix: String::new() };
        let (precision, packed) = (Precision::Stored, Packed::Off);
        Ok(Weights { precision, path: folder.to_owned(), files, tensors, integers, naming, packed })
    }

    /// The same weights, multiplied in another precision.
    #[must_use]
    pub fn in_precision(self, precision: Precision) -> Weights {
        Weights { precision, ..self }
    }

    /// The same weights, with packed ones beside the checkpoint used where they are there and otherwise gathered for
    /// [`Weights::keep_packed`]. Only the CPU multiplies packed weights: for a GPU none are looked for or kept.
    ///
    /// # Errors
    /// If packed weights in a bundle were altered.
    pub fn with_packed(self, device: &Device) -> Result<Weights> {
        if !device.is_cpu() {
            return Ok(self);
        }
        let precision = match self.precision {
            Precision::Stored => None,
            Precision::Quantised(quantisation) => Some(quantisation.to_string()),
            Precision::F32 => return Ok(self),
        };
        let Ok(identity) = self.identity() else { return Ok(self) };
        // A few bytes of each tensor were looked at, but pages of a mapping come many at a time.
        self.files.iter().for_each(|file| file.let_go(0..file.len()));
        let packed = Packed::open(path_beside(&self.path, precision), identity)?;
        Ok(Weights { packed, ..self })
    }

    /// The same weights, to be packed into a file of this path by [`Weights::write_packed`].
    ///
    /// # Errors
    /// If a file of the checkpoint is gone.
    pub(crate) fn packing_into(self, path: &Path) -> Result<Weights> {
        let identity = self.identity().map_err(|source| ModelError::Io { path: self.path.clone(), source })?;
        Ok(Weights { packed: Packed::missing(path.to_owned(), identity), ..self })
    }

    /// Writes the matrices that were packed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write_packed(self) -> Result<()> {
        self.packed.write()
    }

    /// True if matrices come from a file that an earlier start left.
    pub fn are_packed(&self) -> bool {
        matches!(self.packed, Packed::Kept { .. })
    }

    /// Leaves the matrices that had to be packed beside the checkpoint, for the next start.
    pub fn keep_packed(self) {
        self.packed.keep();
    }

    /// What the packed weights depend on: the files by name, size and time of change, their tensors with the bytes at
    /// both ends of each, and the precision. Reading gigabytes whole would take longer than packing them.
    fn identity(&self) -> std::io::Result<Identity> {
        const ENDS: usize = 4096;
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{:?} {:?}", self.precision, self.naming).as_bytes());
        for file in &self.files {
            let state = file.state()?;
            hasher.update(format!("{:?} {} {state}", file.path().file_name(), file.len()).as_bytes());
        }
        let mut tensors: Vec<(&String, &Location)> = self.tensors.iter().collect();
        tensors.sort_unstable_by_key(|(name, _)| *name);
        for (name, at) in tensors {
            hasher.update(format!("{name} {at:?}").as_bytes());
            let bytes = &self.files[at.file][at.bytes.clone()];
            hasher.update(&bytes[..bytes.len().min(ENDS)]).update(&bytes[bytes.len().saturating_sub(ENDS)..]);
        }
        Ok(Identity(*hasher.finalize().as_bytes()))
    }

    /// True if there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.locate(name).is_some()
    }

    /// True if there is a tensor that a GGUF file calls so.
    pub fn has_gguf(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Refuses tensors outside `read` (Hugging Face names) for which `is_ignored`, asked with the file's own name, is false.
    ///
    /// # Errors
    /// [`ModelError::UnusedTensors`].
    pub(crate) fn refuse_others(&self, read: &HashSet<String>, is_ignored: impl Fn(&str) -> bool) -> Result<()> {
        let read: HashSet<String> = read.iter().map(|name| self.own_name(name)).collect();
        let all = self.tensors.keys().chain(&self.integers);
        let mut names: Vec<String> = all.filter(|name| !read.contains(*name) && !is_ignored(name)).cloned().collect();
        if names.is_empty() {
            return Ok(());
        }
        names.sort_unstable();
        Err(ModelError::UnusedTensors { path: self.path.clone(), names })
    }

    /// True if two tensors have the same shape, format and bytes.
    pub(crate) fn are_equal(&self, one: &str, other: &str) -> bool {
        let parts = |name: &str| {
            let at = self.locate(name)?;
            Some((at.shape, at.format, &self.files[at.file][at.bytes]))
        };
        parts(one) == parts(other)
    }

    /// A weight matrix `[rows, cols]`, packed for multiplication.
    ///
    /// # Errors
    /// If it is missing or has another shape.
    pub fn matrix(&self, name: &str, rows: usize, cols: usize) -> Result<Matrix> {
        self.matrix_reordered(name, rows, cols, |row| row)
    }

    /// A weight matrix whose row `n` is row `source(n)` of the checkpoint.
    ///
    /// # Errors
    /// As [`Weights::matrix`].
    pub fn matrix_reordered(
        &self,
        name: &str,
        rows: usize,
        cols: usize,
        source: impl Fn(usize) -> usize + Sync,
    ) -> Result<Matrix> {
        if let Some(matrix) = self.packed.find(name, rows, cols) {
            return Ok(matrix);
        }
        let (format, bytes) = self.encoded(name, rows, cols)?;
        let packed = Matrix::pack_reordered(format, rows, cols, &bytes, source);
        drop(bytes);
        let matrix = packed.map_err(|source| ModelError::Matrix { name: name.to_owned(), source })?;
        self.packed.note(name, &matrix);
        // What was packed is not read again.
        if let Some(at) = self.locate(name) {
            self.files[at.file].let_go(at.bytes);
        }
        Ok(matrix)
    }

    /// The rows of a matrix in the format in which they are multiplied: as stored, expanded or quantised.
    ///
    /// # Errors
    /// If it is missing or has another shape.
    pub fn encoded(&self, name: &str, rows: usize, cols: usize) -> Result<(Format, Cow<'_, [u8]>)> {
        let (stored, bytes) = self.tensor(name, &[rows, cols])?;
        match self.precision {
            Precision::Stored => Ok((stored, bytes.into())),
            Precision::F32 => {
                let values = self.values(name, &[rows, cols])?;
                Ok((Format::F32, values.iter().flat_map(|x| x.to_le_bytes()).collect()))
            }
            Precision::Quantised(quantisation) => match quantisation.of(stored, cols) {
                format if format == stored => Ok((stored, bytes.into())),
                format => Ok((format, quantised(stored, bytes, format, cols)?.into())),
            },
        }
    }

    /// The values of a tensor of this shape as `f32`.
    ///
    /// # Errors
    /// If it is missing or has another shape.
    pub fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let (format, bytes) = self.tensor(name, shape)?;
        let mut values = vec![0f32; shape.iter().product()];
        format.dequantise(bytes, &mut values);
        Ok(values)
    }

    /// Bytes that the weights take once they are loaded, about.
    pub(crate) fn loaded_bytes(&self, processor: Processor) -> u64 {
        self.tensors.iter().map(|(name, tensor)| self.bytes_of(name, tensor, processor)).sum()
    }

    /// The same of one tensor; 0 if there is none of this name.
    pub(crate) fn tensor_bytes(&self, name: &str, processor: Processor) -> u64 {
        self.locate(name).map_or(0, |tensor| self.bytes_of(&self.own_name(name), &tensor, processor))
    }

    /// The same of the largest of `layers` layers.
    pub(crate) fn largest_layer_bytes(&self, layers: usize, processor: Processor) -> u64 {
        let mut bytes = vec![0; layers];
        for (name, tensor) in &self.tensors {
            let numbered = ["layers.", "blk."].into_iter().find_map(|stem| name.split_once(stem));
            let layer = numbered.and_then(|(_, rest)| rest.split('.').next()?.parse::<usize>().ok());
            if let Some(sum) = layer.and_then(|layer| bytes.get_mut(layer)) {
                *sum += self.bytes_of(name, tensor, processor);
            }
        }
        bytes.into_iter().max().unwrap_or(0)
    }

    /// Bytes of a tensor, which has this name in the file.
    fn bytes_of(&self, name: &str, tensor: &Location, processor: Processor) -> u64 {
        let format = self.format_on(name, tensor, processor);
        let values: usize = tensor.shape.iter().product();
        (values / format.block_len() * format.block_bytes()) as u64
    }

    /// The format of a tensor in the memory of a processor.
    fn format_on(&self, name: &str, tensor: &Location, processor: Processor) -> Format {
        /// Columns of matrices that are multiplied as blocks by the kernels for GPUs (`DeviceMatrix::load`).
        const STRIP: usize = 64;
        // Norms and biases, and what is added to the embeddings of an encoder, are `f32`.
        let [_, .., cols] = tensor.shape[..] else { return Format::F32 };
        if ["position_embeddings.weight", "token_type_embeddings.weight"].iter().any(|added| name.ends_with(added)) {
            return Format::F32;
        }
        let is_table = || {
            ["model.embed_tokens.weight", "embeddings.word_embeddings.weight"]
                .iter()
                .any(|table| self.own_name(table) == name)
        };
        let format = self.running_format(tensor);
        match processor {
            Processor::Cpu => format,
            Processor::Gpu if self.precision == Precision::F32 => Format::F32,
            Processor::Gpu if format.is_dense() || !cols.is_multiple_of(STRIP) || is_table() => Format::Bf16,
            // `portable::Halves`
            Processor::Portable if format.is_dense() => Format::F32,
            Processor::Gpu | Processor::Portable | Processor::Metal => match format {
                // `Format::as_q8_0`
                Format::Iq4Nl | Format::Iq4Xs => Format::Q8_0,
                format => format,
            },
        }
    }

    /// The format in which a tensor is multiplied on the CPU. A tensor of three dimensions is a stack of matrices.
    fn running_format(&self, tensor: &Location) -> Format {
        match (self.precision, &tensor.shape[..]) {
            (Precision::F32, _) => Format::F32,
            (Precision::Quantised(quantisation), [_, .., cols]) => quantisation.of(tensor.format, *cols),
            _ => tensor.format,
        }
    }

    /// The format that holds most of the bytes.
    pub(crate) fn main_format(&self) -> Option<Format> {
        let mut held: Vec<(Format, usize)> = Vec::new();
        for tensor in self.tensors.values() {
            match held.iter_mut().find(|(format, _)| *format == tensor.format) {
                Some((_, bytes)) => *bytes += tensor.bytes.len(),
                None => held.push((tensor.format, tensor.bytes.len())),
            }
        }
        held.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(format, _)| format)
    }

    pub(crate) fn tensor(&self, name: &str, shape: &[usize]) -> Result<(Format, &[u8])> {
        let missing = || ModelError::MissingTensor { path: self.path.clone(), name: name.to_owned() };
        let at = self.locate(name).ok_or_else(missing)?;
        if at.shape != shape {
            return Err(ModelError::TensorShape { name: name.to_owned(), got: at.shape, want: shape.to_vec() });
        }
        Ok((at.format, &self.files[at.file][at.bytes]))
    }

    fn locate(&self, name: &str) -> Option<Location> {
        let at = self.tensors.get(&self.own_name(name))?;
        match (&self.naming, expert_of(name)) {
            (Naming::Gguf, Some((_, expert, _))) => at.slice(expert),
            _ => Some(at.clone()),
        }
    }

    /// The name that the file gives to the tensor with this Hugging Face name.
    pub(crate) fn own_name(&self, name: &str) -> String {
        match &self.naming {
            Naming::Gguf => {
                // Llama's name of the norm before the feed-forward network is that of the attention's output in Gemma 3.
                let own = gguf_name(name);
                let after = own.replace(".ffn_norm.", ".post_attention_norm.");
                let is_after = name.ends_with(".post_attention_layernorm.weight") && self.has_gguf(&after);
                if is_after { after } else { own }
            }
            Naming::HuggingFace { prefix } => format!("{prefix}{name}"),
        }
    }
}

/// Rows of a dense matrix in another format. Some rows at a time, so that the whole is never there in `f32`.
pub(crate) fn quantised(stored: Format, bytes: &[u8], format: Format, cols: usize) -> Result<Vec<u8>> {
    const ROWS: usize = 64;
    let row_bytes = cols * stored.block_bytes() / stored.block_len();
    let parts: Vec<&[u8]> = bytes.chunks(ROWS * row_bytes).collect();
    let quantise_part = |part: &&[u8]| {
        let mut values = vec![0f32; part.len() / row_bytes * cols];
        stored.dequantise(part, &mut values);
        quantise(format, values)
    };
    let quantised: Result<Vec<Vec<u8>>> = parts.par_iter().map(quantise_part).collect();
    Ok(quantised?.concat())
}
