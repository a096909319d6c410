//! What is measured, ours and others.

/// Something that computes `fill` private operations at a time.
pub(crate) struct Contender<'a> {
    pub(crate) name: String,
    pub(crate) is_rival: bool,
    pub(crate) fill: usize,
    pub(crate) run: Box<dyn FnMut() + 'a>,
}
