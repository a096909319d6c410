//! Protocol upgrades; only WebSocket is supported (RFC 6455, RFC 8441).

use crate::{
    reader::{Message, ReadMessage},
    schema::Schema,
    values::boolean,
};

/// Reads whether `upgrade_configs` enables it, each message in the form of `schema`; `Some(None)` if unset.
pub(crate) fn websocket(message: &Message<'_>, schema: &'static Schema) -> Option<Option<bool>> {
    let mut enabled = None;
    for field in message.list("upgrade_configs") {
        let upgrade = field.message(schema)?;
        let kind = upgrade.string("upgrade_type");
        if kind.eq_ignore_ascii_case("websocket") {
            enabled = Some(upgrade.read("enabled", boolean).unwrap_or(true));
        } else {
            field.warn("upgrade", format!("ignored: `{kind}` is not supported, only WebSocket"));
        }
    }
    Some(enabled)
}
