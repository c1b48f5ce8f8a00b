// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that others chose, in messages and tables.

/// Replaces what a terminal would act on: control characters, and those that turn the direction of
/// writing or are invisible. Processes and control groups have the names that their owners chose.
pub fn plain(name: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    name.chars()
        .map(|c| if is_harmful(c) { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_a_terminal_acts_on() {
        assert_eq!(plain("a\x1b[2J\n\u{9b}ä\u{202e}x"), "a?[2J??ä?x");
    }
}
