use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result};

use super::case::{Case, Configuration, Files, HIDDEN_FILES, Part};
use super::goal::percent_more;
use super::programs::Programs;
use crate::instructions::callgrind;

/// The function whose instructions are counted.
const COUNTED: &str = "--toggle-collect=*identity*counted*";

/// Instructions by case and part.
pub(super) type Counts = BTreeMap<(Case, Part), u64>;

/// Counts the instructions of each; as many at a time as there are processors.
pub(super) fn all(programs: &Programs, tree: &Path, cases: &[(Case, Part)]) -> Result<Counts> {
    let queue = Mutex::new(cases.iter());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let work = || -> Result<Vec<_>> {
        let mut done = Vec::new();
        while let Some(&(case, part)) = next() {
            let tree = tree.to_string_lossy();
            let words = ["identity", "count", &tree, &case.to_string(), &part.to_string()];
            let count = callgrind(programs.of(&case), &[COUNTED], &words);
            done.push(((case, part), count.with_context(|| case.to_string())?));
        }
        Ok(done)
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let mut counts = Counts::new();
        for worker in workers {
            counts.extend(worker.join().map_err(|_| anyhow::anyhow!("panic"))??);
        }
        Ok(counts)
    })
}

/// Prints all configurations, walk and listing alone, against MNU with the same files.
pub(super) fn table(counts: &Counts) {
    println!("\ninstructions a file: GETATTR and READDIRPLUS, and READDIRPLUS alone");
    println!("          entries  files       walk            listing");
    for (case, part) in counts.keys().filter(|(_, part)| *part == Part::Walk) {
        let base = Case::new(Configuration::Mnu, 1000, case.files);
        let told = [*part, Part::List].map(|part| {
            let count = |case| counts.get(&(case, part)).copied().unwrap_or_default();
            let (own, base) = (count(*case), count(base));
            format!("{:6.1} {:+6.2} %", own as f64 / case.seen() as f64, percent_more(own, base))
        });
        let Case { configuration, entries, files } = case;
        println!("{configuration:9}{entries:8}  {files:6}  {}  {}", told[0], told[1]);
    }
}

/// Prints the cost of hidden files. Returns whether it is less than that of visible files for every
/// count.
pub(super) fn line(counts: &Counts) -> bool {
    println!("\ninstructions of listing a directory of which nothing is seen");
    let count = |case: Case| counts.get(&(case, Part::List)).copied().unwrap_or_default();
    let empty = count(Case::EMPTY);
    println!("VAN, empty {empty:>23}");
    HIDDEN_FILES.iter().fold(true, |all, &files| {
        let [hidden, shown] = [Configuration::Clk, Configuration::Mnu]
            .map(|configuration| count(Case::new(configuration, 1000, Files::Hidden(files))));
        let each = |count: u64| count.saturating_sub(empty) as f64 / files as f64;
        let is_less = 0 < hidden && hidden < shown;
        println!(
            "CLK, {files:>6} hidden {hidden:>15}   {:7.1} a file, shown {:7.1}   {}   {:.1} x \
             empty",
            each(hidden),
            each(shown),
            if is_less { "met" } else { "DEARER than to show them" },
            hidden as f64 / empty as f64,
        );
        all && is_less
    })
}
