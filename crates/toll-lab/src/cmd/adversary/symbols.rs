// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of kernel functions by address: a build's System.map.

use std::path::Path;

use anyhow::Result;

use crate::error::LabError;
use crate::files;

/// Functions by address.
#[derive(Debug)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Reads a System.map.
    ///
    /// # Errors
    /// [`LabError::Missing`] if the file is not there or names no function.
    pub fn read(path: &Path) -> Result<Symbols> {
        let text = match path.is_file() {
            true => files::read_text(path)?,
            false => String::new(),
        };
        let symbols = Symbols::parse(&text);
        match symbols.0.is_empty() {
            true => {
                let why = "names no function of the kernel: findings could not be explained";
                Err(LabError::Missing(format!("{}: {why}", path.display())).into())
            }
            false => Ok(symbols),
        }
    }

    fn parse(text: &str) -> Symbols {
        let function = |line: &str| {
            let mut words = line.split(' ');
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let is_code = matches!(words.next()?, "t" | "T");
            is_code.then(|| Some((address, words.next()?.to_owned())))?
        };
        let mut all: Vec<_> = text.lines().filter_map(function).collect();
        all.sort();
        Symbols(all)
    }

    /// Returns the function that contains the instruction before a return address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let before = address.checked_sub(1)?;
        let next = self.0.partition_point(|(start, _)| *start <= before);
        let (_, name) = self.0.get(next.checked_sub(1)?)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_address_belongs_to_the_function_before_it() {
        let symbols = Symbols::parse(
            "0000000000001000 T first\n0000000000002000 t second\n0000000000001800 D data\nbroken\n",
        );
        assert_eq!(symbols.name(0x1001), Some("first"));
        // The call is the last instruction of its function.
        assert_eq!(symbols.name(0x2000), Some("first"));
        assert_eq!(symbols.name(0x2001), Some("second"));
        assert_eq!(symbols.name(0x1000), None);
    }

    #[test]
    fn a_kernel_without_symbols_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let error = Symbols::read(&directory.path().join("System.map")).unwrap_err();
        assert!(error.to_string().contains("names no function"), "{error}");
    }
}
