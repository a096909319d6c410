//! Recipes of URLs and pages.

use super::Recipe;
use crate::support::{configuration::replace, echo_server, eventually};

#[test]
fn www_is_redirected_to_the_apex() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("urls", "Redirect www to the apex", &[("127.0.0.1:8080", &app)]);
    let _gateway = recipe.serve();
    recipe.run(..);
    for (from, to) in [
        ("https://www.example.com/", "https://example.com/"),
        ("http://example.com/a?b", "https://example.com/a?b"),
        ("http://www.example.com/", "https://example.com/"),
    ] {
        let printed = recipe.curl(&["-o", "/dev/null", "-w", "%{redirect_url}", from]);
        assert_eq!(printed, to, "{from}");
    }
    let head = recipe.curl(&["-i", "https://example.com/"]).to_lowercase();
    assert!(head.contains("\nstrict-transport-security: max-age="), "{head}");
}

#[test]
fn servers_receive_another_host() {
    let (app, store) = (echo_server().to_string(), echo_server());
    let store = format!("localhost:{}", store.port());
    let replaced = [("127.0.0.1:8080", &*app), ("store.internal:9000", &*store)];
    let recipe = Recipe::new("urls", "Send another host to servers", &replaced);
    let _gateway = recipe.serve();
    recipe.run(..);
    for (path, line, host) in [
        ("/assets/logo.svg", "get /public/logo.svg http/1.1", "localhost"),
        ("/shop/cart", "get /shop/cart http/1.1", "shop.internal"),
        ("/other", "get /other http/1.1", "example.com"),
    ] {
        let seen = recipe.curl(&[&format!("https://example.com{path}")]).to_lowercase();
        assert!(seen.starts_with(line), "{seen}");
        assert!(seen.contains(&format!("\nhost: {host}")), "{seen}");
        assert!(seen.contains("\nx-forwarded-host: example.com"), "{seen}");
    }
}

#[test]
fn parts_of_the_path_are_used() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("urls", "Use parts of the path", &[("127.0.0.1:8080", &app)]);
    let _gateway = recipe.serve();
    recipe.run(..);
    let seen = recipe.curl(&["https://example.com/api/v2/users/7?full=1"]).to_lowercase();
    assert!(seen.starts_with("get /users/7?full=1 ") && seen.contains("\nx-api-version: 2\n"), "{seen}");
    assert_eq!(recipe.status(&["https://example.com/blog/2024/post-quantum"]), "308");
}

#[test]
fn pages_of_other_origins_are_admitted() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("urls", "Admit pages of other origins (CORS)", &[("127.0.0.1:8080", &app)]);
    let _gateway = recipe.serve();
    recipe.run(..);
    let origin = "Origin: https://pr-7.preview.example.com";
    let url = "https://example.com/api/items";
    let preflight = ["-i", "-X", "OPTIONS", "-H", origin, "-H", "Access-Control-Request-Method: DELETE", url];
    let head = recipe.curl(&preflight).to_lowercase();
    for line in [
        "allow-origin: https://pr-7.preview.example.com",
        "allow-methods: put, delete",
        "allow-headers: content-type, x-requested-with",
        "max-age: 3600",
        "allow-credentials: true",
    ] {
        assert!(head.contains(&format!("\naccess-control-{line}\n")), "{line}: {head}");
    }
    let head = recipe.curl(&["-i", "-H", origin, url]).to_lowercase();
    assert!(head.contains("\naccess-control-allow-credentials: true\n"), "{head}");
    let head = recipe.curl(&["-i", "-H", origin, "https://example.com/other"]).to_lowercase();
    assert!(!head.contains("\naccess-control-"), "{head}");
}

#[test]
fn a_maintenance_page_is_shown() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("urls", "Show a maintenance page", &[("127.0.0.1:8080", &app)]);
    let _gateway = recipe.serve();
    recipe.run(..);
    let shop = "https://example.com/shop";
    assert_eq!(recipe.curl(&[shop]), "<p>Back soon.</p>\n");
    let file = recipe.path("quadrille.yaml");
    let text = std::fs::read_to_string(&file).expect("the configuration");
    let without: Vec<_> =
        text.lines().filter(|line| !line.contains("rules:") && !line.contains("deny:")).collect();
    replace(&file, (without.join("\n") + "\n").as_bytes());
    eventually("the maintenance does not end", || recipe.status(&[shop]) == "200");
}
