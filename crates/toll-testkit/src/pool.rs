// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's pool of huge pages of 2 MiB.

use std::fs;

/// Pages of the hugetlb pool, returned on drop.
pub struct Pool(u64);

impl Pool {
    const COUNT: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

    /// Pages that are free.
    pub fn free() -> u64 {
        Pool::number(Pool::FREE).unwrap_or(0)
    }

    fn number(path: &str) -> Option<u64> {
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// Ensures that `pages` are free; `None` where that is not possible.
    pub fn reserve(pages: u64) -> Option<Pool> {
        let (count, free) = (Pool::number(Pool::COUNT)?, Pool::number(Pool::FREE)?);
        let pool = Pool(count);
        if free < pages {
            fs::write(Pool::COUNT, (count + pages - free).to_string()).ok()?;
        }
        (Pool::number(Pool::FREE)? >= pages).then_some(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if Pool::number(Pool::COUNT) != Some(self.0) {
            let _ = fs::write(Pool::COUNT, self.0.to_string());
        }
    }
}
