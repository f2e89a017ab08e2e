//! The head of a GGUF file (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>): key-value pairs, and the type, shape
//! and place of each tensor. candle's reader refuses files with tensor types that it does not know.

use std::collections::HashMap;

use candle_core::quantized::gguf_file::Value;

/// Maximum nesting of lists.
const MAX_DEPTH: usize = 64;
const MAX_DIMENSIONS: u32 = 4;
const DEFAULT_ALIGNMENT: usize = 32;

/// The head of a file.
pub(super) struct Head {
    pub metadata: HashMap<String, Value>,
    pub tensors: Vec<Tensor>,
    /// Where the bytes of tensors begin.
    pub data: usize,
}

/// A tensor as the head describes it.
pub(super) struct Tensor {
    pub name: String,
    /// ggml's number of the type.
    pub kind: u32,
    /// Rows first.
    pub shape: Vec<usize>,
    /// Of its bytes, from [`Head::data`].
    pub offset: usize,
}

/// What is wrong with a head.
type Result<T> = std::result::Result<T, String>;

/// Reads the head of a file.
pub(super) fn read(file: &[u8]) -> Result<Head> {
    let rest = file.strip_prefix(b"GGUF").ok_or("it does not begin with `GGUF`")?;
    let mut reader = Reader { rest, is_wide: true };
    let version = reader.u32()?;
    if !(1..=3).contains(&version) {
        return Err(format!("it is of version {version} of the format; versions 1 to 3 are known"));
    }
    reader.is_wide = version > 1;
    let (tensors, pairs) = (reader.length()?, reader.length()?);
    let mut metadata = HashMap::new();
    for _ in 0..pairs {
        let key = reader.text()?;
        let kind = reader.u32()?;
        metadata.insert(key, reader.value(kind, 0)?);
    }
    let tensors = (0..tensors).map(|_| reader.tensor()).collect::<Result<Vec<Tensor>>>()?;
    let alignment = match metadata.get("general.alignment") {
        Some(value) => super::whole_number(value).ok_or("its `general.alignment` is no number")?,
        None => DEFAULT_ALIGNMENT,
    };
    if alignment == 0 {
        return Err("its `general.alignment` is 0".into());
    }
    let data = (file.len() - reader.rest.len()).div_ceil(alignment).saturating_mul(alignment);
    Ok(Head { metadata, tensors, data })
}

/// What has not been read yet.
struct Reader<'a> {
    rest: &'a [u8],
    /// Since version 2 lengths have 64 bits.
    is_wide: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or("it is cut off in its head")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?.first_chunk::<N>();
        Ok(*taken.expect("as many bytes were taken"))
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn length(&mut self) -> Result<usize> {
        let length = if self.is_wide { self.u64()? } else { self.u32()?.into() };
        usize::try_from(length).map_err(|_| format!("it has the length {length}"))
    }

    /// Some writers end texts with zeros, and some texts are not valid UTF-8.
    fn text(&mut self) -> Result<String> {
        let length = self.length()?;
        Ok(String::from_utf8_lossy(self.take(length)?).trim_end_matches('\0').to_owned())
    }

    fn value(&mut self, kind: u32, depth: usize) -> Result<Value> {
        Ok(match kind {
            0 => Value::U8(u8::from_le_bytes(self.array()?)),
            1 => Value::I8(i8::from_le_bytes(self.array()?)),
            2 => Value::U16(u16::from_le_bytes(self.array()?)),
            3 => Value::I16(i16::from_le_bytes(self.array()?)),
            4 => Value::U32(self.u32()?),
            5 => Value::I32(i32::from_le_bytes(self.array()?)),
            6 => Value::F32(f32::from_le_bytes(self.array()?)),
            7 => Value::Bool(self.array::<1>()? != [0]),
            8 => Value::String(self.text()?),
            9 if depth < MAX_DEPTH => {
                let kind = self.u32()?;
                let length = self.length()?;
                // No value takes less than a byte, so nothing is allocated for a length that is not there.
                if length > self.rest.len() {
                    return Err("it is cut off in its head".into());
                }
                Value::Array((0..length).map(|_| self.value(kind, depth + 1)).collect::<Result<_>>()?)
            }
            9 => return Err(format!("its lists are nested more than {MAX_DEPTH} deep")),
            10 => Value::U64(self.u64()?),
            11 => Value::I64(i64::from_le_bytes(self.array()?)),
            12 => Value::F64(f64::from_le_bytes(self.array()?)),
            other => return Err(format!("it has a value of type {other}, which is unknown")),
        })
    }

    fn tensor(&mut self) -> Result<Tensor> {
        let name = self.text()?;
        let dimensions = self.u32()?;
        if dimensions > MAX_DIMENSIONS {
            return Err(format!("tensor `{name}` has {dimensions} dimensions; at most {MAX_DIMENSIONS} are possible"));
        }
        let mut shape = (0..dimensions).map(|_| self.length()).collect::<Result<Vec<usize>>>()?;
        shape.reverse();
        let kind = self.u32()?;
        let offset = usize::try_from(self.u64()?).map_err(|_| format!("tensor `{name}` is outside of it"))?;
        Ok(Tensor { name, kind, shape, offset })
    }
}
