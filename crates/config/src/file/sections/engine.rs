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
        Key {
            name: "backend",
            value: "`auto`, `gpu`, `lanes` or `scalar`",
            preset: Preset::Is("auto"),
            about: "The backend that computes: `lanes` is the fastest that this CPU has (AVX-512 IFMA, eight RSA \
                    operations at once; AVX2, four; else `scalar`); `auto` adds an NVIDIA GPU, if there is one, for \
                    operations that would wait too long; `gpu` does not start without it; `scalar` is BoringSSL, one \
                    operation at a time.",
            needs_restart: true,
            read: |field, engine| field.set(&mut engine.backend, word),
            show: |engine| name(engine.backend).into(),
        },
        Key {
            name: "poll_delay",
            value: "duration",
            preset: Preset::Is("0"),
            about: "Wait up to this long for a batch to fill, as Envoy's CryptoMB provider does. Adds up to this \
                    delay to every handshake on a quiet server; with `0`, `latency_budget` applies instead.",
            needs_restart: true,
            read: |field, engine| field.set(&mut engine.poll_delay, duration),
            show: |engine| time(engine.poll_delay),
        },
        Key {
            name: "latency_budget",
            value: "duration",
            preset: Preset::Is("1ms"),
            about: "Maximum time that an operation waits for others to share a pass, while CPU is scarce; on a \
                    quiet server no operation waits. `0` never waits, at up to 1.8 times the CPU at half load.",
            needs_restart: true,
            read: |field, engine| field.set(&mut engine.latency_budget, duration),
            show: |engine| time(engine.latency_budget),
        },
        Key {
            name: "batch",
            value: "count",
            preset: Preset::Is("8"),
            about: "Maximum number of operations in a batch, in whole passes of the backend (8 with AVX-512 IFMA, 4 \
                    with AVX2); with a `poll_delay`, a batch of this size does not wait for it.",
            needs_restart: true,
            read: |field, engine| field.set(&mut engine.batch, count),
            show: |engine| engine.batch.get().into(),
        },
        Key {
            name: "threads",
            value: "count, or `auto`",
            preset: Preset::Is("auto"),
            about: "Compute threads; `auto` is one for each CPU. They compete with the event loops for the same CPUs.",
            needs_restart: true,
            read: |field, engine| field.set(&mut engine.threads, values::threads),
            show: |engine| threads(engine.threads),
        },
        Key {
            name: "queue",
            value: "count",
            preset: Preset::Is("16384"),
            about: "Maximum number of waiting operations, in all queues together; beyond it, new ones are refused and \
                    their handshakes fail. A longer queue means a longer wait under overload, not more handshakes a \
                    second.",
            needs_restart: true,
            read: |field, engine| field.set(&mut engine.queue, count),
            show: |engine| engine.queue.get().into(),
        },
        Key {
            name: "key_exchange",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "Compute the TLS 1.3 key exchanges (X25519, X25519MLKEM768, P-256) of all handshakes in one turn \
                    of the event loop together, where that is cheaper. `off` leaves it to BoringSSL, one handshake \
                    after the other.",
            needs_restart: true,
            read: |field, engine| field.set(&mut engine.key_exchange, switch),
            show: |engine| name(engine.key_exchange).into(),
        },
    ],
};
