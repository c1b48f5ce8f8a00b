// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::HashSet;
use std::path::Path;

use clap::{FromArgMatches, ValueEnum};

use super::*;

#[test]
fn the_kernel_has_what_the_file_system_needs() {
    let workspace = Workspace::find().unwrap();
    for fs in FileSystem::value_variants() {
        // Built in, or a module: all modules are loaded.
        let symbol = format!("CONFIG_{}_FS=", fs.name().to_uppercase());
        let mut fragments = vec![workspace.kernel.join("config/lab.config")];
        fragments.extend(fs.fragments(&workspace));
        let texts = fragments.iter().map(|it| files::read_text(it).unwrap());
        let text: String = texts.collect();
        let mut values = text.lines().filter_map(|line| line.strip_prefix(&symbol));
        let last = values.next_back().unwrap_or("n");
        assert!(["y", "m"].contains(&last), "{symbol}{last}");
    }
}

/// Parses options; empty ones are left out.
fn parsed(options: &[&str]) -> Args {
    let words = ["selftest"]
        .iter()
        .chain(options)
        .filter(|it| !it.is_empty());
    let matches = Args::augment_args(clap::Command::new("selftest")).get_matches_from(words);
    Args::from_arg_matches(&matches).unwrap()
}

#[test]
fn programs_are_named_and_tests_of_one_of_them() {
    let programs: Vec<Program> = ["econ", "luf", "luf_stress"]
        .map(|name| Program {
            host: PathBuf::new(),
            guest: format!("/test/{name}"),
        })
        .into();
    let asked = |options: &[&str]| {
        let args = parsed(options);
        let checked = args.check_names(&programs);
        let named = programs.iter().filter(|it| args.asks_for(it)).map(name);
        checked.map(|()| named.map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(asked(&[]).unwrap().len(), 3);
    assert_eq!(asked(&["--only=econ,luf"]).unwrap(), ["econ", "luf"]);
    assert_eq!(asked(&["--stress=60"]).unwrap(), ["luf_stress"]);
    assert_eq!(asked(&["--only=luf", "--", "a_test"]).unwrap(), ["luf"]);
    let error = asked(&["--only=econ,lfu"]).unwrap_err().to_string();
    assert!(
        error.contains("lfu") && error.contains("luf_stress"),
        "{error}"
    );
    assert!(asked(&["--only=econ,luf", "--", "a_test"]).is_err());
}

#[test]
fn guests_that_differ_have_directories_of_their_own() {
    let shapes = [
        "",
        "--icount",
        "--pti",
        "--la57",
        "--nodes=2",
        "--cpus=4",
        "--memory=2048",
        "--fs=xfs",
    ];
    let directory = |option: &str| parsed(&[option]).directory("tollfree");
    let names: HashSet<String> = shapes.into_iter().map(directory).collect();
    assert_eq!(names.len(), shapes.len(), "{names:?}");
}

#[test]
fn code_may_change_where_one_thread_runs_all_cpus() {
    let program = Program {
        host: PathBuf::new(),
        guest: "/test/luf".to_owned(),
    };
    let minute = ["60".to_owned()];
    assert_eq!(job(&program, &[], &[]).command, ["/test/luf"]);
    assert_eq!(job(&program, &[], &minute).command, ["/test/luf", "60"]);
    let fixed = job(&program, &[CODE_IS_FIXED], &[]);
    assert_eq!(fixed.name, "luf");
    assert!(
        fixed
            .command
            .join(" ")
            .contains("env TOLLFREE_CODE_IS_FIXED=1 /test/luf")
    );
}

#[test]
fn the_directory_is_on_the_file_system_that_is_asked_for() {
    let ready = FileSystem::Xfs.make_ready(&[]);
    assert!(ready.starts_with("mkdir"));
    assert!(ready.contains("mkfs.xfs -q /dev/vda && mount -t xfs /dev/vda /data"));
}

#[test]
fn modules_are_loaded_before_anything_is_mounted() {
    let modules = ["fs/exportfs/exportfs.ko", "fs/xfs/xfs.ko"].map(|it| module(Path::new(it)));
    let ready = FileSystem::Xfs.make_ready(&modules);
    let load = "insmod /lib/modules/exportfs.ko && insmod /lib/modules/xfs.ko && mkdir";
    assert!(ready.starts_with(load), "{ready}");
}
