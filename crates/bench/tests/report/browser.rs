//! Loads a page in headless Chromium and reads what it shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names under which Chromium is installed.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The longest time that the browser may take, in seconds.
const SECONDS_MAX: &str = "120";

/// Runs before anything else in the page and collects uncaught errors.
const WATCH: &str = r#"
window.errors = [];
addEventListener("error", (event) => errors.push(event.message));
"#;

/// Runs in the page: sorts every table both ways by every column, points at a mark of a plot, and
/// counts elements.
const PROBE: &str = include_str!("probe.js");

/// The page as the browser saw it.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The messages on the console, and uncaught errors.
    pub(crate) complaints: Vec<String>,
    counts: BTreeMap<String, usize>,
}

impl Seen {
    pub(crate) fn number(&self, name: &str) -> usize {
        self.counts.get(name).copied().unwrap_or(usize::MAX)
    }
}

/// Returns the path of Chromium, if it is installed.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places =
        std::env::split_paths(&path).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    places.into_iter().find(|place| place.is_file())
}

/// Opens a copy of the page with these two scripts added.
pub(crate) fn look(browser: &Path, directory: &Path, page: &str) -> Seen {
    let watched = page.replacen("<head>", &format!("<head><script>{WATCH}</script>"), 1).replacen(
        "</body>",
        &format!("<script>{PROBE}</script></body>"),
        1,
    );
    let copy = directory.join("watched.html");
    fs::write(&copy, watched).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let done = Command::new("timeout")
        .arg(SECONDS_MAX)
        .arg(browser)
        // The sandbox needs rights that a container may not give; the page is our own.
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--enable-logging=stderr", "--dump-dom", "--window-size=1280,900"])
        .args(["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", copy.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    let log = String::from_utf8_lossy(&done.stderr);
    let verdict =
        text.split("<pre id=\"verdict\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let verdict = verdict.unwrap_or_else(|| panic!("the page printed no result; {log}"));
    let mut complaints: Vec<String> =
        log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    let mut counts = BTreeMap::new();
    for line in verdict.lines() {
        match line.split_once(' ') {
            Some(("error", what)) => complaints.push(what.to_owned()),
            Some((name, count)) => drop(counts.insert(name.to_owned(), count.parse().unwrap())),
            None => {}
        }
    }
    Seen { complaints, counts }
}
