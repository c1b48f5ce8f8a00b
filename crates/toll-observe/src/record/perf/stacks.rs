// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misses by code stack, with each name held once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toll_model::profile::Stack;

/// Maximum number of different stacks; the misses of further ones are those of [`OTHERS`].
const MAX_STACKS: usize = 1 << 16;
/// Maximum number of frames of a stack, from the innermost.
const MAX_FRAMES: usize = 256;
/// The name of a frame without a function or a file.
const UNKNOWN: &str = "[unknown]";
/// The name of all stacks beyond the limit.
const OTHERS: &str = "[other stacks]";

/// The stacks so far.
#[derive(Debug, Default)]
pub struct Stacks {
    names: HashSet<Arc<str>>,
    misses: HashMap<Vec<Arc<str>>, f64>,
}

impl Stacks {
    /// Counts misses of a stack, innermost frame first; `None`: a frame without a name. Unnamed
    /// frames at the outer end are left out, and a stack without any name too.
    pub fn count(&mut self, frames: &[Option<String>], misses: f64) {
        let named = frames.iter().rposition(Option::is_some);
        let frames = &frames[..named.map_or(0, |last| last + 1).min(MAX_FRAMES)];
        if frames.is_empty() {
            return;
        }
        let name = |frame: &Option<String>| self.shared(frame.as_deref().unwrap_or(UNKNOWN));
        let stack: Vec<Arc<str>> = frames.iter().map(name).collect();
        let full = self.misses.len() >= MAX_STACKS && !self.misses.contains_key(&stack);
        let stack = if full {
            vec![self.shared(OTHERS)]
        } else {
            stack
        };
        *self.misses.entry(stack).or_default() += misses;
    }

    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(shared) = self.names.get(name) {
            return shared.clone();
        }
        let shared: Arc<str> = name.into();
        self.names.insert(shared.clone());
        shared
    }

    /// Returns the stacks, most misses first.
    pub fn finish(self) -> Vec<Stack> {
        let counted = self.misses.into_iter();
        let mut stacks: Vec<Stack> = counted
            .map(|(frames, misses)| Stack { frames, misses })
            .collect();
        stacks.sort_by(|a, b| {
            let by_name = || a.frames.cmp(&b.frames);
            b.misses.total_cmp(&a.misses).then_with(by_name)
        });
        stacks
    }
}

#[cfg(test)]
mod tests;
