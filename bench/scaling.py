#!/usr/bin/env python3
"""Full TLS 1.3 handshakes by number of cores: this gateway, nginx, and HAProxy with AWS-LC.

    bench/scaling.py PROGRAMS OUT [--cores 1,2,4,8] [--seconds 2] [--gpu]

PROGRAMS is a folder packed by `scripts/gpu.sh pack`. The servers get the first cores, `quadrille bench` the others. A line
has the rate, the server's CPU time for each handshake, the busy share of the server's cores and of the client's (a client
that is 97 % busy was the limit), and where the server's time went. The last tables show what is lost with more cores.
OUT/scaling.json has everything.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import socket
import subprocess
import time
import urllib.request

PORT, ADMIN = 19443, 19543
CLIENTS_PER_CORE = 64
CASES = [
    # name, certificate as `quadrille bench` calls it, group, servers that support both
    ("RSA-2048", "rsa", "X25519", ("quadrille", "haproxy", "nginx")),
    ("RSA-2048", "rsa", "X25519MLKEM768", ("quadrille", "haproxy")),
    ("P-256", "ecdsa", "X25519", ("quadrille", "haproxy", "nginx")),
    ("P-256", "ecdsa", "X25519MLKEM768", ("quadrille", "haproxy")),
    ("ML-DSA-44", "mldsa44", "X25519MLKEM768", ("quadrille",)),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("out")
    parser.add_argument("--cores", default="1,2,4,8")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--gpu", action="store_true", help="also RSA-2048 with a GPU")
    args = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    bench = Bench(os.path.abspath(args.programs), os.path.abspath(args.out), args.seconds)
    counts = [int(count) for count in args.cores.split(",")]
    bench.measure([count for count in counts if bench.cpus.others(count)], args.gpu)


class Cpus:
    """The CPUs of this process, threads of one core side by side."""

    def __init__(self):
        allowed = sorted(os.sched_getaffinity(0))
        self.siblings = {cpu: siblings(cpu) & set(allowed) for cpu in allowed}
        self.order = sorted(allowed, key=lambda cpu: (min(self.siblings[cpu]), cpu))

    def servers(self, count):
        return self.order[:count]

    def others(self, count):
        """CPUs that share no core with the first `count`."""
        servers = set(self.servers(count))
        return [cpu for cpu in self.order if not self.siblings[cpu] & servers]


def siblings(cpu):
    text = read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu)
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class Server:
    """A running server and its descendants."""

    def __init__(self, name, command, cpus, log, port, environment=None):
        self.name, self.port, self.cpus, self.log, self.admin = name, port, cpus, log, None
        # Where a port serves only one type of key.
        self.ports = {}
        with open(log, "w") as output:
            self.process = subprocess.Popen(
                ["taskset", "--cpu-list", joined(cpus), *command],
                stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})

    def wait(self):
        end = time.monotonic() + 20
        while time.monotonic() < end and not isinstance(self.process.poll(), int):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not listen:\n{read(self.log)[-2000:]}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def snapshot(self):
        """{thread: (name, CPU ns, ns in the run queue, user ticks, system ticks, waits, preemptions, migrations)}"""
        threads = {}
        for pid in descendants(self.process.pid):
            for tid in listed(f"/proc/{pid}/task"):
                base = f"/proc/{pid}/task/{tid}"
                stat = read(f"{base}/stat")
                if not stat:
                    continue
                fields = stat[stat.rindex(")") + 2:].split()
                user, system = int(fields[11]), int(fields[12])
                run, queued, _ = ((read(f"{base}/schedstat") or "0 0 0").split() + ["0"] * 3)[:3]
                tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
                status, sched = read(f"{base}/status") or "", read(f"{base}/sched") or ""
                threads[tid] = (
                    re.sub(r"-?\d+$", "", stat[stat.index("(") + 1:stat.rindex(")")]),
                    int(run) or (user + system) * tick, int(queued), user, system,
                    number(r"^voluntary_ctxt_switches:\s*(\d+)", status),
                    number(r"^nonvoluntary_ctxt_switches:\s*(\d+)", status),
                    number(r"nr_migrations\s*:\s*(\d+)", sched))
        return threads


class Bench:
    def __init__(self, programs, out, seconds):
        self.programs, self.out, self.seconds = programs, out, seconds
        self.cpus, self.rows, self.largest = Cpus(), [], 1
        os.makedirs(out, exist_ok=True)

    def measure(self, counts, gpu):
        self.largest = max(counts)
        print("cores:", ", ".join(joined(sorted(group)) for group in {frozenset(s): s for s in self.cpus.siblings.values()}.values()))
        self.machine(counts)
        print(HEAD)
        for count in counts:
            self.with_cores(count, rivals=count in (1, 4, self.largest))
        if gpu:
            for count in counts:
                self.with_gpu(count, count)
                if count in (4, self.largest):
                    self.with_gpu(count, 1)
        self.controls()
        with open(f"{self.out}/scaling.json", "w") as file:
            json.dump(self.rows, file, indent=1)
        self.summary(counts)

    def machine(self, counts):
        """What lanes alone lose with more cores: clocks and shared cores, without any of the gateway's code."""
        order, half = self.cpus.order, len(self.cpus.order) // 2
        sets = [order[:count] for count in counts] + [[order[0], order[half]], order]
        print("RSA-2048 in lanes, by CPUs, operations/s of each CPU:")
        for cpus in {tuple(cpus): cpus for cpus in sets}.values():
            lanes = subprocess.run(["taskset", "--cpu-list", joined(cpus), f"{self.programs}/quadrille-bench-kernels", "--sizes",
                                    "2048", "--all-cores", "--gpu-seconds", "1"], capture_output=True, text=True, check=False)
            rate = re.search(r": (\d+) operations", lanes.stdout)
            each = f"{int(rate[1]) / len(cpus):9.0f}" if rate else lanes.stdout + lanes.stderr
            print(f"  {joined(cpus):20} {each}", flush=True)

    def with_cores(self, count, rivals):
        cpus = self.cpus.servers(count)
        starts = [lambda: self.quadrille(cpus, "lanes", count)]
        if rivals:
            starts += [lambda: self.haproxy(cpus), lambda: self.nginx(cpus)]
        with self.running(None, starts) as servers:
            for name, kind, group, able in CASES:
                for server in servers:
                    if server.name in able:
                        self.load(server, count, name, kind, group)

    def with_gpu(self, count, compute):
        """As many clients as it takes for large batches, in a closed loop."""
        with self.running(f"gpu, {compute} compute", [lambda: self.quadrille(self.cpus.servers(count), "gpu", compute)]) as servers:
            for server in servers:
                self.load(server, count, "RSA-2048", "rsa", "X25519", clients=1000 * count)

    def controls(self):
        """One core while all others are busy, and a process for each core: neither shares anything of the gateway."""
        name, kind, group, _ = CASES[0]
        busy, clients = self.cpus.others(1)[3:], self.cpus.others(1)[:3]
        if busy:
            burner = subprocess.Popen(["taskset", "--cpu-list", joined(busy), f"{self.programs}/quadrille-bench-kernels", "--sizes",
                                       "2048", "--all-cores", "--gpu-seconds", "60"], stdout=subprocess.DEVNULL)
            with self.running("others busy", [lambda: self.quadrille(self.cpus.servers(1), "lanes", 1)]) as servers:
                for server in servers:
                    self.load(server, 1, name, kind, group, cpus=clients)
            burner.kill()
            burner.wait()
        cpus, others = self.cpus.servers(self.largest), self.cpus.others(self.largest)
        each = [lambda cpu=cpu, index=index: self.quadrille([cpu], "lanes", 1, at=index) for index, cpu in enumerate(cpus)]
        with self.running("process", each) as servers:
            for name, kind, group, _ in (CASES[0], CASES[2]):
                self.load(Together(f"{len(servers)} processes", servers, cpus), len(servers), name, kind, group, cpus=others)

    @contextlib.contextmanager
    def running(self, name, starts):
        """Servers that listen; one that does not start on this machine is left out. `name` replaces their names."""
        servers = []
        try:
            for start in starts:
                server = start()
                servers.append(server)
                try:
                    server.wait()
                    self.client(server.port, "rsa", "X25519", CLIENTS_PER_CORE, self.cpus.others(len(server.cpus)), 300).communicate()
                    server.name = name or server.name
                except RuntimeError as error:
                    print(error, flush=True)
                    servers.pop().stop()
            yield servers
        finally:
            for server in servers:
                server.stop()

    def quadrille(self, cpus, backend, compute, at=0):
        command = [f"{self.programs}/quadrille", "serve", "--listen", f"127.0.0.1:{PORT + 10 * at}", "--admin",
                   f"127.0.0.1:{ADMIN + 10 * at}", "--respond", "ok", "--threads", str(len(cpus)), "--compute-threads",
                   str(compute), "--backend", backend, "--session-tickets", "off", "--session-cache", "off",
                   "--drain-timeout", "1s", "--lame-duck", "0s"]
        for kind in ("rsa-2048", "p-256", "ml-dsa-44"):
            command += ["--cert", f"{self.programs}/{kind}-chain.pem", "--key", f"{self.programs}/{kind}-key.pem"]
        server = Server("quadrille", command, cpus, f"{self.out}/quadrille-{at}.log", PORT + 10 * at)
        server.admin = ADMIN + 10 * at
        return server

    def carried(self, program):
        """Debian's program with Debian's libraries, on any system."""
        library = f"{self.programs}/lib"
        return [f"{library}/ld-linux-x86-64.so.2", "--library-path", library, f"{self.programs}/{program}"]

    def nginx(self, cpus):
        work, port = f"{self.out}/nginx", PORT + 1
        os.makedirs(work, exist_ok=True)
        temporary = "".join(f"{kind}_temp_path {work}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        write(f"{work}/nginx.conf", f"""
            user root; worker_processes {len(cpus)}; worker_rlimit_nofile 65536; daemon off; pid {work}/pid;
            error_log stderr crit;
            events {{ worker_connections 16384; }}
            http {{
                access_log off; {temporary}
                server {{
                    listen 127.0.0.1:{port} ssl {"reuseport" if len(cpus) == 1 else ""};
                    {"".join(f"ssl_certificate {self.programs}/{kind}-chain.pem; ssl_certificate_key {self.programs}/{kind}-key.pem;"
                             for kind in ("rsa-2048", "p-256"))}
                    ssl_protocols TLSv1.3; ssl_ecdh_curve X25519; ssl_session_cache off; ssl_session_tickets off;
                    ssl_conf_command NumTickets 0;
                    location / {{ return 200 ok; }}
                }}
            }}""")
        command = [*self.carried("nginx"), "-p", work, "-c", f"{work}/nginx.conf", "-e", "stderr"]
        return Server("nginx", command, cpus, f"{self.out}/nginx.log", port, {"OPENSSL_CONF": "/dev/null"})

    def haproxy(self, cpus):
        ports = {"rsa": PORT + 2, "ecdsa": PORT + 3}
        binds = "".join(f"""
    bind 127.0.0.1:{ports[kind]} ssl crt {self.programs}/{name}-combined.pem no-tls-tickets ssl-min-ver TLSv1.3 \
curves X25519:X25519MLKEM768 alpn http/1.1""" for kind, name in (("rsa", "rsa-2048"), ("ecdsa", "p-256")))
        write(f"{self.out}/haproxy.cfg", f"""
global
    nbthread {len(cpus)}
    maxconn 16384
    no strict-limits
    tune.ssl.cachesize 0
    ssl-default-bind-options prefer-client-ciphers
defaults
    mode http
    timeout connect 5s
    timeout client 300s
    timeout server 300s
frontend https
    maxconn 16384{binds}
    http-request return status 200 content-type text/plain string ok
""")
        command = [*self.carried("haproxy"), "-db", "-f", f"{self.out}/haproxy.cfg"]
        server = Server("haproxy", command, cpus, f"{self.out}/haproxy.log", ports["rsa"])
        server.ports = ports
        return server

    def load(self, server, count, name, kind, group, clients=None, cpus=None):
        ports = server.every if isinstance(server, Together) else [server.ports.get(kind, server.port)]
        cpus = cpus or self.cpus.others(count)[:3 * count]
        before, batches, cores = server.snapshot(), metrics(server), cores_of(server.cpus)
        began, spent, runs = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN), []
        for port in ports:
            share = (clients or CLIENTS_PER_CORE * count) // len(ports)
            runs.append(self.client(port, kind, group, share, cpus, round(1000 * self.seconds), len(cpus) // len(ports)))
        outputs = [run.communicate() for run in runs]
        took, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        after, ended, done = server.snapshot(), cores_of(server.cpus), metrics(server)
        try:
            results = [json.loads(output) for output, _ in outputs]
        except ValueError:
            print(f"{count} {server.name} {name} {group}: {outputs[0][1].strip()[-300:]}", flush=True)
            return
        row = {"cores": count, "server": server.name, "key": name, "group": group,
               "rate": sum(result["handshakes_per_second"] for result in results), "p50": results[0]["latency_us"]["p50"],
               "p99": results[0]["latency_us"]["p99"], "failed": sum(result["failed"] for result in results),
               "client": (used.ru_utime + used.ru_stime - spent.ru_utime - spent.ru_stime) / took / len(cpus),
               "clients": len(cpus)}
        full = max(1, sum(result["full"] for result in results))
        row |= where(before, after, full) | {"busy": 0}
        row["busy"] = row["cpu"] * full / 1e6 / self.seconds / count
        total = max(1, sum(end - start for start, end in zip(cores, ended)))
        row |= {part: (ended[index] - cores[index]) / total for part, index in
                {"idle": 3, "softirq": 6, "steal": 7}.items()}
        row |= {what: mean(batches, done, what) for what in ("key_batch_size", "key_exchange_batch_size")}
        on_gpu = done.get("cuda", 0) - batches.get("cuda", 0)
        row["gpu"] = on_gpu / full
        self.rows.append(row)
        print(line(row), flush=True)

    def client(self, port, kind, group, connections, cpus, milliseconds, threads=0):
        """Starts the load. `--insecure` skips the certificate's chain, which costs the client CPU and the server nothing."""
        return subprocess.Popen(
            ["taskset", "--cpu-list", joined(cpus), f"{self.programs}/quadrille", "bench", f"https://localhost:{port}/", "--connect",
             f"127.0.0.1:{port}", "--insecure", "--threads", str(threads or len(cpus)), "--requests", "0", "--tls", "1.3", "--groups",
             group, "--key-type", kind, "--connections", str(connections), "--duration", f"{milliseconds}ms", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def summary(self, counts):
        """CPU for each handshake by cores, what is lost from the least to the most, and what full cores would serve."""
        print("\nus of CPU for each handshake, and [handshakes/s if the cores were full]")
        print(f"{'':37}" + "".join(f"{count:>17} cores" for count in counts) + "      lost")
        kinds = {(row["server"], row["key"], row["group"]): None for row in self.rows}
        for kind in kinds:
            cells, known = [], {}
            for count in counts:
                row = next((row for row in self.rows if (row["server"], row["key"], row["group"]) == kind and row["cores"] == count), None)
                cells.append(f"{row['cpu']:8.1f} [{1e6 * count / row['cpu']:9.0f}] " if row else " " * 22)
                known |= {count: row["cpu"]} if row else {}
            lost = f"{100 * (1 - known[min(known)] / known[max(known)]):8.1f} %" if len(known) > 1 else ""
            print(f"{kind[0]:14}{kind[1]:9} {kind[2]:14}" + " ".join(cells) + lost)


class Together:
    """Several servers measured as one."""

    def __init__(self, name, servers, cpus):
        self.name, self.servers, self.cpus = name, servers, cpus
        self.every, self.admin = [server.port for server in servers], None

    def snapshot(self):
        return {thread: value for server in self.servers for thread, value in server.snapshot().items()}


def where(before, after, full):
    """CPU, waits and switches for each handshake, in microseconds and numbers, and CPU by thread names."""
    zero = ("", 0, 0, 0, 0, 0, 0, 0)
    moved = [(now[0], *(now[i] - before.get(tid, zero)[i] for i in range(1, 8))) for tid, now in after.items()]
    total = [sum(one[i] for one in moved) for i in range(1, 8)]
    names = {}
    for one in moved:
        names[one[0]] = names.get(one[0], 0) + one[1] / 1000 / full
    return {"cpu": total[0] / 1000 / full, "queued": total[1] / 1000 / full, "system": total[3] / max(1, total[2] + total[3]),
            "waits": total[4] / full, "preempted": total[5] / full, "migrations": total[6] / full,
            "threads": {name: us for name, us in sorted(names.items(), key=lambda item: -item[1]) if us >= 0.5}}


HEAD = ("co server        key       group           handshakes/s us each  busy client   p50 ms  p99 ms fail | sys idle softirq steal | "
        "queued us  waits preempted migrated | batch kx  GPU | threads us")


def line(row):
    threads = " ".join(f"{name} {us:.0f}" for name, us in row["threads"].items())
    return (f'{row["cores"]:2} {row["server"]:13.13} {row["key"]:9} {row["group"]:14} {row["rate"]:13.0f} {row["cpu"]:7.1f} '
            f'{row["busy"]:5.0%} {row["client"]:4.0%}/{row["clients"]:<2}{row["p50"] / 1e3:7.1f} {row["p99"] / 1e3:7.1f} {row["failed"]:4} '
            f'|{row["system"]:4.0%} {row["idle"]:4.0%} {row["softirq"]:7.0%} {row["steal"]:5.0%} |{row["queued"]:10.1f} {row["waits"]:6.2f} '
            f'{row["preempted"]:9.2f} {row["migrations"]:8.2f} |{row["key_batch_size"]:6.1f} {row["key_exchange_batch_size"]:3.1f} {row["gpu"]:4.0%} | {threads}')


def metrics(server):
    """Sums of the gateway's metrics that batches are read from; empty for another server."""
    totals = {}
    if not server.admin:
        return totals
    with contextlib.suppress(OSError):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.admin}/metrics", timeout=2) as page:
            for text in page.read().decode().splitlines():
                found = re.match(r"quadrille_(key_batch_size_sum|key_batch_size_count|key_exchange_batch_size_sum|"
                                 r"key_exchange_batch_size_count|key_operations_total)(\{[^}]*\})? (\S+)", text)
                if found:
                    name = found[1]
                    if name == "key_operations_total":
                        name = "cuda" if 'backend="cuda"' in text and 'result="ok"' in text else "elsewhere"
                    totals[name] = totals.get(name, 0) + float(found[3])
    return totals


def mean(before, after, name):
    count = after.get(f"{name}_count", 0) - before.get(f"{name}_count", 0)
    return (after.get(f"{name}_sum", 0) - before.get(f"{name}_sum", 0)) / count if count else 0


def cores_of(cpus):
    """Ticks of these CPUs by state, in the order of /proc/stat."""
    wanted, totals = {f"cpu{cpu}" for cpu in cpus}, [0] * 8
    for text in (read("/proc/stat") or "").splitlines():
        name, *ticks = text.split()
        if name in wanted:
            totals = [total + int(tick) for total, tick in zip(totals, ticks)]
    return totals


def descendants(pid):
    """The process and its children, at any depth."""
    parents = {}
    for child in filter(str.isdigit, listed("/proc")):
        stat = read(f"/proc/{child}/stat")
        if stat:
            parents.setdefault(int(stat[stat.rindex(")") + 2:].split()[1]), []).append(int(child))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def number(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1]) if found else 0


def listed(path):
    with contextlib.suppress(OSError):
        return os.listdir(path)
    return []


def read(path):
    with contextlib.suppress(OSError):
        with open(path) as file:
            return file.read()
    return None


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def joined(cpus):
    return ",".join(str(cpu) for cpu in cpus)


if __name__ == "__main__":
    main()
