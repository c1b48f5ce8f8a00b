// SPDX-License-Identifier: MIT OR Apache-2.0
//! From Debian's source, our files and our patches to kernels that boot.
//!
//! Below `tollfree/lab` in the cache, by version of the source package:
//! `source/VERSION` as it was unpacked, `tree/VERSION/VARIANT` with files and
//! patches applied, and in its folder `build` what make wrote. (There make names
//! all files by relative paths, so that what one variant compiled the compiler's
//! cache has for the others.)

mod checkpatch;
mod config;
mod equal;
mod make;
mod modules;
mod series;
mod source;
mod tree;
mod variant;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
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
    /// In an order in which they can be loaded.
    pub modules: Vec<PathBuf>,
    pub config: PathBuf,
    /// How long it took; `None` if nothing had changed.
    pub seconds: Option<f64>,
}

/// Where one variant is made.
struct Workshop {
    source: Source,
    tree: Tree,
    make: Make,
    /// Says of what the kernel is made.
    stamp: String,
    _lock: File,
}

impl Workshop {
    fn new(house: &House, variant: &Variant) -> Result<Workshop> {
        let source = Source::unpacked(house)?;
        let folder = house
            .cache
            .join("tree")
            .join(&source.version)
            .join(&variant.key);
        let lock = files::lock(&files::with_suffix(&folder, ".lock"))?;
        let tree = Tree::synced(&source, variant, &folder)?;
        let make = Make::new(&tree.folder, variant, &house.cache.join("ccache"))?;
        let stamp = make.stamp(&source.version, variant, &tree)?;
        Ok(Workshop {
            source,
            tree,
            make,
            stamp,
            _lock: lock,
        })
    }
}

/// Builds a variant that was built before as if a file of it had changed; the seconds that takes.
pub fn rebuild(house: &House, variant: &Variant, file: &Path) -> Result<f64> {
    let workshop = Workshop::new(house, variant)?;
    let path = workshop.tree.folder.join(file);
    let mut content = files::read_text(&path)?;
    // Nothing that the compiler's cache knows.
    let new = std::process::id();
    content += &format!("static const int toll_lab_touched __maybe_unused = {new};\n");
    files::write(&path, content.as_bytes())?;
    let began = Instant::now();
    let built = workshop.make.image(&workshop.stamp);
    let seconds = began.elapsed().as_secs_f64();
    built.map(|()| seconds)
}

/// What checkpatch, the compiler with all its warnings, and sparse say of our own files, a line
/// each; what is not installed is not asked.
pub fn lint(house: &House) -> Result<Vec<String>> {
    let variant = Variant::find(house, "tollfree-debug", &[])?;
    build(house, &variant)?;
    let workshop = Workshop::new(house, &variant)?;
    let mut found = checkpatch::complaints(house, &workshop.source.folder, &variant)?;
    let is_ours = |path: &&PathBuf| !workshop.source.folder.join(path).exists();
    let ours: BTreeSet<&PathBuf> = workshop.tree.changed.keys().filter(is_ours).collect();
    let folders: BTreeSet<String> = ours
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "c"))
        .filter_map(|path| target(path))
        .filter(|folder| !folder.starts_with("tools/"))
        .collect();
    let targets: Vec<&str> = folders.iter().map(String::as_str).collect();
    let warnings = workshop.make.warnings(&targets)?;
    // Stock files of the same folders have warnings of their own.
    found.extend(warnings.into_iter().filter(|line| {
        let path = line.split(':').next().unwrap_or_default();
        ours.contains(&PathBuf::from(path.trim_start_matches("../")))
    }));
    Ok(found)
}

/// What make is asked for to build the objects of a file's folder.
fn target(path: &Path) -> Option<String> {
    Some(format!("{}/", path.parent()?.display()))
}

/// Folders with objects of which a variant changes a file that Debian's source has.
///
/// # Errors
/// What making the variant's tree can fail with.
pub fn touched(house: &House, variant: &Variant) -> Result<BTreeSet<String>> {
    let workshop = Workshop::new(house, variant)?;
    let stock = &workshop.source.folder;
    let changed = workshop.tree.changed.keys();
    Ok(changed
        .filter(|path| stock.join(path).exists() && !path.starts_with("include"))
        .filter_map(|path| target(path))
        .filter(|folder| folder != "/")
        .collect())
}

/// Builds the objects of some folders and no kernel; where they are.
///
/// # Errors
/// What building can fail with.
pub fn objects(house: &House, variant: &Variant, folders: &BTreeSet<String>) -> Result<PathBuf> {
    let Workshop { make, _lock, .. } = Workshop::new(house, variant)?;
    config::configure(&make, variant)?;
    let targets: Vec<&str> = folders.iter().map(String::as_str).collect();
    make.run(&targets, "building")?;
    Ok(make.build)
}

/// Builds a variant, as far as that was not done before.
pub fn build(house: &House, variant: &Variant) -> Result<Built> {
    let began = Instant::now();
    let Workshop {
        source,
        tree,
        make,
        stamp,
        _lock,
    } = Workshop::new(house, variant)?;
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
        modules: make.modules()?,
        config: make.config_path(),
        seconds: is_new.then(|| began.elapsed().as_secs_f64()),
    })
}
