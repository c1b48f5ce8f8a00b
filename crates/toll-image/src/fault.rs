// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bugs that tests inject, to show that the search for crash states finds them.

/// A bug of the writer, of the reader, or of recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The text of a name is not flushed before the name is published.
    NameNotFlushed,
    /// No fence between the content of an inode and its name.
    NoFenceBeforeName,
    /// An operation returns before what it published is persistent.
    NoFenceAfterPublish,
    /// A page is published before its content is stored.
    PublishFirst,
    /// Pages are free before the removal of their morsel is persistent.
    ReusedEarly,
    /// A rename clears the old name, and then stores the new one.
    OldNameFirst,
    /// A rename stores the new name without the flag.
    RenameWithoutFlag,
    /// A rename stores the flag before the fields that it refers to.
    FlagFirst,
    /// A slot is reused before the flag that names it is cleared.
    SlotReusedEarly,
    /// The reader obeys the fields of a rename without the flag.
    StaleFromObeyed,
    /// Recovery clears the flag, and then completes the rename.
    RecoveryFlagFirst,
    /// Recovery clears the flag, and leaves the other side of a rename as it is.
    OneSideCompleted,
    /// Recovery drops inodes without a name before it considers pending renames.
    DropsBeforeCompletion,
    /// A link is not counted, so that the removal of one name removes the inode.
    LinkNotCounted,
    /// A truncation removes pages before it changes the size.
    PagesBeforeSize,
    /// A new root is published before its table is stored.
    RootFirst,
    /// A table of a higher level is published without what was there.
    OldRootForgotten,
    /// The seal is published before the data is flushed.
    SealFirst,
    /// A write changes the size before it stores the data.
    SizeFirst,
    /// Growth does not clear what lies beyond the end.
    StaleTail,
    /// A synchronization flushes the first page only.
    FirstPageSynced,
    /// Extended attributes are changed in place.
    AttributesInPlace,
    /// The root of a tree that gets another level loses its seals.
    SealsForgotten,
    /// An inode gets its type before its other words are persistent.
    ModeFirst,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 24] = [
        Fault::NameNotFlushed,
        Fault::NoFenceBeforeName,
        Fault::NoFenceAfterPublish,
        Fault::PublishFirst,
        Fault::ReusedEarly,
        Fault::OldNameFirst,
        Fault::RenameWithoutFlag,
        Fault::FlagFirst,
        Fault::SlotReusedEarly,
        Fault::StaleFromObeyed,
        Fault::RecoveryFlagFirst,
        Fault::OneSideCompleted,
        Fault::DropsBeforeCompletion,
        Fault::LinkNotCounted,
        Fault::PagesBeforeSize,
        Fault::RootFirst,
        Fault::OldRootForgotten,
        Fault::SealFirst,
        Fault::SizeFirst,
        Fault::StaleTail,
        Fault::FirstPageSynced,
        Fault::AttributesInPlace,
        Fault::SealsForgotten,
        Fault::ModeFirst,
    ];
}
