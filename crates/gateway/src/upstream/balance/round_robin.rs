//! Weighted round-robin: a circle in which each endpoint has as many evenly spread places as its weight.

use std::ops::Range;

/// Number of random places tried before all places are searched.
const TRIES: usize = 8;

/// Endpoint indices by place.
pub(crate) struct Rotation(Box<[u32]>);

impl Rotation {
    /// Creates a rotation of endpoints with these weights.
    pub(crate) fn new(weights: &[usize]) -> Self {
        let unit = weights.iter().copied().fold(0, greatest_common_divisor).max(1);
        let mut places = Vec::new();
        for (server, weight) in (0..).zip(weights) {
            let count = (weight / unit) as u64;
            // Position in the circle, as a fraction of 2^32: in the middle of each of the endpoint's equal parts.
            places.extend((0..count).map(|place| (((2 * place + 1) << 32) / (2 * count), server)));
        }
        places.sort_unstable();
        Self(places.into_iter().map(|(_, server)| server).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the endpoint at this place; if it is not accepted, an accepted one, at random and by weight.
    pub(crate) fn find(&self, place: usize, accept: impl Fn(usize) -> bool) -> Option<usize> {
        let all = 0..self.len();
        if all.is_empty() {
            return None;
        }
        let at = |place: usize| Some(self.0[place % self.len()] as usize).filter(|server| accept(*server));
        at(place)
            // The load of an endpoint that is not accepted is shared by all others, not only by its neighbor.
            .or_else(|| (0..TRIES).find_map(|_| at(fastrand::usize(all.clone()))))
            .or_else(|| self.look_at_all(all.clone(), at))
    }

    fn look_at_all(&self, mut all: Range<usize>, at: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        let first = fastrand::usize(all.clone());
        all.find_map(|step| at(first + step))
    }
}

fn greatest_common_divisor(one: usize, other: usize) -> usize {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::Rotation;

    #[test]
    fn places_are_spread_by_weight() {
        let places = |weights: &[usize]| Rotation::new(weights).0.into_vec();
        assert_eq!(places(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(places(&[100, 100]), [0, 1], "reduced weights");
        assert_eq!(places(&[3, 1]), [0, 0, 1, 0]);
        assert!(places(&[]).is_empty());
        let many = places(&[1, 7000, 2]);
        assert_eq!([0, 1, 2].map(|one| many.iter().filter(|&&other| other == one).count()), [1, 7000, 2]);
    }

    #[test]
    fn what_one_server_does_not_take_is_shared_by_the_others() {
        let rotation = Rotation::new(&[1, 1, 1, 1]);
        let mut counts = [0_u32; 4];
        for place in 0..40_000 {
            counts[rotation.find(place, |server| server != 1).expect("a server")] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!([0, 2, 3].iter().all(|&server| counts[server].abs_diff(13_333) < 700), "{counts:?}");
    }

    #[test]
    fn the_last_one_is_found_among_many() {
        let rotation = Rotation::new(&[1; 5000]);
        assert_eq!(rotation.find(7, |server| server == 4711), Some(4711));
        assert_eq!(rotation.find(7, |_| false), None);
        assert_eq!(Rotation::new(&[]).find(0, |_| true), None);
    }
}
