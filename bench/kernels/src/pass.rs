//! Which contenders meet: on a CPU with AVX-512, those that would meet on a CPU without it meet apart.

use std::fmt;

use quadrille_kernels::{Ceiling, Lanes};

/// One comparison, in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Everything as this CPU runs it.
    Native,
    /// The libraries do not see AVX-512, and neither do we.
    Masked,
}

impl Pass {
    /// On a CPU without IFMA the first pass shows what the second would.
    pub(crate) fn of_this_cpu() -> Vec<Self> {
        if supports(Ceiling::Ifma) { vec![Self::Native, Self::Masked] } else { vec![Self::Native] }
    }

    /// Our tiers that take part: what a server with such a CPU would run, and the portable tier.
    pub(crate) fn tiers(self) -> Vec<Lanes> {
        let best = match self {
            Self::Native if supports(Ceiling::Ifma) => Ceiling::Ifma,
            Self::Native | Self::Masked => Ceiling::Avx2,
        };
        let portable = (self == Self::Native).then_some(Ceiling::Portable);
        portable.into_iter().chain(supports(best).then_some(best)).map(Lanes::up_to).collect()
    }

    /// A library's name in this pass.
    pub(crate) fn name_of(self, library: &str) -> String {
        match self {
            Self::Native => library.to_owned(),
            Self::Masked => format!("{library}-avx2"),
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Native => "AS THIS CPU IS: every library uses what it finds.",
            Self::Masked => {
                "AS ON A CPU WITHOUT AVX-512: hidden from the libraries (the same ones, named ...-avx2) and not used by ours."
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
