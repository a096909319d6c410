"""summarise-tests.py FOLDER: adds up what the suites of `make test` have left in FOLDER.

Reads JUnit reports (*.xml) and, of suites that write none, the lines with their counts (*.log). Prints the kernels' tiers,
what was skipped and why, the ten slowest tests, what failed, and the sum on the last line.
"""

import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

SLOWEST = 10

# "test result: ok. 3 passed; 0 failed; 1 ignored; ..." of cargo's runner, "node tests: 3 passed, 0 failed, 1 skipped".
COUNTS = re.compile(r"^(?:test result|\w+ tests): .*?(\d+) passed[;,] (\d+) failed[;,] (\d+) (?:ignored|skipped)")
FAILED = re.compile(r"^test (.+) \.\.\. FAILED$")
# A test that begins a line so has tested nothing; "GPU: SKIPPED, ..." is a part of one.
SKIPPED = re.compile(r"^SKIPPED: (.+)$", re.MULTILINE)
PART_SKIPPED = re.compile(r"^(.+): SKIPPED, (.+)$", re.MULTILINE)
TIER = re.compile(r"^(?:SKIPPED: )?tier (avx2|ifma): (\d+ lanes$)?", re.MULTILINE)
EMULATED = re.compile(r"^tier ifma: (emulated.*|NOT EMULATED.*)$")


class Sum:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures, self.slow, self.reasons, self.tiers = [], [], {}, {}

    def junit(self, path):
        for case in xml.parse(path).iter("testcase"):
            name = f"{case.get('classname')} {case.get('name')}"
            output = "\n".join(part.text or "" for part in case if part.tag in ("system-out", "system-err"))
            self.slow.append((float(case.get("time", 0)), name))
            for tier, lanes in TIER.findall(output):
                self.tiers[tier] = f"{tier} native" if lanes else f"{tier} NOT NATIVE (this CPU lacks it)"
            skipped = SKIPPED.findall(output)
            for reason in skipped + [f"{part}: {why}" for part, why in PART_SKIPPED.findall(output)]:
                self.reasons.setdefault(reason, set()).add(name)
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
                self.failures.append(name)
            elif skipped or case.find("skipped") is not None:
                self.skipped += 1
            else:
                self.passed += 1

    def log(self, path):
        for line in path.read_text(errors="replace").splitlines():
            if counts := COUNTS.match(line):
                passed, failed, skipped = map(int, counts.groups())
                self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
            elif failed := FAILED.match(line):
                self.failures.append(failed[1])
            elif skipped := SKIPPED.match(line):
                self.reasons.setdefault(skipped[1], set()).add(path.stem)
            elif emulated := EMULATED.match(line):
                self.tiers["emulated"] = f"ifma {emulated[1]}"

    def print(self):
        if self.tiers:
            print("kernels:", ", ".join(tier for _, tier in sorted(self.tiers.items())))
        for reason, tests in sorted(self.reasons.items()):
            print(f"skipped: {reason} ({min(tests)}{f' and {len(tests) - 1} more' if len(tests) > 1 else ''})")
        print(f"the {SLOWEST} slowest tests:")
        for seconds, name in sorted(self.slow, reverse=True)[:SLOWEST]:
            print(f"{seconds:8.1f} s  {name}")
        for name in self.failures:
            print(f"failed: {name}")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")


def main():
    folder, all_suites = Path(sys.argv[1]), Sum()
    for report in sorted(folder.glob("*.xml")):
        all_suites.junit(report)
    for log in sorted(folder.glob("*.log")):
        if not log.with_suffix(".xml").exists():
            all_suites.log(log)
    all_suites.print()


main()
