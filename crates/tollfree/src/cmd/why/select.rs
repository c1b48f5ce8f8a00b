// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mappings that the command line names: by address, kind or name.

use anyhow::Result;
use toll_act::error::UserError;

use super::entry::{Entry, Kind};
use super::reading::Reading;

/// Keeps the named mappings.
///
/// # Errors
/// There is no such mapping, or the mappings cannot be read.
pub fn keep(reading: &mut Reading, what: &str) -> Result<()> {
    let pid = reading.pid;
    if !reading.has_mappings {
        let why = &reading.missing[0];
        let message = format!("{}; {}", why.reason, why.fix);
        return Err(UserError::Missing(message).into());
    }
    let shown = what.escape_debug();
    if what.is_empty() {
        let message = "which mapping? an address, heap, stack, or a part of its name";
        return Err(UserError::Usage(message.to_owned()).into());
    }
    let by_name: Vec<bool> = reading
        .entries
        .iter()
        .map(|it| is_named(it, what))
        .collect();
    let address = address(what).filter(|_| !by_name.contains(&true));
    let mut names = by_name.into_iter();
    reading.entries.retain(|entry| {
        let is_named = names.next().unwrap_or(false);
        address.map_or(is_named, |address| {
            entry.start <= address && address < entry.end
        })
    });
    if !reading.entries.is_empty() {
        return Ok(());
    }
    let message = match address {
        Some(address) => format!("process {pid} has no mapping at {address:#x}"),
        None => format!("process {pid} has no mapping with {shown} in its name"),
    };
    Err(UserError::UnfitFile(message).into())
}

fn is_named(entry: &Entry, what: &str) -> bool {
    let kind = match what {
        "heap" => Some(Kind::Heap),
        "stack" => Some(Kind::Stack),
        "anon" | "anonymous" => Some(Kind::Anonymous),
        "hugetlb" => Some(Kind::Hugetlb),
        _ => None,
    };
    kind == Some(entry.kind) || entry.name.contains(what)
}

/// An address as `0x7f00` or, as /proc/PID/maps prints it, `7f00`; also of a whole `7f00-7fff`.
fn address(what: &str) -> Option<u64> {
    let start = what.split('-').next()?;
    let digits = start.strip_prefix("0x").unwrap_or(start);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_hexadecimal() {
        assert_eq!(address("0x7f00"), Some(0x7f00));
        assert_eq!(address("7f00-8f00"), Some(0x7f00));
        assert_eq!(address("+7f00"), None);
        assert_eq!(address("heap"), None);
        assert_eq!(address("0x"), None);
        assert_eq!(address("11112222333344445555"), None);
    }
}
