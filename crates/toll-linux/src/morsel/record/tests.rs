// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const IDENTITY: Identity = Identity {
    device: 1,
    inode: 2,
    size: 3,
    seconds: 4,
    nanoseconds: 5,
    changed_seconds: 6,
    changed_nanoseconds: 7,
    sum: 8,
};

#[test]
fn records_keep_the_end_of_long_paths() {
    let digest = "d".repeat(64);
    let back = |path: &str| {
        let name = record_name(&IDENTITY, &digest, Path::new(path));
        assert!(name.len() <= NAME_MAX, "{name:?}");
        let (identity, is, source) = parse(&name).unwrap();
        assert_eq!((identity, is), (IDENTITY, digest.clone()));
        assert!(is_source(&source, Path::new(path)));
        assert!(!is_source(&source, Path::new("/models/other")));
        source.into_string().unwrap()
    };
    assert_eq!(back("/models/50%=x"), "/models/50%=x");
    let long = back(&format!("/{}/model", "%/".repeat(200)));
    assert!(
        long.starts_with("...") && long.ends_with("%//model"),
        "{long}"
    );
}

#[test]
fn the_longest_identity_fits() {
    let identity = Identity {
        device: u64::MAX,
        inode: u64::MAX,
        size: u64::MAX,
        seconds: -1,
        nanoseconds: u32::MAX,
        changed_seconds: -1,
        changed_nanoseconds: u32::MAX,
        sum: u64::MAX,
    };
    let name = record_name(&identity, &"d".repeat(64), Path::new("/models/model"));
    assert_eq!(parse(&name).unwrap().2, "/models/model");
}

#[test]
fn keys_say_nothing_and_differ() {
    let other = Identity {
        changed_nanoseconds: 8,
        ..IDENTITY
    };
    assert_eq!(key(&IDENTITY).len(), 64);
    assert_ne!(key(&IDENTITY), key(&other));
}
