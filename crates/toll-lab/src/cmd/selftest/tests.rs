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
    let directory = |option: &str| {
        let words = ["selftest", option].into_iter().filter(|it| !it.is_empty());
        let matches = Args::augment_args(clap::Command::new("selftest")).get_matches_from(words);
        Args::from_arg_matches(&matches)
            .unwrap()
            .directory("tollfree")
    };
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
