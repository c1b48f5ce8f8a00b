// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patch queues in quilt format: a `series` file with one patch per line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::error::LabError;
use crate::files;

/// A patch and the files that it touches.
#[derive(Debug, Clone)]
pub struct Patch {
    pub path: PathBuf,
    /// Paths in the tree that the patch changes, creates, deletes or renames.
    pub files: BTreeSet<PathBuf>,
}

impl Patch {
    fn read(path: PathBuf) -> Result<Patch> {
        let content = files::read_text(&path)?;
        let files = touched(&content);
        if files.is_empty() {
            return Err(LabError::Input(format!(
                "{}: not a patch: it names no file",
                path.display()
            ))
            .into());
        }
        Ok(Patch { path, files })
    }

    /// Returns the file name of the patch.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether the patch is a seam that only the lab's kernels have (9xx).
    pub fn is_lab_only(&self) -> bool {
        self.name().starts_with('9')
    }

    /// Whether the patch is a seam that only the debug kernel has (95x, 96x). It may change our
    /// new files.
    pub fn is_debug_only(&self) -> bool {
        self.name().starts_with("95") || self.name().starts_with("96")
    }
}

/// Reads the patches of a series file, in order.
///
/// # Errors
/// [`LabError::Input`] names a line with an option that only quilt supports, or a file that is not
/// a patch.
pub fn read(series: &Path) -> Result<Vec<Patch>> {
    let directory = series.parent().unwrap_or(Path::new("."));
    let text = files::read_text(series)?;
    let mut patches = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|name| !name.starts_with('#')) else {
            continue;
        };
        if let Some(option) = words.find(|&word| word != "-p1") {
            return Err(LabError::Input(format!(
                "{}, line {}: {option}: the only supported option is -p1",
                series.display(),
                number + 1
            ))
            .into());
        }
        patches.push(Patch::read(directory.join(name))?);
    }
    Ok(patches)
}

/// Lists the files that a patch names, without their first path component.
fn touched(patch: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    // Remaining lines of the current hunk, of the old and of the new file.
    let mut left = (0, 0);
    for line in patch.lines() {
        if left != (0, 0) {
            left = after(left, line);
        } else if let Some(lengths) = hunk(line) {
            left = lengths;
        } else {
            found.extend(named(line));
        }
    }
    found
}

/// Returns the remaining lines of a hunk after this line.
fn after((old, new): (u64, u64), line: &str) -> (u64, u64) {
    match line.bytes().next() {
        Some(b'-') => (old.saturating_sub(1), new),
        Some(b'+') => (old, new.saturating_sub(1)),
        Some(b'\\') => (old, new),
        _ => (old.saturating_sub(1), new.saturating_sub(1)),
    }
}

/// Returns the number of old and new lines in the hunk that `@@ -1,2 +3,4 @@` starts.
fn hunk(line: &str) -> Option<(u64, u64)> {
    let mut ranges = line.strip_prefix("@@ -")?.splitn(3, ' ');
    let length = |range: &str| match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => Some(1),
    };
    Some((
        length(ranges.next()?)?,
        length(ranges.next()?.strip_prefix('+')?)?,
    ))
}

/// Returns the file that a header line names.
fn named(line: &str) -> Option<PathBuf> {
    let whole = |path: &str| PathBuf::from(path);
    if let Some(path) = line
        .strip_prefix("rename from ")
        .or(line.strip_prefix("rename to "))
    {
        return Some(whole(path));
    }
    let path = line.strip_prefix("--- ").or(line.strip_prefix("+++ "))?;
    let path = path.split('\t').next()?.trim_end();
    let (_, inner) = path.split_once('/')?;
    (path != "/dev/null" && !inner.is_empty()).then(|| whole(inner))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PATCH: &str = "\
Subject: two files

--- a line of the message, no file
---
diff --git a/mm/old.c b/mm/old.c
--- a/mm/old.c\t2026-01-01
+++ b/mm/old.c
@@ -1,3 +1,3 @@
 x
--- a/not/a/file
+++ b/not/either
 y
@@ -9 +9 @@ int f(void)
-a
+b
diff --git a/mm/new.c b/mm/new.c
--- /dev/null
+++ b/mm/new.c
@@ -0,0 +1 @@
+z
rename from fs/here.c
rename to fs/there.c
";

    #[test]
    fn a_patch_names_its_files_and_no_line_of_a_hunk_is_one() {
        let files: Vec<_> = touched(PATCH).into_iter().collect();
        let expected = ["fs/here.c", "fs/there.c", "mm/new.c", "mm/old.c"].map(PathBuf::from);
        assert_eq!(files, expected);
    }

    #[test]
    fn a_series_may_have_comments_and_p1() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["100-a.patch", "900-b.patch", "950-c.patch"] {
            fs::write(directory.path().join(name), PATCH).unwrap();
        }
        let series = directory.path().join("series");
        let text = "# first\n100-a.patch -p1 # why\n\n900-b.patch\n950-c.patch\n";
        fs::write(&series, text).unwrap();
        let patches = read(&series).unwrap();
        let names: Vec<_> = patches
            .iter()
            .map(|p| (p.name(), p.is_lab_only(), p.is_debug_only()))
            .collect();
        assert_eq!(
            names,
            [
                ("100-a.patch".to_owned(), false, false),
                ("900-b.patch".to_owned(), true, false),
                ("950-c.patch".to_owned(), true, true)
            ]
        );
    }

    #[test]
    fn what_cannot_be_done_is_named_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let series = directory.path().join("series");
        fs::write(directory.path().join("a.patch"), PATCH).unwrap();
        fs::write(&series, "a.patch\na.patch -p0\n").unwrap();
        let error = read(&series).unwrap_err().to_string();
        assert!(error.contains("line 2: -p0"), "{error}");
        fs::write(directory.path().join("a.patch"), "no patch\n").unwrap();
        let error = read(&series).unwrap_err().to_string();
        assert!(
            error.ends_with("a.patch: not a patch: it names no file"),
            "{error}"
        );
        fs::write(&series, "b.patch\n").unwrap();
        assert!(read(&series).unwrap_err().to_string().contains("b.patch"));
    }
}
