//! `memlocal bundle`: puts models and corpora behind a copy of this program, and shows what is in such a file.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use bundle::{Bundle, Defaults, Entry, Readers, Writer};
use indicatif::HumanBytes;
use launch::failure::refusal;
use launch::flags::{AdapterFlag, GlobalFlags};
use launch::output::{counted, print_line, print_table};
use launch::{check_folder_of, fetching, home, typed_model};
use models::adapter::Adapter;
use models::fetch::{Resolved, bundled_folder, licence_named, resolve};
use models::manifest::Format;
use models::{EmbeddingModel, LanguageModel, files_of, packed_beside};
use store::bundled_name;

use crate::args::{Bundle as Args, BundleCommand};

/// The licence of the program, with that of the adapter in it (`models/adapters`).
const LICENCE: &str = concat!("(", env!("CARGO_PKG_LICENSE"), ") AND CC-BY-SA-4.0");

pub fn run(args: &Args, global: &GlobalFlags) -> Result<ExitCode> {
    if let Some(BundleCommand::Show { file }) = &args.command {
        return show(file);
    }
    let output = args.output.as_deref().context("no --output")?;
    check_folder_of(output)?;
    if output.exists() {
        return Err(refusal(format!("{} exists already", output.display()), "choose another name, or remove it"));
    }
    let partial = with_suffix(output, ".partial");
    // A run that was interrupted leaves its files, among them a copy of a corpus.
    for file in files_of_making(&partial) {
        remove_if_there(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    let made = Making { args, global, partial: &partial }.run().and_then(|bundle| {
        fs::rename(&partial, output).with_context(|| format!("cannot make {}", output.display()))?;
        Ok(bundle)
    });
    let Ok(bundle) = &made else {
        for file in files_of_making(&partial) {
            // The first error is the one to report.
            let _ = remove_if_there(&file);
        }
        return Err(made.map(drop).unwrap_err());
    };
    let bytes: u64 = bundle.contents().files.iter().map(|entry| entry.bytes).sum();
    let files = counted(bundle.contents().files.len(), "file");
    print_line(format_args!("made {}: {files}, {}", output.display(), HumanBytes(bytes)))?;
    Ok(ExitCode::SUCCESS)
}

/// A bundle that is being made beside its place.
struct Making<'a> {
    args: &'a Args,
    global: &'a GlobalFlags,
    partial: &'a Path,
}

/// A model or an adapter in the bundle.
struct Part {
    /// The flag's value with which the bundle's own program finds it.
    default: String,
    /// What is loaded: a name in the bundle.
    entry: String,
    licence: String,
}

impl Making<'_> {
    fn run(&self) -> Result<Bundle> {
        let mut writer = Writer::create(self.partial, LICENCE)?;
        let model = typed_model::without_adapter(&self.args.model, &self.args.model, &self.args.adapters);
        let adapter_of_model = &self.args.model[model.len()..];
        let model = self.add_model(&mut writer, model)?;
        let embedder = self.add_model(&mut writer, &self.args.embedder)?;
        let adapters = self.args.adapters.iter().map(|flag| add_adapter(&mut writer, flag, self.global));
        let adapters = adapters.collect::<Result<Vec<Part>>>()?;
        let mut entries: Vec<&str> =
            adapters.iter().chain([&model, &embedder]).map(|part| part.entry.as_str()).collect();
        // `none` is no part.
        entries.retain(|entry| !entry.is_empty());
        entries.sort_unstable();
        if let Some((twice, _)) = entries.iter().zip(&entries[1..]).find(|(one, next)| one == next) {
            return Err(refusal(format!("two parts of the bundle would be {twice}"), "rename one of them"));
        }
        for name in &self.args.corpus {
            self.add_corpus(&mut writer, name)?;
        }
        let values = |parts: &[Part]| parts.iter().map(|part| part.default.clone()).collect::<Vec<_>>();
        let mut defaults = vec![
            ("model".to_owned(), vec![format!("{}{adapter_of_model}", model.default)]),
            ("embedder".to_owned(), vec![embedder.default.clone()]),
        ];
        if !adapters.is_empty() {
            defaults.push(("adapter".to_owned(), values(&adapters)));
        }
        let readers = if self.args.corpus.is_empty() { Readers::All } else { Readers::Owner };
        writer.finish(defaults.clone(), readers)?;
        // Packed weights belong to the files that they were made from, which are in the bundle now.
        let (at, packed) = (self.partial.join(&model.entry), with_suffix(self.partial, ".packed"));
        let spec = LanguageModel::pack(&at, &packed).with_context(|| format!("cannot load {}", self.args.model))?;
        for (flag, part) in self.args.adapters.iter().zip(&adapters) {
            if matches!(flag, AdapterFlag::At { .. }) {
                Adapter::open_for(&self.partial.join(&part.entry), &spec)
                    .with_context(|| format!("cannot use the adapter {flag} with {}", self.args.model))?;
            }
        }
        self.add_packed(&model, &packed, &defaults, readers)?;
        let precision = typed_model::embedder_precision(&embedder.default, None);
        EmbeddingModel::pack(&self.partial.join(&embedder.entry), precision, &packed)
            .with_context(|| format!("cannot load {}", self.args.embedder))?;
        self.add_packed(&embedder, &packed, &defaults, readers)
    }

    /// Adds packed weights to the finished bundle, from a file that is removed.
    fn add_packed(&self, part: &Part, packed: &Path, defaults: &Defaults, readers: Readers) -> Result<Bundle> {
        let mut writer = Writer::append(self.partial)?;
        let name = packed_beside(&self.partial.join(&part.entry));
        let name = name.strip_prefix(self.partial)?.to_str().context("a file name that is not UTF-8")?;
        let added = writer.add(name, packed, &part.licence);
        fs::remove_file(packed).with_context(|| format!("cannot remove {}", packed.display()))?;
        added?;
        Ok(writer.finish(defaults.clone(), readers)?)
    }

    fn add_model(&self, writer: &mut Writer, typed: &str) -> Result<Part> {
        let fetched = fetching::fetched(typed, self.global)?;
        let entry = fetched.entry().with_context(|| format!("{typed} has no weights"))?;
        let resolved = resolve(typed)?;
        let is_file = fetched.format == Format::Gguf;
        let (root, stem) = match entry.parent() {
            Some(parent) if is_file => (parent, entry.file_stem()),
            _ => (entry, entry.file_name()),
        };
        let stem = stem.and_then(OsStr::to_str).unwrap_or("model");
        let (folder, licence) = match &resolved {
            Resolved::Known(choice) => (bundled_folder(*choice), choice.manifest.licence.clone()),
            Resolved::Named(name) => {
                let licence = licence_named(name, &home::fetching(self.global)?).unwrap_or_default();
                (format!("models/{}", name.repo.replace('/', "--")), licence)
            }
            Resolved::Local(_) => (format!("models/{stem}"), String::new()),
        };
        for path in files_of(entry)? {
            let name = path.strip_prefix(root)?.to_str().context("a file name that is not UTF-8")?;
            writer.add(&format!("{folder}/{name}"), &path, &licence)?;
        }
        let name = entry.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let entry = if is_file { format!("{folder}/{name}") } else { folder };
        let default = match resolved {
            Resolved::Known(choice) => choice.to_string(),
            Resolved::Named(_) | Resolved::Local(_) => format!("./{entry}"),
        };
        Ok(Part { default, entry, licence })
    }

    fn add_corpus(&self, writer: &mut Writer, name: &str) -> Result<()> {
        let corpus = home::corpora(self.global)?.open(name)?;
        let copy = with_suffix(self.partial, ".corpus");
        corpus.back_up(&copy)?;
        let added = writer.add(&bundled_name(corpus.name()), &copy, "");
        fs::remove_file(&copy).with_context(|| format!("cannot remove {}", copy.display()))?;
        Ok(added?)
    }
}

fn add_adapter(writer: &mut Writer, flag: &AdapterFlag, global: &GlobalFlags) -> Result<Part> {
    let AdapterFlag::At { name, path } = flag else {
        return Ok(Part { default: flag.to_string(), entry: String::new(), licence: String::new() });
    };
    let folder = format!("adapters/{name}");
    let typed = path;
    let path = &fetching::adapter_path(typed, global)?;
    let licence = fetching::adapter_licence(typed, path, global)?.unwrap_or_default();
    let files = Adapter::files(path);
    let mut entry = folder.clone();
    for file in &files {
        let file_name = file.file_name().and_then(OsStr::to_str).context("a file name that is not UTF-8")?;
        writer.add(&format!("{folder}/{file_name}"), file, &licence)?;
        if file == path {
            entry = format!("{folder}/{file_name}");
        }
    }
    Ok(Part { default: format!("{name}=./{entry}"), entry, licence })
}

/// Lists a bundle and compares everything in it with its digest.
fn show(file: &Path) -> Result<ExitCode> {
    let bundle = Bundle::open(file)?;
    let contents = bundle.contents();
    let mut altered = Vec::new();
    let mut rows = Vec::new();
    for entry in [&contents.executable].into_iter().chain(&contents.files) {
        let is_sound = bundle.is_sound(entry)?;
        rows.push(row(entry, is_sound));
        if !is_sound {
            altered.push(entry.name.clone());
        }
    }
    print_table(&["file", "size", "licence", "blake3", "state"], rows)?;
    for (flag, values) in &contents.defaults {
        for value in values {
            print_line(format_args!("--{flag} {value}"))?;
        }
    }
    if altered.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(refusal(format!("{} was altered: {}", file.display(), altered.join(", ")), "copy it again, or make it anew"))
}

fn row(entry: &Entry, is_sound: bool) -> Vec<String> {
    let licence = if entry.licence.is_empty() { "-" } else { &entry.licence };
    let state = if is_sound { "sound" } else { "altered" };
    vec![
        entry.name.clone(),
        HumanBytes(entry.bytes).to_string(),
        licence.to_owned(),
        entry.blake3.clone(),
        state.to_owned(),
    ]
}

/// The files of a bundle that is being made: itself, packed weights, and the copy of a corpus, which `SQLite` writes under
/// another name first.
fn files_of_making(partial: &Path) -> impl Iterator<Item = PathBuf> {
    const SUFFIXES: [&str; 7] = [
        "",
        ".packed",
        ".corpus",
        ".corpus.unfinished",
        ".corpus.unfinished-journal",
        ".corpus.unfinished-wal",
        ".corpus.unfinished-shm",
    ];
    SUFFIXES.into_iter().map(move |suffix| with_suffix(partial, suffix))
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
