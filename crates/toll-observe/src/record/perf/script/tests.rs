// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn sample(line: &str) -> Sample {
    match parse(line) {
        Ok(Line::Sample(sample)) => sample,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_default_line_of_perf_script() {
    let s = sample(
        "            main 24623     1.000004:       1000 raw 0x1cd:HG:      187a58ea340       851101042 |OP LOAD|LVL Local RAM or L4 hit|SNP None|TLB L2 miss|LCK N/A|BLK  N/A              22           401003 _init+0x3 (/tmp/pt)",
    );
    assert_eq!(s.pid, Some(24623));
    assert_eq!(s.time_ns, Some(1_000_004_000));
    assert_eq!(s.address, 0x187a58ea340);
    assert_eq!(s.period, Some(1000));
    assert_eq!(s.tlb, Tlb::Miss);
    assert_eq!(s.weight, Some(22));
    assert!(!s.huge);
}

#[test]
fn pid_cpu_nanoseconds_data_symbol_and_page_size() {
    let s = sample(
        "  my prog 7/9 [003] 12.000000034:  64  cpu/mem-loads,ldlat=30/P:  7f0000001008 table+0x8 (/opt/p)  10650100842 |OP LOAD|LVL L3 or L3 hit|SNP None|TLB L2 miss|LCK No|BLK  N/A    144   401003 f+0x3 (/opt/p) 2M",
    );
    assert_eq!(s.pid, Some(7));
    assert_eq!(s.time_ns, Some(12_000_000_034));
    assert_eq!(s.address, 0x7f0000001008);
    assert_eq!((s.period, s.weight, s.huge), (Some(64), Some(144), true));
}

#[test]
fn few_fields() {
    let s = sample("     7f0000001008  5080184 |OP STORE|LVL L1 hit|SNP N/A|TLB L1 hit|LCK N/A");
    assert_eq!(
        (s.address, s.tlb, s.pid, s.period),
        (0x7f0000001008, Tlb::Hit, None, None)
    );
    let s =
        sample(" prog 12 1.5: 7f0000001008  5080184 |OP STORE|LVL L1 hit|SNP N/A|TLB N/A miss 17");
    assert_eq!((s.tlb, s.weight), (Tlb::Miss, Some(17)));
}

#[test]
fn numbers_alone_are_enough_if_they_can_only_be_a_data_source() {
    let s = sample("main 24623 1.000004: 1000 mem-loads:  187a58ea340  851101042  22  401003 f");
    assert_eq!(
        (s.address, s.tlb, s.weight),
        (0x187a58ea340, Tlb::Miss, Some(22))
    );
    let line = "main 24623 1.000004: 1 page-faults:  187a58ea340  401003 f+0x3 (/tmp/pt)";
    assert_eq!(parse(line), Ok(Line::Sourceless));
}

#[test]
fn records() {
    let line = "pt 22768 1189.3: PERF_RECORD_MMAP2 22768/22769: [0x557ed0f73000(0x1000) @ 0x1000 fe:00 9978514 1445811229]: r-xp /tmp/a b";
    let Ok(Line::Map(map)) = parse(line) else {
        panic!()
    };
    assert_eq!(
        (map.pid, map.start, map.length, map.offset),
        (22768, 0x557ed0f73000, 0x1000, 0x1000)
    );
    assert!(map.executable);
    assert_eq!(map.name, "/tmp/a b");
    assert_eq!(
        parse("sh 1 2.0: PERF_RECORD_FORK(12:13):(10:11)"),
        Ok(Line::Fork {
            pid: 12,
            parent: 10
        })
    );
    assert_eq!(
        parse("sh 1 2.0: PERF_RECORD_COMM exec: my:prog:12/12"),
        Ok(Line::Exec { pid: 12 })
    );
    assert_eq!(
        parse("sh 1 2.0: PERF_RECORD_MMAP2 nonsense"),
        Ok(Line::Other)
    );
}

#[test]
fn what_looks_like_a_sample_and_is_none_is_an_error() {
    for line in [
        "main 1 1.0: 1 mem: 7f00 42 |OP LOAD|LVL L1",
        "main 1 1.0: 1 mem: |OP LOAD|LVL L1 hit|SNP None|TLB L2 miss|LCK No",
        "main 1 1.0: 1 mem: zz 42 |OP LOAD|LVL L1 hit|SNP None|TLB L2 miss|LCK No",
        "main 1 1.0: 1 mem: 7f00 42 |OP LOAD|LVL L1 hit|SNP None|TLB L2 mi",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}
