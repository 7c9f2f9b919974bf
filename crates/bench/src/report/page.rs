//! The page as a whole: one file that needs no other, and no network.

use std::fmt::Write as _;

use super::svg::{STYLE, Svg, escape};

const PAGE_STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// A drawing that is less wide than this has room for another beside it on paper.
const HALF: f64 = 500.0;

/// A page in progress, and the drawings on it, which become files too.
#[derive(Debug, Default)]
pub(super) struct Page {
    body: String,
    contents: Vec<(String, String)>,
    plots: Vec<Plot>,
}

/// A drawing as a file.
#[derive(Debug)]
pub(super) struct Plot {
    /// The name of the file.
    pub(super) file: String,
    /// Its content.
    pub(super) svg: String,
}

impl Page {
    /// Adds markup as it is.
    pub(super) fn raw(&mut self, html: &str) {
        self.body.push_str(html);
        self.body.push('\n');
    }

    /// Adds a paragraph of text.
    pub(super) fn paragraph(&mut self, class: &str, text: &str) {
        let _ = writeln!(self.body, "<p class=\"{class}\">{}</p>", escape(text));
    }

    /// Adds a list of texts; nothing for none.
    pub(super) fn list(&mut self, class: &str, texts: &[String]) {
        if texts.is_empty() {
            return;
        }
        let items: String = texts.iter().map(|t| format!("<li>{}</li>\n", escape(t))).collect();
        let _ = writeln!(self.body, "<ul class=\"{class}\">\n{items}</ul>");
    }

    /// Begins a section that stands in the contents.
    pub(super) fn section(&mut self, name: &str, title: &str) {
        let id = slug(name);
        let _ = writeln!(
            self.body,
            "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>",
            escape(title)
        );
        self.contents.push((id, name.to_owned()));
    }

    /// Ends it.
    pub(super) fn end_section(&mut self) {
        self.body.push_str("</section>\n");
    }

    /// Adds a heading below a section's.
    pub(super) fn heading(&mut self, text: &str) {
        let _ = writeln!(self.body, "<h3>{}</h3>", escape(text));
    }

    /// Adds drawings side by side, as many as there is room for.
    pub(super) fn plots(&mut self, section: &str, plots: &[Svg]) {
        if plots.is_empty() {
            return;
        }
        self.body.push_str("<div class=\"plots\">\n");
        for svg in plots {
            let name = format!("{}-{}", slug(section), slug(svg.title()));
            let taken = self.plots.iter().filter(|plot| plot.file.starts_with(&name)).count();
            let name = if taken == 0 { name } else { format!("{name}-{}", taken + 1) };
            let id = format!("plot-{}", self.plots.len() + 1);
            let caption = escape(svg.title());
            let class = if svg.width() < HALF { " class=\"half\"" } else { "" };
            let _ = writeln!(
                self.body,
                "<figure{class}>\n<figcaption>{caption}</figcaption>\n{}\n</figure>",
                svg.inline(&id)
            );
            self.plots.push(Plot { file: format!("{name}.svg"), svg: svg.file() });
        }
        self.body.push_str("</div>\n");
    }

    /// The whole page, and the drawings.
    #[must_use]
    pub(super) fn finish(self, title: &str) -> (String, Vec<Plot>) {
        let links: String = self
            .contents
            .iter()
            .map(|(id, name)| format!("<a href=\"#{id}\">{}</a>\n", escape(name)))
            .collect();
        let html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <style>\n{PAGE_STYLE}\n{STYLE}</style>\n</head>\n<body>\n\
             <nav aria-label=\"Contents\">\n{links}</nav>\n<main>\n{}</main>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            escape(title),
            self.body
        );
        (html, self.plots)
    }
}

/// A name as it may stand in an address or be a file.
#[must_use]
pub(super) fn slug(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
        _ => '-',
    });
    let joined: String = letters.collect();
    let words: Vec<&str> = joined.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawings_of_one_title_become_two_files() {
        let mut page = Page::default();
        let svg = || Svg::new((1.0, 1.0), "Rates, a/b", "");
        page.plots("postmark", &[svg(), svg()]);
        let (html, plots) = page.finish("t");
        let files: Vec<_> = plots.iter().map(|plot| plot.file.as_str()).collect();
        assert_eq!(files, ["postmark-rates-a-b.svg", "postmark-rates-a-b-2.svg"]);
        assert!(html.contains("id=\"plot-1\"") && html.contains("id=\"plot-2\""));
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let (html, _) = Page::default().finish("t");
        for foreign in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!html.contains(foreign), "{foreign}");
        }
    }
}
