//! Selection of Ingress objects by their class, as ingress-nginx does.

use crate::{
    object::{Ingress, Objects},
    options::Options,
};

/// The annotation that older objects have in place of `ingressClassName`.
const ANNOTATION: &str = "kubernetes.io/ingress.class";
/// The annotation of a class that Ingress objects without a class have.
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// Relation of an Ingress to the controller.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selected {
    Yes,
    /// Assumed: neither the object nor the input names a class.
    Assumed,
    /// Another controller serves it; the text is its class.
    No(String),
}

/// Returns whether the Ingress belongs to ingress-nginx.
pub(crate) fn selected(ingress: &Ingress, objects: &Objects, options: &Options) -> Selected {
    let is_ours = |name: &str| {
        let class = objects.classes.iter().find(|class| class.meta.name == name);
        class.map_or(name == options.class, |class| class.controller == options.controller)
    };
    if let Some(name) = ingress.meta.annotation(ANNOTATION).filter(|name| !name.is_empty()) {
        return if name == options.class || is_ours(name) {
            Selected::Yes
        } else {
            Selected::No(name.to_owned())
        };
    }
    if let Some(name) = &ingress.class {
        return if is_ours(name) { Selected::Yes } else { Selected::No(name.clone()) };
    }
    let default = objects.classes.iter().find(|class| class.meta.annotation(IS_DEFAULT) == Some("true"));
    match default {
        Some(class) if class.controller == options.controller => Selected::Yes,
        Some(class) => Selected::No(class.meta.name.clone()),
        None if objects.is_complete => Selected::No("no class".to_owned()),
        None => Selected::Assumed,
    }
}
