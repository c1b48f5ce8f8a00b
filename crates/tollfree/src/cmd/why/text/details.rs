// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts behind the bill: the program's settings, the control group, mappings, what is missing.

use toll_act::settings::Origin;
use toll_model::units::format_size;

use super::super::report::{Mapping, Report};
use super::{Page, short};

/// Mappings that are listed without `--all`.
const LARGEST: usize = 10;

pub fn program(page: &mut Page, report: &Report) {
    if report.settings.is_empty() {
        return;
    }
    page.head("the program's settings");
    for setting in report.settings {
        let origin = match setting.origin {
            Origin::Default => "default",
            Origin::Environment => "environment",
            Origin::CommandLine => "command line",
            Origin::File => "configuration file",
        };
        let line = format!(
            "{}: {}={} ({origin}): {}",
            setting.of,
            setting.name,
            short(&setting.value),
            setting.effect
        );
        page.wrapped("  ", &line);
    }
}

/// What monitoring reports for the container, where the process is in one.
pub fn group(page: &mut Page, report: &Report, is_part: bool) {
    let Some(group) = report.cgroup.as_ref().filter(|_| !is_part) else {
        return;
    };
    page.head(&format!("cgroup {}", short(&group.directory)));
    page.row(
        "working set (usage - inactive files)",
        group.working_set_bytes,
        "",
    );
    let parts = [
        (
            "  anonymous, of all its processes",
            Some(group.anonymous_bytes),
        ),
        ("  files used lately", Some(group.active_file_bytes)),
        ("  shared memory and tmpfs", Some(group.shared_bytes)),
        ("  page tables, slab, stacks", group.kernel_bytes),
    ];
    for (title, bytes) in parts {
        if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
            page.row(title, bytes, "");
        }
    }
    if let Some(limit) = group.limit_bytes {
        page.row("limit", limit, "");
    }
}

/// The mappings with the most resident memory.
pub fn mappings(page: &mut Page, report: &Report, all: bool) {
    let mut sorted: Vec<&Mapping> = report.mappings.iter().collect();
    sorted.sort_by_key(|mapping| std::cmp::Reverse(mapping.resident_bytes));
    if sorted.is_empty() {
        return;
    }
    let shown = if all {
        sorted.len()
    } else {
        sorted.len().min(LARGEST)
    };
    let title = match shown < sorted.len() {
        true => format!(
            "the largest of {} mappings (--all lists them)",
            sorted.len()
        ),
        false => "mappings".to_owned(),
    };
    page.head(&title);
    for mapping in &sorted[..shown] {
        one(page, mapping);
    }
}

fn one(page: &mut Page, mapping: &Mapping) {
    let entry = mapping.entry;
    let name = match mapping.name {
        "" => String::new(),
        name => format!(" {}", short(name)),
    };
    let advice = match mapping.advice {
        None => String::new(),
        Some("huge") => ", advised".to_owned(),
        Some(_) => ", advised against".to_owned(),
    };
    let title = format!(
        "{:x}-{:x} {}{name}: {} resident of {}, {} huge{advice}",
        entry.start,
        entry.end,
        mapping.kind.title(),
        format_size(entry.resident),
        format_size(mapping.length),
        format_size(entry.huge)
    );
    page.wrapped("  ", &title);
    let reasons = mapping.reasons.iter().map(|because| match because.bytes {
        0 => format!("also {}", because.reason.title()),
        bytes => format!("{}: {}", because.reason.title(), format_size(bytes)),
    });
    let reasons: Vec<String> = reasons.collect();
    if !reasons.is_empty() {
        page.wrapped("    ", &reasons.join("; "));
    }
}

pub fn missing(page: &mut Page, report: &Report) {
    if report.missing.is_empty() {
        return;
    }
    page.head("not readable here");
    for missing in report.missing {
        let line = format!("{}: {}; {}", missing.what, missing.reason, missing.fix);
        page.wrapped("  ", &line);
    }
}
