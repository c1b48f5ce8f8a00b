// SPDX-License-Identifier: MIT OR Apache-2.0
//! Terminals: their width, their keys, and a display that is drawn in place.

mod keys;
mod screen;

use std::os::fd::AsFd;

use rustix::termios::{isatty, tcgetwinsize};

pub use keys::Key;
pub use screen::{Screen, Woken, wait};
pub use toll_model::names::plain;

/// Rows of a terminal that does not know them.
const ROWS: u16 = 24;

/// Columns of a terminal; `None` if it is not one, or has no known width.
pub fn columns(fd: impl AsFd) -> Option<usize> {
    size(fd).map(|(_, columns)| columns)
}

/// Rows and columns of a terminal.
pub fn size(fd: impl AsFd) -> Option<(usize, usize)> {
    let fd = fd.as_fd();
    let size = isatty(fd).then(|| tcgetwinsize(fd).ok()).flatten()?;
    let rows = if size.ws_row == 0 { ROWS } else { size.ws_row };
    (size.ws_col > 0).then_some((rows.into(), size.ws_col.into()))
}

/// Whether stdout takes colours and other attributes.
pub fn has_attributes() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_able = set("TERM").is_some_and(|kind| kind != "dumb");
    isatty(std::io::stdout()) && set("NO_COLOR").is_none() && is_able
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_no_size() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(columns(&file), None);
    }
}
