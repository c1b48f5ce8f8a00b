// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn it_sees_the_memory_that_a_process_touches() {
    let mut memory = vec![1u8; 32 << 20];
    let mut observer = Observer::default();
    while observer.look.windows < 2 {
        memory
            .iter_mut()
            .step_by(4096)
            .for_each(|byte| *byte = byte.wrapping_add(1));
        observer.tick(std::process::id());
    }
    let look = &observer.look;
    assert!(look.working_set >= 32 << 20, "{look:?}");
    assert!(look.resident >= look.working_set, "{look:?}");
    let libc = observer
        .files
        .iter()
        .find(|file| file.to_string_lossy().contains("/libc.so"));
    assert!(libc.is_some(), "{:?}", observer.files);
    std::hint::black_box(&memory);
}

#[test]
fn a_program_that_ends_within_the_first_window_is_known() {
    let mut observer = Observer::default();
    let mut child = std::process::Command::new("sleep")
        .arg("100")
        .spawn()
        .unwrap();
    observer.tick(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(observer.look().traits.program, "sleep");
}

#[test]
fn the_biggest_may_be_the_child_of_any_thread() {
    let machine = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = machine.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (pid, rss) in [(7, 1000), (9, 5000)] {
        let status = format!(
            "Name:\tx\nState:\tS\nTgid:\t{pid}\nPPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n\
             Gid:\t0\t0\t0\t0\nVmRSS:\t{rss} kB\nThreads:\t1\nCapEff:\t0\nSeccomp:\t0\n"
        );
        write(&format!("proc/{pid}/status"), &status);
    }
    write("proc/7/task/7/children", "");
    write("proc/7/task/8/children", "9 ");
    let root = Root::at(machine.path());
    assert_eq!(biggest(&root, &proc::tree(&root, 7)), Some(9));
}

#[test]
fn a_process_that_is_gone_is_not_an_error() {
    let mut observer = Observer::default();
    let child = std::process::Command::new("true")
        .spawn()
        .unwrap()
        .wait_with_output();
    assert!(child.is_ok());
    // No process has this id: it is above the kernel's maximum.
    assert!(observer.tick(u32::MAX / 2) > Duration::ZERO);
    assert_eq!(observer.look().windows, 0);
}
