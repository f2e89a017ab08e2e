//! Invalid models, full disks and read-only folders give a clear error, and no data is lost.

use std::fs;

use test_support::home::{Home, LANGUAGE_MODEL, Said, can, memlocal, repository};
use test_support::story::STORY;

#[test]
fn a_model_that_is_none_is_refused() {
    let Some(home) = Home::new("no-model") else { return };
    home.write("a.txt", "The lamp was out.\n");
    let installed = home.data().join("models").join(LANGUAGE_MODEL).join("q4_1/SmolLM2-135M-Instruct.Q4_1.gguf");
    let whole = fs::read(installed).unwrap();
    home.write("empty.gguf", "");
    home.write("foreign.gguf", "The lamp was out.\n");
    home.write("head.gguf", &whole[..20]);
    home.write("cut.gguf", &whole[..whole.len() / 2]);
    safetensors_without_a_tensor(&home);
    let check = |model: &str, lines: &[&str]| {
        home.run(&["ask", "Who?", "--docs", "a.txt", "--method", "rag", "--model", model]).is_error(lines);
    };
    let again = "hint: it may not have come whole: copy it again, or for a model of `memlocal models list` use \
                 `memlocal models rm` and `memlocal models pull`";
    let damaged = |name: &str, reason: &str| {
        let because = format!("  because: {name} is no usable model file: {reason}");
        check(name, &[&format!("error: cannot load {name}"), &because, again]);
    };
    damaged("empty.gguf", "it is empty");
    damaged("foreign.gguf", "it does not begin with `GGUF`");
    damaged("head.gguf", "it is cut off in its head");
    let (half, whole) = (whole.len() / 2, whole.len());
    damaged("cut.gguf", &format!("it is cut off after {half} bytes, its tensors need {whole}"));
    let unread = "  because: ./llama has tensors that its network does not read: `model.morn.weight`";
    let variant =
        "hint: the checkpoint is of a variant that is not supported; memlocal models list shows models that work";
    check("./llama", &["error: cannot load ./llama", unread, variant]);
    let unknown = "error: there is no model named \"smollm2-135\"";
    check("smollm2-135", &[unknown, "hint: did you mean smollm2-135m-instruct?"]);
    let fetch = "hint: correct the path, or fetch a model: memlocal models list shows names for memlocal models pull";
    check("missing.gguf", &["error: missing.gguf is missing", fetch]);
    let files = "hint: give a .gguf file, or a folder with config.json, tokenizer.json, tokenizer_config.json and \
                 *.safetensors";
    check("./a.txt", &["error: ./a.txt is not a model: neither a .gguf file nor a folder", files]);
}

#[test]
fn models_that_do_not_fit_are_refused_with_the_numbers() {
    let Some(home) = Home::new("no-room") else { return };
    home.write("a.txt", "The lamp was out.\n");
    let said = home.run(&["ask", "Who?", "--docs", "a.txt", "--kv", "f16", "--kv-tokens", "1000000000"]);
    let takes = "error: not enough memory: 20.95 TiB needed (weights of smollm2-135m-instruct:q4_1 92.10 MiB, keys and \
                 values of 1000000000 tokens in f16 20.95 TiB, ";
    assert!(said.code == 1 && said.out.is_empty() && said.err.starts_with(takes), "{said:?}");
    assert!(said.err.contains(" free\nhint: a smaller KV cache fits: --kv-tokens "), "{said:?}");
}

#[test]
fn a_kv_cache_that_is_too_small_is_met_with_the_size_that_is_needed() {
    let Some(home) = Home::new("small-cache") else { return };
    home.write("a.txt", "The lamp was out.\n");
    let ask = |tokens: &str| home.run(&["ask", "What was out?", "--docs", "a.txt", "--kv-tokens", tokens]);
    let small = ask("10");
    assert!(small.code == 1 && small.err.contains(", but the context holds 32\n"), "{small:?}");
    let hint = "hint: this call needs --kv-tokens ";
    let least =
        small.err.split(hint).nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{small:?}"));
    assert_eq!(ask(least).code, 0, "it is enough: {small:?}");
}

#[test]
fn pages_that_were_cut_for_a_small_kv_cache_are_not_used_without_it() {
    let Some(home) = Home::new("small-pages") else { return };
    home.write("story.txt", STORY);
    let ask = ["ask", "Who kept the café?", "--docs", "story.txt", "--method", "rag"];
    let pages = |said: &Said| -> usize {
        let pages = said.err.strip_prefix("added story.txt (").and_then(|rest| rest.split(' ').next());
        pages.and_then(|pages| pages.parse().ok()).unwrap_or_else(|| panic!("{said:?}"))
    };
    let (failed, asked) = (home.run(&[&ask[..], &["--kv-tokens", "10"]].concat()), home.run(&ask));
    assert_eq!((failed.code, asked.code), (1, 0), "{failed:?}");
    assert!(pages(&failed) > pages(&asked), "the text is cut anew: {asked:?}");
    assert!(!home.run(&ask).err.contains("story.txt"), "these pages are used again");
}

/// A checkpoint that is complete except for the name of one tensor.
fn safetensors_without_a_tensor(home: &Home) {
    home.copy(&repository("tests/golden/decoder/llama"), "llama");
    home.write("llama/tokenizer_config.json", r#"{"chat_template": "{{ messages[0].content }}"}"#);
    let mut bytes = fs::read(home.path("llama/model.safetensors")).unwrap();
    let name = b"model.norm.weight";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + name.len()].copy_from_slice(b"model.morn.weight");
    home.write("llama/model.safetensors", bytes);
}

#[test]
fn a_full_disk_loses_nothing() {
    let Some(home) = Home::new("full-disk") else { return };
    home.write("a.txt", "The lamp was out.\n");
    home.write("b.txt", "Zoë climbed the steps.\n");
    let Some(said) = on_a_disk_of_its_own(
        &home,
        "size=4m",
        "memlocal ingest a.txt --corpus c --method rag; cat /dev/zero >disk/filler; \
         memlocal ingest b.txt --corpus c --method rag; echo $?; rm disk/filler; \
         memlocal corpus show c --text a.txt; memlocal ingest b.txt --corpus c --method rag",
    ) else {
        return;
    };
    assert_eq!(said.out, "c: 1 document, 1 page\n1\nThe lamp was out.\nc: 2 documents, 2 pages\n", "{said:?}");
    assert!(said.err.contains("error: the disk is full, nothing was changed: disk/data/corpora/c/"), "{}", said.err);
    assert!(said.err.contains("hint: free some space; nothing was lost, the same command resumes\n"));
}

#[test]
fn a_folder_that_may_not_be_written_is_named() {
    let Some(home) = Home::new("read-only") else { return };
    home.write("a.txt", "The lamp was out.\n");
    let Some(said) = on_a_disk_of_its_own(
        &home,
        "size=8m",
        "memlocal ingest a.txt --corpus c --method rag; mount -o remount,ro disk; \
         memlocal ask 'What was out?' --corpus c --method rag >answer; test -s answer; echo $?; \
         \"$program\" --threads 1 serve --port 0 >served 2>/dev/null & \
         until grep -q listens served || ! kill -0 $!; do sleep 0.05; done; \
         curl -sS \"$(sed -n 's,.* on ,,p' served)/v1/corpora/c/ask\" -H 'content-type: application/json' \
         -d '{\"question\": \"What was out?\", \"method\": \"comorag\"}' >asked; \
         for more in '' ', \"store\": true'; do \
         curl -sS -i \"$(sed -n 's,.* on ,,p' served)/v1/responses\" -H 'content-type: application/json' \
         -d \"{\\\"model\\\": \\\"c:quick\\\", \\\"input\\\": \\\"What was out?\\\"$more}\" >>responses; done; kill $!; wait; \
         memlocal ingest a.txt --corpus c --method rag; echo $?; memlocal corpus rm c --yes; echo $?; \
         memlocal ingest a.txt --corpus d --method rag; echo $?",
    ) else {
        return;
    };
    assert_eq!(said.out, "c: 1 document, 1 page\n0\n1\n1\n1\n", "reading continues: {said:?}");
    let asked = fs::read_to_string(home.path("asked")).unwrap();
    let note = "so rag answered instead: a file of the data folder cannot be written";
    assert!(asked.contains(note) || said.err.contains("curl: "), "a server continues too: {asked}");
    let responses = fs::read_to_string(home.path("responses")).unwrap();
    let given = responses.contains("the response is not stored: its file cannot be written")
        && responses.contains("\"store\":false")
        && responses.contains("HTTP/1.1 507 ")
        && responses
            .contains("\"hint\":\"let the user that runs the server write to its data folder; nothing was lost\"");
    assert!(given || said.err.contains("curl: "), "{responses}");
    assert!(said.err.contains("error: no permission to open or change disk/data/corpora/"), "{}", said.err);
    let hint = "hint: choose a folder that you may read and write: --data-dir FOLDER, or MEMLOCAL_HOME\n";
    assert_eq!(said.err.matches(hint).count(), 3, "{}", said.err);
}

/// A separate mount namespace for one program, which needs no special permissions on most machines.
const UNSHARE: [&str; 3] = ["--user", "--map-root-user", "--mount"];

/// Runs a script with `memlocal` as a word of it, whose data folder is on a file system of these options, mounted on
/// `disk` for this script alone; `None` (with the reason printed) where that cannot be done.
fn on_a_disk_of_its_own(home: &Home, options: &str, script: &str) -> Option<Said> {
    let mount = ["mount", "-t", "tmpfs", "none", "/tmp"];
    if !can("unshare", &[&UNSHARE[..], &mount].concat(), "a full disk, a read-only folder") {
        return None;
    }
    fs::create_dir(home.path("disk")).unwrap();
    let models = home.data().join("models").display().to_string();
    let script = format!(
        "memlocal() {{ '{}' \"$@\"; }}; mount -t tmpfs -o {options} none disk; mkdir disk/data; \
         ln -s '{models}' disk/data/models; {script}",
        memlocal().join("' '")
    );
    let mut unshare = home.program("unshare");
    // The program itself, for the background: a function there is a process that starts it.
    unshare.args(UNSHARE).args(["sh", "-c", &script]).env("MEMLOCAL_HOME", "disk/data").env("program", memlocal()[0]);
    Some(home.said(unshare.output().unwrap()))
}
