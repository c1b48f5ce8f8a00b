// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel variants: source, new files, patches and symbols.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::series::{self, Patch};
use crate::error::LabError;
use crate::files;
use crate::workspace::Workspace;

/// Names of the built-in variants.
pub const NAMES: [&str; 5] = [
    "pristine",
    "vanilla",
    "tollfree",
    "tollfree-off",
    "tollfree-debug",
];

/// A kernel that can be built.
#[derive(Debug)]
pub struct Variant {
    pub name: String,
    /// Suffix of `uname -r`.
    pub release: String,
    /// Names the directories in the cache: variants with the same key share them.
    pub key: String,
    /// Key of the variant that has the same source and fewer fragments: a new build begins as a copy
    /// of its build.
    pub base: Option<String>,
    /// Directories of new files, laid out like a Linux tree.
    pub overlays: Vec<PathBuf>,
    pub patches: Vec<Patch>,
    /// Whether the patches may create and delete files (not allowed in our queue: new files are in
    /// the overlay).
    pub is_foreign: bool,
    /// Fragments of a .config; if two set the same symbol, the later one wins.
    pub fragments: Vec<PathBuf>,
}

impl Variant {
    /// Finds a variant by name, or by the path of a series file, and adds fragments.
    ///
    /// # Errors
    /// [`LabError::Usage`] for an unknown name, and the errors of [`series::read`].
    pub fn find(workspace: &Workspace, name: &str, more: &[PathBuf]) -> Result<Variant> {
        let mut variant = match name.contains('/') || Path::new(name).is_file() {
            true => Variant::foreign(workspace, Path::new(name))?,
            false => Variant::own(workspace, name)?,
        };
        let mut contents = Vec::new();
        for fragment in more {
            let path = std::path::absolute(fragment)?;
            contents.push(files::read_text(&path)?);
            variant.fragments.push(path);
        }
        if !more.is_empty() {
            let key = format!(
                "{}-{:08x}",
                variant.name,
                hash(&(&variant.key, contents)) as u32
            );
            variant.base = Some(std::mem::replace(&mut variant.key, key));
        }
        Ok(variant)
    }

    fn own(workspace: &Workspace, name: &str) -> Result<Variant> {
        if !NAMES.contains(&name) {
            return Err(LabError::Usage(format!(
                "{name}: no such variant (expected {}, or the path of a series file)",
                NAMES.join(", ")
            ))
            .into());
        }
        let keeps = |patch: &Patch| match name {
            "pristine" => false,
            "vanilla" => patch.is_lab_only() && !patch.is_debug_only(),
            "tollfree-off" => !patch.is_lab_only(),
            "tollfree" => !patch.is_debug_only(),
            _ => true,
        };
        let fragments: &[&str] = match name {
            "tollfree" => &["lab.config", "tollfree.config"],
            "tollfree-debug" => &["lab.config", "tollfree.config", "debug.config"],
            _ => &["lab.config"],
        };
        // Lab-only seams call the files of `lab`, debug-only seams those of `debug`.
        let overlays: &[&str] = match name {
            "pristine" => &[],
            "tollfree-off" => &["tree"],
            "vanilla" => &["lab"],
            "tollfree" => &["tree", "lab"],
            _ => &["tree", "lab", "debug"],
        };
        let patches = series::read(&workspace.kernel.join("seams/series"))?;
        Ok(Variant {
            name: name.to_owned(),
            release: name.to_owned(),
            key: name.to_owned(),
            base: None,
            overlays: overlays
                .iter()
                .map(|it| workspace.kernel.join(it))
                .collect(),
            patches: patches.into_iter().filter(keeps).collect(),
            is_foreign: false,
            fragments: fragments
                .iter()
                .map(|it| workspace.kernel.join("config").join(it))
                .collect(),
        })
    }

    /// A user's own queue on top of vanilla. Its patches are applied first: they are made for the
    /// plain source.
    fn foreign(workspace: &Workspace, path: &Path) -> Result<Variant> {
        let path = path
            .canonicalize()
            .with_context(|| path.display().to_string())?;
        let series = if path.is_dir() {
            path.join("series")
        } else {
            path
        };
        let vanilla = Variant::own(workspace, "vanilla")?;
        let mut patches = series::read(&series)?;
        patches.extend(vanilla.patches);
        let name = directory_name(&series);
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

/// Returns the directory name of a series file, as a suffix for `uname -r`.
fn directory_name(series: &Path) -> String {
    let directory = series
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = directory
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

/// Hash for names in the cache. It may change with the compiler; the variant is then built again.
pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_debug_kernel_has_bugs_to_inject() {
        let workspace = Workspace::find().unwrap();
        let debug = workspace.kernel.join("debug");
        for name in NAMES {
            let variant = Variant::find(&workspace, name, &[]).unwrap();
            let is_debug = name == "tollfree-debug";
            let has_seams = variant.patches.iter().any(Patch::is_debug_only);
            assert_eq!(has_seams, is_debug, "{name}");
            assert_eq!(variant.overlays.contains(&debug), is_debug, "{name}");
        }
    }
    #[test]
    fn more_fragments_make_another_variant_that_begins_with_the_first() {
        let workspace = Workspace::find().unwrap();
        let plain = Variant::find(&workspace, "tollfree", &[]).unwrap();
        assert_eq!(plain.base, None);
        let fragment = workspace.kernel.join("config/selftest.config");
        let more = Variant::find(&workspace, "tollfree", &[fragment]).unwrap();
        assert_eq!(more.base.as_deref(), Some(plain.key.as_str()));
        assert_ne!(more.key, plain.key);
    }
}
