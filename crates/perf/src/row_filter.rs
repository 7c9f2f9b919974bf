//! The rows of a table that a run is asked for.

/// Returns whether a row is wanted: its name contains one of `words`, in any case, or there are no
/// words.
pub(crate) fn is_wanted(name: &str, words: &[String]) -> bool {
    let name = name.to_lowercase();
    words.is_empty() || words.iter().any(|word| name.contains(&word.to_lowercase()))
}
