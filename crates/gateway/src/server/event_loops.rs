//! Event loops of a process, and their shared state.

use crate::{
    admission::{Admission, LoopAdmission},
    listener::redirection::Destinations,
    process::{engine, file_limits::Descriptors},
    worker::{self, Shared, WorkerThread},
};
use quadrille_config::model::Gateway;
use quadrille_engine::Engine;
use std::{io, sync::Arc};
use tokio::sync::{mpsc, watch};

pub(super) fn admission(model: &Gateway) -> io::Result<Arc<Admission>> {
    let compute_threads = engine::compute_threads(&model.engine)?;
    Ok(Admission::new(event_loops(model)?, compute_threads.get()))
}

fn event_loops(model: &Gateway) -> io::Result<usize> {
    Ok(model.threads.map_or_else(std::thread::available_parallelism, Ok)?.get())
}

pub(super) fn start_workers(
    model: &Gateway,
    engine: &Engine,
    admission: &Arc<Admission>,
    destinations: &Arc<Destinations>,
    shutdown: &watch::Receiver<bool>,
    running: &mpsc::Sender<()>,
) -> io::Result<Vec<WorkerThread>> {
    let descriptors = Arc::new(Descriptors::new());
    let shared = Shared { descriptors, destinations: Arc::clone(destinations) };
    (0..event_loops(model)?)
        .map(|index| {
            let admission = LoopAdmission::new(admission, index);
            worker::start(index, engine.clone(), shared.clone(), admission, shutdown.clone(), running.clone())
        })
        .collect()
}
