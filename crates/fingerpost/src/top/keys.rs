//! What keys do, as users of top(1) and htop(1) expect. No terminal here.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::grid::Order;
use super::model::View;

/// Characters of a filter at most.
const FILTER_CHARS: usize = 64;

/// What the user has chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The list that is shown.
    pub view: usize,
    /// How each list is shown.
    pub orders: [Order; View::ALL.len()],
    /// The marked row, by its place among those shown.
    pub marked: usize,
    /// A filter is being typed.
    pub types_filter: bool,
    /// The keys are listed.
    pub shows_help: bool,
    /// Nothing new is taken in.
    pub paused: bool,
}

/// What is to be done about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Draw anew.
    Draw,
    /// End.
    Quit,
    /// Stop like any program at Ctrl-Z.
    Suspend,
    /// Clear the screen and draw anew.
    Redraw,
}

/// The keys, for the help.
pub const HELP: &[(&str, &str)] = &[
    ("q, Ctrl-C", "quit"),
    ("Tab, 1 2 3 4", "links, neighbours, prefixes, subscribers"),
    ("s, → / S, ←", "sort by the next, the previous column"),
    ("r", "reverse the order"),
    ("/", "only rows with a text; Enter keeps it, Esc drops it"),
    ("↑ ↓, k j", "a row up, down"),
    ("PgUp PgDn", "a page up, down"),
    ("Home End, g G", "the first, the last row"),
    ("Space", "hold still, go on"),
    ("Ctrl-L", "draw anew"),
    ("Ctrl-Z", "suspend"),
    ("?, h, F1", "this list"),
];

impl Default for Choice {
    fn default() -> Self {
        Self {
            view: 0,
            orders: View::ALL.map(View::first_order),
            marked: 0,
            types_filter: false,
            shows_help: false,
            paused: false,
        }
    }
}

impl Choice {
    /// The list that is shown.
    pub fn view(&self) -> View {
        View::ALL[self.view]
    }

    /// How it is shown.
    pub fn order(&self) -> &Order {
        &self.orders[self.view]
    }

    /// Takes in a key. `page` rows are visible.
    pub fn key(&mut self, key: KeyEvent, page: usize) -> Option<Act> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Act::Quit),
                KeyCode::Char('z') => Some(Act::Suspend),
                KeyCode::Char('l') => Some(Act::Redraw),
                _ => None,
            };
        }
        if self.types_filter {
            self.type_filter(key.code)
        } else if self.shows_help {
            self.shows_help = false;
            Some(Act::Draw)
        } else {
            self.command(key.code, page)
        }
    }

    fn type_filter(&mut self, key: KeyCode) -> Option<Act> {
        let filter = &mut self.orders[self.view].filter;
        match key {
            KeyCode::Char(c) if filter.chars().count() < FILTER_CHARS && !c.is_control() => {
                filter.push(c);
            }
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Enter => self.types_filter = false,
            KeyCode::Esc => {
                filter.clear();
                self.types_filter = false;
            }
            _ => return None,
        }
        self.marked = 0;
        Some(Act::Draw)
    }

    fn command(&mut self, key: KeyCode, page: usize) -> Option<Act> {
        let order = &mut self.orders[self.view];
        match key {
            KeyCode::Char('q') | KeyCode::F(10) => return Some(Act::Quit),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Char('/') | KeyCode::F(4) => self.types_filter = true,
            KeyCode::Esc => order.filter.clear(),
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('r' | 'R' | 'I') => order.downwards = !order.downwards,
            KeyCode::Char('s' | '>') | KeyCode::Right | KeyCode::F(6) => self.sort_by(1),
            KeyCode::Char('S' | '<') | KeyCode::Left => self.sort_by(-1),
            KeyCode::Tab => self.show(self.view + 1),
            KeyCode::BackTab => self.show(self.view + View::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='4') => self.show(digit as usize - '1' as usize),
            KeyCode::Up | KeyCode::Char('k') => self.marked = self.marked.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.marked = self.marked.saturating_add(1),
            KeyCode::PageUp => self.marked = self.marked.saturating_sub(page),
            KeyCode::PageDown => self.marked = self.marked.saturating_add(page),
            KeyCode::Home | KeyCode::Char('g') => self.marked = 0,
            KeyCode::End | KeyCode::Char('G') => self.marked = usize::MAX,
            _ => return None,
        }
        Some(Act::Draw)
    }

    fn show(&mut self, view: usize) {
        self.view = view % View::ALL.len();
        self.marked = 0;
    }

    fn sort_by(&mut self, step: isize) {
        let columns = self.view().columns();
        let order = &mut self.orders[self.view];
        let at = order.column as isize + step;
        order.column = at.rem_euclid(columns.len() as isize) as usize;
        order.downwards = columns[order.column].is_number;
        self.marked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(choice: &mut Choice, keys: &str) {
        for c in keys.chars() {
            choice.key(KeyEvent::from(KeyCode::Char(c)), 10);
        }
    }

    #[test]
    fn keys_do_what_their_users_expect() {
        let mut choice = Choice::default();
        press(&mut choice, "s");
        assert_eq!((choice.order().column, choice.order().downwards), (4, true));
        press(&mut choice, "SSSS");
        assert_eq!(
            (choice.order().column, choice.order().downwards),
            (0, false)
        );
        press(&mut choice, "S");
        assert_eq!(choice.order().column, 7, "round the end");
        press(&mut choice, "3jjk");
        assert_eq!((choice.view(), choice.marked), (View::Prefixes, 1));
        choice.key(KeyEvent::from(KeyCode::Tab), 10);
        assert_eq!((choice.view(), choice.marked), (View::Subscribers, 0));
        choice.key(KeyEvent::from(KeyCode::Tab), 10);
        assert_eq!(choice.view(), View::Links);
        let ends = KeyEvent::from(KeyCode::Char('q'));
        assert_eq!(choice.key(ends, 10), Some(Act::Quit));
    }

    #[test]
    fn a_filter_is_typed_kept_and_dropped() {
        let mut choice = Choice::default();
        press(&mut choice, "/q?");
        assert_eq!(choice.order().filter, "q?");
        choice.key(KeyEvent::from(KeyCode::Backspace), 10);
        choice.key(KeyEvent::from(KeyCode::Enter), 10);
        assert_eq!(
            (choice.order().filter.as_str(), choice.types_filter),
            ("q", false)
        );
        choice.key(KeyEvent::from(KeyCode::Esc), 10);
        assert_eq!(choice.order().filter, "");
        press(&mut choice, "/");
        press(&mut choice, &"x".repeat(1_000));
        assert_eq!(choice.order().filter.len(), FILTER_CHARS);
        let ends = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(
            choice.key(ends, 10),
            Some(Act::Quit),
            "while typing as well"
        );
    }

    #[test]
    fn any_key_closes_the_help() {
        let mut choice = Choice::default();
        press(&mut choice, "?");
        assert!(choice.shows_help);
        press(&mut choice, "q");
        assert!(!choice.shows_help);
    }
}
