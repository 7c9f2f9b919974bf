//! The floors of the crates: a crate may use only crates below it.

use toml::{Table, Value};

use super::Finding;
use super::sources::{Text, Tree};

/// A crate of the workspace.
struct CrateRule {
    /// The folder below `crates/`; the package has the prefix `comity-`.
    name: &'static str,
    /// The floor; 0 is the lowest one.
    floor: u8,
    /// The crates that it may use.
    uses: Uses,
}

/// The crates that a crate may use; its tests may use others.
enum Uses {
    /// Only these crates.
    These(&'static [&'static str]),
    /// Every crate of a lower floor.
    Below,
}

use Uses::{Below, These};

/// All crates. A change that adds a crate adds its row here.
const CRATES: &[CrateRule] = &[
    // nouns
    CrateRule { name: "xdr", floor: 0, uses: These(&["xdr-derive"]) },
    CrateRule { name: "xdr-derive", floor: 0, uses: These(&[]) },
    CrateRule { name: "vfs", floor: 0, uses: These(&[]) },
    CrateRule { name: "ranges", floor: 0, uses: These(&[]) },
    CrateRule { name: "keys", floor: 0, uses: These(&[]) },
    // words
    CrateRule { name: "keynote", floor: 1, uses: These(&["keys"]) },
    CrateRule { name: "rpc", floor: 1, uses: These(&["xdr"]) },
    CrateRule { name: "proto", floor: 1, uses: These(&["xdr"]) },
    CrateRule { name: "idmap", floor: 1, uses: These(&["vfs", "ranges"]) },
    CrateRule { name: "cloak", floor: 1, uses: These(&["vfs", "ranges"]) },
    CrateRule { name: "conformance", floor: 1, uses: These(&["vfs"]) },
    CrateRule { name: "load", floor: 1, uses: These(&[]) },
    CrateRule { name: "heads", floor: 1, uses: These(&[]) },
    // identity
    CrateRule { name: "credential", floor: 2, uses: These(&["rpc", "vfs", "xdr", "keys"]) },
    CrateRule { name: "placement", floor: 2, uses: These(&["vfs"]) },
    CrateRule { name: "grants", floor: 2, uses: These(&["vfs", "keys", "keynote"]) },
    // rules
    CrateRule {
        name: "export",
        floor: 3,
        uses: These(&[
            "vfs",
            "ranges",
            "keys",
            "credential",
            "grants",
            "idmap",
            "cloak",
            "placement",
        ]),
    },
    CrateRule { name: "state", floor: 3, uses: These(&["vfs", "proto", "credential", "xdr"]) },
    CrateRule { name: "tls", floor: 3, uses: These(&["vfs", "credential", "keys"]) },
    // coherence
    CrateRule {
        name: "coherence",
        floor: 4,
        uses: These(&["vfs", "credential", "export", "state"]),
    },
    CrateRule { name: "programs", floor: 4, uses: These(&["proto", "rpc", "tls", "xdr"]) },
    // verbs, which may not use each other
    CrateRule {
        name: "store",
        floor: 5,
        uses: These(&["vfs", "keys", "keynote", "grants", "state"]),
    },
    CrateRule { name: "granting", floor: 5, uses: Below },
    CrateRule {
        name: "migrate",
        floor: 5,
        uses: These(&["proto", "rpc", "xdr", "tls", "export", "programs"]),
    },
    CrateRule { name: "nfs3", floor: 5, uses: Below },
    CrateRule { name: "nfs4", floor: 5, uses: Below },
    CrateRule {
        name: "remote",
        floor: 5,
        uses: These(&["proto", "rpc", "xdr", "keys", "credential", "tls", "idmap", "vfs"]),
    },
    CrateRule { name: "backend", floor: 5, uses: These(&["vfs"]) },
    CrateRule { name: "cache", floor: 5, uses: These(&["vfs"]) },
    CrateRule { name: "fuse", floor: 5, uses: These(&["vfs"]) },
    // shells
    CrateRule { name: "server", floor: 6, uses: Below },
    CrateRule { name: "bench", floor: 6, uses: Below },
    // service
    CrateRule { name: "daemon", floor: 7, uses: Below },
    CrateRule { name: "perf", floor: 7, uses: Below },
    // street
    CrateRule { name: "cli", floor: 8, uses: Below },
];

const TABLE: &str = "xtask/src/tidy/floors.rs";

/// Compares every `Cargo.toml` of the workspace with the table.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for text in &tree.texts {
        let folder = text.path.strip_prefix("crates/");
        if let Some(name) = folder.and_then(|rest| rest.strip_suffix("/Cargo.toml")) {
            check_crate(name, text, findings);
        }
    }
}

fn check_crate(name: &str, manifest: &Text, findings: &mut Vec<Finding>) {
    let at = |line| (manifest.path.as_str(), line);
    let Some(rule) = rule(name) else {
        let what = format!("crate `{name}` has no floor");
        findings.push(Finding::new(at(1), what, format!("give it a row in {TABLE}")));
        return;
    };
    for used in dependencies(&manifest.text) {
        if !may_use(rule, &used) {
            let line = line_of(&manifest.text, &format!("comity-{used}"));
            let what = format!("`{name}` (floor {}) may not use `{used}`", rule.floor);
            let remedy =
                format!("let the upper crate pass a value down; the floors are in {TABLE}");
            findings.push(Finding::new(at(line), what, remedy));
        }
    }
}

fn rule(name: &str) -> Option<&'static CrateRule> {
    CRATES.iter().find(|rule| rule.name == name)
}

fn may_use(user: &CrateRule, used: &str) -> bool {
    match user.uses {
        These(list) => list.contains(&used),
        Below => rule(used).is_some_and(|used| used.floor < user.floor),
    }
}

/// The workspace crates in a manifest's tables of dependencies, except those for tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let Ok(manifest) = manifest.parse::<Table>() else { return Vec::new() };
    let mut names = Vec::new();
    collect(&manifest, &mut names);
    for target in manifest.get("target").and_then(Value::as_table).into_iter().flatten() {
        target.1.as_table().into_iter().for_each(|table| collect(table, &mut names));
    }
    names
}

fn collect(table: &Table, names: &mut Vec<String>) {
    for kind in ["dependencies", "build-dependencies"] {
        let list = table.get(kind).and_then(Value::as_table);
        let ours = list.into_iter().flatten().filter_map(|(name, _)| name.strip_prefix("comity-"));
        names.extend(ours.map(str::to_owned));
    }
}

fn line_of(text: &str, start: &str) -> usize {
    text.lines().position(|line| line.starts_with(start)).map_or(1, |line| line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_of_the_table_go_down() {
        for user in CRATES {
            let These(list) = user.uses else { continue };
            for used in list {
                let floor = rule(used).expect(used).floor;
                let part = (user.name, *used) == ("xdr", "xdr-derive");
                assert!(floor < user.floor || part, "{} -> {used}", user.name);
            }
        }
    }

    #[test]
    fn an_arrow_that_goes_up_is_found_with_its_line() {
        let text = "[dependencies]\ncomity-vfs.workspace = true\ncomity-server.workspace = true\n\
                    [dev-dependencies]\ncomity-cli.workspace = true\n";
        let manifest = Text { path: "crates/backend/Cargo.toml".into(), text: text.into() };
        let mut findings = Vec::new();
        check_crate("backend", &manifest, &mut findings);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].line, 3);
    }

    #[test]
    fn neighbours_and_strangers_are_found() {
        assert!(!may_use(rule("nfs3").unwrap(), "backend"));
        assert!(may_use(rule("nfs3").unwrap(), "export"));
        let manifest = Text { path: "crates/attic/Cargo.toml".into(), text: String::new() };
        let mut findings = Vec::new();
        check_crate("attic", &manifest, &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
