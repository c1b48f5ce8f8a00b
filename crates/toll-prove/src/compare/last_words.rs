// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last lines that a program wrote to stderr, for messages.

use super::invocation::visible;

/// Maximum number of lines.
const LINES: usize = 5;
/// Maximum number of characters of a line.
const LENGTH: usize = 200;

/// Continues a message by the last lines with content; nothing if there are none.
pub(super) fn last_words(text: &str) -> String {
    let content = text.lines().filter(|line| !line.trim().is_empty());
    let mut lines: Vec<String> = content.rev().take(LINES).map(shown).collect();
    lines.reverse();
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("; its last message: {line}"),
        lines => format!("; its last messages:\n  {}", lines.join("\n  ")),
    }
}

/// A line as it can be printed: without control characters, and not too long.
fn shown(line: &str) -> String {
    let mut text: String = line.trim_end().chars().take(LENGTH).collect();
    if text.len() < line.trim_end().len() {
        text.push_str("...");
    }
    visible(&text)
}

#[cfg(test)]
mod tests;
