//! The config file, the choice of a device, and the completions, manual and service unit that are installed on a
//! system.

use std::fs;

use test_support::home::{Home, Said};

const NAMES: &str = "hint: the names are those of the flags: memlocal COMMAND --help lists them";
const VALUES: &str = "hint: the values are those of the flags: memlocal COMMAND --help describes them";

#[test]
fn a_config_file_is_used_and_its_mistakes_are_reported_with_their_line() {
    let home = Home::bare("config");
    home.write("elsewhere/corpora/.keep", "");
    home.write("my.toml", "# Where data are kept.\ndata-dir = \"elsewhere\"\n");
    assert_eq!(home.run(&["corpus", "list", "--config", "my.toml"]).code, 0);
    let known = home.data().join("config.toml");
    fs::write(&known, "offline = true\n\n[serve]\nprot = 8420\n").unwrap();
    let said = |what: &str| format!("error: ~/data/config.toml, line {what}");
    home.run(&["corpus", "list"])
        .is_error(&[&said("4: there is no setting `prot` of [serve]"), "hint: did you mean `port`?"]);
    fs::write(&known, "threads = 0\n").unwrap();
    home.run(&["corpus", "list"])
        .is_error(&[&said("1: invalid value '0' for '--threads <N>': it must be 1 or more"), VALUES]);
    // What the command line lacks may be what the file was to say.
    fs::write(&known, "[ingest]\ncorpus = \"work\"\n").unwrap();
    home.run(&["ingest", "docs"]).is_error(&[&said("2: there is no setting `corpus` of [ingest]"), NAMES]);
    assert!(home.get(&["ingest", "--help"]).contains("--corpus <NAME>"));
    let none = home.run(&["corpus", "list", "--config", "none.toml"]);
    let says = "error: cannot read the config file none.toml: No such file";
    assert!(none.code == 1 && none.err.starts_with(says), "{}", none.err);
    assert!(none.err.ends_with("hint: --config or MEMLOCAL_CONFIG names it\n"), "{}", none.err);
    // The server reads the port to listen on: the port is taken, so the error names it.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    fs::write(&known, format!("[serve]\nport = {port}\n")).unwrap();
    let said = home.run(&["serve"]);
    assert!(said.err.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}\n")), "{}", said.err);
    let hint = "\nhint: another program listens there: --port N takes another port, 0 any that is free\n";
    assert!(said.err.ends_with(hint), "{}", said.err);
}

#[test]
fn a_config_file_that_cannot_be_read_is_not_ignored() {
    let home = Home::bare("config-unread");
    let known = home.data().join("config.toml");
    let says = |reason: &str| {
        let said = home.run(&["corpus", "list"]);
        let error = format!("error: cannot read the config file ~/data/config.toml: {reason}");
        assert!(said.code == 1 && said.out.is_empty() && said.err.starts_with(&error), "{said:?}");
    };
    std::os::unix::fs::symlink("nowhere/config.toml", &known).unwrap();
    says("No such file");
    fs::remove_file(&known).unwrap();
    fs::write(&known, b"\xff\xfeo\0").unwrap();
    says("it is not text in UTF-8\n");
}

#[test]
fn a_wrong_variable_of_the_environment_is_named() {
    let home = Home::bare("config-variables");
    fs::write(home.data().join("config.toml"), "threads = 1\n[serve]\nhost = \"127.0.0.1\"\n").unwrap();
    let run = |words: &[&str]| {
        home.said(home.command(words).env("MEMLOCAL_GPU", "first").env("MEMLOCAL_PORT", "web").output().unwrap())
    };
    let hint = |name: &str| format!("\nhint: this is the value of the environment variable {name}\n");
    let gpu = run(&["corpus", "list"]);
    assert!(gpu.code == 2 && gpu.err.starts_with("error: invalid value 'first' for '--gpu <N,...|auto>': "), "{gpu:?}");
    assert!(gpu.err.ends_with(&hint("MEMLOCAL_GPU")), "{gpu:?}");
    let port = run(&["serve", "--gpu", "none"]);
    assert!(port.code == 2 && port.err.contains("'web' for '--port <N>': expected a whole number\n"), "{port:?}");
    assert!(port.err.ends_with(&hint("MEMLOCAL_PORT")), "{port:?}");
    let typed = run(&["corpus", "list", "--gpu=second"]);
    assert!(typed.code == 2 && typed.err.contains("'second'") && !typed.err.contains("environment"), "{typed:?}");
    for words in [
        &["corpus", "list", "--gpu", "none"][..],
        &["--gpu", "none", "corpus", "list"],
        &["models", "list", "--gpu=none"],
    ] {
        let overridden = run(words);
        assert_eq!((overridden.code, overridden.err.as_str()), (0, ""), "{words:?}");
    }
    let of_servers = home.command(&["corpus", "list"]).env("MEMLOCAL_PORT", "web").output().unwrap();
    assert!(of_servers.status.success(), "a port matters to servers only: {of_servers:?}");
}

#[test]
fn a_filter_of_logs_that_cannot_be_used_is_named_in_one_line() {
    let home = Home::bare("log");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let serve = |filter: &str| {
        home.said(home.command(&["serve", "--port", &port]).env("RUST_LOG", filter).output().unwrap()).err
    };
    let wrong = serve("info,server=loud");
    let lines: Vec<&str> = wrong.lines().collect();
    assert!(lines[0].starts_with("RUST_LOG is not used, logs are filtered by info,rmcp=warn: "), "{wrong}");
    assert!(lines[1].starts_with("error: cannot listen on "), "{wrong}");
    for usable in ["", "warn"] {
        let said = serve(usable);
        assert!(said.starts_with("error: cannot listen on "), "{said}");
    }
}

#[test]
fn a_value_that_is_no_number_or_too_large_is_refused_without_terms_of_rust() {
    let home = Home::bare("numbers");
    let many = home.run(&["corpus", "list", "--threads", "100000"]);
    assert!(many.code == 2 && many.err.contains("'--threads <N>': it must be 1 to 1024\n"), "{many:?}");
    let typed = home.run(&["corpus", "list", "--threads", "few"]);
    assert!(typed.code == 2 && typed.err.contains("'--threads <N>': expected a whole number\n"), "{typed:?}");
    fs::write(home.data().join("config.toml"), "[serve]\nport = \"http\"\n").unwrap();
    let file = home.run(&["corpus", "list"]);
    assert!(file.code == 1 && file.err.contains("for '--port <N>': expected a whole number\n"), "{file:?}");
    fs::remove_file(home.data().join("config.toml")).unwrap();
    let check = |words: &[&str], says: &str| {
        let said = home.run(words);
        assert!(said.code == 2 && said.err.contains(says), "{said:?}");
    };
    check(&["serve", "--port", "99999"], "'--port <N>': 99999 is not in 0 to 65535\n");
    check(&["serve", "--deadline", "0"], "'--deadline <SECONDS>': it must be 1 or more\n");
    check(&["serve", "--host", "localhost"], "'--host <ADDRESS>': expected an IP address such as 127.0.0.1 or ::1\n");
    check(&["ask", "What?", "--docs", "a.txt", "--k", "-1"], "value '-1' for '--k <N>': expected a whole number\n");
    check(&["ask", "What?", "--docs", "a.txt", "--seed", "-1"], "'--seed <N>': expected a whole number\n");
}

#[test]
fn a_bundle_is_made_of_the_models_of_the_config_file_or_the_environment() {
    let home = Home::bare("config-bundle");
    let known = home.data().join("config.toml");
    let made_with =
        |said: &Said, model: &str| said.code == 1 && said.err.starts_with("error: ") && said.err.contains(model);
    fs::write(&known, "[models]\nmodel = \"file.gguf\"\njudge = \"judge.gguf\"\nadapter = \"corpus\"\n").unwrap();
    let of_file = home.run(&["bundle", "-o", "office"]);
    assert!(made_with(&of_file, "file.gguf"), "{of_file:?}");
    let by_variable =
        |words: &[&str]| home.said(home.command(words).env("MEMLOCAL_MODEL", "set.gguf").output().unwrap());
    let of_variable = by_variable(&["bundle", "-o", "office"]);
    assert!(made_with(&of_variable, "set.gguf"), "{of_variable:?}");
    let typed = by_variable(&["bundle", "-o", "office", "--model", "typed.gguf"]);
    assert!(made_with(&typed, "typed.gguf"), "{typed:?}");
    home.write("office", "no bundle");
    let shown = by_variable(&["bundle", "show", "office"]);
    assert!(shown.code == 1 && shown.err.contains("office is no bundle"), "{shown:?}");
    let private = home.run(&["bundle", "-o", "other", "--adapter", "corpus"]);
    assert!(private.code == 2 && private.err.contains("a bundle does not take the adapter of a corpus"), "{private:?}");
}

#[test]
fn an_empty_variable_is_as_one_that_is_not_set() {
    let home = Home::bare("config-empty");
    let names =
        ["MEMLOCAL_MODEL", "MEMLOCAL_CONFIG", "MEMLOCAL_GPU", "MEMLOCAL_VECTORS", "MEMLOCAL_BUNDLE", "MEMLOCAL_PORT"];
    let run = |words: &[&str]| {
        let mut command = home.command(words);
        for name in names {
            command.env(name, "");
        }
        home.said(command.output().unwrap())
    };
    let listed = run(&["corpus", "list"]);
    assert_eq!((listed.code, listed.err.as_str()), (0, ""));
    // A port that is free: the default one may be in use.
    fs::write(home.data().join("config.toml"), "[serve]\nport = 0\n").unwrap();
    let missing = home.run(&["serve", "--model", "none.gguf"]);
    assert!(missing.code == 1 && missing.err.starts_with("error: none.gguf is missing\n"), "{missing:?}");
    assert_eq!(run(&["serve", "--model", "none.gguf"]), home.run(&["serve", "--model", "none.gguf"]));
    fs::write(home.data().join("config.toml"), "[models]\nmodel = \"file.gguf\"\n").unwrap();
    home.write("a.txt", "The wall fell.");
    let of_file = run(&["ask", "What fell?", "--docs", "a.txt"]);
    assert!(of_file.code == 1 && of_file.err.contains("file.gguf"), "{of_file:?}");
}

#[test]
fn flags_of_a_server_that_would_have_no_effect_are_refused() {
    let home = Home::bare("serve-flags");
    let check = |words: &[&str], says: &str| {
        let said = home.run(&[&["serve", "--port", "0"], words].concat());
        assert!(said.code == 2 && said.err.contains(says), "{said:?}");
    };
    check(&["--allow-origin", "*"], "it must be SCHEME://HOST");
    check(&["--bench-runs", "nowhere"], "there is no such folder");
    check(&["--rate", "0"], "it must be 1 or more");
    check(&["--model-file", "=a.gguf"], "the name is missing before `=`");
}

#[test]
fn the_size_of_pages_is_refused_where_no_document_is_cut() {
    let home = Home::bare("page-tokens");
    let check = |words: &[&str], says: &str| {
        let said = home.run(&[words, &["--corpus", "c", "--page-tokens", "64"]].concat());
        assert!(said.code == 2 && said.err.contains(says), "{said:?}");
    };
    check(&["ask", "What fell?"], "cannot be used with");
    check(&["ingest"], "were not provided:\n  <PATHS>...\n");
    fs::write(home.data().join("config.toml"), "[ask]\npage-tokens = 64\n[ingest]\npage-tokens = 64\n").unwrap();
    for words in [&["ask", "What fell?", "--corpus", "c"][..], &["ingest", "--corpus", "c"]] {
        let said = home.run(words);
        assert!(said.code == 1 && said.err.starts_with("error: there is no corpus `c`"), "{said:?}");
    }
}

#[test]
fn options_of_other_methods_are_refused() {
    let home = Home::bare("other-options");
    let check = |words: &[&str], says: &str, has: &str| {
        let hint = format!("hint: leave it out, or choose a method that has it: {has}");
        home.run(words).is_error(&[&format!("error: {says}"), &hint]);
    };
    let ask = ["ask", "What fell?", "--corpus", "c"];
    let with = |more: &[&'static str]| [&ask[..], more].concat();
    let store = "--memcot-store has no effect on the method rag";
    check(&with(&["--method", "rag", "--memcot-store", "lightrag"]), store, "memcot");
    check(&with(&["--window", "4"]), "--window has no effect on the method auto", "memcot");
    let compared = with(&["--compare", "--methods", "rag,direct", "--output", "pages"]);
    check(&compared, "--output has no effect on the method rag, direct", "gam");
    check(&["ingest", "--corpus", "c", "--focus", "none"], "--focus has no effect on the method auto", "mindgraph");
    fs::write(home.data().join("config.toml"), "[ask]\nmemcot-store = \"lightrag\"\n").unwrap();
    for words in [with(&["--method", "rag"]), with(&["--output", "pages"])] {
        let said = home.run(&words);
        assert!(said.code == 1 && said.err.starts_with("error: there is no corpus `c`"), "{said:?}");
    }
}

#[test]
fn a_build_without_gpu_code_says_so() {
    let home = Home::bare("gpu");
    home.write("a.txt", "The wall fell.");
    home.run(&["ask", "What fell?", "--docs", "a.txt", "--gpu", "0"]).is_error(&[
        "error: this build computes on the CPU only, so there is no GPU 0 for it",
        "hint: omit --gpu, or use a build for GPUs (cargo build --release --features cuda)",
    ]);
    let said = home.run(&["ask", "What fell?", "--docs", "a.txt", "--gpu", "auto", "--model", "none.gguf"]);
    assert!(said.err.starts_with("computing on the CPU: this build computes on the CPU only"), "{}", said.err);
    let said = home.run(&["ask", "What fell?", "--docs", "a.txt", "--gpu", "0", "--cpu", "--model", "none.gguf"]);
    assert!(!said.err.contains("GPU"), "{}", said.err);
    let said = home.run(&["ask", "What fell?", "--docs", "a.txt", "--gpu", "first"]);
    assert!(
        said.code == 2 && said.err.contains("it must be a number, numbers with commas between them, auto or none"),
        "{}",
        said.err
    );
}

#[test]
fn shells_and_the_manual_know_every_command() {
    let home = Home::bare("shell");
    for shell in ["bash", "zsh", "fish"] {
        let script = home.get(&["completions", shell]);
        assert!(script.contains("ingest") && script.contains("bench-runs"), "{shell}");
    }
    assert_eq!(home.run(&["completions", "tcl"]).code, 2);
    home.get(&["man", "pages"]);
    let page = |name: &str| fs::read_to_string(home.path("pages").join(name)).unwrap();
    assert!(page("memlocal.1").contains("A long memory over private documents"));
    assert!(page("memlocal-serve.1").contains("bench\\-runs"), "{}", page("memlocal-serve.1"));
}

#[test]
fn completions_and_man_pages_have_no_flags_that_help_hides() {
    let home = Home::bare("shell-flags");
    let fish = home.get(&["completions", "fish"]);
    let offers = |command: &str, flag: &str| {
        let [of, long] = [format!("_using_subcommand {command}"), format!(" -l {flag} ")];
        fish.lines().any(|line| line.contains(&of) && line.contains(&long))
    };
    for command in ["ask", "models; and __fish_seen_subcommand_from fit", "keys", "corpus"] {
        assert!(offers(command, "data-dir"), "{command}");
        assert_eq!(offers(command, "kv-tokens"), !["keys", "corpus"].contains(&command), "{command}");
    }
    home.get(&["man", "pages"]);
    let lists = |name: &str, flag: &str| fs::read_to_string(home.path("pages").join(name)).unwrap().contains(flag);
    assert!(lists("memlocal-ask.1", "kv\\-tokens") && lists("memlocal-keys-list.1", "data\\-dir"));
    assert!(!lists("memlocal-keys-list.1", "kv\\-tokens"));
}

#[test]
fn the_unit_of_the_service_names_flags_that_there_are() {
    let unit = fs::read_to_string(test_support::home::repository("contrib/memlocal.service")).unwrap();
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/memlocal ")).unwrap();
    let (command, flags) = line.split_once(' ').unwrap();
    let help = Home::bare("unit").get(&[command, "--help"]);
    for flag in flags.split(' ') {
        assert!(help.contains(&format!("{flag}\n")) || help.contains(&format!("{flag} ")), "{flag}");
    }
}
