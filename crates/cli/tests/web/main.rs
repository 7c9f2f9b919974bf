//! The web page of a server: access to it, and its look in a browser.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod browser;
#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use browser::Browser;
use common::four::Four;
use common::raw::Raw;
use common::{Place, Running, run};
use serde_json::json;

const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// A server whose export has a hostile name, and the address of its web page.
struct WebServer {
    place: Place,
    server: Running,
    address: String,
    token: String,
}

impl WebServer {
    fn start() -> Self {
        let place = Place::new();
        let export = place.path(HOSTILE);
        fs::create_dir(&export).unwrap();
        let pages = ["--metrics", "127.0.0.1:0", "--web", "127.0.0.1:0"];
        let server = Running::start(place.serve(&[]).arg(&export).args(pages));
        let address = server.said["web"].as_str().unwrap();
        let address = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let token = fs::read_to_string(place.state().join("web.token")).unwrap();
        Self { place, server, address, token: token.trim().to_owned() }
    }

    /// Sends a request and returns the whole answer, headers included.
    fn ask(&self, first: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let text = format!(
            "{first} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: \
             {length}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn ask_with(&self, token: &str, body: &str) -> String {
        self.ask("POST /api/ask", &format!("Authorization: Bearer {token}\r\n"), body)
    }
}

#[test]
fn requests_without_the_token_get_no_data() {
    let site = WebServer::start();
    let status = json!({ "command": "status" }).to_string();
    let answer = site.ask_with(&site.token, &status);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("onerror"), "{answer}");
    let wrong = "0".repeat(site.token.len());
    for answer in [
        site.ask("POST /api/ask", "", &status),
        site.ask_with(&wrong, &status),
        site.ask("GET /api/live", "", ""),
        site.ask(&format!("POST /api/ask?token={}", site.token), "", &status),
        site.ask("POST /api/ask", &format!("Cookie: token={}\r\n", site.token), &status),
    ] {
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("onerror"), "{answer}");
    }
}

#[test]
fn the_page_cannot_change_the_configuration_and_other_sites_cannot_use_it() {
    let site = WebServer::start();
    let commands = ["reload", "evict", "log-level", "bind-account", "unbind-account"];
    for command in commands {
        let request = json!({
            "command": command, "client": "1", "level": "debug", "user": "root", "key": "x",
        });
        let answer = site.ask_with(&site.token, &request.to_string());
        let refused = ["HTTP/1.1 403", "HTTP/1.1 400"].iter().any(|code| answer.starts_with(code));
        assert!(refused, "{command}: {answer}");
    }
    let key = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let requests =
        [json!({ "command": "reload" }), json!({ "command": "revoke-grant", "what": key })];
    for request in requests {
        let answer = site.ask_with(&site.token, &request.to_string());
        assert!(answer.starts_with("HTTP/1.1 403"), "{request}: {answer}");
    }
    let answer = site.ask_with(&site.token, &"x".repeat(1 << 20));
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    // Without a header that allows it, browsers let no other site send the token.
    let origin = "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\
                  Access-Control-Request-Headers: authorization\r\n";
    let answer = site.ask("OPTIONS /api/ask", origin, "").to_lowercase();
    assert!(!answer.contains("access-control-allow"), "{answer}");
    let page = site.ask("GET /", "", "");
    assert!(page.contains("content-security-policy: default-src 'none'; script-src 'self'"));
    assert!(page.contains("frame-ancestors 'none'"), "{page}");
}

#[test]
fn the_page_is_served_to_this_machine_only() {
    let place = Place::new();
    let said = run(place.serve_data().args(["--web", "0.0.0.0:0"]));
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("127.0.0.1") && said.err.contains("ssh -L"), "{}", said.err);
}

#[test]
fn a_browser_shows_every_page_with_live_data_and_its_forms_work() {
    let site = WebServer::start();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&format!("http://{}/", site.address));
    sign_in(&mut browser, &site);
    let mut client = Raw::connect(site.server.port, 0);
    let root = client.mount(&site.place.path(HOSTILE)).unwrap();
    browser.wait_for("document.querySelectorAll('#resources tbody tr').length > 5");
    // A plot gets a point with each event.
    let points = "document.querySelector('svg.plot path').getAttribute('d').split('L').length";
    browser.wait_for(&format!("{points} > 1"));
    every_page(&mut browser);
    for _ in 0..100 {
        client.getattr(&root).unwrap();
    }
    browser.value("location.hash = '#operations'");
    browser.wait_for("document.querySelector('#operations').innerText.includes('GETATTR')");
    browser.value("location.hash = '#exports'");
    browser.wait_for(&format!(
        "document.querySelector('#exports-table').innerText.includes({:?})",
        HOSTILE
    ));
    assert_eq!(browser.value("document.images.length"), 0, "a name became markup");
    more_clients_than_one_answer_has(&mut browser, &site);
    forms(&mut browser, &site);
    let origin = format!("http://{}/", site.address);
    let foreign: Vec<_> = browser.requests.iter().filter(|url| !url.starts_with(&origin)).collect();
    assert!(foreign.iter().all(|url| url.starts_with("data:")), "{foreign:?}");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// Signs in by the keyboard alone: the form refuses a wrong token and accepts the right one. A
/// browser logs that a request was refused.
fn sign_in(browser: &mut Browser, site: &WebServer) {
    browser.wait_for("!document.querySelector('#sign-in').hidden");
    browser.value("document.querySelector('#token').focus()");
    browser.order("Input.insertText", json!({ "text": "wrong" }));
    browser.press("Enter", 13);
    browser.wait_for("document.querySelector('#token-error').innerText.includes('not the server')");
    browser.value("document.querySelector('#token').value = ''");
    browser.value("document.querySelector('#token').focus()");
    browser.order("Input.insertText", json!({ "text": site.token }));
    browser.press("Enter", 13);
    browser.wait_for("!document.querySelector('#overview').hidden");
    let refused = |complaint: &String| complaint.contains("401");
    assert!(browser.complaints.iter().all(refused), "{:?}", browser.complaints);
    browser.complaints.clear();
}

/// Opens each page by the keyboard; each fits on the screen of a phone, in light and dark colors.
fn every_page(browser: &mut Browser) {
    let narrow = json!({ "width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": true });
    browser.order("Emulation.setDeviceMetricsOverride", narrow);
    for name in ["overview", "operations", "clients", "waits", "exports", "grants", "explain"] {
        browser.value(&format!("document.querySelector('nav a[href=\"#{name}\"]').focus()"));
        browser.press("Enter", 13);
        browser.wait_for(&format!("!document.querySelector('section#{name}').hidden"));
        let width = browser.value("document.documentElement.scrollWidth");
        assert!(width.as_u64().unwrap() <= 360, "{name} is {width} wide");
    }
    let mut ground = |scheme: &str| {
        let wanted = json!({ "name": "prefers-color-scheme", "value": scheme });
        browser.order("Emulation.setEmulatedMedia", json!({ "features": [wanted] }));
        browser.value("getComputedStyle(document.body).backgroundColor")
    };
    assert_eq!(ground("light"), "rgb(255, 255, 255)");
    assert_eq!(ground("dark"), "rgb(20, 24, 28)");
}

/// The server returns 256 clients in one answer; the page shows all that match its filter.
fn more_clients_than_one_answer_has(browser: &mut Browser, site: &WebServer) {
    let kept: Vec<_> =
        (0..300).map(|n| Four::connect(site.server.port, 0, &format!("client-{n:03}"))).collect();
    browser.value("location.hash = '#clients'");
    let rows = "document.querySelectorAll('#state-clients tbody tr').length";
    browser.wait_for(&format!("{rows} === 300"));
    browser.value("document.querySelector('#client-filter').value = 'client-29'");
    browser.value("document.querySelector('#client-filter').dispatchEvent(new Event('input'))");
    browser.wait_for(&format!("{rows} === 10"));
    drop(kept);
}

fn forms(browser: &mut Browser, site: &WebServer) {
    browser.value("document.querySelector('#offered-address').value = '127.0.0.1'");
    browser.value("document.querySelector('#offered-form').requestSubmit()");
    browser.wait_for("document.querySelector('#offered tbody').innerText.includes('root_squash')");
    browser.value("location.hash = '#explain'");
    let export = site.place.path(HOSTILE).display().to_string();
    browser.value(&format!("document.querySelector('#explain-export').value = {export:?}"));
    browser.value("document.querySelector('#explain-from').value = '127.0.0.1'");
    browser.value("document.querySelector('#explain-form').requestSubmit()");
    browser.wait_for("document.querySelector('#explain-answer').innerText === 'NFS3_OK: granted'");
    browser.value("document.querySelector('#explain-from').value = 'nowhere'");
    browser.value("document.querySelector('#explain-form').requestSubmit()");
    browser.wait_for("document.querySelector('#explain-error').innerText.includes('IP')");
    let refused = |complaint: &String| complaint.contains("400");
    assert!(browser.complaints.iter().all(refused), "{:?}", browser.complaints);
    browser.complaints.clear();
}
