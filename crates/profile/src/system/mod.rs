//! Where the CPU of a running server or client goes, by sampling it: call stacks many times a second, each put into a class by the
//! names of its functions.
//!
//! ```text
//!  perf record (a clock of the CPU, stacks unwound by DWARF) ──> perf script ──> Stack ──> Class ──> Shares, Step ──> Steps
//!        processes, for some seconds                               text           │
//!                                                                                 └──> Tree, for a flame graph
//! ```
//!
//! Sampling is Linux's own `perf`, since it reads kernel and user space alike, needs nothing of the process, and costs
//! it nothing when it is not running. Everything after it is pure.

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
