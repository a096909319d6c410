//! The measured implementations, ours and others.

use crate::pass::Pass;

/// An implementation that computes `fill` private operations at a time.
pub(crate) struct Contender<'a> {
    pub(crate) name: String,
    pub(crate) is_rival: bool,
    pub(crate) fill: usize,
    pub(crate) run: Box<dyn FnMut() + 'a>,
}

/// One operation of a library; `None` if the library is not available.
pub(crate) type Run<'a> = Option<Box<dyn FnMut() + 'a>>;

/// Returns the available libraries, in this order.
pub(crate) fn rivals<'a>(
    pass: Pass,
    runs: impl IntoIterator<Item = (&'static str, Run<'a>)>,
) -> Vec<Contender<'a>> {
    let present = runs.into_iter().filter_map(|(name, run)| Some((name, run?)));
    present.map(|(name, run)| Contender { name: pass.name_of(name), is_rival: true, fill: 1, run }).collect()
}
