//! The screen: a head, the resources, a table, and the keys.

use anyhow::Result;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Row, Table};
use ratatui::{Frame, Terminal};

use super::input::Input;
use super::numbers::{bar, bytes, percent, rate, uptime};
use super::readout::{Readout, ResourceRow};
use super::tables::Tab;

/// Columns from which two tables stand side by side.
const WIDE: u16 = 140;

/// Columns of a bar.
const BAR: usize = 20;

/// Most rows of a table that are printed once.
const PRINTED_ROWS_MAX: usize = 20;

const KEYS: &str = "q quit  p pause  Tab table  s sort  / filter  arrows scroll  ? help";

const HELP: [&str; 14] = [
    "",
    " q, Esc         quit",
    " p, space       pause, go on",
    " Tab, arrows    next table: operations, clients, exports, events, waits",
    " s              sort by the next column",
    " /              show only rows with a text; Enter ends, Esc removes it",
    " Down, PageDown scroll",
    "",
    " A resource is shown as the part in use: over a second, a minute and five",
    " minutes. The bottleneck is the fullest over a minute, if that is 70 % or",
    " more. Times of operations and calls by export are known if the server",
    " runs with --metrics.",
    "",
    " Any key closes this page.",
];

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, readout: &Readout, input: &Input) {
    let resources = resource_lines(readout, if input.is_print { usize::MAX } else { shown(frame) });
    let [head, middle, body, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(resources.len() as u16 + 2),
        Constraint::Fill(1),
        Constraint::Length(u16::from(!input.is_print)),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(readout, input)), head);
    frame.render_widget(Paragraph::new(resources), middle);
    draw_tables(frame, body, readout, input);
    frame.render_widget(Paragraph::new(foot_line(input)).style(dim()), foot);
    if input.shows_help {
        let area = frame.area();
        frame.render_widget(Clear, area);
        frame.render_widget(Paragraph::new(HELP.map(Line::from).to_vec()), area);
    }
}

/// Returns the screen of the given columns and lines as text.
///
/// # Errors
/// None is known; a terminal in memory does not fail.
pub(super) fn text(readout: &Readout, input: &Input, size: (u16, u16)) -> Result<String> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1))?;
    terminal.draw(|frame| draw(frame, readout, input))?;
    let lines = terminal.backend().buffer().content().chunks(size.0.into()).map(|cells| {
        let line: String = cells.iter().map(Cell::symbol).collect();
        line.trim_end().to_owned()
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the number of lines of what is printed once.
pub(super) fn printed_lines(readout: &Readout) -> u16 {
    let tables: u16 = Tab::ALL.into_iter().map(|tab| printed(tab, readout)).sum();
    let resources = u16::try_from(readout.resources.len()).unwrap_or(u16::MAX);
    tables.saturating_add(resources.saturating_add(4))
}

/// Returns the lines of a table: title, heads, rows, and an empty line.
fn printed(tab: Tab, readout: &Readout) -> u16 {
    tab.rows(readout, "", 0).rows.len().min(PRINTED_ROWS_MAX) as u16 + 3
}

/// Returns the number of resources that the terminal has lines for: a third of its lines.
fn shown(frame: &Frame<'_>) -> usize {
    usize::from(frame.area().height / 3).max(3)
}

fn head_lines(readout: &Readout, input: &Input) -> Vec<Line<'static>> {
    let total = &readout.total;
    let mut first = format!(
        "comity  up {}  clients {}  calls {}/s  in {}/s  out {}/s",
        uptime(readout.uptime_seconds),
        readout.clients_count,
        rate(total.calls_per_second),
        bytes(total.received_bytes_per_second),
        bytes(total.sent_bytes_per_second),
    );
    if input.is_paused {
        first += "  PAUSED";
    }
    let second = match readout.grace_left_seconds {
        0 => readout.verdict.clone(),
        seconds => format!("in grace for {seconds} s; {}", readout.verdict),
    };
    vec![Line::from(first).style(bold()), Line::from(second)]
}

/// The fullest resources come first, in case not all can be shown.
fn resource_lines(readout: &Readout, count: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<&ResourceRow> = readout.resources.iter().collect();
    if rows.len() > count {
        rows.sort_by(|one, other| other.minute.total_cmp(&one.minute));
        rows.truncate(count);
    }
    let width = BAR + 2;
    let head = format!("{:24}{:width$}{:>8}{:>8}{:>8}", "RESOURCE", "", "1 s", "1 min", "5 min");
    let head = Line::from(head).style(heading());
    std::iter::once(head).chain(rows.into_iter().map(resource_line)).collect()
}

fn resource_line(row: &ResourceRow) -> Line<'static> {
    let mut name = row.resource.replace('_', " ");
    if let Some(device) = &row.device {
        name = format!("{name} {device}");
    }
    let name: String = name.chars().take(23).collect();
    let [second, minute, five] = [row.second, row.minute, row.five_minutes].map(percent);
    let is_full = row.minute >= 0.7;
    let shown = format!("{name:24}{}  {second:>8}{minute:>8}{five:>8}", bar(row.second, BAR));
    Line::from(Span::styled(shown, if is_full { bold() } else { Style::new() }))
}

fn draw_tables(frame: &mut Frame<'_>, area: Rect, readout: &Readout, input: &Input) {
    if input.is_print {
        let lengths = Tab::ALL.map(|tab| Constraint::Length(printed(tab, readout)));
        let tabs = Tab::ALL.into_iter().zip(Layout::vertical(lengths).areas::<5>(area));
        tabs.for_each(|(tab, part)| draw_table(frame, part, (readout, input), tab));
    } else if area.width >= WIDE {
        let parts = Layout::horizontal([Constraint::Fill(1); 2]).spacing(2).areas::<2>(area);
        let tabs = [input.tab, input.tab.next()].into_iter().zip(parts);
        tabs.for_each(|(tab, part)| draw_table(frame, part, (readout, input), tab));
    } else {
        draw_table(frame, area, (readout, input), input.tab);
    }
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, (readout, input): (&Readout, &Input), tab: Tab) {
    let [title, rest] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let sorted_by = if tab == input.tab { input.sorted_by } else { 0 };
    let table = tab.rows(readout, &input.filter, sorted_by);
    let count = table.rows.len();
    let first = if tab == input.tab { input.first.min(count.saturating_sub(1)) } else { 0 };
    let note = note(readout, tab, count);
    frame.render_widget(Paragraph::new(format!("{} {note}", tab.name())).style(bold()), title);
    let sorted = sorted_by % (table.heads.len() - 1) + 1;
    let heads = table.heads.iter().enumerate().map(|(column, head)| match column {
        0 => Line::from(*head),
        column if column == sorted && !input.is_print => {
            Line::from(format!("{head}*")).right_aligned()
        }
        _ => Line::from(*head).right_aligned(),
    });
    let rows = table.rows.iter().skip(first).map(|row| {
        let right =
            row.cells.iter().skip(1).map(|cell| Line::from(printable(cell)).right_aligned());
        let name = row.cells.first().map_or_else(String::new, |name| printable(name));
        Row::new(std::iter::once(Line::from(name)).chain(right))
    });
    let widths = table.widths.iter().map(|width| Constraint::Length(*width));
    let widths = std::iter::once(Constraint::Fill(1)).chain(widths);
    let heads = Row::new(heads).style(heading());
    frame.render_widget(Table::new(rows, widths).header(heads), rest);
}

/// Returns a note on the rows that a table leaves out, or on why it is empty.
fn note(readout: &Readout, tab: Tab, count: usize) -> String {
    match tab {
        Tab::Operations if !readout.is_measured => {
            format!("({count}; serve with --metrics for NFSv3 and times)")
        }
        Tab::Exports if !readout.is_measured => "(serve with --metrics for these)".to_owned(),
        Tab::Clients => format!("({count} of {})", readout.clients_count),
        Tab::Waits => format!("({count} of {})", readout.waits_count),
        _ => format!("({count})"),
    }
}

/// Names may come from clients: control characters do not reach the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

fn foot_line(input: &Input) -> String {
    match (input.is_typing, input.filter.is_empty()) {
        (true, _) => format!("filter: {}_", input.filter),
        (false, false) => format!("filter: {}  {KEYS}", input.filter),
        (false, true) => KEYS.to_owned(),
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn heading() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rates(calls: f64) -> Value {
        json!({
            "calls_per_second": calls,
            "received_bytes_per_second": calls * 100.0,
            "sent_bytes_per_second": calls * 2_000.0,
            "service_seconds_per_second": calls / 1_000.0,
        })
    }

    fn resource(name: &str, device: Option<&str>, minute: f64) -> Value {
        json!({
            "resource": name, "device": device, "now": minute, "second": minute, "minute": minute,
            "five_minutes": minute / 2.0,
        })
    }

    fn answer() -> Value {
        let client = |number: u32| {
            let calls = f64::from(number);
            let (client, rates) = (format!("192.0.2.{number}"), rates(calls));
            json!({ "client": client, "connections": 1, "now": rates, "minute": rates })
        };
        let operation = |name: &str, now: f64| {
            json!({
                "program": "nfs", "version": 3, "operation": name, "now": now, "minute": now,
                "failed": 0.0, "median_seconds": 25e-6, "p99_seconds": null,
            })
        };
        let disk =
            |number: u32| resource("disk", Some(&format!("sd{number}")), f64::from(number) / 20.0);
        let resources = (0..12).map(disk).chain([resource("processor", None, 0.95)]);
        json!({
            "uptime_seconds": 7_260, "grace_left_seconds": 45,
            "verdict": "disk sda is the bottleneck: 95 % over the last minute",
            "resources": resources.collect::<Vec<_>>(),
            "total": rates(4_500.0),
            "clients": (1..=100).map(client).collect::<Vec<_>>(),
            "clients_count": 10_000,
            "exports": [{
                "export": "/srv/\x1b[31mred", "now": 1.0, "minute": 1.0,
                "service_seconds_per_second": 0.5,
            }],
            "operations": [operation("READ", 10.0), operation("WRITE", 300.0)],
            "events": [{ "event": "recalls sent", "now": 0.0, "minute": 0.0 }],
            "waits": [{
                "kind": "lock", "client": "a1", "waits_for": null, "age_seconds": 9,
                "export": "/srv", "fileid": 77,
            }],
            "waits_count": 1,
            "is_measured": true,
        })
    }

    fn shown(input: &Input, size: (u16, u16)) -> Vec<String> {
        let readout = Readout::parse(answer()).unwrap();
        text(&readout, input, size).unwrap().lines().map(str::to_owned).collect()
    }

    fn place(lines: &[String], wanted: &str) -> usize {
        let found = lines.iter().position(|line| line.contains(wanted));
        found.unwrap_or_else(|| panic!("no {wanted:?} in {lines:#?}"))
    }

    #[test]
    fn a_terminal_of_80_by_24_shows_the_fullest_resources_and_a_table() {
        let lines = shown(&Input::default(), (80, 24));
        assert_eq!(lines.len(), 24);
        let head =
            "comity  up 2 h 1 min  clients 10000  calls 4.5 k/s  in 439 KiB/s  out 8.6 MiB/s";
        assert_eq!(lines[0], head);
        let verdict = "in grace for 45 s; disk sda is the bottleneck: 95 % over the last minute";
        assert_eq!(lines[1], verdict);
        assert!(place(&lines, "processor") < place(&lines, "disk sd11"));
        assert!(!lines.iter().any(|line| line.contains("disk sd0 ")), "{lines:#?}");
        assert!(place(&lines, "nfs v3 WRITE") < place(&lines, "nfs v3 READ"));
        assert!(lines[23].starts_with("q quit"));
    }

    #[test]
    fn a_wide_terminal_shows_all_resources_and_two_tables() {
        let lines = shown(&Input::default(), (200, 60));
        assert_eq!(lines.len(), 60);
        place(&lines, "disk sd0 ");
        let titles = &lines[place(&lines, "Operations")];
        assert!(titles.contains("Clients (100 of 10000)"), "{titles}");
    }

    #[test]
    fn a_tiny_terminal_is_no_error() {
        for size in [(1, 1), (10, 3), (20, 8)] {
            assert_eq!(shown(&Input::default(), size).len(), usize::from(size.1));
        }
    }

    #[test]
    fn rows_are_filtered_sorted_and_scrolled() {
        let clients = |first, filter: &str, sorted_by| {
            let filter = filter.to_owned();
            let input = Input { tab: Tab::Clients, first, filter, sorted_by, ..Input::default() };
            shown(&input, (80, 40))
        };
        assert!(place(&clients(0, "", 0), "192.0.2.100") < place(&clients(0, "", 0), "192.0.2.99"));
        assert!(!clients(1, "", 0).iter().any(|line| line.contains("192.0.2.100")));
        let filtered = clients(0, "2.42", 0);
        place(&filtered, "Clients (1 of 10000)");
        place(&filtered, "filter: 2.42");
        place(&clients(9_999, "", 0), "192.0.2.1 ");
        place(&clients(0, "", 2), "SERVICE*");
    }

    #[test]
    fn control_characters_of_a_name_do_not_reach_the_terminal() {
        let input = Input { tab: Tab::Exports, ..Input::default() };
        place(&shown(&input, (80, 24)), "/srv/?[31mred");
    }

    #[test]
    fn waits_and_the_help_are_shown() {
        let input = Input { tab: Tab::Waits, ..Input::default() };
        place(&shown(&input, (80, 24)), "/srv fileid 77");
        place(&shown(&input, (80, 24)), "this server");
        let input = Input { shows_help: true, ..Input::default() };
        place(&shown(&input, (80, 24)), "Any key closes this page.");
    }

    #[test]
    fn an_answer_without_a_part_says_what_to_do() {
        let mut answer = answer();
        answer.as_object_mut().unwrap().remove("events");
        let error = format!("{:#}", Readout::parse(answer).unwrap_err());
        assert!(error.contains("different versions") && error.contains("events"), "{error}");
    }
}
