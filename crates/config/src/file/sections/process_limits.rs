//! Limits of the whole process.

use crate::{
    file::schema::{Key, Preset, Section},
    model::MemoryLimit,
    size::{memory_limit, show_memory_limit},
};

pub(super) const PROCESS_LIMITS: Section<MemoryLimit> = Section {
    path: "limits",
    about: "Limits of the whole process. Those of listeners and upstreams are in their own `limits`.",
    keys: &[Key::new(
        "memory",
        "size, percentage, or `off`",
        Preset::Is("80%"),
        "Maximum memory of the process. A percentage is of the memory of its control group, or of the machine without \
                one. At 85 % of it, the longest-idle connections are closed, request bodies of more than 1 MiB \
                receive a 503 response, and bodies are not kept for retries, mirrored or compressed; at 95 %, all new \
                requests receive a 503 response with `Retry-After`, and if that lasts, the requests that hold most \
                memory are ended; at 98 %, no connections are accepted either. The memory of files, of the kernel's socket buffers and of \
                other processes is not included, so leave room for it.",
        |field, limit| field.set(&mut limit.size, memory_limit),
        |limit| show_memory_limit(limit.size).into(),
    )],
};
