//! Recipes of access control.

use super::Recipe;
use crate::support::echo_server;

#[test]
fn networks_are_admitted_to_a_path() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("access", "Admit some networks to a path", &[("127.0.0.1:8080", &app)]);
    let _gateway = recipe.serve();
    recipe.run(..);
    let replaced = [("127.0.0.1:8080", &*app), ("10.0.0.0/8", "127.0.0.0/8")];
    let near = Recipe::new("access", "Admit some networks to a path", &replaced);
    let _gateway = near.serve();
    assert_eq!(near.status(&["https://example.com/admin/users"]), "200");
}

#[test]
fn a_path_requires_a_client_certificate() {
    let app = echo_server().to_string();
    let recipe =
        Recipe::new("access", "Require a client certificate for a path", &[("127.0.0.1:8080", &app)]);
    let _gateway = recipe.serve();
    recipe.run(..);
    let forged = "X-Client: CN=forged";
    let seen = recipe.curl(&[
        "--cert",
        "shop.pem",
        "--key",
        "shop.key",
        "-H",
        forged,
        "https://example.com/payments",
    ]);
    assert!(seen.to_lowercase().contains("x-client: cn=acme.shops.example\n"), "{seen}");
    let other = recipe.certificates.ecdsa("P-256", &["mallory.example"]);
    let [chain, key] = [other.chain.display(), other.key.display()].map(|path| path.to_string());
    let denied = recipe.curl(&["--cert", &chain, "--key", &key, "https://example.com/payments"]);
    assert_eq!(denied, "This client certificate is not allowed here.\n");
}

#[test]
fn only_some_methods_are_allowed() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("access", "Allow only some methods", &[("127.0.0.1:8080", &app)]);
    let _gateway = recipe.serve();
    recipe.run(..);
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let head = recipe.curl(&["-i", "-X", method, "https://example.com/api/items/1"]).to_lowercase();
        assert!(head.starts_with("http/2 405") && head.contains("\nallow: get, head\n"), "{method}: {head}");
        assert_eq!(recipe.status(&["-X", method, "https://example.com/other"]), "200", "{method}");
    }
    assert_eq!(recipe.status(&["--head", "https://example.com/api/items"]), "200");
}

#[test]
fn a_user_agent_is_denied_everywhere() {
    let (app, api) = (echo_server().to_string(), echo_server().to_string());
    let replaced = [("127.0.0.1:8080", &*app), ("127.0.0.1:8081", &*api)];
    let recipe = Recipe::new("access", "Deny a user agent everywhere", &replaced);
    let _gateway = recipe.serve();
    recipe.run(..);
    for url in ["https://example.com/", "https://example.com/api", "https://example.com/api/a?b"] {
        assert_eq!(recipe.status(&["-A", "Mozilla/5.0 Nikto/2.5", url]), "403", "{url}");
        assert_eq!(recipe.status(&["-A", "Mozilla/5.0", url]), "200", "{url}");
    }
}
