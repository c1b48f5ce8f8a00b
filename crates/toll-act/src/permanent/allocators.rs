// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that fit an allocator.

use toll_model::REGION;

use super::{Candidate, Rule, Subject, Version, by_variable, unmeasured};

pub(super) const RULES: &[Rule] = &[jemalloc, mimalloc, tcmalloc, glibc];

/// The variant with glibc's malloc tunable.
pub const GLIBC: &str = "glibc-tunable";

/// The variants in which it takes its memory from reserved pages.
pub const GLIBC_HUGETLB_2M: &str = "glibc-hugetlb-2m";
pub const GLIBC_HUGETLB_1G: &str = "glibc-hugetlb-1g";

/// The variable with glibc's tunables, and the one that makes malloc advise its memory.
pub(super) const GLIBC_VARIABLE: &str = "GLIBC_TUNABLES";
pub(super) const GLIBC_HUGE: &str = "glibc.malloc.hugetlb=1";
/// The first glibc with that tunable.
const GLIBC_SINCE: Version = Version(2, 35, 0);

fn glibc(subject: &Subject) -> Option<Candidate> {
    let others = ["libtcmalloc", "libmimalloc", "libjvm"];
    let other = others.iter().any(|name| subject.uses(name))
        || subject.traits.jemalloc().is_some()
        || subject.version("mimalloc").is_some()
        || subject.version("go").is_some();
    (has_glibc_tunable(subject) && !other).then(|| {
        by_variable(
            GLIBC,
            "glibc's malloc advises its memory (glibc 2.35 or newer)",
            GLIBC_VARIABLE,
            subject.joined(GLIBC_VARIABLE, ':', GLIBC_HUGE),
        )
    })
}

/// Returns the change that takes malloc's memory from reserved pages of this size, if glibc's
/// malloc is among the changes of a program.
pub fn reserved(all: &[Candidate], page: u64, pages: u64) -> Option<Candidate> {
    let glibc = all.iter().find(|candidate| candidate.name == GLIBC)?;
    let (_, value) = glibc.variant.as_ref()?.env.first()?;
    let (name, size) = match page {
        ..=REGION => (GLIBC_HUGETLB_2M, "2 MiB"),
        _ => (GLIBC_HUGETLB_1G, "1 GiB"),
    };
    let value = value.replace(GLIBC_HUGE, &format!("glibc.malloc.hugetlb={page}"));
    let change = by_variable(
        name,
        &format!("glibc's malloc takes its memory from reserved pages of {size}"),
        GLIBC_VARIABLE,
        value,
    );
    let kilobytes = page >> 10;
    Some(Candidate {
        how: format!(
            "# as root, at boot: memory is soon too fragmented\n\
             echo {pages} >/sys/kernel/mm/hugepages/hugepages-{kilobytes}kB/nr_hugepages\n\n{}",
            change.how
        ),
        ..change
    })
}

pub(super) fn has_glibc_tunable(subject: &Subject) -> bool {
    subject.uses("libc.so.6") && subject.may_be("glibc", GLIBC_SINCE)
}

fn jemalloc(subject: &Subject) -> Option<Candidate> {
    let variable = subject.traits.jemalloc()?;
    Some(by_variable(
        "jemalloc-thp",
        "jemalloc advises its memory",
        variable,
        subject.joined(variable, ',', "thp:always"),
    ))
}

/// Without this option mimalloc asks for no huge pages; some versions even disable them for the
/// process.
fn mimalloc(subject: &Subject) -> Option<Candidate> {
    let version = subject.version("mimalloc");
    if version.is_none() && !subject.uses("libmimalloc") {
        return None;
    }
    let is_old = |Version(major, minor, _)| matches!((major, minor), (1, ..8) | (2, 0));
    let variable = match version.is_some_and(is_old) {
        true => "MIMALLOC_LARGE_OS_PAGES",
        false => "MIMALLOC_ALLOW_LARGE_OS_PAGES",
    };
    let is_set = subject.env(variable).is_some_and(|value| value == "1");
    (!is_set).then(|| {
        by_variable(
            "mimalloc-large",
            "mimalloc asks for huge pages",
            variable,
            "1".to_owned(),
        )
    })
}

/// gperftools' tcmalloc advises nothing, but can take its memory from hugetlbfs.
fn tcmalloc(subject: &Subject) -> Option<Candidate> {
    subject.uses("libtcmalloc").then(|| {
        unmeasured(
            "tcmalloc-hugetlb",
            "tcmalloc's heap in reserved huge pages (gperftools)",
            "# as root; NUMBER: the heap's size in huge pages of 2 MiB\n\
             sysctl vm.nr_hugepages=NUMBER\n\
             mount -t hugetlbfs none /dev/hugepages\n\n\
             # in a shell or start script, as a user that may write there:\n\
             export TCMALLOC_MEMFS_MALLOC_PATH=/dev/hugepages/NAME",
        )
    })
}
