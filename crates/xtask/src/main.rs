//! Development tasks: `cargo xtask ci` is exactly what continuous integration runs.

mod arm;
mod crash;
mod deny;
mod dist;
mod gpu;
mod ptx;
mod random_weights;
mod sanitize;
mod toolkit;
mod words;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// The steps of `ci`, in order: the tests first, since they find most errors.
const CI: [(&str, &[&str]); 4] = [
    ("the tests", &["test", "--release", "--workspace"]),
    ("the lints", &["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ("the documentation", &["doc", "--release", "--workspace", "--no-deps", "--config", RUSTDOC]),
    ("the formatting", &["fmt", "--check"]),
];

const RUSTDOC: &str = "build.rustdocflags=['-D', 'warnings']";

/// The steps of `quick`.
const QUICK: [(&str, &[&str]); 2] = [
    ("the formatting", &["fmt", "--check"]),
    (
        "the tests of logic",
        &[
            "test",
            "-p",
            "bundle",
            "-p",
            "calls",
            "-p",
            "memory",
            "-p",
            "random",
            "-p",
            "remote",
            "-p",
            "scheduler",
            "-p",
            "schema-check",
            "-p",
            "sources",
            "-p",
            "store",
        ],
    ),
];

const APPLE: &str = "aarch64-apple-darwin";

/// The parts of Metal that can be checked on other machines. Without C, which needs Apple's compiler: blake3's build
/// script takes the variable as its feature `pure`. The profile is that of the other steps, which have compiled its
/// macros and build scripts.
const METAL: &[&str] = &[
    "check",
    "--release",
    "--config",
    "env.CARGO_FEATURE_PURE='1'",
    "--target",
    APPLE,
    "--features",
    "metal",
    "--package",
    "kernels",
    "--package",
    "models",
    "--package",
    "portable",
    "--package",
    "engine",
];

const USAGE: &str = "\
cargo xtask ci                      run the checks of wording and dependencies, the tests, the lints, the
                                    documentation and the formatting check, and arm and metal where
                                    their targets can be had
cargo xtask quick                   wording, formatting and the tests of crates without networks
cargo xtask words                   check the wording of sources and documents (docs/style.md), and that
                                    tests run the examples in the documentation of crates
cargo xtask deny                    check licences, sources and advisories of dependencies (deny.toml)
cargo xtask dist [--features F | --binary BINARY] [FOLDER]
                                    compile memlocal with the profile dist, or take a binary, and package
                                    it: tarball, wheel, Debian package, OCI image, SBOM, installer and
                                    checksums, below FOLDER (target/packages)
cargo xtask arm                     run the kernels' tests on 64-bit Arm, emulated
cargo xtask crash [--kills N] [--seed S] [--out FOLDER]
                                    kill memlocal, memlocal-train and memlocal-bench at random moments (1,000
                                    times in all), check what is left and write FOLDER/kills.txt
cargo xtask soak [ARGUMENT...]       mixed work on a server at twice its capacity for 30 minutes
                                    (memlocal-bench serve --soak, with its arguments)
cargo xtask random-weights SHAPE TOKENIZER.json FOLDER
                                    write a checkpoint of a published shape with random weights
cargo xtask sanitize                run the kernels' tests with the address sanitizer, and the pool of
                                    threads in Miri (nightly Rust)
cargo xtask metal                   check what can be checked of Metal elsewhere
cargo xtask toolkit FOLDER          a CUDA toolkit to build with, out of Python wheels
cargo xtask ptx                     assemble the CUDA kernels and write the table in kernels/CUDA.md
cargo xtask gpu [MODEL.gguf]        check and measure on a GPU; ends with 2 where there is none
cargo xtask gpu --pack MODEL.gguf   a bundle of that for a machine without network
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut not_checked = Vec::new();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ci"] => Ok(ci(&mut not_checked)),
        ["quick"] => Ok(quick(&mut not_checked)),
        ["words"] => words::run(),
        ["deny"] => deny::run(&mut not_checked),
        ["arm"] => return arm::run(),
        ["dist", ref arguments @ ..] => dist::run(arguments),
        ["crash", ref arguments @ ..] => crash::run(arguments),
        ["soak", ref arguments @ ..] => soak(arguments),
        ["sanitize"] => return sanitize::run(),
        ["random-weights", ..] => random_weights::run(&arguments[1..]).map(|path| {
            eprintln!("xtask: wrote {}", path.display());
            ExitCode::SUCCESS
        }),
        ["metal"] => Ok(steps(&[("Metal", METAL)], &mut not_checked)),
        ["ptx"] => ptx::run().map(|()| ExitCode::SUCCESS),
        ["toolkit", folder] => toolkit::run(folder).map(|()| ExitCode::SUCCESS),
        ["gpu", "--pack", model] => gpu::pack(model),
        ["gpu"] => gpu::run(None),
        ["gpu", model] => gpu::run(Some(model)),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let done = done.unwrap_or_else(|reason| {
        eprintln!("xtask: {reason}");
        ExitCode::from(2)
    });
    not_checked.iter().for_each(|what| eprintln!("xtask: not checked: {what}"));
    done
}

/// What cannot be checked here is added to `not_checked`, which is printed last.
fn ci(not_checked: &mut Vec<String>) -> ExitCode {
    let mut done = checked("the wording", words::run);
    if done == ExitCode::SUCCESS {
        done = checked("the dependencies", || deny::run(not_checked));
    }
    if done == ExitCode::SUCCESS {
        done = steps(&CI, not_checked);
    }
    if done != ExitCode::SUCCESS {
        return done;
    }
    if !arm::missing().is_empty() || !has_target(arm::TARGET) {
        let missing = arm::missing().join(" and ");
        not_checked.push(format!("the kernels on Arm: without {missing} or the target {}", arm::TARGET));
    } else if arm::run() != ExitCode::SUCCESS {
        eprintln!("xtask: the kernels' tests on Arm failed");
        return ExitCode::FAILURE;
    }
    if !has_target(APPLE) {
        not_checked.push(format!("Metal: this toolchain has no target {APPLE}, and rustup gives none"));
        return done;
    }
    steps(&[("Metal", METAL)], not_checked)
}

/// The checks that compile no network: wording, formatting, and the tests of the crates without candle.
fn quick(not_checked: &mut Vec<String>) -> ExitCode {
    let done = checked("the wording", words::run);
    if done == ExitCode::SUCCESS { steps(&QUICK, not_checked) } else { done }
}

fn checked(what: &str, check: impl FnOnce() -> Result<ExitCode, String>) -> ExitCode {
    eprintln!("xtask: {what}");
    check().unwrap_or_else(|reason| {
        eprintln!("xtask: {reason}");
        ExitCode::FAILURE
    })
}

/// True if there is a standard library for a target, which is installed if necessary.
fn has_target(target: &str) -> bool {
    let library = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let there = library.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && std::path::Path::new(&folder).is_dir()
    });
    let added = || Command::new("rustup").args(["target", "add", target]).output();
    there || added().is_ok_and(|output| output.status.success())
}

/// The cargo that runs this task.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The folder of what cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()).into()
}

/// Builds server and clients, and runs the soak test with further arguments.
fn soak(arguments: &[&str]) -> Result<ExitCode, String> {
    let run = ["run", "--release", "--package", "bench", "--bin", "memlocal-bench", "--", "serve", "--soak"];
    for words in [&["build", "--release", "--package", "memlocal"][..], &[&run[..], arguments].concat()] {
        let status = cargo().args(words).status().map_err(|error| error.to_string())?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs cargo for each step until one fails.
fn steps(steps: &[(&str, &[&str])], not_checked: &mut Vec<String>) -> ExitCode {
    for (what, arguments) in steps {
        // A toolchain without clippy or rustfmt can still run the tests.
        if !has(arguments[0]) {
            not_checked.push(format!("{what}: this toolchain has no `cargo {}`", arguments[0]));
            continue;
        }
        eprintln!("xtask: {what}: cargo {}", arguments.join(" "));
        let begun = Instant::now();
        match cargo().args(*arguments).status() {
            Ok(status) if status.success() => eprintln!("xtask: {what} took {} s", begun.elapsed().as_secs()),
            Ok(_) => {
                eprintln!("xtask: {what} failed");
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("xtask: cannot run cargo: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// True if the toolchain has this subcommand.
fn has(subcommand: &str) -> bool {
    let help = cargo().args([subcommand, "--help"]).output();
    help.is_ok_and(|output| output.status.success())
}
