//! A server of exports in memory: its configuration, its plan, and the current caller.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::{
    ExportRequest, HandleKey, Operation, Plan, Question, Source, Sources, explain, load,
};
use comity_vfs::{Fs, Mode};

use crate::caller::Caller;
use crate::hosts::Hosts;
use crate::objects;

pub(crate) struct World {
    text: String,
    /// The folder of the files that the server reads.
    folder: tempfile::TempDir,
    plan: Option<Plan>,
    /// The file system of each exported path; it is kept over reloads.
    files: RefCell<BTreeMap<PathBuf, Arc<Memory>>>,
    caller: Caller,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            text: String::new(),
            folder: tempfile::tempdir().unwrap(),
            plan: None,
            files: RefCell::default(),
            caller: Caller::parse(&["10.0.0.1", "0", "0"]),
        }
    }

    /// Adds a line to the configuration that the next `load` reads.
    pub(crate) fn configure(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Does a command; returns its results.
    pub(crate) fn run(&mut self, said: &str) -> Vec<String> {
        let words: Vec<&str> = said.split_whitespace().collect();
        match words[0] {
            "load" => {
                let text = std::mem::take(&mut self.text).into_bytes();
                self.load(Source::Text { name: "exports".into(), text })
            }
            "load-toml" => {
                let path = self.write("c.toml");
                self.load(Source::Config(path))
            }
            "netgroups" => {
                self.write("netgroup");
                Vec::new()
            }
            "as" => self.become_caller(&words[1..]),
            "offered" => self.offered(words[1].parse().unwrap()),
            "explain" => self.explain(&words),
            _ => self.look(&words),
        }
    }

    /// Writes the lines of configuration to a file.
    fn write(&mut self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, std::mem::take(&mut self.text)).unwrap();
        path
    }

    fn become_caller(&mut self, words: &[&str]) -> Vec<String> {
        self.caller = Caller::parse(words);
        Vec::new()
    }

    fn open(&self, request: &ExportRequest<'_>) -> Arc<dyn Fs> {
        let options = MemoryOptions { root_mode: Mode::new(0o777), ..MemoryOptions::default() };
        let mut files = self.files.borrow_mut();
        let made = || Arc::new(Memory::new(options).unwrap());
        Arc::clone(files.entry(request.path.to_owned()).or_insert_with(made)) as Arc<dyn Fs>
    }

    fn load(&mut self, source: Source) -> Vec<String> {
        let netgroups = self.folder.path().join("netgroup");
        let sources =
            Sources { resolver: Arc::new(Hosts), netgroups, ..Sources::new(vec![source]) };
        let opened = |request: &ExportRequest<'_>| Ok(self.open(request));
        let loaded = load(&sources, &opened, HandleKey::new([1; 16]), self.plan.as_ref());
        let (outcome, diagnostics) = match loaded {
            Ok((plan, diagnostics)) => {
                self.plan = Some(plan);
                ("loaded", diagnostics)
            }
            Err(diagnostics) => ("refused", diagnostics),
        };
        let folder = format!("{}/", self.folder.path().display());
        let diagnostics = diagnostics.iter().map(|one| one.to_string().replace(&folder, ""));
        std::iter::once(outcome.to_owned()).chain(diagnostics).collect()
    }

    fn plan(&self) -> &Plan {
        self.plan.as_ref().expect("a plan is loaded")
    }

    fn offered(&self, peer: IpAddr) -> Vec<String> {
        self.plan().learn_name(peer);
        let mut found: Vec<_> = self.plan().offered(peer).iter().map(ToString::to_string).collect();
        if found.is_empty() {
            found.push("nothing".into());
        }
        found
    }

    /// `explain OPERATION EXPORT PATH`, for the current caller.
    fn explain(&self, words: &[&str]) -> Vec<String> {
        let operation = words[1].parse::<Operation>().unwrap();
        let (export, path) = (words[2].into(), words.get(3).copied().unwrap_or_default().into());
        let (from, caller) = (self.caller.peer.ip(), self.caller.cred());
        let found = explain(self.plan(), &Question { export, path, from, caller, operation });
        let decisions = found.decisions.iter().map(|decision| {
            let place = decision.place.as_ref().map(|place| format!(" [{place}]"));
            format!("{}: {}{}", decision.about, decision.text, place.unwrap_or_default())
        });
        decisions.chain([format!("{:?}", found.answer)]).collect()
    }

    fn look(&self, words: &[&str]) -> Vec<String> {
        let found = objects::run(self.plan(), &self.caller, words);
        match found.unwrap_or_else(|| panic!("no command {:?}", words[0])) {
            Ok(results) if results.is_empty() => vec!["ok".into()],
            Ok(results) => results,
            Err(refusal) => vec![format!("{refusal:?}")],
        }
    }
}
