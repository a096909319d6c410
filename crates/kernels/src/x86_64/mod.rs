//! The instruction sets of x86-64. The kernels are assembly that `build.rs` generates; this is their safe
//! wrapping.

pub(crate) mod ifma;
#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    /// Instructions that touch general registers: all that the kernels use to count and to address.
    const GENERAL: [&str; 17] = [
        "add", "call", "cmp", "dec", "je", "jmp", "jne", "jnz", "jz", "lea", "mov", "pop", "push", "ret",
        "shl", "shr", "sub",
    ];

    /// Vector instructions whose result is a vector, a mask or memory, never a general register or a flag.
    const VECTOR: [&str; 13] = [
        "kxorw",
        "vmovdqa64",
        "vmovdqu64",
        "vpaddq",
        "vpbroadcastq",
        "vpcmpeqq",
        "vpmadd52huq",
        "vpmadd52luq",
        "vpsrlq",
        "vpternlogq",
        "vpxorq",
        "vzeroall",
        "vzeroupper",
    ];

    /// No branch and no address can depend on data: general registers are computed from arguments, constants
    /// and each other alone, and nothing leads from memory or from a vector register into one. (The arguments
    /// are addresses and lengths. `pop` restores what `push` saved.)
    #[test]
    fn kernels_are_free_of_data_dependent_control_and_addresses() {
        let text = include_str!(concat!(env!("OUT_DIR"), "/ifma.s"));
        let mut instructions = 0;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('.') && !line.ends_with(':'))
        {
            let (mnemonic, operands) = line.split_once(' ').unwrap_or((line, ""));
            if GENERAL.contains(&mnemonic) || ["test", "xor"].contains(&mnemonic) {
                assert!(!operands.contains('[') || mnemonic == "lea", "reads memory: {line}");
                assert!(!operands.contains("mm"), "touches a vector: {line}");
            } else {
                assert!(VECTOR.contains(&mnemonic), "not known to be safe: {line}");
                let addresses =
                    operands.split('[').skip(1).map(|part| part.split(']').next().unwrap_or(part));
                assert!(addresses.clone().all(|address| !address.contains("mm")), "gathers: {line}");
            }
            instructions += 1;
        }
        assert!(instructions > 2000, "the text is the kernels'");
    }
}
