// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals that tollfree receives while a target runs.
//!
//! A handler writes them to a pipe; the code that waits for a child reads the pipe and forwards
//! them ([`crate::target`]). Handlers are used instead of blocked signals: a process-wide signal
//! goes to any thread that does not block it, and progress lines have threads of their own.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};

/// The write end of the pipe, for the handler.
static WRITE: AtomicI32 = AtomicI32::new(-1);
/// The last signal that asked tollfree itself to end.
static INTERRUPT: AtomicI32 = AtomicI32::new(0);
/// Bit n: signal n was ignored when tollfree was started (by nohup, for example), so it is no
/// request to end.
static IGNORED: AtomicU64 = AtomicU64::new(0);
static STATE: Mutex<State> = Mutex::new(State {
    guards: 0,
    old: Vec::new(),
});

struct State {
    guards: usize,
    /// The dispositions that tollfree was started with.
    old: Vec<(i32, libc::sigaction)>,
}

/// A received signal.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    pub signal: i32,
    code: i32,
}

impl Note {
    /// Whether tollfree forwards it to the target: signals that a process sent to tollfree, and the
    /// alarm that tollfree was started with (it does not survive a fork). The terminal sends its
    /// signals to the whole process group, including the target.
    pub(crate) fn is_for_target(&self) -> bool {
        let by_process = self.code <= 0;
        let alarm = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF].contains(&self.signal);
        self.signal != libc::SIGCHLD && (by_process || alarm)
    }
}

/// Signals are recorded while a guard exists.
#[derive(Debug)]
pub struct Guard(());

/// Starts recording signals. Guards nest; the last one restores the dispositions.
pub fn watch() -> io::Result<Guard> {
    let write = pipe()?.1.as_raw_fd();
    WRITE.store(write, Relaxed);
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.guards == 0 {
        state.old = noted().map(|signal| (signal, install(signal))).collect();
    }
    state.guards += 1;
    Ok(Guard(()))
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.guards -= 1;
        if state.guards == 0 {
            for (signal, action) in std::mem::take(&mut state.old) {
                set(signal, &action);
            }
        }
    }
}

/// The last of SIGINT, SIGTERM, SIGHUP and SIGQUIT that arrived while signals were recorded.
pub fn interrupted() -> Option<i32> {
    match INTERRUPT.load(Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// A descriptor that becomes readable when a signal was recorded.
pub fn readable() -> io::Result<BorrowedFd<'static>> {
    Ok(pipe()?.0.as_fd())
}

/// The signals recorded since the last call.
pub fn take() -> Vec<Note> {
    let mut notes = Vec::new();
    let Ok((read, _)) = pipe() else {
        return notes;
    };
    let mut bytes = [0; size_of::<Note>()];
    while rustix::io::read(read, &mut bytes) == Ok(size_of::<Note>()) {
        let field = |at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        notes.push(Note {
            signal: field(0),
            code: field(4),
        });
    }
    notes
}

/// The dispositions to restore in a child before it executes a program.
pub(crate) fn inherited() -> Vec<(i32, libc::sigaction)> {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.old.clone()
}

/// Sets a signal's disposition. Async-signal-safe.
pub(crate) fn set(signal: i32, action: &libc::sigaction) {
    // SAFETY: the action is one that sigaction(2) returned or `install` built.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
}

/// Takes the signal's default action (stop or termination). If the process continues, records the
/// signal again.
pub fn default_action(signal: i32) {
    // SAFETY: SIG_DFL is always valid; the previous action is restored unchanged.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        let mut old = MaybeUninit::zeroed();
        libc::sigaction(signal, &default, old.as_mut_ptr());
        let mut set = MaybeUninit::zeroed();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        let set = set.assume_init();
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
        libc::sigaction(signal, old.as_ptr(), std::ptr::null_mut());
    }
}

/// Blocks every signal in this thread until dropped; used around a fork.
pub(crate) struct Blocked(libc::sigset_t);

impl Blocked {
    pub(crate) fn all() -> Blocked {
        let mut full = MaybeUninit::zeroed();
        let mut old = MaybeUninit::zeroed();
        // SAFETY: both sets are initialised by the calls that receive them.
        unsafe {
            libc::sigfillset(full.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, full.as_ptr(), old.as_mut_ptr());
            Blocked(old.assume_init())
        }
    }

    /// The previous mask.
    pub(crate) fn before(&self) -> libc::sigset_t {
        self.0
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        set_mask(&self.0);
    }
}

/// Sets this thread's signal mask. Async-signal-safe.
pub(crate) fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the mask is initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// Every signal that can be handled and is meaningful to a target; not the faults, nor SIGPIPE, nor
/// those that stop a background process at the terminal.
fn noted() -> impl Iterator<Item = i32> {
    const OWN: [i32; 14] = [
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGSYS,
        libc::SIGABRT,
        libc::SIGPIPE,
        libc::SIGTTIN,
        libc::SIGTTOU,
        // glibc reserves two for itself.
        32,
        33,
    ];
    (1..=libc::SIGRTMAX()).filter(|signal| !OWN.contains(signal))
}

/// Installs the handler and returns the previous action.
fn install(signal: i32) -> libc::sigaction {
    // SAFETY: the handler is async-signal-safe, and its type is that of SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&mut action.sa_mask);
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &action, &mut old);
        if old.sa_sigaction == libc::SIG_IGN {
            IGNORED.fetch_or(bit(signal), Relaxed);
        }
        old
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal & 63)
}

/// The handler: one atomic write to the pipe. A full pipe drops the note.
extern "C" fn note(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo; write(2) and errno are async-signal-safe.
    unsafe {
        let errno = *libc::__errno_location();
        let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal);
        if ends && IGNORED.load(Relaxed) & bit(signal) == 0 {
            INTERRUPT.store(signal, Relaxed);
        }
        let note = Note {
            signal,
            code: (*info).si_code,
        };
        libc::write(
            WRITE.load(Relaxed),
            (&raw const note).cast(),
            size_of::<Note>(),
        );
        *libc::__errno_location() = errno;
    }
}

/// The pipe, created at the first use: both ends are non-blocking and CLOEXEC.
fn pipe() -> io::Result<&'static (OwnedFd, OwnedFd)> {
    static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();
    if let Some(pipe) = PIPE.get() {
        return Ok(pipe);
    }
    let made = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok(PIPE.get_or_init(|| made))
}
