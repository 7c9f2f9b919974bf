use super::plain::PlainCall;
use super::postmark::OverTls;
use super::sample::{CREDENTIALS, OF_ONE_FOLDER, RoundCosts};

/// A line of the table.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) measure: String,
    /// The figure of 2003.
    pub(super) history: &'static str,
    pub(super) ours: String,
    pub(super) bound: &'static str,
    /// True if the bound is met; `None` if there is no bound.
    pub(super) is_met: Option<bool>,
    /// A bound that is known to be missed in this case, so that `--check` does not fail by it.
    pub(super) is_known: bool,
}

/// Number of files of the build of 2003, as a multiple of that of the search.
const BUILD_FILES: f64 = 4_500.0;

/// All lines of the table.
pub(super) fn lines(
    plain: &[PlainCall],
    sample: &RoundCosts,
    (over_tls, files): (&OverTls, u64),
) -> Vec<Judged> {
    let plain = plain.iter().map(line_of_plain);
    plain.chain(work(sample, over_tls)).chain(decisions(sample, files)).collect()
}

/// Returns whether every line that is judged meets its bound.
pub(super) fn holds(lines: &[Judged]) -> bool {
    lines.iter().all(|line| line.is_known || line.is_met != Some(false))
}

fn line_of_plain(plain: &PlainCall) -> Judged {
    let percent = plain.more_percent();
    Judged {
        measure: format!("NK, {}: instructions more than without keys", plain.operation),
        history: "about equal",
        ours: format!("{percent:+.2} % ({} and {})", plain.with, plain.without),
        bound: "below 1 %",
        is_met: Some(percent < 1.0),
        is_known: false,
    }
}

fn work(sample: &RoundCosts, over_tls: &OverTls) -> Vec<Judged> {
    let of_nk = |ratio: f64| format!("{:.1} % of NK", ratio * 100.0);
    let postmark = sample.postmark.account / sample.postmark.key;
    vec![
        judged("PostMark over TLS, COLD", "under half", of_nk(over_tls.cold), "at least 90 %")
            .met(over_tls.cold >= 0.9),
        judged("PostMark over TLS, WARM", "just below NK", of_nk(over_tls.warm), "at least 99 %")
            .met(over_tls.warm >= 0.99),
        judged("PostMark over TLS, NK again: the noise", "-", of_nk(over_tls.noise), "-"),
        judged("PostMark, the server's processor time alone", "-", of_nk(postmark), "-"),
    ]
}

fn decisions(sample: &RoundCosts, files: u64) -> Vec<Judged> {
    let us = |nanoseconds: f64| format!("{:.2} us", nanoseconds / 1e3);
    let grep = sample.grep.more() / files as f64;
    let own = sample.grep_of_own_chains.more() / RoundCosts::own_chains(files) as f64;
    let build = sample.build.more() / files as f64 * BUILD_FILES / 1e9;
    let of_many = sample.credentials.get(1).zip(sample.credentials.first());
    let of_many = of_many.map_or(f64::NAN, |(many, few)| many / few);
    let folder = format!("{OF_ONE_FOLDER} credentials for one folder: a first decision");
    vec![
        judged("a file met first, chain of 3 for the tree", "3.5 ms", us(grep), "20 us")
            .met(grep <= 20e3),
        judged("a file met first, each with a chain of 3", "3.5 ms", us(own), "20 us")
            .met(own <= 20e3)
            .known(),
        judged("a signature, of which that takes three", "-", us(sample.signature), "-"),
        judged("a first decision by a chain of 3", "-", us(sample.decision), "-"),
        judged("a decision from the table", "-", us(sample.kept), "0.2 us")
            .met(sample.kept <= 200.0),
        judged(
            "credential work in a build of 4,500 sources",
            "30 s",
            format!("{build:.3} s"),
            "below 0.5 s",
        )
        .met(build < 0.5),
        judged(
            "10,000 credentials held against 10",
            "-",
            format!("{of_many:.2} times ({CREDENTIALS:?})"),
            "at most 2 times",
        )
        .met(of_many <= 2.0),
        judged(&folder, "-", us(sample.one_folder), "-"),
    ]
}

fn judged(measure: &str, history: &'static str, ours: String, bound: &'static str) -> Judged {
    Judged { measure: measure.to_owned(), history, ours, bound, is_met: None, is_known: false }
}

impl Judged {
    fn met(self, is_met: bool) -> Self {
        Self { is_met: Some(is_met), ..self }
    }

    fn known(self) -> Self {
        Self { is_known: true, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants_cost::BothCosts;

    fn sample() -> RoundCosts {
        let pair = BothCosts { account: 1e6, key: 1.001e6 };
        RoundCosts {
            grep: pair,
            grep_of_own_chains: pair,
            build: pair,
            postmark: pair,
            signature: 1.0,
            decision: 1.0,
            kept: 1.0,
            chains: vec![1.0; 6],
            credentials: vec![1.0; 2],
            one_folder: 1.0,
            sizes: vec![1.0; 7],
        }
    }

    fn holds_with(change: impl FnOnce(&mut RoundCosts, &mut OverTls, &mut PlainCall)) -> bool {
        let mut plain = PlainCall { operation: "getattr", with: 1_000, without: 1_000 };
        let mut over_tls = OverTls { cold: 1.0, warm: 1.0, noise: 1.0 };
        let mut sample = sample();
        change(&mut sample, &mut over_tls, &mut plain);
        holds(&lines(&[plain], &sample, (&over_tls, 1_000)))
    }

    #[test]
    fn each_bound_that_is_missed_is_told() {
        assert!(holds_with(|_, _, _| {}));
        assert!(!holds_with(|_, _, plain| plain.with = 1_010));
        assert!(!holds_with(|_, over_tls, _| over_tls.cold = 0.89));
        assert!(!holds_with(|_, over_tls, _| over_tls.warm = 0.98));
        assert!(!holds_with(|_, over_tls, _| over_tls.warm = f64::NAN));
        assert!(!holds_with(|sample, _, _| sample.grep.key += 21e6));
        assert!(!holds_with(|sample, _, _| sample.kept = 201.0));
        assert!(!holds_with(|sample, _, _| sample.build.key += 120e6));
        assert!(!holds_with(|sample, _, _| sample.credentials[1] = 2.1));
    }

    #[test]
    fn a_bound_that_is_known_to_be_missed_fails_nothing() {
        let own = |sample: &mut RoundCosts| sample.grep_of_own_chains.key += 1e9;
        assert!(holds_with(|sample, _, _| own(sample)));
    }
}
