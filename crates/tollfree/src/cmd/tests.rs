// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;

use clap::{CommandFactory, builder::PossibleValue};

use super::Cli;

/// Every command with its full name, those within others included.
fn commands(command: &clap::Command, name: &str) -> Vec<(String, clap::Command)> {
    let mut all = vec![(name.to_owned(), command.clone())];
    for sub in command.get_subcommands() {
        let name = format!("{name} {}", sub.get_name());
        all.extend(commands(sub, name.trim_start()));
    }
    all
}

/// How an option looks: its letter and what it takes.
fn look(option: &clap::Arg) -> (Option<char>, Vec<String>, Vec<PossibleValue>) {
    let names = option.get_value_names().unwrap_or_default();
    let takes = names.iter().map(ToString::to_string).collect();
    (option.get_short(), takes, option.get_possible_values())
}

/// An option that several commands have has one letter and one name of its value.
#[test]
fn options_of_one_name_are_spelled_alike() {
    // What is written is named: a plan, a directory, a file.
    // A preset of the TLB is a name, one of costs a file too.
    const DIFFER: [&str; 3] = ["output", "format", "preset"];
    let mut seen: BTreeMap<String, (String, _)> = BTreeMap::new();
    for (command, definition) in commands(&Cli::command(), "") {
        for option in definition.get_arguments() {
            let Some(long) = option.get_long() else {
                continue;
            };
            let mine = (command.clone(), look(option));
            let first = seen.entry(long.to_owned()).or_insert_with(|| mine.clone());
            let alike = mine.1 == first.1 || DIFFER.contains(&long);
            assert!(alike, "--{long}: {mine:?} and {first:?}");
        }
    }
    assert!(seen.len() > 30, "{seen:?}");
}

#[test]
fn every_option_has_help() {
    for (command, definition) in commands(&Cli::command(), "") {
        for option in definition.get_arguments() {
            let hidden = option.is_hide_set() || option.is_positional();
            assert!(hidden || option.get_help().is_some(), "{command}: {option}");
        }
    }
}
