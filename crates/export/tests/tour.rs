//! The configuration in docs/tour-two-sites.md can be loaded, and does what the page says.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::{ExportRequest, HandleKey, Source, Sources, load};
use comity_vfs::Fs;

#[test]
fn the_tour_has_ten_exports_to_ten_sites_that_share_one_group() {
    let page = include_str!("../../../docs/tour-two-sites.md");
    let text = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("comity.toml");
    std::fs::write(&file, text).unwrap();
    let netgroups = "/nonexistent".into();
    let sources = Sources { netgroups, ..Sources::new(vec![Source::Config(file)]) };
    let open = |_: &ExportRequest<'_>| {
        Ok(Arc::new(Memory::new(MemoryOptions::default()).unwrap()) as Arc<dyn Fs>)
    };
    let (plan, findings) = load(&sources, &open, HandleKey::new([1; 16]), None)
        .unwrap_or_else(|findings| panic!("{findings:?}"));
    let said: Vec<_> = findings.iter().map(|finding| finding.text.as_str()).collect();
    assert!(said.len() == 1 && said[0].contains("share server gids 100100"), "{said:?}");
    let offered = |address: &str| {
        let offered = plan.offered(address.parse::<std::net::IpAddr>().unwrap());
        offered.iter().map(|o| o.path().display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(plan.exports().len(), 10);
    assert_eq!(offered("203.0.113.7").len(), 7, "south");
    assert_eq!(offered("2001:db8:2::9"), ["/srv/samples", "/srv/papers", "/srv/catalogue"]);
    assert_eq!(offered("192.0.2.200"), [""; 0], "a stranger");
    let shown = plan.offered("192.0.2.5".parse::<std::net::IpAddr>().unwrap())[0].to_string();
    assert!(page.contains(&shown), "{shown}");
}
