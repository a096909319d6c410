//! Fields that PHP's mcrypt extension has encrypted, for migration: to be read once, and never written.
//!
//! Nothing authenticates them: a wrong key gives wrong bytes instead of an error. So unless fields are said to be
//! binary, only what is UTF-8 text counts as read.

mod rijndael;

use crate::Error;
use base64ct::{Base64, Base64Unpadded, Encoding as _};
use rijndael::Rijndael;
use zeroize::Zeroizing;

/// How an application called mcrypt, and what it did with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McryptForm {
    /// Bytes of a block: 16 for MCRYPT_RIJNDAEL_128, 24 for 192, 32 for 256. The key's length is another matter.
    pub block: usize,
    /// The mode.
    pub mode: McryptMode,
    /// What fills the last block.
    pub padding: McryptPadding,
    /// How bytes are written.
    pub encoding: McryptEncoding,
    /// Whether fields may be anything but UTF-8 text.
    pub is_binary: bool,
}

/// A mode, by mcrypt's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McryptMode {
    /// MCRYPT_MODE_ECB.
    Ecb,
    /// MCRYPT_MODE_CBC.
    Cbc,
    /// MCRYPT_MODE_CFB, which is CFB with 8 bits.
    Cfb,
    /// `ncfb`: CFB with whole blocks.
    Ncfb,
}

/// What fills the last block of ECB and CBC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McryptPadding {
    /// Zero bytes, as mcrypt does by itself; zero bytes at the end of a field are lost.
    Zero,
    /// As many bytes as are missing, each their number: what applications added themselves (PKCS#7).
    Pkcs7,
}

/// How bytes are written in the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McryptEncoding {
    /// base64_encode, with or without padding.
    Base64,
    /// bin2hex.
    Hex,
    /// As they are.
    Raw,
}

/// Where the initialisation vector is.
pub enum McryptVector {
    /// In front of the ciphertext.
    Front,
    /// The same for all fields; empty for zeros, which PHP before 5.6 took for a missing one.
    Fixed(Vec<u8>),
}

/// Reads such fields; its key is erased when it is dropped.
pub struct Mcrypt {
    cipher: Rijndael,
    form: McryptForm,
    vector: McryptVector,
}

impl Mcrypt {
    /// A `key` of 1 to 32 bytes; one of no proper length is filled with zeros up to 16, 24 or 32, as PHP before 5.6
    /// did. [`Error::Mcrypt`] for any other, and for a vector that is not as long as a block.
    pub fn new(key: &[u8], form: McryptForm, vector: McryptVector) -> Result<Self, Error> {
        let length = match key.len() {
            1..=16 => 16,
            17..=24 => 24,
            25..=32 => 32,
            _ => return Err(Error::Mcrypt),
        };
        let vector = match vector {
            McryptVector::Fixed(bytes) if bytes.is_empty() => McryptVector::Fixed(vec![0; form.block]),
            McryptVector::Fixed(bytes) if bytes.len() != form.block => return Err(Error::Mcrypt),
            vector => vector,
        };
        if !matches!(form.block, 16 | 24 | 32) {
            return Err(Error::Mcrypt);
        }
        let mut padded = Zeroizing::new(vec![0; length]);
        padded[..key.len()].copy_from_slice(key);
        Ok(Self { cipher: Rijndael::new(&padded, form.block), form, vector })
    }

    /// The plaintext of a field; [`Error::Unreadable`] for whatever is wrong with it.
    pub fn decrypt(&self, field: &[u8]) -> Result<Vec<u8>, Error> {
        self.open(field).ok_or(Error::Unreadable)
    }

    /// Whether it tells a wrong key from the right one, by whether the result is text.
    pub fn reads_only_text(&self) -> bool {
        !self.form.is_binary
    }

    fn open(&self, field: &[u8]) -> Option<Vec<u8>> {
        let bytes = decode(field, self.form.encoding)?;
        let (vector, ciphertext) = match &self.vector {
            // ECB has none.
            _ if self.form.mode == McryptMode::Ecb => (&[][..], &bytes[..]),
            McryptVector::Front => bytes.split_at_checked(self.form.block)?,
            McryptVector::Fixed(vector) => (&vector[..], &bytes[..]),
        };
        let mut plain = Zeroizing::new(ciphertext.to_vec());
        match self.form.mode {
            McryptMode::Ecb | McryptMode::Cbc => {
                self.open_blocks(&mut plain, vector)?;
                let length = self.unpadded(&plain)?;
                plain.truncate(length);
            }
            McryptMode::Cfb => self.open_cfb(&mut plain, vector, 1),
            McryptMode::Ncfb => self.open_cfb(&mut plain, vector, self.form.block),
        }
        let is_read =
            self.form.is_binary || std::str::from_utf8(&plain).is_ok_and(|text| !text.contains('\0'));
        is_read.then(|| plain.to_vec())
    }

    /// Whole blocks only; `vector` is empty in ECB.
    fn open_blocks(&self, blocks: &mut [u8], vector: &[u8]) -> Option<()> {
        if blocks.is_empty() || !blocks.len().is_multiple_of(self.form.block) {
            return None;
        }
        let mut before = vector.to_vec();
        for block in blocks.chunks_exact_mut(self.cipher.block()) {
            let ciphertext = block.to_vec();
            self.cipher.decrypt(block);
            block.iter_mut().zip(&before).for_each(|(byte, before)| *byte ^= before);
            if self.form.mode == McryptMode::Cbc {
                before = ciphertext;
            }
        }
        Some(())
    }

    /// CFB: `width` bytes with each encryption of what came before them.
    fn open_cfb(&self, bytes: &mut [u8], vector: &[u8], width: usize) {
        let mut register = vector.to_vec();
        for part in bytes.chunks_mut(width) {
            let mut stream = Zeroizing::new(register.clone());
            self.cipher.encrypt(&mut stream);
            register.extend_from_slice(part);
            register.drain(..part.len());
            part.iter_mut().zip(stream.iter()).for_each(|(byte, stream)| *byte ^= stream);
        }
    }

    fn unpadded(&self, plain: &[u8]) -> Option<usize> {
        match self.form.padding {
            McryptPadding::Zero => Some(plain.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)),
            McryptPadding::Pkcs7 => {
                let padding = *plain.last()?;
                let length = plain.len().checked_sub(usize::from(padding))?;
                let is_whole = (1..=self.form.block).contains(&usize::from(padding));
                (is_whole && plain[length..].iter().all(|&byte| byte == padding)).then_some(length)
            }
        }
    }
}

fn decode(field: &[u8], encoding: McryptEncoding) -> Option<Vec<u8>> {
    let text = || std::str::from_utf8(field).ok().map(str::trim);
    match encoding {
        McryptEncoding::Raw => Some(field.to_vec()),
        McryptEncoding::Hex => base16ct::mixed::decode_vec(text()?).ok(),
        McryptEncoding::Base64 => {
            let text = text()?;
            Base64::decode_vec(text).or_else(|_| Base64Unpadded::decode_vec(text)).ok()
        }
    }
}
