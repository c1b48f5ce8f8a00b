// SPDX-License-Identifier: MIT OR Apache-2.0
//! A variant's source tree: hard links to Debian's source, and copies of what the variant changes.
//!
//! make compares modification times only, so a file with the right content is never touched, and a
//! file that reverts to the original is written again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::series::Patch;
use super::source::Source;
use super::variant::Variant;
use crate::error::LabError;
use crate::{files, output};

/// Expected content of a file; `None`: the file must not exist.
type Content = Option<Vec<u8>>;

/// A source tree with a variant's files and patches.
#[derive(Debug)]
pub struct Tree {
    pub directory: PathBuf,
    /// Every file that differs from Debian's source.
    pub changed: BTreeMap<PathBuf, Content>,
}

impl Tree {
    /// Makes `directory` the tree of a variant.
    ///
    /// # Errors
    /// [`LabError::Input`] names a patch that does not apply, an overlay file that exists in
    /// Debian's source, or a file that one of our patches creates.
    pub fn synced(source: &Source, variant: &Variant, directory: &Path) -> Result<Tree> {
        let changed = changes(source, variant)?;
        if !directory.is_dir() {
            link(&source.directory, directory)?;
        }
        let list = files::with_suffix(directory, ".changed");
        let before = listed(&list)?;
        let now: BTreeSet<PathBuf> = changed.keys().cloned().collect();
        // Recorded before they are written: after an interruption the next call knows every file
        // that may differ.
        write_list(&list, before.union(&now))?;
        for path in before.union(&now) {
            let wanted = match changed.get(path) {
                Some(content) => content.clone(),
                None => files::read(&source.directory.join(path))?,
            };
            set(&directory.join(path), wanted.as_deref())?;
        }
        write_list(&list, now.iter())?;
        Ok(Tree {
            directory: directory.to_owned(),
            changed,
        })
    }
}

fn link(source: &Path, directory: &Path) -> Result<()> {
    let _bar = output::progress("linking a source tree");
    let part = files::with_suffix(directory, ".part");
    files::empty_directory(&part)?;
    files::link_tree(source, &part)?;
    fs::rename(&part, directory).with_context(|| directory.display().to_string())
}

fn listed(list: &Path) -> Result<BTreeSet<PathBuf>> {
    let text = files::read(list)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().map(PathBuf::from).collect())
}

fn write_list<'a>(list: &Path, paths: impl Iterator<Item = &'a PathBuf>) -> Result<()> {
    let text: String = paths.map(|path| format!("{}\n", path.display())).collect();
    files::write(list, text.as_bytes())
}

/// Writes a file, unless it has this content.
fn set(path: &Path, wanted: Option<&[u8]>) -> Result<()> {
    let is = files::read(path)?;
    match wanted {
        _ if is.as_deref() == wanted => Ok(()),
        Some(content) => {
            let mode = fs::metadata(path).map(|meta| meta.permissions());
            files::write(path, content)?;
            match mode {
                Ok(mode) => {
                    fs::set_permissions(path, mode).with_context(|| path.display().to_string())
                }
                Err(_) => Ok(()),
            }
        }
        None => fs::remove_file(path).with_context(|| path.display().to_string()),
    }
}

/// Computes every file in which a variant's tree differs from the source.
fn changes(source: &Source, variant: &Variant) -> Result<BTreeMap<PathBuf, Content>> {
    let mut changed = overlaid(source, variant)?;
    let patched = patched(source, variant, &changed)?;
    changed.extend(patched);
    Ok(changed)
}

fn overlaid(source: &Source, variant: &Variant) -> Result<BTreeMap<PathBuf, Content>> {
    let mut found = BTreeMap::new();
    for overlay in &variant.overlays {
        for path in files::below(overlay)? {
            let content = new_file(source, overlay, &path)?;
            found.insert(path, Some(content));
        }
    }
    Ok(found)
}

/// Returns the content of a file that Debian's source does not have.
fn new_file(source: &Source, overlay: &Path, path: &Path) -> Result<Vec<u8>> {
    let ours = overlay.join(path);
    if source.directory.join(path).exists() {
        let why = "exists in Linux: a new file must not replace one (use a seam patch)";
        return Err(LabError::Input(format!("{}: {why}", ours.display())).into());
    }
    fs::read(&ours).with_context(|| ours.display().to_string())
}

/// Applies the patches to copies of the files that they touch: of Debian's source, and, by
/// debug-only seams, of our new files.
fn patched(
    source: &Source,
    variant: &Variant,
    new: &BTreeMap<PathBuf, Content>,
) -> Result<BTreeMap<PathBuf, Content>> {
    let stage = tempfile::tempdir()?;
    let touched: BTreeSet<&PathBuf> = variant.patches.iter().flat_map(|p| &p.files).collect();
    for path in &touched {
        let content = match new.get(*path) {
            Some(content) => content.clone(),
            None => files::read(&source.directory.join(path))?,
        };
        if let Some(content) = content {
            files::write(&stage.path().join(path), &content)?;
        } else if !variant.is_foreign {
            return Err(LabError::Input(format!(
                "{}: is not in Linux {}: a seam patch must not create files",
                path.display(),
                source.version
            ))
            .into());
        }
    }
    for patch in &variant.patches {
        apply(patch, stage.path(), &source.version)?;
    }
    let read = |path: &PathBuf| Ok((path.clone(), files::read(&stage.path().join(path))?));
    touched.into_iter().map(read).collect()
}

fn apply(patch: &Patch, stage: &Path, version: &str) -> Result<()> {
    let output = Command::new("patch")
        .args(["-p1", "-F0", "--force", "--forward", "--remove-empty-files"])
        .args(["--no-backup-if-mismatch", "--reject-file=-", "--silent"])
        .arg("--directory")
        .arg(stage)
        .arg("--input")
        .arg(&patch.path)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| LabError::Missing(format!("patch(1): {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LabError::Input(format!(
        "{}: does not apply to Linux {version}:\n{}",
        patch.path.display(),
        String::from_utf8_lossy(&output.stdout).trim_end()
    ))
    .into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::super::series;
    use super::*;
    use crate::workspace::Workspace;

    /// A source of two files, and a queue in `seams/`.
    struct Fixture {
        directory: tempfile::TempDir,
        source: Source,
    }

    impl Fixture {
        fn new() -> Fixture {
            let directory = tempfile::tempdir().unwrap();
            let source = Source {
                version: "6.12.1-1".to_owned(),
                directory: directory.path().join("source"),
            };
            files::write(&source.directory.join("mm/a.c"), b"one\ntwo\nthree\n").unwrap();
            files::write(&source.directory.join("mm/b.c"), b"b\n").unwrap();
            Fixture { directory, source }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn variant(&self, patches: &[(&str, &str)], is_foreign: bool) -> Variant {
            let mut names = String::new();
            for (name, content) in patches {
                files::write(&self.path("seams").join(name), content.as_bytes()).unwrap();
                names += &format!("{name}\n");
            }
            files::write(&self.path("seams/series"), names.as_bytes()).unwrap();
            let overlay = self.path("overlay");
            Variant {
                name: "v".to_owned(),
                release: String::new(),
                key: "v".to_owned(),
                base: None,
                overlays: overlay.is_dir().then_some(overlay).into_iter().collect(),
                patches: series::read(&self.path("seams/series")).unwrap(),
                is_foreign,
                fragments: Vec::new(),
            }
        }

        fn sync(&self, variant: &Variant) -> Result<Tree> {
            Tree::synced(&self.source, variant, &self.path("tree"))
        }

        fn text(&self, name: &str) -> String {
            String::from_utf8(files::read(&self.path(name)).unwrap().unwrap()).unwrap()
        }

        fn stamp(&self, name: &str) -> (u64, i64, i64) {
            let meta = fs::metadata(self.path(name)).unwrap();
            (meta.ino(), meta.mtime(), meta.mtime_nsec())
        }
    }

    const TWO: &str = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
    const THREE: &str = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,3 +1,3 @@\n one\n TWO\n-three\n+THREE\n";

    #[test]
    fn patches_apply_in_turn_and_the_source_stays_as_it_is() {
        let fixture = Fixture::new();
        let tree = fixture.sync(&fixture.variant(&[("1.patch", TWO), ("2.patch", THREE)], false));
        assert_eq!(tree.unwrap().changed.len(), 1);
        assert_eq!(fixture.text("tree/mm/a.c"), "one\nTWO\nTHREE\n");
        assert_eq!(fixture.text("source/mm/a.c"), "one\ntwo\nthree\n");
        assert_eq!(fixture.text("tree/mm/b.c"), "b\n");
    }

    #[test]
    fn what_is_right_is_not_touched_and_what_goes_back_is_written_anew() {
        let fixture = Fixture::new();
        let variant = fixture.variant(&[("1.patch", TWO)], false);
        fixture.sync(&variant).unwrap();
        let first = fixture.stamp("tree/mm/a.c");
        fixture.sync(&variant).unwrap();
        assert_eq!(fixture.stamp("tree/mm/a.c"), first);
        fixture.sync(&fixture.variant(&[], false)).unwrap();
        assert_eq!(fixture.text("tree/mm/a.c"), "one\ntwo\nthree\n");
        assert_ne!(fixture.stamp("tree/mm/a.c"), fixture.stamp("source/mm/a.c"));
    }

    #[test]
    fn new_files_come_and_go() {
        let fixture = Fixture::new();
        files::write(&fixture.path("overlay/mm/tollfree/x.c"), b"x\n").unwrap();
        fixture.sync(&fixture.variant(&[], false)).unwrap();
        assert_eq!(fixture.text("tree/mm/tollfree/x.c"), "x\n");
        fs::remove_dir_all(fixture.path("overlay")).unwrap();
        fixture.sync(&fixture.variant(&[], false)).unwrap();
        assert!(!fixture.path("tree/mm/tollfree/x.c").exists());
    }

    #[test]
    fn what_was_cut_short_is_mended() {
        let fixture = Fixture::new();
        fixture.sync(&fixture.variant(&[], false)).unwrap();
        // Simulates a run that was killed after it had recorded and written mm/b.c.
        files::write(&fixture.path("tree.changed"), b"mm/b.c\n").unwrap();
        files::write(&fixture.path("tree/mm/b.c"), b"half\n").unwrap();
        fixture.sync(&fixture.variant(&[], false)).unwrap();
        assert_eq!(fixture.text("tree/mm/b.c"), "b\n");
    }

    #[test]
    fn debug_only_seams_apply_to_our_new_files() {
        let fixture = Fixture::new();
        let workspace = Workspace::find().unwrap();
        let mut variant = Variant::find(&workspace, "tollfree-debug", &[]).unwrap();
        variant.patches.retain(Patch::is_debug_only);
        // The fixture's Linux lacks the files that published bugs (96x) are planted in.
        let is_ours = |path: &PathBuf| workspace.kernel.join("tree").join(path).exists();
        variant.patches.retain(|it| it.files.iter().all(is_ours));
        let others = variant.patches.iter();
        assert!(others.filter(|it| it.name().starts_with("95")).count() >= 6);
        fixture.sync(&variant).unwrap();
        let file = "fs/morsel/seal.c";
        let ours = files::read_text(&workspace.kernel.join("tree").join(file)).unwrap();
        assert!(!ours.contains("planted"));
        assert!(fixture.text(&format!("tree/{file}")).contains("planted"));
    }

    #[test]
    fn a_patch_that_does_not_apply_is_named_with_the_version() {
        let fixture = Fixture::new();
        let error = fixture.sync(&fixture.variant(&[("2.patch", THREE)], false));
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("2.patch: does not apply to Linux 6.12.1-1"),
            "{error}"
        );
        assert!(!fixture.path("tree").exists());
    }

    #[test]
    fn one_that_needs_fuzz_does_not_apply() {
        let fixture = Fixture::new();
        let fuzzy = TWO.replace(" three", " THREE");
        assert!(
            fixture
                .sync(&fixture.variant(&[("1.patch", &fuzzy)], false))
                .is_err()
        );
    }

    #[test]
    fn ours_create_no_file_and_replace_none_but_others_may() {
        const NEW: &str = "--- /dev/null\n+++ b/mm/n.c\n@@ -0,0 +1 @@\n+n\n";
        const GONE: &str = "--- a/mm/b.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n";
        let fixture = Fixture::new();
        let error = fixture.sync(&fixture.variant(&[("1.patch", NEW)], false));
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("mm/n.c: is not in Linux")
        );
        fixture
            .sync(&fixture.variant(&[("1.patch", NEW), ("2.patch", GONE)], true))
            .unwrap();
        assert_eq!(fixture.text("tree/mm/n.c"), "n\n");
        assert!(!fixture.path("tree/mm/b.c").exists());
        files::write(&fixture.path("overlay/mm/a.c"), b"mine\n").unwrap();
        let error = fixture
            .sync(&fixture.variant(&[], false))
            .unwrap_err()
            .to_string();
        assert!(error.contains("mm/a.c: exists in Linux"), "{error}");
    }
}
