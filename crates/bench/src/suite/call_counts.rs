use std::collections::BTreeMap;

/// Returns the number of calls among counts of a mount or of a server. A COMPOUND is one call,
/// whatever operations it has. Calls that a kernel sends only for its lease do not count.
#[must_use]
pub(super) fn calls_among(counts: &BTreeMap<String, u64>) -> u64 {
    let of = |name: &str| counts.get(name).copied();
    of("COMPOUND").unwrap_or_else(|| {
        counts.values().sum::<u64>() - of("SEQUENCE").unwrap_or(0) - of("RENEW").unwrap_or(0)
    })
}

/// Returns the calls sent between two readings; kinds without calls are left out.
#[must_use]
pub fn difference(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let earlier = |name: &String| before.get(name).copied().unwrap_or(0);
    let sent = |(name, count): (&String, &u64)| (name.clone(), count.saturating_sub(earlier(name)));
    after.iter().map(sent).filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_a_compound_are_no_calls_of_their_own() {
        let counts =
            |all: &[(&str, u64)]| all.iter().map(|(name, n)| ((*name).into(), *n)).collect();
        let server = [("COMPOUND", 3), ("SEQUENCE", 3), ("PUTFH", 3), ("READ", 2), ("GETATTR", 1)];
        assert_eq!(calls_among(&counts(&server)), 3);
        let kernel = [("READ", 2), ("OPEN", 1), ("SEQUENCE", 5)];
        assert_eq!(calls_among(&counts(&kernel)), 3);
    }

    #[test]
    fn a_difference_leaves_out_what_did_not_move() {
        let before = [("A".to_owned(), 1), ("B".to_owned(), 2)].into();
        let after = [("A".to_owned(), 1), ("B".to_owned(), 5), ("C".to_owned(), 1)].into();
        let sent = [("B".to_owned(), 3), ("C".to_owned(), 1)].into();
        assert_eq!(difference(&before, &after), sent);
    }
}
