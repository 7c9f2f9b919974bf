//! The format of figures.

/// Returns the median of some figures; `None` if there are none.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints a figure and its upper bound, and returns whether it is within the bound.
pub(crate) fn at_most(what: &str, figure: f64, most: f64) -> bool {
    let met = figure <= most;
    let judgement = if met { "met" } else { "MISSED" };
    println!("  {what}: {figure:.2}, at most {most}: {judgement}");
    met
}

/// Formats the time that something took in 2006, in seconds.
pub(super) fn then(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds >= 0.1 => format!("{seconds:.1} s"),
        Some(seconds) => format!("{:.2} ms", seconds * 1e3),
    }
}
