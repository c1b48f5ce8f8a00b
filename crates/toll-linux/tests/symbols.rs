// SPDX-License-Identifier: MIT OR Apache-2.0
//! Symbols of programs built with the machine's own compilers. A machine without a compiler still
//! runs the tests on this program and on damaged files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use toll_linux::symbols::{Symbolizer, build_id, function_range, is_x86_64, loader, needed};

const SOURCE: &str = "\
#include <cstdlib>
#include <memory>
#include <vector>
namespace shop {
struct Shelf { std::vector<char> goods; };
__attribute__((noinline)) Shelf *fill(std::size_t n) {
    auto *shelf = new Shelf;
    shelf->goods.resize(n);
    return shelf;
}
}
int main(int argc, char **) { return shop::fill(argc << 20)->goods[5]; }
";

/// Compiles the source with these options; `None` without a C++ compiler.
fn compiled(directory: &TempDir, options: &[&str]) -> Option<PathBuf> {
    let (source, program) = (
        directory.path().join("shop.cc"),
        directory.path().join("shop"),
    );
    fs::write(&source, SOURCE).unwrap();
    let compiler = Command::new("c++")
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status();
    match compiler {
        Ok(status) => {
            assert!(status.success());
            Some(program)
        }
        Err(_) => None,
    }
}

#[test]
fn a_function_is_found_by_name_and_named_by_offset() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(&directory, &["-g", "-O1", "-Wl,--build-id"]) else {
        return;
    };
    assert_eq!(build_id(&program).len(), 40);
    let (start, end) = function_range(&program, "shop::fill(unsigned long)").unwrap();
    assert_eq!(
        function_range(&program, "_ZN4shop4fillEm"),
        Some((start, end))
    );
    assert!(start < end);
    let mut symbolizer = Symbolizer::new();
    // Every return address inside it, including the one at its end.
    for offset in [start + 1, (start + end) / 2, end] {
        let symbol = symbolizer.symbolize(&program, offset);
        assert_eq!(symbol.name.as_deref(), Some("shop::fill(unsigned long)"));
        assert_eq!(symbol.function, Some((start, end)));
        let source = symbol.source.unwrap();
        let (file, line) = source.split_once(':').unwrap();
        assert_eq!(
            file, "shop.cc",
            "the caller in the program, not a header of the library"
        );
        assert!((5..=10).contains(&line.parse::<u32>().unwrap()), "{source}");
    }
    assert_ne!(
        symbolizer.symbolize(&program, start).function,
        Some((start, end))
    );
    assert_eq!(function_range(&program, "shop::empty()"), None);
}

#[test]
fn a_stripped_program_has_an_id_and_no_lines() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(&directory, &["-s", "-O1", "-Wl,--build-id"]) else {
        return;
    };
    assert_eq!(build_id(&program).len(), 40);
    let symbol = Symbolizer::new().symbolize(&program, 0x1200);
    assert_eq!(symbol.source, None);
    assert_eq!(function_range(&program, "main"), None);
}

/// A stripped library keeps its exported names: a static function is named relative to the one
/// before.
#[test]
fn a_place_without_a_symbol_is_named_by_the_one_before_it() {
    const LIBRARY: &str = "\
int hidden(int) __attribute__((noinline, visibility(\"hidden\")));
extern \"C\" __attribute__((noinline)) int shown(int a) { return hidden(a) * 7; }
int hidden(int a) { for (int i = 0; i < a; i++) a ^= i * a; return a; }
";
    let directory = tempfile::tempdir().unwrap();
    let (source, library) = (
        directory.path().join("x.cc"),
        directory.path().join("libx.so"),
    );
    fs::write(&source, LIBRARY).unwrap();
    let options = ["-shared", "-fPIC", "-O1", "-s", "-fno-toplevel-reorder"];
    let mut compiler = Command::new("c++");
    let status = compiler
        .args(options)
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .status();
    if status.is_err() {
        return;
    }
    let (start, end) = function_range(&library, "shown").unwrap();
    let mut symbolizer = Symbolizer::new();
    let inside = symbolizer.symbolize(&library, end);
    assert_eq!(inside.name.as_deref(), Some("shown"));
    assert_eq!(inside.nearest, None);
    let behind = symbolizer.symbolize(&library, end + 16);
    assert_eq!((behind.name, behind.function), (None, None));
    assert_eq!(
        behind.nearest,
        Some(format!("shown+{:#x}", end + 16 - start))
    );
    assert_eq!(
        symbolizer.symbolize(&library, 1 << 40).nearest,
        None,
        "too far"
    );
}

mod shelf {
    /// A function to find: not inlined, named in a module, with all code from this file.
    #[inline(never)]
    pub fn fill(goods: &[u8; 3]) -> u8 {
        goods[0] ^ goods[2]
    }
}

#[test]
fn rust_names_are_demangled() {
    let own = std::env::current_exe().unwrap();
    assert_eq!(shelf::fill(std::hint::black_box(&[1, 2, 3])), 2);
    let path = "symbols::shelf::fill";
    let (start, _) = function_range(&own, path).expect("this function is in this program");
    let symbol = Symbolizer::new().symbolize(&own, start + 1);
    assert_eq!(symbol.name.as_deref(), Some(path));
    assert!(symbol.source.unwrap().starts_with("symbols.rs:"));
}

#[test]
fn a_program_names_its_libraries() {
    let own = std::env::current_exe().unwrap();
    let names = needed(&own);
    assert!(names.iter().any(|name| name == "libc.so.6"), "{names:?}");
    assert!(needed(Path::new("/nowhere")).is_empty());
}

#[test]
fn a_program_names_its_loader() {
    let own = std::env::current_exe().unwrap();
    assert_eq!(is_x86_64(&own), Some(true));
    let found = loader(&own).expect("tests are linked dynamically");
    assert!(found.is_absolute() && found.exists(), "{found:?}");
    // The loader itself has no loader.
    assert_eq!((is_x86_64(&found), loader(&found)), (Some(true), None));
    assert_eq!(
        (
            is_x86_64(Path::new("/nowhere")),
            loader(Path::new("/nowhere"))
        ),
        (None, None)
    );
}

#[test]
fn damaged_and_foreign_files_have_no_names() {
    let directory = tempfile::tempdir().unwrap();
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    let path = directory.path().join("file");
    let mut cases = vec![
        Vec::new(),
        b"\x7fELF".to_vec(),
        vec![0xff; 4096],
        own[..own.len() / 2].to_vec(),
    ];
    // Overwrite each part of the first KiB, which contains the headers.
    for place in (4..1024).step_by(60) {
        let mut garbled = own[..own.len().min(1 << 20)].to_vec();
        garbled[place..place + 8].fill(0xff);
        cases.push(garbled);
    }
    for bytes in cases {
        fs::write(&path, &bytes).unwrap();
        let _ = build_id(&path);
        let _ = needed(&path);
        let _ = (is_x86_64(&path), loader(&path));
        let _ = function_range(&path, "main");
        let _ = Symbolizer::new().symbolize(&path, 0x1000);
    }
    fs::write(&path, b"#!/bin/sh\n").unwrap();
    assert_eq!(build_id(&path), "");
    assert_eq!((is_x86_64(&path), loader(&path)), (None, None));
    assert_eq!(Symbolizer::new().symbolize(&path, 7), Default::default());
    assert_eq!(build_id(Path::new("/nonexistent")), "");
}
