//! Anonymous memory of this process: all resident memory that is not that of files.

use std::{fs::File, io, os::unix::fs::FileExt};

/// Reader of `/proc/self/status`, which stays open.
pub(super) struct AnonymousMemory(File);

impl AnonymousMemory {
    pub(super) fn open() -> io::Result<Self> {
        File::open("/proc/self/status").map(Self)
    }

    /// Returns the number of bytes; `None` if the kernel does not tell it.
    pub(super) fn read(&self) -> Option<usize> {
        let mut text = [0; 4096];
        let length = self.0.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// Parses the fields of proc_pid_status(5). Some kernels only tell the total.
fn parse(status: &str) -> Option<usize> {
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()
    };
    let kib = match field("RssAnon:") {
        Some(anonymous) => anonymous + field("RssShmem:").unwrap_or(0),
        None => field("VmRSS:")?,
    };
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_files_is_not_included() {
        let status = "Name:\tquadrille\nVmRSS:\t   50000 kB\nRssAnon:\t   20000 kB\nRssFile:\t   29990 kB\nRssShmem:\t      10 kB\n";
        assert_eq!(parse(status), Some(20_010 * 1024));
        assert_eq!(parse("VmRSS:\t 7 kB\n"), Some(7 * 1024));
        assert_eq!(parse("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_has_memory() {
        let memory = AnonymousMemory::open().expect("the file");
        let before = memory.read().expect("a number");
        let block = vec![1_u8; 32 << 20];
        let after = memory.read().expect("a number");
        assert!(after >= before + (24 << 20), "{before} and then {after}");
        drop(std::hint::black_box(block));
    }
}
