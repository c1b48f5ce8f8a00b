// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations to search: over two files and a directory, and random ones.

use super::op::{Op, Path};
use super::random::Random;
use super::world::World;
use crate::fault::Fault;
use crate::layout::seal;
use crate::ops::Rename;

/// Two files with content, and a directory.
pub fn prepared(pages: u64, fault: Option<Fault>) -> World {
    let mut world = World::new(pages, None);
    world.soil();
    let ops = [
        Op::Mkdir("d"),
        Op::Create("f"),
        Op::Write("f", 0, 24, 0x11),
        Op::Create("g"),
        Op::Write("g", 4090, 12, 0x22),
        Op::Xattr("g", "user.a", Some("1")),
    ];
    for op in ops {
        assert!(world.run(&op), "{op:?}");
    }
    world.fs.inject(fault);
    world
}

/// Operations over the two files and the directory.
pub fn basic() -> Vec<Op> {
    vec![
        Op::Create("a"),
        Op::Create("d/f"),
        Op::Unnamed("a"),
        Op::Symlink("s", "d/f"),
        Op::Mkdir("d/e"),
        Op::Link("f", "d/f"),
        Op::Unlink("f"),
        Op::UnlinkOpen("g"),
        Op::Close,
        Op::Rmdir("d"),
        Op::Rename("f", "a", Rename::NoReplace),
        Op::Rename("f", "g", Rename::Replace),
        Op::Rename("g", "d/f", Rename::Replace),
        Op::Rename("f", "d", Rename::Exchange),
        Op::Rename("g", "f", Rename::Exchange),
        Op::Rename("f", "a", Rename::Whiteout),
        Op::Rename("d", "a", Rename::Replace),
        Op::Write("f", 20, 9, 0x33),
        Op::Write("f", 4100, 8, 0x44),
        Op::Write("g", 8, 16, 0x55),
        Op::Poke("f", 8, 8, 0x66),
        Op::Poke("f", 40, 8, 0x67),
        Op::Poke("g", 4096, 4, 0x77),
        Op::Sync("f"),
        Op::Sync("g"),
        Op::Truncate("f", 10),
        Op::Truncate("f", 60),
        Op::Truncate("g", 0),
        Op::Punch("g", 0, 4096),
        Op::Punch("f", 4, 12),
        Op::Populate("f", 513, 0),
        Op::Chmod("f", 0o400),
        Op::Chown("f", 1000),
        Op::Utime("g", 77),
        Op::Xattr("g", "user.b", Some("2")),
        Op::Xattr("g", "user.a", None),
        Op::Seal("f", seal::WRITE),
        Op::Seal("f", seal::GROW),
        Op::Mknod("d/n"),
    ]
}

const PATHS: [Path; 8] = ["f", "g", "h", "d", "e", "d/f", "d/g", "e/f"];
const FILES: [Path; 6] = ["f", "g", "h", "d/f", "d/g", "e/f"];
const HOW: [Rename; 4] = [
    Rename::Replace,
    Rename::NoReplace,
    Rename::Exchange,
    Rename::Whiteout,
];

/// Operations that only depend on a seed.
#[derive(Debug)]
pub struct Mixed {
    random: Random,
    /// Whether blocks of 2 MiB are among them.
    pub blocks: bool,
}

impl Mixed {
    pub fn new(seed: u64) -> Mixed {
        Mixed {
            random: Random::new(seed),
            blocks: false,
        }
    }

    fn path(&mut self) -> Path {
        self.random.choose(&PATHS)
    }

    fn file(&mut self) -> Path {
        self.random.choose(&FILES)
    }

    /// Changes of names.
    fn naming(&mut self) -> Op {
        match self.random.below(10) {
            0 => Op::Create(self.file()),
            1 => Op::Mkdir(if self.random.below(2) == 0 { "d" } else { "e" }),
            2 => Op::Link(self.file(), self.file()),
            3 => Op::Unlink(self.file()),
            4 => Op::UnlinkOpen(self.file()),
            5 => Op::Rmdir(self.path()),
            6 => Op::Unnamed(self.file()),
            7 => Op::Symlink(self.file(), "some/target"),
            8 => Op::Close,
            _ => Op::Rename(self.path(), self.path(), self.random.choose(&HOW)),
        }
    }

    /// Changes of content.
    fn content(&mut self) -> Op {
        let file = self.file();
        let offset = self.offset();
        let length = 1 + self.random.below(40);
        let byte = 1 + self.random.below(255) as u8;
        match self.random.below(9) {
            0..2 => Op::Write(file, offset, length as usize, byte),
            2..4 => Op::Poke(file, offset, length as usize, byte),
            4 => Op::Sync(file),
            5 => Op::Truncate(file, offset),
            6 => Op::Punch(
                file,
                offset / 4096 * 4096,
                4096 * (1 + self.random.below(3)),
            ),
            7 => Op::Punch(file, offset, length),
            _ => self.populate(file),
        }
    }

    fn populate(&mut self, file: Path) -> Op {
        match self.blocks && self.random.below(2) == 0 {
            true => Op::Populate(file, 512 * self.random.below(2), 1),
            false => Op::Populate(file, self.random.below(3), 0),
        }
    }

    /// Places around the borders of pages and tables.
    fn offset(&mut self) -> u64 {
        const BASES: [u64; 5] = [0, 4096, 8192, 2 << 20, 1 << 30];
        let most = if self.random.below(4) == 0 { 5 } else { 3 };
        let base = self.random.choose(&BASES[..most]);
        (base + self.random.below(100)).saturating_sub(50)
    }

    fn attribute(&mut self) -> Op {
        let path = self.path();
        let value = self.random.below(0o777);
        match self.random.below(5) {
            0 => Op::Chmod(path, value as u16),
            1 => Op::Chown(path, value as u32),
            2 => Op::Utime(path, value as i64),
            3 => Op::Xattr(path, "user.x", (value % 3 > 0).then_some("value")),
            _ => Op::Seal(path, 1 << self.random.below(4)),
        }
    }
}

impl Iterator for Mixed {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        Some(match self.random.below(10) {
            0..4 => self.naming(),
            4..8 => self.content(),
            _ => self.attribute(),
        })
    }
}
