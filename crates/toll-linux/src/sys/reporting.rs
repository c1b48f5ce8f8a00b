// SPDX-License-Identifier: MIT OR Apache-2.0
//! Free page reporting: a guest tells its host which blocks are idle, the host reclaims them, and
//! the next use of such a block costs many times more.

use crate::Root;

/// Whether idle blocks return to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreePageReporting {
    /// The balloon device supports it: idle blocks of at least this order return to the host.
    On { order: Option<u64> },
    /// There is a balloon device without support.
    Off,
    /// No balloon device: not a guest, or one that keeps its memory.
    NoBalloon,
}

/// Virtio device id of the balloon, and its feature bit for free page reporting.
const BALLOON: &str = "0x0005";
const REPORTING_BIT: usize = 5;

/// Inspects the virtio devices.
pub fn free_page_reporting(root: &Root) -> FreePageReporting {
    const DIRECTORY: &str = "/sys/bus/virtio/devices";
    let balloon = root
        .names(DIRECTORY)
        .into_iter()
        .find(|name| root.line(format!("{DIRECTORY}/{name}/device")).as_deref() == Some(BALLOON));
    let Some(balloon) = balloon else {
        return FreePageReporting::NoBalloon;
    };
    let features = root
        .line(format!("{DIRECTORY}/{balloon}/features"))
        .unwrap_or_default();
    if features.as_bytes().get(REPORTING_BIT) == Some(&b'1') {
        let order = root.number("/sys/module/page_reporting/parameters/page_reporting_order");
        FreePageReporting::On { order }
    } else {
        FreePageReporting::Off
    }
}
