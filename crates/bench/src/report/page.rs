//! The page as a whole: one file that needs no other file and no network.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::{STYLE, Svg, printable};

const PAGE_STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// Two drawings that are less wide than this fit side by side on paper.
const HALF: f64 = 500.0;

/// A page in progress, and its drawings, which are also written as files.
#[derive(Debug, Default)]
pub(super) struct Page {
    body: Vec<Markup>,
    contents: Vec<(String, String)>,
    plots: Vec<Plot>,
}

/// A drawing as a file.
#[derive(Debug)]
pub(super) struct Plot {
    /// The name of the file.
    pub(super) file: String,
    /// The content of the file.
    pub(super) svg: String,
}

impl Page {
    /// Adds markup.
    pub(super) fn add(&mut self, markup: Markup) {
        self.body.push(markup);
    }

    /// Adds a paragraph of text.
    pub(super) fn paragraph(&mut self, class: &str, text: &str) {
        self.add(html! { p class=(class) { (printable(text)) } });
    }

    /// Adds a list of texts, or nothing if there are none.
    pub(super) fn list(&mut self, class: &str, texts: &[String]) {
        if !texts.is_empty() {
            self.add(
                html! { ul class=(class) { @for text in texts { li { (printable(text)) } } } },
            );
        }
    }

    /// Adds a section that is listed in the contents; `fill` adds its content.
    pub(super) fn section<T>(
        &mut self,
        name: &str,
        title: &str,
        fill: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let id = slug(name);
        self.contents.push((id.clone(), name.to_owned()));
        let (filled, result) = self.filled(fill);
        self.add(html! {
            section aria-labelledby=(id) {
                h2 id=(id) { (printable(title)) }
                (filled)
            }
        });
        result
    }

    /// Adds a part that is folded until a reader opens it; `fill` adds its content.
    pub(super) fn details(&mut self, summary: &str, fill: impl FnOnce(&mut Self)) {
        let (filled, ()) = self.filled(fill);
        self.add(html! { details { summary { (summary) } (filled) } });
    }

    /// Returns what `fill` adds to the page, and removes it from the page again.
    fn filled<T>(&mut self, fill: impl FnOnce(&mut Self) -> T) -> (Markup, T) {
        let before = std::mem::take(&mut self.body);
        let result = fill(self);
        let added = std::mem::replace(&mut self.body, before);
        (html! { @for part in &added { (part) "\n" } }, result)
    }

    /// Adds a heading below a section's.
    pub(super) fn heading(&mut self, text: &str) {
        self.add(html! { h3 { (text) } });
    }

    /// Adds drawings side by side, as many as there is room for.
    pub(super) fn plots(&mut self, section: &str, plots: &[Svg]) {
        if plots.is_empty() {
            return;
        }
        let figures: Vec<Markup> = plots.iter().map(|svg| self.figure(section, svg)).collect();
        self.add(html! { div class="plots" { @for figure in &figures { (figure) "\n" } } });
    }

    fn figure(&mut self, section: &str, svg: &Svg) -> Markup {
        let name = format!("{}-{}", slug(section), slug(svg.title()));
        let taken = self.plots.iter().filter(|plot| plot.file.starts_with(&name)).count();
        let name = if taken == 0 { name } else { format!("{name}-{}", taken + 1) };
        let id = format!("plot-{}", self.plots.len() + 1);
        self.plots.push(Plot { file: format!("{name}.svg"), svg: svg.file() });
        html! {
            figure .half[svg.width() < HALF] {
                figcaption { (printable(svg.title())) }
                (svg.inline(&id))
            }
        }
    }

    /// The whole page, and the drawings.
    #[must_use]
    pub(super) fn finish(self, title: &str) -> (String, Vec<Plot>) {
        let html = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (printable(title)) }
                    link rel="icon" href="data:,";
                    style { (PreEscaped(PAGE_STYLE)) (PreEscaped(STYLE)) }
                }
                body {
                    nav aria-label="Contents" {
                        @for (id, name) in &self.contents {
                            a href={ "#" (id) } { (printable(name)) } "\n"
                        }
                    }
                    main { @for part in &self.body { (part) "\n" } }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        (html.into_string(), self.plots)
    }
}

/// A name in the form that an address or a file name may have.
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
