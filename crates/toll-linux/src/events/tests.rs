// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use toll_model::wire::EventKind;

use super::*;

pub(super) const MIB: u64 = 1 << 20;

pub(super) fn at(kind: EventKind, time_ns: u64, address: u64, length: u64, old: u64) -> Event {
    Event {
        kind: kind as u32,
        process: 7,
        time_ns,
        address,
        length,
        old,
        thread: 0,
        ordinal: 0,
        frames_used: 1,
        rule: wire::ANY,
        advised: 0,
        frame_module: [0, wire::ANY, wire::ANY, wire::ANY],
        frame_offset: [0x1234, 0, 0, 0],
    }
}

#[test]
fn any_bytes_are_read_without_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events");
    EventFile::create(&path, 50).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    let mut state = 0x1234_5678_9abc_def1_u64;
    for _ in 0..20 {
        let noise: Vec<u8> = (0..length)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        file.write_all_at(&noise[16..], 16).unwrap();
        let opened = EventFile::open(&path).unwrap();
        let mut events = opened.events();
        for event in &mut events {
            event.kind %= 7;
        }
        let modules = opened.modules();
        let mut symbolizer = Symbolizer::new();
        for event in &events {
            site_of(event, &modules, &mut symbolizer);
        }
        blocks(&events);
    }
}
