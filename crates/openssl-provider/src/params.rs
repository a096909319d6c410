//! Parameters that OpenSSL passes and requests (`OSSL_PARAM(3)`).

use crate::abi::{
    PARAM_BYTES, PARAM_BYTES_PTR, PARAM_INTEGER, PARAM_TEXT, PARAM_TEXT_PTR, PARAM_UNSIGNED, Param,
};
use std::{
    ffi::{CStr, c_void},
    marker::PhantomData,
    slice,
};
use zeroize::Zeroizing;

/// `OSSL_PARAM_UNMODIFIED`: the parameter has not been set.
const UNMODIFIED: usize = usize::MAX;

/// The read-only fields of an entry; `returned` is written through a raw pointer.
struct Entry {
    key: *const std::ffi::c_char,
    data_type: u32,
    data: *mut c_void,
    size: usize,
}

/// A list of parameters, terminated by an entry without a name.
#[derive(Clone, Copy)]
pub(crate) struct Params<'a> {
    first: *const Param,
    list: PhantomData<&'a Param>,
}

/// One parameter.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a>(*mut Param, PhantomData<&'a Param>);

impl<'a> Params<'a> {
    /// # Safety
    /// `first` is null, or starts a list of `OSSL_PARAM` that is alive for `'a` and correctly describes its data.
    pub(crate) unsafe fn new(first: *const Param) -> Self {
        Self { first, list: PhantomData }
    }

    /// Returns the parameter of this name.
    pub(crate) fn get(self, name: &CStr) -> Option<Value<'a>> {
        self.iter().find(|value| value.is_named(name))
    }

    /// Iterates over all parameters.
    pub(crate) fn iter(self) -> impl Iterator<Item = Value<'a>> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            // SAFETY: `new` guarantees entries up to the one without a name.
            let is_last = unsafe { next.as_ref()? }.key.is_null();
            if is_last {
                return None;
            }
            let value = Value(next.cast_mut(), PhantomData);
            // SAFETY: that was not the last entry.
            next = unsafe { next.add(1) };
            Some(value)
        })
    }

    /// Sets the parameter of this name if it is requested. Returns false if the value does not fit.
    pub(crate) fn answer(self, name: &CStr, answer: Answer<'_>) -> bool {
        self.get(name).is_none_or(|value| value.set(answer))
    }
}

/// Value returned for a request.
#[derive(Clone, Copy)]
pub(crate) enum Answer<'a> {
    Number(usize),
    /// A number, big-endian.
    Large(&'a [u8]),
    Text(&'a CStr),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn param(self) -> Entry {
        // SAFETY: it is an entry of a list that is alive, as `new` guarantees.
        let param = unsafe { &*self.0 };
        Entry { key: param.key, data_type: param.data_type, data: param.data, size: param.size }
    }

    pub(crate) fn is_named(self, name: &CStr) -> bool {
        // SAFETY: a name is a C string.
        unsafe { CStr::from_ptr(self.param().key) == name }
    }

    /// Returns the value as text.
    pub(crate) fn text(self) -> Option<&'a str> {
        let bytes = match self.param().data_type {
            PARAM_TEXT => self.raw()?,
            PARAM_TEXT_PTR => {
                // SAFETY: for this type, `data` points to a pointer to a C string.
                let text = unsafe { *(self.param().data.cast::<*const std::ffi::c_char>().as_ref()?) };
                if text.is_null() {
                    return None;
                }
                // SAFETY: see above.
                unsafe { CStr::from_ptr(text) }.to_bytes()
            }
            _ => return None,
        };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).ok()
    }

    /// Returns the value as bytes.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self.param().data_type {
            PARAM_BYTES => self.raw(),
            PARAM_BYTES_PTR => {
                // SAFETY: for this type, `data` points to a pointer to `size` bytes.
                let bytes = unsafe { *(self.param().data.cast::<*const u8>().as_ref()?) };
                // SAFETY: see above.
                (!bytes.is_null()).then(|| unsafe { slice::from_raw_parts(bytes, self.param().size) })
            }
            _ => None,
        }
    }

    /// Returns the value as an integer of at most this machine's word size; `None` if negative.
    pub(crate) fn number(self) -> Option<u64> {
        let negative = || self.param().data_type == PARAM_INTEGER && self.raw().is_some_and(is_negative);
        match self.param().data_type {
            PARAM_INTEGER | PARAM_UNSIGNED if !negative() => {
                let mut number = [0; 8];
                for (index, byte) in self.raw()?.iter().enumerate() {
                    match number.get_mut(index) {
                        Some(place) => *place = *byte,
                        None if *byte != 0 => return None,
                        None => {}
                    }
                }
                Some(u64::from_le_bytes(number))
            }
            _ => None,
        }
    }

    /// Returns the value as a signed integer.
    pub(crate) fn signed(self) -> Option<i64> {
        match self.number() {
            Some(number) => i64::try_from(number).ok(),
            None if self.param().data_type == PARAM_INTEGER => match *self.raw()? {
                [a, b, c, d] => Some(i32::from_ne_bytes([a, b, c, d]).into()),
                [a, b, c, d, e, f, g, h] => Some(i64::from_ne_bytes([a, b, c, d, e, f, g, h])),
                _ => None,
            },
            None => None,
        }
    }

    /// Returns the match among values that OpenSSL passes as numbers or as texts.
    pub(crate) fn among<T: Copy>(self, known: &[(T, i64, &CStr)]) -> Option<T> {
        let (number, text) = (self.signed(), self.text());
        let is = |(_, known, name): &&(T, i64, &CStr)| {
            number == Some(*known) || text.is_some_and(|text| text.as_bytes() == name.to_bytes())
        };
        known.iter().find(is).map(|(thing, ..)| *thing)
    }

    /// Returns a large number, big-endian. It may be secret.
    pub(crate) fn large(self) -> Option<Zeroizing<Vec<u8>>> {
        if self.param().data_type != PARAM_UNSIGNED {
            return None;
        }
        let mut number = Zeroizing::new(self.raw()?.to_vec());
        number.reverse();
        Some(number)
    }

    fn raw(self) -> Option<&'a [u8]> {
        if self.param().data.is_null() {
            return (self.param().size == 0).then_some(&[]);
        }
        // SAFETY: `data` has `size` bytes.
        Some(unsafe { slice::from_raw_parts(self.param().data.cast::<u8>(), self.param().size) })
    }

    fn set(self, answer: Answer<'_>) -> bool {
        match (answer, self.param().data_type) {
            (Answer::Number(number), PARAM_INTEGER | PARAM_UNSIGNED) => {
                self.fill_number(&number.to_le_bytes())
            }
            (Answer::Large(number), PARAM_UNSIGNED) => {
                let mut number = Zeroizing::new(number.to_vec());
                number.reverse();
                self.fill_number(&number)
            }
            (Answer::Text(text), PARAM_TEXT) => {
                let bytes = text.to_bytes();
                // The terminating zero is included if there is room.
                let fits = self.param().data.is_null() || self.param().size >= bytes.len();
                let shown = if self.param().size > bytes.len() { text.to_bytes_with_nul() } else { bytes };
                if !fits || !self.write(shown) {
                    return false;
                }
                self.set_returned(bytes.len());
                true
            }
            (Answer::Text(text), PARAM_TEXT_PTR) => {
                if self.param().data.is_null() {
                    return false;
                }
                // SAFETY: for this type, `data` points to a pointer; callers pass texts that outlive the provider.
                unsafe { self.param().data.cast::<*const std::ffi::c_char>().write(text.as_ptr()) };
                self.set_returned(text.to_bytes().len());
                true
            }
            (Answer::Bytes(bytes), PARAM_BYTES) => self.fill(bytes),
            _ => false,
        }
    }

    /// Writes a number, little-endian, zero-padded to the caller's size.
    fn fill_number(self, number: &[u8]) -> bool {
        let size = self.param().size;
        let used = number.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        if self.param().data.is_null() || used > size {
            self.set_returned(used);
            return self.param().data.is_null();
        }
        let mut padded = Zeroizing::new(vec![0; size]);
        let used = used.min(number.len());
        padded[..used].copy_from_slice(&number[..used]);
        self.set_returned(size);
        self.write(&padded)
    }

    /// Writes bytes if they fit.
    fn fill(self, bytes: &[u8]) -> bool {
        self.set_returned(bytes.len());
        self.write(bytes)
    }

    fn write(self, bytes: &[u8]) -> bool {
        if self.param().data.is_null() {
            return true;
        }
        if bytes.len() > self.param().size {
            return false;
        }
        // SAFETY: `data` has `size` writable bytes, and they are not ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.param().data.cast::<u8>(), bytes.len()) };
        true
    }

    fn set_returned(self, length: usize) {
        // SAFETY: the caller's list is an output, with no other users during the call.
        unsafe { (&raw mut (*self.0).returned).write(length) };
    }
}

fn is_negative(bytes: &[u8]) -> bool {
    bytes.last().is_some_and(|last| last & 0x80 != 0)
}

/// Builds a list of parameters to pass to OpenSSL.
#[derive(Default)]
pub(crate) struct Builder {
    params: Vec<Param>,
    /// Numbers, in native byte order.
    numbers: Vec<Zeroizing<Vec<u8>>>,
}

impl Builder {
    /// Adds a number; `number` is big-endian.
    pub(crate) fn large(mut self, name: &'static CStr, number: &[u8]) -> Self {
        let mut reversed = Zeroizing::new(number.to_vec());
        reversed.reverse();
        self.add(name, PARAM_UNSIGNED, reversed.as_ptr().cast_mut().cast(), reversed.len());
        self.numbers.push(reversed);
        self
    }

    pub(crate) fn integer(mut self, name: &'static CStr, number: i32) -> Self {
        let bytes = Zeroizing::new(number.to_ne_bytes().to_vec());
        self.add(name, PARAM_INTEGER, bytes.as_ptr().cast_mut().cast(), bytes.len());
        self.numbers.push(bytes);
        self
    }

    pub(crate) fn text(mut self, name: &'static CStr, text: &'static CStr) -> Self {
        self.add(name, PARAM_TEXT, text.as_ptr().cast_mut().cast(), text.to_bytes().len());
        self
    }

    pub(crate) fn bytes(mut self, name: &'static CStr, bytes: &[u8]) -> Self {
        let copy = Zeroizing::new(bytes.to_vec());
        self.add(name, PARAM_BYTES, copy.as_ptr().cast_mut().cast(), copy.len());
        self.numbers.push(copy);
        self
    }

    /// Adds bytes without copying them, which OpenSSL may pass on to a function that changes them. They must live until
    /// [`with`](Self::with) returns.
    pub(crate) fn lent(mut self, name: &'static CStr, bytes: *mut c_void, size: usize) -> Self {
        self.add(name, PARAM_BYTES, bytes, size);
        self
    }

    /// Calls `use_them` with the list.
    pub(crate) fn with<T>(mut self, use_them: impl FnOnce(*const Param) -> T) -> T {
        self.params.push(end());
        use_them(self.params.as_ptr())
    }

    fn add(&mut self, name: &'static CStr, data_type: u32, data: *mut c_void, size: usize) {
        self.params.push(Param { key: name.as_ptr(), data_type, data, size, returned: UNMODIFIED });
    }
}

/// Describes a gettable or settable parameter.
pub(crate) const fn described(name: &'static CStr, data_type: u32) -> Param {
    Param { key: name.as_ptr(), data_type, data: std::ptr::null_mut(), size: 0, returned: UNMODIFIED }
}

/// Terminates a list.
pub(crate) const fn end() -> Param {
    Param { key: std::ptr::null(), data_type: 0, data: std::ptr::null_mut(), size: 0, returned: 0 }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Builder, Params, UNMODIFIED, end};
    use crate::abi::{PARAM_BYTES, PARAM_INTEGER, PARAM_TEXT, PARAM_UNSIGNED, Param};
    use std::ffi::CStr;

    const NAME: &CStr = c"name";

    fn ask(data_type: u32, room: &mut [u8], answer: Answer<'_>) -> (bool, usize) {
        let data = room.as_mut_ptr().cast();
        let asked = Param { key: NAME.as_ptr(), data_type, data, size: room.len(), returned: UNMODIFIED };
        let mut list = [asked, end()];
        // SAFETY: the list is above, and is terminated.
        let answered = unsafe { Params::new(list.as_mut_ptr()) }.answer(NAME, answer);
        (answered, list[0].returned)
    }

    #[test]
    fn what_is_built_is_read() {
        let built = Builder::default()
            .large(c"n", &[1, 2, 3])
            .integer(c"i", -2)
            .text(c"t", c"text")
            .bytes(c"b", &[0, 9]);
        built.with(|first| {
            // SAFETY: `with` lends a list.
            let params = unsafe { Params::new(first) };
            assert_eq!(&**params.get(c"n").unwrap().large().unwrap(), &[1, 2, 3]);
            assert_eq!(params.get(c"n").unwrap().number(), Some(0x01_02_03));
            assert_eq!(params.get(c"i").unwrap().signed(), Some(-2));
            assert_eq!(params.get(c"i").unwrap().number(), None);
            assert_eq!(params.get(c"t").unwrap().text(), Some("text"));
            assert_eq!(params.get(c"b").unwrap().bytes(), Some(&[0, 9][..]));
            assert!(params.get(c"b").unwrap().text().is_none() && params.get(c"x").is_none());
        });
    }

    #[test]
    fn answers_fit_or_say_how_much_they_need() {
        let mut four = [0xff; 4];
        assert_eq!(ask(PARAM_INTEGER, &mut four, Answer::Number(2048)), (true, 4));
        assert_eq!(four, 2048_i32.to_ne_bytes());
        let mut two = [0; 2];
        assert_eq!(ask(PARAM_UNSIGNED, &mut two, Answer::Large(&[1, 0, 0])), (false, 3));
        let mut text = [0xff; 5];
        assert_eq!(ask(PARAM_TEXT, &mut text, Answer::Text(c"abcd")), (true, 4));
        assert_eq!(&text, b"abcd\0");
        assert_eq!(ask(PARAM_BYTES, &mut [0; 1], Answer::Bytes(&[1, 2])), (false, 2));
        assert!(!ask(PARAM_BYTES, &mut [0; 8], Answer::Text(c"x")).0, "type mismatch");
    }
}
