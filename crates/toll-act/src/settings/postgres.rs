// SPDX-License-Identifier: MIT OR Apache-2.0
//! PostgreSQL's `huge_pages`. Its processes work in the data directory, which has the configuration.

use super::{Origin, Program, Setting};

/// Files with settings, the one that wins first.
const FILES: [&str; 2] = ["postgresql.auto.conf", "postgresql.conf"];

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

fn on_line(program: &Program) -> Option<String> {
    program
        .argument("huge_pages=")
        .or_else(|| program.argument("-chuge_pages="))
        .or_else(|| program.argument("--huge_pages="))
        .or_else(|| program.argument("--huge-pages="))
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
