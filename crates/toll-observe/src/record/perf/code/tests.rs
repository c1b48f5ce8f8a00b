// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const SOURCE: &str = "main 7/7 1.5: 1 mem: 7f00 42 |OP LOAD|LVL L1 hit|SNP None|TLB L2 miss|LCK No";

/// The instruction of a sample, by address and name.
fn instruction(tail: &str) -> Option<(u64, Option<String>)> {
    let line = format!("{SOURCE}|BLK  N/A {tail}");
    of_sample(&line).map(|it| (it.ip, it.name()))
}

fn named(ip: u64, name: &str) -> Option<(u64, Option<String>)> {
    Some((ip, Some(name.to_owned())))
}

#[test]
fn the_instruction_follows_the_latency() {
    assert_eq!(
        instruction("  22   401003 _init+0x3 (/tmp/pt)"),
        named(0x401003, "_init")
    );
    assert_eq!(instruction("35 401006"), Some((0x401006, None)));
    assert_eq!(instruction("35 401006 f (/p) 2M"), named(0x401006, "f"));
    assert_eq!(instruction("35 401006 f (/p)  N/A"), named(0x401006, "f"));
    assert_eq!(instruction("40101f [unknown]"), Some((0x40101f, None)));
    assert_eq!(instruction("401010 [unknown]"), Some((0x401010, None)));
    assert_eq!(instruction("401010 add+0x1 (/p)"), named(0x401010, "add"));
}

#[test]
fn a_sample_with_a_call_chain_has_a_latency_alone() {
    for tail in ["", "35", "0", "35 4K", "  12   2M "] {
        assert_eq!(instruction(tail), None, "{tail}");
    }
    assert_eq!(of_sample("main 7/7 1.5: 1 mem: 7f00 42 22 401003 f"), None);
}

#[test]
fn the_data_source_may_end_early() {
    let line = format!("{SOURCE} 12 401003 f+0x0 (/p)");
    let got = of_sample(&line).unwrap();
    assert_eq!((got.ip, got.name().as_deref()), (0x401003, Some("f")));
}

#[test]
fn lines_of_a_call_chain() {
    for (line, name) in [
        (
            "\t  1ab70 _start (/usr/lib/ld-linux-x86-64.so.2)",
            Some("_start"),
        ),
        (
            "\tffffffff822560c0 rep_stos ([kernel.kallsyms])",
            Some("rep_stos"),
        ),
        (
            "\t 1139 operator()<int (*)(int), A> (/tmp/a (b)/te st)",
            Some("operator()<int (*)(int), A>"),
        ),
        (
            "\t 1139 f(void (*)(int))+0x12 (/p)",
            Some("f(void (*)(int))"),
        ),
        ("\t 1139 inner (inlined)", Some("inner")),
        (
            "\t 348a8 [unknown] (/usr/lib/libc.so.6)",
            Some("[libc.so.6]"),
        ),
        ("\t 7fff8a570b94 [unknown] ([stack])", Some("[stack]")),
        ("\t 0 [unknown] ([unknown])", None),
        ("\t 401006", None),
    ] {
        assert_eq!(of_chain(line).unwrap().name().as_deref(), name, "{line}");
    }
    for line in ["", "\t", " 401006 f (/p)", "\tmain (/p)", SOURCE] {
        assert_eq!(of_chain(line), None, "{line}");
    }
}

#[test]
fn the_page_size_behind_a_call_chain() {
    let sizes = [" 2M", " 1G", " 4K", " N/A", "", "x 2M"].map(page_size);
    let wanted = [Some(true), Some(true), Some(false), Some(false), None, None];
    assert_eq!(sizes, wanted);
}
