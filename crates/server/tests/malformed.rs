//! Whatever is sent, the server responds with a client error and keeps running.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::host::{Host, says};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[test]
fn malformed_bodies_are_client_errors() {
    let host = Host::new(says("Yes."));
    let paths = [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/rerank",
        "/v1/corpora",
        "/v1/corpora/a/documents",
        "/v1/corpora/a/search",
        "/v1/corpora/a/ask",
        "/v1/corpora/a/prepare",
        "/api/chat",
        "/api/generate",
        "/api/embed",
        "/api/embeddings",
        "/api/show",
        "/api/pull",
        "/api/create",
        "/api/copy",
        "/mcp",
    ];
    let deep = "[".repeat(10_000);
    let bodies = [
        "",
        "{",
        "null",
        "[]",
        "\"text\"",
        "{} {}",
        "{\"model\":5}",
        "{\"model\":\"\\ud800\"}",
        "\u{0}",
        deep.as_str(),
        "{\"a\":1e999}",
    ];
    for path in paths {
        for body in bodies {
            let answer = host.send("POST", path, &JSON, body);
            assert!((400..500).contains(&answer.status), "{path} {body:.20}: {} {}", answer.status, answer.text);
        }
        let invalid = host.send_bytes("POST", path, &JSON, b"{\"model\":\"\xff\"}");
        assert!((400..500).contains(&invalid.status), "{path}: {}", invalid.status);
        let plain = host.send("POST", path, &[("content-type", "text/plain")], "{}");
        assert!((400..500).contains(&plain.status), "{path}: {}", plain.status);
    }
    assert_eq!(host.get("/health").status, 200);
}

/// Arrays would be read as the fields of a request in order.
#[test]
fn metadata_beyond_a_limit_is_refused_with_its_name() {
    let host = Host::new(says("Yes."));
    let pairs = |number: usize| (0..number).map(|key| (key.to_string(), json!("a"))).collect::<Value>();
    let batch = json!({ "input_file_id": "file-1", "endpoint": "/v1/responses" });
    for (path, body) in [
        ("/v1/responses", json!({ "model": "scripted", "input": "On." })),
        ("/v1/conversations", json!({})),
        ("/v1/conversations/conv-1", json!({})),
        ("/v1/vector_stores", json!({})),
        ("/v1/vector_stores/pell", json!({})),
        ("/v1/batches", batch),
    ] {
        for (wrong, param, says) in [
            (pairs(17), "metadata", "`metadata` has 17 keys; at most 16 are allowed"),
            (json!({ "a".repeat(65): "a" }), "metadata", "has 65 characters; at most 64"),
            (json!({ "a": "é".repeat(513) }), "metadata", "`metadata.a` has 513 characters; at most 512"),
            (json!({ "a": 1 }), "metadata.a", "expected a string"),
            (json!("a"), "metadata", "expected an object"),
        ] {
            let mut body = body.clone();
            body["metadata"] = wrong;
            let answer = host.post(path, &body);
            let message = answer.refused(400, "invalid_value");
            assert!(message.contains(says), "{path}: {message}");
            assert_eq!(answer.json()["error"]["param"], param, "{path}: {message}");
        }
    }
    for allowed in [pairs(16), json!({ "a".repeat(64): "é".repeat(512) })] {
        let made = host.post("/v1/conversations", &json!({ "metadata": allowed })).json();
        assert_eq!(made["metadata"], allowed);
    }
    let described = &host.get("/openapi.json").json()["components"]["schemas"]["Metadata"];
    let limits = (&described["maxProperties"], &described["additionalProperties"]["maxLength"]);
    assert_eq!(limits, (&json!(16), &json!(512)));
}

#[test]
fn a_body_is_an_object() {
    let host = Host::new(says("Yes."));
    let message = json!({ "role": "user", "content": "?" });
    for path in ["/v1/chat/completions", "/v1/embeddings", "/v1/corpora", "/api/chat", "/api/show"] {
        let answer = host.post(path, &json!(["scripted", [message]]));
        let error = "the body must be a JSON object, not an array";
        assert!(answer.status == 400 && answer.text.contains(error), "{path}: {}", answer.text);
    }
}

/// Ollama's documentation calls `curl URL -d '{...}'`.
#[test]
fn ollamas_api_takes_curls_own_content_type_but_not_from_browsers() {
    let host = Host::new(says("Yes.").answer("ollama", "Yes."));
    let body = json!({ "model": "scripted", "prompt": "?", "stream": false }).to_string();
    let form = ("content-type", "application/x-www-form-urlencoded");
    let send = |path: &str, headers: &[(&str, &str)]| host.send("POST", path, headers, &body).status;
    assert_eq!((send("/api/generate", &[form]), send("/api/generate", &[])), (200, 200));
    let own = format!("http://{}", host.address);
    for of_browser in [("origin", own.as_str()), ("referer", &own), ("sec-fetch-site", "cross-site")] {
        assert_eq!(send("/api/generate", &[form, of_browser]), 400, "{of_browser:?}");
    }
    assert_eq!(send("/api/generate", &[("content-type", "text/plain")]), 400);
    assert_eq!(send("/v1/completions", &[form]), 400, "OpenAI's API says how it is called");
}

/// Replaces every field of a valid request by every kind of value.
#[test]
fn fields_of_the_wrong_type_are_client_errors() {
    let host = Host::new(says("Yes."));
    let good = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "?" }], "stream": false, "stream_options": null,
        "response_format": { "type": "text" }, "tools": [], "tool_choice": "none", "logprobs": false, "top_logprobs": null,
        "max_tokens": 5, "temperature": 1, "top_p": 1, "top_k": 1, "min_p": 0, "seed": 1, "stop": "x", "n": 1, "logit_bias": {} });
    assert_eq!(host.post("/v1/chat/completions", &good).status, 200);
    let strange = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!("x"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "type": {} }),
    ];
    for field in good.as_object().expect("fields").keys() {
        for value in &strange {
            let mut body = good.clone();
            body[field] = value.clone();
            let status = host.post("/v1/chat/completions", &body).status;
            assert!(status < 500, "{field} {value}: {status}");
        }
    }
}

#[test]
fn routes_methods_and_origins() {
    let host = Host::new(says("Yes."));
    // The base URL of an OpenAI client without /v1, and with it twice.
    for path in ["/v1/nothing", "/chat/completions", "/v1/v1/models"] {
        let refused = host.get(path);
        assert_eq!(refused.refused(404, "not_found"), format!("there is no path {path}"));
        let hint = refused.json()["error"]["hint"].take();
        assert!(hint.as_str().is_some_and(|hint| hint.contains("a base URL that ends with /v1")), "{hint}");
    }
    for (method, path, hint) in [
        ("GET", "/v1/chat/completions", "send POST"),
        ("PATCH", "/v1/corpora", "send GET or POST"),
        ("POST", "/v1/models/scripted", "send GET"),
        ("POST", "/health", "send GET"),
    ] {
        let refused = host.send(method, path, &[], "");
        refused.refused(405, "method_not_allowed");
        assert_eq!(refused.json()["error"]["hint"], hint, "{method} {path}");
    }
    let name = host.post("/v1/corpora", &json!({ "name": "Magi" }));
    name.refused(400, "invalid_value");
    assert_eq!(name.json()["error"]["hint"], "`magi` is a valid name");
    let from = |origin: &str| host.send("GET", "/v1/models", &[("origin", origin)], "");
    from("http://evil.example").refused(403, "foreign_origin");
    assert_eq!(from(&format!("http://{}", host.address)).status, 200);
    let foreign = host.send("GET", "/v1/models", &[("host", "evil.example")], "");
    foreign.refused(403, "foreign_origin");
    let hint =
        "to serve under this host name, as behind a proxy, start the server with --allow-origin https://evil.example";
    assert_eq!(foreign.json()["error"]["hint"], hint);
    assert!(host.get("/v1/models").headers.iter().all(|(name, _)| !name.starts_with("access-control")), "CORS is off");
}

#[test]
fn the_document_describes_every_route() {
    let host = Host::new(says("Yes."));
    let document = host.get("/openapi.json").json();
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.")));
    let paths: Vec<&String> = document["paths"].as_object().expect("paths").keys().collect();
    for path in ["/v1/chat/completions", "/v1/corpora/{corpus}/ask", "/v1/jobs/{job}/events", "/api/chat"] {
        assert!(paths.iter().any(|known| *known == path), "{path} in {paths:?}");
    }
    let fields = &document["components"]["schemas"]["ChatRequest"]["properties"];
    assert!(fields["messages"].is_object() && fields["seed"].is_object(), "{fields}");
    references(&document, &document);
    for page in ["/", "/page/style.css", "/page/page.js", "/docs", "/page/docs.js"] {
        let page = host.send("GET", page, &[("accept", "text/html,*/*")], "");
        assert!(
            page.status == 200 && !page.text.contains("//cdn") && !page.text.contains("https:"),
            "nothing comes from elsewhere"
        );
        assert!(page.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'self'")));
    }
    assert_eq!(host.get("/v1/methods").json()["methods"][0], "auto");
}

/// Checks that every reference has a target.
fn references(value: &Value, document: &Value) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| match value.as_str() {
            Some(path) if name == "$ref" => {
                assert!(document.pointer(path.trim_start_matches('#')).is_some(), "{path}");
            }
            _ => references(value, document),
        }),
        Value::Array(values) => values.iter().for_each(|value| references(value, document)),
        _ => {}
    }
}

#[test]
fn allowed_origins_may_send_requests() {
    let host = Host::with(Arc::new(says("Yes.")), |config| config.allow_origins = vec!["https://chat.example".into()]);
    let from = |method: &str, origin: &str, more: &[(&str, &str)]| {
        host.send(method, "/v1/models", &[&[("origin", origin)], more].concat(), "")
    };
    let asked = from("GET", "https://chat.example", &[]);
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (200, Some("https://chat.example")));
    let exposed = asked.header("access-control-expose-headers");
    assert_eq!(exposed, Some("retry-after, warning, www-authenticate"), "scripts may read the warning");
    let first = from("OPTIONS", "https://chat.example", &[("access-control-request-method", "POST")]);
    assert_eq!(
        (first.status, first.header("access-control-allow-methods")),
        (204, Some("GET, HEAD, POST, PUT, PATCH, DELETE"))
    );
    let asked = "authorization,content-type,x-stainless-os,x-stainless-retry-count,mcp-protocol-version";
    let may = |headers: &[(&str, &str)]| {
        let first = from("OPTIONS", "https://chat.example", headers);
        first.header("access-control-allow-headers").map(str::to_owned)
    };
    let post = ("access-control-request-method", "POST");
    assert_eq!(may(&[post, ("access-control-request-headers", asked)]).as_deref(), Some(asked), "clients in browsers");
    assert_eq!(may(&[post]).as_deref(), Some("authorization, content-type"));
    from("GET", "https://chat.example.evil", &[]).refused(403, "foreign_origin");
    from("OPTIONS", "https://evil.example", &[("access-control-request-method", "POST")])
        .refused(403, "foreign_origin");
}

#[test]
fn a_proxy_passes_on_the_host_of_an_allowed_origin() {
    let host = Host::with(Arc::new(says("Yes.")), |config| config.allow_origins = vec!["https://chat.example".into()]);
    let passed = |name: &str, origin: &str| {
        host.send("GET", "/v1/models", &[("host", name), ("origin", origin), ("x-forwarded-proto", "https")], "")
    };
    assert_eq!(passed("chat.example", "https://chat.example").status, 200);
    let refused = passed("other.example", "https://chat.example");
    refused.refused(403, "foreign_origin");
    let readable = refused.header("access-control-allow-origin");
    assert_eq!(readable, Some("https://chat.example"), "scripts may read the error");
    passed("chat.example", "https://other.example").refused(403, "foreign_origin");
}

#[test]
fn unknown_query_parameters_are_refused_or_named_in_a_warning() {
    let host = Host::new(says("Yes."));
    host.post("/v1/corpora", &json!({ "name": "a" }));
    let none = "there is no query parameter `page` here; known: none";
    for path in ["/v1/corpora", "/v1/corpora/a/threads", "/v1/engine", "/v1/jobs"] {
        assert_eq!(host.get(&format!("{path}?page=1")).refused(400, "invalid_value"), none, "{path}");
    }
    let documents = host.get("/v1/corpora/a/documents?page=1").refused(400, "invalid_value");
    assert_eq!(documents, "there is no query parameter `page` here; known: `after`, `limit`");
    let graph = host.get("/v1/corpora/a/graph?format=dot&page=1").refused(400, "invalid_value");
    assert_eq!(
        graph,
        "there is no query parameter `page` here; known: `format`, `graph`, `hops`, `limit`, `node`, `question`"
    );
    let created = host.post("/v1/corpora?dry-run=1", &json!({ "name": "b" }));
    assert_eq!(created.json()["error"]["param"], "dry-run", "nothing was made");
    host.get("/v1/corpora/b/documents").refused(404, "not_found");
    for path in ["/v1/models?api-version=1", "/v1/files?limit=2&api-version=1", "/api/tags?api-version=1"] {
        let answer = host.get(path);
        assert_eq!((answer.status, answer.warning()), (200, "ignored query parameters: api-version"), "{path}");
    }
    assert_eq!(host.get("/v1/files?limit=2").header("warning"), None);
    let message = host.get("/v1/files?limit=few").refused(400, "invalid_value");
    assert_eq!(message, "the query string cannot be used: limit: expected a whole number of at least 0");
}

#[test]
fn a_path_that_is_no_text_is_refused_as_other_requests_are() {
    let host = Host::new(says("Yes."));
    for path in ["/v1/corpora/%ff/documents", "/v1/models/%ff", "/v1/jobs/%C3"] {
        assert_eq!(host.get(path).refused(400, "invalid_value"), "the path is not valid UTF-8", "{path}");
    }
}
