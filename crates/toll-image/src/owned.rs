// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of a range that something owns.

/// One bit for each page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    bits: Vec<u64>,
    pages: u64,
}

impl Owned {
    pub fn new(pages: u64) -> Owned {
        Owned {
            bits: vec![0; pages.div_ceil(64) as usize],
            pages,
        }
    }

    pub fn pages(&self) -> u64 {
        self.pages
    }

    pub fn has(&self, page: u64) -> bool {
        page < self.pages && self.bits[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    /// Takes a block, up to the first page that is owned already, and returns that one.
    ///
    /// A second attempt for the same block fails at once, so that all attempts together take time
    /// linear in the range.
    pub fn take(&mut self, first: u64, count: u64) -> Result<(), u64> {
        for page in first..first + count {
            if self.has(page) || page >= self.pages {
                return Err(page);
            }
            self.bits[(page / 64) as usize] |= 1 << (page % 64);
        }
        Ok(())
    }

    pub fn release(&mut self, first: u64, count: u64) {
        for page in first..(first + count).min(self.pages) {
            self.bits[(page / 64) as usize] &= !(1 << (page % 64));
        }
    }

    pub fn count(&self) -> u64 {
        self.bits
            .iter()
            .map(|bits| u64::from(bits.count_ones()))
            .sum()
    }

    /// The first aligned block of free pages.
    pub fn free_block(&self, count: u64) -> Option<u64> {
        let blocks = (0..self.pages / count).map(|block| block * count);
        match count {
            1 => self.free_page(),
            _ => blocks
                .into_iter()
                .find(|first| (*first..first + count).all(|page| !self.has(page))),
        }
    }

    fn free_page(&self) -> Option<u64> {
        let at = self.bits.iter().position(|bits| *bits != u64::MAX)?;
        let page = at as u64 * 64 + u64::from(self.bits[at].trailing_ones());
        (page < self.pages).then_some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_overlaps_is_refused_at_the_first_page() {
        let mut owned = Owned::new(1024);
        assert_eq!(owned.take(600, 1), Ok(()));
        assert_eq!(owned.take(512, 512), Err(600));
        assert_eq!(owned.take(512, 512), Err(512));
        assert_eq!(owned.take(1023, 2), Err(1024));
    }

    #[test]
    fn free_blocks_are_aligned() {
        let mut owned = Owned::new(1600);
        owned.take(0, 3).unwrap();
        assert_eq!(owned.free_block(1), Some(3));
        assert_eq!(owned.free_block(512), Some(512));
        owned.take(700, 1).unwrap();
        assert_eq!(owned.free_block(512), Some(1024));
        owned.take(1024, 576).unwrap();
        assert_eq!(owned.free_block(512), None);
        owned.release(700, 1);
        assert_eq!(owned.free_block(512), Some(512));
        assert_eq!(owned.count(), 579);
    }
}
