// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice to real processes. The target is this test program itself, started again with
//! `TOLL_TARGET` in its environment.

use std::env;
use std::io::Write;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use toll_linux::proc::smaps;
use toll_linux::remote::{Advice, Reach, RemoteError, RemoteProcess};
use toll_linux::{Root, proc};
use toll_model::REGION;
use toll_testkit::process::{self, Running, TARGET, kill, wait_until};

/// Regions that the target maps and touches.
const REGIONS: u64 = 8;

struct Target {
    running: Running,
    /// Start of its touched memory, region-aligned.
    base: u64,
}

impl Target {
    /// Starts a target of this kind; its memory is in 4 KiB pages.
    fn start(kind: &str) -> Target {
        let mut running = Running::start(process::target(kind).stdin(Stdio::piped()));
        let base = running.answer("base ").parse().unwrap();
        Target { running, base }
    }

    fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Returns the bytes in huge pages between base and the end of the last region.
    fn huge(&self) -> u64 {
        let all = smaps(&Root::system(), self.pid()).unwrap();
        let inside = |start: u64| (self.base..self.base + REGIONS * REGION).contains(&start);
        all.iter()
            .filter(|smap| inside(smap.mapping.start) || inside(smap.mapping.end - 1))
            .map(|smap| smap.anon_huge)
            .sum()
    }

    /// Lets the target check itself and end; returns its report and status.
    fn finish(mut self) -> (String, ExitStatus) {
        let input = self.running.child.stdin.as_mut().unwrap();
        input.write_all(b"end\n").unwrap();
        let report = self.running.answer("report ");
        (report, self.running.child.wait().unwrap())
    }
}

toll_testkit::before_main!(target);

/// Becomes the target, if requested: the stopped thread is the main thread of a process, and the
/// harness runs tests in others.
fn target() {
    match env::var(TARGET).as_deref() {
        Ok("quiet") => quiet_target(),
        Ok("busy") => busy_target(true),
        Ok("signalled") => busy_target(false),
        _ => {}
    }
}

/// Maps and touches memory in 4 KiB pages.
fn touched_memory() -> *mut u8 {
    // SAFETY: a new mapping, longer than the part that is used.
    unsafe {
        let length = ((REGIONS + 1) * REGION) as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mapped = libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        // 4 KiB pages under any policy, without a flag by which khugepaged would find them.
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        let base = mapped.cast::<u8>();
        let base = base.add(base.align_offset(REGION as usize));
        for page in 0..(REGIONS * REGION / 4096) as usize {
            base.add(page * 4096).write_volatile(page as u8);
        }
        libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0);
        base
    }
}

fn contents_are_whole(base: *const u8) -> bool {
    (0..(REGIONS * REGION / 4096) as usize)
        // SAFETY: inside the memory of `touched_memory`, which is never unmapped.
        .all(|page| unsafe { base.add(page * 4096).read_volatile() } == page as u8)
}

fn wait_for_end() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

/// Sleeps in a read until told to end.
fn quiet_target() {
    let base = touched_memory();
    println!("base {}", base as u64);
    wait_for_end();
    println!("report whole={}", contents_are_whole(base));
    std::process::exit(7);
}

/// Sum of the values that came with signals.
static RECEIVED: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes the siginfo of a queued signal, which has a value.
    let value = unsafe { (*info).si_value().sival_ptr };
    RECEIVED.fetch_add(value as u64, Relaxed);
}

/// Computes, and sleeps and polls unless signals would interrupt that, in the thread that is
/// stopped.
fn busy_target(sleeps: bool) {
    let base = touched_memory();
    let done = Arc::new(AtomicBool::new(false));
    let watcher = std::thread::spawn({
        let done = done.clone();
        move || {
            wait_for_end();
            done.store(true, Relaxed);
        }
    });
    // SAFETY: plain calls; the handler is async-signal-safe.
    unsafe {
        let first_thread = libc::getpid() == libc::gettid();
        assert!(
            first_thread,
            "the harness runs a single test in the first thread"
        );
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGRTMIN(), &raw const action, std::ptr::null_mut());
    }
    println!("base {}", base as u64);
    let (mut interrupted, mut wrong) = (0u64, 0u64);
    let (mut sum, mut expected) = (1.0f64, 1.0f64);
    while !done.load(Relaxed) {
        for total in [&mut sum, &mut expected] {
            (1..2000u32).for_each(|step| *total += 1.0 / f64::from(std::hint::black_box(step)));
        }
        wrong += u64::from(sum.to_bits() != expected.to_bits());
        if sleeps {
            interrupted += interrupted_sleeps();
        }
    }
    watcher.join().unwrap();
    let (whole, received) = (contents_are_whole(base), RECEIVED.load(Relaxed));
    println!("report whole={whole} wrong={wrong} interrupted={interrupted} received={received}");
    std::process::exit(9);
}

/// Sleeps in two calls that the kernel restarts in two ways; returns the number of wrong sleeps.
fn interrupted_sleeps() -> u64 {
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: 300_000,
    };
    // SAFETY: no memory but `pause` is passed.
    unsafe {
        let slept = libc::nanosleep(&raw const pause, std::ptr::null_mut());
        let polled = libc::poll(std::ptr::null_mut(), 0, 1);
        u64::from(slept != 0) + u64::from(polled != 0)
    }
}

fn remote(target: &Target) -> RemoteProcess {
    RemoteProcess::for_pid(target.pid(), true).expect("own children may be advised")
}

#[test]
fn collapses_and_splits_by_whichever_way_is_open() {
    let target = Target::start("quiet");
    let remote = remote(&target);
    assert_eq!(target.huge(), 0);
    remote.collapse(target.base, REGION).unwrap();
    assert_eq!(target.huge(), REGION);
    // A page with an elevated reference count cannot be split.
    let split = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        toll_linux::remote::drain();
        remote.split(target.base).unwrap();
        target.huge() == 0
    });
    assert!(split);
    let (report, status) = target.finish();
    assert_eq!(report, "whole=true");
    assert_eq!(status.code(), Some(7));
}

#[test]
fn ptrace_collapses_and_leaves_the_target_running() {
    let target = Target::start("quiet");
    let remote = remote(&target).by_ptrace().unwrap();
    assert_eq!(remote.reach(), Reach::Ptrace);
    for region in 0..REGIONS {
        remote
            .collapse(target.base + region * REGION, REGION)
            .unwrap();
    }
    assert_eq!(target.huge(), REGIONS * REGION);
    let status = proc::status(&Root::system(), target.pid()).unwrap();
    assert_eq!(status.tracer, 0);
    assert!(!matches!(status.state, 'T' | 't'));
    let (report, status) = target.finish();
    assert_eq!(report, "whole=true");
    assert_eq!(status.code(), Some(7));
}

#[test]
fn five_hundred_stops_change_nothing_that_the_target_computes() {
    let target = Target::start("busy");
    let remote = remote(&target).by_ptrace().unwrap();
    let mut given = 0;
    for round in 0..500 {
        let advice = if round % 2 == 0 {
            Advice::NoHuge
        } else {
            Advice::Huge
        };
        match remote.advise(target.base, REGIONS * REGION, advice) {
            Ok(()) => given += 1,
            Err(error) => assert!(error.try_again(), "{error}"),
        }
    }
    assert!(given > 400, "{given} of 500");
    let (report, status) = target.finish();
    assert_eq!(report, "whole=true wrong=0 interrupted=0 received=0");
    assert_eq!(status.code(), Some(9));
}

#[test]
fn signals_that_arrive_meanwhile_are_all_delivered() {
    let target = Target::start("signalled");
    let remote = remote(&target).by_ptrace().unwrap();
    let pid = target.pid() as i32;
    let sender = std::thread::spawn(move || {
        for value in 1..=1000usize {
            let value = libc::sigval {
                sival_ptr: value as *mut libc::c_void,
            };
            // SAFETY: our own child, which handles this signal.
            assert_eq!(unsafe { libc::sigqueue(pid, libc::SIGRTMIN(), value) }, 0);
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    while !sender.is_finished() {
        let result = remote.advise(target.base, REGION, Advice::Huge);
        result.expect("the collapse is possible");
    }
    sender.join().unwrap();
    let (report, _) = target.finish();
    assert_eq!(report, "whole=true wrong=0 interrupted=0 received=500500");
}

#[test]
fn what_is_not_there_yet_can_be_told_from_what_is_gone() {
    let target = Target::start("quiet");
    for remote in [remote(&target), remote(&target).by_ptrace().unwrap()] {
        // Not mapped.
        let error = remote.collapse(0x10_0000_0000, REGION).unwrap_err();
        assert!(error.try_again(), "{error}");
    }
    let remote = remote(&target);
    let by_ptrace = RemoteProcess::for_pid(target.pid(), true)
        .unwrap()
        .by_ptrace()
        .unwrap();
    let base = target.base;
    assert!(target.finish().1.code().is_some());
    assert!(matches!(
        remote.collapse(base, REGION),
        Err(RemoteError::Gone)
    ));
    assert!(matches!(
        by_ptrace.collapse(base, REGION),
        Err(RemoteError::Gone)
    ));
}

#[test]
fn a_stopped_target_stays_stopped_and_is_tried_again() {
    let target = Target::start("quiet");
    let remote = remote(&target).by_ptrace().unwrap();
    kill(target.pid(), libc::SIGSTOP);
    let state = || proc::stat(&Root::system(), target.pid()).unwrap().state;
    wait_until("the stop", || state() == 'T');
    assert!(
        remote
            .collapse(target.base, REGION)
            .unwrap_err()
            .try_again()
    );
    assert_eq!(state(), 'T');
    kill(target.pid(), libc::SIGCONT);
    wait_until("its continuation", || state() != 'T');
    remote.collapse(target.base, REGION).unwrap();
    assert_eq!(target.finish().1.code(), Some(7));
}

/// Starts a child with this process id, which sleeps until it is killed; `None` if the id cannot be
/// chosen.
fn child_with_id(pid: u32) -> Option<i32> {
    /// The first fields of the kernel's struct clone_args, up to set_tid_size.
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
    }
    let id = pid as libc::pid_t;
    let arguments = Arguments {
        exit_signal: libc::SIGCHLD as u64,
        set_tid: (&raw const id) as u64,
        set_tid_size: 1,
        ..Arguments::default()
    };
    // SAFETY: as fork; the child makes only system calls and never returns.
    unsafe {
        let size = size_of::<Arguments>();
        match libc::syscall(libc::SYS_clone3, &raw const arguments, size) {
            0 => loop {
                libc::syscall(libc::SYS_pause);
            },
            child if child > 0 => Some(child as i32),
            _ => None,
        }
    }
}

#[test]
fn a_process_that_got_the_id_of_another_is_left_alone() {
    let target = Target::start("quiet");
    let remote = remote(&target).by_ptrace().unwrap();
    let (pid, base) = (target.pid(), target.base);
    target.finish();
    let Some(child) = child_with_id(pid) else {
        eprintln!("skipped: the id of a process cannot be chosen here");
        return;
    };
    // Nothing is mapped there: a process that was reached would return that error.
    let advised = remote.advise(base & 0xfff, 4096, Advice::Huge);
    // SAFETY: our own child.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    assert!(matches!(advised, Err(RemoteError::Gone)), "{advised:?}");
}
