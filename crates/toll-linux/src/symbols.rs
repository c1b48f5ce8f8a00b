// SPDX-License-Identifier: MIT OR Apache-2.0
//! Build-ids, symbols and source lines of ELF files. A damaged or missing file yields no names,
//! never an error: names are for display.
//!
//! An *offset* here is an address minus the load bias, that is, the ELF file's
//! own virtual address.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use addr2line::{Loader, demangle_auto};
use object::elf::{DT_NEEDED, Dyn64, EM_X86_64, FileHeader64, PF_W, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind, Object, ObjectSymbol, SymbolKind};

/// Information about the target of a return address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Symbol {
    /// Demangled name of the function.
    pub name: Option<String>,
    /// `file:line` of the call; for inlined calls the innermost outside system headers.
    pub source: Option<String>,
    /// Start and end offset of the function.
    pub function: Option<(u64, u64)>,
    /// If no symbol covers the offset: the last one before it with the distance from its start, as
    /// `NAME+0xDISTANCE`. A stripped file has only its exported names.
    pub nearest: Option<String>,
}

/// Maximum useful distance from a symbol, bytes.
const NEAR: u64 = 64 << 10;

/// Returns the GNU build-id of a file in lower-case hex; empty if it has none or cannot be read.
pub fn build_id(path: &Path) -> String {
    let read = || -> Option<String> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        Some(hex(file.build_id().ok()??))
    };
    read().unwrap_or_default()
}

/// Returns the shared libraries that a program needs (DT_NEEDED); empty if it cannot be read.
pub fn needed(path: &Path) -> Vec<String> {
    let read = || -> Option<Vec<String>> {
        let data = std::fs::read(path).ok()?;
        let header = FileHeader64::<Endianness>::parse(&*data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, &*data).ok()?;
        let (entries, index) = sections.dynamic(endian, &*data).ok()??;
        let strings = sections.strings(endian, &*data, index).ok()?;
        let name = |entry: &Dyn64<Endianness>| {
            let at = u32::try_from(entry.d_val.get(endian)).ok()?;
            Some(String::from_utf8_lossy(strings.get(at).ok()?).into_owned())
        };
        let needed = entries
            .iter()
            .filter(|entry| entry.d_tag.get(endian) == u64::from(DT_NEEDED));
        Some(needed.filter_map(name).collect())
    };
    read().unwrap_or_default()
}

/// Whether an ELF file is a 64-bit x86-64 one; `None` if it is not an ELF file, or cannot be read.
pub fn is_x86_64(path: &Path) -> Option<bool> {
    let cache = ReadCache::new(File::open(path).ok()?);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf64 => {
            let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
            let endian = header.endian().ok()?;
            Some(header.e_machine(endian) == EM_X86_64)
        }
        FileKind::Elf32 => Some(false),
        _ => None,
    }
}

/// Returns the loader of a 64-bit program (PT_INTERP); `None` if it is statically linked, or cannot
/// be read.
pub fn loader(path: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    let mut segments = header.program_headers(endian, &cache).ok()?.iter();
    let name = segments.find_map(|it| it.interpreter(endian, &cache).ok()?)?;
    Some(OsStr::from_bytes(name).into())
}

/// Returns the start of a program's zeroed data as a file offset: the end of the file part of its
/// last writable segment, rounded up to a page. `None` if it has none or cannot be read.
pub fn zeroed_data(path: &Path) -> Option<u64> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &cache).ok()?.iter();
    let last = segments
        .filter(|it| it.p_type(endian) == PT_LOAD && it.p_flags(endian) & PF_W != 0)
        .max_by_key(|it| it.p_vaddr(endian))?;
    let end = last.p_offset(endian).checked_add(last.p_filesz(endian))?;
    let grows = last.p_memsz(endian) > last.p_filesz(endian);
    grows.then(|| end.checked_next_multiple_of(4096)).flatten()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the start and end offset of the function called `name` (demangled or raw). If several
/// have that name, the first by address.
pub fn function_range(path: &Path, name: &str) -> Option<(u64, u64)> {
    let module = Module::open(path);
    let found = module.functions().iter().find(|function| {
        function.name == name || demangle_auto(function.name.as_str().into(), None) == name
    });
    found.map(|function| (function.start, function.end))
}

/// Symbolizes offsets in ELF files, with a cache of the files read.
#[derive(Default)]
pub struct Symbolizer {
    modules: HashMap<PathBuf, Module>,
}

impl Symbolizer {
    pub fn new() -> Symbolizer {
        Symbolizer::default()
    }

    /// Symbolizes the call that returns to `offset`.
    pub fn symbolize(&mut self, path: &Path, offset: u64) -> Symbol {
        let module = self
            .modules
            .entry(path.to_owned())
            .or_insert_with(|| Module::open(path));
        // The return address may belong to the next line or function.
        let call = offset.saturating_sub(1);
        let function = module.function(call);
        Symbol {
            name: function.map(|f| demangle_auto(f.name.as_str().into(), None).into_owned()),
            source: module.source(call),
            function: function.map(|f| (f.start, f.end)),
            nearest: match function {
                Some(_) => None,
                None => module.nearest(call),
            },
        }
    }
}

/// A function of the symbol table.
struct Function {
    start: u64,
    end: u64,
    name: String,
}

/// An ELF file with its separate debug file, if there is one.
struct Module {
    /// The file itself comes first.
    files: Vec<PathBuf>,
    functions: OnceCell<Vec<Function>>,
    lines: OnceCell<Option<Loader>>,
}

impl Module {
    fn open(path: &Path) -> Module {
        let mut files = vec![path.to_owned()];
        files.extend(debug_file(&build_id(path)));
        Module {
            files,
            functions: OnceCell::new(),
            lines: OnceCell::new(),
        }
    }

    /// The functions by address, without overlapping starts.
    fn functions(&self) -> &[Function] {
        self.functions.get_or_init(|| {
            let mut all: Vec<Function> = self.files.iter().flat_map(|f| functions_of(f)).collect();
            // Of several aliases, the shortest name is the best known.
            all.sort_by(|a, b| {
                (a.start, a.name.len(), &a.name).cmp(&(b.start, b.name.len(), &b.name))
            });
            all.dedup_by_key(|function| function.start);
            all
        })
    }

    fn function(&self, offset: u64) -> Option<&Function> {
        let functions = self.functions();
        let after = functions.partition_point(|function| function.start <= offset);
        functions[..after]
            .last()
            .filter(|function| offset < function.end)
    }

    /// Returns the last function that starts before `offset`, with the distance of the next
    /// instruction.
    fn nearest(&self, offset: u64) -> Option<String> {
        let functions = self.functions();
        let after = functions.partition_point(|function| function.start <= offset);
        let before = functions[..after].last()?;
        let distance = offset - before.start + 1;
        let name = demangle_auto(before.name.as_str().into(), None);
        (distance <= NEAR).then(|| format!("{name}+{distance:#x}"))
    }

    /// Returns `file:line` of the instruction at `offset`.
    fn source(&self, offset: u64) -> Option<String> {
        let loader = self.lines.get_or_init(|| {
            // The debug file comes last; if it exists, only it has lines.
            self.files
                .iter()
                .rev()
                .find_map(|file| Loader::new(file).ok())
        });
        let mut frames = loader.as_ref()?.find_frames(offset).ok()?;
        let mut outermost = None;
        while let Ok(Some(frame)) = frames.next() {
            let Some(location) = frame.location else {
                continue;
            };
            let (Some(file), Some(line)) = (location.file, location.line) else {
                continue;
            };
            let name = file.rsplit('/').next().unwrap_or(file);
            outermost = Some(format!("{name}:{line}"));
            if !is_library_source(file) {
                break;
            }
        }
        outermost
    }
}

/// Skip headers and sources of the standard library: the caller is of more interest.
fn is_library_source(file: &str) -> bool {
    ["/usr/include/", "/usr/lib/", "/rustc/", "/rust/deps/"]
        .iter()
        .any(|prefix| file.starts_with(prefix))
        || file.contains("/include/c++/")
}

fn functions_of(path: &Path) -> Vec<Function> {
    let read = || -> Option<Vec<Function>> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        Some(text_symbols(&file))
    };
    read().unwrap_or_default()
}

fn text_symbols<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<Function> {
    file.symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .filter(|symbol| symbol.size() != 0)
        .filter_map(|symbol| {
            Some(Function {
                start: symbol.address(),
                end: symbol.address().checked_add(symbol.size())?,
                name: symbol
                    .name()
                    .ok()
                    .filter(|name| !name.is_empty())?
                    .to_owned(),
            })
        })
        .collect()
}

/// Returns the path where distributions install the debug file of a build-id, if it exists.
fn debug_file(build_id: &str) -> Option<PathBuf> {
    let (head, tail) = build_id.split_at_checked(2)?;
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{head}/{tail}.debug"));
    (!tail.is_empty() && path.exists()).then_some(path)
}
