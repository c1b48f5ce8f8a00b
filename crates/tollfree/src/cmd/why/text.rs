// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report as text.

mod details;

use toll_model::numbers::percent;
use toll_model::units::format_size;

use super::report::Report;
use crate::output::{cut, push_wrapped};
use crate::terminal::plain;

/// Columns of a size and of a share.
const SIZE: usize = 9;
const SHARE: usize = 8;
/// Longest title of a line.
const TITLE: usize = 42;
/// Longest name that is printed whole.
const NAME: usize = 60;

/// The report in lines of at most `columns`. `is_part`: of some mappings only.
pub fn text(report: &Report, columns: usize, all: bool, is_part: bool) -> String {
    let mut page = Page {
        text: String::new(),
        columns,
        whole: report.resident_bytes,
    };
    page.wrapped("", &heading(report, is_part));
    page.settings(report);
    page.bill(report);
    page.besides(report);
    page.changes(report);
    details::program(&mut page, report);
    details::group(&mut page, report, is_part);
    details::mappings(&mut page, report, all || is_part);
    details::missing(&mut page, report);
    page.text
}

fn heading(report: &Report, is_part: bool) -> String {
    let what = match (is_part, report.mappings.len()) {
        (false, _) => String::new(),
        (true, 1) => ", one mapping".to_owned(),
        (true, number) => format!(", {number} mappings"),
    };
    let huge = match report.resident_bytes {
        0 => String::new(),
        whole => format!(
            ", {} of it in huge pages",
            percent(report.huge_bytes as f64 / whole as f64)
        ),
    };
    let resident = format_size(report.resident_bytes);
    let name = short(report.name);
    format!(
        "{name} ({}{}){what}: {resident} resident{huge}",
        report.pid, report.place
    )
}

/// A name without control characters, not too long: the end of a path tells more than its start.
fn short(name: &str) -> String {
    let plain = plain(name);
    let length = plain.chars().count();
    match length > NAME {
        true => format!(
            "...{}",
            plain.chars().skip(length - NAME).collect::<String>()
        ),
        false => plain,
    }
}

/// Text that grows by lines.
struct Page {
    text: String,
    columns: usize,
    /// The memory that is 100 %.
    whole: u64,
}

impl Page {
    fn wrapped(&mut self, indent: &str, paragraph: &str) {
        push_wrapped(&mut self.text, indent, &plain(paragraph), self.columns);
    }

    fn head(&mut self, title: &str) {
        self.text.push('\n');
        self.wrapped("", title);
    }

    /// A line with a size; on a narrow terminal two.
    fn row(&mut self, title: &str, bytes: u64, share: &str) {
        let size = format_size(bytes);
        let numbers = format!("{size:>SIZE$} {share:>SHARE$}");
        let line = match TITLE + 1 + SIZE + 1 + SHARE <= self.columns {
            true => format!("{title:<TITLE$} {numbers}"),
            false => format!("{}\n  {numbers}", cut(title, self.columns)),
        };
        for line in line.lines() {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    fn of_whole(&self, bytes: u64) -> String {
        match self.whole {
            0 => String::new(),
            whole => percent(bytes as f64 / whole as f64),
        }
    }

    fn settings(&mut self, report: &Report) {
        let thp = &report.thp;
        let Some(enabled) = &thp.enabled else {
            return self.wrapped("", "this machine: no transparent huge pages");
        };
        let shmem = thp.shmem_enabled.unwrap_or("unknown");
        let disabled = match thp.disabled {
            Some(true) => "; switched off by the process",
            _ => "",
        };
        self.wrapped(
            "",
            &format!("this machine: THP {enabled}, shared memory {shmem}{disabled}"),
        );
    }

    fn bill(&mut self, report: &Report) {
        self.text.push('\n');
        for line in &report.bill {
            let share = self.of_whole(line.bytes);
            self.row(&line.title, line.bytes, &share);
        }
        self.row("resident memory", self.whole, "100 %");
    }

    /// What is part of the bill above or beside it.
    fn besides(&mut self, report: &Report) {
        self.text.push('\n');
        if let Some(unused) = &report.unused {
            let bytes = unused.bytes as u64;
            let share = self.of_whole(bytes);
            self.row("zeros in huge pages (likely bloat)", bytes, &share);
            if unused.read < unused.huge_pages {
                let [low, high] = unused.interval.map(|bytes| format_size(bytes as u64));
                let read = format!(
                    "{low} to {high}: {} of {} huge pages were read",
                    unused.read, unused.huge_pages
                );
                self.wrapped("  ", &read);
            }
        }
        if report.advised_bytes > 0 {
            let share = self.of_whole(report.advised_bytes);
            self.row("in advised mappings", report.advised_bytes, &share);
            self.wrapped("  ", &advised(report));
        }
        self.folios(report);
        let rows = [
            ("eligible, touched or not", report.eligible_bytes),
            ("given back by MADV_FREE", report.lazy_free_bytes),
            ("swapped out, not in the bill", report.swap_bytes),
            (
                "page tables, not in the bill",
                report.page_table_bytes.unwrap_or(0),
            ),
        ];
        for (title, bytes) in rows.into_iter().filter(|(_, bytes)| *bytes > 0) {
            self.row(title, bytes, "");
        }
    }

    fn folios(&mut self, report: &Report) {
        let Some(folios) = &report.folios else {
            return;
        };
        let about = if folios.read < folios.regions {
            "about "
        } else {
            ""
        };
        for size in &folios.sizes {
            let title = match size.page_bytes {
                toll_model::REGION => "split huge pages, among the 4 KiB".to_owned(),
                page => format!("{} pages, among the 4 KiB", format_size(page)),
            };
            self.row(
                &format!("{about}{title}"),
                size.bytes,
                &self.of_whole(size.bytes),
            );
        }
        if folios.retained_bytes > 0 {
            let title = format!("{about}kept by split huge pages, not in the bill");
            self.row(&title, folios.retained_bytes, "");
            self.wrapped(
                "  ",
                "the program gave back parts of huge pages; they are free only under memory pressure, and count for the cgroup until then",
            );
        }
    }

    fn changes(&mut self, report: &Report) {
        let lines = report.bill.iter();
        let fixes: Vec<(&str, &str)> = lines
            .filter_map(|line| Some((line.reason?.title(), line.fix?)))
            .collect();
        if fixes.is_empty() {
            return;
        }
        self.head("what to change");
        for (title, fix) in fixes {
            self.wrapped("  ", &format!("{title}: {fix}"));
        }
    }
}

fn advised(report: &Report) -> String {
    let huge = format_size(report.advised_huge_bytes);
    let advisers = report.advisers();
    let by = match advisers.is_empty() {
        true => "by the program or a library".to_owned(),
        false => format!("likely by {}", advisers.join(", ")),
    };
    format!(
        "{huge} of it huge. Advised {by}: MADV_HUGEPAGE stays until the addresses are unmapped, also for later blocks"
    )
}
