// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the call sites of a plan in the current files.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toll_linux::symbols;
use toll_model::actions::FrameRange;
use toll_model::profile::Program;
use toll_model::site::Frame;

use crate::executable::Executable;

/// Maps frames of a plan to address ranges in the current files.
pub struct Rebaser {
    planned: Program,
    program: PathBuf,
    /// Module names by path, cached because reading a build-id opens the file.
    modules: RefCell<HashMap<PathBuf, String>>,
}

impl Rebaser {
    /// Creates a rebaser for a plan made for `planned` and the program to run.
    pub fn new(planned: &Program, executable: &Executable) -> Rebaser {
        Rebaser {
            planned: planned.clone(),
            program: executable.path.clone(),
            modules: RefCell::default(),
        }
    }

    /// Returns the exact place if the file is the same build; the whole function if the file was
    /// rebuilt and has one of that name; otherwise `None`.
    pub fn rebase(&self, frame: &Frame) -> Option<FrameRange> {
        let file = self.file(frame)?;
        let module = self.module(&file);
        let function = || symbols::function_range(&file, frame.symbol.as_deref()?);
        let is_named_by_build = !frame.module.starts_with("path:");
        if module == frame.module && (is_named_by_build || unmoved(frame, function())) {
            return Some(FrameRange::exact(module, frame.offset));
        }
        let (low, high) = function()?;
        Some(FrameRange::function(module, low, high))
    }

    /// Returns the current file of the frame's module.
    fn file(&self, frame: &Frame) -> Option<PathBuf> {
        let recorded = Path::new(&frame.path);
        let of_program = frame.module == self.planned.build_id
            || recorded.file_name().is_some_and(|name| {
                Some(name) == self.program.file_name()
                    || Some(name) == Path::new(&self.planned.path).file_name()
            });
        if of_program {
            return Some(self.program.clone());
        }
        recorded.is_file().then(|| recorded.to_owned())
    }

    /// Returns the [`Frame::module`] of a file.
    fn module(&self, file: &Path) -> String {
        let mut modules = self.modules.borrow_mut();
        let name = modules.entry(file.to_owned()).or_insert_with(|| {
            let id = symbols::build_id(file);
            match id.is_empty() {
                false => id,
                true => {
                    let name = file.file_name().unwrap_or_default();
                    format!("path:{}", name.to_string_lossy())
                }
            }
        });
        name.clone()
    }
}

/// Whether the frame's function is where it was when recorded. Without symbols, true is assumed.
fn unmoved(frame: &Frame, function: Option<(u64, u64)>) -> bool {
    match (frame.function, function) {
        (Some(then), Some(now)) => then == now,
        _ => true,
    }
}
