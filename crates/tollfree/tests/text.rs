// SPDX-License-Identifier: MIT OR Apache-2.0
//! Program text in huge pages: under a plan that names it, and not otherwise.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use toll_linux::symbols::build_id;
use toll_model::plan::{Plan, Text};
use toll_testkit::compiler::compile_where_possible;
use toll_testkit::machine::has_huge_pages;
use toll_testkit::output::{stdout, succeeds};
use toll_testkit::{Directory, schema, tool};

/// kB of text in whole regions.
const WHOLE: u64 = 6 << 10;

struct Fixture(Directory);

impl Deref for Fixture {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

impl Fixture {
    /// `None` without huge pages or a suitable compiler.
    fn new(options: &[&str]) -> Option<Fixture> {
        tool::library();
        let fixture = Fixture(Directory::empty());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/text.c");
        let options = [&["-O1", "-pthread", "-Wl,--build-id"], options].concat();
        let linked = fixture.path("linked");
        let built = has_huge_pages() && compile_where_possible(&source, &linked, &options);
        built.then(|| {
            fixture.copy();
            fixture
        })
    }

    /// Copies the linked program page by page: the page cache may hold what was written at once in
    /// large pages.
    fn copy(&self) {
        let content = fs::read(self.path("linked")).unwrap();
        let mut copy = File::create(self.path("text")).unwrap();
        for page in content.chunks(4096) {
            copy.write_all(page).unwrap();
        }
        copy.set_permissions(fs::Permissions::from_mode(0o755))
            .unwrap();
    }

    /// Runs the program as it is.
    fn plain(&self) -> Output {
        Command::new(self.path("text")).output().unwrap()
    }

    /// Runs the program under a plan for the text of a file.
    fn run(&self, path: &Path, build_id: &str) -> Output {
        let plan = Plan::of_text(vec![Text {
            path: path.to_string_lossy().into_owned(),
            build_id: build_id.to_owned(),
            touched_bytes: 6 << 20,
        }]);
        self.write("text.toml", plan.to_toml().unwrap());
        let mut run = self.tollfree(&["run", "--plan", "text.toml", "--", "./text"]);
        let output = run.output().unwrap();
        succeeds(&output);
        output
    }
}

/// kB of huge text in anonymous memory and in the file's pages, and the sum.
fn numbers(output: &Output) -> [u64; 3] {
    let text = stdout(output);
    let words = text.split_whitespace().map(|word| word.parse().unwrap());
    words.collect::<Vec<u64>>().try_into().unwrap()
}

#[test]
fn planned_text_is_huge_and_computes_the_same() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    let program = fixture.path("text");
    let [_, _, plain] = numbers(&fixture.plain());
    let output = fixture.run(&program, &build_id(&program));
    let [anonymous, of_file, sum] = numbers(&output);
    assert_eq!(sum, plain);
    assert!(anonymous + of_file >= WHOLE, "{anonymous} {of_file}");
}

#[test]
fn other_builds_and_other_files_keep_their_pages() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    let program = fixture.path("text");
    let other = "ab".repeat(20);
    assert_eq!(numbers(&fixture.run(&program, &other))[0], 0);
    let unnamed = fixture.run(Path::new("/usr/bin/other"), "");
    assert_eq!(numbers(&unnamed)[0], 0);
}

#[test]
fn a_file_without_a_build_id_is_found_by_its_name() {
    let Some(fixture) = Fixture::new(&["-Wl,--build-id=none"]) else {
        return;
    };
    let [anonymous, of_file, _] = numbers(&fixture.run(Path::new("/elsewhere/text"), ""));
    assert!(anonymous + of_file >= WHOLE, "{anonymous} {of_file}");
}

#[test]
fn text_that_the_linker_has_changed_is_left_alone() {
    let Some(fixture) = Fixture::new(&["-DRELOCATED", "-w", "-Wl,-z,notext,--no-warnings"]) else {
        return;
    };
    let program = fixture.path("text");
    assert_eq!(numbers(&fixture.run(&program, &build_id(&program)))[0], 0);
}

#[test]
fn tune_tries_text_beyond_the_reach_of_the_instruction_tlb() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    let mut tune = fixture.tollfree(&["tune", "--json", "--within", "40s", "--cold", "-o", "out"]);
    tune.args(["--any-output", "--", "./text", "700"]);
    let output = tune.output().unwrap();
    succeeds(&output);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    schema::check("tune", &found);
    let kinds = found["kinds"].as_array().unwrap();
    let text = kinds.iter().find(|kind| kind["pages"] == "text-2m");
    let text = text.unwrap();
    assert_eq!(text["tried"], true, "{found}");
    let variants = found["upper_bound"]["variants"].as_array().unwrap();
    let variant = variants.iter().find(|variant| variant["name"] == "text");
    assert_eq!(variant.unwrap()["pages"][0], "text-2m");
    let plan = Plan::from_toml(fs::read(fixture.path("out/text.toml")).unwrap()).unwrap();
    assert!(plan.text[0].path.ends_with("/text"), "{:?}", plan.text);
}
