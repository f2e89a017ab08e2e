//! Real weights: downloaded once in the same way as for a user, and kept in `target/test-models`.

use std::path::PathBuf;

use models::fetch::{FetchOptions, Resolved, fetch, resolve};

/// The path of a model's weights, or `None` (with the reason printed) if they are unavailable.
pub fn weights(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = folder.ancestors().find(|folder| folder.join("Cargo.lock").exists()).expect("a workspace");
    let Ok(Resolved::Known(choice)) = resolve(name) else { panic!("{name} has no manifest") };
    match fetch(choice, &FetchOptions::new(root.join("target/test-models")), &mut |_| {}) {
        Ok(fetched) => fetched.entry().map(ToOwned::to_owned),
        Err(error) => {
            println!("skipped, no weights of {name}: {error}");
            None
        }
    }
}
