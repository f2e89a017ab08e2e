//! `--vectors`: corpora that machines share through a real PostgreSQL with pgvector.

use serde_json::Value;

use test_support::home::Home;
use test_support::postgres::Server;

fn quotes(answer: &Value) -> Vec<&Value> {
    answer["citations"].as_array().unwrap().iter().map(|citation| &citation["quote"]).collect()
}

#[test]
fn a_machine_answers_from_documents_that_another_has_read() {
    let Some(server) = Server::start("answers") else { return };
    let (Some(home), Some(other)) = (Home::new("postgres-answers"), Home::new("postgres-other")) else { return };
    home.write("docs/lamp.txt", "The lamp of the lighthouse was out for two hours in May 1921.\n");
    home.write("docs/bread.txt", "The baker of Pell sold bread in the morning and cakes at noon.\n");
    let url = server.url();
    home.get(&["ingest", "docs", "--corpus", "c", "--method", "rag", "--vectors", &url]);
    let ask = ["ask", "How long was the lamp out?", "--corpus", "c", "--method", "rag", "--json", "--temperature", "0"];
    let shared = [&ask[..], &["--vectors", &url]].concat();
    let answer = |home: &Home, words: &[&str]| -> Value { serde_json::from_str(&home.get(words)).unwrap() };
    let (here, there, alone) = (answer(&home, &shared), answer(&other, &shared), answer(&home, &ask));
    assert_eq!((&alone["answer"], &alone["citations"]), (&here["answer"], &here["citations"]));
    // The answer has the paths of the machine on which the corpus was made.
    assert_eq!((&there["answer"], quotes(&there)), (&here["answer"], quotes(&here)));
    assert_eq!(server.vectors(), 2);
    let listed = |home: &Home| -> Vec<String> {
        let list = home.get(&["corpus", "list", "--vectors", &url]);
        list.lines().last().unwrap().split_whitespace().take(4).map(str::to_owned).collect()
    };
    assert_eq!((listed(&other), listed(&other)[0].as_str()), (listed(&home), "c"));

    // Changes that two machines make independently are not merged.
    home.get(&["corpus", "rm", "c", "--yes", "--vectors", &url]);
    assert_eq!(server.vectors(), 0);
    let gone = other.run(&shared);
    assert!(gone.code == 1 && gone.err.starts_with("error: there is no corpus `c`"), "{gone:?}");
    home.get(&["ingest", "docs", "--corpus", "c", "--method", "rag", "--vectors", &url]);
    other.write("docs/other.txt", "The ferry of Pell goes at noon.\n");
    other.get(&["ingest", "docs", "--corpus", "c", "--method", "rag"]);
    other.run(&shared).is_error(&[
        "error: the corpus `c` here has another past than the corpus `c` in PostgreSQL at 127.0.0.1",
        "hint: they are never merged. To have the one there, remove the one here: memlocal corpus rm c, without --vectors. \
         To have the one here, leave --vectors out, or rename its folder if both are to be kept",
    ]);
    drop(server);
    let said = home.run(&shared);
    assert!(said.code == 1 && said.err.starts_with("error: PostgreSQL at 127.0.0.1 failed: "), "{said:?}");
    assert_eq!(answer(&home, &ask)["answer"], here["answer"], "the copy is there");
    let away = home.run(&[&ask[..], &["--vectors", "postgres://ann:secret@10.1.2.3/memory"]].concat());
    away.is_error(&[
        "error: offline, and 10.1.2.3 is not on this machine",
        "hint: offline only a database on this machine may be asked: by a socket in its file system, or by loopback",
    ]);
}
