//! Passes: on a CPU with AVX-512, the contenders of a CPU without it are compared in a pass of their own.

use std::fmt;

use quadrille_kernels::{Ceiling, Lanes};

/// One comparison, in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// All implementations as this CPU runs them.
    Native,
    /// The libraries do not see AVX-512, and our code does not use it.
    Masked,
}

impl Pass {
    /// Returns the passes of this CPU. Without IFMA the first pass shows what the second would.
    pub(crate) fn of_this_cpu() -> Vec<Self> {
        if supports(Ceiling::Ifma) { vec![Self::Native, Self::Masked] } else { vec![Self::Native] }
    }

    /// Returns our tiers in this pass: the one that a server on such a CPU would run, and the portable tier.
    pub(crate) fn tiers(self) -> Vec<Lanes> {
        let best = match self {
            Self::Native if supports(Ceiling::Ifma) => Ceiling::Ifma,
            Self::Native | Self::Masked => Ceiling::Avx2,
        };
        let portable = (self == Self::Native).then_some(Ceiling::Portable);
        portable.into_iter().chain(supports(best).then_some(best)).map(Lanes::up_to).collect()
    }

    /// Returns a library's name in this pass.
    pub(crate) fn name_of(self, library: &str) -> String {
        match self {
            Self::Native => library.to_owned(),
            Self::Masked => format!("{library}-avx2"),
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Native => "UNMODIFIED CPU: every library uses the features it detects.",
            Self::Masked => {
                "AS ON A CPU WITHOUT AVX-512: masked for the libraries (the same ones, named ...-avx2) and not used by ours."
            }
        }
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "as is",
            Self::Masked => "AVX-512 masked",
        })
    }
}

fn supports(ceiling: Ceiling) -> bool {
    Lanes::up_to(ceiling).name() == ceiling.to_string()
}
