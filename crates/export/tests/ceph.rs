//! Exports whose files are in a Ceph file system, as they are loaded.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::{Diagnostic, ExportRequest, HandleKey, Plan, Source, Sources, load};
use comity_vfs::Fs;

fn memory(_: &ExportRequest<'_>) -> Result<Arc<dyn Fs>, String> {
    Ok(Arc::new(Memory::new(MemoryOptions::default()).map_err(|status| status.to_string())?))
}

fn loaded(text: &str, old: Option<&Plan>) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let text = Source::Text { name: "e".into(), text: text.into() };
    load(&Sources::new(vec![text]), &memory, HandleKey::new([1; 16]), old)
}

/// The diagnostics of a configuration, and true if it is accepted.
fn found(text: &str) -> (bool, Vec<String>) {
    let (taken, findings) = match loaded(text, None) {
        Ok((_, findings)) => (true, findings),
        Err(findings) => (false, findings),
    };
    (taken, findings.iter().map(ToString::to_string).collect())
}

#[test]
fn options_of_ceph_go_together_and_the_path_of_the_export_is_only_a_name() {
    let errors = |text: &str| {
        let (taken, found) = found(text);
        assert!(!taken, "{text}");
        found
    };
    let alone = errors("/a *(ro,ceph_id=x)");
    assert_eq!(alone, ["e:1:1: options ceph_conf, ceph_id and ceph_fs need ceph=PATH beside them"]);
    let mixed = errors("/a 192.0.2.1(ro,ceph=/x) 192.0.2.2(ro,ceph=/y)");
    assert!(mixed.iter().any(|it| it.contains("option ceph: all clients")), "{mixed:?}");
    assert!(errors("/a *(ro,ceph=x)")[0].contains("not absolute"));
    let any = |text: &str, part: &str| errors(text).iter().any(|it| it.contains(part));
    assert!(any("/a *(ro,ceph=/x,mountpoint)", "option mountpoint"));
    assert!(any("/a *(ro,ceph=/x,refer=/a@b)", "option refer"));
    assert!(errors("/a *(ro,ceph=/x,ceph_fs=a/b)")[0].contains("is no name in Ceph"));
    // The directories are compared, not the names.
    let (taken, found) = found("/a *(ro,ceph=/x/y)\n/b *(ro,ceph=/x)\n/a/c *(ro,ceph=/z)");
    assert!(taken && found.iter().all(|it| !it.contains("/a/c")), "{found:?}");
}

#[test]
fn an_export_of_ceph_is_opened_anew_only_if_its_options_change() {
    let text = |fs: &str| format!("/tmp *(ro,ceph=/x{fs})");
    let plan = loaded(&text(""), None).unwrap().0;
    let top = |plan: &Plan| plan.exports()[0].top();
    let same = loaded(&text(""), Some(&plan)).unwrap().0;
    assert_eq!(top(&same), top(&plan));
    let other = loaded(&text(",ceph_fs=b"), Some(&plan)).unwrap().0;
    assert_ne!(top(&other), top(&plan));
}
