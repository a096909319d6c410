//! What is measured, ours and others.

use crate::pass::Pass;

/// Something that computes `fill` private operations at a time.
pub(crate) struct Contender<'a> {
    pub(crate) name: String,
    pub(crate) is_rival: bool,
    pub(crate) fill: usize,
    pub(crate) run: Box<dyn FnMut() + 'a>,
}

/// One operation of a library; `None` where the library is not there.
pub(crate) type Run<'a> = Option<Box<dyn FnMut() + 'a>>;

/// The libraries that are there, in this order.
pub(crate) fn rivals<'a>(
    pass: Pass,
    runs: impl IntoIterator<Item = (&'static str, Run<'a>)>,
) -> Vec<Contender<'a>> {
    let present = runs.into_iter().filter_map(|(name, run)| Some((name, run?)));
    present.map(|(name, run)| Contender { name: pass.name_of(name), is_rival: true, fill: 1, run }).collect()
}
