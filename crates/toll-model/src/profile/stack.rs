// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misses by the code that had them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The misses of one code stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// Names of functions, innermost first.
    pub frames: Vec<Arc<str>>,
    /// Page walks, as those of a [`Row`](super::Row).
    pub misses: f64,
}

impl Stack {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.frames.is_empty() {
            return Err("it has no frame".to_owned());
        }
        match self.misses.is_finite() && self.misses >= 0.0 {
            true => Ok(()),
            false => Err(format!("misses is {}", self.misses)),
        }
    }
}
