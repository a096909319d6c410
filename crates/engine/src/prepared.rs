//! Values that backends have computed from one key, stored with it.

use std::{any::Any, sync::OnceLock};

/// Holds at most one value of each type, in the order of the first requests; dropped with the key.
#[derive(Default)]
pub(crate) struct Prepared(OnceLock<Box<Slot>>);

struct Slot {
    value: Box<dyn Any + Send + Sync>,
    next: Prepared,
}

impl Prepared {
    /// Returns the value of type `T`, computed by the first caller; others wait for it meanwhile.
    pub(crate) fn get_or_prepare<T: Any + Send + Sync>(&self, prepare: &dyn Fn() -> T) -> &T {
        let new = || Box::new(Slot { value: Box::new(prepare()), next: Self::default() });
        let slot = self.0.get_or_init(new);
        match slot.value.downcast_ref() {
            Some(value) => value,
            None => slot.next.get_or_prepare(prepare),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Prepared;
    use std::{cell::Cell, sync::Barrier};

    #[test]
    fn each_type_is_prepared_once() {
        let prepared = Prepared::default();
        let calls = Cell::new(0_u32);
        let count = || calls.replace(calls.get() + 1);
        assert_eq!(*prepared.get_or_prepare(&count), 0);
        assert_eq!(*prepared.get_or_prepare(&|| "text"), "text");
        assert_eq!(*prepared.get_or_prepare(&count), 0, "the first value is kept");
        assert_eq!(*prepared.get_or_prepare(&|| "other"), "text");
        assert_eq!(calls.get(), 1);
    }

    #[test]
    fn two_types_at_the_same_time() {
        for _ in 0..200 {
            let (prepared, start) = (Prepared::default(), Barrier::new(2));
            let (number, text) = std::thread::scope(|scope| {
                let number = scope.spawn(|| {
                    start.wait();
                    *prepared.get_or_prepare(&|| 7_u8)
                });
                start.wait();
                let text = *prepared.get_or_prepare(&|| "seven");
                (number.join().unwrap(), text)
            });
            assert_eq!((number, text), (7, "seven"));
        }
    }

    #[test]
    fn a_panic_while_preparing_leaves_the_place_free() {
        let prepared = Prepared::default();
        let panics = || -> u8 { panic!("on purpose") };
        let attempt =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *prepared.get_or_prepare(&panics)));
        assert!(attempt.is_err());
        assert_eq!(*prepared.get_or_prepare(&|| 7_u8), 7);
    }
}
