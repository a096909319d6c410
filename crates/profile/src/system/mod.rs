//! CPU use of a running server or client, by sampling: call stacks many times a second, each classified by the names
//! of its functions.
//!
//! ```text
//!  perf record (a clock of the CPU, stacks unwound by DWARF) ──> perf script ──> Stack ──> Class ──> Shares, Step ──> Steps
//!        processes, for some seconds                               text           │
//!                                                                                 └──> Tree, for a flame graph
//! ```
//!
//! Sampling uses Linux's own `perf`, since it reads kernel and user space alike, needs no support in the process, and
//! has no cost when it is not running. All later stages are pure functions.

mod class;
mod perf;
mod processes;
mod stacks;
mod step;

pub use self::{
    class::{Class, Shares, classify},
    perf::{Perf, PerfError, Sampling},
    processes::{NoProcess, listening_on, program_of},
    stacks::{Frame, Stack, Tree, parse},
    step::{Step, Steps, step_of},
};
