// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delta debugging: leaves out parts of a list, ever smaller ones, as long as what is left still
//! fails (Zeller and Hildebrandt, 2002).

/// A search in progress: `attempt` gives a list to try, `answer` says whether it failed.
#[derive(Debug)]
pub struct Search {
    best: Vec<u32>,
    /// Number of parts, the one that is left out next, and how many in a row were needed.
    parts: usize,
    part: usize,
    needed: usize,
}

impl Search {
    /// Begins with a list that fails.
    pub fn new(all: Vec<u32>) -> Search {
        Search {
            best: all,
            parts: 2,
            part: 0,
            needed: 0,
        }
    }

    /// The shortest list so far that failed.
    pub fn best(&self) -> &[u32] {
        &self.best
    }

    /// The next list to try; `None` if each single number is needed.
    pub fn attempt(&mut self) -> Option<Vec<u32>> {
        let is_done = self.needed == self.parts && self.parts >= self.best.len();
        if self.best.len() < 2 || is_done {
            return None;
        }
        if self.needed == self.parts {
            self.parts = (2 * self.parts).min(self.best.len());
            self.part = 0;
            self.needed = 0;
        }
        Some(self.without_part())
    }

    fn without_part(&self) -> Vec<u32> {
        let at = |part| self.best.len() * part / self.parts;
        let (first, end) = (at(self.part), at(self.part + 1));
        [&self.best[..first], &self.best[end..]].concat()
    }

    /// Whether the list that `attempt` gave failed: then it is the new one.
    pub fn answer(&mut self, has_failed: bool) {
        if has_failed {
            self.best = self.without_part();
            self.parts = (self.parts - 1).max(2).min(self.best.len());
            self.needed = 0;
        } else {
            self.part += 1;
            self.needed += 1;
        }
        self.part %= self.parts;
    }
}

/// Numbers as mmfuzz reads them, such as 3-17,40.
pub fn list(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
