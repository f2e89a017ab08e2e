use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;

use bundle::{Readers, Writer};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::Sections;
use super::defaults::with_bundle;
use super::file::File;
use super::given::{Given, with_effective_variables, without_overridden_variables};
use crate::failure::hint_of;
use crate::flags::{AdapterFlag, EndpointFlags, GlobalFlags, Gpu, MODELS_HEADING, ModelFlags, bundled_adapter};

/// The commands that a config file has sections for, with a few of their flags.
#[derive(Debug, Parser)]
#[command(name = "memlocal")]
struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: GlobalFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ask(Ask),
    Ingest(Models),
    Serve(Serve),
    Mcp(Models),
    Doctor(Models),
    Train(Train),
    Bundle(Bundle),
}

#[derive(Debug, clap::Args)]
struct Train {
    #[arg(long)]
    corpus: String,
    #[arg(long, default_value = "", env = "MEMLOCAL_MODEL", help_heading = MODELS_HEADING)]
    model: String,
    #[arg(long = "adapter")]
    adapters: Vec<AdapterFlag>,
    #[arg(long)]
    keep_threads: bool,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Bundle {
    #[command(subcommand)]
    command: Option<Show>,
    #[arg(long, default_value = "", env = "MEMLOCAL_MODEL", help_heading = MODELS_HEADING)]
    model: String,
    #[arg(long = "adapter", value_parser = bundled_adapter, help_heading = MODELS_HEADING)]
    adapters: Vec<AdapterFlag>,
    #[arg(long, required = true)]
    output: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Show {
    Show,
}

#[derive(Debug, clap::Args)]
struct Models {
    #[command(flatten)]
    models: ModelFlags,
}

#[derive(Debug, clap::Args)]
struct Ask {
    #[command(flatten)]
    documents: Documents,
    #[command(flatten)]
    models: ModelFlags,
    #[command(flatten)]
    endpoint: EndpointFlags,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Documents {
    #[arg(long)]
    corpus: Option<String>,
    #[arg(long)]
    docs: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Serve {
    #[arg(long, default_value_t = 8420, value_name = "N")]
    port: u16,
    #[arg(long)]
    keep_threads: bool,
    #[command(flatten)]
    models: ModelFlags,
}

fn parse_sections(text: &str, sections: Sections) -> Result<clap::Command, String> {
    let file = File { path: Path::new("c.toml"), text, given: &Given::default() };
    file.apply(Args::command(), sections).map_err(|error| error.to_string())
}

fn parse(text: &str, words: &str) -> Result<Args, String> {
    let words = ["memlocal"].into_iter().chain(words.split(' '));
    let given = Given::of(&Args::command(), words.clone());
    let file = File { path: Path::new("c.toml"), text, given: &given };
    let command = without_overridden_variables(Args::command(), &given);
    let command = file.apply(command, Sections::OfCommands).map_err(|error| error.to_string())?;
    Ok(Args::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap())
}

#[test]
fn the_command_line_overrides_the_file() {
    let file =
        "threads = 3\noffline = true\n[serve]\nport = 9\nmodel = \"b\"\n[models]\nmodel = \"a\"\njudge = \"j\"\n";
    let args = parse(file, "serve").unwrap();
    assert_eq!((args.global.threads.map(NonZeroUsize::get), args.global.offline), (Some(3), true));
    let Command::Serve(serve) = args.command else { panic!("{args:?}") };
    assert_eq!((serve.port, serve.models.model.as_str(), serve.models.judge.as_deref()), (9, "b", Some("j")));
    let args = parse(file, "serve --port 8 --threads 2 --model c").unwrap();
    assert_eq!(args.global.threads.map(NonZeroUsize::get), Some(2));
    let Command::Serve(serve) = args.command else { panic!("{args:?}") };
    assert_eq!((serve.port, serve.models.model.as_str()), (8, "c"));
    let Command::Mcp(mcp) = parse(file, "mcp").unwrap().command else { panic!("another command") };
    assert_eq!(mcp.models.model, "a");
    let gpu = |text: &str, words: &str| parse(text, words).unwrap().global.gpu();
    assert_eq!(gpu("gpu = 1", "mcp"), Gpu::Numbers(vec![1]));
    assert_eq!(gpu("gpu = \"auto\"", "mcp --cpu"), Gpu::None);
    assert_eq!(gpu("gpu = \"none\"", "mcp --gpu 0"), Gpu::Numbers(vec![0]));
}

#[test]
fn a_setting_is_overridden_by_arguments_that_conflict_with_it() {
    let ask = |text: &str, words: &str| match parse(text, words).unwrap().command {
        Command::Ask(ask) => ask,
        other => panic!("{other:?}"),
    };
    let engine = "[ask]\nengine = \"http://10.0.0.5/v1\"\n";
    let remote = ask(engine, "ask --docs a --engine-model x").endpoint;
    assert_eq!((remote.engine.as_deref(), remote.engine_model.as_deref()), (Some("http://10.0.0.5/v1"), Some("x")));
    let local = ask(engine, "ask --docs a --model b");
    assert_eq!((local.endpoint.engine, local.models.model.as_str()), (None, "b"));
    let corpus = "[ask]\ncorpus = \"work\"\n";
    let documents = ask(corpus, "ask --docs a").documents;
    assert_eq!((documents.corpus, documents.docs.as_deref()), (None, Some("a")));
    assert_eq!(ask(corpus, "ask").documents.corpus.as_deref(), Some("work"));
}

#[test]
fn a_variable_is_overridden_by_typed_arguments_that_conflict_with_it() {
    let words = ["memlocal", "ask", "--docs", "a", "--engine", "http://10.0.0.5/v1"];
    let given = Given::of(&Args::command(), words);
    let variables = |command: clap::Command| {
        let ask = command.find_subcommand("ask").unwrap();
        ask.get_arguments().filter(|argument| argument.get_env().is_some()).count()
    };
    let before = variables(Args::command());
    assert_eq!(variables(without_overridden_variables(Args::command(), &given)), before - 1);
    let local = Given::of(&Args::command(), ["memlocal", "ask", "--docs", "a"]);
    assert_eq!(variables(without_overridden_variables(Args::command(), &local)), before);
}

#[test]
fn the_variable_of_a_flag_of_every_command_is_not_read_where_the_flag_is_typed() {
    fn reads(command: &clap::Command, variable: &str) -> bool {
        command.get_arguments().any(|argument| argument.get_env().is_some_and(|name| name == variable))
            || command.get_subcommands().any(|of| reads(of, variable))
    }
    // A subcommand may have a flag of its own in place of that of every command.
    let command = || {
        let gpu = Args::command().get_arguments().find(|flag| *flag.get_id() == "gpu").cloned().unwrap();
        Args::command().mut_subcommand("mcp", |mcp| mcp.arg(gpu))
    };
    let check = |words: &str, want: [bool; 2]| {
        let words: Vec<OsString> = ["memlocal"].into_iter().chain(words.split(' ')).map(OsString::from).collect();
        let (command, _) = with_effective_variables(command(), &words);
        assert_eq!(["MEMLOCAL_GPU", "MEMLOCAL_MODEL"].map(|name| reads(&command, name)), want, "{words:?}");
    };
    check("serve", [true, true]);
    check("serve --gpu none", [false, true]);
    check("--gpu none serve", [false, true]);
    check("mcp --gpu=0", [false, true]);
    check("serve --model a", [true, true]);
}

#[test]
fn models_are_set_for_the_commands_that_have_the_flag_and_take_the_value() {
    let train = |text: &str, words: &str| match parse(text, words).unwrap().command {
        Command::Train(train) => train,
        other => panic!("{other:?}"),
    };
    let bundle = |text: &str, words: &str| match parse(text, words).unwrap().command {
        Command::Bundle(bundle) => bundle,
        other => panic!("{other:?}"),
    };
    let both = "[models]\nmodel = \"a+legal\"\njudge = \"j\"\nadapter = [\"legal=x\"]\n";
    let trained = train(both, "train --corpus c");
    assert_eq!((trained.model.as_str(), trained.adapters.len()), ("a+legal", 0), "its adapter is where it begins");
    assert_eq!(train(both, "train --corpus c --model b").model, "b");
    let own = format!("{both}[train]\nadapter = \"none\"\nmodel = \"b\"\n");
    let trained = train(&own, "train --corpus c");
    assert_eq!((trained.model.as_str(), &trained.adapters[..]), ("b", &[AdapterFlag::None][..]));
    let bundled = bundle(both, "bundle --output o");
    assert_eq!((bundled.model.as_str(), bundled.output.as_deref()), ("a+legal", Some("o")));
    assert_eq!(bundled.adapters, [AdapterFlag::At { name: "legal".into(), path: "x".into() }]);
    assert!(bundle(both, "bundle show").command.is_some(), "a default does not conflict with a subcommand");
    let corpus = "[models]\nmodel = \"a\"\nadapter = \"corpus\"\n";
    let bundled = bundle(corpus, "bundle --output o");
    assert_eq!((bundled.model.as_str(), bundled.adapters.len()), ("a", 0), "a bundle takes no adapter of a corpus");
    let Command::Ask(ask) = parse(corpus, "ask --docs a").unwrap().command else { panic!("another command") };
    assert_eq!(ask.models.adapters, [AdapterFlag::Corpus(None)]);
}

#[test]
fn the_models_of_a_bundle_are_those_of_every_command_that_has_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("office");
    let defaults = [("model", "./models/m+legal"), ("adapter", "legal=./adapters/legal"), ("embedder", "e:f32")];
    let defaults = defaults.map(|(flag, value)| (flag.to_owned(), vec![value.to_owned()])).into();
    let bundle = Writer::create(&path, "").unwrap().finish(defaults, Readers::All).unwrap();
    let parse = |words: &str| {
        let words = ["memlocal"].into_iter().chain(words.split(' '));
        let given = Given::of(&Args::command(), words.clone());
        let command = with_bundle(Args::command(), &bundle, &given);
        Args::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap().command
    };
    let model = path.join("models/m+legal").display().to_string();
    let Command::Train(train) = parse("train --corpus c") else { panic!("another command") };
    assert_eq!((train.model, train.adapters.len()), (model.clone(), 0));
    let Command::Bundle(bundled) = parse("bundle --output o") else { panic!("another command") };
    let adapter = AdapterFlag::At { name: "legal".into(), path: path.join("adapters/legal") };
    assert_eq!((bundled.model, bundled.adapters), (model.clone(), vec![adapter]));
    let Command::Mcp(mcp) = parse("mcp") else { panic!("another command") };
    assert_eq!((mcp.models.model, mcp.models.embedder.as_str()), (model, "e:f32"));
    let Command::Bundle(typed) = parse("bundle --output o --model b") else { panic!("another command") };
    assert_eq!(typed.model, "b");
}

#[test]
fn a_wrong_setting_is_reported_with_its_line() {
    let check = |text: &str, want: &str| {
        let error = parse(text, "serve").map(drop).unwrap_err();
        assert!(error.starts_with("c.toml, line ") && error.contains(want), "{text}: {error}");
    };
    check("threads = 2\nprot = 3\n", "line 2: there is no setting `prot`");
    check("\n[serve]\nprot = 3", "line 3: there is no setting `prot` of [serve]");
    check("[models]\nport = 3", "line 2: there is no setting `port` of [models]");
    check("[models]\noutput = \"x\"", "line 2: there is no setting `output` of [models]");
    check("[models]\nyarn = \"far\"", "line 2: invalid value 'far' for '--yarn <FACTOR>'");
    check("[models]\nadapter = \"far\"", "line 2: invalid value 'far' for '--adapter <");
    check("[models]\nmodels = []", "line 2: there is no setting `models` of [models]");
    check("[sreve]\nport = 3", "line 1: there is no command `sreve`");
    check("port = 3", "line 1: there is no setting `port`");
    check("cpu = true", "line 1: there is no setting `cpu`");
    check("[serve]\nport = \"many\"", "line 2: invalid value 'many' for '--port <N>'");
    check("[serve]\nport = 2001-01-01", "line 2: `port` does not take a value of this type");
    check("offline = 1", "line 1: `offline` is true or false");
    check("gpu = [0, 1]", "line 1: `gpu` takes one value");
    check("[models]\nmodel = []", "line 2: `model` takes one value");
    check("[serve]\nport =", "line 2: this is not TOML");
    check("[serve]\nport = 1\nport = 2", "line 3: this is not TOML");
}

#[test]
fn a_misspelt_or_misplaced_setting_has_a_hint() {
    let check = |text: &str, want: &str| {
        let file = File { path: Path::new("c.toml"), text, given: &Given::default() };
        let error = file.apply(Args::command(), Sections::OfCommands).map(drop).unwrap_err();
        assert_eq!(hint_of(&error).as_deref(), Some(want), "{text}");
    };
    check("threds = 2", "did you mean `threads`?");
    check("draft_tokens = 2", "did you mean `draft-tokens`?");
    check("[serve]\nprot = 3", "did you mean `port`?");
    check("[models]\nmodell = \"a\"", "did you mean `model`?");
    check("[model]\nmodel = \"a\"", "did you mean [models]?");
    check("[sreve]\nport = 3", "did you mean [serve]?");
    check("model = \"a\"", "it is a setting of the section [models]");
    check("port = 3", "it is a setting of the section [serve]");
    check("keep-threads = true", "it is a setting of the sections [serve] and [train]");
    check("corpus = \"a\"", "it is a setting of the section [ask]");
    check("[serve", super::file::SYNTAX);
    check("threads 3", super::file::SYNTAX);
    check("xyz = 3", "the names are those of the flags: memlocal COMMAND --help lists them");
    let values = "the values are those of the flags: memlocal COMMAND --help describes them";
    check("threads = 0", values);
    check("offline = 1", values);
}

#[test]
fn sections_of_another_program_are_ignored() {
    let file = "threads = 3\n[serve]\nport = \"many\"\n[other]\nx = 1\n";
    let command = parse_sections(file, Sections::Ignored).unwrap();
    let args = Args::from_arg_matches(&command.try_get_matches_from(["memlocal", "mcp"]).unwrap()).unwrap();
    assert_eq!(args.global.threads.map(NonZeroUsize::get), Some(3));
    assert!(parse_sections("port = 3", Sections::Ignored).is_err(), "what is not in a section is checked");
}
