//! A thread that serves calls has the identity of its last caller. Code that uses paths which no
//! caller named must act as the server: a function that does so takes a `comity_vfs::AsServer`, or
//! makes one.
//!
//! Code that runs only while the server starts is no exception: an `AsServer` costs nothing there.
//! Code of tests is one. Calls on descriptors are not looked at, because the kernel checked the
//! rights when the file was opened; nor are those of the verbs of a file system, which name files
//! by a directory's descriptor and a name.

mod file_work;
mod imports;

use super::Finding;
use super::sources::{Source, Tree};

/// Folders and files with code that runs on threads that serve calls.
const SERVED: &[&str] = &[
    "crates/backend/",
    "crates/daemon/",
    "crates/export/",
    "crates/granting/",
    "crates/grants/",
    "crates/nfs3/",
    "crates/nfs4/",
    "crates/store/",
];

/// Finds functions that work on files by path without evidence of the server's identity.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let served = |source: &&Source| {
        !source.is_test && SERVED.iter().any(|folder| source.path.starts_with(folder))
    };
    for source in tree.sources.iter().filter(served) {
        for (call, line) in file_work::without_evidence(&source.syntax) {
            findings.push(Finding::new(
                (&source.path, line),
                format!("`{call}` is done under the identity of the last caller"),
                "take an `&AsServer`",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let sources = vec![Source::parse(path, text).unwrap()];
        let mut findings = Vec::new();
        check(&Tree { texts: Vec::new(), sources }, &mut findings);
        let call = |what: String| what.split('`').nth(1).unwrap().to_owned();
        findings.into_iter().map(|finding| (finding.line, call(finding.what))).collect()
    }

    /// The call that is found in a function of the grants' storage with this body.
    fn call(imports: &str, body: &str) -> Option<String> {
        let text = format!("{imports}\nfn f(path: &Path) {{ {body} }}");
        found("crates/store/src/a.rs", &text).pop().map(|(_, call)| call)
    }

    #[test]
    fn a_path_that_is_looked_at_without_the_servers_identity_is_found() {
        let look = "fn f() {\n    std::fs::metadata(\"/\");\n}";
        let expected = [(2, "std::fs::metadata".to_owned())];
        assert_eq!(found("crates/export/src/a.rs", look), expected);
        assert_eq!(found("crates/grants/src/a.rs", look), expected);
        assert_eq!(found("crates/daemon/src/load/a.rs", look), expected);
        assert!(found("crates/bench/src/a.rs", look).is_empty());
        assert!(found("crates/export/tests/a.rs", look).is_empty());
        let in_test = format!("#[cfg(test)]\nmod tests {{ {look} }}");
        assert!(found("crates/export/src/a.rs", &in_test).is_empty());
    }

    #[test]
    fn evidence_must_be_in_the_function_that_works_on_the_file() {
        let work = "fs::remove_file(path);";
        let of =
            |functions: &str| found("crates/store/src/a.rs", &format!("use std::fs;{functions}"));
        assert!(of(&format!("fn f(_: &AsServer, path: &Path) {{ {work} }}")).is_empty());
        assert!(of(&format!("fn f() {{ let _server = AsServer::here()?; {work} }}")).is_empty());
        let method =
            "impl A { fn f(&self, server: &comity_vfs::AsServer) { fs::read(self.path); } }";
        assert!(of(method).is_empty());
        let beside = format!("fn f(_: &AsServer) {{}} fn g(path: &Path) {{ {work} }}");
        assert_eq!(of(&beside), [(1, "std::fs::remove_file".to_owned())]);
        let of_trait = format!("impl Medium for A {{ fn store(&self) {{ {work} }} }}");
        assert_eq!(of(&of_trait).len(), 1);
        let within = format!("fn f(_: &AsServer) {{ fn g() {{ {work} }} }}");
        assert_eq!(of(&within).len(), 1);
        assert_eq!(of(&format!("trait A {{ fn f() {{ {work} }} }}")).len(), 1);
    }

    #[test]
    fn file_work_is_found_however_it_is_written() {
        for (imports, body, expected) in [
            ("use std::fs::File;", "File::open(path)", "std::fs::File::open"),
            ("use std::fs::{self, File};", "fs::File::create(path)", "std::fs::File::create"),
            ("use std::fs::OpenOptions as O;", "O::new().open(path)", "std::fs::OpenOptions::new"),
            ("use std::fs::rename;", "rename(path, path)", "std::fs::rename"),
            ("use std::{fs as files};", "files::hard_link(path, path)", "std::fs::hard_link"),
            ("", "std::fs::create_dir_all(path)", "std::fs::create_dir_all"),
            ("", "[path].map(std::fs::read)", "std::fs::read"),
            (
                "use std::os::unix::fs::symlink;",
                "symlink(path, path)",
                "std::os::unix::fs::symlink",
            ),
            ("use rustix::fs::{open, Mode};", "open(path, f, m)", "rustix::fs::open"),
            ("use rustix::fs::{CWD, statx};", "statx(CWD, path, f, m)", "rustix::fs::statx"),
            ("", "path.exists()", ".exists()"),
            ("", "assert!(true, \"{}\", path.exists())", ".exists()"),
            ("use std::fs;", "if true { spawn(|| fs::read(path)) }", "std::fs::read"),
        ] {
            assert_eq!(call(imports, body).as_deref(), Some(expected), "{imports} {body}");
        }
    }

    #[test]
    fn work_on_descriptors_and_other_functions_of_these_names_are_not_found() {
        for (imports, body) in [
            ("use std::fs::File;", "File::from(descriptor).sync_all()"),
            (
                "use std::fs::{File, Permissions};",
                "file.set_permissions(Permissions::from_mode(1))",
            ),
            ("use crate::store;", "store::open(path); open(path); rename(path)"),
            ("use rustix::fs::{openat, statx};", "openat(dir, name); statx(&file, c\"\", f, m)"),
            ("use rustix::fs::{CWD, openat};", "openat(CWD, link_of(file), f, m); g(path, [CWD])"),
            ("use std::fs::Metadata;", "metadata.is_dir()"),
        ] {
            assert_eq!(call(imports, body), None, "{imports} {body}");
        }
    }
}
