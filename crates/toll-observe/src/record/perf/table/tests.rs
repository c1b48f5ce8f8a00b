// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const HEADER: &str = "# Overhead       Samples  Local Weight  Memory access             Symbol     Shared Object  Data Symbol             Data Object  Snoop         TLB access              Locked  Blocked     Local INSTR Latency";

#[test]
fn columns_of_perf_mem_report() {
    let columns = Columns::of(HEADER).unwrap();
    let line = "     0.49%             3  395           Local RAM or L4 hit       [.] _init  pt             [.] 0x000001878cb362d0  anon         None          L2 miss                 N/A      N/A        0";
    let parsed = columns.parse(line).unwrap();
    assert_eq!(parsed.samples, 3);
    assert_eq!(parsed.address, Some(0x1878cb362d0));
    assert_eq!(parsed.tlb, Tlb::Miss);
    assert_eq!(parsed.weight, Some(395));
}

#[test]
fn empty_cells_shift_nothing() {
    let columns = Columns::of(HEADER).unwrap();
    let line = "     0.49%             1  395           L1 hit       [.] 0x0000000000401000  pt             [.] 0x000001878cb362d0                           L2 miss                 N/A";
    assert_eq!(columns.parse(line).unwrap().address, Some(0x1878cb362d0));
}

#[test]
fn data_with_a_symbol_has_no_address() {
    let columns = Columns::of(HEADER).unwrap();
    let line = "     0.49%             1  395           L1 hit       [.] f  pt             [.] table+0x8  pt   None   L2 miss                 N/A      N/A        0";
    assert_eq!(columns.parse(line).unwrap().address, None);
}

#[test]
fn a_plain_report_is_told_from_a_memory_report() {
    let error = Columns::of("# Overhead  Command  Shared Object  Symbol").unwrap_err();
    assert!(error.contains("perf mem report"), "{error}");
}

#[test]
fn dumps_with_spaces_and_with_separators() {
    let spaces =
        parse_dump("24623 24623 0x401003 0x187a58ea340 22 0x851101042 /tmp/pt:_init").unwrap();
    assert_eq!(
        (spaces.address, spaces.tlb, spaces.weight),
        (Some(0x187a58ea340), Tlb::Miss, Some(22))
    );
    assert_eq!(
        parse_dump("24623,24623,0x401003,0x187a58ea340,22,0x851101042,/tmp/pt:_init"),
        Ok(spaces)
    );
    assert!(parse_dump("24623 24623 0x401003").is_err());
    assert!(parse_dump("").is_err());
}
