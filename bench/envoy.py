#!/usr/bin/env python3
"""Cost of Envoy features: poll_delay and none, xDS and YAML, and changes while clients connect.

    bench/envoy.py [poll-delay] [xds]        both by default
    ROUNDS=3 bench/envoy.py poll-delay

Measures bin/quadrille as built by `make build`; QUADRILLE=PATH selects another. RSA-2048, X25519, TLS 1.3, full handshakes,
a connection for each request. In each round every server is measured once, in sequence, and values are compared within a
round. CPU time is that of the server's threads (schedstat). The control plane is the tests', on go-control-plane; it
needs Go.
"""

import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUADRILLE = os.environ.get("QUADRILLE", str(ROOT / "bin/quadrille"))
ROUNDS = int(os.environ.get("ROUNDS", "7"))
SERVER_CORE = os.environ.get("SERVER_CORE", "0")
CLIENT_CORE = os.environ.get("CLIENT_CORE", "1")
TURN = float(os.environ.get("TURN", "1.5"))  # seconds
DELAYS = ["0", "1ms", "5ms", "10ms"]
FULL_LOAD_CLIENTS = 32
SECRETS, ROUTES = 1000, 10_000


def main():
    wanted = sys.argv[1:] or ["poll-delay", "xds"]
    experiments = {"poll-delay": poll_delay, "xds": xds}
    if unknown := [name for name in wanted if name not in experiments]:
        sys.exit(f"{__doc__}\nunknown: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as directory:
        laboratory = Laboratory(Path(directory))
        try:
            print(laboratory.versions())
            for name in wanted:
                experiments[name](laboratory)
        finally:
            laboratory.end()


# --- experiments


def poll_delay(laboratory):
    """Compares the default, which never waits, with delays that users of CryptoMB set."""
    servers = {delay: laboratory.by_yaml(f"delay-{delay}", delay) for delay in DELAYS}
    full = [laboratory.load(servers["0"], connections=FULL_LOAD_CLIENTS)["handshakes_per_second"] for _ in range(3)]
    rates = {"low": 60, "middle": round(statistics.median(full) / 2), "full": None}
    seen = {}
    for _ in rounds("poll_delay"):
        for load, rate in rates.items():
            for delay, server in servers.items():
                connections = FULL_LOAD_CLIENTS if rate is None else 256
                result = laboratory.measure(server, connections=connections, rate=rate)
                seen.setdefault((load, delay), []).append(result)
    print("\n| load | poll_delay | handshakes/s | CPU us a handshake | p50 ms | p99 ms | CPU, relative to the default |")
    print("|---|---|---|---|---|---|---|")
    for load, rate in rates.items():
        for delay in DELAYS:
            results = seen[load, delay]
            name = f"{load} ({rate}/s)" if rate else f"{load} ({FULL_LOAD_CLIENTS} clients)"
            against = [one["cpu"] / other["cpu"] for one, other in zip(results, seen[load, "0"])]
            print(
                f"| {name} | {delay if delay != '0' else 'none (default)'} | {median(results, 'per_second'):.0f} "
                f"| {median(results, 'cpu'):.0f} | {median(results, 'p50') / 1000:.2f} "
                f"| {median(results, 'p99') / 1000:.2f} | {spread(against)} |"
            )
    laboratory.stop(servers.values())


def xds(laboratory):
    """Compares a site configured by YAML and by a control plane; then changes a large one while clients connect."""
    plane = ControlPlane(laboratory)
    yaml = laboratory.by_yaml("yaml", "0")
    snapshot = Snapshot(laboratory, free_port())
    plane.set(snapshot)
    driven = laboratory.by_xds("xds", plane, snapshot, core=SERVER_CORE)
    seen = {"yaml": [], "xds": []}
    for _ in rounds("xDS beside YAML"):
        for name, server in [("yaml", yaml), ("xds", driven)]:
            seen[name].append(laboratory.measure(server, connections=FULL_LOAD_CLIENTS))
    against = [one["cpu"] / other["cpu"] for one, other in zip(seen["xds"], seen["yaml"])]
    print(f"\nCPU a handshake: YAML {median(seen['yaml'], 'cpu'):.0f} us, xDS {median(seen['xds'], 'cpu'):.0f} us,")
    print(f"ratio of the same round {spread(against)}")
    laboratory.stop([yaml, driven])
    changes(laboratory, plane)
    plane.end()


def changes(laboratory, plane):
    """Handshake latency with and without changes to a thousand secrets and ten thousand routes."""
    snapshot = Snapshot(laboratory, free_port())
    plane.set(snapshot)
    # On both cores, as on a machine with more cores than event loops.
    server = laboratory.by_xds("large", plane, snapshot, core=f"{SERVER_CORE},{CLIENT_CORE}")
    snapshot.grow(SECRETS, ROUTES)
    # Read beforehand, so that the control plane disturbs the clients on the same core little.
    plane.keep("0", snapshot)
    snapshot.renew()
    plane.keep("1", snapshot)
    print(f"\n{SECRETS} secrets and {ROUTES} routes, acknowledged after {plane.use_and_wait('0'):.0f} ms; all secrets changed:", end=" ")
    print(", ".join(f"{plane.use_and_wait(name):.0f}" for name in "1010"), "ms")
    print("time in the gateway to apply it:", server.applied())
    rates = {"none": [], "all secrets, once": [0.5], "all secrets, twice a second": [0.5] * round(6 * TURN)}
    seen = {what: [] for what in rates}
    for _ in rounds("changes"):
        for what, pauses in rates.items():
            with Changing(plane, pauses):
                seen[what].append(laboratory.measure(server, connections=256, rate=200, seconds=3 * TURN))
    print(f"\n| changes within {3 * TURN:g} s | p50 ms | p99 ms | p99.9 ms | p99, relative to none |\n|---|---|---|---|---|")
    for what, results in seen.items():
        against = [one["p99"] / other["p99"] for one, other in zip(results, seen["none"])]
        print(
            f"| {what} | {median(results, 'p50') / 1000:.2f} | {median(results, 'p99') / 1000:.2f} "
            f"| {median(results, 'p999') / 1000:.2f} | {spread(against)} |"
        )
    laboratory.stop([server])


class Changing:
    """Switches a control plane's snapshot between two alternatives after each pause, until the context is left."""

    def __init__(self, plane, pauses):
        self.plane, self.pauses = plane, pauses
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        for pause in self.pauses:
            if self.stop.wait(pause):
                break
            self.plane.use(next(self.plane.turns))

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.plane.settle()


def rounds(what):
    for number in range(ROUNDS):
        print(f"{what}: round {number + 1} of {ROUNDS}", file=sys.stderr)
        yield number


def median(results, field):
    return statistics.median(result[field] for result in results)


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}..{max(values):.2f})"


# --- servers and load


class Server:
    def __init__(self, name, process, port, log):
        self.name, self.process, self.port, self.log = name, process, port, log

    def cpu(self):
        """Returns the nanoseconds that its threads have run."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)

    def applied(self):
        """Returns the gateway's log entry about the last change."""
        lines = [line for line in self.log.read_text().splitlines() if "configuration applied" in line]
        return lines[-1].split("configuration applied", 1)[1].strip() if lines else "not logged"


class Laboratory:
    def __init__(self, directory):
        self.directory, self.servers = directory, []
        self.chain, self.key = directory / "chain.pem", directory / "key.pem"
        self.certificate("localhost", ["rsa:2048"], self.chain, self.key)

    def certificate(self, name, key_kind, chain, key):
        openssl = ["openssl", "req", "-x509", "-newkey", *key_kind, "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        files = ["-addext", f"subjectAltName=DNS:{name}", "-keyout", key, "-out", chain]
        subprocess.run([*openssl, *files], check=True, capture_output=True)

    def pair(self, name):
        """Creates a separate certificate for a name, with a P-256 key."""
        chain, key = self.directory / "one-chain.pem", self.directory / "one-key.pem"
        self.certificate(name, ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], chain, key)
        return chain.read_text(), key.read_text()

    def versions(self):
        version = subprocess.run([QUADRILLE, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        names = (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        return f"{version}, one event loop; RSA-2048, X25519, TLS 1.3; {ROUNDS} rounds; {next(names, 'unknown CPU')}"

    def by_yaml(self, name, delay):
        port = free_port()
        path = self.directory / f"{name}.yaml"
        path.write_text(
            f"threads: 1\nadmin: off\nresumption: off\nengine: {{poll_delay: {delay}}}\nlisteners:\n"
            f"- {{address: '127.0.0.1:{port}', certificates: [{{chain: {self.chain}, key: {self.key}}}],\n"
            f"   tls: {{groups: [x25519]}}, respond: ok}}\n"
        )
        return self.start(name, port, SERVER_CORE, ["--config", path])

    def by_xds(self, name, plane, snapshot, core):
        path = self.directory / f"{name}-bootstrap.yaml"
        path.write_text(plane.bootstrap())
        return self.start(name, snapshot.port, core, ["--envoy-config", path, "--threads", "1"])

    def start(self, name, port, core, arguments):
        log = self.directory / f"{name}.log"
        process = subprocess.Popen(
            ["taskset", "-c", core, QUADRILLE, "serve", *arguments], stdout=log.open("w"), stderr=subprocess.STDOUT
        )
        server = Server(name, process, port, log)
        self.servers.append(server)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return server
            except OSError:
                if process.poll() is not None:
                    break
                time.sleep(0.05)
        sys.exit(f"{name} does not listen:\n{log.read_text()}")

    def load(self, server, connections, rate=None, seconds=TURN):
        command = ["taskset", "-c", CLIENT_CORE, QUADRILLE, "bench", f"https://localhost:{server.port}/"]
        command += ["--connect", f"127.0.0.1:{server.port}", "--ca", self.chain, "--groups", "X25519", "--tls", "1.3"]
        command += ["--connections", str(connections), "--duration", f"{round(seconds * 1000)}ms", "--json"]
        command += ["--rate", str(rate)] if rate else []
        output = subprocess.run(command, capture_output=True, text=True)
        try:
            result = json.loads(output.stdout)
        except ValueError:
            sys.exit(f"{server.name}: {output.stderr}")
        if result["failed"] or result["resumed"]:
            sys.exit(f"{server.name}: not all were full handshakes: {output.stdout}")
        return result

    def measure(self, server, **how):
        before = server.cpu()
        result = self.load(server, **how)
        time.sleep(0.1)  # work after the last response counts too
        latency = result["latency_us"]
        return {
            "cpu": (server.cpu() - before) / 1000 / result["full"],
            "per_second": result["handshakes_per_second"],
            **{name: latency[name] for name in ("p50", "p99", "p999")},
        }

    def stop(self, servers):
        for server in list(servers):
            server.process.send_signal(signal.SIGTERM)
            try:
                server.process.wait(20)
            except subprocess.TimeoutExpired:
                server.process.kill()
            self.servers.remove(server)

    def end(self):
        self.stop(self.servers)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# --- the control plane


class ControlPlane:
    """The tests' control plane, controlled over stdin; see crates/xds/tests/control-plane/main.go."""

    def __init__(self, laboratory):
        program = laboratory.directory / "control-plane"
        subprocess.run(["go", "build", "-o", program, "."], cwd=ROOT / "crates/xds/tests/control-plane", check=True)
        self.process = subprocess.Popen(
            ["chrt", "--idle", "0", "taskset", "-c", CLIENT_CORE, program, "--ads=false"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(json.loads(self.process.stdout.readline())["listening"].rsplit(":", 1)[1])
        self.done, self.requests, self.turns = threading.Semaphore(0), [], itertools.cycle("10")
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if "request" in said:
                self.requests.append((time.monotonic(), said["request"]))
                if said["request"]["error"]:
                    print("refused:", said["request"]["error"], file=sys.stderr)
            else:
                if "error" in said:
                    print("control plane:", said["error"], file=sys.stderr)
                self.done.release()

    def set(self, snapshot):
        self.tell({"set": snapshot.json()})

    def keep(self, name, snapshot):
        self.tell({"set": snapshot.json(), "keep": name})

    def use(self, name):
        self.tell({"use": name})

    def use_and_wait(self, name):
        """Returns the milliseconds until the gateway's last message."""
        began = time.monotonic()
        self.use(name)
        time.sleep(1)
        self.settle()
        return (self.requests[-1][0] - began) * 1000

    def tell(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        self.done.acquire()

    def settle(self):
        """Waits until no gateway has sent a message for a while."""
        while self.requests and time.monotonic() - self.requests[-1][0] < 0.7:
            time.sleep(0.1)

    def end(self):
        self.process.stdin.close()
        self.process.wait()

    def bootstrap(self):
        text = (ROOT / "crates/cli/tests/gateway/xds/bootstrap.yaml").read_text()
        return text.replace("port_value: CONTROL_PLANE", f"port_value: {self.port}")


class Snapshot:
    """A site configured by a control plane: one listener, one route table, secrets."""

    def __init__(self, laboratory, port):
        self.port, self.version = port, 0
        self.laboratory, self.renewed = laboratory, 0
        self.secrets, self.routes = {"site": (laboratory.chain.read_text(), laboratory.key.read_text())}, []

    def grow(self, secrets, routes):
        names = [f"secret-{number}" for number in range(secrets)]
        self.secrets |= {name: self.laboratory.pair(f"{name}.example.com") for name in names}
        self.routes = [respond(f"/api/{number}/", "ok") for number in range(routes)]

    def renew(self):
        """Replaces the secrets' texts with equivalent ones, so that all are parsed and rebuilt."""
        self.renewed += 1

    def json(self):
        self.version += 1
        chains = [self.chain(name) for name in self.secrets]
        host = {"name": "all", "domains": ["*"], "routes": [*self.routes, respond("/", "ok")]}
        return {
            "version": str(self.version),
            "listeners": [
                {
                    "name": "main",
                    "address": {"socket_address": {"address": "127.0.0.1", "port_value": self.port}},
                    "filter_chains": chains,
                }
            ],
            "routes": [{"name": "routes", "virtual_hosts": [host]}],
            "secrets": [self.secret(name, *pair) for name, pair in self.secrets.items()],
        }

    def secret(self, name, chain, key):
        certificate = {
            "certificate_chain": {"inline_string": f"# {self.renewed}\n{chain}"},
            "private_key": {"inline_string": key},
        }
        return {"name": name, "tls_certificate": certificate}

    def chain(self, secret):
        by_ads = {"ads": {}, "resource_api_version": "V3"}
        tls = {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "disable_stateless_session_resumption": True,
            "disable_stateful_session_resumption": True,
            "common_tls_context": {
                "tls_params": {"ecdh_curves": ["X25519"]},
                "tls_certificate_sds_secret_configs": [{"name": secret, "sds_config": by_ads}],
            },
        }
        http = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
        router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
        manager = {
            "@type": http,
            "stat_prefix": "main",
            "rds": {"route_config_name": "routes", "config_source": by_ads},
            "http_filters": [{"name": "router", "typed_config": {"@type": router}}],
        }
        chain = {
            "name": secret,
            "transport_socket": {"name": "tls", "typed_config": tls},
            "filters": [{"name": "http", "typed_config": manager}],
        }
        if secret != "site":
            chain["filter_chain_match"] = {"server_names": [f"{secret}.example.com"]}
        return chain


def respond(prefix, body):
    answer = {"status": 200, "body": {"inline_string": body}}
    return {"match": {"prefix": prefix}, "direct_response": answer}


if __name__ == "__main__":
    main()
