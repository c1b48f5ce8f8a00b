// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use std::os::unix::fs::FileExt;

const MIB: u64 = 1 << 20;

fn at(kind: EventKind, time_ns: u64, address: u64, length: u64, old: u64) -> Event {
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

/// The bytes of an event, as a little-endian machine has them in memory.
fn bytes(event: &Event) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(event.kind.to_le_bytes());
    out.extend(event.process.to_le_bytes());
    for word in [event.time_ns, event.address, event.length, event.old] {
        out.extend(word.to_le_bytes());
    }
    for word in [event.thread, event.ordinal, event.frames_used, event.rule] {
        out.extend(word.to_le_bytes());
    }
    out.extend(event.advised.to_le_bytes());
    out.extend(
        event
            .frame_module
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    out.extend(
        event
            .frame_offset
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    out
}

fn set_counter(path: &Path, offset: usize, value: u32) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&value.to_le_bytes(), offset as u64)
        .unwrap();
}

#[test]
fn reads_back_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events");
    let created = EventFile::create(&path, 4).unwrap();
    let event = at(EventKind::Mmap, 5, 0x7f00_0000_0000, 3 * MIB, 0);
    assert_eq!(bytes(&event).len(), size_of::<Event>());
    created
        .file
        .write_all_at(&bytes(&event), created.event_at(0))
        .unwrap();
    let mut module = 3u32.to_le_bytes().to_vec();
    module.extend([0xab, 0xcd, 0x01]);
    module.resize(36, 0);
    module.extend(b"/usr/bin/thing");
    let start = size_of::<EventsHeader>() as u64;
    created.file.write_all_at(&module, start).unwrap();
    set_counter(&path, offset_of!(EventsHeader, events), 6);
    set_counter(&path, offset_of!(EventsHeader, modules), 1);

    let opened = EventFile::open(&path).unwrap();
    assert_eq!(opened.lost(), 2);
    let events = opened.events();
    assert_eq!(events.len(), 4);
    assert_eq!(format!("{:?}", events[0]), format!("{event:?}"));
    assert_eq!(events[1].kind, 0);
    let info = ModuleInfo {
        id: "abcd01".into(),
        path: "/usr/bin/thing".into(),
    };
    assert_eq!(opened.modules(), [info]);
}

#[test]
fn refuses_damaged_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events");
    assert!(matches!(
        EventFile::open(&path),
        Err(EventsError::Io { .. })
    ));
    for foreign in [&b""[..], b"short", &[0; 4096]] {
        std::fs::write(&path, foreign).unwrap();
        let opened = EventFile::open(&path);
        assert!(matches!(opened, Err(EventsError::Foreign(_))));
    }
    EventFile::create(&path, 100).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(5000).unwrap();
    let opened = EventFile::open(&path);
    assert!(matches!(opened, Err(EventsError::Truncated { .. })));
}

#[test]
fn any_bytes_are_read_without_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events");
    let created = EventFile::create(&path, 50).unwrap();
    let mut state = 0x1234_5678_9abc_def1_u64;
    for _ in 0..20 {
        let noise: Vec<u8> = (0..created.event_at(50))
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        created.file.write_all_at(&noise[16..], 16).unwrap();
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

#[test]
fn a_block_keeps_its_name_when_it_moves() {
    let found = blocks(&[
        at(EventKind::Malloc, 1, 0x1000, MIB, 0),
        at(EventKind::Move, 2, 0x900_0000, 4 * MIB, 0x1000),
        at(EventKind::Free, 3, 0x900_0000, 4 * MIB, 0),
    ]);
    let seen: Vec<_> = found
        .iter()
        .map(|b| (b.event_index, b.address, b.born_ns, b.died_ns))
        .collect();
    assert_eq!(seen, [(0, 0x1000, 1, 2), (0, 0x900_0000, 2, 3)]);
}

#[test]
fn a_new_block_ends_what_it_covers() {
    let found = blocks(&[
        at(EventKind::Mmap, 1, 8 * MIB, 8 * MIB, 0),
        at(EventKind::Malloc, 2, 9 * MIB, 2 * MIB, 0),
        at(EventKind::Malloc, 3, 10 * MIB, 2 * MIB, 0),
        at(EventKind::Mmap, 4, 12 * MIB, 2 * MIB, 0),
    ]);
    let seen: Vec<_> = found
        .iter()
        .map(|b| (b.event_index, b.length / MIB, b.died_ns))
        .collect();
    let alive = u64::MAX;
    let front = (0, 4, alive);
    assert_eq!(
        seen,
        [(0, 8, 4), (1, 2, 3), (2, 2, alive), front, (3, 2, alive)]
    );
}

#[test]
fn a_fork_has_its_parents_blocks_and_exec_has_none() {
    let mut child = at(EventKind::Process, 2, 8, 0, 7);
    child.process = 8;
    let mut exec = at(EventKind::Process, 4, 8, 0, 0);
    exec.process = 8;
    let found = blocks(&[
        at(EventKind::Process, 0, 7, 0, 0),
        at(EventKind::Malloc, 1, 0x1000, MIB, 0),
        child,
        at(EventKind::Free, 3, 0x1000, MIB, 0),
        exec,
    ]);
    let seen: Vec<_> = found
        .iter()
        .map(|b| (b.process, b.born_ns, b.died_ns))
        .collect();
    assert_eq!(seen, [(7, 1, 3), (8, 2, 4)]);
}

#[test]
fn modules_without_build_id_go_by_name() {
    let mut bytes = vec![0; size_of::<Module>()];
    bytes[36..36 + 9].copy_from_slice(b"/lib/a.so");
    let info = module(&bytes);
    assert_eq!(
        (info.id.as_str(), info.path.as_str()),
        ("path:a.so", "/lib/a.so")
    );
}
