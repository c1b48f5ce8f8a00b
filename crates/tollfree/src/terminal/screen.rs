// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal: the alternate screen, restored at the end.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use toll_act::signals;

use super::keys::{self, Key};

/// Escape sequences to enter the alternate screen without a cursor, and without a new line after a
/// line that is too long: characters may be two columns wide.
const OPEN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const CLOSE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Restores the terminal when dropped.
pub struct Screen {
    /// The previous keyboard settings; `None` if stdin is not a terminal.
    keyboard: Option<Termios>,
    is_open: bool,
}

/// Why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time has passed.
    Time,
    /// Ctrl-C, or another request to terminate.
    End,
    /// Keys were pressed.
    Keys(Vec<Key>),
    /// Ctrl-Z.
    Stop,
    /// The terminal was resized, or the process was continued.
    Redraw,
    Nothing,
}

impl Screen {
    pub fn open() -> Result<Screen> {
        let stdin = io::stdin();
        let mut screen = Screen {
            keyboard: None,
            is_open: false,
        };
        if stdin.is_terminal() {
            let before = tcgetattr(&stdin).context("the terminal")?;
            let mut keys = before.clone();
            // Unbuffered keys without echo; Ctrl-C keeps its effect.
            keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            keys.special_codes[SpecialCodeIndex::VMIN] = 0;
            keys.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(&stdin, OptionalActions::Now, &keys).context("the terminal")?;
            screen.keyboard = Some(before);
        }
        screen.is_open = true;
        write(OPEN)?;
        Ok(screen)
    }

    /// Draws as much of the text as fits.
    pub fn draw(&self, text: &str) -> Result<()> {
        let (rows, columns) = super::size(io::stdout()).unwrap_or((24, 80));
        write(&page(text, rows, columns))
    }

    /// Restores the terminal.
    pub fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let _ = write(CLOSE);
        }
        if let Some(before) = self.keyboard.take() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.close();
    }
}

fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("stdout: cannot be written")
}

/// The text drawn over the previous page, cut to the terminal's size.
fn page(text: &str, rows: usize, columns: usize) -> String {
    let mut page = "\x1b[H".to_owned();
    // No newline after the last line: it would scroll the page.
    for (number, line) in text.lines().take(rows).enumerate() {
        page += if number > 0 { "\r\n" } else { "" };
        page += &cut(line, columns);
        page += "\x1b[K";
    }
    page + "\x1b[J"
}

/// The first columns of a line. Attributes (`ESC [ ... m`) take none, and are kept.
fn cut(line: &str, columns: usize) -> String {
    let mut kept = String::new();
    let mut used = 0;
    let mut is_attribute = false;
    for c in line.chars() {
        is_attribute |= c == '\x1b';
        if is_attribute || used < columns {
            kept.push(c);
        }
        used += usize::from(!is_attribute);
        is_attribute &= c != 'm';
    }
    kept
}

/// Waits for a signal, for a key if `keys` is set, or for the time to pass.
pub fn wait(time: Duration, keys: bool) -> Result<Woken> {
    if signals::interrupted().is_some() {
        return Ok(Woken::End);
    }
    let stdin = io::stdin();
    let mut fds = vec![PollFd::from_borrowed_fd(
        signals::readable()?,
        PollFlags::IN,
    )];
    if keys && stdin.is_terminal() {
        fds.push(PollFd::new(&stdin, PollFlags::IN));
    }
    let limit = Timespec::try_from(time).ok();
    match poll(&mut fds, limit.as_ref()) {
        Ok(0) => return Ok(Woken::Time),
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Woken::Nothing),
        Err(error) => return Err(error).context("waiting"),
    }
    let key = fds.get(1).map_or(PollFlags::empty(), PollFd::revents);
    // A terminal that has hung up ends the display.
    if key.intersects(PollFlags::HUP | PollFlags::ERR) {
        return Ok(Woken::End);
    }
    match by_signals() {
        Woken::Nothing if key.contains(PollFlags::IN) => Ok(Woken::Keys(typed()?)),
        woken => Ok(woken),
    }
}

fn typed() -> Result<Vec<Key>> {
    let mut typed = [0; 64];
    match rustix::io::read(io::stdin(), &mut typed) {
        Ok(number) => Ok(keys::parse(&typed[..number])),
        Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
        Err(error) => Err(error).context("the keyboard"),
    }
}

fn by_signals() -> Woken {
    let noted: Vec<i32> = signals::take().iter().map(|note| note.signal).collect();
    if signals::interrupted().is_some() {
        Woken::End
    } else if noted.contains(&libc::SIGTSTP) {
        Woken::Stop
    } else if noted
        .iter()
        .any(|signal| [libc::SIGWINCH, libc::SIGCONT].contains(signal))
    {
        Woken::Redraw
    } else {
        Woken::Nothing
    }
}

#[cfg(test)]
mod tests;
