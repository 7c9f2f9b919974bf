use super::judgement::Judged;
use super::sample::{CHAIN_LENGTHS, RoundCosts, SIZES};

/// Prints the table.
pub(super) fn print(lines: &[Judged]) {
    println!("{:56} {:>13}  {:32} {:16}", "", "2003", "now", "bound");
    for Judged { measure, history, ours, bound, is_met, is_known } in lines {
        let verdict = match (is_met, is_known) {
            (None, _) => "",
            (Some(true), _) => "met",
            (Some(false), true) => "missed, as is known",
            (Some(false), false) => "MISSED",
        };
        let line = format!("{measure:56} {history:>13}  {ours:32} {bound:16} {verdict}");
        println!("{}", line.trim_end());
    }
}

/// Prints the figures by length of chain, and by number of decisions kept.
pub(super) fn print_series(sample: &RoundCosts) {
    println!("\na first decision about a file, by links of the chain");
    for (links, nanoseconds) in CHAIN_LENGTHS.iter().zip(&sample.chains) {
        println!("{links:>10} {:>10.2} us", nanoseconds / 1e3);
    }
    println!(
        "\nLOOKUP and READ of 250 files drawn by chance, by decisions kept (2003: level at 256)"
    );
    let Some((account, sizes)) = sample.sizes.split_first() else { return };
    println!("{:>10} {:>10.2} us", "NK", account / 1e3);
    for (kept, nanoseconds) in SIZES.iter().zip(sizes) {
        let (us, more) = (nanoseconds / 1e3, (nanoseconds / account - 1.0) * 100.0);
        println!("{kept:>10} {us:>10.2} us  {more:+6.1} %");
    }
}
