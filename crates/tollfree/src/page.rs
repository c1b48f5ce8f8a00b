// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report page: one HTML file that needs no network and no script.
//!
//! [`render`] depends on [`PageData`] only: equal data give an equal page.
//!
//! | file | holds |
//! |---|---|
//! | `data` | everything that a page can show |
//! | `summary` | the top of the page: verdict, key figures, limitations |
//! | `measured` | the interleaved runs |
//! | `sites` | where the misses are, and the estimates by site and region |
//! | `closing` | permanent changes, method, machine, command, glossary |
//! | `charts`, `strips` | the drawings |
//! | `format` | text and numbers in HTML |

mod charts;
mod closing;
mod data;
mod format;
mod measured;
mod sites;
mod strips;
mod summary;
#[cfg(test)]
mod tests;

use std::fmt::Write;

pub use data::{
    Command, Counter, CounterUnit, Measured, PageData, Permanent, Tone, Variant, VerdictBox,
};
use format::escape;

/// Renders the whole page.
pub fn render(data: &PageData) -> String {
    let mut out = String::with_capacity(64 << 10);
    let program = escape(&data.program);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>tollfree: {program}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n<header><h1>{program}</h1><p class=\"soft\">What address translation costs this program, and what huge pages change</p></header>\n",
        include_str!("page/style.css")
    );
    for section in [
        summary::verdict(data),
        summary::tiles(data),
        summary::warnings(data),
        measured::runs(data),
        sites::strips(data),
        measured::counters(data),
        sites::estimated(data),
        closing::permanent(data),
        closing::method(data),
        closing::environment(data),
        closing::command(data),
        closing::GLOSSARY.to_owned(),
    ] {
        if !section.is_empty() {
            out.push_str(&section);
            out.push('\n');
        }
    }
    let _ = write!(
        out,
        "<footer class=\"soft\"><p>Made by tollfree {}. This file is self-contained: it loads no other files.</p></footer>\n</main>\n<script>\n{}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        include_str!("page/hover.js")
    );
    out
}
