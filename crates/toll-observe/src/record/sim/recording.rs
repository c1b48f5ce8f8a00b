// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the plugin's recording. It is sparse; only the written parts are read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use toll_model::PAGE;
use toll_model::wire::recording::{
    self as wire, BlockKind, HEADER_BYTES, Header, MAGIC, Mapping, Page,
};
use toll_model::wire::{Value, until_nul};

const BLOCK_BYTES: u64 = size_of::<wire::Block>() as u64;
/// Bytes of a page's record.
const RECORD_BYTES: u64 = size_of::<Page>() as u64;
/// Page records read at a time.
const CHUNK: u64 = 1 << 14;

/// Creates an empty recording in memory, where no disk can be full. The plugin sets its size.
pub fn create() -> Result<File> {
    let memory = memfd_create("tollfree-recording", MemfdFlags::CLOEXEC)
        .context("no memory for the recording")?;
    Ok(File::from(memory))
}

/// A named piece of the guest's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub kind: BlockKind,
    pub freed: bool,
    /// Whether it is shared memory with a name.
    pub shared: bool,
    /// Index of the allocation event.
    pub event: u32,
    pub address: u64,
    pub length: u64,
    first: u64,
    /// Bytes from the site's start to the block's.
    pub offset: u64,
    pub path: String,
    /// The private anonymous mapping that contained it when it was allocated, and its offset there.
    pub mapping: Option<Mapping>,
    pub mapping_at: u64,
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
        let mut bytes = [0; HEADER_BYTES as usize];
        let read = file.read_exact_at(&mut bytes, 0);
        let header = Header::read(&bytes);
        if read.is_err() || header.magic != MAGIC {
            bail!("the simulator did not start");
        }
        let sizes = [header.header_size, header.block_size, header.page_size];
        ensure!(
            sizes.map(u64::from) == [HEADER_BYTES, BLOCK_BYTES, RECORD_BYTES],
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
        let mut bytes = vec![0; (count * BLOCK_BYTES) as usize];
        self.file
            .read_exact_at(&mut bytes, HEADER_BYTES)
            .context("the recording's blocks")?;
        let blocks = bytes.chunks_exact(BLOCK_BYTES as usize);
        Ok(blocks
            .filter_map(|bytes| block(&wire::Block::read(bytes)))
            .filter(|b| b.first + b.length / PAGE <= self.header.pages_max)
            .collect())
    }

    /// Calls `each` with the offset (from the block's start) of every page that has a record, and
    /// with the record.
    pub fn pages(&self, block: &Block, mut each: impl FnMut(u64, &Page)) -> Result<()> {
        let blocks = self.header.blocks_max * BLOCK_BYTES;
        let base = HEADER_BYTES + blocks + block.first * RECORD_BYTES;
        let end = base + block.length / PAGE * RECORD_BYTES;
        let mut at = base;
        let mut bytes = vec![0; (CHUNK * RECORD_BYTES) as usize];
        while let Some(data) = self.next_data(at, end)? {
            // Records do not cross holes: a hole begins at a multiple of 4096.
            let first = (data - base) / RECORD_BYTES;
            let from = base + first * RECORD_BYTES;
            let length = (end - from).min(CHUNK * RECORD_BYTES) as usize;
            self.file
                .read_exact_at(&mut bytes[..length], from)
                .context("the recording's pages")?;
            let records = bytes[..length].chunks_exact(RECORD_BYTES as usize);
            for (number, record) in (first..).zip(records) {
                if record.iter().any(|&byte| byte != 0) {
                    each(number * PAGE, &Page::read(record));
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

/// Returns a NUL-terminated path.
pub fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(until_nul(path)).into_owned()
}

/// Decodes a block; `None` for one that was incomplete when the program was killed.
fn block(stored: &wire::Block) -> Option<Block> {
    Some(Block {
        kind: BlockKind::from_number(stored.kind)?,
        freed: stored.flags & wire::block::FREED != 0,
        shared: stored.flags & wire::block::SHARED != 0,
        event: stored.event,
        address: stored.address,
        length: stored.length,
        first: stored.first,
        offset: stored.offset,
        path: text(&stored.path),
        mapping: Mapping::unpack(stored.mapping),
        mapping_at: stored.mapping_at,
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use toll_model::wire::{EventKind, MAGIC_SYSCALL};

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

    /// A path as the plugin stores it.
    fn path_of(text: &str) -> [u8; wire::PATH] {
        let mut path = [0; wire::PATH];
        path[..text.len()].copy_from_slice(text.as_bytes());
        path
    }

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
        use EventKind::{Free, Malloc, Mmap, Move, Process};
        let ours = [Malloc, Mmap, Move, Free, Process].map(|kind| (kind as u32).to_string());
        assert_eq!(numbers, format!("{MAGIC_SYSCALL} {}", ours.join(" ")));

        let recording = Recording::read(File::open(path("file")).unwrap()).unwrap();
        let expected = Header {
            magic: MAGIC,
            header_size: 4096,
            block_size: 256,
            page_size: 64,
            flags: wire::flags::EXECED,
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
            guest_base: 17,
            process: 18,
            threads: 19,
            forks: 20,
            execs: 21,
            exec_path: path_of("/exec"),
            program: path_of("/program"),
        };
        assert_eq!(recording.header, expected);
        // The second block was incomplete when the program was killed.
        let block = Block {
            kind: BlockKind::File,
            freed: true,
            shared: false,
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
            }),
            mapping_at: 29 << 12,
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
            flags: wire::page::HUGE,
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
