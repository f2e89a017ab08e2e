//! Loaders of questions: every file of the evaluation data, tiny files of other formats, and invalid files.

use eval::qa::{Cases, QaSuite, Question};

use crate::{Files, evaluation_data};

fn questions(cases: &Cases) -> Vec<&Question> {
    cases.cases.iter().flat_map(|case| &case.questions).collect()
}

/// Every piece of evidence is in a text and is not empty.
fn evidence(cases: &Cases) -> usize {
    let mut pieces = 0;
    for case in &cases.cases {
        for evidence in case.questions.iter().flat_map(|question| &question.evidence) {
            assert!(!case.sources[evidence.source].text[evidence.bytes.clone()].trim().is_empty());
            pieces += 1;
        }
    }
    pieces
}

#[test]
fn every_file_of_the_evaluation_data_can_be_asked() {
    fn check(suite: QaSuite, path: &str, cases: usize, questions: usize, pieces: usize) {
        let Some(file) = evaluation_data(path) else { return };
        let loaded = suite.load(&file).unwrap();
        assert_eq!((loaded.cases.len(), loaded.questions()), (cases, questions), "{path}");
        assert_eq!(evidence(&loaded), pieces, "evidence of {path}");
        let sections = loaded.cases.iter().flat_map(|case| &case.sources);
        for source in sections {
            assert!(source.sections.iter().all(|section| source.text.get(section.span.clone()).is_some()), "{path}");
        }
    }
    check(QaSuite::LoCoMo, "locomo", 5, 978, LOCOMO_EVIDENCE);
    // The other question is unanswerable, whatever its turns are marked with.
    check(QaSuite::LongMemEval, "longmemeval/native_format_sample2.json", 2, 2, 2);
    check(QaSuite::LongMemEval, "longmemeval/oracle_sample8.json", 8, 8, 0);
    check(QaSuite::HotpotQa, "hotpotqa/distractor_official_format.json", 287, 287, 574);
    check(QaSuite::HotpotQa, "hotpotqa/queries_dev.jsonl", 389, 389, 778);
    check(QaSuite::HotpotQa, "hotpotqa/memagent_style/eval_50.jsonl", 128, 128, 256);
    check(QaSuite::HotpotQa, "hotpotqa/memagent_style/eval_400.jsonl", 128, 128, 256);
    check(QaSuite::MuSiQue, "musique/dev_public.jsonl", 99, 99, 232);
    check(QaSuite::MuSiQue, "musique/train100.jsonl", 100, 100, 237);
    check(QaSuite::TwoWiki, "2wikimultihopqa/dev_public.jsonl", 81, 81, 208);
    check(QaSuite::NarrativeQa, "narrativeqa/qa_valid_fullstory.jsonl", 6, 176, 0);
    check(QaSuite::NarrativeQa, "narrativeqa/qa_valid.jsonl", 115, 3461, 0);
    check(QaSuite::NarrativeQa, "comorag_cinderella", 1, 3, 0);
}

/// Pieces of evidence in the public half of LoCoMo.
const LOCOMO_EVIDENCE: usize = 1320;

#[test]
fn locomos_questions_are_as_published() {
    let Some(path) = evaluation_data("locomo") else { return };
    let mut cases = QaSuite::LoCoMo.load(&path).unwrap();
    let first = &cases.cases[0].questions[0];
    assert_eq!((first.category(), first.golds.as_slice()), ("2 temporal", &["7 May 2023".to_owned()][..]));
    let numbers = questions(&cases).iter().filter(|question| question.golds[0].parse::<u32>().is_ok()).count();
    assert!(numbers >= 6, "answers that are numbers: {numbers}");
    cases.only(&["1", "2", "3", "4"].map(str::to_owned));
    assert_eq!(cases.questions(), 754);
    assert!(cases.notes.iter().any(|note| note == "the 224 questions of category `5 adversarial` are left out"));
    let mut first = cases.clone();
    first.limit(50);
    assert_eq!((first.questions(), first.cases.len()), (50, 1));
    assert_eq!(first.notes.last().unwrap(), "only the first 50 of 754 questions are asked");
    let drawn = |seed| {
        let mut cases = cases.clone();
        cases.sample(50, seed);
        questions(&cases).iter().map(|question| question.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1).len(), 50);
    assert!(drawn(1) == drawn(1) && drawn(1) != drawn(2));
}

#[test]
fn forms_that_are_not_there_are_read_too() {
    fn check(suite: QaSuite, files: &[(&str, &str)], name: &str, expect: &[(&str, &str, &[&str], usize)]) {
        let files = Files::new(files);
        let cases = suite.load(&files.path(name)).unwrap_or_else(|error| panic!("{suite}: {error}"));
        let got: Vec<_> = questions(&cases)
            .into_iter()
            .map(|question| {
                (question.id.clone(), question.text.clone(), question.golds.clone(), question.options.len())
            })
            .collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|(id, text, golds, options)| {
                let golds: Vec<String> = golds.iter().map(ToString::to_string).collect();
                ((*id).to_owned(), (*text).to_owned(), golds, *options)
            })
            .collect();
        assert_eq!(got, expect, "{suite}");
    }
    check(
        QaSuite::InfiniteBench,
        &[
            (
                "longbook_qa_eng.jsonl",
                "{\"id\": 1, \"context\": \"A book.\", \"input\": \"Who?\", \"answer\": [\"Ann\", \"Anna\"], \"options\": []}\n{\"id\": 2, \"context\": \"A book.\", \"input\": \"Where?\", \"answer\": [\"Pell\"], \"options\": []}",
            ),
            (
                "longbook_choice_eng.jsonl",
                "{\"id\": 0, \"context\": \"Another.\", \"input\": \"Which?\", \"answer\": [\"y\"], \"options\": [\"x\", \"y\", \"z\", \"w\"]}",
            ),
        ],
        "",
        &[
            ("en.mc-0", "Which?", &["B"], 4),
            ("en.qa-1", "Who?", &["Ann", "Anna"], 0),
            ("en.qa-2", "Where?", &["Pell"], 0),
        ],
    );
    check(
        QaSuite::DetectiveQa,
        &[
            (
                "anno.json",
                "[{\"novel_id\": 87, \"questions\": [{\"question\": \"Who did it?\", \"options\": {\"A\": \"Ann\", \"B\": \"Bo\"}, \"answer\": \"B\"}]}]",
            ),
            ("novels/87-The Case.txt", "It was a dark night."),
        ],
        "",
        &[("0", "Who did it?", &["B"], 2)],
    );
    check(
        QaSuite::LongBenchV2,
        &[(
            "data.json",
            "[{\"_id\": \"x1\", \"domain\": \"Single-Document QA\", \"sub_domain\": \"Detective\", \"difficulty\": \"hard\", \"length\": \"short\", \"question\": \"Who?\", \"choice_A\": \"a\", \"choice_B\": \"b\", \"choice_C\": \"c\", \"choice_D\": \"d\", \"answer\": \"C\", \"context\": \"Long.\"}]",
        )],
        "",
        &[("x1", "Who?", &["C"], 4)],
    );
    check(
        QaSuite::LongReason,
        &[(
            "longreason.jsonl",
            "{\"id\": 3, \"source\": \"narrativeqa\", \"question\": \"Why?\", \"answer\": \"Because.\", \"context\": \"Long.\"}\n{\"id\": 4, \"question\": \"Which?\", \"choices\": {\"A\": \"a\", \"B\": \"b\"}, \"answer\": \"A\", \"context\": \"Long.\"}",
        )],
        "longreason.jsonl",
        &[("3", "Why?", &["Because."], 0), ("4", "Which?", &["A"], 2)],
    );
    check(
        QaSuite::NarrativeQa,
        &[
            (
                "qaps.csv",
                "document_id,set,question,answer1,answer2,question_tokenized\nd1,test,\"Who, \"\"then\"\"?\",Ann,\"Anna\nMay\",x\n",
            ),
            ("tmp/d1.content", "A story."),
        ],
        "",
        &[("d1_0", "Who, \"then\"?", &["Ann", "Anna\nMay"], 0)],
    );
    check(
        QaSuite::HotpotQa,
        &[(
            "eval_50.json",
            "[{\"index\": 5, \"input\": \"Who?\", \"answers\": [\"Ann\"], \"num_docs\": 50, \"context\": \"Document 1:\\nx\"}]",
        )],
        "",
        &[("5", "Who?", &["Ann"], 0)],
    );
    check(
        QaSuite::Ruler,
        &[(
            "vt/validation.jsonl",
            "{\"index\": 0, \"input\": \"Memorize.\\n\\nVAR A = 1\\nQuestion: Find all variables.\", \"outputs\": [\"A\", \"B\"], \"length\": 20}",
        )],
        "vt/validation.jsonl",
        &[("0", "Find all variables.", &["A", "B"], 0)],
    );
}

/// Loads an invalid file and compares the error message, in which `$` is the folder.
fn complaint(suite: QaSuite, files: &[(&str, &str)], name: &str, expect: &str) {
    let files = Files::new(files);
    let error = suite.load(&files.path(name)).expect_err(expect).to_string();
    assert_eq!(error.replace(&files.folder().display().to_string(), "$"), expect);
}

#[test]
fn wrong_conversations_and_paragraphs_are_named_with_line_and_field() {
    complaint(
        QaSuite::LoCoMo,
        &[(
            "locomo.json",
            "[{\"sample_id\": \"c\", \"conversation\": {\"session_1\": [{\"speaker\": \"A\", \"dia_id\": \"D1:1\", \"text\": \"Hi.\"}]}, \"qa\": [{\"question\": \"?\", \"category\": 1}]}]",
        )],
        "",
        "$/locomo.json: line 1: field `qa[0].answer`: there is none",
    );
    complaint(
        QaSuite::LongMemEval,
        &[(
            "longmemeval.json",
            "[{\"question_id\": \"a\", \"question_type\": \"multi-session\", \"question\": \"?\", \"answer\": 3, \"haystack_dates\": [\"d\"], \"haystack_sessions\": []}]",
        )],
        "",
        "$/longmemeval.json: line 1: field `haystack_dates`: 1 dates for 0 sessions",
    );
    let hipporag = "{\"_id\": \"1\", \"question\": \"Who?\", \"gold_titles\": [\"Ann\"]}";
    complaint(
        QaSuite::TwoWiki,
        &[("queries.jsonl", hipporag)],
        "",
        "$/queries.jsonl: line 1: field `answer`: there is none; such a file is for `bench retrieval`",
    );
    complaint(
        QaSuite::HotpotQa,
        &[
            ("corpus.jsonl", "{\"_id\": \"p1\", \"title\": \"Ann\", \"text\": \"x\"}"),
            (
                "queries_dev.jsonl",
                "{\"_id\": \"1\", \"question\": \"Who?\", \"answer\": \"Ann\", \"context_ids\": [\"p1\", \"p2\"]}",
            ),
        ],
        "",
        "$/queries_dev.jsonl: line 1: field `context_ids`: `p2` is not in the corpus",
    );
    complaint(
        QaSuite::MuSiQue,
        &[(
            "dev.jsonl",
            "{\"id\": \"2hop__1\", \"question\": \" \", \"answer\": \"x\", \"paragraphs\": [{\"title\": \"t\", \"paragraph_text\": \"x\"}]}",
        )],
        "",
        "$/dev.jsonl: line 1: field `question`: it is empty",
    );
}

#[test]
fn wrong_long_texts_are_named_with_line_and_field() {
    complaint(
        QaSuite::InfiniteBench,
        &[(
            "longbook_choice_eng.jsonl",
            "\n{\"id\": 0, \"context\": \"c\", \"input\": \"?\", \"answer\": \"q\", \"options\": [\"x\", \"y\"]}",
        )],
        "",
        "$/longbook_choice_eng.jsonl: line 2: field `answer`: `q` is none of the options",
    );
    complaint(
        QaSuite::DetectiveQa,
        &[("anno.json", "[{\"novel_id\": \"9\", \"questions\": []}]")],
        "",
        "$/anno.json: line 1: field `novel_id`: no .txt file below $/ begins with `9`",
    );
    complaint(
        QaSuite::LongBenchV2,
        &[(
            "data.json",
            "[{\"_id\": \"x\", \"question\": \"?\", \"answer\": \"E\", \"context\": \"c\", \"choice_A\": \"a\", \"choice_B\": \"b\"}]",
        )],
        "",
        "$/data.json: line 1: field `answer`: `E` is none of the options",
    );
    complaint(
        QaSuite::NarrativeQa,
        &[("qaps.csv", "document_id,set,question,answer1,answer2\nd1,test,Who?,Ann\n")],
        "",
        "$/qaps.csv: line 2: 4 values for 5 columns",
    );
    complaint(
        QaSuite::NarrativeQa,
        &[("qaps.csv", "document_id,set,question,answer1,answer2\nd1,test,\"Who?,Ann,x\n")],
        "",
        "$/qaps.csv: line 2: a quotation has no end",
    );
    complaint(
        QaSuite::NarrativeQa,
        &[
            ("qa.jsonl", "{\"_id\": \"1\", \"document_id\": \"d2\", \"question\": \"?\", \"answers\": [\"a\"]}"),
            ("summaries.jsonl", "{\"document_id\": \"d1\", \"summary\": \"s\"}"),
        ],
        "",
        "$/qa.jsonl: line 1: field `document_id`: there is no text of `d2`",
    );
    complaint(
        QaSuite::Ruler,
        &[("vt.jsonl", "{\"index\": 0, \"input\": \"Memorize.\", \"outputs\": [\"A\"]}")],
        "vt.jsonl",
        "$/vt.jsonl: line 1: field `input`: it is of one line",
    );
}
