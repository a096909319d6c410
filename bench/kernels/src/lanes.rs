//! Our contenders: a tier at every fill.

use std::error::Error;

use quadrille_kernels::{Ceiling, Lanes, PrivateKey, PrivateOperation};

use crate::contender::Contender;
use crate::rival::Key;

/// Returns every vector tier of this CPU.
pub(crate) fn of_this_cpu() -> Vec<Lanes> {
    let all = [Ceiling::Avx2, Ceiling::Ifma].map(|ceiling| (ceiling, Lanes::up_to(ceiling)));
    let present = all.into_iter().filter(|(ceiling, lanes)| lanes.name() == ceiling.to_string());
    present.map(|(_, lanes)| lanes).collect()
}

/// Returns one tier at every fill from 1 to its width.
pub(crate) fn contenders<'a>(lanes: &'a Lanes, key: &Key) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    (1..=lanes.width()).map(|fill| contender(lanes, key, fill)).collect()
}

fn contender<'a>(lanes: &'a Lanes, key: &Key, fill: usize) -> Result<Contender<'a>, Box<dyn Error>> {
    let keys = (0..fill).map(|_| PrivateKey::new(&key.components())).collect::<Result<Vec<_>, _>>()?;
    let input = key.input();
    let mut outputs = vec![vec![0; input.len()]; fill];
    let run = move || {
        let pairs = keys.iter().zip(&mut outputs);
        let mut batch: Vec<_> =
            pairs.map(|(key, output)| PrivateOperation::new(key, &input, output)).collect();
        lanes.private_operations(&mut batch);
        assert!(batch.iter().all(|op| op.outcome().is_ok()), "every lane computes");
    };
    Ok(Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) })
}
