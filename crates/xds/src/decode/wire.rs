//! Protobuf's wire format: reads fields from bytes, without allocating.

use super::error::Fault;

/// Content of a field, by its wire type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// Iterates over the fields of a message.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the number and content of the next field.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Raw<'a>)>, Fault> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = varint(&mut self.0)?;
        let number = u32::try_from(key >> 3).ok().filter(|&number| number > 0 && number <= MAX_NUMBER);
        let number = number.ok_or(Fault::Malformed("a field number is out of range"))?;
        let raw = match key & 7 {
            0 => Raw::Varint(varint(&mut self.0)?),
            1 => Raw::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = varint(&mut self.0)?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                Raw::Bytes(self.take(length)?)
            }
            5 => Raw::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Fault::Malformed("a field has a wire type that is not in proto3")),
        };
        Ok(Some((number, raw)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Fault::CutShort)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Fault::CutShort)?;
        self.0 = rest;
        Ok(*taken)
    }
}

/// Returns the next number of a packed field, in the wire type that it would have outside of one.
pub(super) fn unpack<'a>(bytes: &mut &'a [u8], like: Packed) -> Result<Option<Raw<'a>>, Fault> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut fields = Fields(bytes);
    let raw = match like {
        Packed::Varint => Raw::Varint(varint(&mut fields.0)?),
        Packed::Fixed64 => Raw::Fixed64(u64::from_le_bytes(fields.array()?)),
        Packed::Fixed32 => Raw::Fixed32(u32::from_le_bytes(fields.array()?)),
    };
    *bytes = fields.0;
    Ok(Some(raw))
}

/// Wire type of a packed field's items.
#[derive(Clone, Copy)]
pub(super) enum Packed {
    Varint,
    Fixed64,
    Fixed32,
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Fault> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            if index == 9 && byte > 1 {
                break;
            }
            *bytes = &bytes[index + 1..];
            return Ok(value);
        }
    }
    Err(if bytes.len() < 10 { Fault::CutShort } else { Fault::Malformed("a number is longer than 64 bits") })
}

/// Largest field number of the protobuf language.
const MAX_NUMBER: u32 = (1 << 29) - 1;
