// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens the directory of morsels, and copies files into it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use toll_linux::morsel::{MorselError, Put, Request, Source, Store};

use crate::error::UserError;
use crate::{messages, signals};

/// The default directory of morsels; the environment may name another one.
const DIRECTORY: &str = "/run/morsels";
const ENV_DIRECTORY: &str = "TOLLFREE_MORSELS";

/// How long `run --morsel` waits for another copy of the same user.
pub(crate) const WAIT: Duration = Duration::from_secs(600);

/// Returns the directory to use if none is named.
pub fn default_directory() -> PathBuf {
    let named = std::env::var_os(ENV_DIRECTORY).filter(|value| !value.is_empty());
    named.unwrap_or_else(|| DIRECTORY.into()).into()
}

/// Opens the directory of morsels.
///
/// # Errors
/// [`UserError::Missing`] with how to create one.
pub fn open(directory: Option<&Path>) -> Result<Store> {
    let directory = directory.map_or_else(default_directory, Path::to_owned);
    Store::open(&directory).map_err(|error| match error {
        MorselError::NotMemory { .. } => UserError::Missing(format!(
            "{error}; as root, `tollfree morsel mount DIRECTORY` creates one"
        ))
        .into(),
        MorselError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            let (shown, how) = (directory.display(), how_to_make(&directory));
            UserError::Missing(format!("{shown}: no such directory; {how}")).into()
        }
        error => wrong(error),
    })
}

/// How to create a missing directory of morsels: a plain mkdir is enough on a file system in
/// memory.
fn how_to_make(directory: &Path) -> String {
    let shown = directory.display();
    let above = directory.ancestors().skip(1).find(|above| above.exists());
    match above.is_some_and(|above| Store::open(above).is_ok()) {
        true => format!("`mkdir -p {shown}` creates one"),
        false => format!("as root, `tollfree morsel mount {shown}` creates one"),
    }
}

/// Classifies an error for its exit code.
pub fn wrong(error: MorselError) -> anyhow::Error {
    match &error {
        MorselError::NotMemory { .. }
        | MorselError::Full { .. }
        | MorselError::Foreign { .. }
        | MorselError::Locked { .. } => UserError::Missing(error.to_string()).into(),
        MorselError::Name { .. } | MorselError::Taken { .. } => {
            UserError::Usage(error.to_string()).into()
        }
        MorselError::Unfit { .. } | MorselError::Changing(_) => {
            UserError::UnfitFile(error.to_string()).into()
        }
        MorselError::Interrupted => UserError::Interrupted.into(),
        MorselError::Io { .. } | MorselError::NoSuch(_) | MorselError::Busy(_) => error.into(),
    }
}

/// Copies a file unless the copy exists, with a progress line on a terminal. A signal stops it.
pub fn fill(
    store: &Store,
    source: &Source,
    name: Option<&OsStr>,
    limit: Option<u64>,
    wait: Duration,
) -> Result<Put, MorselError> {
    let _guard = signals::watch().map_err(|error| MorselError::Io {
        path: source.path.clone(),
        source: error,
    })?;
    let file_name = source.path.file_name().unwrap_or_default();
    let file_name = file_name.to_string_lossy().into_owned();
    let bar = messages::progress_bytes(&file_name, source.identity.size);
    let put = store.put(Request {
        source,
        name,
        limit,
        wait,
        progress: &mut |done| {
            match done {
                Some(0) => bar.set_message(file_name.clone()),
                Some(done) => bar.set_position(done),
                None => bar.set_message("waiting for another copy"),
            }
            signals::interrupted().is_none()
        },
    });
    bar.finish_and_clear();
    put
}
