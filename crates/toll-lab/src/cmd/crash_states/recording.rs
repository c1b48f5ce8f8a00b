// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings of stores, as `plugins/system/stores.c` writes them.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Bytes of a record.
const RECORD: usize = 24;

/// What a guest did. Offsets are those of the persistent memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Store {
        offset: u64,
        value: [u8; 8],
        size: usize,
    },
    /// Of the cache line at an offset.
    Flush {
        offset: u64,
    },
    Fence,
    /// Two numbers of the guest's program.
    Step(u64, u64),
}

/// Reads a recording, a record at a time.
pub struct Recording<R>(R);

impl Recording<BufReader<File>> {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Recording(BufReader::with_capacity(
            1 << 20,
            File::open(path)?,
        )))
    }
}

impl<R: Read> Iterator for Recording<R> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = [0; RECORD];
        let mut length = 0;
        while length < RECORD {
            match self.0.read(&mut bytes[length..]) {
                Ok(0) if length == 0 => return None,
                Ok(0) => return Some(Err(invalid("ends in the middle of a record"))),
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Some(Err(error)),
            }
        }
        Some(record(&bytes))
    }
}

fn record(bytes: &[u8; RECORD]) -> io::Result<Record> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let (head, offset, value) = (number(0), number(8), number(16));
    let (kind, size) = (head as u32, (head >> 32) as usize);
    match kind {
        1 if (1..=8).contains(&size) => Ok(Record::Store {
            offset,
            value: value.to_le_bytes(),
            size,
        }),
        2 => Ok(Record::Flush { offset }),
        3 => Ok(Record::Fence),
        4 => Ok(Record::Step(offset, value)),
        _ => Err(invalid("has a record of no known kind")),
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: u32, size: u32, offset: u64, value: u64) -> Vec<u8> {
        let head = [kind.to_le_bytes(), size.to_le_bytes()].concat();
        [head, [offset.to_le_bytes(), value.to_le_bytes()].concat()].concat()
    }

    #[test]
    fn records_are_read_in_order() {
        let all = [
            bytes(1, 4, 40, 7),
            bytes(2, 0, 64, 0),
            bytes(3, 0, 0, 0),
            bytes(4, 0, 5, 6),
        ];
        let got: io::Result<Vec<Record>> = Recording(&all.concat()[..]).collect();
        let store = Record::Store {
            offset: 40,
            value: 7u64.to_le_bytes(),
            size: 4,
        };
        let rest = [
            Record::Flush { offset: 64 },
            Record::Fence,
            Record::Step(5, 6),
        ];
        assert_eq!(got.unwrap(), [&[store], &rest[..]].concat());
    }

    #[test]
    fn what_is_no_recording_is_an_error() {
        for wrong in [bytes(5, 0, 0, 0), bytes(1, 9, 0, 0), vec![1, 0, 0]] {
            let got: io::Result<Vec<Record>> = Recording(&wrong[..]).collect();
            assert_eq!(got.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
