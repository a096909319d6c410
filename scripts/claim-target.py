"""claim-target.py: makes sharing one target directory between clones safe and fast.

Cargo identifies a workspace's crates by their path inside the workspace, and checks their freshness by file times: after another
clone has built, it would take that clone's newer output for this one's. So if the last build was by another clone, each file that
equals that clone's gets its time, so that cargo judges it as it would there, and each other file gets a new time. So does a
folder, which build scripts may name, if its entries differ.
"""

import filecmp
import os
import sys
from pathlib import Path

# Not sources: at any depth, and at the top level.
SKIPPED = {".git", "node_modules"}
BUILT = {Path("bin"), Path("target")}


def entries():
    """Yields each file and each folder."""
    for folder, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name not in SKIPPED and Path(folder, name) not in BUILT]
        yield from (Path(folder, name) for name in names)
        yield Path(folder)


def are_equal(here, there):
    if here.is_dir():
        return there.is_dir() and set(os.listdir(here)) - SKIPPED == set(os.listdir(there)) - SKIPPED
    return there.is_file() and filecmp.cmp(here, there, shallow=False)


def main():
    target = Path(sys.argv[1])
    owner = target / "last-clone"
    here = Path.cwd()
    last = Path(owner.read_text().strip()) if owner.exists() else None
    if last == here:
        return
    for entry in entries():
        if entry.is_symlink():
            continue
        if last and are_equal(entry, last / entry):
            times = (last / entry).stat()
            os.utime(entry, ns=(times.st_atime_ns, times.st_mtime_ns))
        else:
            os.utime(entry)
    target.mkdir(parents=True, exist_ok=True)
    owner.write_text(f"{here}\n")


main()
