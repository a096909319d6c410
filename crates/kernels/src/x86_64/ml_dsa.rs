//! Functions of ML-DSA for an instruction set.

/// Defines the methods of [`Kernels`](crate::ml_dsa::Kernels), each as a separate function that may use the
/// instructions. The called parts of the algorithm are marked for inlining.
macro_rules! kernel_functions {
    ($features:literal, $vector:ty, $states:ty) => {
        kernel_functions! { $features;
            keccak, $states, permute, (states: &mut State);
            ntt, $vector, ntt, (polynomial: &mut Polynomial);
            ntt_of, $vector, ntt_of, (polynomial: &Polynomial, to: &mut Polynomial);
            inverse_ntt, $vector, inverse_ntt, (polynomial: &mut Polynomial);
            multiply_matrix, $vector, multiply_matrix,
                (matrix: &Matrix, vector: &[Polynomial], products: &mut [Polynomial]);
            multiply, $vector, multiply, (a: &Polynomial, b: &Polynomial, product: &mut Polynomial);
            unpack_mask, $vector, unpack_mask, (bits: u32, bytes: &Packed, to: &mut Polynomial);
            decompose, $vector, decompose,
                (gamma2: Gamma2, r: &Polynomial, low: &mut Polynomial, high: &mut Bytes);
            add_small_product, $vector, add_small_product, (
                small: &Small,
                challenge: &Challenge,
                byte_terms: usize,
                base: &Polynomial,
                sum: &mut Polynomial
            ) -> i32;
            add, $vector, add, (sum: &mut Polynomial, other: &Polynomial) -> i32;
            subtract, $vector, subtract, (a: &Polynomial, b: &Polynomial, difference: &mut Polynomial);
            differences, $vector, differences, (a: &Polynomial, b: &Polynomial) -> i32;
            copy_block, $states, copy_block, (states: &State, block: usize, streams: &mut [Packed; STATES]);
            make_hints, $vector, make_hints,
                (gamma2: Gamma2, low: &Polynomial, high: &Bytes, hints: &mut Bytes) -> i32;
            largest, $vector, largest, (polynomial: &Polynomial) -> i32;
        }
    };
    ($features:literal; $(
        $name:ident, $form:ty, $function:ident, ($($argument:ident: $type:ty),*) $(-> $result:ty)?;
    )*) => { $(
        fn $name(self, $($argument: $type),*) $(-> $result)? {
            #[target_feature(enable = $features)]
            fn kernel($($argument: $type),*) $(-> $result)? {
                algorithm::$function::<$form>($($argument),*)
            }
            // SAFETY: `self` proves the instructions.
            unsafe { kernel($($argument),*) }
        }
    )* };
}

pub(super) use kernel_functions;
