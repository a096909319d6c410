//! Stages of memory use, as a pure function of the use and the limit.

use quadrille_config::model::MemoryStages;

/// A stage. The measures of each include those of the stages before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Stage {
    #[default]
    Normal,
    /// Memory is freed, and large new uses are avoided.
    Scarce,
    /// Requests are refused, and exchanges are ended if it lasts.
    Refusing,
    /// Connections are not accepted, and exchanges are ended.
    Full,
}

/// Share of the limit, in parts per million, by which the use must fall beneath a threshold before its stage ends.
const HYSTERESIS: u64 = 50_000;

/// Share of the limit, in parts per million, by which more is freed than is needed to end a stage.
const CLEARANCE: u64 = 10_000;

const ALL: u128 = 1_000_000;

impl Stage {
    /// Returns the stage that follows this one, with this use and limit in bytes.
    pub(super) fn next(self, used: usize, limit: usize, begins: &MemoryStages) -> Self {
        let share = used as u128 * ALL / (limit.max(1) as u128);
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        let begun = Self::at(share, begins);
        // The stage continues, or the highest one that has not ended.
        let lasting = Self::at(share.saturating_add(HYSTERESIS), begins).min(self);
        begun.max(lasting)
    }

    fn at(share: u64, begins: &MemoryStages) -> Self {
        let has_begun = |threshold: u32| share >= threshold.into();
        match begins {
            MemoryStages { full, .. } if has_begun(*full) => Self::Full,
            MemoryStages { refusing, .. } if has_begun(*refusing) => Self::Refusing,
            MemoryStages { scarce, .. } if has_begun(*scarce) => Self::Scarce,
            _ => Self::Normal,
        }
    }

    /// Returns the number of bytes that must be freed for this stage to end.
    pub(super) fn excess(self, used: usize, limit: usize, begins: &MemoryStages) -> usize {
        let threshold = match self {
            Self::Full => begins.full,
            Self::Refusing => begins.refusing,
            Self::Scarce => begins.scarce,
            Self::Normal => return 0,
        };
        let end = u128::from(u64::from(threshold).saturating_sub(HYSTERESIS + CLEARANCE));
        let bytes = usize::try_from(limit as u128 * end / ALL).unwrap_or(usize::MAX);
        used.saturating_sub(bytes)
    }

    /// Returns the stage of this number.
    pub(super) fn of(number: u8) -> Self {
        match number {
            0 => Self::Normal,
            1 => Self::Scarce,
            2 => Self::Refusing,
            _ => Self::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Stage::*, *};

    fn next(before: Stage, percent: usize) -> Stage {
        before.next(percent << 20, 100 << 20, &MemoryStages::default())
    }

    #[test]
    fn stages_begin_at_their_thresholds() {
        for (percent, stage) in
            [(0, Normal), (84, Normal), (85, Scarce), (94, Scarce), (95, Refusing), (98, Full), (500, Full)]
        {
            assert_eq!(next(Normal, percent), stage, "{percent} %");
        }
    }

    #[test]
    fn stages_end_beneath_their_thresholds() {
        for (before, percent, stage) in [
            (Full, 94, Full),
            (Full, 92, Refusing),
            (Refusing, 91, Refusing),
            (Refusing, 89, Scarce),
            (Scarce, 81, Scarce),
            (Scarce, 79, Normal),
            (Full, 10, Normal),
            (Scarce, 96, Refusing),
        ] {
            assert_eq!(next(before, percent), stage, "{before:?} at {percent} %");
        }
    }

    #[test]
    fn without_a_limit_there_is_no_stage() {
        let begins = MemoryStages::default();
        assert_eq!(Normal.next(usize::MAX / 2, usize::MAX, &begins), Normal);
        assert_eq!(Full.next(1 << 40, usize::MAX, &begins), Normal);
        assert_eq!(Normal.next(1, 0, &begins), Full, "and no division by zero");
    }

    #[test]
    fn what_is_freed_ends_the_stage() {
        let begins = MemoryStages::default();
        for stage in [Scarce, Refusing, Full] {
            for used in [90, 97, 100, 300].map(|percent: usize| percent << 20) {
                let freed = stage.excess(used, 100 << 20, &begins);
                assert!(stage.next(used - freed, 100 << 20, &begins) < stage, "{stage:?} with {used}");
            }
            assert_eq!(stage.excess(10 << 20, 100 << 20, &begins), 0);
        }
        assert_eq!(Normal.excess(usize::MAX, 1, &begins), 0);
    }

    #[test]
    fn numbers_are_those_of_stages() {
        for stage in [Normal, Scarce, Refusing, Full] {
            assert_eq!(Stage::of(stage as u8), stage);
        }
    }
}
