// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table in lines that fit into a width.

use super::columns::{Column, Line, fitting};
use super::document::Document;
use crate::terminal::plain;

/// Width of a command beside its cgroup, and least width of that.
const COMMAND: usize = 16;
const CGROUP: usize = 20;
/// Hexadecimal digits of a container's id, and how many are shown, as container tools do.
const WHOLE_ID: usize = 64;
const ID: usize = 12;

/// Rows with the columns that fit.
pub struct Table<'a> {
    rows: &'a [Line<'a>],
    fitting: Vec<Column>,
    /// Columns of the name.
    room: usize,
    seconds: f64,
    is_groups: bool,
}

impl<'a> Table<'a> {
    pub fn new(
        rows: &'a [Line<'a>],
        document: &Document,
        columns: usize,
        is_groups: bool,
    ) -> Table<'a> {
        let fitting = fitting(rows, columns);
        let taken: usize = fitting.iter().map(|column| column.width() + 1).sum();
        Table {
            rows,
            fitting,
            room: columns.saturating_sub(taken),
            seconds: document.interval_ns as f64 / 1e9,
            is_groups,
        }
    }

    /// The header, and a line for each row.
    pub fn lines(&self) -> Vec<String> {
        let rows = self.rows.iter().map(|row| self.row(row));
        std::iter::once(self.header()).chain(rows).collect()
    }

    fn header(&self) -> String {
        let title = |column: Column| match (column, self.is_groups) {
            (Column::Id, true) => "PROCS".to_owned(),
            (column, _) => column.title().to_owned(),
        };
        let name = match self.is_groups {
            true => "CGROUP".to_owned(),
            false if self.has_both() => format!("{:<COMMAND$} CGROUP", "COMMAND"),
            false => "COMMAND".to_owned(),
        };
        self.line(title, &name)
    }

    fn row(&self, row: &Line) -> String {
        let cell = |column: Column| column.cell(row, self.seconds);
        self.line(cell, &self.name(row))
    }

    fn line(&self, cell: impl Fn(Column) -> String, name: &str) -> String {
        let cells = self.fitting.iter().map(|column| {
            let width = column.width();
            format!("{:>width$} ", cell(*column))
        });
        let cells: String = cells.collect();
        format!("{cells}{name}").trim_end().to_owned()
    }

    /// Whether a command and its cgroup fit.
    fn has_both(&self) -> bool {
        self.room > COMMAND + CGROUP
    }

    fn name(&self, row: &Line) -> String {
        match row.cgroup {
            _ if self.is_groups => last(&row.name, self.room),
            Some(cgroup) if self.has_both() => {
                let path = last(&short_path(cgroup), self.room - COMMAND - 1);
                format!("{:<COMMAND$} {path}", first(&row.name, COMMAND))
            }
            _ => first(&row.name, self.room),
        }
    }
}

fn first(text: &str, columns: usize) -> String {
    text.chars().take(columns).collect()
}

/// The end of a path says the most.
fn last(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    match length.saturating_sub(columns) {
        0 => text.to_owned(),
        more => {
            let rest: String = text.chars().skip(more + 2).collect();
            format!("..{rest}")
        }
    }
}

/// The path of a cgroup, with the ids of containers shortened.
pub fn short_path(path: &str) -> String {
    let mut short = String::new();
    let mut digits = 0;
    let path = plain(path);
    for (at, c) in path.char_indices() {
        digits = match c.is_ascii_hexdigit() {
            true => digits + 1,
            false => 0,
        };
        let is_id = digits > ID && id_length(&path, at + 1 - digits) >= WHOLE_ID;
        if !is_id {
            short.push(c);
        }
    }
    short
}

/// Number of hexadecimal digits from a place on.
fn id_length(path: &str, from: usize) -> usize {
    let rest = path.bytes().skip(from);
    rest.take_while(u8::is_ascii_hexdigit).count()
}

#[cfg(test)]
mod tests;
