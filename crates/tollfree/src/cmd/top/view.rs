// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the terminal shows, and how keys change it.

use std::time::Duration;

use toll_model::units::parse_duration;

use super::columns::{Column, SORTABLE};
use crate::terminal::Key;

/// The keys, for the help.
pub const KEYS: &str = "\
q          quit
h ?        this help
Up Down    move by a line
PgUp PgDn  move by a page
Home End   first, last line
< > s      sort by another column
c          cgroups or processes
/          only rows with this text
i          time between two updates
p          pause
";

/// Text that is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Filter(String),
    Interval(String),
}

/// The state of the display.
#[derive(Debug)]
pub struct View {
    pub sort: Column,
    pub shows_groups: bool,
    pub shows_help: bool,
    pub is_paused: bool,
    /// The first row that is shown.
    pub first: usize,
    /// Rows of the last page, and number of all rows.
    pub page: usize,
    pub rows: usize,
    pub filter: String,
    pub input: Option<Input>,
    pub interval: Duration,
}

/// What a key requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Redraw,
    End,
}

impl View {
    pub fn new(interval: Duration) -> View {
        View {
            sort: Column::Lost,
            shows_groups: false,
            shows_help: false,
            is_paused: false,
            first: 0,
            page: 1,
            rows: 0,
            filter: String::new(),
            input: None,
            interval,
        }
    }

    pub fn press(&mut self, key: Key) -> Effect {
        if let Some(input) = self.input.take() {
            self.type_key(input, key);
            return Effect::Redraw;
        }
        match key {
            Key::Char('q' | 'Q') if !self.shows_help => return Effect::End,
            Key::Char(_) if self.shows_help => self.set_help(false),
            Key::Char('h' | '?') => self.set_help(true),
            Key::Char('c') => {
                self.shows_groups = !self.shows_groups;
                self.first = 0;
            }
            Key::Char('p') => self.is_paused = !self.is_paused,
            Key::Char('s' | '>') => self.sort_by(1),
            Key::Char('<') => self.sort_by(SORTABLE.len() - 1),
            Key::Char('/') => self.input = Some(Input::Filter(self.filter.clone())),
            Key::Char('i') => self.input = Some(Input::Interval(String::new())),
            _ => self.move_to(key),
        }
        Effect::Redraw
    }

    fn set_help(&mut self, shows: bool) {
        self.shows_help = shows;
        self.first = 0;
    }

    fn sort_by(&mut self, step: usize) {
        let at = SORTABLE.iter().position(|it| *it == self.sort).unwrap_or(0);
        self.sort = SORTABLE[(at + step) % SORTABLE.len()];
    }

    fn move_to(&mut self, key: Key) {
        let last = self.rows.saturating_sub(self.page);
        let first = match key {
            Key::Up => self.first.saturating_sub(1),
            Key::Down => self.first + 1,
            Key::PageUp => self.first.saturating_sub(self.page),
            Key::PageDown => self.first + self.page,
            Key::Home => 0,
            Key::End => last,
            _ => return,
        };
        self.first = first.min(last);
    }

    /// A key while text is typed: Enter takes the text, Escape does not.
    fn type_key(&mut self, mut input: Input, key: Key) {
        let text = match &mut input {
            Input::Filter(text) | Input::Interval(text) => text,
        };
        match key {
            Key::Enter => return self.take(input),
            Key::Escape => return,
            Key::Backspace => {
                text.pop();
            }
            Key::Char(c) => text.push(c),
            _ => {}
        }
        self.input = Some(input);
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Filter(text) => {
                self.filter = text;
                self.first = 0;
            }
            Input::Interval(text) => {
                let interval = parse_duration(&text).ok();
                let interval = interval.filter(|it| *it >= super::SHORTEST);
                self.interval = interval.unwrap_or(self.interval);
            }
        }
    }
}

#[cfg(test)]
mod tests;
