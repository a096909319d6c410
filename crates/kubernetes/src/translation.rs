//! A translation, from objects to the text of a configuration.

use crate::{
    annotation::{Annotations, tracing},
    class::{Selected, selected},
    listeners::{self, Builder},
    object::{Ingress, Objects},
    options::Options,
    report::Report,
    site::{Source, sites},
    validity::{is_valid, probe},
    world::World,
};
use quadrille_config::model::Gateway;
use quadrille_draft::{
    draft::{Action, Draft},
    yaml::{self, Map},
};
use std::ops::Range;

/// A translation.
#[derive(Debug)]
pub struct Translation {
    /// The configuration in YAML, with private keys of Secrets.
    pub yaml: String,
    /// The configuration that was read from the text.
    pub model: Gateway,
    /// The outcome of each setting, by object.
    pub report: Report,
    /// Namespace and name of the Ingress objects that are translated, the oldest first.
    pub served: Vec<(String, String)>,
}

/// Translates all Ingress objects of a class.
///
/// # Errors
/// If the translation is not a valid configuration, which is a defect.
pub fn translate(objects: &Objects, options: &Options) -> Result<Translation, String> {
    let world = World::new(objects, options);
    for (meta, problem) in &objects.unreadable {
        world.refuse(meta, "the object", problem.clone());
    }
    let sources = sources(&world);
    let sites = sites(&sources, &world);
    let builder = Builder { world: &world, sources: &sources, sites: &sites };
    let listeners = builder.listeners();
    {
        let mut draft = world.draft.borrow_mut();
        draft.listeners = listeners;
        draft.top = listeners::top(&world);
    }
    for source in &sources {
        tracing::judge(&source.annotations);
        if source.is_canary {
            ignored_of_canary(&source.annotations);
        }
        source.annotations.finish();
    }
    drop(sites);
    let counts = (sources.len(), objects.ingresses.len());
    let named = |source: &Source<'_, '_>| {
        let meta = &source.ingress.meta;
        (meta.namespace.clone(), meta.name.clone())
    };
    let served = sources.iter().map(named).collect();
    drop(sources);
    let mut draft = world.draft.into_inner();
    let (ledger, noted) = world.notes.into_parts();
    let mut closed = Vec::new();
    let (yaml, model) = valid(&mut draft, &mut closed)?;
    let mut report = Report::new(&ledger, &noted, counts, objects);
    report.add_closed(closed);
    Ok(Translation { yaml, model, report, served })
}

/// Returns the Ingress objects of the class with their annotations, in the order of precedence.
pub(crate) fn sources<'w, 'o>(world: &'w World<'o>) -> Vec<Source<'w, 'o>> {
    let source = |ingress: &'o Ingress| {
        let annotations = Annotations::of(&ingress.meta, world);
        let is_canary = annotations.flag("canary") == Some(true);
        Source { ingress, annotations, is_canary }
    };
    chosen(world).into_iter().map(source).collect()
}

/// Returns the Ingress objects of the class, in the order of precedence.
fn chosen<'o>(world: &World<'o>) -> Vec<&'o Ingress> {
    let mut chosen = Vec::new();
    for ingress in &world.objects.ingresses {
        match selected(ingress, world.objects, world.options) {
            Selected::Yes => chosen.push(ingress),
            Selected::Assumed => {
                let text = "it has no class, and the input no default IngressClass: it is translated; ingress-nginx serves it \
                            with `--watch-ingress-without-class` only";
                world.differ(&ingress.meta, "class", text);
                chosen.push(ingress);
            }
            Selected::No(class) => world.differ(
                &ingress.meta,
                "class",
                format!("not translated: it belongs to `{class}`, another controller; `--ingress-class {class}` translates it"),
            ),
        }
    }
    chosen.sort_by(|a, b| a.meta.precedence().cmp(&b.meta.precedence()));
    chosen
}

/// Notes annotations of a canary that its main Ingress decides about.
fn ignored_of_canary(annotations: &Annotations<'_, '_>) {
    for entry in crate::annotation::table::ALL {
        let is_own = entry.name.starts_with("canary") || entry.name.starts_with("affinity-canary");
        if !is_own && annotations.value(entry.name).is_some() {
            annotations.differ(entry.name, "no effect on a canary: the Ingress with the same path decides");
        }
    }
}

/// Returns the text of a configuration that the reader accepts, and what it reads. A route that it does not accept responds with 503.
fn valid(draft: &mut Draft, closed: &mut Vec<String>) -> Result<(String, Gateway), String> {
    let text = yaml::document(&draft.to_map());
    let mistakes = match quadrille_config::parse(&text, "translation") {
        Ok(model) => return Ok((text, model)),
        Err(mistakes) => mistakes,
    };
    draft.upstreams.retain(|upstream| {
        let upstreams = vec![upstream.clone()];
        is_valid(&Draft { listeners: vec![probe(&Map::new())], upstreams, ..Draft::default() })
    });
    for at in 0..draft.listeners.len() {
        let count = draft.listeners[at].routes.len();
        close_invalid(draft, at, 0..count, closed);
    }
    let text = yaml::document(&draft.to_map());
    match quadrille_config::parse(&text, "translation") {
        Ok(model) => Ok((text, model)),
        Err(_) => {
            Err(format!("the translation is not a valid configuration, which is a defect:\n{mistakes}"))
        }
    }
}

/// Closes the routes of a listener that are not valid, found by halves.
fn close_invalid(draft: &mut Draft, at: usize, range: Range<usize>, closed: &mut Vec<String>) {
    let mut listener = draft.listeners[at].clone();
    listener.routes = listener.routes[range.clone()].to_vec();
    let upstreams = draft.upstreams.clone();
    if range.is_empty() || is_valid(&Draft { listeners: vec![listener], upstreams, ..Draft::default() }) {
        return;
    }
    if range.len() > 1 {
        let middle = range.start + range.len() / 2;
        close_invalid(draft, at, range.start..middle, closed);
        close_invalid(draft, at, middle..range.end, closed);
        return;
    }
    let route = &mut draft.listeners[at].routes[range.start];
    route.keys = Map::new();
    route.action = Action::status(503);
    route.comment("CLOSED: the configuration cannot express this route");
    closed.push(format!("{} {:?}", route.hosts.join(", "), route.path));
}
