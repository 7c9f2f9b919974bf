//! The report of a result that was written by hand: its files, and how a browser shows it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod browser;
mod made;

use std::fs;
use std::path::Path;

use comity_bench::report;
use comity_bench::suite::Store;

/// Writes the result and its report to a folder; returns the page.
fn written(directory: &Path) -> String {
    Store::create(directory).unwrap().write(&made::outcome()).unwrap();
    let page = report::write(directory, &made::workloads()).unwrap();
    fs::read_to_string(page).unwrap()
}

#[test]
fn the_page_shows_findings_noise_and_published_figures() {
    let directory = tempfile::tempdir().unwrap();
    let page = written(directory.path());
    assert!(page.contains("times better than peer:ganesha (95 %:"), "no finding");
    assert!(page.contains("selfscale: peer:ganesha has 3 plateaus"), "no plateaus");
    assert!(page.contains("phase, stat"), "no figure is named");
    assert!(page.contains("noisy, \u{b1}"), "noise is not said");
    assert!(page.contains("900 /s (a P-III of 2002)"), "no history");
    assert!(page.contains("history: Figure 3"), "history is not marked");
    assert!(page.contains("7.5 programs wanted its 2 processors"), "load is not said");
    assert!(page.contains("Focal vectors"), "no self-scaling");
    assert!(page.contains("RPCs sent in a round"), "no RPC counts");
}

#[test]
fn two_rounds_are_too_few_to_call_a_figure_noisy() {
    let directory = tempfile::tempdir().unwrap();
    assert!(written(directory.path()).contains(">1 of 9<"), "five rounds are enough");
    let mut outcome = made::outcome();
    outcome.workloads[0].rounds.retain(|round| round.round < 2);
    Store::create(&directory.path().join("two")).unwrap().write(&outcome).unwrap();
    let page = report::write(&directory.path().join("two"), &made::workloads()).unwrap();
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("too few rounds to say"), "the page does not say so");
    assert!(!page.contains("0 of 9"), "none is called noisy");
}

#[test]
fn text_of_a_result_is_escaped() {
    let directory = tempfile::tempdir().unwrap();
    let page = written(directory.path());
    assert!(!page.contains("<b>&"), "a target's name is markup");
    assert!(!page.contains("</ul><script>"), "a note is markup");
    for foreign in ["http://", "https://", " src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign} loads something");
    }
}

#[test]
fn every_plot_is_a_file_too() {
    let directory = tempfile::tempdir().unwrap();
    let page = written(directory.path());
    let files: Vec<_> =
        fs::read_dir(directory.path().join(report::PLOTS_FOLDER)).unwrap().collect();
    assert_eq!(files.len(), page.matches("<svg class=\"plot\"").count());
    assert!(files.len() >= 14, "{}", files.len());
    for file in files {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(text.starts_with("<svg xmlns=") && text.contains("prefers-color-scheme"));
        assert!(!text.contains("NaN") && !text.contains("inf"), "a coordinate is not a number");
    }
}

#[test]
fn an_empty_result_has_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut outcome = made::outcome();
    outcome.workloads.clear();
    outcome.targets.clear();
    outcome.complete = false;
    Store::create(directory.path()).unwrap().write(&outcome).unwrap();
    let page = report::write(directory.path(), &[]).unwrap();
    assert!(fs::read_to_string(page).unwrap().contains("ended before all was measured"));
}

#[test]
fn a_browser_shows_the_page_and_sorts_its_tables_without_errors() {
    let Some(browser) = browser::find() else {
        println!("skipped: no Chromium here (Debian package `chromium`)");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let page = written(directory.path());
    let seen = browser::look(&browser, directory.path(), &page);
    assert!(seen.complaints.is_empty(), "{:?}", seen.complaints);
    assert_eq!(seen.number("plots"), page.matches("<svg class=\"plot\"").count(), "{seen:?}");
    assert_eq!(seen.number("empty-plots"), 0, "{seen:?}");
    assert_eq!(seen.number("tables"), page.matches("<table").count(), "{seen:?}");
    assert_eq!(seen.number("unsorted"), 0, "{seen:?}");
    assert_eq!(seen.number("tip"), 1, "{seen:?}");
    assert_eq!(seen.number("too-wide"), 0, "{seen:?}");
    assert!(seen.number("unnamed") == 0, "{seen:?}");
}

#[test]
fn no_column_is_cut_off_where_three_targets_are_compared() {
    let Some(browser) = browser::find() else {
        println!("skipped: no Chromium here (Debian package `chromium`)");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    Store::create(directory.path()).unwrap().write(&made::outcome_of_three()).unwrap();
    let page = report::write(directory.path(), &made::workloads()).unwrap();
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("nfs://server/export: times better, all figures"), "no other targets");
    let seen = browser::look(&browser, directory.path(), &page);
    assert_eq!(seen.number("cut-off"), 0, "{seen:?}");
    assert_eq!(seen.number("too-wide"), 0, "{seen:?}");
}
