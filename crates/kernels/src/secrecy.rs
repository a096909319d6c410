//! Declassification: marks values that may control branches although they were computed from secrets.
//!
//! The test below runs whole operations under valgrind's memcheck with every secret marked as undefined
//! (Langley's ctgrind): memcheck then reports each branch and each address that depends on one.

/// Marks `value` as public. Costs nothing outside the tests.
#[inline]
pub(crate) fn declassify<T>(value: T) -> T {
    #[cfg(all(test, target_arch = "x86_64"))]
    let value = {
        let mut value = value; // borrowed mutably, so that the compiler keeps no copy unknown to memcheck
        if !*tests::LEAKS {
            tests::mark(&mut value, tests::Mark::Defined);
        }
        value
    };
    value
}

/// Marks a value in memory as public, as [`declassify`] does.
#[inline]
pub(crate) fn declassify_in_place<T: ?Sized>(value: &mut T) {
    #[cfg(all(test, target_arch = "x86_64"))]
    if !*tests::LEAKS {
        tests::mark(value, tests::Mark::Defined);
    }
    let _ = value;
}

/// Marks a value as secret, as undefined for memcheck.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn hide<T: ?Sized>(value: &mut T) {
    tests::mark(value, tests::Mark::Undefined);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::process::Command;
    use std::sync::LazyLock;

    use crate::batch::{Arithmetic, KeyConstants, Lane, NoProbe, Workspace, test_keys};
    use crate::cpu::HaveAvx2Fma;
    use crate::key::PrivateKey;
    use crate::x86_64::fma47::Fma47;
    use quadrille_rsa_numbers::{KeySize, words};

    /// Whether declassification is disabled, so that all permitted branches are leaks.
    pub(super) static LEAKS: LazyLock<bool> = LazyLock::new(|| std::env::var_os(LEAKS_VARIABLE).is_some());
    const LEAKS_VARIABLE: &str = "TEST_LEAKS";

    #[derive(Clone, Copy)]
    #[repr(u64)]
    pub(super) enum Mark {
        Undefined = 0x4d43_0001,
        Defined = 0x4d43_0002,
    }

    /// Issues a memcheck client request: valgrind recognises the rotations, which have no effect otherwise.
    pub(super) fn mark<T: ?Sized>(value: &mut T, mark: Mark) {
        let request = [
            mark as u64,
            std::ptr::from_mut(value).cast::<u8>() as u64,
            size_of_val::<T>(value) as u64,
            0,
            0,
            0,
        ];
        // SAFETY: rotates a register by 128 bits in all and exchanges another with itself.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                in("rax") request.as_ptr(), inout("rdx") 0u64 => _, out("rdi") _,
            );
        }
    }

    /// Runs the tests below, which do nothing by themselves, under valgrind.
    #[test]
    fn valgrind_sees_no_use_of_a_secret() {
        let program = without_debug_information();
        let run = |test: &str, leaks: bool| {
            let name = format!("secrecy::tests::{test}");
            let output = Command::new("valgrind")
                .envs(leaks.then_some((LEAKS_VARIABLE, "1")))
                .args(["--quiet", "--error-exitcode=99"])
                .arg(&program)
                .args(["--exact", &name, "--ignored", "--nocapture", "--test-threads=1"])
                .output()
                .expect("valgrind, of the package valgrind, starts");
            let log = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            (output.status.code(), log)
        };
        let (code, log) = run("a_branch_on_a_secret", false);
        assert_eq!(code, Some(99), "valgrind must detect a known branch: {log}");
        for operations in [
            "avx2_operations",
            "x25519_operations",
            "p256_operations",
            "ml_kem_operations",
            "ml_dsa_operations",
        ] {
            let (code, log) = run(operations, false);
            assert_eq!(code, Some(0), "{log}");
            print!("{log}");
            // Hidden values have reached the results: reading them is detected.
            let (code, log) = run(operations, true);
            assert!(code == Some(99) || log.contains("skipped: "), "{operations}: no leak detected: {log}");
        }
    }

    /// Creates a copy of this program without debug information: valgrind 3.19 cannot read the DWARF 5 that clang
    /// writes for BoringSSL.
    fn without_debug_information() -> std::path::PathBuf {
        let program = std::env::current_exe().expect("the path of the test program");
        let copy = program.with_extension("stripped");
        let strip = Command::new("strip").arg("--strip-debug").arg("-o").arg(&copy).arg(&program).status();
        assert!(strip.expect("strip, of the package binutils, starts").success(), "strip failed");
        copy
    }

    #[test]
    #[ignore = "to be run by valgrind"]
    fn a_branch_on_a_secret() {
        let mut secret = std::hint::black_box([3u64; 4]);
        mark(&mut secret, Mark::Undefined);
        if std::hint::black_box(secret[1]) > 2 {
            println!("branched");
        }
    }

    #[test]
    #[ignore = "to be run by valgrind"]
    fn avx2_operations() {
        match HaveAvx2Fma::detect() {
            Some(proof) => operate_on_undefined(Fma47::new(proof)),
            None => println!("skipped: this CPU, or valgrind's, lacks AVX2 or FMA"),
        }
    }

    #[test]
    #[ignore = "to be run by valgrind"]
    fn x25519_operations() {
        crate::x25519::operate_on_undefined(|secret| mark(secret, Mark::Undefined));
        println!("X25519: no branch and no address depends on a secret");
    }

    #[test]
    #[ignore = "to be run by valgrind"]
    fn p256_operations() {
        crate::p256::operate_on_undefined(|secret| mark(secret, Mark::Undefined));
        println!("P-256: no branch and no address depends on a secret");
    }

    #[test]
    #[ignore = "to be run by valgrind"]
    fn ml_kem_operations() {
        crate::ml_kem::operate_on_undefined(|secret| mark(secret, Mark::Undefined));
        println!("ML-KEM-768: no branch and no address depends on a secret");
    }

    #[test]
    #[ignore = "to be run by valgrind"]
    fn ml_dsa_operations() {
        crate::ml_dsa::operate_on_undefined();
        println!("ML-DSA: no branch and no address depends on a secret");
    }

    /// Computes from the preparation of a key to the checked result, with key and input undefined for memcheck.
    fn operate_on_undefined<A: Arithmetic>(arithmetic: A) {
        // Sizes differ only in lengths; valgrind is slow.
        for size in [KeySize::Rsa2048] {
            let mut keys: Vec<PrivateKey> = test_keys(size).into_iter().take(2).collect();
            let mut input = words::secret(size.words());
            input[0] = 5;
            for key in &mut keys {
                let secrets = [
                    &mut key.numbers.p,
                    &mut key.numbers.q,
                    &mut key.numbers.dp,
                    &mut key.numbers.dq,
                    &mut key.numbers.qinv,
                    &mut input,
                ];
                secrets.into_iter().for_each(|secret| mark(secret.as_mut_slice(), Mark::Undefined));
            }
            let constants: Vec<KeyConstants<A>> =
                keys.iter().map(|key| KeyConstants::new(&key.numbers)).collect();
            // Both forms of a batch: halves in one ring, and in two.
            for operations in [A::LANES / 2, A::LANES / 2 + 1] {
                let pairs = keys.iter().zip(&constants).cycle().take(operations);
                let lanes: Vec<_> = pairs
                    .map(|(key, constants)| Lane { numbers: &key.numbers, constants, input: &input })
                    .collect();
                let results = Workspace::new(size).run(arithmetic, &lanes, &mut NoProbe);
                assert!(results.iter().all(Option::is_some), "the operation is right under valgrind too");
            }
            println!("RSA-{}: no branch and no address depends on a secret", size.bits());
        }
    }
}
