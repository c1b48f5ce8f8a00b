// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a survey says of images with damage of each kind.

use super::*;
use crate::crash::op::Op;
use crate::crash::world::World;
use crate::layout::{Entry, PAGE, Target, inode, name, seal};
use crate::medium::Medium;

/// A file system with an open morsel, a sealed one, a directory and a link.
fn image() -> Vec<u8> {
    let mut world = World::new(64, None);
    let ops = [
        Op::Create("open"),
        Op::Write("open", 0, 9000, 1),
        Op::Create("sealed"),
        Op::Write("sealed", 0, 9000, 2),
        Op::Xattr("sealed", "user.a", Some("1")),
        Op::Seal("sealed", seal::WRITE),
        Op::Mkdir("d"),
        Op::Link("open", "d/too"),
        Op::Symlink("s", "open"),
    ];
    for op in ops {
        assert!(world.run(&op), "{op:?}");
    }
    world.fs.medium().bytes().clone()
}

fn findings(image: &Vec<u8>) -> Findings {
    survey(image).unwrap().findings
}

/// The only finding of an image after a word was replaced.
fn after(offset: impl Fn(&Survey) -> u64, payload: u64) -> (&'static str, bool) {
    let mut image = image();
    let offset = offset(&survey(&image).unwrap());
    image.store_word(offset, payload).unwrap();
    let findings = findings(&image);
    let first = findings.list.first().expect("a finding");
    (first.what, first.fix.is_some())
}

fn at(survey: &Survey, path: &str) -> u64 {
    survey.inodes[&survey.lookup(path.as_bytes()).unwrap()].at
}

/// The place of the slot of a name.
fn name_at(survey: &Survey, text: &str) -> u64 {
    let found = survey
        .names
        .iter()
        .find(|it| it.1.text == text.as_bytes())
        .unwrap();
    survey.name_pages[&(found.0 / name::PER_PAGE)] * PAGE + found.0 % name::PER_PAGE * name::SLOT
}

/// The entry of the first page of a morsel.
fn entry_at(survey: &Survey, path: &str) -> u64 {
    survey.inodes[&survey.lookup(path.as_bytes()).unwrap()]
        .root
        .page
        * PAGE
}

#[test]
fn a_whole_image_has_no_findings() {
    let survey = survey(&image()).unwrap();
    assert!(survey.findings.is_empty(), "{:?}", survey.findings);
    let open = &survey.inodes[&survey.lookup(b"d/too").unwrap()];
    assert_eq!(
        (open.links, open.size, open.blocks, open.tables),
        (2, 9000, [3, 0, 0], 1)
    );
    assert_eq!(survey.lookup(b"d/nothing"), None);
    assert_eq!(survey.free(), 64 - survey.owned.count());
}

#[test]
fn what_a_crash_leaves_is_completed_by_a_mount() {
    let beyond = after(|it| at(it, "open") + inode::SIZE, 5000);
    assert_eq!(
        beyond,
        ("a page lies beyond the end of an open morsel", true)
    );
    let unnamed = after(|it| name_at(it, "sealed") + name::INODE, 0);
    assert_eq!(unnamed, ("an inode has no name", true));
}

#[test]
fn a_sealed_morsel_is_never_dropped() {
    let twice = |path: &'static str| {
        after(
            move |it| entry_at(it, path),
            Entry {
                page: 2,
                leaf: true,
            }
            .pack(),
        )
    };
    assert_eq!(
        twice("open"),
        ("a page belongs to something else already", true)
    );
    assert_eq!(
        twice("sealed"),
        ("a page belongs to something else already", false)
    );
    let name = after(|it| name_at(it, "sealed") + name::LENGTH, 77);
    assert_eq!(name, ("a name is damaged", false));
    let name = after(|it| name_at(it, "open") + name::LENGTH, 77);
    assert_eq!(name, ("a name is damaged", true));
}

#[test]
fn trees_are_checked() {
    let entry = |page, leaf| after(|it| entry_at(it, "open"), Entry { page, leaf }.pack()).0;
    assert_eq!(entry(64, true), "an entry leads out of the range");
    assert_eq!(
        entry((1 << 40) - 1, true),
        "an entry leads out of the range"
    );
    assert_eq!(entry(1, true), "an entry leads to a superblock");
    assert_eq!(entry(60, false), "a table has the level of a page");
    let root = |root: Root| after(|it| at(it, "open") + inode::ROOT, root.pack()).0;
    let good = Root {
        page: 60,
        level: 1,
        leaf: true,
        seals: 0,
    };
    assert_eq!(root(good), "an entry leads out of the range");
    assert_eq!(
        root(Root { level: 7, ..good }),
        "the level of a root is too large"
    );
    assert_eq!(root(Root { level: 3, ..good }), "a block is too large");
    let inodes = |page| {
        Root {
            page,
            level: 1,
            ..Root::default()
        }
        .pack()
    };
    assert_eq!(
        after(|_| INODES, inodes(2)).0,
        "a table has the level of a page"
    );
}

/// A table that leads to itself.
#[test]
fn a_cycle_ends() {
    let mut image = image();
    let survey = survey(&image).unwrap();
    let at = at(&survey, "open") + inode::ROOT;
    let page = survey.inodes[&survey.lookup(b"open").unwrap()].root.page;
    image
        .store_word(
            at,
            Root {
                page,
                level: 3,
                ..Root::default()
            }
            .pack(),
        )
        .unwrap();
    image
        .store_word(page * PAGE, Entry { page, leaf: false }.pack())
        .unwrap();
    let findings = findings(&image);
    let whats: Vec<_> = findings.list.iter().map(|it| it.what).collect();
    assert!(
        whats.contains(&"a page belongs to something else already"),
        "{whats:?}"
    );
}

#[test]
fn inodes_are_checked() {
    let field = |field: u64, payload| after(|it| at(it, "open") + field, payload).0;
    assert_eq!(field(inode::UID, 1 << 32), "a word of an inode is damaged");
    assert_eq!(field(inode::MTIME, 10_000), "a word of an inode is damaged");
    assert_eq!(
        field(inode::MODE, 0o644),
        "the type of an inode is not known"
    );
    assert_eq!(
        field(inode::MODE, 0o040_755),
        "an inode that is no file has data"
    );
    assert_eq!(
        field(inode::XATTR, 2),
        "a page belongs to something else already"
    );
    let link = after(|it| at(it, "s") + inode::SIZE, 4096).0;
    assert_eq!(link, "a symbolic link has no target");
    let gone = after(|it| at(it, "open") + inode::MODE, 0);
    assert_eq!(gone, ("a name leads to no inode", true));
    let root = after(|_| 2 * PAGE + inode::FIRST * inode::SLOT, 0).0;
    assert_eq!(root, "the root directory is missing");
}

#[test]
fn names_are_checked() {
    let field = |text: &'static str, field: u64, payload| {
        after(move |it| name_at(it, text) + field, payload).0
    };
    let first = inode::FIRST;
    assert_eq!(
        field("too", name::INODE, first),
        "a name leads to the root directory"
    );
    assert_eq!(
        field("too", name::PARENT, 2),
        "the directory of a name is missing"
    );
    assert_eq!(
        field("too", name::INODE, 1 << 41),
        "the inode of a name is damaged"
    );
    let pending = Target {
        inode: 2,
        pending: true,
    }
    .pack();
    assert_eq!(
        field("too", name::INODE, pending),
        "a pending rename has no other side"
    );
    let itself = |it: &Survey| it.lookup(b"d").unwrap();
    let number = itself(&survey(&image()).unwrap());
    let cycle = field("d", name::PARENT, number);
    assert_eq!(cycle, "a name does not hang off the root directory");
    assert_eq!(
        field("open", name::INODE, number),
        "a directory has two names"
    );
}

#[test]
fn a_name_is_in_a_directory_once() {
    let mut image = image();
    let found = survey(&image).unwrap();
    let (from, to) = (name_at(&found, "open") as usize, name_at(&found, "too"));
    let text = image[from + name::TEXT as usize..from + 512].to_vec();
    image.store(to + name::TEXT, &text).unwrap();
    let length = crate::word::number_at(&image, from + name::LENGTH as usize);
    image
        .store_word(to + name::LENGTH, length & crate::word::PAYLOAD)
        .unwrap();
    image.store_word(to + name::PARENT, inode::FIRST).unwrap();
    assert_eq!(
        findings(&image).list[0].what,
        "a directory has the same name twice"
    );
}

/// In a sparse file of 2 GiB.
#[test]
fn a_block_of_one_gib_is_taken_once() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(2 << 30).unwrap();
    let mut image = crate::Image::new(file).unwrap();
    let template = crate::make::Template {
        uuid: [1; 16],
        pages: (2 << 30) / PAGE,
        now: Time::default(),
        mode: 0o755,
        uid: 0,
        gid: 0,
    };
    crate::make::make(&mut image, &template).unwrap();
    let mut fs = crate::ops::Fs::mount(image).unwrap();
    for text in [b"f", b"g"] {
        let number = fs.create(inode::FIRST, text, 0o100_600, 0).unwrap();
        fs.truncate(number, 1 << 30).unwrap();
    }
    let image = fs.medium_mut();
    let before = survey(image).unwrap();
    let root = Root {
        page: 262_144,
        level: 2,
        leaf: true,
        seals: 0,
    };
    image
        .store_word(at(&before, "f") + inode::ROOT, root.pack())
        .unwrap();
    let one = survey(image).unwrap();
    assert!(one.findings.is_empty(), "{:?}", one.findings);
    assert_eq!(before.free() - one.free(), 262_144);
    image
        .store_word(at(&before, "g") + inode::ROOT, root.pack())
        .unwrap();
    let two = survey(image).unwrap().findings;
    assert_eq!(two.list[0].what, "a page belongs to something else already");
    let odd = Root {
        page: 262_143,
        ..root
    };
    image
        .store_word(at(&before, "g") + inode::ROOT, odd.pack())
        .unwrap();
    assert_eq!(
        survey(image).unwrap().findings.list[0].what,
        "a block is not aligned"
    );
}
