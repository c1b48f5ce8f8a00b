// SPDX-License-Identifier: MIT OR Apache-2.0
//! From Debian's source, our files and our patches to kernels that boot.
//!
//! Below `tollfree/lab` in the cache, by version of the source package:
//! `source/VERSION` as it was unpacked, `tree/VERSION/VARIANT` with files and
//! patches applied, `build/VERSION/VARIANT` what make wrote.

mod config;
mod equal;
mod make;
mod series;
mod source;
mod tree;
mod variant;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::files;
use crate::house::House;

pub use equal::differences;
use make::Make;
use source::Source;
use tree::Tree;
pub use variant::Variant;

/// A kernel that was built, now or before.
#[derive(Debug, Serialize)]
pub struct Built {
    pub variant: String,
    /// What `uname -r` says in it.
    pub release: String,
    /// Version of Debian's source package.
    pub source: String,
    /// File names of the patches, in order.
    pub patches: Vec<String>,
    /// The source tree that it was built from.
    pub tree: PathBuf,
    pub image: PathBuf,
    pub config: PathBuf,
    /// How long it took; `None` if nothing had changed.
    pub seconds: Option<f64>,
}

/// Builds a variant, as far as that was not done before.
pub fn build(house: &House, variant: &Variant) -> Result<Built> {
    let began = Instant::now();
    let source = Source::unpacked(house)?;
    let place = |kind: &str| house.cache.join(kind).join(&source.version);
    let _lock = files::lock(&place("build").join(format!("{}.lock", variant.key)))?;
    let tree = Tree::synced(&source, variant, &place("tree").join(&variant.key))?;
    let make = Make::new(
        &tree.folder,
        &place("build").join(&variant.key),
        &variant.name,
        &house.cache.join("ccache"),
    )?;
    let stamp = make.stamp(&source.version, variant, &tree)?;
    let is_new = !make.is_done(&stamp)?;
    if is_new {
        config::configure(&make, variant)?;
        make.image(&stamp)?;
    }
    Ok(Built {
        variant: variant.name.clone(),
        release: make.release()?,
        source: source.version,
        patches: variant.patches.iter().map(|p| p.name()).collect(),
        tree: tree.folder.clone(),
        image: make.image_path(),
        config: make.build.join(".config"),
        seconds: is_new.then(|| began.elapsed().as_secs_f64()),
    })
}
