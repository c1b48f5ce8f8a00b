// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_testkit::Directory;

use super::*;

#[test]
fn a_code_span_holds_any_command() {
    assert_eq!(code("./a -x"), "`./a -x`");
    assert_eq!(code("echo `date`"), "`` echo `date` ``");
    assert_eq!(code("a | b"), "`a \\| b`");
}

#[test]
fn prose_has_no_markup() {
    assert_eq!(prose("a_b *c* <d>\n"), "a\\_b \\*c\\* \\<d\\> ");
}

#[test]
fn the_machine_is_described_without_its_name() {
    let directory = Directory::with(&[
        (
            "proc/cpuinfo",
            "model name\t: Some CPU\ncpu family\t: 6\nmodel\t\t: 143\n",
        ),
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("proc/sys/kernel/hostname", "secret\n"),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        ),
    ]);
    let text = machine(&directory.root());
    assert!(text.starts_with("Some CPU"), "{text}");
    assert!(
        text.ends_with("Linux 6.12.1, transparent huge pages: madvise"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}
