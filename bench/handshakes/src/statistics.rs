//! Medians and spreads over the rounds of an experiment.

use serde::Serialize;

/// The median of some values, with the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle value; the mean of the two middle ones when their number is even.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of `values`, or `None` if there are no values.
    pub fn of_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { median, min, max })
    }

    /// Returns the spread of `ours / theirs`, taken round by round.
    ///
    /// A round's servers run within seconds of each other, so that disturbances of the machine affect both sides of a
    /// ratio; the ratio of two medians would pair rounds under different conditions. Rounds that one side could not
    /// finish (`None`) are left out.
    pub fn of_ratios(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Self> {
        Self::of_values(ours.iter().zip(theirs).filter_map(|(ours, theirs)| Some((*ours)? / (*theirs)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_odd_and_an_even_number() {
        assert_eq!(Spread::of_values([9.0, 1.0, 4.0]), Some(Spread { median: 4.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of_values([4.0, 1.0, 9.0, 2.0]).map(|s| s.median), Some(3.0));
        assert_eq!(Spread::of_values([]), None);
    }

    #[test]
    fn ratios_pair_the_values_of_one_round() {
        // The machine ran at half speed in the second round: the ratio is not affected.
        let ours = [Some(10.0), Some(20.0), Some(10.0)];
        let theirs = [Some(20.0), Some(40.0), Some(20.0)];
        assert_eq!(Spread::of_ratios(&ours, &theirs), Some(Spread { median: 0.5, min: 0.5, max: 0.5 }));
    }

    #[test]
    fn a_round_that_failed_on_either_side_is_left_out() {
        let ours = [None, Some(3.0), Some(8.0)];
        let theirs = [Some(1.0), Some(1.0), None];
        assert_eq!(Spread::of_ratios(&ours, &theirs).map(|s| s.median), Some(3.0));
        assert_eq!(Spread::of_ratios(&ours, &[None, None, None]), None);
    }
}
