// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output that the commands share: text, JSON, tables.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use toll_act::files;

/// Columns of a line where the output is not a terminal.
pub const COLUMNS: usize = 100;

/// Prints one JSON document on stdout.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Prints text on stdout. Unlike `print!`, returns a write error (a full disk) instead of
/// panicking.
pub fn text(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("stdout: cannot be written")
}

/// Writes one JSON document to a file or a descriptor (`/dev/fd/3`). Without one, writes to stderr,
/// because stdout belongs to the target.
pub fn json_for<T: Serialize>(file: Option<&Path>, value: &T) -> Result<()> {
    let Some(file) = file else {
        return json_on_stderr(value);
    };
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    files::write(file, &text)
}

/// Prints one JSON document on stderr. A closed stderr is not an error.
fn json_on_stderr<T: Serialize>(value: &T) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    let _ = io::stderr().write_all(&text);
    Ok(())
}

/// A table without borders: names in the first column, numbers in the others.
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The first characters of a text.
pub fn cut(text: &str, columns: usize) -> String {
    text.chars().take(columns).collect()
}

/// Adds a paragraph in lines of at most `columns`; the lines after the first are indented.
pub fn push_wrapped(text: &mut String, indent: &str, paragraph: &str, columns: usize) {
    let mut line = indent.to_owned();
    for word in paragraph.split(' ') {
        let length = line.chars().count() + 1 + word.chars().count();
        if length > columns && !line.trim().is_empty() {
            text.push_str(line.trim_end());
            text.push('\n');
            line = format!("{indent}  ");
        } else if !line.trim().is_empty() {
            line.push(' ');
        }
        // A word that is longer than a line.
        let room = columns.saturating_sub(line.chars().count()).max(1);
        let mut rest: Vec<char> = word.chars().collect();
        while rest.len() > room {
            line.extend(rest.drain(..room));
            text.push_str(&line);
            text.push('\n');
            line = format!("{indent}  ");
        }
        line.extend(rest);
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
