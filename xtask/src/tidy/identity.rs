//! A thread that serves calls has the identity of its last caller. Code that uses paths which no
//! caller named must act as the server: `comity_vfs::AsServer`.

use super::Finding;
use super::sources::{Source, Tree};

/// Folders with code that runs on threads that serve calls.
const SERVED: &[&str] =
    &["crates/export/", "crates/nfs3/", "crates/nfs4/", "crates/daemon/src/service"];

/// Calls that access a path.
const CALLS: &[&str] =
    &["fs::metadata(", "fs::read(", "fs::read_dir(", "statx(", "statvfs(", ".exists()"];

/// Finds files that access paths without evidence of the server's identity.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let served = |source: &&Source| {
        !source.is_test && SERVED.iter().any(|folder| source.path.starts_with(folder))
    };
    for source in tree.sources.iter().filter(served) {
        let text = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        let call = CALLS.iter().find_map(|call| text.find(call).map(|at| (call, at)));
        let Some((call, at)) = call.filter(|_| !text.contains("AsServer")) else { continue };
        let line = text.get(..at).unwrap_or_default().lines().count();
        findings.push(Finding::new(
            (&source.path, line),
            format!("`{call}` is done under the identity of the last caller"),
            "take an `AsServer` first",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_looked_at_without_the_servers_identity_is_found() {
        let found = |path: &str, text: &str| {
            let sources = vec![Source::parse(path, text).unwrap()];
            let mut findings = Vec::new();
            check(&Tree { texts: Vec::new(), sources }, &mut findings);
            findings.iter().map(|finding| finding.line).collect::<Vec<_>>()
        };
        let look = "fn f() {\n    std::fs::metadata(\"/\");\n}";
        assert_eq!(found("crates/export/src/a.rs", look), vec![2]);
        assert!(found("crates/bench/src/a.rs", look).is_empty());
        let as_server = format!("use comity_vfs::AsServer;\n{look}");
        assert!(found("crates/export/src/a.rs", &as_server).is_empty());
        let in_test = format!("#[cfg(test)]\nmod tests {{ {look} }}");
        assert!(found("crates/export/src/a.rs", &in_test).is_empty());
    }
}
