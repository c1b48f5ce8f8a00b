// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declarations that exist in Rust and in C: each macro declares the Rust item and describes its C
//! form, which `header` prints.

/// A field or named number, with its comment.
pub struct Item {
    /// The lines of its doc comment.
    pub doc: &'static [&'static str],
    pub name: &'static str,
    pub is: Is,
}

pub enum Is {
    /// An integer of this C type.
    Integer(&'static str),
    /// A string of this length.
    Text(usize),
    Number(u32),
}

/// A `struct` or `enum` of C.
pub struct Description {
    pub doc: &'static [&'static str],
    pub keyword: &'static str,
    /// Empty: it has no name.
    pub name: &'static str,
    pub items: &'static [Item],
    /// Size of a structure in bytes; 0 for an enum.
    pub bytes: usize,
}

/// A type of a field that C has too.
pub trait InC {
    const IS: Is;
}

impl InC for u32 {
    const IS: Is = Is::Integer("uint32_t");
}

impl InC for u64 {
    const IS: Is = Is::Integer("uint64_t");
}

impl<const N: usize> InC for [u8; N] {
    const IS: Is = Is::Text(N);
}

/// As `layout!`, with the name of the structure in C.
macro_rules! c_layout {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident as $c_name:ident {
            $($(#[doc = $field_doc:literal])* pub $field:ident: $kind:ty,)*
        }
    ) => {
        layout! {
            $(#[doc = $doc])*
            pub struct $name {
                $($(#[doc = $field_doc])* pub $field: $kind,)*
            }
        }

        impl $name {
            pub(crate) const C: $crate::describe::Description = $crate::describe::Description {
                doc: &[$($doc),*],
                keyword: "struct",
                name: stringify!($c_name),
                items: &[$($crate::describe::Item {
                    doc: &[$($field_doc),*],
                    name: stringify!($field),
                    is: <$kind as $crate::describe::InC>::IS,
                }),*],
                bytes: size_of::<$name>(),
            };
        }
    };
}

/// Declares an enum of `u32`, with its name and those of its values in C.
macro_rules! c_enum {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident as $c_name:ident {
            $($(#[doc = $value_doc:literal])* $value:ident = $number:literal => $c_value:ident,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[repr(u32)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $value_doc])* $value = $number,)*
        }

        impl $name {
            pub(crate) const C: $crate::describe::Description = $crate::describe::Description {
                doc: &[$($doc),*],
                keyword: "enum",
                name: stringify!($c_name),
                items: &[$($crate::describe::Item {
                    doc: &[$($value_doc),*],
                    name: stringify!($c_value),
                    is: $crate::describe::Is::Number($number),
                }),*],
                bytes: 0,
            };

            /// Returns the value of a number.
            pub const fn from_number(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$value),)*
                    _ => None,
                }
            }
        }
    };
}

/// Declares constants of `u32`, with their names in C.
macro_rules! c_bits {
    (
        $(#[doc = $doc:literal])*
        pub mod $module:ident {
            $($(#[doc = $bit_doc:literal])* $bit:ident = $number:literal => $c_bit:ident,)*
        }
    ) => {
        $(#[doc = $doc])*
        pub mod $module {
            $($(#[doc = $bit_doc])* pub const $bit: u32 = $number;)*

            pub(crate) const C: $crate::describe::Description = $crate::describe::Description {
                doc: &[$($doc),*],
                keyword: "enum",
                name: "",
                items: &[$($crate::describe::Item {
                    doc: &[$($bit_doc),*],
                    name: stringify!($c_bit),
                    is: $crate::describe::Is::Number($number),
                }),*],
                bytes: 0,
            };
        }
    };
}
