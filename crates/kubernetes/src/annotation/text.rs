//! Texts of annotations: lists, and nginx's variables.

use quadrille_draft::variables::{self, Context, Piece, pieces};

/// Values of ingress-nginx's own variables at a location.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    pub(crate) namespace: String,
    pub(crate) ingress: String,
    pub(crate) service: String,
    pub(crate) port: String,
    /// The properties of the route that nginx's variables refer to.
    pub(crate) context: Context,
}

impl Texts {
    /// Replaces ingress-nginx's own variables.
    pub(crate) fn substituted(&self, text: &str) -> String {
        let mut whole = String::new();
        let pieces = pieces(text);
        for (index, piece) in pieces.iter().enumerate() {
            match *piece {
                Piece::Text(text) => whole.push_str(text),
                Piece::Variable("namespace") => whole.push_str(&self.namespace),
                Piece::Variable("ingress_name") => whole.push_str(&self.ingress),
                Piece::Variable("service_name") => whole.push_str(&self.service),
                Piece::Variable("service_port") => whole.push_str(&self.port),
                Piece::Variable("pass_access_scheme") => whole.push_str("$scheme"),
                Piece::Variable("best_http_host") => whole.push_str("$http_host"),
                Piece::Variable(name) => {
                    let continues = matches!(
                        pieces.get(index + 1),
                        Some(Piece::Text(next)) if next.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                    );
                    whole.push_str(&if continues { format!("${{{name}}}") } else { format!("${name}") });
                }
            }
        }
        whole
    }

    /// Converts the value of a header.
    ///
    /// # Errors
    /// With the name of a variable that has no placeholder.
    pub(crate) fn header_value(&self, text: &str) -> Result<String, String> {
        variables::header_value(&self.substituted(text), &self.context)
    }
}

/// Returns the items of a list with commas.
pub(crate) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}
