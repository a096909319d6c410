//! Recipes of upstream servers.

use super::Recipe;
use crate::support::{Nginx, eventually};

fn named(name: &str) -> Nginx {
    Nginx::new(&format!("return 200 {name};"))
}

#[test]
fn a_canary_receives_a_share() {
    let [first, second, canary] = ["stable", "stable", "canary"].map(named);
    let addresses = [&first, &second, &canary].map(|nginx| nginx.address().to_string());
    let replaced = [
        ("10.0.0.1:8080", &*addresses[0]),
        ("10.0.0.2:8080", &*addresses[1]),
        ("10.0.0.3:8080", &*addresses[2]),
    ];
    let recipe = Recipe::new("servers", "Send a share of requests to a canary", &replaced);
    let _gateway = recipe.serve();
    recipe.run(..);
    let url = "https://example.com/";
    for arguments in [&["--cookie", "release=canary", url], &["-H", "X-Release: canary", url]] {
        for _ in 0..3 {
            assert_eq!(recipe.curl(arguments), "canary");
        }
    }
    for name in ["stable", "canary"] {
        eventually(&format!("{name} receives no request"), || recipe.curl(&[url]) == name);
    }
}

#[test]
fn a_backup_server_takes_over() {
    let [mut first, mut second, backup] = ["first", "second", "backup"].map(named);
    let addresses = [&first, &second, &backup].map(|nginx| nginx.address().to_string());
    let replaced = [
        ("10.0.0.1:8080", &*addresses[0]),
        ("10.0.0.2:8080", &*addresses[1]),
        ("10.0.9.1:8080", &*addresses[2]),
        ("interval: 2s", "interval: 50ms"),
    ];
    let recipe = Recipe::new("servers", "Keep a backup server", &replaced);
    let gateway = recipe.serve();
    let url = "https://example.com/";
    recipe.run(..);
    for _ in 0..10 {
        assert_ne!(recipe.curl(&[url]), "backup");
    }
    first.stop();
    second.stop();
    eventually("the backup does not take over", || recipe.curl(&[url]) == "backup");
    for address in &addresses[..2] {
        let server = format!("server=\"{address}\"");
        gateway.wait_for_metric("quadrille_upstream_server_up", &[&server], |up| up == 0.0);
    }
    for _ in 0..10 {
        assert_eq!(recipe.curl(&[url]), "backup");
    }
    first.start();
    eventually("the first server does not return", || recipe.curl(&[url]) == "first");
}
