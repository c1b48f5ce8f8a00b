// SPDX-License-Identifier: MIT OR Apache-2.0
//! PostgreSQL's `huge_pages`. Its processes work in the data directory, which has the configuration.

use super::{Origin, Program, Setting};

/// Files with settings, the one that wins first.
const FILES: [&str; 2] = ["postgresql.auto.conf", "postgresql.conf"];

/// The command line of the server's start.
const STARTED: &str = "postmaster.opts";
/// How the option is spelled; after `-c` it is a word of its own.
const OPTIONS: [&str; 4] = [
    "huge_pages=",
    "-chuge_pages=",
    "--huge_pages=",
    "--huge-pages=",
];

pub(super) fn huge_pages(program: &Program) -> Option<Setting> {
    let names = ["postgres", "postmaster"];
    names.iter().find(|name| program.traits.is(name))?;
    let (value, origin) = on_line(program)
        .map(|value| (value, Origin::CommandLine))
        .or_else(|| Some((in_files(program)?, Origin::File)))
        .unwrap_or(("try".to_owned(), Origin::Default));
    Some(Setting {
        of: "PostgreSQL",
        name: "huge_pages",
        effect: match value.as_str() {
            "off" | "false" | "no" => "shared memory in 4 KiB pages",
            "on" | "true" | "yes" => "shared memory in reserved huge pages, or no start",
            _ => {
                "shared memory in reserved huge pages if enough are free at the start, in 4 KiB pages if not"
            }
        },
        value,
        origin,
        advises: false,
    })
}

/// A server's own arguments; a backend has its title in their place.
fn on_line(program: &Program) -> Option<String> {
    let own = OPTIONS.iter().find_map(|option| program.argument(option));
    own.or_else(|| at_start(&(program.file)(STARTED)?))
}

/// The last option in the line that the server has written, with its words in quotes.
fn at_start(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().rev();
    words.find_map(|word| {
        let word = word.trim_matches('"');
        let value = OPTIONS.iter().find_map(|option| word.strip_prefix(option));
        value.map(str::to_owned)
    })
}

fn in_files(program: &Program) -> Option<String> {
    FILES
        .iter()
        .find_map(|file| in_text(&(program.file)(file)?))
}

/// The last assignment; `=` and quotes are optional, and a comment may follow.
fn in_text(text: &str) -> Option<String> {
    let value = |line: &str| {
        let line = line.split('#').next()?.trim();
        let value = line.strip_prefix("huge_pages")?;
        if !value.starts_with(['=', ' ', '\t']) {
            return None;
        }
        let value = value.trim_start_matches(['=', ' ', '\t']);
        Some(value.trim_matches(['\'', ' ']).to_ascii_lowercase())
    };
    text.lines().rev().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::in_text;

    #[test]
    fn the_last_assignment_counts() {
        let text = "#huge_pages = on\nhuge_pages = 'Off' # not here\nhuge_page_size = 2MB\n";
        assert_eq!(in_text(text).as_deref(), Some("off"));
        assert_eq!(in_text("huge_pages try").as_deref(), Some("try"));
        assert_eq!(in_text("#huge_pages = on\nhuge_pages_x = 1"), None);
    }
}
