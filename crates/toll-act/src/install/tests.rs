// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn the_package_is_that_of_the_distribution_at_hand() {
    let directory = tempfile::tempdir().unwrap();
    let release = directory.path().join("etc/os-release");
    fs::create_dir_all(release.parent().unwrap()).unwrap();
    let root = Root::at(directory.path());
    assert!(qemu_advice(&root).starts_with("install QEMU's user emulation, 6.0 to 11.x"));
    for (text, advice) in [
        (
            "ID=debian\nVERSION_ID=\"12\"\nNAME=\"Debian GNU/Linux\"\n",
            "on Debian GNU/Linux 12: `apt install qemu-user`",
        ),
        (
            "NAME='Debian GNU/Linux'\nVERSION_ID='13'\nID=debian\n",
            "the qemu-user of Debian GNU/Linux 13 has no plugins; in tollfree's sources \
             `setup/setup.sh demo` downloads Debian 12's, which `make install` installs for all",
        ),
        (
            "ID=almalinux\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\nNAME=AlmaLinux\n",
            "on AlmaLinux 9.4: `dnf install qemu-user`, if it is 6.0 to 11.x and has plugins",
        ),
    ] {
        fs::write(&release, text).unwrap();
        assert_eq!(qemu_advice(&root), advice);
    }
}

#[test]
fn the_environment_of_a_build_means_nothing_to_users() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let plugins = root.canonicalize().unwrap().join("plugins/user/build");
    // Cargo sets the variable for this test; the executable may also lie in this checkout.
    let count = |build| {
        let places = places(PLUGINS[0], build);
        places.iter().filter(|place| **place == plugins).count()
    };
    assert_eq!(count(Build::Debug), count(Build::Release) + 1);
}

#[test]
fn only_the_target_directory_of_a_checkout_belongs_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = directory.path().join("crates/toll-preload");
    fs::create_dir_all(&manifest).unwrap();
    fs::write(manifest.join("Cargo.toml"), "").unwrap();
    let root = directory.path();
    let own = |inside: &str| own_checkout(&root.join(inside));
    assert_eq!(own("target/release"), Some(root.to_owned()));
    assert_eq!(
        own("target/x86_64-unknown-linux-gnu/release"),
        Some(root.to_owned())
    );
    assert_eq!(own("usr/local/bin"), None);
}
