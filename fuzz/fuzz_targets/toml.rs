//! The TOML configuration: any text makes a plan, or findings that say where.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use comity_export::Source;
use libfuzzer_sys::fuzz_target;

/// Configurations are read from files only.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("comity-fuzz-{}.toml", std::process::id())));

fuzz_target!(|text: &[u8]| {
    std::fs::write(&*FILE, text).expect("a file in the temporary folder");
    if let Err(findings) = comity_fuzz::plan(Source::Config(FILE.clone())) {
        assert!(!findings.is_empty(), "an error without a finding");
    }
});
