//! Drawing: a few shapes as SVG, styled by classes so that one file of colours serves light and
//! dark.

use std::fmt::Write as _;

/// Colours of everything that is drawn.
pub(super) const STYLE: &str = include_str!("assets/plot.css");

/// Number of series that colour, mark and line tell apart.
pub(super) const SERIES: usize = 6;

/// A drawing in progress. Coordinates are pixels at its natural size.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    title: String,
    about: String,
    body: String,
}

/// The point where a text is anchored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// At its beginning.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

/// Text as it may stand in XML.
#[must_use]
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Returns whether XML cannot hold a character at all.
            control if control.is_control() && !"\n\t".contains(control) => out.push('?'),
            other => out.push(other),
        }
    }
    out
}

impl Svg {
    /// An empty drawing; title and description are read aloud.
    #[must_use]
    pub(super) fn new((width, height): (f64, f64), title: &str, about: &str) -> Self {
        let (title, about) = (title.to_owned(), about.to_owned());
        Self { width, height, title, about, body: String::new() }
    }

    /// Width of the drawn text.
    #[must_use]
    pub(super) const fn width(&self) -> f64 {
        self.width
    }

    /// Its title.
    #[must_use]
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// A rectangle with its upper left corner and size.
    pub(super) fn rectangle(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
    ) {
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}"/>"#,
            width.max(0.0),
            height.max(0.0)
        );
    }

    /// A line through points.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut places = String::new();
        for (number, (x, y)) in points.iter().enumerate() {
            let _ = write!(places, "{}{x:.1} {y:.1}", if number == 0 { "M" } else { "L" });
        }
        let _ = writeln!(self.body, r#"<path class="{class}" d="{places}"/>"#);
    }

    /// Text; `y` is its base line.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escape(text)
        );
    }

    /// Something that tells its value when it is pointed at.
    pub(super) fn mark(&mut self, tip: &str, draw: impl FnOnce(&mut Self)) {
        let _ = writeln!(self.body, r#"<g class="mark"><title>{}</title>"#, escape(tip));
        draw(self);
        self.body.push_str("</g>\n");
    }

    /// The sign of a series around a point: each has its own shape, for eyes that do not see
    /// colours.
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
        let _ = writeln!(self.body, r#"<path class="sign fill s{series}" d="{d}"/>"#);
    }

    /// A figure of an original work: a hollow diamond.
    pub(super) fn history(&mut self, (x, y): (f64, f64)) {
        let d = format!("M{x:.1} {y:.1}m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z");
        let _ = writeln!(self.body, r#"<path class="history" d="{d}"/>"#);
    }

    /// The drawing as part of a page, whose style it takes; `id` is its own on the page.
    #[must_use]
    pub(super) fn inline(&self, id: &str) -> String {
        let attributes = format!(
            r#" class="plot" id="{id}" width="{:.0}" aria-labelledby="{id}-t {id}-d""#,
            self.width
        );
        self.element(&attributes, id, "")
    }

    /// The drawing as a file of its own.
    #[must_use]
    pub(super) fn file(&self) -> String {
        let size = format!(
            r#" xmlns="http://www.w3.org/2000/svg" class="plot" width="{:.0}" height="{:.0}""#,
            self.width, self.height
        );
        let style = format!(
            "<style>{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>"
        );
        let labels = r#" aria-labelledby="p-t p-d""#;
        let mut out = self.element(&format!("{size}{labels}"), "p", &style);
        out.push('\n');
        out
    }

    fn element(&self, attributes: &str, id: &str, before: &str) -> String {
        format!(
            "<svg{attributes} role=\"img\" viewBox=\"0 0 {:.0} {:.0}\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{before}\n{}</svg>",
            self.width,
            self.height,
            escape(&self.title),
            escape(&self.about),
            self.body
        )
    }
}

/// About how wide a text of the plots is, in pixels: they load no font to measure.
#[must_use]
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(|letter| if "ilj.,:'|! /".contains(letter) { 4.2 } else { 7.3 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(escape("<a & \"b'>\u{7}"), "&lt;a &amp; &quot;b&#39;&gt;?");
        let mut svg = Svg::new((10.0, 10.0), "<script>", "x & y");
        svg.mark("1 < 2", |svg| svg.text("t", (1.0, 2.0), Anchor::End, "</svg>"));
        let file = svg.file();
        assert!(!file.contains("<script>") && !file.contains("1 < 2"), "{file}");
        assert_eq!(file.matches("</svg>").count(), 1);
    }

    #[test]
    fn a_drawing_names_itself() {
        let svg = Svg::new((100.0, 50.0), "Rates", "Bars of two targets").inline("p1");
        for part in [r#"id="p1-t">Rates<"#, r#"id="p1-d">Bars of two"#, r#"role="img""#] {
            assert!(svg.contains(part), "{svg}");
        }
    }
}
