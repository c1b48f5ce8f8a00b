// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code addresses in the text of `perf script`: the instruction of a sample, or its call chain.

/// The fields of a data source that may come last, before the numbers and the instruction.
const LAST_FIELDS: [&str; 3] = ["|BLK", "|LCK", "|TLB"];

/// A code address, with the function and the file that perf found for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address<'a> {
    pub ip: u64,
    symbol: &'a str,
    /// A path, a name in brackets, or nothing.
    object: &'a str,
}

impl Address<'_> {
    /// The function; without one the file in brackets, `[libc.so.6]`.
    pub fn name(&self) -> Option<String> {
        let known = |text: &str| !text.is_empty() && text != "[unknown]";
        if known(self.symbol) {
            return Some(self.symbol.to_owned());
        }
        known(self.object).then(|| in_brackets(self.object))
    }
}

/// The name of a file without its directory, in brackets.
pub fn in_brackets(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.starts_with('[') {
        true => name.to_owned(),
        false => format!("[{name}]"),
    }
}

/// The instruction of a sample, if its line has one: `... 12 401006 main+0x16 (/opt/main)`.
pub fn of_sample(line: &str) -> Option<Address<'_>> {
    let last = LAST_FIELDS.iter().find_map(|field| line.rfind(field))?;
    let (mut first, mut rest) = word(without_page_size(&line[last..]));
    while hex(first).is_none() {
        if first.is_empty() {
            return None;
        }
        (first, rest) = word(rest);
    }
    // A latency comes before the instruction.
    let (second, after) = word(rest);
    let is_latency = first.bytes().all(|byte| byte.is_ascii_digit());
    match hex(second) {
        Some(ip) if is_latency => Some(address(ip, after)),
        None if second.is_empty() && is_latency => None,
        _ => Some(address(hex(first)?, rest)),
    }
}

/// A line of a call chain, innermost first: a tab, the address, the function, the file.
pub fn of_chain(line: &str) -> Option<Address<'_>> {
    let (ip, rest) = word(line.strip_prefix('\t')?);
    Some(address(hex(ip)?, rest))
}

/// The page size behind a call chain; whether it is above 4 KiB.
pub fn page_size(line: &str) -> Option<bool> {
    match line.trim() {
        "2M" | "1G" => Some(true),
        "4K" | "N/A" => Some(false),
        _ => None,
    }
}

fn without_page_size(text: &str) -> &str {
    let text = text.trim_end();
    match text.rsplit_once(' ') {
        Some((before, last)) if page_size(last).is_some() => before,
        _ => text,
    }
}

/// ` main+0x16 (/opt/main)`: both parts may contain blanks and parentheses.
fn address(ip: u64, text: &str) -> Address<'_> {
    let text = text.trim_end();
    let file = text.find(" (/").or_else(|| text.find(" (["));
    let at = file.or_else(|| text.rfind(" ("));
    let (symbol, object) = match at.filter(|_| text.ends_with(')')) {
        Some(at) => (&text[..at], &text[at + 2..text.len() - 1]),
        None => (text, ""),
    };
    Address {
        ip,
        symbol: without_offset(symbol.trim()),
        object,
    }
}

/// `main+0x16` without its offset.
fn without_offset(symbol: &str) -> &str {
    match symbol.rsplit_once("+0x") {
        Some((name, offset)) if hex(offset).is_some() => name,
        _ => symbol,
    }
}

/// The first word, and the text behind it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

fn hex(word: &str) -> Option<u64> {
    let is_hex = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(word, 16).ok())?
}

#[cfg(test)]
mod tests;
