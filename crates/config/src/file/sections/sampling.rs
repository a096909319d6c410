//! Sampling of handshakes for measurement.

use crate::{
    Field,
    enums::switch,
    file::schema::{Key, Preset, Section},
    model::Sampling,
    values::count,
};

pub(super) const SAMPLING: Section<Sampling> = Section {
    path: "sampling",
    about: "Selects the handshakes that are measured message by message, for the CPU times in the metrics and on the \
            dashboard. Other handshakes cost nothing.",
    keys: &[
        Key::new(
            "one_in",
            "count",
            Preset::Is("64"),
            "Measures one handshake in this number, starting with the first, on each event loop. \
                    Measuring a handshake costs some 20 to 40 us of CPU; `1` measures all of them.",
            |field, sampling| field.set(&mut sampling.one_in, count),
            |sampling| sampling.one_in.get().into(),
        ),
        Key::new(
            "per_second",
            "count",
            Preset::Is("100"),
            "Maximum number of measured handshakes per second, on each event loop.",
            |field, sampling| field.set(&mut sampling.per_second, count),
            |sampling| sampling.per_second.get().into(),
        ),
    ],
};

/// Reads the sampling settings; `None` if no handshake is measured.
pub(super) fn sampling(field: &Field<'_>) -> Option<Sampling> {
    let mut sampling = Sampling::default();
    if field.is_scalar() {
        return field.parse(switch).unwrap_or(true).then_some(sampling);
    }
    SAMPLING.read(field, &mut sampling);
    Some(sampling)
}
