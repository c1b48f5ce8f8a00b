// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_model::wire::EventKind;

use super::super::tests::{MIB, at};
use super::*;

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
fn modules_without_build_id_go_by_name() {
    let mut bytes = vec![0; size_of::<Module>()];
    bytes[36..36 + 9].copy_from_slice(b"/lib/a.so");
    let info = module(&bytes);
    assert_eq!(
        (info.id.as_str(), info.path.as_str()),
        ("path:a.so", "/lib/a.so")
    );
}
