// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::crash::op::Op;
use crate::crash::world::World;
use crate::layout::{inode, seal};

fn image(ops: &[Op]) -> Vec<u8> {
    let mut world = World::new(64, None);
    for op in ops {
        assert!(world.run(op), "{op:?}");
    }
    world.fs.medium().bytes().clone()
}

fn place(image: &Vec<u8>, path: &str, field: u64) -> u64 {
    let survey = survey(image).unwrap();
    survey.inodes[&survey.lookup(path.as_bytes()).unwrap()].at + field
}

#[test]
fn a_damaged_range_is_not_recovered_and_not_changed() {
    let mut image = image(&[Op::Create("f"), Op::Create("g")]);
    let at = place(&image, "f", inode::UID);
    image[at as usize + 6] ^= 1;
    let before = image.clone();
    let Err(Unrecovered::Damaged { offset, .. }) = recover(&mut image) else {
        panic!("it is damaged");
    };
    assert_eq!((offset, &image), (at, &before));
}

#[test]
fn a_repair_drops_what_is_damaged_and_open() {
    let mut image = image(&[Op::Create("f"), Op::Write("f", 0, 9000, 1), Op::Create("g")]);
    let at = place(&image, "f", inode::SIZE);
    image[at as usize + 1] ^= 1;
    image[40] ^= 1;
    let repaired = repair(&mut image).unwrap();
    assert!(repaired.survey.findings.is_empty());
    assert_eq!(repaired.survey.lookup(b"f"), None);
    assert!(repaired.survey.lookup(b"g").is_some());
    assert!(repaired.fixed.len() >= 3, "{:?}", repaired.fixed);
    assert!(recover(&mut image).is_ok());
}

#[test]
fn a_repair_leaves_what_may_be_sealed() {
    let ops = [
        Op::Create("f"),
        Op::Write("f", 0, 9000, 1),
        Op::Seal("f", seal::WRITE),
    ];
    for field in [inode::SIZE, inode::ROOT, inode::MODE, inode::MTIME] {
        let mut image = image(&ops);
        let at = place(&image, "f", field) as usize;
        image[at] ^= 1;
        let before = image.clone();
        let repaired = repair(&mut image).unwrap();
        assert!(repaired.survey.findings.is_damaged());
        assert_eq!(image, before, "field {field}");
    }
}
