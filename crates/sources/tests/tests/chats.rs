//! Exports of chats.

use std::fs;

use sources::{Kind, ReadOptions, SlackUsers, Source, read};

use crate::{complaint, read_bytes, read_one};

pub const CHATGPT: &str = r#"[{"title": "Lamps", "create_time": 1714557753.5, "current_node": "d", "conversation_id": "c1", "mapping": {
 "a": {"id": "a", "message": null, "parent": null, "children": ["b"]},
 "s": {"message": {"author": {"role": "system"}, "content": {"content_type": "text", "parts": ["hidden"]}}, "parent": "a"},
 "b": {"message": {"author": {"role": "user"}, "create_time": 1714557753.5, "content": {"content_type": "multimodal_text",
   "parts": [{"asset_pointer": "file"}, "Is the lamp out?"]}}, "parent": "s"},
 "x": {"message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["An answer that was replaced."]}}, "parent": "b"},
 "t": {"message": {"author": {"role": "assistant"}, "content": {"content_type": "code", "text": "search()"}}, "parent": "b"},
 "d": {"message": {"author": {"role": "assistant"}, "create_time": 1714557900, "metadata": {},
   "content": {"content_type": "text", "parts": ["Yes, é."]}}, "parent": "t"}}},
{"title": "Empty", "current_node": "a", "conversation_id": "c2", "mapping": {"a": {"message": null, "parent": null}}}]"#;

/// The paths, titles and texts of sources; paths without their folder.
fn shown(sources: &[Source]) -> Vec<(String, Option<&str>, &str)> {
    let name = |path: &str| path.rsplit(['/', '\\']).next().unwrap().to_owned();
    sources.iter().map(|source| (name(&source.path), source.title.as_deref(), source.text.as_str())).collect()
}

#[test]
fn chatgpts_conversations_are_the_branches_that_were_shown() {
    let sources = read_bytes("conversations.json", CHATGPT.as_bytes()).unwrap();
    let text = "=== SESSION 0 - Dialogue Time(available to answer questions): 2024-05-01 10:02 UTC ===\n\n\
        user (1): Is the lamp out?\nassistant (2, 2024-05-01 10:05 UTC): Yes, é.";
    assert_eq!(shown(&sources), [("conversations.json#c1".to_owned(), Some("Lamps"), text)]);
    let turns = &sources[0].sections[0].turns;
    assert_eq!((turns[1].speaker.as_str(), turns[1].time.as_deref()), ("assistant", Some("2024-05-01 10:05 UTC")));
}

#[test]
fn files_without_text_in_an_export_are_named() {
    let attached = CHATGPT.replace("\"metadata\": {}", r#""metadata": {"attachments": [{"name": "cost.pdf"}]}"#);
    let sources = read_bytes("conversations.json", attached.as_bytes()).unwrap();
    assert!(sources[0].text.ends_with(": Yes, é.\n[attachment: cost.pdf]"), "{}", sources[0].text);
    let claude = r#"[{"chat_messages": [{"sender": "human", "text": "", "files": [{"file_name": "lamp.jpg"}]}]}]"#;
    assert_eq!(
        read_one("conversations.json", claude.as_bytes()).text,
        "=== SESSION 0 ===\n\nhuman (1): [file: lamp.jpg]"
    );
}

#[test]
fn marks_of_chatgpts_citations_are_left_out() {
    let said = |words: &str| {
        let sources = read_bytes("conversations.json", CHATGPT.replace("Yes, é.", words).as_bytes()).unwrap();
        sources[0].text.rsplit(": ").next().unwrap().to_owned()
    };
    assert_eq!(said("Yes\\ue200cite\\ue202turn0search0\\ue202turn0search1\\ue201, é."), "Yes, é.");
    let other_marks = said("\\ue200filecite\\ue202turn0file0\\ue201Yes \\ue200x\\ue201 \\ue200cite");
    assert_eq!(other_marks, "Yes \u{e200}x\u{e201} \u{e200}cite");
}

#[test]
fn canvases_of_chatgpt_are_part_of_their_messages() {
    let call = "{\"content_type\": \"code\", \"text\": \"search()\"}";
    let said = |tool: &str, content: &str| {
        let content = format!("{content}, \"recipient\": \"{tool}\"");
        let sources = read_bytes("conversations.json", CHATGPT.replace(call, &content).as_bytes()).unwrap();
        let text = sources[0].text.split_once("Is the lamp out?\n").unwrap().1;
        text.rsplit_once("\nassistant (").map(|(canvas, _)| canvas.to_owned())
    };
    let code = |text: &str| format!(r#"{{"content_type": "code", "text": "{text}"}}"#);
    let made = code(r#"{\"name\": \"Plan\", \"type\": \"document\", \"content\": \"Lamps\\nOut.\"}"#);
    let expect = Some("assistant (2): [canvas: Plan]\nLamps\nOut.".to_owned());
    assert_eq!(said("canmore.create_textdoc", &made), expect);
    let parts = made.replace("code", "text").replace("\"text\": ", "\"parts\": [").replace("\"}\"}", "\"}\"]}");
    assert_eq!(said("canmore.create_textdoc", &parts), expect);
    let change = r#"{\"updates\": [{\"pattern\": \".*\", \"multiple\": true, \"replacement\": \"Lit.\"}, {}]}"#;
    let expect = Some("assistant (2): [canvas]\nLit.".to_owned());
    assert_eq!(said("canmore.update_textdoc", &code(change)), expect);
    // Other tools, and calls that are not complete.
    assert_eq!(said("python", &made), None);
    assert_eq!(said("canmore.create_textdoc", &code(r#"{\"name\": "#)), None);
    assert_eq!(said("canmore.update_textdoc", &code(r#"{\"updates\": []}"#)), None);
}

#[test]
fn claudes_conversations_have_messages_and_attachments() {
    let json = r#"[{"uuid": "u1", "name": "Lamps", "created_at": "2024-05-01T10:02:33Z", "chat_messages": [
        {"sender": "human", "text": "", "content": [{"type": "text", "text": "Read this."}], "created_at": "2024-05-01T10:02:33Z",
         "attachments": [{"file_name": "a.txt", "extracted_content": "The lamp was out."}], "files": []},
        {"sender": "assistant", "text": "It was out.", "created_at": "2024-05-01T10:03:00Z"}]},
        {"uuid": "u2", "name": "", "chat_messages": []}]"#;
    let sources = read_bytes("conversations.json", json.as_bytes()).unwrap();
    let text = "=== SESSION 0 - Dialogue Time(available to answer questions): 2024-05-01T10:02:33Z ===\n\n\
        human (1): Read this.\n[attachment: a.txt]\nThe lamp was out.\nassistant (2, 2024-05-01T10:03:00Z): It was out.";
    assert_eq!(shown(&sources), [("conversations.json#u1".to_owned(), Some("Lamps"), text)]);
}

#[test]
fn artifacts_of_claude_are_part_of_their_messages() {
    let json = r##"[{"uuid": "u1", "name": "Lamps", "chat_messages": [{"sender": "assistant", "text": "Here it is.", "content": [
        {"type": "text", "text": "Here it is."},
        {"type": "tool_use", "name": "artifacts", "input": {"id": "a1", "type": "text/markdown", "title": "Plan", "command": "create", "content": "# Lamps\nOut."}},
        {"type": "tool_result", "name": "artifacts", "content": [{"type": "text", "text": "OK"}]},
        {"type": "tool_use", "name": "artifacts", "input": {"id": "a1", "command": "update", "old_str": "Out.", "new_str": "Lit."}},
        {"type": "tool_use", "name": "create_file", "input": {"path": "a.md", "file_text": "Oil."}},
        {"type": "tool_use", "name": "web_search", "input": {"query": "lamps"}},
        {"type": "text", "text": "Done."}]}]}]"##;
    let text = "=== SESSION 0 ===\n\nassistant (1): Here it is.\n[artifact: Plan]\n# Lamps\nOut.\n[artifact: a1]\nLit.\n\
        [artifact: a.md]\nOil.\nDone.";
    assert_eq!(read_one("conversations.json", json.as_bytes()).text, text);
}

#[test]
fn messages_with_roles_are_conversations() {
    let one = r#"{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "Hi"},
        {"type": "image_url"}]}, {"role": "assistant", "content": null, "tool_calls": []}]}"#;
    let text = "=== SESSION 0 ===\n\nsystem (1): Be brief.\nAnn (2): Hi";
    assert_eq!(shown(&[read_one("chat.json", one.as_bytes())]), [("chat.json".to_owned(), None, text)]);
    let one_line = one.replace('\n', "");
    let several = read_bytes("chats.jsonl", format!("{one_line}\n{one_line}\n").as_bytes()).unwrap();
    let paths: Vec<String> = shown(&several).into_iter().map(|(path, _, _)| path).collect();
    assert_eq!(paths, ["chats.jsonl#1", "chats.jsonl#2"]);
    let list = r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]"#;
    assert_eq!(read_one("chat.json", list.as_bytes()).text, "=== SESSION 0 ===\n\nuser (1): Hi\nassistant (2): Ho");
}

pub const TELEGRAM: &str = r#"{"name": "Ann", "type": "personal_chat", "id": 7, "messages": [
 {"id": 1, "type": "service", "action": "pin", "text": ""},
 {"id": 2, "type": "message", "date": "2024-05-01T10:02:33", "from": "Ann", "from_id": "user1", "text": ["See ", {"type": "link", "text": "a.b"}]},
 {"id": 3, "type": "message", "date": "2024-05-02T08:00:00", "from": null, "from_id": "user2", "file": "x", "file_name": "cost.pdf",
  "media_type": "file", "forwarded_from": "Bo", "text": ""}]}"#;

#[test]
fn telegrams_chats_have_a_session_for_each_day() {
    let source = read_one("result.json", TELEGRAM.as_bytes());
    let text = "=== SESSION 0 - Dialogue Time(available to answer questions): 2024-05-01 ===\n\n\
        Ann (2, 2024-05-01 10:02:33): See a.b\n\n\
        === SESSION 1 - Dialogue Time(available to answer questions): 2024-05-02 ===\n\n\
        user2 (3, 2024-05-02 08:00:00): [forwarded from Bo] [file: cost.pdf]";
    assert_eq!(shown(&[source]), [("result.json".to_owned(), Some("Ann"), text)]);
    let all = format!(r#"{{"about": "x", "chats": {{"list": [{TELEGRAM}]}}}}"#);
    assert_eq!(shown(&[read_one("result.json", all.as_bytes())]), [("result.json#7".to_owned(), Some("Ann"), text)]);
    let left = format!(r#"{{"chats": {{"list": []}}, "left_chats": {{"about": "x", "list": [{TELEGRAM}]}}}}"#);
    assert_eq!(shown(&[read_one("result.json", left.as_bytes())]), [("result.json#7".to_owned(), Some("Ann"), text)]);
}

#[test]
fn telegrams_polls_contacts_and_places_are_named() {
    let json = r#"{"name": "Ann", "messages": [{"id": 1, "type": "message", "date": "2024-05-01T10:02:33", "from": "Ann", "text": "",
        "poll": {"question": "Is it out?", "answers": [{"text": "Yes", "voters": 1}, {"text": "No", "voters": 0}]}},
        {"id": 2, "type": "message", "date": "2024-05-01T10:03:00", "from": "Bo", "text": "",
        "contact_information": {"first_name": "Cy", "last_name": "", "phone_number": "+41 79"}},
        {"id": 3, "type": "message", "date": "2024-05-01T10:04:00", "from": "Bo", "text": "here",
        "location_information": {"latitude": 47.3, "longitude": 8.5}}]}"#;
    let text = read_one("result.json", json.as_bytes()).text;
    let expect = "Ann (1, 2024-05-01 10:02:33): [poll: Is it out? (Yes, No)]\n\
        Bo (2, 2024-05-01 10:03:00): [contact: Cy +41 79]\nBo (3, 2024-05-01 10:04:00): [location: 47.3 8.5] here";
    assert!(text.ends_with(expect), "{text}");
}

pub const WHATSAPP: &str = "\u{200e}[12/05/2024, 10:02:33] Ann: \u{200e}Messages and calls are end-to-end encrypted.
[12/05/2024, 10:03:00] Bo B.: Is the lamp out?
It was on Tuesday: at noon.
[13/05/2024, 09:00:00] Ann left
";

#[test]
fn whatsapps_chats_have_a_session_for_each_day() {
    let text = "=== SESSION 0 - Dialogue Time(available to answer questions): 2024-05-12 ===\n\n\
        Ann (1, 2024-05-12 10:02:33): Messages and calls are end-to-end encrypted.\n\
        Bo B. (2, 2024-05-12 10:03:00): Is the lamp out?\nIt was on Tuesday: at noon.\n\n\
        === SESSION 1 - Dialogue Time(available to answer questions): 2024-05-13 ===\n\n\
        WhatsApp (3, 2024-05-13 09:00:00): Ann left";
    for name in ["_chat.txt", "WhatsApp Chat with Bo.txt", "Czat WhatsApp z Bo.txt"] {
        let source = read_one(name, WHATSAPP.as_bytes());
        assert_eq!((source.text.as_str(), source.kind), (text, Kind::WhatsApp), "{name}");
    }
    let french = "13/05/2024 à 10:02 - \u{202a}+41 79 000 00 00\u{202c}: Salut\n";
    let text = "=== SESSION 0 - Dialogue Time(available to answer questions): 2024-05-13 ===\n\n\
        +41 79 000 00 00 (1, 2024-05-13 à 10:02): Salut";
    assert_eq!(read_one("Discussion WhatsApp avec Bo.txt", french.as_bytes()).text, text);
    // Only exports have such names, and only messages start with their times.
    assert_eq!(read_one("notes.txt", WHATSAPP.as_bytes()).kind, Kind::Text);
    let notes = read_one("_chat.txt", b"My notes\n12.05.24, 10:02 - Ann: Hi\n");
    assert_eq!((notes.kind, notes.text.as_str()), (Kind::Text, "My notes\n12.05.24, 10:02 - Ann: Hi\n"));
}

#[test]
fn slacks_days_name_their_channel_and_users() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("lamps")).unwrap();
    let users = r#"[{"id": "U1", "name": "ann", "real_name": "Ann A."}, {"id": "U2", "profile": {}}]"#;
    fs::write(folder.path().join("users.json"), users).unwrap();
    let day = folder.path().join("lamps/2024-05-01.json");
    let messages = r#"[{"type": "message", "user": "U1", "ts": "1714557753.000200", "text": "Ask <@U1> &amp; <@U2>"},
        {"type": "message", "user": "U2", "user_profile": {"real_name": "", "display_name": "bo"}, "ts": "1714557800.1", "text": "", "files": [{"name": "a.pdf"}]},
        {"type": "message", "subtype": "bot_message", "username": "ci", "ts": "1714557900.1", "text": "Done", "attachments": [{"text": "x"}]},
        {"type": "message", "subtype": "bot_message", "username": "ci", "ts": "1714557900.2", "text": "",
         "attachments": [{"fallback": "All", "title": "Build 7", "text": "It &lt; was out"}, {"fallback": "Red"}]}]"#;
    fs::write(&day, messages).unwrap();
    let slack_users = SlackUsers::below(&[folder.path().to_owned()]);
    let sources = read(&day, &ReadOptions { slack_users, ..ReadOptions::default() }).unwrap();
    crate::check_spans(&sources[0]);
    let text = "=== SESSION 0 - Dialogue Time(available to answer questions): 2024-05-01 ===\n\n\
        Ann A. (1, 2024-05-01 10:02 UTC): Ask @Ann A. & @U2\nbo (2, 2024-05-01 10:03 UTC): \n[file: a.pdf]\n\
        ci (3, 2024-05-01 10:05 UTC): Done\nci (4, 2024-05-01 10:05 UTC): Build 7\nIt < was out\nRed";
    assert_eq!(shown(&sources), [("2024-05-01.json".to_owned(), Some("lamps"), text)]);
}

#[test]
fn slacks_replies_name_the_message_that_they_answer() {
    let messages = r#"[{"user": "U1", "ts": "1714557753.1", "thread_ts": "1714557753.1", "text": "Is it out?"},
        {"user": "U2", "ts": "1714557800.1", "text": "Hello"},
        {"user": "U2", "ts": "1714557860.1", "thread_ts": "1714557753.1", "text": "Yes"},
        {"user": "U1", "ts": "1714557900.1", "thread_ts": "1714471353.1", "text": "Done"}]"#;
    let text = read_one("2024-05-01.json", messages.as_bytes()).text;
    let expect = "U1 (1, 2024-05-01 10:02 UTC): Is it out?\nU2 (2, 2024-05-01 10:03 UTC): Hello\n\
        U2 (3, 2024-05-01 10:04 UTC): [reply to 1] Yes\n\
        U1 (4, 2024-05-01 10:05 UTC): [reply to the message of 2024-04-30 10:02 UTC] Done";
    assert!(text.ends_with(expect), "{text}");
}

#[test]
fn slacks_messages_of_blocks_alone_are_read() {
    let said = |message: &str| {
        let source =
            read_one("2024-05-01.json", format!("[{{\"ts\": \"1\", \"user\": \"U1\", {message}}}]").as_bytes());
        source.text.split_once(" UTC): ").unwrap().1.to_owned()
    };
    let blocks = r#""text": "", "blocks": [{"type": "header", "text": {"type": "plain_text", "text": "Build 7"}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "It &lt; <https://a.b|was> out"}, "fields": [{"type": "mrkdwn", "text": "one"},
        {"type": "mrkdwn", "text": "two"}]}, {"type": "divider"}, {"type": "context", "elements": [{"type": "image", "alt_text": "a lamp"}]},
        {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "Ask "}, {"type": "user", "user_id": "U2"},
        {"type": "text", "text": " "}, {"type": "emoji", "name": "ok"}, {"type": "link", "url": "https://c.d", "text": "here"}]},
        {"type": "rich_text_list", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "a wick"}]},
        {"type": "rich_text_section", "elements": [{"type": "text", "text": "oil"}]}]}]}]"#;
    let expect =
        "Build 7\nIt < was (https://a.b) out\none\ntwo\n[image: a lamp]\nAsk @U2 :ok:here (https://c.d)\na wick\noil";
    assert_eq!(said(blocks), expect);
    let attached = r#""text": "", "attachments": [{"fallback": "[no preview]", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "It was out"}}]}]"#;
    assert_eq!(said(attached), "It was out");
    assert_eq!(said(&blocks.replacen("\"text\": \"\"", "\"text\": \"Words\"", 1)), "Words");
    // Deeper than Slack nests.
    let deep = ["{\"elements\": ["; 50].concat() + "{\"text\": \"x\"}" + &"]}".repeat(50);
    assert_eq!(said(&format!("\"blocks\": [{{\"text\": \"y\"}}, {deep}]")), "y");
}

#[test]
fn slacks_users_are_read_once_and_only_below_the_named_folder() {
    let folder = tempfile::tempdir().unwrap();
    let channel = folder.path().join("lamps");
    fs::create_dir(&channel).unwrap();
    let users = format!(r#"[{{"id": "U1", "name": "ann"}}, {{"id": "U2", "name": "{}"}}]"#, "b".repeat(513));
    fs::write(folder.path().join("users.json"), users).unwrap();
    let day = channel.join("2024-05-01.json");
    fs::write(&day, r#"[{"user": "U1", "ts": "1714557753.0", "text": "Ask <@U2>"}]"#).unwrap();
    let said = |slack_users: &SlackUsers| {
        let options = ReadOptions { slack_users: slack_users.clone(), ..ReadOptions::default() };
        let text = read(&day, &options).unwrap().remove(0).text;
        text.lines().last().unwrap().to_owned()
    };
    let time = "2024-05-01 10:02 UTC";
    for outside in [vec![channel.clone()], vec![day.clone()], vec![folder.path().join("users.json")], vec![]] {
        assert_eq!(said(&SlackUsers::below(&outside)), format!("U1 (1, {time}): Ask @U2"), "{outside:?}");
    }
    // A name that is too long is none.
    let users = SlackUsers::below(&[channel.clone(), folder.path().to_owned()]);
    assert_eq!(said(&users), format!("ann (1, {time}): Ask @U2"));
    fs::remove_file(folder.path().join("users.json")).unwrap();
    assert_eq!(said(&users), format!("ann (1, {time}): Ask @U2"));
}

#[test]
fn a_file_of_slack_by_another_name_has_no_channel() {
    let messages = br#"[{"type": "message", "user": "U1", "ts": "1714557753.000200", "text": "Hi"}]"#;
    let source = read_one("30.json", messages);
    assert_eq!(source.title, None, "the folder is none of Slack's");
    let text = "=== SESSION 0 - Dialogue Time(available to answer questions): 2024-05-01 10:02 UTC ===\n\n\
        U1 (1): Hi";
    assert_eq!(source.text, text);
}

#[test]
fn damaged_exports_say_where() {
    let check = |name, json: &str, expect: &str| assert_eq!(complaint(name, json.as_bytes()), expect);
    check(
        "conversations.json",
        &CHATGPT.replace("\"parent\": \"a\"", "\"parent\": \"d\""),
        "line 1: field `mapping` has a message that answers itself",
    );
    check(
        "conversations.json",
        &CHATGPT.replace("\"current_node\": \"d\"", "\"current_node\": \"q\""),
        "line 1: field `q` is missing",
    );
    check("conversations.json", r#"[{"chat_messages": [{"text": "x"}]}]"#, "line 1: field `sender` is missing");
    check("result.json", &TELEGRAM.replace("\"id\": 3", "\"id\": 2"), "line 4: field `id` repeats an earlier one");
    check(
        "chat.json",
        r#"{"messages": [{"role": "user", "content": 1}]}"#,
        "line 1: field `content` is neither a string nor an array",
    );
    check("chat.json", r#"{"messages": []}"#, "the file contains no text");
    check(
        "result.json",
        &TELEGRAM[..200],
        "damaged JSON conversation: EOF while parsing an object at line 3 column 76",
    );
}
