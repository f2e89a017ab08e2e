//! `memlocal corpus`: shows and removes stored documents.

use test_support::home::Home;
use test_support::story::memorised;

#[test]
fn a_corpus_is_listed_and_shown() {
    let Some(home) = memorised() else { return };
    let listed = home.get(&["corpus", "list"]);
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(listed.starts_with("corpus  documents  passages  pages to memorise  size\n"), "{listed}");
    let pages = home.get(&["corpus", "show", "story", "--pages"]);
    let (heads, abstracts): (Vec<&str>, Vec<&str>) = pages.lines().partition(|line| line.starts_with("page "));
    assert_eq!(lines[1][..4], ["story", "1", &heads.len().to_string(), "0"]);

    let shown = home.get(&["corpus", "show", "story"]);
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines,
        [vec!["document", "kind", "title", "pages"], vec!["story.txt", "text", &heads.len().to_string()]]
    );

    assert!(heads[0].starts_with("page 1 of story.txt, characters 0 to "), "{pages}");
    let by = "  abstract by smollm2-135m-instruct:q4_1: ";
    assert!(abstracts.len() == heads.len() && abstracts.iter().all(|line| line.starts_with(by)), "{pages}");
}

#[test]
fn a_removed_corpus_is_gone() {
    let Some(home) = Home::new("removed") else { return };
    home.write("a.txt", "The lamp was out.\n");
    home.get(&["ingest", "a.txt", "--corpus", "lamp", "--method", "rag"]);
    assert_eq!(home.get(&["corpus", "rm", "lamp"]), "removed lamp\n");
    home.run(&["corpus", "rm", "lamp"])
        .is_error(&["error: there is no corpus `lamp`", "hint: memlocal corpus list shows all of them"]);
    assert_eq!(home.get(&["corpus", "list"]).lines().count(), 1, "only the header is left");
    assert_eq!(std::fs::read_dir(home.data().join("corpora")).unwrap().count(), 0, "so is the disk");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let Some(home) = memorised() else { return };
    let check = |words: &[&str], lines: &[&str]| home.run(words).is_error(lines);
    let nearest = ["error: there is no corpus `stroy`; is it `story`?", "hint: memlocal corpus list shows all of them"];
    check(&["corpus", "show", "stroy"], &nearest);
    check(&["corpus", "rm", "stroy"], &nearest);
    check(&["ask", "Who?", "--corpus", "stroy"], &nearest);
    check(&["ingest", "--corpus", "stroy"], &nearest);
    let none = ["error: there is no corpus `diary`", "hint: make it with: memlocal ingest PATH --corpus NAME"];
    check(&["ask", "Who?", "--corpus", "diary"], &none);
    let name = "error: `../story` cannot name a corpus: use 1 to 64 of a-z, 0-9, `.`, `_` and `-`, beginning with a \
                letter or digit";
    check(&["corpus", "show", "../story"], &[name]);
    check(
        &["corpus", "show", "story", "--text", "b.txt"],
        &["error: b.txt is not a document of this corpus", "hint: memlocal corpus show story lists them"],
    );
}
