// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::crash::model;
use crate::crash::op::{Op, find};
use crate::crash::trace::Trace;
use crate::crash::world::World;
use crate::layout::{PAGE, seal};
use crate::survey::survey;

fn world(ops: &[Op]) -> World {
    let mut world = World::new(64, None);
    world.soil();
    for op in ops {
        assert!(world.run(op), "{op:?}");
    }
    world
}

/// What the image holds, without the leftovers that a mount would end.
fn agrees(world: &World) {
    let image = world.fs.medium().bytes();
    let found = model::read(image, &survey(image).unwrap()).unwrap();
    assert_eq!(found.names, world.model.names);
    for (number, file) in &found.files {
        let expected = &world.model.files[number];
        assert_eq!(
            (file.size, &file.content),
            (expected.size, &expected.content),
            "{number}"
        );
    }
}

fn fails(world: &mut World, op: Op, error: &str) {
    let before = world.fs.medium().bytes().clone();
    let failed = op.perform(&mut world.fs).unwrap_err();
    assert_eq!(failed.to_string(), error, "{op:?}");
    assert_eq!(*world.fs.medium().bytes(), before, "{op:?}");
}

#[test]
fn a_tree_grows_with_its_morsel() {
    let mut levels = Vec::new();
    let mut world = world(&[Op::Create("f")]);
    for page in [0, 1, 600, 300_000, 200_000_000] {
        assert!(world.run(&Op::Write("f", page * PAGE, 8, 5)));
        let number = find(&world.fs, "f").unwrap();
        levels.push(world.fs.root(number).unwrap().level);
        agrees(&world);
    }
    assert_eq!(levels, [0, 1, 2, 3, 4]);
}

#[test]
fn pages_come_back() {
    let mut world = world(&[Op::Create("f")]);
    let before = world.fs.owned().count();
    for op in [
        Op::Write("f", 0, 30_000, 1),
        Op::Xattr("f", "user.a", Some("1")),
        Op::Truncate("f", 5000),
        Op::Write("f", 3 << 20, 4, 9),
        Op::Punch("f", 0, 4096),
        Op::Truncate("f", 0),
        Op::Xattr("f", "user.a", None),
    ] {
        assert!(world.run(&op), "{op:?}");
        agrees(&world);
    }
    assert_eq!(world.fs.owned().count(), before);
}

#[test]
fn an_open_file_keeps_its_pages_until_it_is_closed() {
    let mut world = world(&[Op::Create("f"), Op::Write("f", 0, 9000, 1)]);
    let used = world.fs.owned().count();
    assert!(world.run(&Op::UnlinkOpen("f")));
    assert_eq!(world.fs.owned().count(), used);
    assert!(world.run(&Op::Close));
    assert_eq!(world.fs.owned().count(), used - 4);
}

#[test]
fn calls_fail_as_those_of_the_kernel() {
    let mut world = world(&[
        Op::Create("f"),
        Op::Write("f", 0, 9000, 1),
        Op::Create("s"),
        Op::Seal("s", seal::WRITE | seal::SEAL),
        Op::Create("k"),
        Op::Seal("k", seal::GROW),
        Op::Mkdir("d"),
        Op::Mkdir("d/e"),
    ]);
    let replace = |old, new| Op::Rename(old, new, Rename::Replace);
    for (op, error) in [
        (Op::Create("f"), "EEXIST"),
        (Op::Create("f/x"), "ENOTDIR"),
        (Op::Create(".."), "EINVAL"),
        (Op::Unlink("nothing"), "ENOENT"),
        (Op::Unlink("d"), "EISDIR"),
        (Op::Rmdir("f"), "ENOTDIR"),
        (Op::Rmdir("d"), "ENOTEMPTY"),
        (Op::Link("d", "x"), "EPERM"),
        (Op::Write("s", 0, 1, 1), "EPERM"),
        (Op::Poke("s", 0, 1, 1), "EPERM"),
        (Op::Truncate("s", 1), "EPERM"),
        (Op::Punch("s", 0, 1), "EPERM"),
        (Op::Seal("s", seal::GROW), "EPERM"),
        (Op::Write("k", 0, 1, 1), "EPERM"),
        (Op::Truncate("k", 1), "EPERM"),
        (Op::Write("d", 0, 1, 1), "EISDIR"),
        (Op::Populate("f", 0, 0), "EEXIST"),
        (replace("f", "d"), "EISDIR"),
        (replace("d", "f"), "ENOTDIR"),
        (replace("d", "d/e/x"), "EINVAL"),
        (Op::Rename("f", "s", Rename::NoReplace), "EEXIST"),
        (Op::Rename("f", "x", Rename::Exchange), "ENOENT"),
        (Op::Rename("d/e", "d", Rename::Exchange), "EINVAL"),
    ] {
        fails(&mut world, op, error);
    }
}

#[test]
fn a_full_range_is_enospc_and_stays_whole() {
    let mut world = world(&[Op::Create("f")]);
    let failed = Op::Write("f", 0, 64 * 4096, 1)
        .perform(&mut world.fs)
        .unwrap_err();
    assert_eq!(failed.to_string(), "ENOSPC");
    let survey = survey(world.fs.medium()).unwrap();
    assert!(!survey.findings.is_damaged());
    let fs: Fs<Trace> = Fs::mount(world.fs.medium().clone()).unwrap();
    assert!(fs.owned().count() < 10);
}

#[test]
fn many_names_and_inodes_need_several_pages() {
    let mut world = World::new(128, None);
    let fs = &mut world.fs;
    for n in 0..100 {
        fs.create(1, format!("name-{n}").as_bytes(), 0o100_644, 0)
            .unwrap();
    }
    let survey = survey(fs.medium()).unwrap();
    assert!(survey.findings.is_empty());
    assert_eq!((survey.names.len(), survey.inodes.len()), (100, 101));
    assert_eq!((survey.name_pages.len(), survey.inode_pages.len()), (13, 4));
    assert_eq!(survey.owned, *fs.owned());
}

#[test]
fn blocks_are_filled_with_what_is_read() {
    let fs = &mut world(&[Op::Create("a"), Op::Truncate("a", 1 << 30)]).fs;
    let number = find(fs, "a").unwrap();
    let root = fs.at(number).unwrap() + inode::ROOT;
    let free = fs.owned().pages() - fs.owned().count();
    fs.fill(number, 0, 0, &mut &[7; 9000][..]).unwrap();
    fs.fill(number, 1, 0, &mut &[8; 5][..]).unwrap();
    for (index, length, value) in [(0, PAGE, 7), (1, 5, 8)] {
        let page = fs.find(root, index).unwrap().unwrap();
        let bytes = &fs.medium().bytes()[(page * PAGE) as usize..][..PAGE as usize];
        let (filled, rest) = bytes.split_at(length as usize);
        assert!(filled.iter().all(|byte| *byte == value));
        assert!(rest.iter().all(|byte| *byte == 0), "the page had something");
    }
    // Not twice, and not where it does not fit; the pages come back.
    assert!(matches!(
        fs.fill(number, 1, 0, &mut &[1][..]),
        Err(OpError::Exists)
    ));
    assert!(matches!(
        fs.fill(number, 1, 1, &mut &[1][..]),
        Err(OpError::Exists)
    ));
    assert!(matches!(
        fs.fill(number, 512, 1, &mut &[1][..]),
        Err(OpError::NoSpace)
    ));
    // Two pages, and the table above them.
    assert_eq!(fs.owned().pages() - fs.owned().count(), free - 3);
}
