//! A headless Chromium, controlled through pipes by its debugging protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for an answer of the browser, or for a condition in the page.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    orders: ChildStdin,
    heard: Receiver<Value>,
    session: Value,
    last: u64,
    /// Errors and warnings that the page logged, and uncaught exceptions.
    pub(crate) complaints: Vec<String>,
    /// The addresses of all requests of the page.
    pub(crate) requests: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser; returns `None` and prints a message if this machine has none.
    pub(crate) fn start() -> Option<Self> {
        if Command::new("chromium").arg("--version").output().is_err() {
            println!("skipped: needs chromium");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        // The protocol uses the descriptors 3 and 4.
        let script = format!(
            "exec chromium --headless=new --no-sandbox --disable-gpu --remote-debugging-pipe \
             --user-data-dir={} 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null",
            profile.path().display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let (tell, heard) = channel();
        let messages = BufReader::new(child.stdout.take().unwrap()).split(0);
        thread::spawn(move || {
            let parsed = messages.map_while(Result::ok);
            parsed.for_each(|message| drop(tell.send(serde_json::from_slice(&message).unwrap())));
        });
        let (session, last) = (Value::Null, 0);
        let (complaints, requests) = (Vec::new(), Vec::new());
        let mut browser =
            Self { child, orders, heard, session, last, complaints, requests, _profile: profile };
        let made = browser.order("Target.createTarget", json!({ "url": "about:blank" }));
        let wanted = json!({ "targetId": made["targetId"], "flatten": true });
        browser.session = browser.order("Target.attachToTarget", wanted)["sessionId"].take();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.order(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sends a command and returns its result.
    pub(crate) fn order(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut order = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_null() {
            order["sessionId"] = self.session.clone();
        }
        self.orders.write_all(format!("{order}\0").as_bytes()).unwrap();
        loop {
            let mut message = self.heard.recv_timeout(PATIENCE).unwrap();
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            self.note(&message);
        }
    }

    /// Opens an address.
    pub(crate) fn open(&mut self, address: &str) {
        self.order("Page.navigate", json!({ "url": address }));
        self.wait_for(&format!(
            "location.href === {address:?} && document.readyState === 'complete'"
        ));
    }

    /// Evaluates an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let wanted = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut result = self.order("Runtime.evaluate", wanted);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].take()
    }

    /// Waits until an expression is true in the page.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.value(&format!("Boolean({expression})")) != true {
            let seen = self.value("document.body?.innerText ?? ''");
            let late = Instant::now() >= until;
            assert!(!late, "never: {expression}\n{seen}\n{:?}", self.complaints);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key == "Enter" && kind == "keyDown" { "\r" } else { "" };
            let event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text,
            });
            self.order("Input.dispatchKeyEvent", event);
        }
    }

    fn note(&mut self, message: &Value) {
        let text = |value: &Value| value.to_string();
        let said = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.complaints.push(text(&said["exceptionDetails"])),
            "Runtime.consoleAPICalled" => self.complaints.push(text(&said["args"])),
            "Log.entryAdded" => self.complaints.push(text(&said["entry"])),
            "Network.requestWillBeSent" => {
                self.requests.push(said["request"]["url"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
