// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of the extended attributes of an inode.

use std::collections::BTreeMap;

use crate::layout::PAGE;
use crate::word::{crc32c, number_at};

/// Values by name.
pub type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

const HEADER: usize = 16;
/// Bytes before the name of an attribute.
const LENGTHS: usize = 4;

/// The page for attributes; `None` if they do not fit, or one cannot be an attribute.
pub fn encode(attributes: &Attributes, page: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; HEADER];
    for (name, value) in attributes {
        let length = u8::try_from(name.len()).ok().filter(|length| *length > 0)?;
        bytes.extend([length, 0]);
        bytes.extend(u16::try_from(value.len()).ok()?.to_le_bytes());
        bytes.extend(name);
        bytes.extend(value);
    }
    let used = bytes.len();
    let fits = used <= PAGE as usize && attributes.keys().all(|name| !name.contains(&0));
    bytes[4..6].copy_from_slice(&(used as u16).to_le_bytes());
    bytes[6..8].copy_from_slice(&(attributes.len() as u16).to_le_bytes());
    bytes[8..16].copy_from_slice(&page.to_le_bytes());
    let sum = crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes.resize(PAGE as usize, 0);
    fits.then_some(bytes)
}

/// The attributes of a page; `None` if it is damaged, or belongs elsewhere.
pub fn decode(bytes: &[u8], page: u64) -> Option<Attributes> {
    let head = number_at(bytes, 0);
    let (sum, used, count) = (head as u32, (head >> 32) as u16, (head >> 48) as u16);
    let content = bytes.get(4..usize::from(used))?;
    if used < HEADER as u16 || crc32c(content) != sum || number_at(bytes, 8) != page {
        return None;
    }
    let mut rest = bytes.get(HEADER..usize::from(used))?;
    let mut attributes = Attributes::new();
    while !rest.is_empty() {
        let (name, value, after) = attribute(rest)?;
        attributes.insert(name.to_vec(), value.to_vec());
        rest = after;
    }
    (attributes.len() == usize::from(count)).then_some(attributes)
}

/// The name and the value of the first attribute, and the bytes after it.
fn attribute(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (lengths, rest) = bytes.split_at_checked(LENGTHS)?;
    let value_length = u16::from_le_bytes([lengths[2], lengths[3]]);
    let (name, rest) = rest.split_at_checked(usize::from(lengths[0]))?;
    let (value, rest) = rest.split_at_checked(usize::from(value_length))?;
    (!name.is_empty() && lengths[1] == 0 && !name.contains(&0)).then_some((name, value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Attributes {
        let pair = |name: &str, value: &str| (name.into(), value.into());
        [pair("user.a", "1"), pair("user.empty", "")].into()
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused() {
        let page = encode(
            &[("ab".into(), "1".into()), ("ac".into(), "1".into())].into(),
            7,
        );
        let mut page = page.unwrap();
        let used = usize::from(u16::from_le_bytes([page[4], page[5]]));
        // The last byte but one is the end of the second name.
        page[used - 2] = b'b';
        let sum = crc32c(&page[4..used]);
        page[..4].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(decode(&page, 7), None);
    }

    #[test]
    fn attributes_come_back() {
        for attributes in [some(), Attributes::new()] {
            let page = encode(&attributes, 7).unwrap();
            assert_eq!(decode(&page, 7), Some(attributes));
            assert_eq!(decode(&page, 8), None);
        }
    }

    #[test]
    fn a_changed_byte_is_seen() {
        let page = encode(&some(), 7).unwrap();
        for at in 0..40 {
            let mut changed = page.clone();
            changed[at] ^= 4;
            assert_eq!(decode(&changed, 7), None, "{at}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let of = |name: Vec<u8>, value: Vec<u8>| encode(&[(name, value)].into(), 7);
        assert!(of(vec![b'a'; 255], vec![1; 4096 - 16 - 4 - 255]).is_some());
        assert!(of(vec![b'a'; 255], vec![1; 4096 - 16 - 4 - 254]).is_none());
        assert!(of(vec![b'a'; 256], vec![]).is_none());
        assert!(of(vec![], vec![]).is_none());
        assert!(of(vec![0], vec![]).is_none());
    }
}
