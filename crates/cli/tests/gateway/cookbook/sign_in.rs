//! Recipes of forward authentication, with servers that decide as those of the recipe do.

use super::{Recipe, response, server};
use crate::support::echo_server;

/// Decides as oauth2-proxy does with `--upstream=static://202 --skip-provider-button --set-xauthrequest`.
fn oauth2_proxy(head: &str) -> String {
    let path = head.split(' ').nth(1).unwrap_or_default();
    if path.starts_with("/oauth2/") {
        return response("200 OK", "", &format!("oauth2-proxy {path}"));
    }
    if !head.contains("_oauth2_proxy=valid") {
        let location =
            "Location: https://id.example.com/authorize?state=1\r\nSet-Cookie: _oauth2_proxy_csrf=1\r\n";
        return response("302 Found", location, "");
    }
    let user = "X-Auth-Request-User: ada\r\nX-Auth-Request-Email: ada@example.com\r\n\
                Set-Cookie: _oauth2_proxy=renewed\r\n";
    response("202 Accepted", user, "Authenticated")
}

#[test]
fn users_sign_in_with_oauth2_proxy() {
    let (app, proxy) = (echo_server().to_string(), server(oauth2_proxy).to_string());
    let replaced = [("127.0.0.1:8080", &*app), ("127.0.0.1:4180", &*proxy)];
    let recipe = Recipe::new("sign-in", "Sign in with oauth2-proxy", &replaced);
    let _gateway = recipe.serve();
    recipe.run(..);
    let url = "https://example.com/private?a=b";
    let head = recipe.curl(&["-i", url]);
    assert!(head.contains("\nlocation: https://id.example.com/authorize?state=1\n"), "{head}");
    assert!(head.contains("\nset-cookie: _oauth2_proxy_csrf=1\n"), "{head}");
    let forged = "X-Auth-Request-User: root";
    let seen = recipe.curl(&["-i", "--cookie", "_oauth2_proxy=valid", "-H", forged, url]).to_lowercase();
    assert!(seen.contains("\nx-auth-request-user: ada\n") && !seen.contains("root"), "{seen}");
    assert!(seen.contains("\nx-auth-request-email: ada@example.com\n"), "{seen}");
    assert!(seen.contains("\nset-cookie: _oauth2_proxy=renewed\n"), "{seen}");
    assert_eq!(
        recipe.curl(&["https://example.com/oauth2/callback?code=1"]),
        "oauth2-proxy /oauth2/callback?code=1"
    );
    let seen = recipe.curl(&["-H", forged, "https://example.com/healthz"]);
    assert!(seen.starts_with("GET /healthz ") && !seen.contains("root"), "{seen}");
}

/// Decides as Authelia's endpoint of the type `ForwardAuth` does, by the headers that it requires.
fn authelia(head: &str) -> String {
    let field = |name: &str| {
        let line = head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}: ")));
        line.and_then(|line| line.split_once(": ")).map(|(_, value)| value.to_owned())
    };
    if !head.starts_with("GET /api/authz/forward-auth ") {
        return response("200 OK", "", "portal");
    }
    let parts = ["x-forwarded-proto", "x-forwarded-host", "x-forwarded-uri", "x-forwarded-method"].map(field);
    let [Some(scheme), Some(host), Some(uri), Some(method)] = parts else {
        return response("400 Bad Request", "", "a header is missing");
    };
    if head.contains("authelia_session=valid") {
        let user = "Remote-User: ada\r\nRemote-Groups: staff,admins\r\nRemote-Email: ada@example.com\r\nRemote-Name: Ada\r\n";
        return response("200 OK", user, "");
    }
    let target = format!("{scheme}://{host}{uri}").replace(':', "%3A").replace('/', "%2F");
    let location = format!("Location: https://auth.example.com/?rd={target}&rm={method}\r\n");
    response("302 Found", &location, "")
}

#[test]
fn users_sign_in_with_authelia() {
    let (app, portal) = (echo_server().to_string(), server(authelia).to_string());
    let replaced = [("127.0.0.1:8080", &*app), ("127.0.0.1:9091", &*portal)];
    let recipe = Recipe::new("sign-in", "Sign in with Authelia", &replaced);
    let _gateway = recipe.serve();
    recipe.run(..);
    let arguments =
        ["--cookie", "authelia_session=valid", "-H", "Remote-Groups: forged", "https://example.com/private"];
    let seen = recipe.curl(&arguments).to_lowercase();
    for line in ["user: ada", "groups: staff,admins", "email: ada@example.com", "name: ada"] {
        assert!(seen.contains(&format!("\nremote-{line}\n")), "{line}: {seen}");
    }
    assert!(!seen.contains("forged"), "{seen}");
    assert_eq!(recipe.curl(&["https://auth.example.com/"]), "portal");
}
