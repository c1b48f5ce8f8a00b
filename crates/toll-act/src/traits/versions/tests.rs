// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;

use toll_linux::Root;
use toll_linux::proc;

use super::*;

fn found(program: &str, text: &[u8], files: &[&str]) -> Vec<(String, String)> {
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let versions = versions(Path::new(program), text, &files);
    versions
        .into_iter()
        .map(|(name, version)| (name, version.to_string()))
        .collect()
}

fn one(name: &str, version: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), version.to_owned())]
}

#[test]
fn names_of_files_have_versions() {
    let python = found("/usr/bin/python3.11", b"", &[]);
    assert_eq!(python, one("cpython", "3.11.0"));
    let embedded = found("/usr/bin/blender", b"", &["/usr/lib/libpython3.15.so.1.0"]);
    assert_eq!(embedded, one("cpython", "3.15.0"));
    let linked = found("x", b"", &["/usr/lib/libmimalloc.so.2.0"]);
    assert_eq!(linked, one("mimalloc", "2.0.0"));
    let secure = found("x", b"", &["/usr/lib/libmimalloc-secure.so.2.1"]);
    assert_eq!(secure, one("mimalloc", "2.1.0"));
    assert!(found("python", b"", &["/usr/lib/libmimalloc.so"]).is_empty());
}

#[test]
fn programs_contain_versions() {
    let mut go = b"\xff Go buildinf:\x08\x02".to_vec();
    go.extend([0; 16]);
    go.extend(b"\x08go1.26.8\x05other");
    assert_eq!(found("x", &go, &[]), one("go", "1.26.8"));
    let postgres = b"a PostgreSQL 9.1 upgrade\0PostgreSQL 15.6 (Debian 15.6-0) on x86_64-linux\0";
    assert_eq!(
        found("/usr/bin/postgres", postgres, &[]),
        one("postgres", "15.6.0")
    );
    assert!(found("/usr/bin/psql", postgres, &[]).is_empty());
    let mimalloc = b"\0allow_large_os_pages\0";
    assert_eq!(found("x", mimalloc, &[]), one("mimalloc", "2.1.0"));
}

#[test]
fn a_package_has_its_version_beside_its_libraries() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("torch/lib/libtorch_cpu.so");
    let text = "from typing import Optional\n__version__ = '2.2.1+cpu'\ndebug = False\n";
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    fs::write(directory.path().join("torch/version.py"), text).unwrap();
    let got = found("x", b"", &[library.to_str().unwrap()]);
    assert_eq!(got, one("pytorch", "2.2.1"));
}

#[test]
fn the_c_library_that_is_mapped_here_has_the_version_that_it_states() {
    let maps = proc::maps(&Root::system(), std::process::id()).unwrap();
    let files = super::super::mapped_files(&maps);
    // SAFETY: it returns a static string.
    let stated = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    let expected: Version = stated.to_str().unwrap().parse().unwrap();
    assert_eq!(glibc(&files), Some(expected));
}
