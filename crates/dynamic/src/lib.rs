//! An Envoy bootstrap with dynamic resources: its control planes are asked, and the running gateway follows them.
//!
//! ```text
//!  control plane ──> quadrille_xds::Client ──> consumer ──> world ──> quadrille_gateway::Control
//!                           ^                                 │
//!                           └──── plane (streams) <── what is named and not there
//! ```
//!
//! A response is acknowledged when the gateway has put it into service, and refused with the gateway's reason when it could not: a
//! key that does not fit its certificate never gets further than this. What is refused changes nothing.
//!
//! All of it runs on a thread of its own that gives way to the event loops: reading ten thousand routes takes no time from handshakes.

mod consumer;
mod figures;
mod identity;
mod plane;
mod tls;
mod world;

#[cfg(test)]
mod tests;

use consumer::Follower;
pub use figures::{Figures, KindFigures};
use plane::Planes;
use quadrille_config::model::Gateway;
use quadrille_envoy::{Bootstrap, Resources};
use quadrille_gateway::Control;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::World;

/// What is known and in force; the front end's end of it.
#[derive(Clone)]
pub struct Dynamic(Arc<Shared>);

struct Shared {
    world: Mutex<World>,
    figures: Figures,
}

impl Dynamic {
    /// Begins with what the bootstrap itself says.
    pub fn new(bootstrap: &Bootstrap) -> Self {
        Self(Arc::new(Shared { world: Mutex::new(World::new(bootstrap)), figures: Figures::default() }))
    }

    /// The gateway of a bootstrap that was read again, with all that control planes have sent until now. Which control planes
    /// there are and who asks them stays until the next start.
    ///
    /// # Errors
    /// Everything that contradicts itself, with its place.
    pub fn renew(&self, bootstrap: &Bootstrap) -> Result<Gateway, Vec<String>> {
        self.0.world().renew(bootstrap)
    }

    /// What is in force, static resources included.
    pub fn resources(&self) -> Resources {
        self.0.world().in_force().clone()
    }

    /// What has come of the control planes.
    pub fn figures(&self) -> &Figures {
        &self.0.figures
    }

    /// Follows the control planes on a thread of its own, for as long as the process lives.
    ///
    /// # Errors
    /// If a control plane cannot be used as it is written, or there is no thread.
    pub fn follow(&self, bootstrap: &Bootstrap, control: Control) -> Result<(), Vec<String>> {
        let planes = Planes::new(bootstrap)?;
        let follower = Follower::new(self.0.clone(), control, planes);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| vec![format!("cannot start following control planes: {error}")])?;
        let thread = std::thread::Builder::new().name("xds".to_owned());
        let spawned = thread.spawn(move || {
            quadrille_gateway::give_way();
            runtime.block_on(follower.run());
        });
        spawned.map(drop).map_err(|error| vec![format!("cannot start following control planes: {error}")])
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
