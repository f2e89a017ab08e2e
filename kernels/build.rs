//! Compiles the CUDA kernels to PTX, under feature `cuda` only: for compute capability 8.0, which later ones run too.

use std::path::PathBuf;
use std::process::Command;
use std::{env, process};

const KERNELS: [&str; 18] = [
    "activation/activation.cu",
    "attention/paged.cu",
    "attention/ragged.cu",
    "embedding/embedding.cu",
    "matmul/quantised/q2_k.cu",
    "matmul/quantised/q3_k.cu",
    "matmul/quantised/q4_0.cu",
    "matmul/quantised/q4_1.cu",
    "matmul/quantised/q4_k.cu",
    "matmul/quantised/q5_0.cu",
    "matmul/quantised/q5_1.cu",
    "matmul/quantised/q5_k.cu",
    "matmul/quantised/q6_k.cu",
    "matmul/quantised/q8_0.cu",
    "matmul/rows.cu",
    "norm/norm.cu",
    "rope/rope.cu",
    "sample/draw.cu",
];
const HEADERS: [&str; 5] =
    ["attention/tile.cuh", "cuda/common.cuh", "cuda/matrix.cuh", "matmul/quantised/product.cuh", "sample/row.cuh"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    println!("cargo::rerun-if-env-changed=NVCC");
    println!("cargo::rerun-if-env-changed=CUDA_HOME");
    HEADERS.iter().chain(&KERNELS).for_each(|file| println!("cargo::rerun-if-changed=src/{file}"));
    println!("cargo::rustc-env=MEMLOCAL_CUDA={}", version());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for kernel in KERNELS {
        let source = PathBuf::from("src").join(kernel);
        let ptx = out.join(source.file_stem().unwrap_or_default()).with_extension("ptx");
        let flags = ["--ptx", "--gpu-architecture=compute_80", "-std=c++17", "-O3", "-o"];
        // Flags for the machine code of other crates do not go with PTX.
        let compiled =
            Command::new(compiler()).args(flags).arg(&ptx).arg(&source).env_remove("NVCC_APPEND_FLAGS").status();
        match compiled {
            Ok(status) if status.success() => {}
            Ok(_) => fail(&format!("nvcc does not compile {kernel}")),
            Err(error) => fail(&format!("nvcc cannot be run ({error}); set CUDA_HOME to a CUDA toolkit, 12 or 13")),
        }
    }
}

/// `NVCC`, that of `CUDA_HOME`, or the one on the path.
fn compiler() -> PathBuf {
    let home = || env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin/nvcc"));
    env::var_os("NVCC").map(PathBuf::from).or_else(home).unwrap_or_else(|| "nvcc".into())
}

/// What the toolkit is, as a driver counts: 13000 for 13.0. Its PTX needs a driver that is as new.
fn version() -> u32 {
    let said = Command::new(compiler()).arg("--version").output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let release = said.split_once("release ").and_then(|(_, rest)| rest.split(',').next()?.split_once('.'));
    let number =
        release.and_then(|(major, minor)| Some(1000 * major.parse::<u32>().ok()? + 10 * minor.parse::<u32>().ok()?));
    number.unwrap_or_else(|| fail("`nvcc --version` does not say which CUDA it is; set CUDA_HOME to a toolkit"))
}

fn fail(reason: &str) -> ! {
    println!("cargo::error={reason}");
    process::exit(1);
}
