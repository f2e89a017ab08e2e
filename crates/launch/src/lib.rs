//! From command-line flags to a running engine: what the programs `memlocal`, `memlocal-bench` and `memlocal-train` share.
//!
//! [`flags`] defines the flags, [`config_file`] gives them defaults, [`home`] finds the data folder, [`fetching`] finds and
//! fetches models, [`loader`] loads them and starts an engine, [`one_model`] loads a further one,
//! [`preloaded`] unloads them and loads them again, [`plan`] says what fits into
//! memory, [`split`] which layers go to which device, [`Backend`] is that engine or an endpoint on the network. [`output`], [`progress`] and [`failure`] print results,
//! progress and errors, [`usage`] those of the command line.
//!
//! Not here: commands.

pub mod choose;
pub mod config_file;
pub mod confirmation;
pub mod corpus_adapter;
pub mod failure;
pub mod fetching;
pub mod flags;
pub mod home;
pub mod loader;
pub mod machine;
pub mod memory_budget;
pub mod one_model;
pub mod output;
pub mod plan;
pub mod preloaded;
pub mod progress;
pub mod shell;
pub mod split;
pub mod typed_model;
pub mod usage;

mod adapters;
mod backend;
mod device;
mod local_embedder;
mod paths;
mod process;

pub use backend::{Backend, check_allowed, model_name, prefixes_need_local_engine, shared_prompt_needs_local_engine};
pub use device::{check_kv, gpu_names};
pub use local_embedder::LocalEmbedder;
pub use paths::{absolute, check_folder_of, shown};
pub use process::{exit_on_interrupt, pdf_child, set_up_cpu, wait_for};
