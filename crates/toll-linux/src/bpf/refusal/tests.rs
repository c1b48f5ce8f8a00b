// SPDX-License-Identifier: MIT OR Apache-2.0

use std::os::unix::fs::symlink;

use toll_testkit::Directory;

use super::*;

fn root(machine: &Directory) -> Root {
    Root::at(machine.as_path())
}

/// A status file of this process with these capabilities.
fn status(machine: &Directory, capabilities: u64) {
    let text = format!("Name:\tx\nTgid:\t1\nCapEff:\t{capabilities:016x}\n");
    machine.write(format!("proc/{}/status", std::process::id()), text);
}

fn refused(machine: &Directory, code: i32) -> Missing {
    of(&root(machine), &io::Error::from_raw_os_error(code))
}

#[test]
fn what_is_not_permitted_names_what_is_lacking() {
    let machine = Directory::empty();
    status(&machine, 1 << CAP_BPF);
    let fix = refused(&machine, libc::EPERM).fix.unwrap();
    assert!(fix.contains("CAP_BPF and CAP_PERFMON"), "{fix}");
    status(&machine, 1 << CAP_BPF | 1 << CAP_PERFMON);
    let reason = refused(&machine, libc::EPERM).reason;
    assert!(reason.contains("seccomp"), "{reason}");
    status(&machine, 1 << CAP_SYS_ADMIN);
    machine.write(
        "sys/kernel/security/lockdown",
        "[none] integrity confidentiality\n",
    );
    assert!(refused(&machine, libc::EPERM).reason.contains("seccomp"));
    machine.write(
        "sys/kernel/security/lockdown",
        "none integrity [confidentiality]\n",
    );
    let reason = refused(&machine, libc::EACCES).reason;
    assert!(reason.ends_with("lockdown (confidentiality)"), "{reason}");
}

/// Once the maps are there, the system call is not blocked.
#[test]
fn a_function_without_tracing_is_not_a_lack_of_permission() {
    let machine = Directory::empty();
    let error = io::Error::from_raw_os_error(libc::EPERM);
    let reason = || of_program(&root(&machine), &error).reason;
    assert!(reason().contains("not permitted"), "{}", reason());
    status(&machine, 1 << CAP_SYS_ADMIN);
    assert!(reason().contains("at its functions"), "{}", reason());
    machine.write("sys/kernel/security/lockdown", "none [integrity]\n");
    assert!(reason().contains("lockdown"), "{}", reason());
}

#[test]
fn other_refusals_have_a_reason() {
    let machine = Directory::empty();
    let reason = |code| refused(&machine, code).reason;
    assert!(reason(libc::ENOSYS).contains("not in this kernel"));
    assert!(reason(NOT_SUPPORTED).contains("cannot run programs"));
    assert!(reason(libc::EMFILE).contains("open files"));
    assert!(reason(libc::ENOMEM).contains("memory"));
    assert!(reason(libc::EIO).starts_with("BPF: "));
    let text = of(&root(&machine), &*Box::<dyn Error>::from("odd\nmore"));
    assert_eq!(text.reason, "BPF: odd");
}

/// The number is found behind errors that wrap it.
#[test]
fn a_wrapped_error_has_the_number_of_its_cause() {
    let cause = io::Error::from_raw_os_error(libc::ENOSYS);
    let error = MapError::IoError(cause);
    assert_eq!(code(&error), Some(libc::ENOSYS));
    let outer = aya::EbpfError::MapError(error);
    assert_eq!(code(&outer), Some(libc::ENOSYS));
    let cause = io::Error::from_raw_os_error(libc::EPERM);
    assert_eq!(code(&ProgramError::IOError(cause)), Some(libc::EPERM));
}

#[test]
fn fixtures_and_other_pid_namespaces_are_foreseen() {
    let machine = Directory::with(&[("proc/self/ns/user", "")]);
    let reason = foreseen(&root(&machine)).unwrap().reason;
    assert!(reason.contains("running machine"), "{reason}");
    let link = machine.path("proc/self/ns/pid");
    symlink("pid:[4026531836]", &link).unwrap();
    assert_eq!(other_ids(&root(&machine)), None);
    std::fs::remove_file(&link).unwrap();
    symlink("pid:[4026532200]", &link).unwrap();
    let missing = other_ids(&root(&machine)).unwrap();
    assert!(missing.fix.unwrap().contains("--pid host"));
}
