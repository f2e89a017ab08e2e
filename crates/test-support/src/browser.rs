//! A headless Chromium, driven over the DevTools protocol: JSON messages over two pipes, each ended by a zero byte.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const CHROMIUM: &str = "chromium";

/// A browser with one page open.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    /// Names the page; empty until it is known.
    session: String,
    sent: u64,
    /// Errors of the page: on its console, exceptions, failed requests, refused content.
    pub complaints: Vec<String>,
}

impl Browser {
    /// Starts a browser with its profile in a folder; `None` (with the reason printed) where there is none.
    pub fn start(folder: &Path) -> Option<Browser> {
        static MISSING: OnceLock<Option<&str>> = OnceLock::new();
        let runs =
            |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
        let missing = MISSING.get_or_init(|| [CHROMIUM, "mkfifo"].into_iter().find(|program| !runs(program)));
        if let Some(program) = missing {
            println!("not tested: the page in a browser; `{program} --version` does not work here");
            return None;
        }
        let (to, from) = (folder.join("to-browser"), folder.join("from-browser"));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        // Chromium reads its commands from descriptor 3 and answers on descriptor 4.
        let script = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage \
                      --disable-background-networking --remote-debugging-pipe --user-data-dir=\"$1\" about:blank \
                      3<\"$2\" 4>\"$3\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, CHROMIUM]).args([folder.join("browser"), to.clone(), from.clone()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Each opening waits for the other side, which opens them in this order.
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let (session, complaints) = (String::new(), Vec::new());
        let mut browser = Browser { child, to, from, session, sent: 0, complaints };
        let targets = browser.tell("Target.getTargets", json!({}));
        let page = targets["targetInfos"].as_array().unwrap().iter().find(|target| target["type"] == "page").unwrap();
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        browser.tell("Target.attachToTarget", attach)["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log"] {
            browser.tell(&format!("{domain}.enable"), json!({}));
        }
        // Elements gain and lose the focus although the window is not in front.
        browser.tell("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        Some(browser)
    }

    /// Opens an address.
    pub fn open(&mut self, address: &str) {
        self.tell("Page.navigate", json!({ "url": address }));
        self.until("the page is there", "document.readyState === 'complete'");
    }

    /// The value of an expression of JavaScript in the page; that of a promise when it is there.
    pub fn value(&mut self, expression: &str) -> Value {
        let evaluate = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let told = self.tell("Runtime.evaluate", evaluate);
        assert!(told.get("exceptionDetails").is_none(), "{expression}: {}", told["exceptionDetails"]);
        told["result"]["value"].clone()
    }

    /// Waits until an expression is true; a test that would wait for ever fails.
    #[track_caller]
    pub fn until(&mut self, what: &str, expression: &str) {
        let started = Instant::now();
        while self.value(expression) != true {
            let shown = || "document.body.innerText";
            assert!(started.elapsed() < Duration::from_mins(2), "{what}: {}", self.value(shown()));
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Makes the window this wide.
    pub fn width(&mut self, pixels: u32) {
        self.size(pixels, 800);
    }

    /// Makes the window this wide and high.
    pub fn size(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.tell("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets the preferred colour scheme, `light` or `dark`, and no motion, so that nothing is seen half-way between two schemes.
    pub fn prefers(&mut self, scheme: &str) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.tell("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// What the window shows, as a PNG in base64.
    pub fn picture(&mut self) -> String {
        self.tell("Page.captureScreenshot", json!({ "format": "png" }))["data"].as_str().unwrap().to_owned()
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            other => panic!("{other} has no code here"),
        };
        let mut press = json!({ "type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code });
        if key == "Enter" {
            press["text"] = "\r".into();
        }
        self.tell("Input.dispatchKeyEvent", press);
        self.tell("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key, "code": key }));
    }

    /// Role and name of every node of the accessibility tree, as screen readers get them.
    pub fn heard(&mut self) -> Vec<(String, String)> {
        let tree = self.tell("Accessibility.getFullAXTree", json!({}));
        let word = |node: &Value, what: &str| node[what]["value"].as_str().unwrap_or_default().to_owned();
        let nodes = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] != true);
        nodes.map(|node| (word(node, "role"), word(node, "name"))).collect()
    }

    /// Sends a command and waits for its response; errors of the page meanwhile are kept.
    fn tell(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut command = json!({ "id": self.sent, "method": method, "params": params });
        if !self.session.is_empty() {
            command["sessionId"] = self.session.as_str().into();
        }
        self.to.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let mut message = Vec::new();
            self.from.read_until(0, &mut message).unwrap();
            assert_eq!(message.pop(), Some(0), "the browser has ended");
            let mut message: Value = serde_json::from_slice(&message).unwrap();
            if message["id"] == self.sent {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.complaints.extend(complaint(&message));
        }
    }
}

/// The error of the page that an event reports.
fn complaint(event: &Value) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
        "Runtime.consoleAPICalled" if params["type"] == "error" => Some(params["args"].to_string()),
        "Log.entryAdded" if params["entry"]["level"] == "error" => Some(params["entry"].to_string()),
        _ => None,
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
