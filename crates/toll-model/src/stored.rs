// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a profile lies on disk: as [`Profile`] is, but each frame stands once, in a
//! table, and allocation events name frames by their place in it. Thousands of events
//! come from few call sites; without the table their names are most of the file.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::anchor::{AnchorKind, Frame, Level};
use crate::profile::{AnchorRows, Place, Profile, Program, Row, Source};

/// A profile as it is written.
#[derive(Serialize)]
pub(crate) struct Written<'a> {
    format: &'a str,
    version: u32,
    source: Source,
    source_detail: &'a str,
    program: &'a Program,
    command: &'a [String],
    complete: bool,
    sampled: f64,
    observations: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_ns: Option<u64>,
    footprint: u64,
    warnings: &'a [String],
    frames: Vec<&'a Frame>,
    anchors: Vec<WrittenAnchor<'a>>,
}

#[derive(Serialize)]
struct WrittenAnchor<'a> {
    id: u32,
    #[serde(flatten)]
    kind: WrittenKind<'a>,
    length: u64,
    misalignment: u64,
    level: Level,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    freed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<u64>,
    rows: &'a [Row],
    #[serde(skip_serializing_if = "<[Place]>::is_empty")]
    places: &'a [Place],
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenKind<'a> {
    Alloc {
        kind: &'static str,
        frames: Vec<u32>,
        class: u8,
        ordinal: u32,
        thread: u32,
    },
    Other(&'a AnchorKind),
}

/// The frames seen so far.
#[derive(Default)]
struct Table<'a> {
    places: HashMap<&'a Frame, u32>,
    frames: Vec<&'a Frame>,
}

impl<'a> Table<'a> {
    fn place(&mut self, frame: &'a Frame) -> u32 {
        *self.places.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            (self.frames.len() - 1) as u32
        })
    }

    fn kind(&mut self, kind: &'a AnchorKind) -> WrittenKind<'a> {
        match kind {
            AnchorKind::Alloc {
                frames,
                class,
                ordinal,
                thread,
            } => WrittenKind::Alloc {
                kind: "alloc",
                frames: frames.iter().map(|frame| self.place(frame)).collect(),
                class: *class,
                ordinal: *ordinal,
                thread: *thread,
            },
            other => WrittenKind::Other(other),
        }
    }
}

impl<'a> Written<'a> {
    pub fn new(profile: &'a Profile) -> Written<'a> {
        let mut table = Table::default();
        let mut anchor = |rows: &'a AnchorRows| WrittenAnchor {
            id: rows.anchor.id,
            kind: table.kind(&rows.anchor.kind),
            length: rows.anchor.length,
            misalignment: rows.anchor.misalignment,
            level: rows.anchor.level,
            freed: rows.freed,
            address: rows.address,
            rows: &rows.rows,
            places: &rows.places,
        };
        let anchors = profile.anchors.iter().map(&mut anchor).collect();
        Written {
            format: &profile.format,
            version: profile.version,
            source: profile.source,
            source_detail: &profile.source_detail,
            program: &profile.program,
            command: &profile.command,
            complete: profile.complete,
            sampled: profile.sampled,
            observations: profile.observations,
            instructions: profile.instructions,
            native_ns: profile.native_ns,
            footprint: profile.footprint,
            warnings: &profile.warnings,
            frames: table.frames,
            anchors,
        }
    }
}

/// A profile as it is read: frames of events may be places in the table.
#[derive(Deserialize)]
pub(crate) struct Stored {
    format: String,
    version: u32,
    source: Source,
    source_detail: String,
    program: Program,
    command: Vec<String>,
    complete: bool,
    sampled: f64,
    observations: u64,
    instructions: Option<u64>,
    native_ns: Option<u64>,
    footprint: u64,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    frames: Vec<Arc<Frame>>,
    anchors: Vec<AnchorRows>,
}

impl Stored {
    /// The profile with every frame in its place.
    ///
    /// # Errors
    /// Names the event whose frame is not in the table.
    pub fn into_profile(mut self) -> Result<Profile, String> {
        for rows in &mut self.anchors {
            let id = rows.anchor.id;
            let AnchorKind::Alloc { frames, .. } = &mut rows.anchor.kind else {
                continue;
            };
            for frame in frames {
                let Some(place) = frame.place() else { continue };
                let found = usize::try_from(place)
                    .ok()
                    .and_then(|place| self.frames.get(place));
                *frame = found
                    .cloned()
                    .ok_or_else(|| format!("anchor {id}: there is no frame {place}"))?;
            }
        }
        Ok(Profile {
            format: self.format,
            version: self.version,
            source: self.source,
            source_detail: self.source_detail,
            program: self.program,
            command: self.command,
            complete: self.complete,
            sampled: self.sampled,
            observations: self.observations,
            instructions: self.instructions,
            native_ns: self.native_ns,
            footprint: self.footprint,
            warnings: self.warnings,
            anchors: self.anchors,
        })
    }
}

/// A frame, or its place in the table.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredFrame {
    Place(u64),
    Whole {
        module: String,
        #[serde(default)]
        path: String,
        offset: u64,
        symbol: Option<String>,
        source: Option<String>,
        function: Option<(u64, u64)>,
        nearest: Option<String>,
    },
}

impl From<StoredFrame> for Frame {
    /// A place becomes a frame without a module until [`Stored::into_profile`] looks it up.
    fn from(stored: StoredFrame) -> Frame {
        match stored {
            StoredFrame::Place(place) => Frame {
                offset: place,
                ..Frame::default()
            },
            StoredFrame::Whole {
                module,
                path,
                offset,
                symbol,
                source,
                function,
                nearest,
            } => Frame {
                module,
                path,
                offset,
                symbol,
                source,
                function,
                nearest,
            },
        }
    }
}
