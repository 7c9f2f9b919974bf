//! The legend: the colour and the sign of each target.

use super::svg::{Anchor, Svg, text_width};

/// Height of a line of the legend, in pixels.
const LINE: f64 = 18.0;

/// Draws names with their signs from `top` on, in as many lines as needed; returns the height.
pub(super) fn draw(
    svg: &mut Svg,
    (left, top, width): (f64, f64, f64),
    names: &[(usize, String)],
    with_history: bool,
) -> f64 {
    let (mut x, mut y) = (left, top + 12.0);
    let history = with_history.then(|| (usize::MAX, "original work".to_owned()));
    for (series, name) in names.iter().cloned().chain(history) {
        let needed = text_width(&name) + 34.0;
        if x > left && x + needed > left + width {
            (x, y) = (left, y + LINE);
        }
        match series {
            usize::MAX => svg.history((x + 6.0, y - 4.0)),
            _ => svg.sign(series, (x + 6.0, y - 4.0)),
        }
        svg.text("label", (x + 16.0, y), Anchor::Start, &name);
        x += needed;
    }
    y - top + 8.0
}

/// Returns the height of the legend.
pub(super) fn height(width: f64, names: &[(usize, String)], with_history: bool) -> f64 {
    let mut probe = Svg::new((0.0, 0.0), "", "");
    draw(&mut probe, (0.0, 0.0, width), names, with_history)
}
