//! The HTTP Basic authentication filter.

use crate::{
    common::data_source,
    reader::{Field, ReadMessage},
    schema,
};
use http::HeaderName;
use quadrille_config::{
    Problem,
    model::{BasicAuth, PasswordHashes},
};

/// `envoy.extensions.filters.http.basic_auth.v3.BasicAuth`.
pub(crate) fn basic_auth(field: &Field<'_>) -> Option<BasicAuth> {
    let message = field.message(&schema::BASIC_AUTH)?;
    let users = message.require("users")?;
    let user_header = match message.get("forward_username_header") {
        Some(name) => Some(name.parse(header_name)?),
        None => None,
    };
    Some(BasicAuth {
        users: data_source(&users)?,
        users_place: users.place(),
        hashes: PasswordHashes::Sha1,
        realm: BasicAuth::REALM.to_owned(),
        forwards: true,
        user_header,
        // Envoy does not limit attempts, and a limit that is not configured would be unexpected.
        guesses: None,
    })
}

fn header_name(text: &str) -> Result<HeaderName, Problem> {
    HeaderName::try_from(text).map_err(|_| Problem::new("not a header name", "write one such as `x-user`"))
}
