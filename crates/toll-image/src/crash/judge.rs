// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a recovered image holds what it may hold after a crash.

use super::model::{File, Model, before_end};

/// What an image may hold: one of two states, or where the operation is gradual, a mixture.
#[derive(Debug, Clone, Copy)]
pub struct Allowed<'a> {
    pub before: &'a Model,
    pub after: &'a Model,
    pub gradual: bool,
}

/// `Err` says what is wrong.
pub fn judge(found: &Model, allowed: &Allowed) -> Result<(), String> {
    let Allowed {
        before,
        after,
        gradual,
    } = *allowed;
    times(found, before, after)?;
    if gradual {
        return mixture(found, before, after);
    }
    let first = same(found, before, allowed);
    match first.is_ok() {
        true => Ok(()),
        false => same(found, after, allowed).map_err(|after| match first {
            Err(before) if before != after => format!("{after}; or {before}"),
            _ => after,
        }),
    }
}

/// Whether an image holds one state.
fn same(found: &Model, side: &Model, allowed: &Allowed) -> Result<(), String> {
    names(found, side)?;
    for (number, file) in &found.files {
        let expected = &side.files[number];
        attributes(*number, file, expected)?;
        let loose = [allowed.before, allowed.after].map(|model| model.files.get(number));
        for unit in file.content.keys().chain(expected.content.keys()) {
            content(*number, file, *unit, &[Some(expected)], &loose)?;
        }
    }
    Ok(())
}

fn names(found: &Model, side: &Model) -> Result<(), String> {
    if found.names != side.names {
        return Err(format!("the names are {}", list(found)));
    }
    match found.files.keys().eq(side.files.keys()) {
        true => Ok(()),
        false => Err("there are other inodes than names".to_owned()),
    }
}

fn list(found: &Model) -> String {
    let name = |((parent, text), number): (&(u64, Vec<u8>), &u64)| {
        format!("{parent}/{} -> {number}", String::from_utf8_lossy(text))
    };
    found.names.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn attributes(number: u64, file: &File, side: &File) -> Result<(), String> {
    let of = |it: &File| (it.mode, it.uid, it.gid, it.rdev, it.size, it.seals);
    match of(file) == of(side) && file.xattr == side.xattr {
        true => Ok(()),
        false => Err(format!(
            "inode {number} has {:?}, not {:?}",
            of(file),
            of(side)
        )),
    }
}

/// A state in which each attribute and each unit of content is the one before or after.
fn mixture(found: &Model, before: &Model, after: &Model) -> Result<(), String> {
    names(found, before)?;
    for (number, file) in &found.files {
        let sides = [&before.files[number], &after.files[number]];
        either(*number, file, sides)?;
        // Data is persistent before the size that covers it.
        let has_grown = file.size > sides[0].size;
        let content_of = if has_grown {
            [None, Some(sides[1])]
        } else {
            sides.map(Some)
        };
        let loose = sides.map(Some);
        let units = file.content.keys();
        let units = units
            .chain(sides[0].content.keys())
            .chain(sides[1].content.keys());
        for unit in units {
            content(*number, file, *unit, &content_of, &loose)?;
        }
    }
    Ok(())
}

fn either(number: u64, file: &File, sides: [&File; 2]) -> Result<(), String> {
    let of = |it: &File| {
        let owner = [it.uid, it.gid, it.rdev];
        (it.mode, owner, it.size, it.seals)
    };
    let (found, [a, b]) = (of(file), sides.map(of));
    let owners = (0..3).all(|n| found.1[n] == a.1[n] || found.1[n] == b.1[n]);
    let sizes = found.2 == a.2 || found.2 == b.2;
    let rest = found.0 == a.0 && found.3 == a.3 && file.xattr == sides[0].xattr;
    match owners && sizes && rest {
        true => Ok(()),
        false => Err(format!("inode {number} has {found:?}, not {a:?} or {b:?}")),
    }
}

/// Whether a unit of content is that of one of the sides, or one that was not synchronized.
fn content(
    number: u64,
    file: &File,
    unit: u64,
    sides: &[Option<&File>],
    loose: &[Option<&File>],
) -> Result<(), String> {
    let found = file.content.get(&unit).copied().unwrap_or(0);
    let fits = |value: u64| before_end(unit, value, file.size) == found;
    let of = |side: &File| side.content.get(&unit).copied().unwrap_or(0);
    let is_side = sides.iter().flatten().any(|side| fits(of(side)));
    let is_loose = |side: &&File| {
        let values = side.loose.get(&unit);
        fits(of(side)) && values.is_some() || values.is_some_and(|it| it.iter().any(|it| fits(*it)))
    };
    let may_be_loose = !file.is_sealed() && loose.iter().flatten().any(is_loose);
    match is_side || may_be_loose {
        true => Ok(()),
        false => Err(format!(
            "inode {number} has {found:#x} at byte {}",
            unit * 8
        )),
    }
}

/// Each time is the one before or after. An inode that the operation removes may have any.
fn times(found: &Model, before: &Model, after: &Model) -> Result<(), String> {
    for (number, file) in &found.files {
        let sides = [before, after].map(|model| model.files.get(number));
        let [Some(first), Some(second)] = sides else {
            continue;
        };
        let fits = [first.mtime, second.mtime].contains(&file.mtime)
            && [first.ctime, second.ctime].contains(&file.ctime);
        if !fits {
            let (mtime, ctime) = (file.mtime, file.ctime);
            return Err(format!("inode {number} has the times {mtime} and {ctime}"));
        }
    }
    Ok(())
}
