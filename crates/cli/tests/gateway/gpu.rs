//! GPU backend: a GPU is used if available and is visible to operators; without one, or after its loss, the CPU
//! computes. The GPU's driver is a fake.

#[path = "../../../kernels-cuda/tests/support/fake.rs"]
mod fake;

use crate::support::{Certificates, Gateway, KeyServer, Pair, Site, curl, output, quadrille, serve};
use fake::Fake;
use std::{fs, path::Path, process::Command};

/// Starts a gateway that computes slowly, one operation at a time, so that a few dozen clients overload it.
fn command(pair: &Pair, driver: &Path, backend: &str) -> Command {
    let mut command = serve();
    command.args([
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--respond",
        "ok",
        "--backend",
        backend,
    ]);
    command.args(["--session-tickets", "off", "--session-cache", "off", "--compute-threads", "1", "--cert"]);
    command.arg(&pair.chain).arg("--key").arg(&pair.key);
    command.env("QUADRILLE_CPU", "portable").env("LD_LIBRARY_PATH", driver);
    command
}

/// Performs full handshakes of many clients, all of which must succeed.
fn load(gateway: &Gateway, certificates: &Certificates) {
    let mut bench = quadrille("bench");
    bench.arg(format!("https://localhost:{}/", gateway.port()));
    bench.args(["--connect", &format!("127.0.0.1:{}", gateway.port()), "--ca"]).arg(certificates.ca());
    bench.args(["--connections", "100", "--count", "3000", "--json"]);
    let (succeeded, text) = output(&mut bench);
    assert!(succeeded, "{text}");
}

/// Simulates a machine without a driver: a library that cannot be loaded takes precedence over this machine's.
fn without_driver(certificates: &Certificates) -> std::path::PathBuf {
    let folder = certificates.path("driver");
    fs::create_dir_all(&folder).expect("writing");
    fs::write(folder.join("libcuda.so.1"), "").expect("writing");
    folder
}

#[test]
fn without_a_gpu_the_reason_is_logged() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let driver = without_driver(&certificates);
    for (backend, said) in
        [("auto", "no GPU reason=no NVIDIA driver ("), ("lanes", "no GPU reason=switched off")]
    {
        let gateway = Gateway::start(command(&pair, &driver, backend), 1);
        assert!(!gateway.log().contains("gpu"), "no GPU was requested: {}", gateway.log());
        let mut talkative = command(&pair, &driver, backend);
        talkative.args(["--log-level", "debug"]);
        let gateway = Gateway::start(talkative, 1);
        assert!(gateway.log().contains(said), "{backend}: {}", gateway.log());
        assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
        assert!(!gateway.metrics().contains("quadrille_gpu_in_use{"), "{}", gateway.metrics());
    }
    let (served, text) = output(&mut command(&pair, &driver, "gpu"));
    assert!(!served, "{text}");
    assert!(text.contains("the engine's backend is `gpu`: no NVIDIA driver ("), "{text}");
    assert!(text.contains("`backend: auto` (`--backend auto`) needs no GPU"), "{text}");
}

#[test]
fn what_is_too_much_for_the_cpu_goes_to_the_gpu() {
    let (certificates, fake) = (Certificates::new(), Fake::new());
    let pair = certificates.rsa(2048, &["localhost"]);
    let gateway = Gateway::start(command(&pair, fake.folder(), "auto"), 1);
    assert!(gateway.log().contains("gpu=\"Fake GPU\""), "{}", gateway.log());
    for _ in 0..3 {
        assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
    }
    assert_eq!(gateway.metric("quadrille_gpu_in_use", &["Fake GPU"]), 1.0);
    assert_eq!(gateway.metric("quadrille_key_operations_total", &["\"cuda\""]), 0.0, "not at low load");
    load(&gateway, &certificates);
    let by = |backend: &str| gateway.metric("quadrille_key_operations_total", &[backend, "\"ok\""]);
    assert!(by("\"cuda\"") > 0.0 && by("\"scalar\"") > 0.0, "{}", gateway.metrics());
    assert_eq!(gateway.metric("quadrille_key_operations_total", &["\"failed\""]), 0.0);
    let status = gateway.admin_page("/status");
    assert!(status.contains("\"gpu\": \"Fake GPU\""), "{status}");
}

#[test]
fn a_gpu_that_is_lost_under_load_costs_no_handshake() {
    let (certificates, fake) = (Certificates::new(), Fake::new());
    let pair = certificates.rsa(2048, &["localhost"]);
    let mut command = command(&pair, fake.folder(), "gpu");
    command.env("FAKE_CUDA", "lost_at=3");
    let mut gateway = Gateway::start(command, 1);
    load(&gateway, &certificates);
    gateway.wait_for_log("the GPU is lost; the CPU computes alone until this process is started again");
    assert!(gateway.log().contains("CUDA_ERROR_LAUNCH_FAILED"), "{}", gateway.log());
    assert_eq!(gateway.metric("quadrille_gpu_in_use", &["Fake GPU"]), 0.0);
    assert_eq!(gateway.metric("quadrille_key_operations_total", &["\"failed\""]), 0.0);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
}

#[test]
fn a_key_server_uses_it_too() {
    let (site, fake) = (Site::new(), Fake::new());
    let pair = site.certificates.rsa(2048, &["localhost"]);
    site.give_away(&pair, "site");
    let mut command = site.command();
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--backend", "gpu"]);
    command.env("LD_LIBRARY_PATH", fake.folder());
    let process = Gateway::start(command, 1);
    assert!(process.log().contains("gpu=\"Fake GPU\""), "{}", process.log());
    let keys = KeyServer { port: process.port(), process };
    let key = site.keyless(&[keys.name()], "");
    let (gateway, _file) = site.serve(&[site.listener(&pair.chain, &key, "")]);
    assert_eq!(curl(&gateway, &site.certificates, &[], "/"), "right");
    assert_eq!(keys.process.metric("quadrille_gpu_in_use", &["Fake GPU"]), 1.0);
}

#[test]
fn profile_algorithms_shows_it() {
    let (certificates, fake) = (Certificates::new(), Fake::new());
    let profile = |driver: &Path| {
        let mut command = quadrille("profile");
        command.args(["algorithms", "--rounds", "1", "--turn", "1"]).env("LD_LIBRARY_PATH", driver);
        let (succeeded, text) = output(&mut command);
        assert!(succeeded, "{text}");
        text
    };
    let without = profile(&without_driver(&certificates));
    assert!(without.contains("\nSigning on a GPU: no NVIDIA driver ("), "{without}");
    let with = profile(fake.folder());
    assert!(with.contains("\nSigning on Fake GPU, by wall-clock time"), "{with}");
}
