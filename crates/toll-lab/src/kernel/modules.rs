// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of a kernel in loading order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::files;

/// A module file and the names of its direct dependencies.
#[derive(Debug)]
struct Module {
    file: PathBuf,
    needs: Vec<String>,
}

/// Returns the modules that make lists, one per line, each after its dependencies.
///
/// # Errors
/// If modpost's output for a module is missing or names no dependencies.
pub fn loading_order(build: &Path, listed: &str) -> Result<Vec<PathBuf>> {
    let mut all = BTreeMap::new();
    for line in listed.lines() {
        let file = build.join(line).with_extension("ko");
        let written = file.with_extension("mod.c");
        let needs = needs(&files::read_text(&written)?)
            .with_context(|| format!("{}: names no dependencies", written.display()))?;
        all.insert(name(&file), Module { file, needs });
    }
    let mut ordered = Vec::new();
    while let Some(first) = all.keys().next().cloned() {
        take(&mut all, &first, &mut ordered);
    }
    Ok(ordered)
}

/// Moves a module behind its dependencies.
fn take(all: &mut BTreeMap<String, Module>, name: &str, ordered: &mut Vec<PathBuf>) {
    if let Some(module) = all.remove(name) {
        for needed in &module.needs {
            take(all, needed, ordered);
        }
        ordered.push(module.file);
    }
}

fn name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Parses the dependency line of a `.mod.c` file, which modpost writes for modprobe.
fn needs(text: &str) -> Option<Vec<String>> {
    let names = text
        .lines()
        .find_map(|line| line.strip_prefix("MODULE_INFO(depends, \""))?
        .strip_suffix("\");")?;
    let names = names.split(',').filter(|name| !name.is_empty());
    Some(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_is_loaded_before_it() {
        let build = tempfile::tempdir().unwrap();
        let mut listed = String::new();
        for (name, needs) in [
            ("fs/nfsd/nfsd", "sunrpc,lockd"),
            ("fs/lockd/lockd", "sunrpc,grace"),
            ("fs/nfs_common/grace", ""),
            ("net/sunrpc/sunrpc", ""),
        ] {
            let text =
                format!("#include <linux/module.h>\n\nMODULE_INFO(depends, \"{needs}\");\n\n");
            let file = build.path().join(format!("{name}.mod.c"));
            files::write(&file, text.as_bytes()).unwrap();
            listed += &format!("{name}.o\n");
        }
        let order = loading_order(build.path(), &listed).unwrap();
        let files: Vec<String> = order.iter().map(|file| name(file)).collect();
        assert_eq!(files, ["grace", "sunrpc", "lockd", "nfsd"]);
        assert!(order[3].ends_with("fs/nfsd/nfsd.ko"));
    }

    #[test]
    fn a_module_of_which_nothing_is_known_is_an_error() {
        let build = tempfile::tempdir().unwrap();
        assert!(loading_order(build.path(), "fs/a.o\n").is_err());
        files::write(&build.path().join("fs/a.mod.c"), b"\n").unwrap();
        let error = loading_order(build.path(), "fs/a.o\n").unwrap_err();
        assert!(error.to_string().contains("fs/a.mod.c"), "{error}");
    }
}
