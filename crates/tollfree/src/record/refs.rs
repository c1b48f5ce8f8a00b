// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source `refs`.

/// Records a profile.
pub fn record(_options: &super::RecordOptions) -> anyhow::Result<super::Recorded> {
    anyhow::bail!("not built yet")
}
