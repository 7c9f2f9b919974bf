//! Drawing: a few shapes as SVG, styled by classes so that one file of colours serves light and
//! dark.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

/// The style sheet of the drawings.
pub(super) const STYLE: &str = include_str!("assets/plot.css");

/// Number of series that can be distinguished by colour, sign and line.
pub(super) const SERIES: usize = 6;

/// A drawing in progress. Coordinates are pixels at its natural size.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    title: String,
    about: String,
    body: Vec<Markup>,
}

/// The point where a text is anchored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The text begins at the position.
    Start,
    /// The middle of the text is at the position.
    Middle,
    /// The text ends at the position.
    End,
}

/// Text in which question marks replace the characters that XML forbids.
#[must_use]
pub(super) fn printable(text: &str) -> String {
    let is_unfit = |letter: char| letter.is_control() && !"\n\t".contains(letter);
    text.chars().map(|letter| if is_unfit(letter) { '?' } else { letter }).collect()
}

impl Svg {
    /// An empty drawing; screen readers read its title and description.
    #[must_use]
    pub(super) fn new((width, height): (f64, f64), title: &str, about: &str) -> Self {
        let (title, about) = (title.to_owned(), about.to_owned());
        Self { width, height, title, about, body: Vec::new() }
    }

    /// Width of the drawn text.
    #[must_use]
    pub(super) const fn width(&self) -> f64 {
        self.width
    }

    /// The title of the drawing.
    #[must_use]
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.body.push(html! {
            line class=(class) x1=(pixels(x1)) y1=(pixels(y1)) x2=(pixels(x2)) y2=(pixels(y2)) {}
        });
    }

    /// A rectangle with its upper left corner and size.
    pub(super) fn rectangle(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
    ) {
        let (width, height) = (pixels(width.max(0.0)), pixels(height.max(0.0)));
        self.body.push(html! {
            rect class=(class) x=(pixels(x)) y=(pixels(y)) width=(width) height=(height) {}
        });
    }

    /// A line through points.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut places = String::new();
        for (number, (x, y)) in points.iter().enumerate() {
            let _ = write!(places, "{}{x:.1} {y:.1}", if number == 0 { "M" } else { "L" });
        }
        self.outline(class, &places);
    }

    /// Text; `y` is its base line.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.body.push(html! {
            text class=(class) x=(pixels(x)) y=(pixels(y)) text-anchor=(anchor) {
                (printable(text))
            }
        });
    }

    /// A mark that shows its value as a tooltip.
    pub(super) fn mark(&mut self, tip: &str, draw: impl FnOnce(&mut Self)) {
        let before = std::mem::take(&mut self.body);
        draw(self);
        let drawn = std::mem::replace(&mut self.body, before);
        self.body.push(html! {
            g class="mark" {
                title { (printable(tip)) }
                @for shape in &drawn { (shape) }
            }
        });
    }

    fn outline(&mut self, class: &str, places: &str) {
        self.body.push(html! { path class=(class) d=(places) {} });
    }

    /// The sign of a series around a point: each series has its own shape, for readers who do not
    /// see colours.
    pub(super) fn sign(&mut self, series: usize, (x, y): (f64, f64)) {
        let series = series % SERIES;
        let d = match series {
            0 => format!("M{x:.1} {y:.1}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0"),
            1 => format!("M{x:.1} {y:.1}m-3.6-3.6h7.2v7.2h-7.2z"),
            2 => format!("M{x:.1} {y:.1}m0-4.8l4.5 8h-9z"),
            3 => format!("M{x:.1} {y:.1}m0-5l5 5l-5 5l-5-5z"),
            4 => format!("M{x:.1} {y:.1}m0 4.8l4.5-8h-9z"),
            _ => format!("M{x:.1} {y:.1}m-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"),
        };
        self.outline(&format!("sign fill s{series}"), &d);
    }

    /// A figure of an original work: a hollow diamond.
    pub(super) fn history(&mut self, (x, y): (f64, f64)) {
        let d = format!("M{x:.1} {y:.1}m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z");
        self.outline("history", &d);
    }

    /// The drawing as part of a page, by whose style it is drawn; `id` must be unique on the page.
    #[must_use]
    pub(super) fn inline(&self, id: &str) -> Markup {
        html! {
            svg class="plot" id=(id) width=(whole(self.width)) role="img"
                aria-labelledby={ (id) "-t " (id) "-d" } viewBox=(self.view_box()) {
                (self.content(id))
            }
        }
    }

    /// The drawing as a file of its own.
    #[must_use]
    pub(super) fn file(&self) -> String {
        let file = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="plot" width=(whole(self.width))
                height=(whole(self.height)) role="img" aria-labelledby="p-t p-d"
                viewBox=(self.view_box()) {
                style { (PreEscaped(STYLE)) }
                rect class="ground" width="100%" height="100%" {}
                (self.content("p"))
            }
            "\n"
        };
        file.into_string()
    }

    fn view_box(&self) -> String {
        format!("0 0 {:.0} {:.0}", self.width, self.height)
    }

    fn content(&self, id: &str) -> Markup {
        html! {
            title id={ (id) "-t" } { (printable(&self.title)) }
            desc id={ (id) "-d" } { (printable(&self.about)) }
            @for shape in &self.body { (shape) "\n" }
        }
    }
}

/// A coordinate or a length as text, rounded to tenths of a pixel.
fn pixels(number: f64) -> String {
    format!("{number:.1}")
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

/// An estimate of the width of a text in pixels: the plots load no font that could be measured.
#[must_use]
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(|letter| if "ilj.,:'|! /".contains(letter) { 4.2 } else { 7.3 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(printable("a\tb\u{7}"), "a\tb?");
        let mut svg = Svg::new((10.0, 10.0), "<script>", "x & y");
        svg.mark("1 < 2", |svg| svg.text("t", (1.0, 2.0), Anchor::End, "</svg>"));
        let file = svg.file();
        assert!(!file.contains("<script>") && !file.contains("1 < 2"), "{file}");
        assert_eq!(file.matches("</svg>").count(), 1);
    }

    #[test]
    fn a_drawing_names_itself() {
        let svg =
            Svg::new((100.0, 50.0), "Rates", "Bars of two targets").inline("p1").into_string();
        for part in [r#"id="p1-t">Rates<"#, r#"id="p1-d">Bars of two"#, r#"role="img""#] {
            assert!(svg.contains(part), "{svg}");
        }
    }
}
