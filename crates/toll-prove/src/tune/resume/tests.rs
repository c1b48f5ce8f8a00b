// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_plan_that_was_edited_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plan.toml");
    let fingerprint = text_fingerprint(b"a plan");
    assert!(check_plan(&path, None).is_ok());
    assert!(check_plan(&path, Some(&fingerprint)).is_err());
    fs::write(&path, "a plan").unwrap();
    assert!(check_plan(&path, Some(&fingerprint)).is_ok());
    assert!(check_plan(&path, None).is_err());
    fs::write(&path, "a plan!").unwrap();
    let error = check_plan(&path, Some(&fingerprint)).unwrap_err();
    assert!(error.to_string().contains("plan.toml"), "{error}");
}

#[test]
fn a_fingerprint_tells_words_and_options_apart() {
    let of = |words: &[&str], options: &[Option<&str>]| {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        fingerprint(&words, options)
    };
    let all = [
        of(&["a", "b"], &[None]),
        of(&["ab"], &[None]),
        of(&["a", "b", ""], &[None]),
        of(&["a", "b"], &[Some("")]),
        of(&["a", "b"], &[Some("x")]),
        of(&["a", "b"], &[Some("x"), None]),
        of(&["a", "b"], &[None, Some("x")]),
    ];
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
    assert_eq!(all[0], of(&["a", "b"], &[None]));
}
