//! The binary that is packaged, compiled with the profile `dist`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

/// Compiles memlocal and gives its path. The paths of the sources, which panics name, are those of no machine.
pub(crate) fn compile(root: &Path, features: Option<&str>) -> Result<PathBuf, String> {
    let mut command = crate::cargo();
    command.current_dir(root).env("CARGO_ENCODED_RUSTFLAGS", flags(root)?);
    command.args(["build", "--profile", "dist", "--locked", "-p", "memlocal", "--bin", "memlocal"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    if let Some(features) = features {
        command.args(["--features", features]);
        command.envs(cuda(features, env::var_os("CUDA_COMPUTE_CAP").is_some()));
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err("the build fails".to_owned());
    }
    executable(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| "cargo names no executable".to_owned())
}

/// What compiles candle's CUDA kernels for all GPUs of compute capability 8.0 and later, unless one was selected
/// (`kernels/CUDA.md`): machine code for 8.0 and 9.0, PTX for the others.
fn cuda(features: &str, selected: bool) -> Vec<(&'static str, &'static str)> {
    let has_cuda = features.split([',', ' ']).any(|feature| feature == "cuda");
    if !has_cuda || selected {
        return Vec::new();
    }
    let flags = "-gencode=arch=compute_80,code=compute_80 -gencode=arch=compute_80,code=sm_90 --compress-mode=size";
    vec![("CUDA_COMPUTE_CAP", "80"), ("NVCC_APPEND_FLAGS", flags)]
}

/// The compiler's flags, as `CARGO_ENCODED_RUSTFLAGS` has them: those of `RUSTFLAGS`, and other names for the folders of sources.
fn flags(root: &Path) -> Result<String, String> {
    let root = root.canonicalize().map_err(|error| format!("cannot find {}: {error}", root.display()))?;
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo"))).ok_or("no home folder")?;
    let given = env::var("RUSTFLAGS").unwrap_or_default();
    let mut flags: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
    flags.extend([(home, "/cargo"), (root, "/memlocal")].map(|(path, name)| renamed(&path, name)));
    Ok(flags.join("\x1f"))
}

fn renamed(path: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", path.display())
}

/// The executable in cargo's messages.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_memlocal = messages.filter(|message| message["target"]["name"] == "memlocal");
    of_memlocal.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_that_of_memlocal() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"memory"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"build-script-build"},"executable":"/t/build"}
{"reason":"compiler-artifact","target":{"name":"memlocal"},"executable":"/t/dist/memlocal"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/t/dist/memlocal")));
        assert_eq!(executable(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn a_package_with_cuda_is_for_all_gpus_unless_one_is_selected() {
        assert_eq!(cuda("a,cuda", false).len(), 2);
        assert!(cuda("cuda", true).is_empty(), "CUDA_COMPUTE_CAP is set");
        assert!(cuda("metal", false).is_empty());
    }

    #[test]
    fn the_folders_of_this_machine_have_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let flags = flags(folder.path()).unwrap();
        let root = folder.path().canonicalize().unwrap();
        assert!(flags.ends_with(&format!("\x1f--remap-path-prefix={}=/memlocal", root.display())), "{flags}");
        assert!(flags.contains("=/cargo\x1f"), "{flags}");
    }
}
