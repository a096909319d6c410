//! Memory of a process tree, from the kernel's own accounting.

use std::{fs, iter::Sum, ops::Add};

use anyhow::{Context, Result};
use nix::unistd::Pid;

use crate::process_tree::process_tree;

/// Memory in KiB. Socket buffers belong to the kernel and are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Proportional set size: resident pages, each shared page divided by the number of processes that share it.
    pub pss_kib: u64,
    /// Resident set size: a page shared by two processes counts twice.
    pub rss_kib: u64,
}

impl Memory {
    /// Reads the current memory of `root` and its descendants.
    pub fn of_tree(root: Pid) -> Result<Self> {
        process_tree(root)?.into_iter().map(Self::of_process).sum()
    }

    fn of_process(pid: Pid) -> Result<Self> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        parse_rollup(&text).with_context(|| format!("{path} lacks Pss or Rss"))
    }
}

impl Add for Memory {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { pss_kib: self.pss_kib + other.pss_kib, rss_kib: self.rss_kib + other.rss_kib }
    }
}

impl Sum for Memory {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Self::add)
    }
}

fn parse_rollup(text: &str) -> Option<Memory> {
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some(Memory { pss_kib: kib("Pss")?, rss_kib: kib("Rss")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollup_of_a_process() {
        let text = "55d0-7ffc ---p 00000000 00:00 0    [rollup]\nRss:    1204 kB\nPss:     321 kB\n\
                    Pss_Dirty:   92 kB\nPss_Anon:  88 kB\nShared_Clean: 900 kB\n";
        assert_eq!(parse_rollup(text), Some(Memory { pss_kib: 321, rss_kib: 1204 }));
        assert_eq!(parse_rollup("Rss: 1204 kB\n"), None);
    }

    #[test]
    fn this_process_holds_something() {
        let memory = Memory::of_process(Pid::this()).unwrap();
        assert!(memory.pss_kib > 0 && memory.rss_kib >= memory.pss_kib, "{memory:?}");
    }
}
