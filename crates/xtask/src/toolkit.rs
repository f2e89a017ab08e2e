//! `cargo xtask toolkit FOLDER`: a CUDA toolkit for machines without one, made from Python wheels (104 MB), for x86-64
//! Linux. Programs linked against its archives open the driver and cuBLAS at their first call, so one binary serves
//! machines with and without a GPU.

use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = include_str!("../toolkit/toolkit.sh");
const LAZY: &str = include_str!("../toolkit/lazy.py");

/// Makes the toolkit.
pub fn run(folder: &str) -> Result<(), String> {
    let cudarc = cudarc()?;
    let lazy = std::env::temp_dir().join(format!("memlocal-lazy-{}.py", std::process::id()));
    std::fs::write(&lazy, LAZY).map_err(|error| format!("cannot write {}: {error}", lazy.display()))?;
    let made = Command::new("bash").args(["-c", SCRIPT, "toolkit", folder]).arg(&cudarc).arg(&lazy).status();
    let _ = std::fs::remove_file(&lazy);
    match made {
        Ok(status) if status.success() => {
            eprintln!("xtask: build with CUDA_HOME={folder} CUDA_ROOT={folder} PATH={folder}/bin:$PATH");
            Ok(())
        }
        Ok(_) => Err("the toolkit could not be made".into()),
        Err(error) => Err(format!("cannot run bash: {error}")),
    }
}

/// The source of the crate whose functions the archives replace.
fn cudarc() -> Result<PathBuf, String> {
    let arguments = ["metadata", "--format-version=1", "--features", "cuda"];
    let output = crate::cargo().args(arguments).output().map_err(|error| format!("cannot run cargo: {error}"))?;
    let metadata = String::from_utf8_lossy(&output.stdout);
    let paths = metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let manifest = paths.map(Path::new).find(|path| {
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        folder.is_some_and(|name| name.starts_with("cudarc-"))
    });
    let folder = manifest.and_then(Path::parent).ok_or("cargo does not know where cudarc is")?;
    Ok(folder.to_owned())
}
