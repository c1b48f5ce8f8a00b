// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cache of cost tables, by machine.

use std::env;
use std::fs;
use std::hash::Hasher;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toll_model::cost::CostTable;

use crate::{Root, cpu, sys};

/// The machine properties that a cost table depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub cpu: String,
    pub kernel: String,
    /// Bytes, rounded to 64 MiB: the usable memory varies slightly between boots.
    pub memory: u64,
}

/// Returns the key of the machine at `root`.
pub fn key(root: &Root) -> Key {
    const GRAIN: u64 = 64 << 20;
    let memory = sys::effective_memory(root).unwrap_or(0);
    Key {
        cpu: cpu::model(root),
        kernel: sys::kernel_release(root),
        memory: memory.div_ceil(GRAIN) * GRAIN,
    }
}

/// Returns tollfree's directory in the user's cache: `$XDG_CACHE_HOME/tollfree`, else
/// `~/.cache/tollfree`; `None` without a home directory. It need not exist.
pub fn cache_directory() -> Option<PathBuf> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let base =
        absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("tollfree"))
}

/// Returns the file for the cost table of a key; `None` without a home directory.
pub fn cache_path(key: &Key) -> Option<PathBuf> {
    Some(cache_directory()?.join(format!("costs-{:016x}.json", hash(key))))
}

/// FNV-1a: a file name must not depend on the compiler's hasher.
fn hash(key: &Key) -> u64 {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    hasher.write(key.cpu.as_bytes());
    hasher.write(&[0]);
    hasher.write(key.kernel.as_bytes());
    hasher.write(&[0]);
    hasher.write(&key.memory.to_le_bytes());
    hasher.finish()
}

/// Returns the cached table for a key if it exists and is valid.
pub fn load(key: &Key) -> Option<CostTable> {
    let text = fs::read_to_string(cache_path(key)?).ok()?;
    let table = CostTable::from_json(text).ok()?;
    let same = table.cpu == key.cpu && table.kernel == key.kernel && table.memory == key.memory;
    same.then_some(table)
}

/// Writes a table to `path` atomically.
///
/// # Errors
/// The table is invalid, or its directory cannot be created or written.
pub fn store(path: &Path, table: &CostTable) -> io::Result<()> {
    let text = table.to_json().map_err(io::Error::other)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests;
