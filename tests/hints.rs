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
        "hint: the data folder must be a folder: --data-dir FOLDER, or MEMLOCAL_HOME",
    ]);
    let no_key = ["error: `x` has no key", "hint: memlocal keys list shows all names"];
    home.run(&["keys", "rm", "x"]).is_error(&no_key);
    let none = home.run(&["keys", "list"]);
    assert!(none.code == 0 && none.out.is_empty() && none.err.contains("memlocal keys add NAME"), "{none:?}");
    home.get(&["keys", "add", "ann"]);
    home.run(&["keys", "rm", "x"]).is_error(&no_key);
    let twice = ["error: `ann` has a key already", "hint: for a new one, take it away first: memlocal keys rm ann"];
    home.run(&["keys", "add", "ann"]).is_error(&twice);
    assert_eq!(home.get(&["keys", "list"]), "ann\n");
    assert_eq!(home.get(&["keys", "rm", "ann"]), "removed the key of ann\n");
    let no_folder = ["error: there is no folder nowhere", "hint: make it, or choose another place"];
    home.run(&["corpus", "backup", "nosuch", "nowhere/a.sqlite"]).is_error(&no_folder);
    home.run(&["bundle", "-o", "nowhere/office"]).is_error(&no_folder);
    let before = "hint: write the question before --docs, which takes all words after it";
    home.run(&["ask", "--docs", ".", "Who is Della?"])
        .is_error(&["error: there is no question, and no file `Who is Della?`", before]);
    home.run(&["ask", "--docs", "."])
        .is_error(&["error: the question is empty", "hint: put the question in quotes after `ask`"]);
    for (words, suggestion) in [(["aks", "What?"], "`ask`"), (["sreve", ""], "`serve`"), (["corpus", "lsit"], "`list`")]
    {
        let said = home.run(&words);
        let name = suggestion.trim_matches('`');
        assert!(said.code == 2 && said.err.contains(&format!("'{name}'")), "{words:?}: {said:?}");
        assert!(!said.err.contains("'keys'"), "{said:?}");
    }
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
