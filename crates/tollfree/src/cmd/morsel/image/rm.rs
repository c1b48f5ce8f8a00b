// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel rm` in an image or a device.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use toll_act::error::UserError;
use toll_image::layout::kind;
use toll_model::names::plain;

use super::writing::Writing;
use super::{Document, headline};
use crate::output;

pub fn run(path: &Path, names: &[OsString], json: bool) -> Result<ExitCode> {
    let mut image = Writing::mount(path)?;
    // All of them, before any is removed.
    let numbers: Vec<u64> = names
        .iter()
        .map(|name| file(&image, name))
        .collect::<Result<_>>()?;
    for number in numbers {
        if image.fs.mode(number).is_ok() {
            image.remove(number)?;
        }
    }
    let (_, survey) = image.finish()?;
    if json {
        let mut document = Document::new("rm", path, &survey);
        let names = names.iter().map(|name| name.to_string_lossy().into_owned());
        document.removed = Some(names.collect());
        output::json(&document)?;
    } else {
        output::text(&headline(path, &survey))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn file(image: &Writing, name: &OsString) -> Result<u64> {
    let shown = plain(&name.to_string_lossy());
    let missing = || UserError::Missing(format!("{}: has no {shown}", image.shown()));
    let number = image.find(name.as_bytes()).ok_or_else(missing)?;
    let mode = image.fs.mode(number);
    match image.done(mode)? & kind::MASK {
        kind::DIRECTORY => {
            let what = format!("{shown}: is a directory: only files are removed");
            Err(UserError::Usage(what).into())
        }
        _ => Ok(number),
    }
}
