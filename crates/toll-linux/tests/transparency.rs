// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ptrace stop is invisible to the program: no system call that it sleeps in returns EINTR, ends
//! before its timeout, or waits forever.
//!
//! The target is this test program itself, started again with `TOLL_TARGET` in its environment. It is
//! single-threaded, so that this thread is stopped.

use std::env;
use std::io::Write;
use std::mem;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use toll_linux::remote::{Advice, RemoteError, RemoteProcess};
use toll_linux::{Root, proc};
use toll_testkit::process::{self, Running, TARGET, kill};

/// Outcome of a waiting call.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Input,
    TimedOut,
    /// Error of the call.
    Failed(i32),
}

/// Duration of a timed call, in milliseconds.
const TIMEOUT_MS: i32 = 40;
/// Tolerance for timeouts that the kernel counts in jiffies (of at most 10 ms).
const JIFFY: Duration = Duration::from_millis(10);

/// A call that waits for input on descriptor 0, or for its timeout.
type Call = Box<dyn FnMut() -> Outcome>;

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Converts the result of a call that returns the number of ready descriptors.
fn ready(result: i64) -> Outcome {
    match result {
        0 => Outcome::TimedOut,
        1.. => Outcome::Input,
        _ => Outcome::Failed(errno()),
    }
}

/// Converts the result of a call that fails with `late` on expiry.
fn or_late(result: i64, late: i32) -> Outcome {
    match result {
        0.. => Outcome::Input,
        _ if errno() == late => Outcome::TimedOut,
        _ => Outcome::Failed(errno()),
    }
}

/// Converts the result of a sleep.
fn slept(result: i64) -> Outcome {
    match result {
        0 => Outcome::TimedOut,
        _ => Outcome::Failed(errno()),
    }
}

fn timespec(milliseconds: i32) -> libc::timespec {
    libc::timespec {
        tv_sec: 0,
        tv_nsec: i64::from(milliseconds) * 1_000_000,
    }
}

fn input() -> libc::pollfd {
    libc::pollfd {
        fd: 0,
        events: libc::POLLIN,
        revents: 0,
    }
}

fn epoll_on_input() -> i32 {
    // SAFETY: plain calls; `event` outlives the call that takes it.
    unsafe {
        let epoll = libc::epoll_create1(0);
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, 0, &raw mut event);
        epoll
    }
}

/// A set that holds descriptor 0.
fn set_of_input() -> libc::fd_set {
    // SAFETY: an empty set is all zeros.
    unsafe {
        let mut set: libc::fd_set = mem::zeroed();
        libc::FD_SET(0, &raw mut set);
        set
    }
}

/// A socket that never receives anything, with a receive timeout.
fn silent_socket(timeout: bool) -> i32 {
    let mut ends = [0; 2];
    // SAFETY: the arrays and the option are valid and have the sizes that are passed.
    unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr());
        if timeout {
            set_receive_timeout(ends[0]);
        }
    }
    ends[0]
}

fn set_receive_timeout(socket: i32) {
    let value = libc::timeval {
        tv_sec: 0,
        tv_usec: i64::from(TIMEOUT_MS) * 1000,
    };
    // SAFETY: `value` is valid and has the size that is passed.
    unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const value).cast(),
            size_of_val(&value) as u32,
        );
    }
}

/// A listening socket without connections.
fn lonely_listener() -> i32 {
    // SAFETY: the address is valid and has the size that is passed.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        let mut address: libc::sockaddr_in = mem::zeroed();
        address.sin_family = libc::AF_INET as u16;
        address.sin_addr.s_addr = u32::from(std::net::Ipv4Addr::LOCALHOST).to_be();
        let length = size_of_val(&address) as u32;
        assert_eq!(libc::bind(socket, (&raw const address).cast(), length), 0);
        assert_eq!(libc::listen(socket, 1), 0);
        set_receive_timeout(socket);
        socket
    }
}

/// A timespec in read-only memory, so that the kernel cannot store the remaining time.
fn read_only_timespec(milliseconds: i32) -> *const libc::timespec {
    // SAFETY: a new mapping, written before it is made read-only.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(ptr::null_mut(), 4096, protection, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<libc::timespec>().write(timespec(milliseconds));
        libc::mprotect(page, 4096, libc::PROT_READ);
        page.cast()
    }
}

/// Calls that wait until there is input.
const ENDLESS: [&str; 10] = [
    "read",
    "recv",
    "poll",
    "ppoll",
    "select",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "readv",
];

/// Calls with a timeout, and whether it is counted in jiffies.
const TIMED: [(&str, bool); 16] = [
    ("poll timed", false),
    ("ppoll timed", false),
    ("select timed", false),
    ("pselect read-only", false),
    ("epoll_wait timed", false),
    ("epoll_pwait timed", false),
    ("epoll_pwait2 timed", false),
    ("nanosleep", false),
    ("clock_nanosleep", false),
    ("futex timed", false),
    ("sigtimedwait", false),
    ("semtimedop", false),
    ("io_getevents", false),
    ("recv timed", true),
    ("read timed", true),
    ("accept timed", true),
];

/// Returns the call with this name.
// SAFETY: all calls below get valid objects of their own, and open descriptors.
fn call(name: &str) -> Call {
    let mut byte = 0u8;
    let place = move || (&raw mut byte).cast::<libc::c_void>();
    unsafe fn raw(number: i64, arguments: [usize; 6]) -> i64 {
        let [a, b, c, d, e, f] = arguments;
        unsafe { libc::syscall(number, a, b, c, d, e, f) }
    }
    match name {
        "read" => {
            let mut place = place;
            Box::new(move || ready(unsafe { libc::read(0, place(), 1) } as i64))
        }
        "readv" => Box::new(move || {
            let mut byte = 0u8;
            let part = libc::iovec {
                iov_base: (&raw mut byte).cast(),
                iov_len: 1,
            };
            ready(unsafe { libc::readv(0, &raw const part, 1) } as i64)
        }),
        "recv" => {
            let mut place = place;
            Box::new(move || ready(unsafe { libc::recv(0, place(), 1, 0) } as i64))
        }
        "poll" | "poll timed" => {
            let timeout = if name == "poll" { -1 } else { TIMEOUT_MS };
            Box::new(move || ready(unsafe { libc::poll(&mut input(), 1, timeout) }.into()))
        }
        "ppoll" | "ppoll timed" => {
            let timed = name == "ppoll timed";
            Box::new(move || {
                let timeout = timespec(TIMEOUT_MS);
                let timeout = if timed {
                    &raw const timeout
                } else {
                    ptr::null()
                };
                ready(unsafe { libc::ppoll(&mut input(), 1, timeout, ptr::null()) }.into())
            })
        }
        "select" | "select timed" => {
            let timed = name == "select timed";
            Box::new(move || {
                let mut set = set_of_input();
                let mut timeout = libc::timeval {
                    tv_sec: 0,
                    tv_usec: i64::from(TIMEOUT_MS) * 1000,
                };
                let timeout = if timed {
                    &raw mut timeout
                } else {
                    ptr::null_mut()
                };
                let none = ptr::null_mut();
                ready(unsafe { libc::select(1, &raw mut set, none, none, timeout) }.into())
            })
        }
        "pselect" | "pselect read-only" => {
            let timeout = match name {
                "pselect" => ptr::null(),
                _ => read_only_timespec(TIMEOUT_MS),
            };
            Box::new(move || {
                let mut set = set_of_input();
                let set = (&raw mut set) as usize;
                // The C library's function would pass a copy.
                let arguments = [1, set, 0, 0, timeout as usize, 0];
                ready(unsafe { raw(libc::SYS_pselect6, arguments) })
            })
        }
        "epoll_wait" | "epoll_wait timed" | "epoll_pwait" | "epoll_pwait timed" => {
            let timeout = if name.ends_with("timed") {
                TIMEOUT_MS
            } else {
                -1
            };
            let number = match name.starts_with("epoll_wait") {
                true => libc::SYS_epoll_wait,
                false => libc::SYS_epoll_pwait,
            };
            let epoll = epoll_on_input();
            Box::new(move || {
                let mut event = libc::epoll_event { events: 0, u64: 0 };
                let event = (&raw mut event) as usize;
                let arguments = [epoll as usize, event, 1, timeout as usize, 0, 8];
                ready(unsafe { raw(number, arguments) })
            })
        }
        "epoll_pwait2" | "epoll_pwait2 timed" => {
            let timed = name == "epoll_pwait2 timed";
            let epoll = epoll_on_input();
            Box::new(move || {
                let mut event = libc::epoll_event { events: 0, u64: 0 };
                let timeout = timespec(TIMEOUT_MS);
                let timeout = if timed {
                    (&raw const timeout) as usize
                } else {
                    0
                };
                let event = (&raw mut event) as usize;
                let arguments = [epoll as usize, event, 1, timeout, 0, 8];
                ready(unsafe { raw(libc::SYS_epoll_pwait2, arguments) })
            })
        }
        "nanosleep" => Box::new(|| {
            slept(unsafe { libc::nanosleep(&timespec(TIMEOUT_MS), ptr::null_mut()) }.into())
        }),
        "clock_nanosleep" => Box::new(|| {
            let mut until = timespec(0);
            let clock = libc::CLOCK_MONOTONIC;
            unsafe { libc::clock_gettime(clock, &raw mut until) };
            until.tv_nsec += i64::from(TIMEOUT_MS) * 1_000_000;
            until.tv_sec += until.tv_nsec / 1_000_000_000;
            until.tv_nsec %= 1_000_000_000;
            let until = (&raw const until) as usize;
            let arguments = [clock as usize, libc::TIMER_ABSTIME as usize, until, 0, 0, 0];
            slept(unsafe { raw(libc::SYS_clock_nanosleep, arguments) })
        }),
        "futex timed" => Box::new(|| {
            let word = 0u32;
            let timeout = timespec(TIMEOUT_MS);
            let (word, timeout) = ((&raw const word) as usize, (&raw const timeout) as usize);
            let wait = libc::FUTEX_WAIT as usize;
            let result = unsafe { raw(libc::SYS_futex, [word, wait, 0, timeout, 0, 0]) };
            or_late(result, libc::ETIMEDOUT)
        }),
        "sigtimedwait" => {
            let wanted = 1u64 << (libc::SIGUSR1 - 1);
            unsafe {
                let mut set: libc::sigset_t = mem::zeroed();
                libc::sigaddset(&raw mut set, libc::SIGUSR1);
                libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
            }
            Box::new(move || {
                let timeout = timespec(TIMEOUT_MS);
                let (set, timeout) = ((&raw const wanted) as usize, (&raw const timeout) as usize);
                let result = unsafe { raw(libc::SYS_rt_sigtimedwait, [set, 0, timeout, 8, 0, 0]) };
                or_late(result, libc::EAGAIN)
            })
        }
        "semtimedop" => {
            let semaphores = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
            assert!(semaphores >= 0);
            AT_END.with(|at_end| at_end.set(Some(semaphores)));
            Box::new(move || {
                let mut down = libc::sembuf {
                    sem_num: 0,
                    sem_op: -1,
                    sem_flg: 0,
                };
                let timeout = timespec(TIMEOUT_MS);
                let (down, timeout) = ((&raw mut down) as usize, (&raw const timeout) as usize);
                let arguments = [semaphores as usize, down, 1, timeout, 0, 0];
                or_late(
                    unsafe { raw(libc::SYS_semtimedop, arguments) },
                    libc::EAGAIN,
                )
            })
        }
        "io_getevents" => {
            let mut context = 0usize;
            let place = (&raw mut context) as usize;
            assert_eq!(
                unsafe { raw(libc::SYS_io_setup, [1, place, 0, 0, 0, 0]) },
                0
            );
            Box::new(move || {
                let mut event = [0u64; 4];
                let timeout = timespec(TIMEOUT_MS);
                let (event, timeout) = (event.as_mut_ptr() as usize, (&raw const timeout) as usize);
                let arguments = [context, 1, 1, event, timeout, 0];
                ready(unsafe { raw(libc::SYS_io_getevents, arguments) })
            })
        }
        "recv timed" => {
            let socket = silent_socket(true);
            let mut place = place;
            Box::new(move || {
                or_late(
                    unsafe { libc::recv(socket, place(), 1, 0) } as i64,
                    libc::EAGAIN,
                )
            })
        }
        "read timed" => {
            let socket = silent_socket(true);
            let mut place = place;
            Box::new(move || {
                or_late(
                    unsafe { libc::read(socket, place(), 1) } as i64,
                    libc::EAGAIN,
                )
            })
        }
        "accept timed" => {
            let socket = lonely_listener();
            Box::new(move || {
                let none = ptr::null_mut();
                or_late(
                    unsafe { libc::accept(socket, none, none.cast()) }.into(),
                    libc::EAGAIN,
                )
            })
        }
        "caught" => {
            catch_signals();
            call("epoll_wait")
        }
        "two threads" => {
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                // SAFETY: no memory is passed.
                sender.send(unsafe { libc::gettid() }).unwrap();
                loop {
                    std::thread::park();
                }
            });
            let mut helper = Some(receiver.recv().unwrap());
            let mut first = call("epoll_wait timed");
            Box::new(move || {
                if let Some(thread) = helper.take() {
                    println!("{thread}");
                }
                first()
            })
        }
        _ => panic!("no call {name}"),
    }
}

std::thread_local! {
    /// Semaphores to remove at the end: they would outlive the process.
    static AT_END: std::cell::Cell<Option<i32>> = const { std::cell::Cell::new(None) };
}

extern "C" fn nothing(_: i32) {}

fn catch_signals() {
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR2, nothing as *const () as usize) };
}

toll_testkit::before_main!(target);

/// Becomes the target, if requested, before the test harness starts its threads.
fn target() {
    if let Ok(name) = env::var(TARGET) {
        waiting_target(&name);
    }
}

/// Calls until there is input; prints a line for each timeout and each signal, and all errors at
/// the end.
fn waiting_target(name: &str) -> ! {
    let mut call = call(name);
    let in_jiffies = TIMED
        .iter()
        .any(|(other, jiffies)| *other == name && *jiffies);
    let least =
        Duration::from_millis(TIMEOUT_MS as u64) - if in_jiffies { JIFFY } else { Duration::ZERO };
    let mut wrong = Vec::new();
    println!("ready");
    loop {
        let began = Instant::now();
        match call() {
            Outcome::Input => break,
            Outcome::Failed(libc::EINTR) if name == "caught" => println!("interrupted"),
            Outcome::TimedOut if began.elapsed() < least => {
                wrong.push(format!("early after {:?}", began.elapsed()));
            }
            Outcome::TimedOut => println!("timeout"),
            outcome => {
                println!("{outcome:?}");
                wrong.push(format!("{outcome:?}"));
            }
        }
        // SAFETY: a valid descriptor set.
        if unsafe { libc::poll(&mut input(), 1, 0) } == 1 {
            break;
        }
    }
    if let Some(semaphores) = AT_END.with(std::cell::Cell::get) {
        // SAFETY: our own semaphores.
        unsafe { libc::semctl(semaphores, 0, libc::IPC_RMID) };
    }
    println!("report {wrong:?}");
    std::process::exit(0);
}

/// Whether a process sleeps in a system call.
fn sleeps(pid: u32) -> bool {
    proc::stat(&Root::system(), pid).unwrap().state == 'S'
}

struct Target {
    running: Running,
    input: UnixStream,
}

impl Target {
    fn start(call: &str) -> Target {
        let (input, theirs) = UnixStream::pair().unwrap();
        let mut command = process::target(call);
        let mut running = Running::start(command.stdin(Stdio::from(OwnedFd::from(theirs))));
        assert_eq!(running.line(), "ready");
        Target { running, input }
    }

    fn pid(&self) -> u32 {
        self.running.pid()
    }

    fn line(&mut self) -> String {
        self.running.line()
    }

    /// Waits until it sleeps in a system call.
    fn wait_until_asleep(&self) {
        while !sleeps(self.pid()) {
            std::thread::yield_now();
        }
    }

    fn remote(&self) -> RemoteProcess {
        let remote = RemoteProcess::for_pid(self.pid(), true).unwrap();
        remote.by_ptrace().unwrap()
    }

    /// Ends the target; returns its errors.
    fn finish(mut self) -> String {
        self.input.write_all(b"e").unwrap();
        let report = self.running.answer("report ");
        assert_eq!(self.running.child.wait().unwrap().code(), Some(0));
        report
    }
}

/// One stop.
fn stop(remote: &RemoteProcess) {
    // Nothing is mapped there: the injected call fails, ptrace does not.
    let error = remote
        .advise(0x10_0000_0000, 4096, Advice::Huge)
        .unwrap_err();
    assert!(
        error.try_again() && !matches!(error, RemoteError::NotPermitted(_)),
        "{error}"
    );
}

fn stop_thirty_times(call: &str) -> String {
    let target = Target::start(call);
    let remote = target.remote();
    for _ in 0..30 {
        target.wait_until_asleep();
        stop(&remote);
    }
    target.finish()
}

#[test]
fn no_call_is_seen_to_be_interrupted() {
    let timed = TIMED.iter().map(|(name, _)| *name);
    let wrong: Vec<String> = ENDLESS
        .into_iter()
        .chain(timed)
        .map(|name| (name, stop_thirty_times(name)))
        .filter(|(_, report)| report != "[]")
        .map(|(name, report)| format!("{name}: {report}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Stops the target whenever it sleeps. Each stop takes a few microseconds at least, so that the
/// stops outlast any timeout here many times, independent of the machine's speed.
fn stop_while(pid: u32, remote: &RemoteProcess, stopping: &AtomicBool) {
    for _ in 0..200_000 {
        while stopping.load(Relaxed) && !sleeps(pid) {
            std::thread::yield_now();
        }
        if !stopping.load(Relaxed) {
            return;
        }
        stop(remote);
    }
    panic!("timeouts do not expire during repeated stops");
}

/// A call that restarts at each stop must still reach its timeout.
#[test]
fn timeouts_pass_while_stops_go_on() {
    for (name, _) in TIMED {
        if name == "pselect read-only" {
            // Waits for its whole timeout after each stop.
            continue;
        }
        let mut target = Target::start(name);
        let remote = target.remote();
        let pid = target.pid();
        let stopping = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| stop_while(pid, &remote, &stopping));
            for _ in 0..3 {
                assert_eq!(target.line(), "timeout", "{name}");
            }
            stopping.store(false, Relaxed);
        });
        assert_eq!(target.finish(), "[]", "{name}");
    }
}

/// A thread with a timeout that would restart is not stopped if another thread can be.
#[test]
fn a_thread_that_loses_nothing_is_stopped() {
    let mut target = Target::start("two threads");
    let helper: u32 = target.line().parse().unwrap();
    let remote = target.remote();
    let before = sleeps_of(helper);
    for _ in 0..30 {
        target.wait_until_asleep();
        while !sleeps(helper) {
            std::thread::yield_now();
        }
        stop(&remote);
    }
    assert!(sleeps_of(helper) >= before + 30);
    assert_eq!(target.finish(), "[]");
}

/// Returns how often a thread has gone to sleep: at least once for each stop.
fn sleeps_of(thread: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

/// A signal that the program catches interrupts such a call, with or without stops.
#[test]
fn a_caught_signal_still_interrupts() {
    let mut target = Target::start("caught");
    let remote = target.remote();
    for _ in 0..50 {
        target.wait_until_asleep();
        stop(&remote);
        // Between the kernel's decision to restart the call and the call itself, a signal finds the
        // thread outside of it.
        target.wait_until_asleep();
        kill(target.pid(), libc::SIGUSR2);
        stop(&remote);
        assert_eq!(target.line(), "interrupted");
    }
    assert_eq!(target.finish(), "[]");
}
