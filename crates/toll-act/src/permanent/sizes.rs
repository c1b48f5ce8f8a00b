// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of 16 KiB to 1 MiB (mTHP): a setting of the whole machine.

use toll_linux::sys::size_setting;
use toll_model::numbers;

use super::{Candidate, Change};
use crate::machine::MachineSetting;

/// The names of the variants, by the size of their pages.
const NAMES: [(u64, &str); 7] = [
    (16 << 10, "mthp-16k"),
    (32 << 10, "mthp-32k"),
    (64 << 10, "mthp-64k"),
    (128 << 10, "mthp-128k"),
    (256 << 10, "mthp-256k"),
    (512 << 10, "mthp-512k"),
    (1 << 20, "mthp-1m"),
];

/// Returns the change that lets all anonymous memory have pages of this size; `None` if Linux has
/// no pages of this size.
pub fn smaller_pages(size: u64) -> Option<Candidate> {
    let (_, name) = NAMES.into_iter().find(|(known, _)| *known == size)?;
    let setting = MachineSetting {
        file: size_setting(size).into(),
        value: "always".to_owned(),
    };
    let file = setting.file.display();
    Some(Candidate {
        name,
        change: format!(
            "anonymous memory of all programs in pages of {}",
            numbers::bytes(size)
        ),
        how: format!(
            "# as root, until the next boot:\n\
             echo always >{file}\n\n\
             # at each boot, in /etc/tmpfiles.d/{name}.conf:\n\
             w {file} - - - - always"
        ),
        variant: Some(Change {
            machine: Some(setting),
            ..Change::default()
        }),
    })
}
