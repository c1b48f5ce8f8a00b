// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws heat strips on a terminal.

use toll_observe::heat::{Strip, level};

use crate::terminal;

/// The drawing style of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns.
    pub width: usize,
    /// Block characters; otherwise plain ASCII.
    pub unicode: bool,
    pub colour: bool,
}

impl Style {
    /// Detects what stdout supports: width, characters of the locale, colour unless NO_COLOR is
    /// set.
    pub fn of_stdout() -> Style {
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        let utf8 = locale.is_some_and(|l| {
            let l = l.to_ascii_lowercase();
            l.contains("utf-8") || l.contains("utf8")
        });
        Style {
            width: width().clamp(40, 200),
            unicode: utf8,
            colour: terminal::has_attributes(),
        }
    }

    /// One line of cells.
    pub fn strip(&self, strip: &Strip, peak: f64) -> String {
        const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = ['.', '1', '2', '3', '4', '5', '6', '7', '8'];
        // 256-colour codes from dim to bright orange; level 0 is grey.
        const COLOURS: [u8; 9] = [240, 94, 130, 136, 172, 208, 209, 215, 223];
        let mut line = String::new();
        let mut current = None;
        for cell in &strip.cells {
            let level = usize::from(level(cell.misses, peak));
            if self.colour && current != Some(level) {
                line.push_str(&format!("\x1b[38;5;{}m", COLOURS[level]));
                current = Some(level);
            }
            line.push(if self.unicode { BLOCKS } else { ASCII }[level]);
        }
        if self.colour {
            line.push_str("\x1b[0m");
        }
        line
    }
}

/// Columns of the terminal; without one `$COLUMNS`, else 80.
fn width() -> usize {
    let from_environment = || std::env::var("COLUMNS").ok()?.parse().ok();
    let found = terminal::columns(std::io::stdout()).or_else(from_environment);
    found.unwrap_or(80)
}

#[cfg(test)]
mod tests;
