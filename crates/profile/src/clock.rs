//! CPU time of the calling thread, and statistics of samples.

pub(crate) use quadrille_handshake_timing::thread_time;

/// Returns the median; of an even number of values, the greater of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
