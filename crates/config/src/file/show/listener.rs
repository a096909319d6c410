//! A listener with its chains.

use super::{
    route, tls,
    values::{put, time},
};
use crate::{
    model::{Chain, Listener, Serve},
    words::name,
};
use serde_json::{Map, Value, json};

/// A listener for each chain, all with the same address.
pub(super) fn listener(listener: &Listener) -> impl Iterator<Item = Value> + '_ {
    listener.all_chains().map(move |one| {
        let mut shown = json!({
            "address": listener.address.to_string(),
            "proxy_protocol": name(listener.proxy_protocol),
            "limits": {
                "connections": listener.limits.connections,
                "handshakes": listener.limits.handshakes,
            },
        });
        put(&mut shown, "listener", text(&listener.name));
        if let (Some(shown), Value::Object(keys)) = (shown.as_object_mut(), chain(one)) {
            shown.extend(keys);
        }
        shown
    })
}

fn chain(chain: &Chain) -> Value {
    let mut shown = json!({
        "mode": name(chain.mode()),
        "timeouts": {
            "handshake": time(chain.timeouts.handshake),
            "header": time(chain.timeouts.header),
            "idle": time(chain.timeouts.idle),
        },
    });
    put(&mut shown, "chain", text(&chain.name));
    match &chain.tls {
        None => put(&mut shown, "tls", Some("off".into())),
        Some(tls) => {
            let certificates = tls.certificates.iter().map(|one| tls::certificate(one));
            put(&mut shown, "certificates", Some(certificates.collect()));
            put(&mut shown, "tls", Some(tls::tls(&tls.policy)));
        }
    }
    put(&mut shown, "match", accepts(chain));
    match &chain.serve {
        Serve::Tcp(to) => put(
            &mut shown,
            "routes",
            Some(json!([route::to(
                to,
                Map::from_iter([("host".to_owned(), "*".into()), ("path".to_owned(), "/".into()),])
            )])),
        ),
        Serve::Http(http) => {
            put(&mut shown, "routes", Some(route::table(&http.routes)));
            for (key, on) in [("normalize_path", http.normalize_path), ("merge_slashes", http.merge_slashes)]
            {
                put(&mut shown, key, on.then_some(true.into()));
            }
        }
    }
    shown
}

fn accepts(chain: &Chain) -> Option<Value> {
    let mut shown = Map::new();
    let accepts = &chain.accepts;
    for (key, values) in
        [("server_names", &accepts.server_names), ("application_protocols", &accepts.application_protocols)]
    {
        if !values.is_empty() {
            shown.insert(key.to_owned(), values.clone().into());
        }
    }
    if let Some(transport) = accepts.transport {
        shown.insert("transport".to_owned(), name(transport).into());
    }
    (!shown.is_empty()).then_some(shown.into())
}

fn text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| text.into())
}
