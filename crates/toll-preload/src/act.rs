// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the birth, move and death of a large block.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::*};

use toll_model::wire::{self, ANY, EventKind};

use crate::advise::{self, Advised, Exchange, Hole, Target};
use crate::budget::{self, Charge};
use crate::live::{self, Block};
use crate::log::{self, Entry};
use crate::modules::{self, Owner};
use crate::os::{self, Errno, File, PAGE};
use crate::plan::{self, Plan};
use crate::regions::Range;
use crate::stack::{self, Stack};
use crate::{morsels, neighbours, ordinals, real, thread};

/// Minimum length for which the hooks do more than forward the call: first the minimum length of an
/// event, then the minimum that plan and log need, or never.
static THRESHOLD: AtomicUsize = AtomicUsize::new(wire::MIN_EVENT);

const UNSTARTED: u8 = 0;
const STARTING: u8 = 1;
const STARTED: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNSTARTED);

/// Whether blocks have glibc's headers.
static GLIBC: AtomicBool = AtomicBool::new(false);

/// Whether stale advice makes other memory huge: THP is `madvise`.
static HINTS_MATTER: AtomicBool = AtomicBool::new(false);

/// Process id of the process that was started last: identifies a fork's parent.
static PROCESS: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
pub fn threshold() -> usize {
    THRESHOLD.load(Relaxed)
}

/// Whether plan and log need no event, so that threads need no numbers either.
pub fn is_off() -> bool {
    threshold() == usize::MAX
}

/// Loads plan and log, once. Called when the library is loaded, or by the first large block if a
/// constructor runs earlier.
pub fn start() {
    if !os::has_environment() {
        return;
    }
    let first = STATE.compare_exchange(UNSTARTED, STARTING, Acquire, Relaxed);
    if first.is_err() {
        return;
    }
    let _errno = Errno::save();
    plan::load();
    morsels::load();
    log::open();
    let plan = plan::get();
    if plan.is_empty() && !log::is_on() {
        THRESHOLD.store(usize::MAX, Relaxed);
        return;
    }
    modules::start();
    if !plan.is_empty() {
        budget::start();
    }
    if plan.has_rules() {
        start_hints();
    }
    let allocator = modules::find(real::malloc_address());
    GLIBC.store(
        allocator.is_some_and(|module| module.owner == Owner::CLibrary),
        Relaxed,
    );
    // First-use system calls are made now: they may be forbidden later.
    thread::ordinal();
    if log::is_on() {
        PROCESS.store(os::process_id(), Relaxed);
    }
    if log::is_on() || plan.has_rules() {
        stack::walk(|_| true);
    }
    STATE.store(STARTED, Release);
    log::process(0);
    if !log::is_on() {
        THRESHOLD.store(plan.shortest(), Relaxed);
    }
}

/// Reads which memory the system makes huge.
fn start_hints() {
    let mut text = [0; 64];
    let path = c"/sys/kernel/mm/transparent_hugepage/enabled";
    let got = File::open(path, libc::O_RDONLY).map_or(0, |file| file.read(&mut text));
    let text = text.get(..got).unwrap_or_default();
    let is = |mode: &[u8]| text.windows(mode.len()).any(|word| word == mode);
    HINTS_MATTER.store(is(b"[madvise]"), Relaxed);
    neighbours::start(is(b"[madvise]") || is(b"[always]"));
}

/// Runs in the child of a fork.
pub extern "C" fn after_fork() {
    let _errno = Errno::save();
    thread::after_fork();
    if log::is_on() {
        log::process(PROCESS.swap(os::process_id(), Relaxed));
    }
}

/// Held while an event is processed; preserves `errno`.
struct Work(
    #[allow(dead_code)] thread::Inside,
    #[allow(dead_code)] Errno,
);

fn begin() -> Option<Work> {
    if STATE.load(Acquire) == UNSTARTED {
        start();
    }
    if STATE.load(Acquire) != STARTED {
        return None;
    }
    let inside = thread::enter()?;
    Some(Work(inside, Errno::save()))
}

fn range(address: usize, length: usize) -> Range {
    Range {
        start: address as u64,
        end: address.saturating_add(length) as u64,
    }
}

/// Whether a malloc block is a mapping of its own, by glibc's chunk header.
fn is_own_mapping(address: usize) -> bool {
    const IS_MMAPPED: usize = 2;
    // SAFETY: glibc stores the size, with flags, in front of each block.
    GLIBC.load(Relaxed) && unsafe { *((address - 8) as *const usize) } & IS_MMAPPED != 0
}

/// A block that is being created.
struct Birth {
    kind: EventKind,
    address: usize,
    length: usize,
    own_mapping: bool,
    /// Protection and flags of a mapping with replaceable pages.
    exchange: Option<Exchange>,
}

/// Handles the birth of a block from malloc or a related function.
pub fn block_born(address: usize, length: usize) {
    if address == 0 {
        return;
    }
    let Some(_work) = begin() else {
        return;
    };
    // Only memory that may be replaced can get a hole.
    let _ = born(&Birth {
        kind: EventKind::Malloc,
        address,
        length,
        own_mapping: is_own_mapping(address),
        exchange: None,
    });
}

/// Handles a new anonymous mapping.
///
/// # Errors
/// [`Hole`]: the mapping must be removed, and the program gets an error.
pub fn mapping_born(
    address: usize,
    length: usize,
    protection: c_int,
    flags: c_int,
) -> Result<(), Hole> {
    let Some(_work) = begin() else {
        return Ok(());
    };
    let private = flags & libc::MAP_PRIVATE != 0;
    born(&Birth {
        kind: EventKind::Mmap,
        address,
        length,
        own_mapping: true,
        exchange: private.then_some(Exchange { protection, flags }),
    })
}

fn born(birth: &Birth) -> Result<(), Hole> {
    let plan = plan::get();
    let (stack, ordinal, rule) = identify(plan, birth.length);
    let target = Target {
        range: range(birth.address, birth.length),
        own_mapping: birth.own_mapping,
        beyond: 0,
        paid: live::charge(birth.address),
    };
    let advised = carry_out(plan, rule, &target, birth.exchange)?;
    if log::is_on() || rule != ANY || advised.charge != Charge::NOTHING {
        live::insert(Block {
            address: birth.address,
            length: birth.length,
            rule,
            charge: advised.charge,
        });
    }
    log::append(&Entry {
        kind: birth.kind,
        address: birth.address,
        length: birth.length,
        old: 0,
        stack: &stack,
        ordinal,
        rule,
        advised: advised.bytes,
    });
    Ok(())
}

/// Names an event: its stack, its ordinal, and the rule that it matches.
fn identify(plan: &Plan, length: usize) -> (Stack, u32, u32) {
    let stack = if log::is_on() {
        stack::walk(|_| true)
    } else if plan.has_rules() {
        stack::walk(|first| plan::get().may_start(first))
    } else {
        None
    };
    let Some(stack) = stack else {
        return (Stack::unknown(), ANY, ANY);
    };
    let thread = thread::ordinal();
    let ordinal = ordinals::next(stack.call_site(), wire::class(length as u64), thread);
    let rule = if plan.has_rules() {
        plan.rule(&plan::Event {
            stack: &stack,
            length: length as u64,
            ordinal,
            thread,
        })
    } else {
        ANY
    };
    (stack, ordinal, rule)
}

/// Gives the planned advice for a block.
fn carry_out(
    plan: &Plan,
    rule: u32,
    target: &Target,
    exchange: Option<Exchange>,
) -> Result<Advised, Hole> {
    match exchange {
        Some(exchange) if exchanges(plan) => advise::hugetlb(plan, target, exchange),
        _ => Ok(give(plan, rule, target)),
    }
}

/// Whether to use memory of the hugetlb pool.
fn exchanges(plan: &Plan) -> bool {
    plan.uses_hugetlb() && !plan.advises_all() && !plan.addresses().is_empty()
}

/// Gives advice only.
fn give(plan: &Plan, rule: u32, target: &Target) -> Advised {
    if plan.advises_all() {
        advise::all(target)
    } else if plan.addresses().is_empty() {
        advise::planned(plan, rule, target)
    } else {
        advise::addresses(plan, target)
    }
}

/// A block that was removed from the table because its owner is about to resize it.
pub struct Lifted {
    block: Block,
    /// Whether it is a mapping of its own.
    own_mapping: bool,
}

/// Removes the malloc block at `address` from the table, if it is a large one.
pub fn lift_block(address: usize) -> Option<Lifted> {
    let block = live::get(address)?;
    let own_mapping = is_own_mapping(address);
    live::remove(address, own_mapping);
    Some(Lifted { block, own_mapping })
}

/// Removes the mapping `address..address + length` from the table.
pub fn lift_mapping(address: usize, length: usize) -> Option<Lifted> {
    let block = live::get(address).filter(|block| block.length <= length)?;
    live::remove(address, true);
    Some(Lifted {
        block,
        own_mapping: true,
    })
}

impl Lifted {
    /// The resize failed: the block is unchanged.
    pub fn put_back(self) {
        live::insert(self.block);
    }

    /// The block was freed instead.
    pub fn died(self) {
        if self.own_mapping {
            budget::give_back(self.block.charge);
        }
        if let Some(_work) = begin() {
            log_death(&self.block);
        }
    }

    /// realloc moved the block to `address`.
    pub fn block_moved(self, address: usize, length: usize) {
        // A split mapping cannot be moved as a whole: glibc copies instead.
        let kept = self.own_mapping && is_own_mapping(address) && !self.is_split();
        self.moved(address, length, kept);
    }

    /// mremap moved the mapping to `address`.
    pub fn mapping_moved(self, address: usize, length: usize) {
        self.moved(address, length, true);
    }

    /// Whether advice has split the block into several mappings.
    pub fn is_split(&self) -> bool {
        self.block.charge.splits > 0
    }

    /// Returns the pieces into which advice has split the block.
    pub fn pieces<F: FnMut(Range)>(&self, piece: F) {
        let block = range(self.block.address, self.block.length);
        advise::pieces(plan::get(), self.block.rule, block, piece);
    }

    /// `kept`: the same mapping was moved or resized, so that its old part has its advice already.
    fn moved(self, address: usize, length: usize, kept: bool) {
        let old = self.block;
        if self.own_mapping && !kept {
            budget::give_back(old.charge);
        }
        let Some(_work) = begin() else {
            return;
        };
        if !self.own_mapping && address != old.address {
            withdraw(&old);
        }
        let target = Target {
            range: range(address, length),
            own_mapping: kept || is_own_mapping(address),
            // Copied memory is already touched; moved memory was advised before.
            beyond: address.saturating_add(old.length.min(length)) as u64,
            paid: if kept {
                old.charge
            } else {
                live::charge(address)
            },
        };
        let advised = if length > old.length {
            give(plan::get(), old.rule, &target)
        } else {
            Advised {
                bytes: 0,
                charge: target.paid,
            }
        };
        live::insert(Block {
            address,
            length,
            rule: old.rule,
            charge: advised.charge,
        });
        log::append(&Entry {
            kind: EventKind::Move,
            address,
            length,
            old: old.address,
            stack: &Stack::unknown(),
            ordinal: ANY,
            rule: old.rule,
            advised: advised.bytes,
        });
    }
}

/// The malloc block at `address` is about to be freed.
#[cold]
pub fn block_dies(address: usize) {
    if let Some(block) = live::get(address) {
        dies(&block, is_own_mapping(address));
    }
}

/// The range is about to be unmapped: the end of a mapping, or its front (a way to get an aligned
/// mapping); in that case the rest has a new start.
#[cold]
pub fn mapping_dies(address: usize, length: usize) {
    let Some(block) = live::get(address) else {
        return;
    };
    let cut = length.saturating_add(PAGE - 1) & !(PAGE - 1);
    if cut >= block.length {
        dies(&block, true);
        return;
    }
    live::remove(address, true);
    let rest = Lifted {
        // Nothing of it was advised relative to its new start yet.
        block: Block { length: 0, ..block },
        own_mapping: true,
    };
    rest.moved(address + cut, block.length - cut, true);
}

fn dies(block: &Block, unmapped: bool) {
    let Some(_work) = begin() else {
        return;
    };
    live::remove(block.address, unmapped);
    if unmapped {
        budget::give_back(block.charge);
    } else {
        withdraw(block);
    }
    log_death(block);
}

/// Reverts the advice on a block with memory that stays mapped.
fn withdraw(block: &Block) {
    if block.charge == Charge::NOTHING || !HINTS_MATTER.load(Relaxed) {
        return;
    }
    let target = Target {
        range: range(block.address, block.length),
        own_mapping: false,
        beyond: 0,
        paid: block.charge,
    };
    advise::withdraw(plan::get(), block.rule, &target);
}

fn log_death(block: &Block) {
    log::append(&Entry {
        kind: EventKind::Free,
        address: block.address,
        length: block.length,
        old: 0,
        stack: &Stack::unknown(),
        ordinal: ANY,
        rule: block.rule,
        advised: 0,
    });
}
