//! exports(5): any text makes a plan, or findings that say where.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use comity_export::Source;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    match comity_fuzz::plan(Source::Text { name: "fuzz".into(), text: text.to_vec() }) {
        Ok((plan, _)) => {
            for export in plan.exports() {
                let _ = export.rules(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
            }
        }
        Err(findings) => assert!(!findings.is_empty(), "an error without a finding"),
    }
});
