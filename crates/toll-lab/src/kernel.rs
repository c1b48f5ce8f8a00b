// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds bootable kernels from Debian's source, our files and our patches.
//!
//! Directories below `tollfree/lab` in the cache, by version of the source package:
//! `source/VERSION` is the unpacked source, `tree/VERSION/VARIANT` is the source with files and
//! patches applied, and its subdirectory `build` is make's output. (From there make uses relative
//! paths for all files, so that variants share the compiler cache.)

mod checkpatch;
mod config;
mod copy;
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
use crate::workspace::Workspace;

pub use equal::differences;
use make::Make;
use source::Source;
use tree::Tree;
pub use variant::{NAMES, Variant};

/// A kernel that was built, now or in an earlier call.
#[derive(Debug, Serialize)]
pub struct Built {
    pub variant: String,
    /// Release, as printed by `uname -r`.
    pub release: String,
    /// Version of Debian's source package.
    pub source: String,
    /// File names of the patches, in order.
    pub patches: Vec<String>,
    /// Source tree of the build.
    pub tree: PathBuf,
    pub image: PathBuf,
    /// Modules in loading order.
    pub modules: Vec<PathBuf>,
    pub config: PathBuf,
    /// Build time; `None` if nothing had changed.
    pub seconds: Option<f64>,
}

impl Built {
    /// Whether the kernel has the patch queue, switched on.
    pub fn is_patched(&self) -> bool {
        self.variant.starts_with("tollfree") && self.variant != "tollfree-off"
    }
}

/// Directories of one variant.
struct Workshop {
    source: Source,
    tree: Tree,
    make: Make,
    /// Describes the inputs of the kernel.
    stamp: String,
    _lock: File,
}

impl Workshop {
    fn new(workspace: &Workspace, variant: &Variant) -> Result<Workshop> {
        let source = Source::unpacked(workspace)?;
        let trees = workspace.cache.join("tree").join(&source.version);
        let directory = trees.join(&variant.key);
        let lock = files::lock(&files::with_suffix(&directory, ".lock"))?;
        if let Some(base) = &variant.base {
            copy::tree_with_build(&trees.join(base), &directory)?;
        }
        let tree = Tree::synced(&source, variant, &directory)?;
        let make = Make::new(&tree.directory, variant, &workspace.cache.join("ccache"))?;
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

/// Rebuilds a variant as after a change to one of its files; returns the seconds that takes.
pub fn rebuild(workspace: &Workspace, variant: &Variant, file: &Path) -> Result<f64> {
    let workshop = Workshop::new(workspace, variant)?;
    let path = workshop.tree.directory.join(file);
    let mut content = files::read_text(&path)?;
    // Unique content, so that the compiler cache has no entry for it.
    let new = std::process::id();
    content += &format!("static const int toll_lab_touched __maybe_unused = {new};\n");
    files::write(&path, content.as_bytes())?;
    let began = Instant::now();
    let built = workshop.make.image(&workshop.stamp);
    let seconds = began.elapsed().as_secs_f64();
    built.map(|()| seconds)
}

/// Returns the messages of checkpatch, of the compiler with extra warnings, and of sparse about our
/// own files, one per line. Tools that are not installed are skipped.
pub fn lint(workspace: &Workspace) -> Result<Vec<String>> {
    let variant = Variant::find(workspace, "tollfree-debug", &[])?;
    build(workspace, &variant)?;
    let workshop = Workshop::new(workspace, &variant)?;
    let mut found = checkpatch::complaints(workspace, &workshop.source.directory, &variant)?;
    let ours = new_files(&workshop);
    let targets = own_targets(&workshop, &ours);
    // An object that is up to date would give no warning again.
    for path in &ours {
        files::remove(&workshop.make.build.join(object(path)))?;
    }
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let warnings = workshop.make.warnings(&targets)?;
    // Drop warnings about stock headers.
    found.extend(warnings.into_iter().filter(|line| {
        let path = line.split(':').next().unwrap_or_default();
        ours.contains(Path::new(path.trim_start_matches("../")))
    }));
    Ok(found)
}

/// Lists the files of a tree that Debian's source does not have.
fn new_files(workshop: &Workshop) -> BTreeSet<&Path> {
    let stock = &workshop.source.directory;
    let changed = workshop.tree.changed.keys().map(PathBuf::as_path);
    changed.filter(|path| !stock.join(path).exists()).collect()
}

/// Lists the make targets for the objects of our own files: their directories, or the objects alone
/// where the directory is one of Debian's source.
fn own_targets(workshop: &Workshop, ours: &BTreeSet<&Path>) -> BTreeSet<String> {
    let stock = &workshop.source.directory;
    let compiled = ours
        .iter()
        .filter(|path| is_c(path) && !path.starts_with("tools"));
    compiled
        .filter_map(|path| match stock.join(path.parent()?).is_dir() {
            true => Some(object(path)),
            false => directory(path),
        })
        .collect()
}

fn is_c(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "c")
}

/// Returns the make target for a file's object.
fn object(path: &Path) -> String {
    path.with_extension("o").display().to_string()
}

/// Returns the make target for the objects of a file's directory.
fn directory(path: &Path) -> Option<String> {
    Some(format!("{}/", path.parent()?.display()))
}

/// Lists the make targets for the objects near a variant's changes of Debian's source: those of the
/// directory of a changed file, and in `fs` and `kernel`, which have hundreds below them, of the
/// file alone. The headers that the queue changes are used mostly in `mm`, which is among them.
///
/// # Errors
/// Errors of creating the variant's tree.
pub fn touched(workspace: &Workspace, variant: &Variant) -> Result<BTreeSet<String>> {
    let workshop = Workshop::new(workspace, variant)?;
    let stock = &workshop.source.directory;
    let changed = workshop.tree.changed.keys();
    Ok(changed
        .filter(|path| stock.join(path).exists() && is_c(path))
        .filter_map(|path| match path.parent()?.to_str()? {
            "fs" | "kernel" => Some(object(path)),
            _ => directory(path),
        })
        .collect())
}

/// Builds only some objects, given as make targets, and returns the build directory.
///
/// # Errors
/// Build errors.
pub fn objects(
    workspace: &Workspace,
    variant: &Variant,
    targets: &BTreeSet<String>,
) -> Result<PathBuf> {
    let Workshop { make, _lock, .. } = Workshop::new(workspace, variant)?;
    config::configure(&make, variant)?;
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    make.run(&targets, "building")?;
    Ok(make.build)
}

/// Builds a variant, unless it is up to date.
pub fn build(workspace: &Workspace, variant: &Variant) -> Result<Built> {
    let began = Instant::now();
    let Workshop {
        source,
        tree,
        make,
        stamp,
        _lock,
    } = Workshop::new(workspace, variant)?;
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
        tree: tree.directory.clone(),
        image: make.image_path(),
        modules: make.modules()?,
        config: make.config_path(),
        seconds: is_new.then(|| began.elapsed().as_secs_f64()),
    })
}
