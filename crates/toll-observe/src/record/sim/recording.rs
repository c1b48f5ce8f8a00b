// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the plugin's recording: the layouts of plugins/user/recording.h.
//!
//! The recording is sparse; only the written parts are read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};

const MAGIC: &[u8; 8] = b"TOLLSIM1";
const HEADER: u64 = 4096;
const BLOCK: u64 = 256;
const PAGE: u64 = 64;
const PATH: usize = 192;
/// Page records read at a time.
const CHUNK: u64 = 1 << 14;

/// Creates an empty recording in memory, where no disk can be full. The plugin sets its size.
pub fn create() -> Result<File> {
    let memory = memfd_create("tollfree-recording", MemfdFlags::CLOEXEC)
        .context("no memory for the recording")?;
    Ok(File::from(memory))
}

/// Bits of [`Header::flags`].
pub mod flags {
    pub const COMPLETE: u32 = 1;
    pub const EXECED: u32 = 2;
    pub const FULL: u32 = 4;
}

/// Data about the run as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    pub flags: u32,
    pub blocks_max: u64,
    pub pages_max: u64,
    pub blocks: u64,
    pub pages: u64,
    /// Calls of the access callback: all, and those while counting.
    pub seen: u64,
    pub counted: u64,
    pub accesses: u64,
    pub walks: u64,
    pub walks_huge: u64,
    pub windows: u64,
    pub lost: u64,
    pub process: u32,
    pub threads: u32,
    pub forks: u32,
    pub execs: u32,
    pub exec_path: String,
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    Event,
    Anonymous,
    Heap,
    Stack,
    File,
}

/// A named piece of the guest's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub kind: BlockKind,
    pub freed: bool,
    /// Index of the allocation event.
    pub event: u32,
    pub address: u64,
    pub length: u64,
    first: u64,
    /// Bytes from the site's start to the block's.
    pub offset: u64,
    pub path: String,
    pub mapping: Option<Mapping>,
}

/// The private anonymous mapping that contained a block when it was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    pub class: u8,
    pub protection: u8,
    pub ordinal: u32,
    /// Offset of the block in it, bytes.
    pub at: u64,
}

/// Counts of a 4 KiB page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    pub accesses: u64,
    pub l2_hits: u64,
    pub walks: u64,
    pub walks_huge: u64,
    pub reuse_sum: u64,
    pub reuse_count: u32,
    pub dependent: u32,
    pub independent: u32,
    pub flags: u32,
    pub l2_spared: u64,
}

/// Bits of [`Page::flags`].
pub mod page {
    pub const HUGE: u32 = 2;
}

/// A recording as the plugin left it.
#[derive(Debug)]
pub struct Recording {
    file: File,
    pub header: Header,
    pub blocks: Vec<Block>,
}

impl Recording {
    /// Reads the header and the blocks.
    ///
    /// # Errors
    /// The simulator did not start (the reason is on stderr), or the layouts differ.
    pub fn read(file: File) -> Result<Recording> {
        let mut bytes = [0; HEADER as usize];
        let read = file.read_exact_at(&mut bytes, 0);
        if read.is_err() || &bytes[..8] != MAGIC {
            bail!("the simulator did not start");
        }
        let header = header(&bytes);
        let sizes = [8, 12, 16].map(|at| u64::from(u32_at(&bytes, at)));
        ensure!(
            sizes == [HEADER, BLOCK, PAGE],
            "the simulator's plugin has another version: rebuild it with `make -C plugins`"
        );
        let mut recording = Recording {
            file,
            header,
            blocks: Vec::new(),
        };
        recording.blocks = recording.read_blocks()?;
        Ok(recording)
    }

    fn read_blocks(&self) -> Result<Vec<Block>> {
        let count = self.header.blocks.min(self.header.blocks_max);
        let mut bytes = vec![0; (count * BLOCK) as usize];
        self.file
            .read_exact_at(&mut bytes, HEADER)
            .context("the recording's blocks")?;
        let blocks = bytes.chunks_exact(BLOCK as usize).filter_map(block);
        Ok(blocks
            .filter(|b| b.first + b.length / 4096 <= self.header.pages_max)
            .collect())
    }

    /// Calls `each` with the offset (from the block's start) of every page that has a record, and
    /// with the record.
    pub fn pages(&self, block: &Block, mut each: impl FnMut(u64, &Page)) -> Result<()> {
        let base = HEADER + self.header.blocks_max * BLOCK + block.first * PAGE;
        let end = base + block.length / 4096 * PAGE;
        let mut at = base;
        let mut bytes = vec![0; (CHUNK * PAGE) as usize];
        while let Some(data) = self.next_data(at, end)? {
            // Records do not cross holes: a hole begins at a multiple of 4096.
            let from = base + (data - base) / PAGE * PAGE;
            let length = (end - from).min(CHUNK * PAGE) as usize;
            self.file
                .read_exact_at(&mut bytes[..length], from)
                .context("the recording's pages")?;
            for (index, record) in bytes[..length].chunks_exact(PAGE as usize).enumerate() {
                let page = page_record(record);
                if page != Page::default() {
                    each((from - base) / PAGE * 4096 + index as u64 * 4096, &page);
                }
            }
            at = from + length as u64;
        }
        Ok(())
    }

    /// The start of the next written part at or after `at`, before `end`.
    fn next_data(&self, at: u64, end: u64) -> io::Result<Option<u64>> {
        if at >= end {
            return Ok(None);
        }
        match seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => Ok((data < end).then_some(data)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn text_at(bytes: &[u8], at: usize) -> String {
    let text = &bytes[at..at + PATH];
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(PATH);
    String::from_utf8_lossy(&text[..end]).into_owned()
}

fn header(bytes: &[u8]) -> Header {
    let number = |index: usize| u64_at(bytes, 24 + 8 * index);
    let small = |index: usize| u32_at(bytes, 120 + 4 * index);
    Header {
        flags: u32_at(bytes, 20),
        blocks_max: number(0),
        pages_max: number(1),
        blocks: number(2),
        pages: number(3),
        seen: number(4),
        counted: number(5),
        accesses: number(6),
        walks: number(7),
        walks_huge: number(8),
        windows: number(9),
        lost: number(10),
        process: small(0),
        threads: small(1),
        forks: small(2),
        execs: small(3),
        exec_path: text_at(bytes, 136),
    }
}

/// Parses a block; `None` for one that was incomplete when the program was killed.
fn block(bytes: &[u8]) -> Option<Block> {
    let kind = match u32_at(bytes, 0) {
        1 => BlockKind::Event,
        2 => BlockKind::Anonymous,
        3 => BlockKind::Heap,
        4 => BlockKind::Stack,
        5 => BlockKind::File,
        _ => return None,
    };
    Some(Block {
        kind,
        freed: u32_at(bytes, 4) & 1 != 0,
        event: u32_at(bytes, 8),
        address: u64_at(bytes, 16),
        length: u64_at(bytes, 24),
        first: u64_at(bytes, 32),
        offset: u64_at(bytes, 40),
        path: text_at(bytes, 48),
        mapping: mapping(u64_at(bytes, 240), u64_at(bytes, 248)),
    })
}

fn mapping(packed: u64, at: u64) -> Option<Mapping> {
    (packed >> 63 != 0).then_some(Mapping {
        class: (packed >> 40) as u8,
        protection: (packed >> 32) as u8,
        ordinal: packed as u32,
        at,
    })
}

fn page_record(bytes: &[u8]) -> Page {
    Page {
        accesses: u64_at(bytes, 0),
        l2_hits: u64_at(bytes, 8),
        walks: u64_at(bytes, 16),
        walks_huge: u64_at(bytes, 24),
        reuse_sum: u64_at(bytes, 32),
        reuse_count: u32_at(bytes, 40),
        dependent: u32_at(bytes, 44),
        independent: u32_at(bytes, 48),
        flags: u32_at(bytes, 52),
        l2_spared: u64_at(bytes, 56),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use toll_model::wire;

    use super::*;

    /// Fills a recording with the C header, one value per field, and prints the wire constants.
    const WRITER: &str = r#"
#include "recording.h"
#include "wire.h"
#include <stdio.h>
#include <string.h>
static char room[RECORDING_HEADER];
int main(int argc, char **argv)
{
    FILE *file = fopen(argv[argc - 1], "w");
    struct header h = { RECORDING_MAGIC, RECORDING_HEADER, sizeof(struct block), sizeof(struct page),
        RECORDING_EXECED, 2, 4, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, "/exec", "/program" };
    struct block b[2] = { { BLOCK_FILE, BLOCK_FREED, 22, 0, 23 << 12, 2 << 12, 1, 26, "/file", MAPPING(27, 3, 28), 29 << 12 }, { 0 } };
    struct page p[4] = { [2] = { 30, 31, 32, 33, 34, 35, 36, 37, PAGE_HUGE, 39 } };
    memcpy(room, &h, sizeof(h));
    fwrite(room, sizeof(room), 1, file);
    fwrite(b, sizeof(b), 1, file);
    fwrite(p, sizeof(p), 1, file);
    printf("%d %d %d %d %d %d", TOLL_MAGIC_SYSCALL, TOLL_EVENT_MALLOC, TOLL_EVENT_MMAP,
        TOLL_EVENT_MOVE, TOLL_EVENT_FREE, TOLL_EVENT_PROCESS);
    return fclose(file);
}
"#;

    #[test]
    fn the_header_files_of_the_plugin_agree() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("writer.c"), WRITER).unwrap();
        let headers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/user");
        let built = Command::new("cc")
            .args(["-I", headers, "-o"])
            .args([path("writer"), path("writer.c")])
            .status();
        assert!(built.expect("cc").success());
        let written = Command::new(path("writer")).arg(path("file")).output();
        let numbers = String::from_utf8(written.unwrap().stdout).unwrap();
        use wire::EventKind::{Free, Malloc, Mmap, Move, Process};
        let ours = [Malloc, Mmap, Move, Free, Process].map(|kind| (kind as u32).to_string());
        assert_eq!(
            numbers,
            format!("{} {}", wire::MAGIC_SYSCALL, ours.join(" "))
        );

        let recording = Recording::read(File::open(path("file")).unwrap()).unwrap();
        let expected = Header {
            flags: flags::EXECED,
            blocks_max: 2,
            pages_max: 4,
            blocks: 2,
            pages: 3,
            seen: 10,
            counted: 11,
            accesses: 12,
            walks: 13,
            walks_huge: 14,
            windows: 15,
            lost: 16,
            process: 18,
            threads: 19,
            forks: 20,
            execs: 21,
            exec_path: "/exec".to_owned(),
        };
        assert_eq!(recording.header, expected);
        // The second block was incomplete when the program was killed.
        let block = Block {
            kind: BlockKind::File,
            freed: true,
            event: 22,
            address: 23 << 12,
            length: 2 << 12,
            first: 1,
            offset: 26,
            path: "/file".to_owned(),
            mapping: Some(Mapping {
                class: 27,
                protection: 3,
                ordinal: 28,
                at: 29 << 12,
            }),
        };
        assert_eq!(recording.blocks, std::slice::from_ref(&block));
        let mut pages = Vec::new();
        recording
            .pages(&block, |offset, page| pages.push((offset, *page)))
            .unwrap();
        let page = Page {
            accesses: 30,
            l2_hits: 31,
            walks: 32,
            walks_huge: 33,
            reuse_sum: 34,
            reuse_count: 35,
            dependent: 36,
            independent: 37,
            flags: page::HUGE,
            l2_spared: 39,
        };
        assert_eq!(pages, [(4096, page)]);
    }

    #[test]
    fn an_empty_recording_means_that_nothing_started() {
        let error = Recording::read(create().unwrap()).unwrap_err();
        assert!(error.to_string().contains("did not start"), "{error}");
    }
}
