// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image with everything that the format has, and changes of images.

use toll_image::crash::op::Op;
use toll_image::crash::random::Random;
use toll_image::crash::trace::Trace;
use toll_image::crash::world::World;
use toll_image::layout::{Entry, INODES, NAMES, PAGE, Root, Target, inode, name, seal};
use toll_image::medium::Source;
use toll_image::ops::Rename;
use toll_image::{Survey, word};

pub const PAGES: u64 = 48;

/// An image with everything that the format has.
pub fn image() -> Trace {
    let mut world = World::new(PAGES, None);
    let ops = [
        Op::Mkdir("d"),
        Op::Mkdir("d/e"),
        Op::Create("f"),
        Op::Write("f", 0, 9000, 1),
        Op::Link("f", "d/f"),
        Op::Create("g"),
        Op::Write("g", 3 << 20, 9, 2),
        Op::Create("s"),
        Op::Write("s", 0, 5000, 3),
        Op::Xattr("s", "user.a", Some("1")),
        Op::Seal("s", seal::WRITE),
        Op::Symlink("l", "d/f"),
        Op::Mknod("n"),
        Op::Create("x"),
        Op::Rename("x", "y", Rename::Whiteout),
    ];
    for op in ops {
        assert!(world.run(&op), "{op:?}");
    }
    world.fs.medium().clone()
}

/// Places of words that mean something.
pub fn words(survey: &Survey, image: &Trace) -> Vec<u64> {
    let mut words = vec![INODES, NAMES];
    for found in survey.inodes.values() {
        words.extend((0..inode::END / 8).map(|n| found.at + n * 8));
    }
    for slot in survey.names.keys() {
        let page = survey.name_pages[&(slot / name::PER_PAGE)];
        let at = page * PAGE + slot % name::PER_PAGE * name::SLOT;
        words.extend([name::INODE, name::PARENT, name::LENGTH].map(|field| at + field));
    }
    let mut roots = vec![(INODES, root(image, INODES)), (NAMES, root(image, NAMES))];
    roots.extend(
        survey
            .inodes
            .values()
            .map(|found| (found.at + inode::ROOT, found.root)),
    );
    for (at, root) in roots {
        toll_image::survey::tree::walk(image, at, root, &mut |node| {
            words.extend(node.map(|node| node.word));
            toll_image::survey::tree::Step::Enter
        })
        .unwrap();
    }
    words
}

pub fn root(image: &Trace, at: u64) -> Root {
    Root::unpack(toll_image::medium::payload_at(image, at).unwrap().unwrap())
}

pub fn value(image: &Trace, at: u64) -> u64 {
    word::number_at(image.bytes(), at as usize)
}

/// A change that the checks of words see, or one that only later checks can see.
pub fn mutate(image: &mut Trace, words: &[u64], random: &mut Random) {
    let at = match random.below(4) {
        0 => random.below(image.pages() * PAGE / 8) * 8,
        1 => random.below(2) * PAGE + random.below(34) * 8,
        _ => random.choose(words),
    };
    let old = value(image, at);
    let new = match random.below(8) {
        0 => old ^ 1 << random.below(64),
        1 => random.number(),
        2 => 0,
        3 => value(image, random.choose(words)),
        _ => word::encode(at, payload(image, old & word::PAYLOAD, words, random)),
    };
    image.poke(at, new);
}

/// A payload that may make sense.
pub fn payload(image: &Trace, old: u64, words: &[u64], random: &mut Random) -> u64 {
    let page = random.below(image.pages() + 2);
    let leaf = random.below(2) == 0;
    let root = Root {
        page,
        level: random.below(6) as u8,
        leaf,
        seals: random.below(16) as u8,
    };
    let payload = match random.below(9) {
        0 => old ^ 1 << random.below(48),
        1 => old ^ 1 << random.below(8),
        2 => value(image, random.choose(words)),
        3 => random.below(20),
        4 => Entry { page, leaf }.pack(),
        5 => root.pack(),
        6 => Target {
            inode: random.below(12),
            pending: true,
        }
        .pack(),
        7 => old.wrapping_add(random.below(3)).wrapping_sub(1),
        _ => random.number(),
    };
    payload & word::PAYLOAD
}
