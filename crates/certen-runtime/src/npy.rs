//! Array files: `.npy`, and `.npz`, which is a zip archive of them.
//!
//! Read are the versions 1.0, 2.0 and 3.0 of the format, both byte orders, both memory orders, and the element types
//! that exist here: `f4 f8 i4 i8 u1 b1`. Everything else is refused with its name. Written is version 1.0 (2.0 for a
//! shape that does not fit), in the machine's byte order and row-major order; `.npz` entries are stored, not deflated.
//!
//! Files are hostile until shown otherwise, so what a header promises is compared with the real length of the file, or
//! the entry's size in the archive, before anything is allocated, and with the memory that is free. A file that is
//! shorter *or longer* than its header says is refused: appended arrays would be lost silently. An archive's entry
//! cannot claim more than its compressed bytes can hold, nor can it unpack to more than it claims.
//!
//! The header is parsed here because its grammar is small, and because the parsers for it that we know allocate the
//! length that it claims and recurse as deep as its brackets nest.
//!
//! Files appear whole or not at all: they are written under another name, synced, and renamed.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use certen_core::ElemType;
use certen_syntax::Code;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::array::{Array, ArrayError};
use crate::files::write_atomically;
use crate::memory::available_bytes;

/// Longer headers are refused. A header that is needed has about a hundred bytes.
const MAX_HEADER: usize = 1 << 20;

/// Deflate cannot shrink its input by more than this factor.
const MAX_DEFLATE_RATIO: u64 = 1032;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Why an array file could not be read or written.
#[derive(Debug)]
pub enum NpyError {
    /// The file is not a whole array of a type that exists here.
    NotAnArray {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        why: String,
    },
    /// The operating system refused.
    Io {
        /// What was tried: `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Its reason.
        error: io::Error,
    },
    /// The array does not fit in memory.
    OutOfMemory {
        /// The file.
        path: PathBuf,
        /// How much is missing.
        error: ArrayError,
    },
}

impl NpyError {
    /// Its page in the error index.
    pub fn code(&self) -> Code {
        match self {
            NpyError::NotAnArray { .. } => Code::E0405,
            // A name that names nothing is the caller's mistake, not the machine's.
            NpyError::Io { action: "read", error, .. } if error.kind() == io::ErrorKind::NotFound => Code::E0405,
            NpyError::Io { .. } => Code::E0603,
            NpyError::OutOfMemory { .. } => Code::E0408,
        }
    }
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NpyError::NotAnArray { path, why } => write!(f, "{} is not an array: {why}", path.display()),
            NpyError::Io { action, path, error } => write!(f, "cannot {action} {}: {error}", path.display()),
            NpyError::OutOfMemory { path, error } => write!(f, "{} does not fit in memory: {error}", path.display()),
        }
    }
}

impl std::error::Error for NpyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NpyError::NotAnArray { .. } => None,
            NpyError::Io { error, .. } => Some(error),
            NpyError::OutOfMemory { error, .. } => Some(error),
        }
    }
}

/// The same before the path is known.
enum Fault {
    NotAnArray(String),
    Io(io::Error),
    OutOfMemory(ArrayError),
}

impl Fault {
    fn at(self, action: &'static str, path: &Path) -> NpyError {
        let path = path.to_path_buf();
        match self {
            Fault::NotAnArray(why) => NpyError::NotAnArray { path, why },
            Fault::Io(error) => NpyError::Io { action, path, error },
            Fault::OutOfMemory(error) => NpyError::OutOfMemory { path, error },
        }
    }
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::NotAnArray(why.into()))
}

impl From<io::Error> for Fault {
    /// What the system says has a number of the system's. The rest was found in the data: it ends early, or does not
    /// unpack.
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            _ if error.raw_os_error().is_some() => Fault::Io(error),
            io::ErrorKind::UnexpectedEof => Fault::NotAnArray("it ends in the middle".into()),
            _ => Fault::NotAnArray(error.to_string()),
        }
    }
}

impl From<ZipError> for Fault {
    fn from(error: ZipError) -> Fault {
        match error {
            ZipError::Io(error) => error.into(),
            other => Fault::NotAnArray(other.to_string()),
        }
    }
}

impl From<ArrayError> for Fault {
    fn from(error: ArrayError) -> Fault {
        Fault::OutOfMemory(error)
    }
}

/// Reads the array in a `.npy` file.
///
/// # Errors
/// If it is not a regular file, not a whole array of a known element type, or does not fit in memory.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Array, NpyError> {
    let path = path.as_ref();
    let read = || {
        let (file, length) = open(path)?;
        read_array(&mut BufReader::new(file), length)
    };
    read().map_err(|fault: Fault| fault.at("read", path))
}

/// Reads the array with a name from a `.npz` archive. As in NumPy, the array `x` is the entry `x.npy`.
///
/// # Errors
/// As for [`read_npy`], and if there is no such entry: the message lists those there are.
pub fn read_npz(path: impl AsRef<Path>, key: &str) -> Result<Array, NpyError> {
    let path = path.as_ref();
    let read = || {
        let (file, length) = open(path)?;
        let mut archive = ZipArchive::new(BufReader::new(file))?;
        let Some(index) = archive.index_for_name(&format!("{key}.npy")).or_else(|| archive.index_for_name(key)) else {
            return refuse(format!("it has no array `{key}`; it has {}", list_keys(&archive)));
        };
        let mut entry = archive.by_index(index)?;
        let in_entry = |fault| match fault {
            Fault::NotAnArray(why) => Fault::NotAnArray(format!("in the entry `{key}`: {why}")),
            other => other,
        };
        let (packed, unpacked) = (entry.compressed_size(), entry.size());
        let possible = match entry.compression() {
            CompressionMethod::Stored => packed,
            _ => packed.saturating_mul(MAX_DEFLATE_RATIO),
        };
        if packed > length || unpacked > possible {
            return refuse(format!("the entry `{key}` claims {unpacked} bytes, which it cannot hold"));
        }
        let array = read_array(&mut entry, unpacked).map_err(in_entry)?;
        // The checksum is compared when the end is reached, and nothing may follow.
        let beyond = entry.read(&mut [0]).map_err(|error| in_entry(error.into()))?;
        if beyond > 0 { refuse(format!("the entry `{key}` is longer than it claims")) } else { Ok(array) }
    };
    read().map_err(|fault: Fault| fault.at("read", path))
}

/// Opens a file whose length is known. A pipe has none, and opening one may wait for ever.
fn open(path: &Path) -> Result<(File, u64), Fault> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return refuse("it is not a regular file");
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The first few names in an archive, for a message.
fn list_keys<R: Read + io::Seek>(archive: &ZipArchive<R>) -> String {
    const SHOWN: usize = 20;
    let names = archive.file_names().take(SHOWN).filter_map(Result::ok);
    let names: Vec<String> = names.map(|name| format!("`{}`", name.strip_suffix(".npy").unwrap_or(&name))).collect();
    match archive.len() {
        0 => "none".into(),
        count if count > SHOWN => format!("{} and {} more", names.join(", "), count - SHOWN),
        _ => names.join(", "),
    }
}

/// What a header says.
#[derive(PartialEq, Debug)]
struct Header {
    elem: ElemType,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads an array that takes exactly `length` bytes with its header.
fn read_array(from: &mut impl Read, length: u64) -> Result<Array, Fault> {
    let mut start = [0; 8];
    if length < start.len() as u64 {
        return refuse(format!("an array begins with {} bytes of header, the file has {length}", start.len()));
    }
    from.read_exact(&mut start)?;
    if !start.starts_with(MAGIC) {
        return refuse("it does not begin like a .npy file");
    }
    let (major, minor) = (start[6], start[7]);
    let (width, header_length) = match (major, minor) {
        (1, 0) => {
            let mut bytes = [0; 2];
            from.read_exact(&mut bytes)?;
            (2, usize::from(u16::from_le_bytes(bytes)))
        }
        (2 | 3, 0) => {
            let mut bytes = [0; 4];
            from.read_exact(&mut bytes)?;
            (4, u32::from_le_bytes(bytes) as usize)
        }
        _ => return refuse(format!("it has version {major}.{minor} of the format; 1.0, 2.0 and 3.0 are read")),
    };
    if header_length > MAX_HEADER {
        return refuse(format!("it claims a header of {header_length} bytes; at most {MAX_HEADER} are read"));
    }
    let offset = (start.len() + width + header_length) as u64;
    let Some(data_length) = length.checked_sub(offset) else {
        return refuse(format!("its header ends after {offset} bytes, but the file has {length}"));
    };
    let mut text = vec![0; header_length];
    from.read_exact(&mut text)?;
    let header = HeaderParser { text: &text, at: 0 }.header()?;

    let count = header.shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size as u64));
    let promised = count.and_then(|count| count.checked_mul(header.elem.bytes() as u64));
    if promised != Some(data_length) {
        let promised = promised.map_or("more than 2^64".to_string(), |bytes| bytes.to_string());
        let Header { elem, shape, .. } = &header;
        return refuse(format!("{elem}{shape:?} has {promised} bytes of data, but the file has {data_length}"));
    }
    // A sparse file or a well compressed one may be larger than memory. Fortran order needs room for a second copy.
    let needed = if header.fortran { data_length.saturating_mul(2) } else { data_length };
    let available = available_bytes();
    if available.is_some_and(|available| needed > available) {
        return Err(ArrayError::OutOfMemory { bytes: needed, available }.into());
    }

    let mut array = Array::zeros(header.elem, &header.shape)?;
    from.read_exact(array.bytes_mut())?;
    if !array.has_valid_bools() {
        // Dropped with its forbidden bytes unseen.
        return refuse("it has truth values that are neither 0 nor 1");
    }
    if header.big_endian != cfg!(target_endian = "big") {
        array.bytes_mut().chunks_exact_mut(header.elem.bytes()).for_each(<[u8]>::reverse);
    }
    if header.fortran { row_major(array) } else { Ok(array) }
}

/// An array whose memory is in column-major order, brought into row-major order.
fn row_major(columns: Array) -> Result<Array, Fault> {
    let shape = columns.shape();
    // With at most one dimension of more than one element, the orders agree.
    if columns.is_empty() || shape.iter().filter(|&&size| size > 1).count() < 2 {
        return Ok(columns);
    }
    let mut rows = Array::zeros(columns.elem(), shape)?;
    let width = columns.elem().bytes();
    // How far apart neighbours along each dimension are, in bytes.
    let strides: Vec<usize> =
        shape.iter().scan(width, |stride, &size| Some(std::mem::replace(stride, *stride * size))).collect();
    let from = columns.bytes();
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    for element in rows.bytes_mut().chunks_exact_mut(width) {
        element.copy_from_slice(&from[at..at + width]);
        // The next index in row-major order: the last dimension runs fastest.
        for (axis, i) in index.iter_mut().enumerate().rev() {
            *i += 1;
            at += strides[axis];
            if *i < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            *i = 0;
        }
    }
    Ok(rows)
}

/// A parser of headers: a Python dictionary with three entries in any order, and white space.
///
/// ```text
/// header ::= "{" (entry ("," entry)* ","?)? "}"
/// entry  ::= 'descr' ":" string | 'fortran_order' ":" ("True" | "False") | 'shape' ":" tuple
/// tuple  ::= "(" (number ("," number)* ","?)? ")"
/// ```
struct HeaderParser<'t> {
    text: &'t [u8],
    at: usize,
}

impl HeaderParser<'_> {
    fn header(mut self) -> Result<Header, Fault> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.eat("}") {
            let key = self.string()?;
            self.expect(":")?;
            let repeated = match key.as_str() {
                "descr" => descr.replace(self.descr()?).is_some(),
                "fortran_order" => fortran.replace(self.truth()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                _ => return refuse(format!("its header has an unknown key `{}`", shortened(key.as_bytes()))),
            };
            if repeated {
                return refuse(format!("its header has the key `{key}` twice"));
            }
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        self.skip_space();
        if self.at < self.text.len() {
            return self.unexpected("the end of the header");
        }
        match (descr, fortran, shape) {
            (Some((elem, big_endian)), Some(fortran), Some(shape)) => Ok(Header { elem, big_endian, fortran, shape }),
            _ => refuse("its header lacks one of the keys `descr`, `fortran_order`, `shape`"),
        }
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(token.as_bytes());
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), Fault> {
        if self.eat(token) { Ok(()) } else { self.unexpected(&format!("`{token}`")) }
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T, Fault> {
        let found = shortened(&self.text[self.at..]);
        refuse(format!("its header should have {wanted} at byte {}, but goes on with `{found}`", self.at))
    }

    /// A quoted string without escapes: no key or element type that is read needs them.
    fn string(&mut self) -> Result<String, Fault> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let Some(&quote @ (b'\'' | b'"')) = rest.first() else { return self.unexpected("a string") };
        let Some(length) = rest[1..].iter().position(|&byte| byte == quote) else {
            return self.unexpected("a string that ends");
        };
        self.at += length + 2;
        Ok(String::from_utf8_lossy(&rest[1..=length]).into_owned())
    }

    fn truth(&mut self) -> Result<bool, Fault> {
        if self.eat("True") {
            Ok(true)
        } else if self.eat("False") {
            Ok(false)
        } else {
            self.unexpected("`True` or `False`")
        }
    }

    fn tuple(&mut self) -> Result<Vec<usize>, Fault> {
        let mut sizes = Vec::new();
        self.expect("(")?;
        while !self.eat(")") {
            sizes.push(self.number()?);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(sizes)
    }

    fn number(&mut self) -> Result<usize, Fault> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let digits = &rest[..rest.iter().take_while(|byte| byte.is_ascii_digit()).count()];
        if digits.is_empty() {
            return self.unexpected("a size");
        }
        let value = digits
            .iter()
            .try_fold(0usize, |value, digit| value.checked_mul(10)?.checked_add(usize::from(digit - b'0')));
        let Some(value) = value else { return self.unexpected("a size below 2^64") };
        self.at += digits.len();
        // Python 2 wrote `3L`.
        let _ = self.eat("L");
        Ok(value)
    }

    /// The element type, and whether its bytes are in big-endian order.
    fn descr(&mut self) -> Result<(ElemType, bool), Fault> {
        self.skip_space();
        if matches!(self.text.get(self.at), Some(b'[' | b'(')) {
            return refuse(format!("its elements are structured (`{}`); {KNOWN}", shortened(&self.text[self.at..])));
        }
        let descr = self.string()?;
        let (order, kind) = descr.split_at_checked(1).unwrap_or(("", ""));
        let elem = match kind {
            "f4" => ElemType::F32,
            "f8" => ElemType::F64,
            "i4" => ElemType::I32,
            "i8" => ElemType::I64,
            "u1" => ElemType::U8,
            "b1" => ElemType::Bool,
            _ => {
                let name = dtype_name(kind).map(|name| format!(", {name}")).unwrap_or_default();
                return refuse(format!("its elements are of type `{}`{name}; {KNOWN}", shortened(descr.as_bytes())));
            }
        };
        match order {
            "<" => Ok((elem, false)),
            ">" => Ok((elem, true)),
            "=" => Ok((elem, cfg!(target_endian = "big"))),
            "|" if elem.bytes() == 1 => Ok((elem, false)),
            _ => refuse(format!("its element type `{}` has no byte order", shortened(descr.as_bytes()))),
        }
    }
}

const KNOWN: &str = "f32, f64, i32, i64, u8 and bool are read";

/// What NumPy calls a type that is not read here.
fn dtype_name(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "f2" => "float16",
        "f12" | "f16" => "longdouble",
        "c8" => "complex64",
        "c16" => "complex128",
        "c24" | "c32" => "clongdouble",
        "i1" => "int8",
        "i2" => "int16",
        "u2" => "uint16",
        "u4" => "uint32",
        "u8" => "uint64",
        _ => match kind.as_bytes().first()? {
            b'O' => "Python objects",
            b'S' | b'a' => "byte strings",
            b'U' => "strings",
            b'V' => "structured or raw data",
            b'M' => "datetime64",
            b'm' => "timedelta64",
            _ => return None,
        },
    })
}

/// The beginning of a text that may be anything, for a message.
fn shortened(text: &[u8]) -> String {
    const SHOWN: usize = 40;
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    let shown = shown.trim_end().replace(char::is_control, "\u{fffd}");
    let more = if text.len() > SHOWN { "…" } else { "" };
    format!("{shown}{more}")
}

/// Writes an array as a `.npy` file.
///
/// # Errors
/// If the system refuses; then nothing was written.
pub fn write_npy(path: impl AsRef<Path>, array: &Array) -> Result<(), NpyError> {
    let path = path.as_ref();
    write_atomically(path, |out| write_array(out, array)).map_err(|error| NpyError::Io {
        action: "write",
        path: path.to_path_buf(),
        error,
    })
}

/// Writes named arrays as a `.npz` archive, in this order.
///
/// # Errors
/// If the system refuses, or two arrays have the same name; then nothing was written.
pub fn write_npz(path: impl AsRef<Path>, arrays: &[(&str, &Array)]) -> Result<(), NpyError> {
    let path = path.as_ref();
    let write = |out: &mut dyn WriteSeek| -> Result<(), io::Error> {
        let mut archive = ZipWriter::new(out);
        for (name, array) in arrays {
            // Some slack for the header decides whether sizes need 64 bits.
            let large = array.bytes().len() as u64 + MAX_HEADER as u64 > u64::from(u32::MAX);
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
            archive.start_file(format!("{name}.npy"), options)?;
            write_array(&mut archive, array)?;
        }
        archive.finish()?;
        Ok(())
    };
    write_atomically(path, |out| write(out)).map_err(|error| NpyError::Io {
        action: "write",
        path: path.to_path_buf(),
        error,
    })
}

/// What an archive is written to.
trait WriteSeek: Write + io::Seek {}
impl<W: Write + io::Seek> WriteSeek for W {}

/// The header, padded with spaces so that the data begins at a multiple of 64 bytes, and the data.
fn write_array(out: &mut impl Write, array: &Array) -> io::Result<()> {
    let order = match array.elem().bytes() {
        1 => '|',
        _ if cfg!(target_endian = "big") => '>',
        _ => '<',
    };
    let kind = match array.elem() {
        ElemType::F32 => "f4",
        ElemType::F64 => "f8",
        ElemType::I32 => "i4",
        ElemType::I64 => "i8",
        ElemType::U8 => "u1",
        ElemType::Bool => "b1",
    };
    // A comma after every size: `(3,)` needs it, the others may have it.
    let shape: String = array.shape().iter().map(|size| format!("{size}, ")).collect();
    let shape = if array.shape().len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let dictionary = format!("{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The smallest header that holds the dictionary and a line end after `before` bytes.
    let padded = |before: usize| (before + dictionary.len() + 1).next_multiple_of(64) - before;
    let mut header = MAGIC.to_vec();
    let length = match u16::try_from(padded(10)) {
        Ok(length) => {
            header.extend([1, 0]);
            header.extend(length.to_le_bytes());
            usize::from(length)
        }
        Err(_) => {
            let length =
                u32::try_from(padded(12)).map_err(|_| io::Error::other("the shape has too many dimensions"))?;
            header.extend([2, 0]);
            header.extend(length.to_le_bytes());
            length as usize
        }
    };
    header.extend(dictionary.bytes());
    header.extend(std::iter::repeat_n(b' ', length - dictionary.len() - 1));
    header.push(b'\n');
    out.write_all(&header)?;
    out.write_all(array.bytes())
}

#[cfg(test)]
mod tests;
