// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

/// A predictable temporary name may be a symlink to a file that must not be overwritten.
#[test]
fn links_with_guessed_names_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let path = directory.path().join("costs.json");
    let guessed = path.with_extension(format!("{}.tmp", std::process::id()));
    std::os::unix::fs::symlink(&victim, &guessed).unwrap();
    store(&path, &crate::calibrate::default_costs()).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    let left: Vec<_> = fs::read_dir(&directory).unwrap().flatten().collect();
    assert_eq!(left.len(), 3, "{left:?}");
}
