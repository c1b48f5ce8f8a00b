// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is built: source, new files, patches and symbols.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::series::{self, Patch};
use crate::error::LabError;
use crate::files;
use crate::house::House;

/// The names that need no path.
pub const NAMES: [&str; 5] = [
    "pristine",
    "vanilla",
    "tollfree",
    "tollfree-off",
    "tollfree-debug",
];

/// One kernel that can be built.
#[derive(Debug)]
pub struct Variant {
    pub name: String,
    /// What `uname -r` ends with.
    pub release: String,
    /// Names its folders in the cache: variants of one key are built in the same place.
    pub key: String,
    /// Folders of new files, each at its place in a Linux tree.
    pub overlays: Vec<PathBuf>,
    pub patches: Vec<Patch>,
    /// Whether the patches may create and delete files (ours may not: new files are in the overlay).
    pub is_foreign: bool,
    /// Fragments of a .config; where two set a symbol, the later one counts.
    pub fragments: Vec<PathBuf>,
}

impl Variant {
    /// A variant by its name, or by the path of a series file, with more fragments.
    ///
    /// # Errors
    /// [`LabError::Usage`] for a name that is neither; what [`series::read`] says.
    pub fn find(house: &House, name: &str, more: &[PathBuf]) -> Result<Variant> {
        let mut variant = match name.contains('/') || Path::new(name).is_file() {
            true => Variant::foreign(house, Path::new(name))?,
            false => Variant::own(house, name)?,
        };
        let mut contents = Vec::new();
        for fragment in more {
            let path = std::path::absolute(fragment)?;
            contents.push(files::read_text(&path)?);
            variant.fragments.push(path);
        }
        if !more.is_empty() {
            variant.key = format!(
                "{}-{:08x}",
                variant.name,
                hash(&(&variant.key, contents)) as u32
            );
        }
        Ok(variant)
    }

    fn own(house: &House, name: &str) -> Result<Variant> {
        if !NAMES.contains(&name) {
            return Err(LabError::Usage(format!(
                "{name}: no such variant (known are {}, and the path of a series file)",
                NAMES.join(", ")
            ))
            .into());
        }
        let keeps = |patch: &Patch| match name {
            "pristine" => false,
            "vanilla" => patch.is_lab_only(),
            "tollfree-off" => !patch.is_lab_only(),
            _ => true,
        };
        let fragments: &[&str] = match name {
            "tollfree" => &["lab.config", "tollfree.config"],
            "tollfree-debug" => &["lab.config", "tollfree.config", "debug.config"],
            _ => &["lab.config"],
        };
        // With the lab-only seams goes what they call.
        let overlays: &[&str] = match name {
            "pristine" => &[],
            "tollfree-off" => &["tree"],
            "vanilla" => &["lab"],
            _ => &["tree", "lab"],
        };
        let patches = series::read(&house.kernel.join("seams/series"))?;
        Ok(Variant {
            name: name.to_owned(),
            release: name.to_owned(),
            key: name.to_owned(),
            overlays: overlays.iter().map(|it| house.kernel.join(it)).collect(),
            patches: patches.into_iter().filter(keeps).collect(),
            is_foreign: false,
            fragments: fragments
                .iter()
                .map(|it| house.kernel.join("config").join(it))
                .collect(),
        })
    }

    /// Somebody's own queue over vanilla. His patches come first: they are made for the bare source.
    fn foreign(house: &House, path: &Path) -> Result<Variant> {
        let path = path
            .canonicalize()
            .with_context(|| path.display().to_string())?;
        let series = if path.is_dir() {
            path.join("series")
        } else {
            path
        };
        let vanilla = Variant::own(house, "vanilla")?;
        let mut patches = series::read(&series)?;
        patches.extend(vanilla.patches);
        let name = folder_name(&series);
        Ok(Variant {
            key: format!("{name}-{:08x}", hash(&series) as u32),
            release: name.clone(),
            name,
            patches,
            is_foreign: true,
            ..vanilla
        })
    }
}

/// The folder of a series file, as a name that `uname -r` may end with.
fn folder_name(series: &Path) -> String {
    let folder = series
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = folder
        .to_string_lossy()
        .chars()
        .map(plain)
        .take(30)
        .collect();
    if name.is_empty() {
        "queue".to_owned()
    } else {
        name
    }
}

/// A number for names in the cache. Another compiler may make another one: then it is built again.
pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
