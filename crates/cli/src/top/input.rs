use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::tables::Tab;

/// The choices that the user has made with keys.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) tab: Tab,
    /// The number of the column by which each table is sorted.
    pub(super) sorted_by: usize,
    /// Only rows that contain this text are shown.
    pub(super) filter: String,
    /// True while typed keys are appended to the filter.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    pub(super) quits: bool,
    /// The number of rows above the first one that is shown.
    pub(super) first: usize,
    /// True for printed output: all tables are shown, and no help about keys.
    pub(super) is_print: bool,
}

impl Input {
    /// The choices for output that is printed once.
    pub(super) fn without_keys() -> Self {
        Self { is_print: true, ..Self::default() }
    }

    /// Performs the action of a key.
    pub(super) fn press(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let is_control_c =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            _ if is_control_c => self.quits = true,
            code if self.is_typing => self.type_filter(code),
            code => self.command(code),
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.first = 0;
    }

    fn command(&mut self, code: KeyCode) {
        let was_helping = std::mem::take(&mut self.shows_help);
        match code {
            KeyCode::Char('q') | KeyCode::Esc if !was_helping => self.quits = true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('?' | 'h') => self.shows_help = !was_helping,
            KeyCode::Char('s') => self.sorted_by += 1,
            KeyCode::Tab | KeyCode::Right => self.turn_to(self.tab.next()),
            KeyCode::BackTab | KeyCode::Left => self.turn_to(self.tab.previous()),
            KeyCode::Down => self.first += 1,
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first += 10,
            KeyCode::PageUp => self.first = self.first.saturating_sub(10),
            KeyCode::Home => self.first = 0,
            _ => {}
        }
    }

    fn turn_to(&mut self, tab: Tab) {
        (self.tab, self.first, self.sorted_by) = (tab, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(keys: &[KeyCode]) -> Input {
        let mut input = Input::default();
        keys.iter().for_each(|key| input.press(KeyEvent::new(*key, KeyModifiers::NONE)));
        input
    }

    #[test]
    fn letters_belong_to_the_filter_while_it_is_typed() {
        let typed =
            [KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Char('x'), KeyCode::Backspace];
        let input = pressed(&typed);
        assert_eq!((input.filter.as_str(), input.quits, input.is_typing), ("q", false, true));
        let input = pressed(&[&typed[..], &[KeyCode::Enter, KeyCode::Char('q')]].concat());
        assert_eq!((input.filter.as_str(), input.quits), ("q", true));
        let input = pressed(&[&typed[..], &[KeyCode::Esc]].concat());
        assert_eq!((input.filter.as_str(), input.quits), ("", false));
    }

    #[test]
    fn control_c_quits_also_while_a_filter_is_typed() {
        let mut input = pressed(&[KeyCode::Char('/')]);
        input.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(input.quits);
    }

    #[test]
    fn another_table_begins_at_its_first_row() {
        let input = pressed(&[KeyCode::Down, KeyCode::Char('s'), KeyCode::Tab]);
        assert_eq!((input.first, input.sorted_by, input.tab), (0, 0, Tab::Clients));
        assert_eq!(pressed(&[KeyCode::Tab, KeyCode::BackTab]).tab, Tab::Operations);
    }

    #[test]
    fn escape_closes_the_help_before_it_quits() {
        let input = pressed(&[KeyCode::Char('?'), KeyCode::Esc]);
        assert!(!input.shows_help && !input.quits);
        assert!(pressed(&[KeyCode::Esc]).quits);
    }
}
