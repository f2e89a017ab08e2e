//! Hints of the program after a misspelling; it also continues when no process reads its output.

use std::process::Stdio;

use test_support::home::{Home, memlocal};

#[test]
fn mistakes_on_the_command_line_have_hints() {
    let home = Home::bare("hints");
    home.run(&["corpus", "rm", "nosuch"])
        .is_error(&["error: there is no corpus `nosuch`", "hint: memlocal corpus list shows all of them"]);
    home.run(&["corpus", "show", "nosuch"])
        .is_error(&["error: there is no corpus `nosuch`", "hint: memlocal corpus list shows all of them"]);
    home.write("file", "");
    home.run(&["corpus", "list", "--data-dir", "file"]).is_error(&[
        "error: cannot read or write file/corpora",
        "  because: Not a directory (os error 20)",
        "hint: choose a folder that you may read and write: --data-dir FOLDER, or MEMLOCAL_HOME",
    ]);
    home.run(&["corpus", "list", "--vectors", "work"]).is_error(&[
        "error: this is no address of a database: invalid connection string",
        "hint: --vectors or MEMLOCAL_VECTORS takes postgres://HOST/DATABASE, with a user if need be",
    ]);
    let no_key = ["error: `x` has no key", "hint: memlocal keys list shows all names"];
    home.run(&["keys", "rm", "x"]).is_error(&no_key);
    home.run(&["keys", "add", "ann", "--keys", "file/keys"]).is_error(&[
        "error: cannot use file/keys",
        "  because: the key file cannot be read or written: Not a directory (os error 20)",
        "hint: choose a file that you may read and write: --keys FILE, or MEMLOCAL_KEYS",
    ]);
    home.run(&["man", "file"]).is_error(&[
        "error: cannot write to file: File exists (os error 17)",
        "hint: choose a folder that you may write to",
    ]);
    let none = home.run(&["keys", "list"]);
    assert!(none.code == 0 && none.out.is_empty() && none.err.contains("memlocal keys add NAME"), "{none:?}");
    home.get(&["keys", "add", "ann"]);
    home.run(&["keys", "rm", "x"]).is_error(&no_key);
    let twice = ["error: `ann` has a key already", "hint: for a new one, take it away first: memlocal keys rm ann"];
    home.run(&["keys", "add", "ann"]).is_error(&twice);
    home.run(&["keys", "add", "Ann B"]).is_error(&[
        "error: `Ann B` is not a valid key name: use 1 to 64 of a-z, 0-9, `.`, `_` and `-`, beginning with a letter or \
         digit",
        "hint: `ann-b` is a valid name",
    ]);
    home.run(&["ingest", ".", "--corpus", "c", "--include", "[a"]).is_error(&[
        "error: `[a` is no pattern: unclosed character class; missing ']'",
        "hint: patterns are those of .gitignore, such as '*.md', 'notes/**' or '[a-c]*.txt'",
    ]);
    home.run(&["bundle", "show", "nowhere"]).is_error(&[
        "error: cannot use nowhere",
        "  because: No such file or directory (os error 2)",
        "hint: give the file that memlocal bundle made",
    ]);
    assert_eq!(home.get(&["keys", "list"]), "ann\n");
    assert_eq!(home.get(&["keys", "rm", "ann"]), "removed the key of ann\n");
    let no_folder = ["error: there is no folder nowhere", "hint: make it, or choose another place"];
    home.run(&["corpus", "backup", "nosuch", "nowhere/a.sqlite"]).is_error(&no_folder);
    home.run(&["bundle", "-o", "nowhere/office"]).is_error(&no_folder);
    home.run(&["ask", "Who?", "--docs", "file", "--trace", "nowhere/trace"]).is_error(&no_folder);
    home.run(&["ask", "Who?", "--docs", "file", "--trace", "."])
        .is_error(&["error: . is a folder", "hint: name a file in it"]);
    home.run(&["ingest", "file", "--corpus", "c", "--trace", "nowhere/trace"]).is_error(&no_folder);
    let before = "hint: write the question before --docs, which takes all words after it";
    home.run(&["ask", "--docs", ".", "Who is Della?"])
        .is_error(&["error: there is no question, and no file `Who is Della?`", before]);
    home.run(&["ask", "--docs", "."])
        .is_error(&["error: the question is empty", "hint: put the question in quotes after `ask`"]);
    let wrong: [(&[&str], &str); 8] = [
        (&["aks", "What?"], "did you mean `ask`?"),
        (&["sreve"], "did you mean `serve`?"),
        (&["corpus", "lsit"], "did you mean `list`?"),
        (&["frobnicate"], "memlocal --help shows its commands"),
        (&["ask", "What?", "--docs", ".", "--metod", "rag"], "did you mean `--method`?"),
        (&["ask", "What?"], "memlocal ask --help shows its arguments"),
        (&["corpus", "show", "a", "b"], "memlocal corpus show --help shows its arguments"),
        (&["ask", "What?", "--docs", ".", "--yarn", "0.5"], "memlocal ask --help shows its arguments"),
    ];
    for (words, hint) in wrong {
        let said = home.run(words);
        assert!(said.code == 2 && said.err.ends_with(&format!("\nhint: {hint}\n")), "{words:?}: {said:?}");
        assert_eq!(said.err.matches("--help").count(), hint.matches("--help").count(), "{said:?}");
    }
    let unquoted = home.run(&["ask", "Who", "is", "Della?", "--corpus", "c"]);
    assert!(unquoted.code == 2 && unquoted.err.contains("unexpected argument 'is'"), "{unquoted:?}");
    assert!(unquoted.err.ends_with("\nhint: put the question in quotes after `ask`\n"), "{unquoted:?}");
    home.run(&["corpus", "restore", "name", "file"])
        .is_error(&["error: name is not a file", "hint: the file comes before the name of the corpus"]);
    home.run(&["corpus", "restore", "nowhere", "name"])
        .is_error(&["error: nowhere is not a file", "hint: give the file that `memlocal corpus backup` wrote"]);
    let mut no_threads = home.program(memlocal()[0]);
    let said = home.said(no_threads.args(["corpus", "list", "--threads", "0"]).output().unwrap());
    assert!(said.code == 2 && said.err.contains("it must be 1 or more") && !said.err.contains("zero type"), "{said:?}");
    let help = home.get(&["keys", "list", "--help"]);
    assert!(help.contains("--data-dir"), "{help}");
    for flag in ["--gpu", "--cpu", "--backend", "--threads", "--kv-tokens", "--kv <FORMAT>", "--draft-tokens"] {
        assert!(!help.contains(flag), "{flag} in {help}");
        assert!(home.get(&["ask", "--help"]).contains(flag), "{flag}");
    }
}

#[test]
fn a_key_is_put_where_the_server_looks_for_it() {
    let home = Home::bare("hints-keys");
    let run = |words: &[&str]| home.said(home.command(words).env("MEMLOCAL_KEYS", "shared").output().unwrap());
    let hint = "hint: make it with its first key: memlocal keys add NAME --keys shared";
    let none = ["error: there is no key file shared", hint];
    run(&["serve", "--port", "0"]).is_error(&none);
    run(&["keys", "list"]).is_error(&none);
    assert_eq!(run(&["keys", "add", "ann"]).code, 0);
    assert_eq!((run(&["keys", "list"]).out.as_str(), home.data().join("keys").exists()), ("ann\n", false));
    let removed = run(&["keys", "rm", "ann"]);
    let none_left = "there are no keys, but a server requires one while shared is there:";
    assert!(removed.out == "removed the key of ann\n" && removed.err.starts_with(none_left), "{removed:?}");
    assert!(run(&["keys", "list"]).err.starts_with(none_left));
}

#[test]
fn a_key_file_that_cannot_be_used_has_a_hint() {
    let home = Home::bare("hints-key-file");
    let link = home.data().join("keys");
    std::os::unix::fs::symlink("../drive/keys", &link).unwrap();
    let missing = [
        "error: cannot use ~/data/keys",
        "  because: it is a link to ../drive/keys, which is not there",
        "hint: mount the drive that has it, or remove the link",
    ];
    for words in [&["serve", "--port", "0"][..], &["keys", "list"], &["keys", "rm", "ann"], &["keys", "add", "ann"]] {
        home.run(words).is_error(&missing);
    }
    std::fs::remove_file(&link).unwrap();
    std::fs::write(&link, "ann\n").unwrap();
    home.run(&["keys", "list"]).is_error(&[
        "error: cannot use ~/data/keys",
        "  because: line 1 of the key file is not `NAME DIGEST`",
        "hint: correct or remove this line; `memlocal keys add NAME` makes a new key",
    ]);
}

#[test]
fn a_shared_prompt_that_cannot_be_used_has_a_hint() {
    let home = Home::bare("hints-shared-prompt");
    home.write("empty", "\n");
    home.run(&["serve", "--port", "0", "--shared-prompt", "nowhere"]).is_error(&[
        "error: cannot read nowhere: No such file or directory (os error 2)",
        "hint: give --shared-prompt a text file in UTF-8",
    ]);
    home.run(&["serve", "--port", "0", "--shared-prompt", "empty"])
        .is_error(&["error: empty is empty", "hint: write a system message into it, or omit --shared-prompt"]);
    home.run(&["serve", "--port", "0", "--engine", "http://127.0.0.1:1/v1", "--shared-prompt", "empty"]).is_error(&[
        "error: the KV cache of a remote endpoint cannot keep a prompt",
        "hint: omit --shared-prompt; a remote endpoint has one cache for all tenants",
    ]);
}

#[test]
fn an_operator_without_a_key_is_named() {
    let home = Home::bare("hints-operator");
    // The server ends before it loads a model.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let serve = |operator: &str| home.run(&["serve", "--operator", operator, "--port", &port]).err;
    assert!(serve("bob").starts_with("error: cannot listen on "), "without keys every user is the operator");
    home.get(&["keys", "add", "ann"]);
    assert!(serve("ann").starts_with("error: cannot listen on "), "{}", serve("ann"));
    let note =
        "note: bob has no key yet, so this server has no operator: memlocal keys add bob\nerror: cannot listen on ";
    assert!(serve("bob").starts_with(note), "{}", serve("bob"));
    home.run(&["serve", "--operator", "A B"]).is_error(&[
        "error: `A B` is not a valid key name: use 1 to 64 of a-z, 0-9, `.`, `_` and `-`, beginning with a letter or \
         digit",
        "hint: `a-b` is a valid name",
    ]);
}

#[test]
fn a_closed_standard_error_does_not_end_the_program() {
    let Some(home) = Home::new("closed") else { return };
    home.write("a.txt", "The lamp was out.\n");
    home.write("b.exe", "no document");
    let closed = "\"$0\" \"$@\" 2>&1 >out | head -c 0";
    let mut shell = home.program("sh");
    shell.args(["-c", closed]).args(memlocal());
    let words = ["ingest", ".", "--corpus", "c", "--method", "rag"];
    assert!(shell.args(words).stdout(Stdio::null()).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(home.path("out")).unwrap(), "c: 1 document, 1 page\n");
}

#[test]
fn an_mcp_client_that_disconnects_at_once_is_no_failure() {
    let Some(home) = Home::new("mcp-gone") else { return };
    let said = home.said(home.command(&["mcp"]).stdin(Stdio::null()).output().unwrap());
    assert_eq!((said.code, said.err.contains("error:")), (0, false), "{said:?}");
}
