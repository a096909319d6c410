//! Measurement of a GPU with a fake driver, whose kernels run on this CPU.

#![allow(clippy::unwrap_used, reason = "clippy knows the tests, but not their helpers")]

#[path = "../../kernels-cuda/tests/support/fake.rs"]
mod fake;

use fake::Fake;
use quadrille_kernels_cuda::{Gpu, KeySize};
use quadrille_profile::gpu::measure;
use std::time::Duration;

#[test]
fn a_gpu_is_measured_beside_all_cores() {
    let fake = Fake::new();
    let gpu = Gpu::open(&fake.options()).unwrap();
    let rates = measure(&gpu, &[KeySize::Rsa2048], Duration::from_millis(300)).unwrap();
    let rate = &rates[0];
    println!("{rate:?}");
    assert_eq!((rate.device.as_str(), rate.algorithm.as_str()), ("Fake GPU", "RSA-2048"));
    assert!(rate.per_second > 1.0 && rate.cpu_per_second > 1.0);
    assert!(rate.milliseconds_median > 0.0 && rate.milliseconds_p99 >= rate.milliseconds_median);
    assert!(rate.part_of_multiply_bound > 0.0);
}

#[test]
fn a_gpu_that_lies_has_no_rate() {
    let fake = Fake::new();
    let gpu = Gpu::open(&fake.options()).unwrap();
    fake.set("flip_output", 3);
    let error = measure(&gpu, &[KeySize::Rsa2048], Duration::from_millis(10)).unwrap_err();
    assert!(error.starts_with("RSA-2048: the GPU reported a wrong result"), "{error}");
}
