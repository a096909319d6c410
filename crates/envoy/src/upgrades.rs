//! Protocol upgrades (RFC 9110 section 7.8, RFC 8441).

use crate::{
    reader::{Message, ReadMessage},
    schema::Schema,
    values::boolean,
};
use quadrille_config::model::Upgrades;

/// Types that are tunnels of their own, or carry further requests.
const UNSUPPORTED: [&str; 4] = ["connect", "connect-udp", "connect-ip", "h2c"];

/// Reads the protocols that `upgrade_configs` enables or disables, each message in the form of `schema`.
pub(crate) fn upgrades(message: &Message<'_>, schema: &'static Schema) -> Option<Upgrades> {
    let mut upgrades = Upgrades::default();
    for field in message.list("upgrade_configs") {
        let upgrade = field.message(schema)?;
        let kind = upgrade.string("upgrade_type").to_ascii_lowercase();
        let enabled = upgrade.read("enabled", boolean).unwrap_or(true);
        if UNSUPPORTED.contains(&kind.as_str()) {
            field.warn("upgrade", format!("ignored: `{kind}` is not supported"));
        } else if enabled {
            upgrades.on.push(kind);
        } else {
            upgrades.off.push(kind);
        }
    }
    Some(upgrades)
}
