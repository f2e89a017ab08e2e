//! `memlocal serve` with third-party clients, in addition to those in serve.rs: npm's openai, anthropic, LangChain,
//! LlamaIndex, curl, and schemathesis, which checks every response against the server's OpenAPI description.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use test_support::home::{Home, can, repository};
use test_support::serving::Serving;

/// LangChain and LlamaIndex share a separate environment, whose packages must satisfy both.
const FRAMEWORKS: [&str; 4] = [
    "langchain-openai==1.7.3",
    "langchain-core==1.7.2",
    "llama-index-llms-openai-like==0.8.1",
    "llama-index-embeddings-openai-like==0.4.0",
];
/// Those whose packages need newer versions of the same.
const ADAPTERS: [&str; 4] = [
    "openai-agents==0.24.0",
    "langchain-ollama==1.1.0",
    "langchain-anthropic==1.7.10",
    "llama-index-llms-ollama==0.11.0",
];
const ANTHROPIC: [&str; 1] = ["anthropic==2.13.0"];
const UV: &str = "uv==0.13.9";
const SCHEMATHESIS: [&str; 1] = ["schemathesis==4.32.5"];
const NODE: &str = "openai@6.30.1";

#[test]
fn the_openai_client_for_node_works() {
    let Some(modules) = node_modules() else { return };
    let Some(home) = Home::new("clients-node") else { return };
    let serving = Serving::start(&home, &[]);
    let mut node = home.program("node");
    node.env("NODE_PATH", modules).arg(repository("tests/clients/openai_client.cjs"));
    succeeds(&home, node.arg(format!("http://{}/v1", serving.address)));
}

#[test]
fn langchain_and_llama_index_work() {
    static INSTALLED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let imports = "import langchain_openai, llama_index.llms.openai_like, llama_index.embeddings.openai_like";
    let installed = || python_with("test-frameworks", &FRAMEWORKS, imports, "LangChain and LlamaIndex");
    let Some(python) = INSTALLED.get_or_init(installed) else { return };
    let Some(home) = Home::new("clients-frameworks") else { return };
    let serving = Serving::start(&home, &[]);
    for script in ["langchain_client.py", "llama_index_client.py"] {
        let mut client = home.program(&python.display().to_string());
        client.arg(repository("tests/clients").join(script)).arg(format!("http://{}/v1", serving.address));
        succeeds(&home, &mut client);
    }
}

#[test]
fn openais_agents_and_adapters_for_ollama_and_anthropic_work() {
    let imports = "import agents, langchain_ollama, langchain_anthropic, llama_index.llms.ollama";
    let what = "OpenAI's agents and the adapters of frameworks";
    let Some(python) = python_with("test-adapters", &ADAPTERS, imports, what) else { return };
    let Some(home) = Home::new("clients-adapters") else { return };
    let serving = Serving::start(&home, &[]);
    for script in ["agents_client.py", "adapters_client.py"] {
        let mut client = home.program(&python.display().to_string());
        client.arg(repository("tests/clients").join(script)).arg(format!("http://{}", serving.address));
        succeeds(&home, &mut client);
    }
}

#[test]
fn the_anthropic_client_works() {
    let Some(python) = python_with("test-anthropic", &ANTHROPIC, "import anthropic", "the Anthropic client") else {
        return;
    };
    let Some(home) = Home::new("clients-anthropic") else { return };
    let serving = Serving::start(&home, &[]);
    let mut client = home.program(&python.display().to_string());
    client.arg(repository("tests/clients/anthropic_client.py")).arg(format!("http://{}", serving.address));
    succeeds(&home, &mut client);
}

#[test]
fn curl_works() {
    if !can("curl", &["--version"], "curl") {
        return;
    }
    let Some(home) = Home::new("clients-curl") else { return };
    let serving = Serving::start(&home, &[]);
    let mut script = home.program("sh");
    script.arg(repository("tests/clients/curl_client.sh")).arg(format!("http://{}", serving.address));
    succeeds(&home, &mut script);
}

/// No response is a server error, and every response conforms to /openapi.json.
#[test]
fn every_answer_is_as_documented() {
    let python = python_with("test-schemathesis", &SCHEMATHESIS, "import schemathesis", "schemathesis");
    let Some(python) = python else { return };
    let Some(home) = Home::new("clients-schemathesis") else { return };
    let serving = Serving::start(&home, &["--max-requests", "8"]);
    let mut run = home.program(&python.with_file_name("schemathesis").display().to_string());
    run.arg("run").arg(format!("http://{}/openapi.json", serving.address));
    run.args(["--max-examples", "5", "--seed", "1", "--phases", "examples,coverage,fuzzing", "--workers", "1"]);
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    run.args(["--checks", checks, "--no-color", "--request-timeout", "120"]);
    succeeds(&home, &mut run);
}

/// Runs a client, which must succeed.
fn succeeds(home: &Home, client: &mut Command) {
    let said = home.said(client.output().unwrap());
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
}

/// A Python with these packages in a separate environment below `target`; `None` (with the reason printed) if it is
/// unavailable.
pub fn python_with(place: &str, packages: &[&str], imports: &str, what: &str) -> Option<PathBuf> {
    let folder = repository("target").join(place);
    let python = folder.join("bin/python");
    let (place, path) = (folder.display().to_string(), python.display().to_string());
    let made = works(&path, &["-c", imports])
        || by_uv(&place, &path, packages)
        || (can("python3", &["-m", "venv", &place], what)
            && can(&path, &[&["-m", "pip", "install", "-q"], packages].concat(), what));
    made.then_some(python)
}

/// Installs packages into a new environment with uv, in seconds where pip takes most of a minute. False if that does not work
/// here: uv reads no settings of pip, such as those of a mirror.
fn by_uv(place: &str, python: &str, packages: &[&str]) -> bool {
    static INSTALLED: OnceLock<Option<String>> = OnceLock::new();
    let install = || {
        let folder = repository("target/test-uv").display().to_string();
        let [python, uv] = ["python", "uv"].map(|name| format!("{folder}/bin/{name}"));
        let made = works(&uv, &["--version"])
            || (works("python3", &["-m", "venv", &folder]) && works(&python, &["-m", "pip", "install", "-q", UV]));
        made.then_some(uv)
    };
    INSTALLED.get_or_init(install).as_ref().is_some_and(|uv| {
        let words = [&["pip", "install", "-q", "--python", python], packages].concat();
        // Without a way to the registry it must not wait for long.
        let mut installing = Command::new(uv);
        installing.args(words).envs([("UV_HTTP_TIMEOUT", "15"), ("UV_HTTP_RETRIES", "1")]);
        works("python3", &["-m", "venv", "--without-pip", place])
            && installing.output().is_ok_and(|output| output.status.success())
    })
}

/// Whether a program runs here and succeeds.
fn works(program: &str, words: &[&str]) -> bool {
    Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
}

/// The folder of Node.js modules with the client; `None` (with the reason printed) if it is unavailable.
fn node_modules() -> Option<PathBuf> {
    let (folder, what) = (repository("target/test-clients-node"), "the OpenAI client for Node.js");
    if !can("node", &["--version"], what) {
        return None;
    }
    fs::create_dir_all(&folder).unwrap();
    let modules = folder.join("node_modules");
    let there = modules.join("openai/package.json").exists();
    let prefix = folder.display().to_string();
    let install = ["install", "--silent", "--no-audit", "--no-fund", "--prefix", &prefix, NODE];
    (there || can("npm", &install, what)).then_some(modules)
}
