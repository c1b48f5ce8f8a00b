// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C header of the simulator's plugin.

use core::fmt::{Display, Formatter, Result};

use crate::describe::{Description, Is, Item};
use crate::recording::{self, Block, BlockKind, HEADER_BYTES, Header, Mapping, PATH, Page};
use crate::{EventKind, MAGIC_SYSCALL, PAGE, REGION};

/// Columns of a line.
const WIDTH: usize = 90;
/// Columns of a tab.
const TAB: usize = 8;

/// The text of `plugins/user/wire.h`.
#[derive(Debug)]
pub struct CHeader;

impl Display for CHeader {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(out, "{TOP}")?;
        sizes(out)?;
        events(out)?;
        recording(out)?;
        writeln!(out, "#endif")
    }
}

/// The first tag is in two parts: tools that look for licences read this file too.
const TOP: &str = concat!(
    "/* SPDX-License-",
    "Identifier: GPL-2.0-only */
/*
 * Generated from crates/toll-wire, which documents the files: do not edit. To generate it:
 *
 *	cargo run -p toll-wire --example header >plugins/user/wire.h
 */
#ifndef TOLL_WIRE_H
#define TOLL_WIRE_H

#include <stdint.h>
",
);

fn sizes(out: &mut Formatter<'_>) -> Result {
    about(
        out,
        "Bytes of a base page, and of the region that a huge page can map.",
    )?;
    writeln!(out, "#define PAGE_BYTES {PAGE}ull")?;
    writeln!(out, "#define REGION_BYTES {REGION}ull\n")
}

fn events(out: &mut Formatter<'_>) -> Result {
    about(
        out,
        "The preload library reports an allocation event to the simulator by this unused \
         system call number. Arguments: event index, address, length, kind, process, old \
         address (of a move).",
    )?;
    writeln!(out, "#define TOLL_MAGIC_SYSCALL {MAGIC_SYSCALL:#x}\n")?;
    declare(out, &EventKind::C)
}

fn recording(out: &mut Formatter<'_>) -> Result {
    about(
        out,
        "The recording: RECORDING_HEADER bytes, `blocks_max` of struct block, `pages_max` of \
         struct page.",
    )?;
    let magic = recording::MAGIC.escape_ascii();
    writeln!(out, "#define RECORDING_MAGIC \"{magic}\"")?;
    writeln!(out, "#define RECORDING_HEADER {HEADER_BYTES}")?;
    writeln!(out, "#define RECORDING_PATH {PATH}\n")?;
    declare(out, &Header::C)?;
    declare(out, &recording::flags::C)?;
    declare(out, &Block::C)?;
    declare(out, &BlockKind::C)?;
    declare(out, &recording::block::C)?;
    mapping(out)?;
    declare(out, &Page::C)?;
    declare(out, &recording::page::C)
}

fn mapping(out: &mut Formatter<'_>) -> Result {
    let (known, class, protection) = (Mapping::KNOWN, Mapping::CLASS, Mapping::PROTECTION);
    about(
        out,
        "A private anonymous mapping, by the properties that identify it in any run: its \
         length class (the largest power of two not above its length), its protection, and the \
         number of earlier mappings with both.",
    )?;
    writeln!(
        out,
        "#define MAPPING(class, protection, ordinal) \\\n\
         \t({known:#x}ull | (uint64_t)(class) << {class} | \\\n\
         \t (uint64_t)(protection) << {protection} | (uint32_t)(ordinal))\n"
    )
}

fn declare(out: &mut Formatter<'_>, what: &Description) -> Result {
    comment(out, "", what.doc)?;
    let blank = if what.name.is_empty() { "" } else { " " };
    writeln!(out, "{}{blank}{} {{", what.keyword, what.name)?;
    for item in what.items {
        comment(out, "\t", item.doc)?;
        declare_item(out, item)?;
    }
    writeln!(out, "}};")?;
    if what.bytes > 0 {
        let (name, bytes) = (what.name, what.bytes);
        writeln!(
            out,
            "_Static_assert(sizeof(struct {name}) == {bytes}, \"no holes\");"
        )?;
    }
    writeln!(out)
}

fn declare_item(out: &mut Formatter<'_>, item: &Item) -> Result {
    let name = item.name;
    match item.is {
        Is::Integer(kind) => writeln!(out, "\t{kind} {name};"),
        Is::Text(length) => writeln!(out, "\tchar {name}[{length}];"),
        Is::Number(number) => writeln!(out, "\t{name} = {number},"),
    }
}

/// Writes a comment of its own.
fn about(out: &mut Formatter<'_>, text: &str) -> Result {
    comment(out, "", &[text])
}

/// Writes the words of a comment, on one line if they fit; nothing for none.
fn comment(out: &mut Formatter<'_>, indent: &str, doc: &[&str]) -> Result {
    let words = || doc.iter().flat_map(|line| line.split_whitespace());
    let width = WIDTH - indent.len() * TAB;
    let length: usize = words().map(|word| word.len() + 1).sum();
    if length == 0 {
        return Ok(());
    }
    if length + "/* */".len() <= width {
        write!(out, "{indent}/*")?;
        words().try_for_each(|word| write!(out, " {word}"))?;
        return writeln!(out, " */");
    }
    write!(out, "{indent}/*")?;
    let mut column = width;
    for word in words() {
        if column + 1 + word.len() > width {
            write!(out, "\n{indent} *")?;
            column = " *".len();
        }
        write!(out, " {word}")?;
        column += 1 + word.len();
    }
    writeln!(out, "\n{indent} */")
}
