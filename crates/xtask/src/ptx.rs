//! `cargo xtask ptx`: compiles the CUDA kernels to PTX, assembles it for every supported architecture, and writes
//! registers, shared memory, stacks and spills into `kernels/CUDA.md`. It needs a toolkit (CUDA_HOME) and no GPU.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHITECTURES: [&str; 5] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120"];
const DOCUMENT: &str = "kernels/CUDA.md";
const BEGIN: &str = "<!-- cargo xtask ptx: begin -->\n";
const END: &str = "<!-- cargo xtask ptx: end -->\n";

/// The assembler's report on a kernel, by architecture.
#[derive(Debug, Default)]
struct Kernel {
    registers: BTreeMap<usize, u32>,
    shared_bytes: u32,
    /// Arrays that the compiler could not keep in registers.
    stack_bytes: u32,
    spilled_bytes: u32,
}

/// Runs all steps.
pub fn run() -> Result<(), String> {
    let home = std::env::var_os("CUDA_HOME").ok_or("CUDA_HOME names no CUDA toolkit")?;
    let bin = Path::new(&home).join("bin");
    let out = crate::target().join("ptx");
    std::fs::create_dir_all(&out).map_err(|error| format!("cannot make {}: {error}", out.display()))?;
    let mut kernels = BTreeMap::new();
    for source in sources(Path::new("kernels/src"))? {
        let ptx = out.join(source.file_stem().unwrap_or_default()).with_extension("ptx");
        let flags = ["--ptx", "--gpu-architecture=compute_80", "-std=c++17", "-O3", "-o"];
        said(Command::new(bin.join("nvcc")).args(flags).arg(&ptx).arg(&source))?;
        for (index, architecture) in ARCHITECTURES.iter().enumerate() {
            let cubin = ptx.with_extension("cubin");
            let mut assemble = Command::new(bin.join("ptxas"));
            assemble.args(["-v", "-arch", architecture, "-o"]).arg(cubin).arg(&ptx);
            read(&said(&mut assemble)?, index, &mut kernels);
        }
        eprintln!("xtask: {}", source.display());
    }
    write(&table(&kernels))
}

/// The `.cu` files below a folder, in order.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "cu") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Runs a tool; returns its output if it succeeded.
fn said(tool: &mut Command) -> Result<String, String> {
    let output = tool.output().map_err(|error| format!("cannot run {}: {error}", tool.get_program().display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(said) }
}

/// Parses the output of `ptxas -v`.
fn read(said: &str, architecture: usize, kernels: &mut BTreeMap<String, Kernel>) {
    let mut name = "";
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("entry function '") {
            name = rest.split('\'').next().unwrap_or_default();
        } else if let Some(spilled) = before(line, " bytes spill stores") {
            let kernel = kernels.entry(name.to_owned()).or_default();
            kernel.spilled_bytes = kernel.spilled_bytes.max(spilled);
            kernel.stack_bytes = kernel.stack_bytes.max(before(line, " bytes stack frame").unwrap_or(0));
        } else if let Some(registers) = before(line, " registers") {
            let kernel = kernels.entry(name.to_owned()).or_default();
            kernel.registers.insert(architecture, registers);
            kernel.shared_bytes = kernel.shared_bytes.max(before(line, " bytes smem").unwrap_or(0));
        }
    }
}

/// The number directly before some words.
fn before(line: &str, words: &str) -> Option<u32> {
    let (start, _) = line.split_once(words)?;
    start.rsplit(' ').next()?.parse().ok()
}

fn table(kernels: &BTreeMap<String, Kernel>) -> String {
    let mut table =
        format!("| kernel | registers {} | shared bytes | stack bytes | spilled bytes |\n", ARCHITECTURES.join(" / "));
    table.push_str("|---|---|---:|---:|---:|\n");
    for (name, kernel) in kernels {
        let registers: Vec<String> = kernel.registers.values().map(ToString::to_string).collect();
        let (registers, shared) = (registers.join(" / "), kernel.shared_bytes);
        let (stack, spilled) = (kernel.stack_bytes, kernel.spilled_bytes);
        // Writing to a string does not fail.
        let _ = writeln!(table, "| `{name}` | {registers} | {shared} | {stack} | {spilled} |");
    }
    table
}

/// Inserts the table between its marks.
fn write(table: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(DOCUMENT).map_err(|error| format!("cannot read {DOCUMENT}: {error}"))?;
    let marked = text.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = marked.ok_or_else(|| format!("{DOCUMENT} has no marks for the table"))?;
    std::fs::write(DOCUMENT, format!("{head}{BEGIN}{table}{END}{tail}"))
        .map_err(|error| format!("cannot write {DOCUMENT}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_assembler_says_is_read() {
        let said = "ptxas info    : Compiling entry function 'add' for 'sm_80'\n\
                    ptxas info    : Function properties for add\n\
                    \x20   24 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads\n\
                    ptxas info    : Used 40 registers, used 1 barriers, 128 bytes smem, 400 bytes cmem[0]\n";
        let mut kernels = BTreeMap::new();
        read(said, 1, &mut kernels);
        let kernel = &kernels["add"];
        assert_eq!((kernel.registers[&1], kernel.shared_bytes), (40, 128));
        assert_eq!((kernel.stack_bytes, kernel.spilled_bytes), (24, 8));
    }
}
