use crate::ratio::Ratio;

/// Returns the chance that work has to wait because all of so many processors, or a line, are in
/// use: that of a queue (M/M/c) by the formula of Sakasegawa 1977, `u^(sqrt(2 (c + 1)) - 1)`.
pub(crate) fn chance_to_wait(used: Ratio, count: f64) -> f64 {
    used.get().powf((2.0 * (count.max(1.0) + 1.0)).sqrt() - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_makes_work_wait_by_the_part_in_use() {
        for used in [0.0, 0.25, 0.5, 1.0] {
            let found = chance_to_wait(Ratio::of(used, 1.0), 1.0);
            assert!((found - used).abs() < 1e-12, "{used}: {found}");
        }
    }

    /// The chance to wait for one of two processors is exactly `2 u^2 / (1 + u)` (Erlang C).
    #[test]
    fn two_processors_make_work_wait_nearly_as_the_exact_solution_says() {
        for used in [0.3, 0.5, 0.7, 0.9] {
            let exact = 2.0 * used * used / (1.0 + used);
            let found = chance_to_wait(Ratio::of(used, 1.0), 2.0);
            assert!((found - exact).abs() < 0.05, "{used}: {found} {exact}");
        }
    }
}
