//! `memlocal doctor`: what this machine has, what memlocal would use of it, and what is wrong.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;

use anyhow::{Error, Result};
use indicatif::{BinaryBytes, HumanBytes};
use kernels::cpu::{Isa, select_isa};
use launch::failure;
use launch::flags::{GlobalFlags, Gpu};
use launch::output::{print, print_line};
use launch::{home, machine};
use models::fetch::{Resolved, locate, locate_named, resolve};
use serde_json::{Value, json};

use crate::args::Doctor;

/// Free disk space below which a warning is due: a corpus and a small model.
const FEW_BYTES: u64 = 1 << 30;

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Good,
    Warning,
    Problem,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Good => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }
}

/// What was found of one thing.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    of: &'static str,
    level: Level,
    text: String,
    hint: Option<String>,
}

impl Finding {
    fn good(of: &'static str, text: impl Into<String>) -> Finding {
        Finding { of, level: Level::Good, text: text.into(), hint: None }
    }

    fn warning(of: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Finding {
        Finding { of, level: Level::Warning, text: text.into(), hint: Some(hint.into()) }
    }

    fn problem(of: &'static str, error: &Error) -> Finding {
        let text = failure::in_one_line(error);
        Finding { of, level: Level::Problem, text, hint: failure::hint_of(error) }
    }

    fn as_json(&self) -> Value {
        json!({ "check": self.of, "status": self.level.name(), "found": self.text, "hint": self.hint })
    }
}

/// Prints every finding; fails if there is a problem. `config` is the config file, or what is wrong with it.
pub fn run(doctor: &Doctor, global: &GlobalFlags, config: Result<Option<PathBuf>>) -> Result<ExitCode> {
    let mut findings = vec![processor(global), device(global), memory()];
    findings.push(data_folder(global));
    findings.push(match config {
        Ok(Some(path)) => Finding::good("config file", path.display().to_string()),
        Ok(None) => Finding::good("config file", "none"),
        Err(error) => Finding::problem("config file", &error),
    });
    findings.push(model("language model", &doctor.models.model, global));
    findings.push(model("embedding model", &doctor.models.embedder, global));
    findings.push(network(global));
    let problems = findings.iter().filter(|finding| finding.level == Level::Problem).count();
    if doctor.json {
        let checks: Vec<Value> = findings.iter().map(Finding::as_json).collect();
        print_line(serde_json::to_string_pretty(&json!({ "ok": problems == 0, "checks": checks }))?)?;
    } else {
        print(text(&findings))?;
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(findings: &[Finding]) -> String {
    let lines = findings.iter().flat_map(|finding| {
        let Finding { of, level, text, hint } = finding;
        let hint = hint.as_ref().map(|hint| format!("{:27}hint: {hint}\n", ""));
        [Some(format!("{:9}{of:18}{text}\n", level.name())), hint]
    });
    lines.flatten().collect()
}

fn processor(global: &GlobalFlags) -> Finding {
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = global.threads.map_or(cores, usize::from);
    let names: Vec<String> = Isa::available().map(|isa| isa.to_string()).collect();
    let used = match select_isa() {
        Ok(used) => used,
        Err(reason) => {
            let hint = format!("MEMLOCAL_CPU names one of {}; without it the fastest is used", names.join(", "));
            return Finding::problem("processor", &failure::refusal(format!("MEMLOCAL_CPU: {reason}"), hint));
        }
    };
    let text = format!(
        "{}, kernels for {used} (it runs {}), {threads} threads on {cores} cores",
        std::env::consts::ARCH,
        names.join(", ")
    );
    match used {
        Isa::Scalar => Finding::warning(
            "processor",
            text,
            "a model runs many times faster on a processor with AVX2 and FMA, or on Arm with dot products",
        ),
        _ => Finding::good("processor", text),
    }
}

fn device(global: &GlobalFlags) -> Finding {
    match machine::open_device(global) {
        Err(error) => Finding::problem("device", &error),
        Ok(_) if global.gpu() == Gpu::None && Path::new("/dev/nvidia0").exists() => {
            let text = "the CPU computes; there is a GPU of NVIDIA";
            Finding::warning("device", text, "--gpu auto uses it in a build for GPUs (--features cuda)")
        }
        Ok(name) => Finding::good("device", format!("{name} computes")),
    }
}

fn memory() -> Finding {
    match machine::free_memory_bytes() {
        Some(free) => Finding::good("memory", format!("{} free", BinaryBytes(free))),
        None => Finding::warning(
            "memory",
            "the system does not report free memory",
            "whether a model fits is not checked before it is loaded",
        ),
    }
}

fn data_folder(global: &GlobalFlags) -> Finding {
    const OF: &str = "data folder";
    let hint = "choose a folder that you may write to: --data-dir FOLDER, or MEMLOCAL_HOME";
    let folder = match home::folder(global) {
        Ok(folder) => folder,
        Err(error) => return Finding::problem(OF, &error),
    };
    let shown = folder.display();
    let Some(there) = machine::nearest_existing(&folder) else {
        return Finding::problem(OF, &failure::refusal(format!("{shown} cannot be created"), hint));
    };
    if let Err(error) = machine::try_to_write(&there) {
        return Finding::problem(
            OF,
            &failure::refusal(format!("{} cannot be written: {error}", there.display()), hint),
        );
    }
    let new = if there == folder { "" } else { ", not created yet" };
    match machine::free_disk_bytes(&there) {
        Some(free) if free < FEW_BYTES => {
            let text = format!("{shown}{new}, only {} free", BinaryBytes(free));
            Finding::warning(OF, text, "free some space, or keep the data on another disk (--data-dir)")
        }
        Some(free) => Finding::good(OF, format!("{shown}{new}, {} free", BinaryBytes(free))),
        None => Finding::good(OF, format!("{shown}{new}")),
    }
}

fn model(of: &'static str, typed: &str, global: &GlobalFlags) -> Finding {
    let found = resolve(typed).map_err(Error::from).and_then(|resolved| Ok((resolved, home::fetching(global)?)));
    let (choice, options) = match found {
        Ok((Resolved::Known(choice), options)) => (choice, options),
        Ok((Resolved::Named(name), options)) => {
            let (text, hint) = (format!("{name} is not here"), format!("fetch it: memlocal models pull {name}"));
            return match locate_named(&name, &options) {
                Some(here) => Finding::good(of, format!("{name} is here, {}", here.source)),
                None if options.offline => Finding::problem(of, &failure::refusal(text, hint)),
                None => Finding::warning(of, text, hint),
            };
        }
        Ok((Resolved::Local(_), _)) => return Finding::good(of, format!("{typed} is on this disk")),
        Err(error) => return Finding::problem(of, &error),
    };
    let too_large = || {
        let free = machine::free_memory_bytes()?;
        let need = choice.variant.memory_mib << 20;
        (need > free).then(|| format!("{choice} takes {} of memory; {} are free", BinaryBytes(need), BinaryBytes(free)))
    };
    if let Some(text) = too_large() {
        let hint = "choose a smaller model or variant (memlocal models list)";
        return Finding::problem(of, &failure::refusal(text, hint));
    }
    if let Some(here) = locate(choice, &options) {
        return Finding::good(of, format!("{choice} is here, {}", here.source));
    }
    if options.offline {
        let hint = format!("fetch it once with a network: memlocal models pull {choice}");
        return Finding::problem(of, &failure::refusal(format!("{choice} is not here, and this is offline"), hint));
    }
    let bytes: Option<u64> = choice.variant.files.iter().map(|file| file.bytes).sum();
    let size = bytes.filter(|bytes| *bytes > 0).map_or_else(String::new, |bytes| format!(", {}", HumanBytes(bytes)));
    let hint = format!("it is fetched when it is first used, or now: memlocal models pull {choice}");
    Finding::warning(of, format!("{choice} is not here{size}"), hint)
}

fn network(global: &GlobalFlags) -> Finding {
    const OF: &str = "network";
    let options = match home::fetching(global) {
        Ok(options) => options,
        Err(error) => return Finding::problem(OF, &error),
    };
    if options.offline {
        return Finding::good(OF, "off (--offline or HF_HUB_OFFLINE): no connection is opened");
    }
    let hub = machine::hub_address();
    if let Some(proxy) = proxy(|name| std::env::var(name).ok()) {
        return Finding::good(OF, format!("{hub} by the proxy {}", store::without_secrets(&proxy)));
    }
    match machine::reach(&hub) {
        Ok(()) => Finding::good(OF, format!("{hub} answers")),
        Err(error) => Finding::warning(
            OF,
            format!("{hub} cannot be reached: {}", failure::in_one_line(&error)),
            "models that are here work; HF_ENDPOINT names a mirror, HTTPS_PROXY a proxy, and `memlocal models pull NAME \
             --from PATH` takes files from another machine",
        ),
    }
}

/// The proxy that the environment names; an empty variable counts as unset.
fn proxy(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    ["HTTPS_PROXY", "https_proxy"].into_iter().filter_map(variable).find(|proxy| !proxy.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_names_no_proxy() {
        let check = |upper: Option<&str>, lower: Option<&str>, want: Option<&str>| {
            let found = proxy(|name| if name == "HTTPS_PROXY" { upper } else { lower }.map(str::to_owned));
            assert_eq!(found.as_deref(), want);
        };
        check(None, None, None);
        check(Some(""), Some(""), None);
        check(Some("http://a"), Some("http://b"), Some("http://a"));
        check(Some(""), Some("http://b"), Some("http://b"));
    }

    #[test]
    fn findings_are_lines_with_their_hints_and_json() {
        let findings = [
            Finding::good("memory", "2 GiB free"),
            Finding::problem("device", &failure::refusal("no GPU 3", "omit --gpu")),
        ];
        let expected = "ok       memory            2 GiB free\nproblem  device            no GPU 3\n                           hint: omit --gpu\n";
        assert_eq!(text(&findings), expected);
        let json = json!({ "check": "device", "status": "problem", "found": "no GPU 3", "hint": "omit --gpu" });
        assert_eq!(findings[1].as_json(), json);
    }
}
