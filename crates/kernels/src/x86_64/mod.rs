//! The instruction sets of x86-64. The kernels are assembly that `build.rs` generates; this is their safe
//! wrapping.

pub(crate) mod avx512;
pub(crate) mod fma47;
pub(crate) mod ifma;
pub(crate) mod p256;
#[cfg(test)]
mod reference;
mod x25519;
mod x25519_avx2;

#[cfg(test)]
mod tests {
    /// Instructions on general registers: all that the kernels use to count and to address.
    const GENERAL: [&str; 18] = [
        "add", "call", "cmp", "dec", "je", "jmp", "jne", "jnz", "jz", "lea", "mov", "pop", "push", "ret",
        "shl", "shr", "sub", "test",
    ];

    /// Instructions whose result is a vector, a mask or memory, never a general register or a flag.
    const VECTOR: [&str; 38] = [
        "kxnorw",
        "kxorw",
        "vaddpd",
        "vblendvpd",
        "vfmadd231pd",
        "vmovapd",
        "vmovdqa",
        "vmovdqa64",
        "vmovdqu64",
        "vmulpd",
        "vpabsq",
        "vpaddq",
        "vpand",
        "vpandn",
        "vpandq",
        "vpblendmq",
        "vpbroadcastq",
        "vpcmpeqq",
        "vpcmpgtq",
        "vpmadd52huq",
        "vpmadd52luq",
        "vpermd",
        "vpermt2q",
        "vpmuludq",
        "vpor",
        "vpsllq",
        "vpsraq",
        "vpsrlq",
        "vpsubq",
        "vptestmq",
        "vptestnmq",
        "vpternlogq",
        "vpxor",
        "vpxorq",
        "vsubpd",
        "vxorpd",
        "vzeroall",
        "vzeroupper",
    ];

    #[test]
    fn ifma_kernels_are_free_of_data_dependent_control_and_addresses() {
        check(include_str!(concat!(env!("OUT_DIR"), "/ifma.s")));
    }

    #[test]
    fn fma47_kernels_are_free_of_data_dependent_control_and_addresses() {
        check(include_str!(concat!(env!("OUT_DIR"), "/fma47.s")));
    }

    #[test]
    fn p256_kernels_are_free_of_data_dependent_control_and_addresses() {
        check(include_str!(concat!(env!("OUT_DIR"), "/p256.s")));
    }

    #[test]
    fn x25519_kernels_are_free_of_data_dependent_control_and_addresses() {
        check(include_str!(concat!(env!("OUT_DIR"), "/x25519.s")));
    }

    #[test]
    fn x25519_kernels_of_avx2_are_free_of_data_dependent_control_and_addresses() {
        check(include_str!(concat!(env!("OUT_DIR"), "/x25519_avx2.s")));
    }

    /// No branch and no address can depend on data: general registers are computed from arguments, constants and
    /// each other alone, and nothing leads from memory or from a vector register into one. (The arguments are
    /// addresses and lengths, or in `rdi` the table of addresses that [`super::fma47`] builds. `pop` restores what
    /// `push` saved.)
    fn check(text: &str) {
        let mut instructions = 0;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('.') && !line.ends_with(':'))
        {
            let (mnemonic, operands) = line.split_once(' ').unwrap_or((line, ""));
            if GENERAL.contains(&mnemonic) || mnemonic == "xor" {
                let table = mnemonic == "mov" && operands.contains("[rdi");
                assert!(!operands.contains('[') || mnemonic == "lea" || table, "reads memory: {line}");
                assert!(!operands.contains("mm"), "touches a vector: {line}");
            } else {
                let from_general = ["vmovq xmm12, rax", "vmovq xmm15, rax"].contains(&line);
                assert!(VECTOR.contains(&mnemonic) || from_general, "not known to be safe: {line}");
                let addresses =
                    operands.split('[').skip(1).map(|part| part.split(']').next().unwrap_or(part));
                assert!(addresses.clone().all(|address| !address.contains("mm")), "gathers: {line}");
            }
            instructions += 1;
        }
        assert!(instructions > 2000, "the text is the kernels'");
    }
}
