// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an image holds.

use std::collections::BTreeMap;
use std::io;

use super::{File, Model, before_end};
use crate::layout::{PAGE, inode};
use crate::medium::Source;
use crate::survey::tree::{Step, walk};
use crate::survey::{Inode, Survey};
use crate::xattr::{self, Attributes};

/// Reads what an image without findings holds.
pub fn read(source: &impl Source, survey: &Survey) -> io::Result<Model> {
    let names = survey.names.values();
    let names = names.map(|name| ((name.parent, name.text.clone()), name.inode));
    let mut model = Model {
        names: names.collect(),
        ..Model::default()
    };
    for (number, found) in &survey.inodes {
        if found.links > 0 || *number == inode::FIRST {
            model.files.insert(*number, file(source, found)?);
        }
    }
    Ok(model)
}

fn file(source: &impl Source, found: &Inode) -> io::Result<File> {
    let xattr = match found.xattr {
        0 => Attributes::new(),
        page => xattr::decode(&source.page(page)?, page).unwrap_or_default(),
    };
    Ok(File {
        mode: found.mode,
        uid: found.uid,
        gid: found.gid,
        rdev: found.rdev,
        size: found.size,
        seals: found.root.seals,
        mtime: found.mtime.seconds,
        ctime: found.ctime.seconds,
        xattr,
        content: content(source, found)?,
        loose: BTreeMap::new(),
    })
}

fn content(source: &impl Source, found: &Inode) -> io::Result<BTreeMap<u64, u64>> {
    let mut blocks = Vec::new();
    walk(source, found.at + inode::ROOT, found.root, &mut |node| {
        blocks.extend(node.ok().filter(|node| node.leaf));
        Step::Enter
    })?;
    let mut content = BTreeMap::new();
    for block in blocks {
        for n in 0..block.count() {
            let first = (block.index + n) * PAGE / 8;
            let page = source.page(block.page + n)?;
            units(&page, first, found.size, &mut content);
        }
    }
    Ok(content)
}

/// Adds the units of a page that are not zero.
fn units(page: &[u8], first: u64, size: u64, content: &mut BTreeMap<u64, u64>) {
    for (n, bytes) in page.chunks_exact(8).enumerate() {
        let value = crate::word::number_at(bytes, 0);
        let unit = first + n as u64;
        if value != 0 && before_end(unit, value, size) != 0 {
            content.insert(unit, before_end(unit, value, size));
        }
    }
}
