//! Student's t distribution.

/// Terms of the continued fraction after which it has converged for every use here; it needs about
/// the square root of the larger argument.
const TERMS_MAX: u32 = 10_000;

/// Relative precision at which the search for a quantile stops.
const PRECISION: f64 = 1e-13;

/// The part of the distribution with `freedom` degrees of freedom below `t`.
#[must_use]
pub fn student_cumulative(t: f64, freedom: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The `t` below which the part `part` (between 0 and 1) of the distribution lies.
#[must_use]
pub fn student_quantile(part: f64, freedom: f64) -> f64 {
    if part < 0.5 {
        return -student_quantile(1.0 - part, freedom);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while student_cumulative(high, freedom) < part && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    while high - low > PRECISION * high {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if student_cumulative(middle, freedom) < part { low = middle } else { high = middle }
    }
    high
}

/// The regularized incomplete beta function I_x(a, b).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side of the mean only; the other is its mirror image.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let logarithm = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    logarithm.exp() * continued_fraction(x, a, b) / a
}

/// The continued fraction of the incomplete beta function, by Lentz's method (Numerical Recipes,
/// section 6.4).
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut above = 1.0;
    let mut below = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut value = below;
    for term in (1..TERMS_MAX).map(f64::from) {
        let even = term * (b - term) * x / ((a + 2.0 * term - 1.0) * (a + 2.0 * term));
        let odd = -(a + term) * (a + b + term) * x / ((a + 2.0 * term) * (a + 2.0 * term + 1.0));
        let before = value;
        for step in [even, odd] {
            below = 1.0 / away(1.0 + step * below);
            above = away(1.0 + step / above);
            value *= below * above;
        }
        if (value - before).abs() <= 1e-15 * value.abs() {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function for positive numbers, by Stirling's series after a shift.
fn ln_gamma(x: f64) -> f64 {
    let (mut at, mut product) = (x, 1.0);
    while at < 15.0 {
        product *= at;
        at += 1.0;
    }
    let inverse = 1.0 / (at * at);
    let series = 1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0));
    (at - 0.5) * at.ln() - at + 0.5 * std::f64::consts::TAU.ln() + series / at - f64::ln(product)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        let table = [
            (0.975, 1.0, 12.706_204_74),
            (0.975, 2.0, 4.302_652_73),
            (0.975, 4.0, 2.776_445_11),
            (0.975, 9.0, 2.262_157_16),
            (0.995, 29.0, 2.756_385_90),
            (0.95, 100.0, 1.660_234_33),
            (0.975, 1e6, 1.959_966_4),
        ];
        for (part, freedom, wanted) in table {
            let found = student_quantile(part, freedom);
            assert!((found - wanted).abs() < 2e-7 * wanted, "{part} {freedom}: {found}");
        }
    }

    #[test]
    fn gamma_is_the_factorial() {
        let mut factorial = 1.0_f64;
        for n in 1..20 {
            assert!((ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-12, "{n}");
            factorial *= f64::from(n);
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn with_one_and_two_degrees_it_has_a_closed_form(t in -50.0..50.0_f64) {
            let cauchy = 0.5 + t.atan() / std::f64::consts::PI;
            prop_assert!((student_cumulative(t, 1.0) - cauchy).abs() < 1e-12);
            let two = 0.5 + t / (2.0 * (2.0 + t * t).sqrt());
            prop_assert!((student_cumulative(t, 2.0) - two).abs() < 1e-12);
        }

        #[test]
        fn the_quantile_undoes_the_cumulative(part in 0.001..0.999_f64, freedom in 1.0..500.0_f64) {
            let back = student_cumulative(student_quantile(part, freedom), freedom);
            prop_assert!((back - part).abs() < 1e-9, "{back} {part}");
        }
    }
}
