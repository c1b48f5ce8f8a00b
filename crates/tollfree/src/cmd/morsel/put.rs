// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel put`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use toll_act::morsel::{fill, open, wrong};
use toll_linux::morsel::Source;
use toll_model::numbers::{bytes, duration};
use toll_model::units::{parse_duration, parse_size};

use super::{More, caveat, image, report};
use crate::output;

/// Copy a file into a morsel and seal it
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to copy
    pub file: PathBuf,
    /// The directory of morsels, or a device or image with persistent ones
    #[arg(long, value_name = "MOUNT")]
    pub to: Option<PathBuf>,
    /// Name of the morsel (default: the file's)
    #[arg(long, value_name = "NAME")]
    pub name: Option<OsString>,
    /// Maximum total size of all morsels in the directory
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub limit: Option<u64>,
    /// How long to wait for another copy that the same user is making
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    pub wait: Duration,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    if let Some(path) = args.to.as_deref().filter(|path| image::is_image(path)) {
        return image::put::run(path, &args, json);
    }
    let store = open(args.to.as_deref())?;
    let source = Source::open(&args.file).map_err(wrong)?;
    let begun = Instant::now();
    let put = fill(&store, &source, args.name.as_deref(), args.limit, args.wait).map_err(wrong)?;
    let elapsed = begun.elapsed();
    let caveat = caveat(store.backing.kind);
    if json {
        let names = put
            .removed
            .iter()
            .map(|it| it.name.to_string_lossy().into_owned());
        let more = More {
            filled: Some(put.filled),
            direct: put.filled.then_some(put.direct),
            elapsed_ns: Some(elapsed.as_nanos() as u64),
            removed: Some(names.collect()),
            private: put.private.clone(),
            caveat,
            ..More::default()
        };
        report("put", &store, std::slice::from_ref(&put.morsel), more)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = put.morsel.path.display();
    let mut text = match put.filled {
        false => format!("{path}: already exists\n"),
        true => {
            let size = put.morsel.size;
            let rate = size as f64 / elapsed.as_secs_f64().max(1e-9);
            let way = match put.direct {
                true => "bypassing the page cache",
                false => "through the page cache, dropped afterwards",
            };
            format!(
                "{path}: {} in {} ({}/s), {way}\n  on         {}\n",
                bytes(size),
                duration(elapsed.as_nanos() as f64),
                bytes(rate as u64),
                store.backing.describe(),
            )
        }
    };
    for morsel in &put.removed {
        let (name, size) = (morsel.name.to_string_lossy(), bytes(morsel.allocated));
        text += &format!("  removed    {name} ({size})\n");
    }
    if let Some(why) = &put.private {
        let readers = match put.morsel.mode & 0o044 {
            0 => "only you can read it",
            _ => "readable by fewer users than the file's mode allows",
        };
        text += &format!("  private    {readers}: {why}\n");
    }
    if let Some(caveat) = caveat.filter(|_| put.filled) {
        text += &format!("  note       {caveat}\n");
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}
