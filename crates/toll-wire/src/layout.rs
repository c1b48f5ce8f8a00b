// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structures of integers, and their little-endian bytes.

/// A value with a fixed number of bytes, `size_of::<Self>()`.
pub trait Value: Sized {
    /// Decodes a value from its bytes; further bytes are ignored.
    ///
    /// # Panics
    /// If there are too few bytes.
    fn read(bytes: &[u8]) -> Self;

    /// Appends the bytes of the value.
    fn write(&self, to: &mut impl Extend<u8>);
}

macro_rules! integers {
    ($($kind:ident),*) => {
        $(
            impl Value for $kind {
                fn read(bytes: &[u8]) -> $kind {
                    let mut own = [0; size_of::<$kind>()];
                    own.copy_from_slice(&bytes[..size_of::<$kind>()]);
                    $kind::from_le_bytes(own)
                }

                fn write(&self, to: &mut impl Extend<u8>) {
                    to.extend(self.to_le_bytes());
                }
            }
        )*
    };
}

integers!(u8, u32, u64);

impl<V: Value, const N: usize> Value for [V; N] {
    fn read(bytes: &[u8]) -> [V; N] {
        core::array::from_fn(|index| V::read(&bytes[index * size_of::<V>()..]))
    }

    fn write(&self, to: &mut impl Extend<u8>) {
        self.iter().for_each(|value| value.write(to));
    }
}

/// Declares a structure of a shared file, without holes, and implements [`Value`] for it.
macro_rules! layout {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $($(#[doc = $field_doc:literal])* pub $field:ident: $kind:ty,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $kind,)*
        }

        const _: () = assert!(
            size_of::<$name>() == 0 $(+ size_of::<$kind>())*,
            "the structure has holes"
        );

        impl $crate::layout::Value for $name {
            fn read(bytes: &[u8]) -> $name {
                $name {
                    $($field: $crate::layout::Value::read(
                        &bytes[core::mem::offset_of!($name, $field)..],
                    ),)*
                }
            }

            fn write(&self, to: &mut impl Extend<u8>) {
                $($crate::layout::Value::write(&self.$field, to);)*
            }
        }
    };
}

#[cfg(test)]
mod tests;
