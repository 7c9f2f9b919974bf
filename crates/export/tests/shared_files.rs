//! Exports that show the same files are found, whatever their paths are.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use comity_backend::{Passthrough, PassthroughOptions};
use comity_export::{ExportRequest, HandleKey, Source, Sources, load};
use comity_vfs::Fs;

fn sources(text: &str) -> Sources {
    let text = Source::Text { name: "e".into(), text: text.into() };
    Sources { netgroups: "/nonexistent".into(), ..Sources::new(vec![text]) }
}

/// Serves a directory of one folder for each path of the configuration.
fn on_one_volume(folder: &Path, request: &ExportRequest<'_>) -> Result<Arc<dyn Fs>, String> {
    let below = match request.path.to_str() {
        Some("/a/b") => "b",
        Some("/d") => "d",
        _ => "",
    };
    let opened = Passthrough::open(&folder.join(below), PassthroughOptions::default());
    Ok(Arc::new(opened.map_err(|error| error.to_string())?))
}

#[test]
fn exports_of_the_same_files_are_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    ["b", "d"].iter().for_each(|name| std::fs::create_dir(folder.path().join(name)).unwrap());
    let open = |request: &ExportRequest<'_>| on_one_volume(folder.path(), request);
    let text = "/a/b *\n/a *\n/c *\n/d *";
    let (_, findings) = load(&sources(text), &open, HandleKey::new([7; 16]), None).unwrap();
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let rest = ": a file that is open through both is not delegated";
    assert_eq!(
        findings,
        [
            format!("e:2:1: warning: /a holds /a/b (e:1:1){rest}"),
            format!("e:3:1: warning: /c is the same directory as /a (e:2:1){rest}"),
        ]
    );
}

#[test]
fn directories_that_make_programs_wait_are_in_one_export_only() {
    let folder = tempfile::tempdir().unwrap();
    ["b", "d"].iter().for_each(|name| std::fs::create_dir(folder.path().join(name)).unwrap());
    let open = |request: &ExportRequest<'_>| on_one_volume(folder.path(), request);
    // They are refused for another reason as well: these file systems watch no programs.
    let waits = |text: &str| -> Vec<String> {
        let loaded = load(&sources(text), &open, HandleKey::new([7; 16]), None);
        let findings = loaded.err().unwrap().into_iter().map(|finding| finding.to_string());
        findings.filter(|finding| finding.contains("waits for clients")).collect()
    };
    let rest = "with dir_delegations=local a change through one of them waits for clients of the \
                other: write local-late in its place";
    let waiting = "(dir_delegations=local)";
    for (text, refused) in [
        (format!("/a/b *\n/a *{waiting}"), "e:2:1: /a holds /a/b (e:1:1)"),
        (format!("/a/b *{waiting}\n/a *"), "e:2:1: /a holds /a/b (e:1:1)"),
        (format!("/a *{waiting}\n/c *"), "e:2:1: /c is the same directory as /a (e:1:1)"),
    ] {
        assert_eq!(waits(&text), [format!("{refused}: {rest}")], "{text}");
    }
    assert_eq!(waits(&format!("/a/b *{waiting}\n/d *{waiting}")), [""; 0]);
}

/// Opens the directory that the configuration names.
fn local(request: &ExportRequest<'_>) -> Result<Arc<dyn Fs>, String> {
    let opened = Passthrough::open(request.path, PassthroughOptions::default());
    Ok(Arc::new(opened.map_err(|error| error.to_string())?))
}

#[test]
fn exports_nest_by_their_true_paths_and_each_one_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir_all(path("tree/b/c")).unwrap();
    std::fs::create_dir_all(path("trees")).unwrap();
    std::os::unix::fs::symlink("tree/b", path("link")).unwrap();
    let names = ["link", "tree", "trees", "tree/b/c"];
    let text: String = names.iter().map(|name| format!("{} *\n", path(name))).collect();
    let (_, findings) = load(&sources(&text), &local, HandleKey::new([7; 16]), None).unwrap();
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let by = ", by a bind mount or a link: a file that is open through both is not delegated";
    let (link, tree, inner) = (path("link"), path("tree"), path("tree/b/c"));
    assert_eq!(
        findings,
        [
            format!("e:2:1: warning: {tree} holds {link} (e:1:1){by}"),
            format!("e:4:1: warning: {inner} lies in {link} (e:1:1){by}"),
        ]
    );
}
