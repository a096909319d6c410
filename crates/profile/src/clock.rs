//! CPU time of the calling thread, and what is made of many times.

pub(crate) use quadrille_handshake_timing::thread_time;

/// The middle value; of an even number, the greater of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
