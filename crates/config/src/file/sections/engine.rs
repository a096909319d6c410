//! Batching and computation of private-key operations.

use crate::{
    enums::{name, switch, word},
    file::{
        schema::{Key, Preset, Section},
        shown::{threads, time},
    },
    model::EngineSettings,
    values::{self, count, duration},
};

pub(super) const ENGINE: Section<EngineSettings> = Section {
    path: "engine",
    about: "Batching and computation of private-key operations. The defaults suit most machines: batches fill while the backend is busy.",
    keys: &[
        Key::at_restart(
            "backend",
            "`auto`, `gpu`, `lanes` or `scalar`",
            Preset::Is("auto"),
            "The backend that computes: `lanes` is the fastest that this CPU has (AVX-512 IFMA, eight RSA \
                    operations at once; AVX2, four; else `scalar`); `auto` adds an NVIDIA GPU, if there is one, for \
                    operations that would wait too long, and while CPU is scarce; `gpu` does not start without it; \
                    `scalar` is BoringSSL, one operation at a time.",
            |field, engine| field.set(&mut engine.backend, word),
            |engine| name(engine.backend).into(),
        ),
        Key::at_restart(
            "poll_delay",
            "duration",
            Preset::Is("0"),
            "Wait up to this long for a batch to fill, as Envoy's CryptoMB provider does. Adds up to this \
                    delay to every handshake on a quiet server; with `0`, `latency_budget` applies instead.",
            |field, engine| field.set(&mut engine.poll_delay, duration),
            |engine| time(engine.poll_delay),
        ),
        Key::at_restart(
            "latency_budget",
            "duration",
            Preset::Is("1ms"),
            "Maximum time that an operation waits for others to share a pass, while CPU is scarce; on a \
                    quiet server no operation waits. `0` never waits, at up to 1.8 times the CPU at half load.",
            |field, engine| field.set(&mut engine.latency_budget, duration),
            |engine| time(engine.latency_budget),
        ),
        Key::at_restart(
            "batch",
            "count",
            Preset::Is("8"),
            "Maximum number of operations in a batch, in whole passes of the backend (8 with AVX-512 IFMA, 4 \
                    with AVX2); with a `poll_delay`, a batch of this size does not wait for it.",
            |field, engine| field.set(&mut engine.batch, count),
            |engine| engine.batch.get().into(),
        ),
        Key::at_restart(
            "threads",
            "count, or `auto`",
            Preset::Is("auto"),
            "Compute threads; `auto` is one for each CPU. They compete with the event loops for the same CPUs.",
            |field, engine| field.set(&mut engine.threads, values::threads),
            |engine| threads(engine.threads),
        ),
        Key::at_restart(
            "queue",
            "count",
            Preset::Is("16384"),
            "Maximum number of waiting operations, in all queues together; beyond it, new ones are refused and \
                    their handshakes fail. A longer queue means a longer wait under overload, not more handshakes a \
                    second.",
            |field, engine| field.set(&mut engine.queue, count),
            |engine| engine.queue.get().into(),
        ),
        Key::at_restart(
            "key_exchange",
            "`on` or `off`",
            Preset::Is("on"),
            "Compute the TLS 1.3 key exchanges (X25519, X25519MLKEM768, P-256) of all handshakes in one turn \
                    of the event loop together, where that is cheaper. `off` leaves it to BoringSSL, one handshake \
                    after the other.",
            |field, engine| field.set(&mut engine.key_exchange, switch),
            |engine| name(engine.key_exchange).into(),
        ),
    ],
};
