//! Responses that are kept: continued, shown, deleted, made in the background and cancelled.

use std::sync::Arc;

use calls::{Role, Scripted};
use serde_json::{Value, json};

use crate::host::{Answer, CONTEXT_TOKENS, Host, eventually};
use test_support::thinker::Thinker;

fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer("response", "One.").answer("response", "Two.").answer("response", "Three.")
}

fn create(host: &Host, more: Value) -> Answer {
    let mut body = json!({ "model": "scripted", "input": "Count." });
    more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    host.post("/v1/responses", &body)
}

fn path(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap_or_else(|| panic!("{response}")))
}

#[test]
fn a_response_is_continued_with_its_items() {
    let caller = Arc::new(script());
    let host = Host::with(caller.clone(), |_| {});
    let first = create(&host, json!({ "instructions": "Be brief." })).json();
    assert_eq!(first["store"], true);
    let second = create(&host, json!({ "input": "On.", "previous_response_id": first["id"] })).json();
    assert_eq!(second["previous_response_id"], first["id"]);
    create(&host, json!({ "input": "On.", "previous_response_id": second["id"], "stream": true }));
    let turns: Vec<(Role, String)> =
        caller.seen()[2].prompt.messages().into_iter().map(|message| (message.role, message.content)).collect();
    let want = [
        (Role::User, "Count."),
        (Role::Assistant, "One."),
        (Role::User, "On."),
        (Role::Assistant, "Two."),
        (Role::User, "On."),
    ];
    assert_eq!(turns, want.map(|(role, text)| (role, text.to_owned())), "instructions are not carried over");
}

#[test]
fn a_reference_is_the_item_of_a_kept_response() {
    let caller = Arc::new(script());
    let host = Host::with(caller.clone(), |_| {});
    let asked = json!([{ "role": "user", "content": "Count.", "id": "mine" }]);
    let first = create(&host, json!({ "input": asked })).json();
    let answer = &first["output"][0]["id"];
    // The type of a reference may be left out.
    let references = |more: Value| json!([{ "type": "item_reference", "id": "mine" }, { "id": answer }, more]);
    let on = json!({ "role": "user", "content": "On." });
    let second = create(&host, json!({ "input": references(on.clone()) })).json();
    // A response has the items that its input names, and outlives the response that they are from.
    assert_eq!(host.delete(&path(&first)).status, 200);
    let items = host.get(&format!("{}/input_items?order=asc", path(&second))).json()["data"].take();
    assert_eq!((&items[0]["content"][0]["text"], &items[1]), (&json!("Count."), &first["output"][0]));
    create(&host, json!({ "input": references(on) }));
    for call in caller.seen().into_iter().skip(1) {
        let turns: Vec<(Role, String)> =
            call.prompt.messages().into_iter().map(|message| (message.role, message.content)).collect();
        let want = [(Role::User, "Count."), (Role::Assistant, "One."), (Role::User, "On.")];
        assert_eq!(turns, want.map(|(role, text)| (role, text.to_owned())));
    }
    let unknown = create(&host, json!({ "input": [{ "type": "item_reference", "id": "msg_none" }] }));
    assert_eq!(unknown.refused(404, "not_found"), "there is no item msg_none in a kept response");
}

#[test]
fn a_response_is_shown_and_deleted() {
    let host = Host::new(script());
    let items = json!([{ "role": "user", "content": "One?" }, { "role": "user", "content": "Two?", "id": "mine" }]);
    let response = create(&host, json!({ "input": items })).json();
    let path = path(&response);
    assert_eq!(host.get(&path).json(), response);
    let list = |query: &str| host.get(&format!("{path}/input_items{query}")).json();
    let all = list("?order=asc");
    let (first, second) = (&all["data"][0], &all["data"][1]);
    assert_eq!((&first["type"], &second["id"]), (&json!("message"), &json!("mine")));
    assert_eq!(first["content"], json!([{ "type": "input_text", "text": "One?" }]), "as clients read it");
    let part = list("?limit=1");
    assert_eq!((&part["data"], &part["has_more"]), (&json!([all["data"][1]]), &json!(true)));
    assert_eq!(list("?limit=1&after=mine")["data"], json!([all["data"][0]]));
    host.get(&format!("{path}/input_items?limit=0")).refused(400, "invalid_value");
    assert_eq!(host.get(&format!("{path}?stream=false")).status, 200);
    host.get(&format!("{path}?stream=true")).refused(400, "invalid_value");
    host.post(&format!("{path}/cancel"), &json!({})).refused(400, "invalid_value");

    assert_eq!(host.delete(&path).json(), json!({ "id": response["id"], "object": "response", "deleted": true }));
    host.get(&path).refused(404, "not_found");
    host.delete(&path).refused(404, "not_found");
    let message = create(&host, json!({ "previous_response_id": response["id"] })).refused(400, "invalid_value");
    assert!(message.contains("is not kept"), "{message}");
    for unknown in ["resp-1", "..%2Fkeys", "resp-..%2F..%2F..%2F..%2F..%2F..%2F..%2F..%2F..%2F..%2Fab"] {
        host.get(&format!("/v1/responses/{unknown}")).refused(404, "not_found");
    }
}

#[test]
fn a_response_is_not_kept_where_that_is_turned_off() {
    let host = Host::new(script());
    let response = create(&host, json!({ "store": false })).json();
    assert_eq!(response["store"], false);
    host.get(&path(&response)).refused(404, "not_found");
    let refused = create(&host, json!({ "store": false, "background": true }));
    refused.refused(400, "invalid_value");
    assert!(!host.folder.path().join("responses").exists());

    let forgetful = Host::with(Arc::new(script()), |config| config.keep_threads = false);
    let response = create(&forgetful, json!({ "store": true })).json();
    assert_eq!(response["store"], false);
    forgetful.get(&path(&response)).refused(404, "not_found");
}

#[test]
fn a_response_that_cannot_be_stored_is_given_unless_its_storage_was_asked_for() {
    let host = Host::new(script());
    let kept = create(&host, json!({})).json();
    std::fs::remove_dir_all(host.folder.path().join("responses")).expect("it is there");
    std::fs::write(host.folder.path().join("responses"), "no folder").expect("it can be written");
    let given = create(&host, json!({}));
    assert_eq!(given.warning(), "the response is not stored: its file cannot be written");
    let response = given.json();
    assert_eq!((&response["store"], &response["output"][0]["content"][0]["text"]), (&json!(false), &json!("Two.")));
    assert_eq!(kept["store"], true);
    let events = create(&host, json!({ "stream": true })).events();
    let (name, last) = events.last().expect("it has events");
    assert_eq!((name.as_str(), &last["response"]["store"]), ("response.completed", &json!(false)));
    create(&host, json!({ "background": true })).refused(500, "internal");
    let host = Host::on(Arc::clone(&host.folder), Arc::new(script()), |_| {});
    let message = create(&host, json!({ "store": true })).refused(500, "internal");
    assert_eq!(message, "a file of the data folder cannot be read or written");
}

#[cfg(unix)]
#[test]
fn files_are_private_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let host = Host::new(script());
    let response = create(&host, json!({})).json();
    let folder = host.folder.path().join("responses");
    let file = folder.join(format!("{}.json", response["id"].as_str().expect("an id")));
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
}

#[test]
fn a_response_ends_in_the_background() {
    let host = Host::new(script());
    let begun = create(&host, json!({ "background": true })).json();
    assert_eq!((&begun["status"], &begun["output"]), (&json!("in_progress"), &json!([])));
    let path = path(&begun);
    eventually("it ends", || host.get(&path).json()["status"] == "completed");
    let ended = host.get(&path).json();
    assert_eq!(ended["output"][0]["content"][0]["text"], "One.");
    assert_eq!(host.post(&format!("{path}/cancel"), &json!({})).json(), ended, "it has ended already");
    create(&host, json!({ "background": true, "stream": true })).refused(400, "invalid_value");

    let failing = Host::new(Scripted::new(CONTEXT_TOKENS));
    let begun = create(&failing, json!({ "background": true })).json();
    let path = self::path(&begun);
    eventually("it fails", || failing.get(&path).json()["status"] == "failed");
    assert!(failing.get(&path).json()["error"]["message"].is_string());
}

#[test]
fn a_response_in_the_background_is_cancelled() {
    let thinker = Thinker::default();
    let host = Host::new(thinker.clone());
    let begun = create(&host, json!({ "model": "thinker", "background": true })).json();
    eventually("it begins", || thinker.begun() == 1);
    let path = path(&begun);
    assert_eq!(host.post(&format!("{path}/cancel"), &json!({})).json()["status"], "cancelled");
    eventually("its call is cancelled", || thinker.given_up() == 1);
    assert_eq!(host.get(&path).json()["status"], "cancelled");

    let begun = create(&host, json!({ "model": "thinker", "background": true })).json();
    eventually("it begins", || thinker.begun() == 2);
    let folder = Arc::clone(&host.folder);
    drop(host);
    let host = Host::on(folder, Arc::new(Thinker::default()), |_| {});
    let interrupted = host.get(&self::path(&begun)).json();
    assert_eq!(
        (&interrupted["status"], interrupted["error"]["message"].as_str()),
        (&json!("failed"), Some("the server was restarted"))
    );
}
