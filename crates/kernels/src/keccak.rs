//! Keccak-f[1600] (FIPS 202) of several states at once, one in each lane of a vector.

/// Words of several states.
///
/// No method branches on its data or uses it as an address.
pub(crate) trait StateWords: Copy {
    fn zero() -> Self;
    /// Returns the same 64 bits in every lane.
    fn lanes(lane: u64) -> Self;
    fn xor(self, other: Self) -> Self;
    /// `self ^ a ^ b`
    fn xor3(self, a: Self, b: Self) -> Self;
    /// `self ^ (!a & b)`, the step chi of Keccak.
    fn chi(self, a: Self, b: Self) -> Self;
    /// Rotates every lane to the left by N bits.
    fn rotate<const N: i32>(self) -> Self;
}

/// State of 25 words; word x + 5 y is the standard's lane (x, y).
pub(crate) type State<V> = [V; 25];

const ROUND_CONSTANTS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];

/// Computes the permutation.
#[inline(always)]
pub(crate) fn keccak<V: StateWords>(state: &mut State<V>) {
    let mut a = *state;
    for constant in ROUND_CONSTANTS {
        a = round(a, V::lanes(constant));
    }
    *state = a;
}

#[inline(always)]
fn round<V: StateWords>(mut a: State<V>, constant: V) -> State<V> {
    let mut parities = [V::zero(); 5];
    for (x, parity) in parities.iter_mut().enumerate() {
        *parity = a[x].xor3(a[x + 5], a[x + 10]).xor3(a[x + 15], a[x + 20]);
    }
    for x in 0..5 {
        let (before, after) = (parities[(x + 4) % 5], parities[(x + 1) % 5].rotate::<1>());
        for y in 0..5 {
            a[x + 5 * y] = a[x + 5 * y].xor3(before, after);
        }
    }
    let rows = [
        [a[0], a[6].rotate::<44>(), a[12].rotate::<43>(), a[18].rotate::<21>(), a[24].rotate::<14>()],
        [
            a[3].rotate::<28>(),
            a[9].rotate::<20>(),
            a[10].rotate::<3>(),
            a[16].rotate::<45>(),
            a[22].rotate::<61>(),
        ],
        [
            a[1].rotate::<1>(),
            a[7].rotate::<6>(),
            a[13].rotate::<25>(),
            a[19].rotate::<8>(),
            a[20].rotate::<18>(),
        ],
        [
            a[4].rotate::<27>(),
            a[5].rotate::<36>(),
            a[11].rotate::<10>(),
            a[17].rotate::<15>(),
            a[23].rotate::<56>(),
        ],
        [
            a[2].rotate::<62>(),
            a[8].rotate::<55>(),
            a[14].rotate::<39>(),
            a[15].rotate::<41>(),
            a[21].rotate::<2>(),
        ],
    ];
    for (y, b) in rows.iter().enumerate() {
        for x in 0..5 {
            a[x + 5 * y] = b[x].chi(b[(x + 1) % 5], b[(x + 2) % 5]);
        }
    }
    a[0] = a[0].xor(constant);
    a
}
