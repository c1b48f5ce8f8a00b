// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parser for `/proc/PID/maps`. A process may have 60,000 mappings, so the parser allocates only
//! the names.

use std::io;

use super::damaged;
use crate::Root;

/// One mapping (VMA) of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    /// First address after the mapping.
    pub end: u64,
    pub read: bool,
    pub write: bool,
    pub execute: bool,
    pub shared: bool,
    /// Offset into the file, bytes.
    pub offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// 0 for anonymous memory.
    pub inode: u64,
    /// Path or bracketed name as the kernel prints it; empty for anonymous memory.
    pub name: Box<str>,
}

/// Purpose of a mapping, as far as its name shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    Heap,
    Stack,
    Anonymous,
    /// Anonymous memory named by `prctl(PR_SET_VMA_ANON_NAME)`: the whole `[anon:NAME]`, or
    /// `[anon_shmem:NAME]` if it is shared.
    Named(&'a str),
    File(&'a str),
    /// Kernel mappings: vdso, vvar, vsyscall, uprobes.
    Special,
}

impl Mapping {
    /// Bytes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether the mapping is empty; the kernel never prints one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn kind(&self) -> Kind<'_> {
        match &*self.name {
            "" => Kind::Anonymous,
            "[heap]" => Kind::Heap,
            "[stack]" => Kind::Stack,
            name if name.starts_with("[anon:") || name.starts_with("[anon_shmem:") => {
                Kind::Named(name)
            }
            name if name.starts_with('[') => Kind::Special,
            name => Kind::File(name),
        }
    }

    /// Whether THP can back it: private, writable and anonymous.
    pub fn is_private_anonymous(&self) -> bool {
        let anonymous = matches!(
            self.kind(),
            Kind::Heap | Kind::Stack | Kind::Anonymous | Kind::Named(_)
        );
        anonymous && !self.shared && self.write && self.inode == 0
    }

    /// Whether it belongs to the heap of a Go program: Go names its arenas since 1.25; earlier,
    /// they start at addresses that only Go uses.
    pub fn is_go_heap(&self) -> bool {
        self.name.starts_with("[anon: Go: heap")
            || (self.name.is_empty() && self.start >> 32 == 0xc0)
    }

    /// Parses one line of maps; `None` if it is invalid.
    pub(super) fn parse(line: &str) -> Option<Mapping> {
        let mut rest = line;
        let (start, end) = next_field(&mut rest)?.split_once('-')?;
        let permissions = next_field(&mut rest)?.as_bytes();
        let offset = next_field(&mut rest)?;
        let (major, minor) = next_field(&mut rest)?.split_once(':')?;
        let inode = next_field(&mut rest)?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        if permissions.len() != 4 || end < start {
            return None;
        }
        Some(Mapping {
            start,
            end,
            read: permissions[0] == b'r',
            write: permissions[1] == b'w',
            execute: permissions[2] == b'x',
            shared: permissions[3] == b's',
            offset: u64::from_str_radix(offset, 16).ok()?,
            device: (hexadecimal(major)?, hexadecimal(minor)?),
            inode: inode.parse().ok()?,
            name: rest.trim_start().into(),
        })
    }
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

/// Splits the next blank-separated field off the front of `rest`.
fn next_field<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start_matches(' ');
    let end = text.find(' ').unwrap_or(text.len());
    let (field, tail) = text.split_at(end);
    *rest = tail;
    (!field.is_empty()).then_some(field)
}

/// Reads the mappings of a process, by address. Empty for a kernel thread or a zombie.
///
/// # Errors
/// No such process, no permission, or an invalid line.
pub fn maps(root: &Root, pid: u32) -> io::Result<Vec<Mapping>> {
    let path = format!("/proc/{pid}/maps");
    let text = root.read(&path)?;
    text.lines()
        .map(|line| Mapping::parse(line).ok_or_else(|| damaged(&path, line)))
        .collect()
}
