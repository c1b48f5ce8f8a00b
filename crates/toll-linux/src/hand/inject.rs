// SPDX-License-Identifier: MIT OR Apache-2.0
//! One short ptrace stop with an injected madvise.

use super::{Advice, HandError};
use crate::proc::Status;

/// Why a process may not be stopped; `None`: it may.
pub(super) fn forbidden(status: &Status, _own_child: bool) -> Option<String> {
    (status.tracer != 0).then(|| format!("process {} traces it already", status.tracer))
}

pub(super) fn advise(
    _pid: u32,
    _own_child: bool,
    _start: u64,
    _length: u64,
    _advice: Advice,
) -> Result<(), HandError> {
    Err(HandError::NotPermitted("ptrace is not used".to_owned()))
}
