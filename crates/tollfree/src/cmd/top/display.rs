// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where intervals are shown, and how long to wait for the next one.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::Result;
use toll_act::signals;

use super::document::Document;
use super::view::{Effect, View};
use super::{Args, text};
use crate::output;
use crate::terminal::{self, Screen, Woken};

/// Time until the first page: nobody waits for a whole interval.
const FIRST: Duration = Duration::from_millis(250);
/// Columns where the output is not a terminal.
const COLUMNS: usize = 120;

enum Output {
    /// One document, or a line for each.
    Json {
        is_one: bool,
    },
    Blocks,
    Screen(Screen),
}

/// Shows intervals.
pub struct Display {
    output: Output,
    view: View,
    shown: u64,
    last: Option<Document>,
    attributes: bool,
}

/// What follows a wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Look,
    End,
}

impl Display {
    pub fn new(args: &Args, json: bool) -> Result<Display> {
        let is_live = args.times.is_none() && !args.once && io::stdout().is_terminal();
        let output = match (json, is_live) {
            (true, _) => Output::Json { is_one: args.once },
            (false, true) => Output::Screen(Screen::open()?),
            // A run with a fixed number of updates prints blocks, so that they can be read
            // afterwards.
            (false, false) => Output::Blocks,
        };
        Ok(Display {
            output,
            view: View::new(args.interval),
            shown: 0,
            last: None,
            attributes: terminal::has_attributes(),
        })
    }

    pub fn show(&mut self, document: Document) -> Result<()> {
        match &self.output {
            Output::Json { is_one: true } => output::json(&document)?,
            Output::Json { is_one: false } => {
                output::text(&format!("{}\n", serde_json::to_string(&document)?))?;
            }
            Output::Blocks => {
                let columns = terminal::columns(io::stdout()).unwrap_or(COLUMNS);
                output::text(&text::block(&document, columns, self.shown > 0))?;
            }
            Output::Screen(_) => {}
        }
        self.shown += 1;
        self.last = Some(document);
        self.draw()
    }

    /// Draws the last interval on the terminal.
    fn draw(&mut self) -> Result<()> {
        let (Output::Screen(screen), Some(document)) = (&self.output, &self.last) else {
            return Ok(());
        };
        let (rows, columns) = terminal::size(io::stdout()).unwrap_or((24, 80));
        let page = text::page(document, &mut self.view, rows, columns, self.attributes);
        screen.draw(&page)
    }

    /// Waits for the next interval, and handles keys meanwhile.
    pub fn wait(&mut self) -> Result<Next> {
        let begun = Instant::now();
        loop {
            let is_screen = matches!(self.output, Output::Screen(_));
            match terminal::wait(self.left(begun, is_screen), is_screen)? {
                Woken::End => return Ok(Next::End),
                Woken::Time if !self.view.is_paused => return Ok(Next::Look),
                Woken::Keys(keys) => {
                    for key in keys {
                        if self.view.press(key) == Effect::End {
                            return Ok(Next::End);
                        }
                    }
                    self.draw()?;
                }
                Woken::Stop => self.stop()?,
                Woken::Redraw => self.draw()?,
                Woken::Time | Woken::Nothing => {}
            }
        }
    }

    fn left(&self, begun: Instant, is_screen: bool) -> Duration {
        let interval = match is_screen && self.shown == 0 {
            true => self.view.interval.min(FIRST),
            false => self.view.interval,
        };
        match self.view.is_paused {
            true => interval,
            false => interval.saturating_sub(begun.elapsed()),
        }
    }

    /// Handles Ctrl-Z: restores the terminal for the shell.
    fn stop(&mut self) -> Result<()> {
        if let Output::Screen(screen) = &mut self.output {
            screen.close();
        }
        signals::default_action(libc::SIGTSTP);
        if let Output::Screen(screen) = &mut self.output {
            *screen = Screen::open()?;
        }
        self.draw()
    }
}
