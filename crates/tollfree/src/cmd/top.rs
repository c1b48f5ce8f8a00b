// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree top`.

mod change;
mod screen;
mod text;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use toll_linux::Root;
use toll_linux::econ::{self, Machine, Process};
use toll_model::units::parse_duration;

use crate::error::UserError;
use crate::signals;
use change::Change;
use screen::{Screen, Woken};

/// Watch what the kernel's estimator decides, for the machine and for each process
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree top
  tollfree top -n 10 --interval 5s > decisions.txt

First what was decided since boot, then what was decided in each interval: how often the
estimator was asked and said yes, what that was expected to cost and to save, and what was
left that would have saved. Of processes those that have a profile, the one for which most was
asked first. On a terminal it is drawn in place until q or Ctrl-C; elsewhere, and with -n, it
is a block of lines each time; with --json an object on a line of its own.

Needs a kernel with econ (it ends with 4 on another). Other users' processes are shown
to root.")]
pub struct Args {
    /// Time between two looks
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = parse_duration)]
    pub interval: Duration,
    /// Look so many times (default: until it is ended)
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    /// Look once: what was decided since boot
    #[arg(long, conflicts_with = "times")]
    pub once: bool,
    /// A folder that stands for / (for tests)
    #[arg(long, hide = true, value_name = "PATH")]
    pub root: Option<PathBuf>,
}

/// All that can be known at a moment.
#[derive(Debug)]
struct Look {
    at: Instant,
    machine: Machine,
    processes: Vec<Process>,
}

/// How what was seen is shown.
enum Display {
    Json,
    Blocks { is_first: bool },
    Screen(Screen),
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    if args.interval < Duration::from_millis(10) {
        return Err(UserError::Usage("--interval: at least 10 ms".to_owned()).into());
    }
    let root = args.root.map_or_else(Root::system, Root::at);
    let times = if args.once { Some(1) } else { args.times };
    let mut before = look(&root)?;
    let _signals = signals::watch().context("no pipe for signals")?;
    let mut display = Display::new(json, times)?;
    let mut change = Change::since_boot(&before);
    for shown in 1.. {
        display.show(&change)?;
        if Some(shown) == times || !display.wait(args.interval, &change)? {
            break;
        }
        let now = look(&root)?;
        change = Change::between(&before, &now);
        before = now;
    }
    Ok(ExitCode::SUCCESS)
}

fn look(root: &Root) -> Result<Look> {
    let machine =
        Machine::read(root).ok_or_else(|| UserError::Missing(super::explain::no_econ()))?;
    Ok(Look {
        at: Instant::now(),
        machine,
        processes: econ::processes(root),
    })
}

impl Display {
    fn new(json: bool, times: Option<u64>) -> Result<Display> {
        Ok(match times {
            _ if json => Display::Json,
            None if io::stdout().is_terminal() => Display::Screen(Screen::open()?),
            // What ends by itself is to be read then.
            _ => Display::Blocks { is_first: true },
        })
    }

    fn show(&mut self, change: &Change) -> Result<()> {
        let text = match self {
            Display::Json => format!("{}\n", serde_json::to_string(change)?),
            Display::Blocks { is_first } => {
                let gap = if std::mem::take(is_first) { "" } else { "\n" };
                format!("{gap}{}", text::whole(change))
            }
            Display::Screen(screen) => return screen.draw(&text::whole(change)),
        };
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.context("stdout: cannot be written")
    }

    /// Waits for the next look; false: it is to end.
    fn wait(&mut self, interval: Duration, change: &Change) -> Result<bool> {
        let end = Instant::now() + interval;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let keys = matches!(self, Display::Screen(_));
            match screen::wait(left, keys)? {
                Woken::End => return Ok(false),
                Woken::Time => return Ok(true),
                Woken::Stop => self.stop(change)?,
                Woken::Redraw => self.redraw(change)?,
                Woken::Nothing => {}
            }
        }
    }

    /// Ctrl-Z: the shell gets its terminal as it was.
    fn stop(&mut self, change: &Change) -> Result<()> {
        let Display::Screen(screen) = self else {
            signals::default_action(libc::SIGTSTP);
            return Ok(());
        };
        screen.close();
        signals::default_action(libc::SIGTSTP);
        *screen = Screen::open()?;
        self.redraw(change)
    }

    fn redraw(&mut self, change: &Change) -> Result<()> {
        match self {
            Display::Screen(_) => self.show(change),
            _ => Ok(()),
        }
    }
}
