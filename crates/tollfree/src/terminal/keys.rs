// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys, from the bytes that a terminal sends.

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Backspace,
    Escape,
}

/// Sequences after an escape. Terminals send the last four with `O` in application mode.
const SEQUENCES: [(&[u8], Key); 12] = [
    (b"[5~", Key::PageUp),
    (b"[6~", Key::PageDown),
    (b"[1~", Key::Home),
    (b"[4~", Key::End),
    (b"[A", Key::Up),
    (b"[B", Key::Down),
    (b"[H", Key::Home),
    (b"[F", Key::End),
    (b"OA", Key::Up),
    (b"OB", Key::Down),
    (b"OH", Key::Home),
    (b"OF", Key::End),
];

/// Parses the bytes of one read. Unknown sequences and control characters are left out.
pub(super) fn parse(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((key, length)) = first(bytes) {
        keys.extend(key);
        bytes = &bytes[length..];
    }
    keys
}

/// The first key and its length; no key for what is not known.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    Some(match *bytes.first()? {
        b'\x1b' => escaped(&bytes[1..]),
        b'\r' | b'\n' => (Some(Key::Enter), 1),
        b'\x08' | b'\x7f' => (Some(Key::Backspace), 1),
        byte if byte.is_ascii_control() => (None, 1),
        _ => character(bytes),
    })
}

fn escaped(rest: &[u8]) -> (Option<Key>, usize) {
    if let Some((sequence, key)) = SEQUENCES.iter().find(|it| rest.starts_with(it.0)) {
        return (Some(*key), 1 + sequence.len());
    }
    if !rest.starts_with(b"[") {
        return (Some(Key::Escape), 1);
    }
    // Parameters, then a final byte: ECMA-48, 5.4.
    let end = rest[1..]
        .iter()
        .position(|byte| (0x40..=0x7e).contains(byte));
    (None, end.map_or(1 + rest.len(), |end| end + 3))
}

fn character(bytes: &[u8]) -> (Option<Key>, usize) {
    let valid = |length: &usize| std::str::from_utf8(bytes.get(..*length)?).ok();
    match (1..=4).find_map(|length| valid(&length)) {
        Some(text) => (text.chars().next().map(Key::Char), text.len()),
        None => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_characters_and_sequences() {
        let keys = parse("qä\x1b[A\x1bOB\x1b[6~\r\x7f\x01/".as_bytes());
        let expected = [
            Key::Char('q'),
            Key::Char('ä'),
            Key::Up,
            Key::Down,
            Key::PageDown,
            Key::Enter,
            Key::Backspace,
            Key::Char('/'),
        ];
        assert_eq!(keys, expected);
    }

    #[test]
    fn what_is_not_known_is_no_key() {
        assert_eq!(parse(b"\x1b[1;5Cx"), [Key::Char('x')]);
        assert_eq!(parse(b"\x1b[1;"), []);
        assert_eq!(parse(b"\x1b"), [Key::Escape]);
        assert_eq!(parse(b"\xff\xc3z"), [Key::Char('z')]);
    }
}
