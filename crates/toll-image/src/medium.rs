// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an image is read from and written to.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::layout::PAGE;
use crate::word::{decode, encode, number_at};

/// A range of pages that can be read.
pub trait Source {
    /// The number of whole pages.
    fn pages(&self) -> u64;
    /// A page of the range.
    fn page(&self, number: u64) -> io::Result<Cow<'_, [u8]>>;
}

/// A range that can be written, with what the order of persistence depends on.
pub trait Medium: Source {
    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// An aligned store of eight bytes, which persists as a whole or not at all.
    fn store8(&mut self, offset: u64, value: u64) -> io::Result<()>;
    /// Begins to write back the cache lines of a range.
    fn flush(&mut self, range: Range<u64>) -> io::Result<()>;
    /// Waits for the flushes before it.
    fn fence(&mut self) -> io::Result<()>;

    /// Stores a payload as a word.
    fn store_word(&mut self, offset: u64, payload: u64) -> io::Result<()> {
        self.store8(offset, encode(offset, payload))
    }

    /// Stores a word and flushes it; a fence follows.
    fn write_word(&mut self, offset: u64, payload: u64) -> io::Result<()> {
        self.store_word(offset, payload)?;
        self.flush(offset..offset + 8)
    }

    /// Stores a word, and makes it persistent.
    fn publish(&mut self, offset: u64, payload: u64) -> io::Result<()> {
        self.write_word(offset, payload)?;
        self.fence()
    }

    /// Stores bytes and flushes them; a fence follows.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.store(offset, bytes)?;
        self.flush(offset..offset + bytes.len() as u64)
    }
}

/// Reads a word of a source; `None` if it is damaged.
pub fn payload_at(source: &impl Source, offset: u64) -> io::Result<Option<u64>> {
    let page = source.page(offset / PAGE)?;
    Ok(decode(offset, number_at(&page, (offset % PAGE) as usize)))
}

/// A page that lies outside the range.
fn outside(number: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("page {number} is outside the range"),
    )
}

impl Source for Vec<u8> {
    fn pages(&self) -> u64 {
        self.len() as u64 / PAGE
    }

    fn page(&self, number: u64) -> io::Result<Cow<'_, [u8]>> {
        let begin = number.saturating_mul(PAGE) as usize;
        let page = self.get(begin..begin.saturating_add(PAGE as usize));
        page.map(Cow::Borrowed).ok_or_else(|| outside(number))
    }
}

/// Memory that keeps everything: what no crash interrupts.
impl Medium for Vec<u8> {
    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let begin = offset as usize;
        self[begin..begin + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn store8(&mut self, offset: u64, value: u64) -> io::Result<()> {
        self.store(offset, &value.to_le_bytes())
    }

    fn flush(&mut self, _: Range<u64>) -> io::Result<()> {
        Ok(())
    }

    fn fence(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An image file, or a device.
#[derive(Debug)]
pub struct Image {
    file: File,
    bytes: u64,
}

impl Image {
    /// An open file; its length is that of the file or device.
    pub fn new(mut file: File) -> io::Result<Image> {
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Image { file, bytes })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes at any place, as far as there are some.
    pub fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let length = (length as u64).min(self.bytes.saturating_sub(offset));
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

impl Source for Image {
    fn pages(&self) -> u64 {
        self.bytes / PAGE
    }

    fn page(&self, number: u64) -> io::Result<Cow<'_, [u8]>> {
        if number >= self.pages() {
            return Err(outside(number));
        }
        Ok(Cow::Owned(self.read(number * PAGE, PAGE as usize)?))
    }
}

impl Medium for Image {
    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn store8(&mut self, offset: u64, value: u64) -> io::Result<()> {
        self.store(offset, &value.to_le_bytes())
    }

    /// The next fence writes everything back.
    fn flush(&mut self, _: Range<u64>) -> io::Result<()> {
        Ok(())
    }

    fn fence(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}
