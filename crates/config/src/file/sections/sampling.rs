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
        Key {
            name: "one_in",
            value: "count",
            preset: Preset::Is("64"),
            about: "Measures one handshake in this number, starting with the first, on each event loop. \
                    Measuring a handshake costs some 20 to 40 us of CPU; `1` measures all of them.",
            needs_restart: false,
            read: |field, sampling| field.set(&mut sampling.one_in, count),
            show: |sampling| sampling.one_in.get().into(),
        },
        Key {
            name: "per_second",
            value: "count",
            preset: Preset::Is("100"),
            about: "Maximum number of measured handshakes per second, on each event loop.",
            needs_restart: false,
            read: |field, sampling| field.set(&mut sampling.per_second, count),
            show: |sampling| sampling.per_second.get().into(),
        },
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
