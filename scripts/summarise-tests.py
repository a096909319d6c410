"""summarise-tests.py FOLDER [FLAKY]: summarises the results of `make test`'s suites in FOLDER.

Reads JUnit reports (*.xml) and, for suites without one, the lines with their counts (*.log). NAME.again.xml or NAME.again.log has
the second run of the tests that failed in NAME. Prints the kernels' tiers, skipped tests with the reason, the ten slowest tests,
failed and flaky tests, and the sum on the last line. Flaky tests are also written to the file FLAKY.

summarise-tests.py --failed REPORT: prints the filter expression of cargo-nextest that selects the failed tests of a JUnit report.
summarise-tests.py --stress FOLDER: prints each test that failed in one of the JUnit reports, with its log; fails if there is one.
"""

import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

SLOWEST = 10

# "test result: ok. 3 passed; 0 failed; 1 ignored; ..." of cargo's runner, "node tests: 3 passed, 0 failed, 1 skipped".
COUNTS = re.compile(r"^(?:test result|\w+ tests): .*?(\d+) passed[;,] (\d+) failed[;,] (\d+) (?:ignored|skipped)")
FAILED = re.compile(r"^test (.+) \.\.\. FAILED$")
# A line that begins like this means that a test was skipped; "GPU: SKIPPED, ..." means a part of one.
SKIPPED = re.compile(r"^SKIPPED: (.+)$", re.MULTILINE)
PART_SKIPPED = re.compile(r"^(.+): SKIPPED, (.+)$", re.MULTILINE)
TIER = re.compile(r"^(?:SKIPPED: )?tier (avx2|ifma): (\d+ lanes$)?", re.MULTILINE)
EMULATED = re.compile(r"^tier ifma: (emulated.*|NOT EMULATED.*)$")


class Case:
    """A test in a JUnit report."""

    def __init__(self, element):
        self.binary, self.test = element.get("classname"), element.get("name")
        self.seconds = float(element.get("time", 0))
        self.failure = element.find("failure") if element.find("failure") is not None else element.find("error")
        self.ignored = element.find("skipped") is not None
        self.output = "\n".join(part.text or "" for part in element if part.tag in ("system-out", "system-err"))

    @property
    def name(self):
        return f"{self.binary} {self.test}"


def cases(report):
    return [Case(element) for element in xml.parse(report).iter("testcase")]


class Sum:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures, self.flaky, self.slow, self.reasons, self.tiers = [], [], [], {}, {}

    def junit(self, path):
        again = path.with_suffix(".again.xml")
        passed_again = {case.name for case in cases(again) if case.failure is None} if again.exists() else set()
        for case in cases(path):
            self.slow.append((case.seconds, case.name))
            for tier, lanes in TIER.findall(case.output):
                self.tiers[tier] = f"{tier} native" if lanes else f"{tier} NOT NATIVE (this CPU lacks it)"
            skipped = SKIPPED.findall(case.output)
            for reason in skipped + [f"{part}: {why}" for part, why in PART_SKIPPED.findall(case.output)]:
                self.reasons.setdefault(reason, set()).add(case.name)
            if case.failure is not None and case.name in passed_again:
                self.passed += 1
                self.flaky.append(case.name)
            elif case.failure is not None:
                self.failed += 1
                self.failures.append(case.name)
            elif skipped or case.ignored:
                self.skipped += 1
            else:
                self.passed += 1

    def log(self, path):
        again = path.with_suffix(".again.log")
        if again.exists():
            self.flaky += self.failed_in(path) or [path.stem]
            path = again
        failures = self.failed_in(path)
        self.failures += failures
        self.flaky = [name for name in self.flaky if name not in failures]
        for line in path.read_text(errors="replace").splitlines():
            if counts := COUNTS.match(line):
                passed, failed, skipped = map(int, counts.groups())
                self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
            elif skipped := SKIPPED.match(line):
                self.reasons.setdefault(skipped[1], set()).add(path.stem)
            elif emulated := EMULATED.match(line):
                self.tiers["emulated"] = f"ifma {emulated[1]}"

    @staticmethod
    def failed_in(path):
        lines = path.read_text(errors="replace").splitlines()
        return [failed[1] for failed in map(FAILED.match, lines) if failed]

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
        for name in self.flaky:
            print(f"FLAKY: {name}")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")


def summarise(folder, flaky):
    all_suites = Sum()
    for report in sorted(folder.glob("*.xml")):
        if ".again." not in report.name:
            all_suites.junit(report)
    for log in sorted(folder.glob("*.log")):
        if ".again." not in log.name and not log.with_suffix(".xml").exists():
            all_suites.log(log)
    all_suites.print()
    with open(flaky, "a") as file:
        file.writelines(f"{name}\n" for name in all_suites.flaky)


def failed_filter(report):
    if Path(report).exists():
        failed = [case for case in cases(report) if case.failure is not None]
        print(" | ".join(f"(binary_id(={case.binary}) & test(={case.test}))" for case in failed))


def stress(folder):
    runs = sorted(folder.glob("*.xml"))
    failures = {}
    for report in runs:
        for case in cases(report):
            if case.failure is not None:
                failures.setdefault(case.name, []).append((report.stem, case))
    for name, failed in sorted(failures.items()):
        way, case = failed[0]
        print(f"=== {name} failed in {', '.join(run for run, _ in failed)}; its log in {way}:")
        print(case.output or case.failure.text or case.failure.get("message"))
    print(f"{len(runs)} runs, {len(failures)} tests failed at least once")
    for name, failed in sorted(failures.items()):
        print(f"{len(failed):4} of {len(runs)}  {name}")
    sys.exit(bool(failures))


def main():
    match sys.argv[1:]:
        case ["--failed", report]:
            failed_filter(report)
        case ["--stress", folder]:
            stress(Path(folder))
        case [folder]:
            summarise(Path(folder), "/dev/null")
        case [folder, flaky]:
            summarise(Path(folder), flaky)


main()
