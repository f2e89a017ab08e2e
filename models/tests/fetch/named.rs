//! Models by their names on the hub: `hf:OWNER/REPO[:FILE|QUANT][@REVISION]`.

use std::fs;
use std::path::Path;

use models::fetch::{
    FetchError, Fetched, Resolved, SourceUsed, State, Token, adapter_path, fetch, list, remove, resolve, verify,
};
use models::manifest::{Choice, Format};

use crate::fake_hub::{Answer, Hub};
use crate::toy::{COMMIT, REPO_FOLDER, World};

const Q4: (&str, &[u8]) = ("toy-Q4_K_M.gguf", b"four bits");
const Q8: (&str, &[u8]) = ("toy-Q8_0.gguf", b"eight bits");
const FOLDER: [(&str, &[u8]); 4] = [
    ("model.safetensors", b"dense"),
    ("config.json", b"{}"),
    ("generation_config.json", b"{ }"),
    ("1_Pooling/config.json", b"{  }"),
];

fn choice(typed: &str) -> Choice<'static> {
    match resolve(typed) {
        Ok(Resolved::Known(choice)) => choice,
        other => panic!("{other:?}"),
    }
}

fn get(typed: &str, world: &World) -> Result<Fetched, FetchError> {
    fetch(choice(typed), &world.options, &mut |_| {})
}

fn hub_with(files: &[(&'static str, &'static [u8])]) -> Hub {
    let answers: Vec<(&str, Answer)> = files.iter().map(|(name, content)| (*name, Answer::Content(content))).collect();
    let hub = Hub::start(&answers);
    hub.list("apache-2.0", files);
    hub
}

#[test]
fn a_quantisation_is_chosen_installed_listed_and_removed() {
    let hub = hub_with(&[Q4, Q8]);
    let mut world = hub.world();
    let fetched = get("hf:toys/toy:q8_0", &world).unwrap();
    assert_eq!(fetched.format, Format::Gguf);
    assert_eq!(fs::read(fetched.entry().unwrap()).unwrap(), Q8.1);
    let said = fetched.source.to_string();
    assert_eq!(said, format!("from the Hugging Face Hub (toys/toy at {COMMIT}; licence: apache-2.0)"));
    assert!(hub.requests()[0].path.starts_with("/api/models/toys/toy/revision/main"));
    assert!(hub.downloads_of(Q8.0).len() == 1 && hub.downloads_of(Q4.0).is_empty());

    world.options.offline = true;
    let requests = hub.requests().len();
    let again = get("hf:toys/toy:q8_0", &world).unwrap();
    assert_eq!((again.format, again.entry()), (Format::Gguf, fetched.entry()));
    let listed = || list(&world.options).into_iter().filter(|listed| listed.choice.to_string().starts_with("hf:"));
    let names: Vec<String> = listed().map(|listed| listed.choice.to_string()).collect();
    assert_eq!(names, ["hf:toys/toy:q8_0"]);
    assert!(listed().all(|listed| matches!(listed.state, State::Installed(_))));
    assert_eq!(verify(choice("hf:toys/toy:q8_0"), &world.options, &mut |_| {}).unwrap().len(), 1);
    assert!(matches!(get("hf:toys/toy", &world), Err(FetchError::Unavailable { offline: true, .. })));
    assert_eq!(hub.requests().len(), requests, "offline, nothing is requested");

    remove(choice("hf:toys/toy:q8_0"), &world.options).unwrap();
    assert_eq!(listed().count(), 0);
    assert!(!world.options.models_dir.join("hf").exists());
}

#[test]
fn a_folder_comes_with_its_settings_at_the_commit_of_the_listing() {
    let hub = hub_with(&FOLDER);
    let world = hub.world();
    let fetched = get("hf:toys/toy@main", &world).unwrap();
    assert_eq!(fetched.format, Format::Safetensors);
    let folder = fetched.entry().unwrap();
    for (name, content) in FOLDER {
        assert_eq!(fs::read(folder.join(name)).unwrap(), content, "{name}");
    }
    let of_commit = format!("/toys/toy/resolve/{COMMIT}/model.safetensors");
    assert!(hub.requests().iter().any(|request| request.path == of_commit), "{:?}", hub.requests());
}

#[test]
fn refusals_say_what_to_do() {
    let check = |status: &'static str, code: &'static str, token: Option<Token>, expected: &str, hint: &str| {
        let hub = hub_with(&[Q4]);
        hub.answer("api", Answer::Refused(status, code));
        let mut world = hub.world();
        world.options.hub_token = token;
        let error = get("hf:toys/toy", &world).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.hint().as_deref(), Some(hint));
    };
    let gated = "toys/toy is gated: its owner gives access to accounts that have accepted its terms";
    let terms = "accept the terms on its page, then set HF_TOKEN to a token of that account";
    check("401 Unauthorized", "GatedRepo", None, gated, terms);
    let terms = "accept the terms on its page with the account that the token belongs to";
    check("403 Forbidden", "GatedRepo", Token::new("hf_other"), gated, terms);
    let unknown = "the hub shows no repository toys/toy";
    check("401 Unauthorized", "RepoNotFound", None, unknown, "check the name; for a private repository set HF_TOKEN");
    let nothing = "copy its files from another machine: memlocal models pull hf:toys/toy --from PATH";
    check("404 Not Found", "RevisionNotFound", None, "toys/toy has no revision main", nothing);

    let hub = hub_with(&[Q4, Q8]);
    let error = get("hf:toys/toy:q6_k", &hub.world()).unwrap_err();
    assert!(error.to_string().contains("toys/toy has no q6_k"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("there are toy-Q4_K_M.gguf, toy-Q8_0.gguf"));
}

#[test]
fn a_name_is_found_in_the_hugging_face_cache() {
    let mut world = World::new();
    world.options.offline = true;
    world.cache(COMMIT, &[Q4, Q8]);
    world.cache_main(COMMIT);
    let fetched = get("hf:toys/toy:Q4_K_M", &world).unwrap();
    let snapshot = world.options.hub_cache.join(REPO_FOLDER).join("snapshots").join(COMMIT);
    assert_eq!(fetched.entry(), Some(snapshot.join(Q4.0).as_path()));
    assert_eq!(fetched.source, SourceUsed::HubCache { repo: "toys/toy".to_owned(), folder: snapshot });
    assert!(get("hf:toys/toy:Q4_K_M@v2", &world).is_err());
}

#[test]
fn files_from_another_machine_are_installed_under_the_name() {
    let mut world = World::new();
    let given = world.path("given");
    fs::create_dir_all(given.join("1_Pooling")).unwrap();
    for (name, content) in FOLDER {
        fs::write(given.join(name), content).unwrap();
    }
    world.options.local = Some(given);
    get("hf:toys/toy", &world).unwrap();
    world.options.local = None;
    world.options.offline = true;
    let folder = get("hf:toys/toy", &world).unwrap().entry().unwrap().to_owned();
    assert_eq!(fs::read(folder.join("1_Pooling/config.json")).unwrap(), FOLDER[3].1);
}

#[test]
fn an_adapter_is_a_path_or_a_name_on_the_hub() {
    let files: [(&str, &[u8]); 2] = [("adapter_config.json", b"{}"), ("adapter_model.safetensors", b"low rank")];
    let hub = hub_with(&files);
    let world = hub.world();
    let path = |typed: &str| adapter_path(Path::new(typed), &world.options, &mut |_| {});
    assert_eq!(path("some/folder").unwrap(), Path::new("some/folder"));
    let folder = path("hf:toys/toy").unwrap();
    assert_eq!(fs::read(folder.join("adapter_model.safetensors")).unwrap(), b"low rank");
    assert_eq!(fs::read(folder.join("adapter_config.json")).unwrap(), b"{}");
    assert!(matches!(path("hf:toys"), Err(FetchError::BadHubName { .. })));
}
