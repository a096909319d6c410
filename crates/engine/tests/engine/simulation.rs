//! Policy under random arrivals, with simulated threads and simulated time.

use quadrille_engine::{
    Batching, KeyType, Policy,
    policy::{Decision, Waiting},
};
use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

const TRACES: u64 = 2_000;
const OPERATIONS: usize = 200;

/// xorshift64*; the seed reproduces a failing run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    fn count(&mut self, end: u64) -> usize {
        1 + self.below(end) as usize
    }
}

struct Queue {
    key_type: KeyType,
    batching: Batching,
    /// Duration of one pass.
    pass: Duration,
    arrived: VecDeque<Instant>,
}

struct World {
    policy: Policy,
    interval: Duration,
    scarcity: f64,
    now: Instant,
    queues: Vec<Queue>,
    /// Times at which each busy thread is free again.
    busy: Vec<Instant>,
    threads: usize,
    longest_wait: Duration,
    done: usize,
}

#[test]
fn nothing_starves_no_thread_idles_and_no_batch_is_too_large() {
    for seed in 1..=TRACES {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut world = World::new(&mut random);
        let pause = 1 + random.below(400);
        for _ in 0..OPERATIONS {
            let next = world.now + Duration::from_micros(random.below(pause));
            world.run_until(Some(next), seed);
            let queue = random.below(world.queues.len() as u64) as usize;
            world.queues[queue].arrived.push_back(next);
        }
        world.run_until(None, seed);
        assert_eq!(world.done, OPERATIONS, "seed {seed}: an operation was lost");
        let bound = world.bound();
        assert!(
            world.longest_wait <= bound,
            "seed {seed}: {:?} waited, more than {bound:?}",
            world.longest_wait
        );
    }
}

impl World {
    fn new(random: &mut Random) -> Self {
        let types = [KeyType::Rsa { bits: 2048 }, KeyType::Rsa { bits: 4096 }, KeyType::EcdsaP384];
        let delay = [0, 0, 100, 1_000][random.below(4) as usize];
        let queue = |key_type| {
            let width = 1 << random.below(4);
            let pass = Duration::from_micros(50 + random.below(500));
            let crossover = random.count(width as u64);
            let half = if crossover <= width / 2 { width / 2 } else { width };
            let batching = Batching { width, half, crossover, most: usize::MAX, price: pass / 2 };
            Queue { key_type, batching, pass, arrived: VecDeque::new() }
        };
        let queues = types.map(queue).into();
        let batch = NonZeroUsize::new(random.count(20)).unwrap();
        Self {
            policy: Policy { poll_delay: Duration::from_micros(delay), batch, ..Policy::default() },
            interval: Duration::from_micros(1 + random.below(2_000)),
            scarcity: random.below(50) as f64 / 5.0,
            now: Instant::now(),
            queues,
            busy: Vec::new(),
            threads: random.count(4),
            longest_wait: Duration::ZERO,
            done: 0,
        }
    }

    /// Lets free threads decide, and advances the time, until `end`; without `end`, until all operations are done.
    fn run_until(&mut self, end: Option<Instant>, seed: u64) {
        loop {
            let wake = self.decide_all(seed);
            let free_again = self.busy.iter().copied().min();
            let next = wake.into_iter().chain(free_again).min();
            let Some(next) = next.filter(|&next| end.is_none_or(|end| next <= end)) else { break };
            assert!(next >= self.now, "seed {seed}: time goes backwards");
            self.now = next;
            self.busy.retain(|&until| until > next);
        }
        self.now = end.unwrap_or(self.now);
        self.busy.retain(|&until| until > self.now);
    }

    /// Lets every free thread decide. Returns the earliest wake-up time.
    fn decide_all(&mut self, seed: u64) -> Option<Instant> {
        while self.busy.len() < self.threads {
            let free = NonZeroUsize::new(self.threads - self.busy.len()).unwrap();
            let waiting = self.queues.iter().filter_map(|queue| {
                let (&oldest, count) = (queue.arrived.front()?, queue.arrived.len());
                let interval = Some(self.interval);
                Some(Waiting {
                    key_type: queue.key_type,
                    count,
                    oldest,
                    oldest_by_policy: Some(oldest),
                    deadline: None,
                    interval,
                    batching: queue.batching,
                })
            });
            match self.policy.decide(self.now, waiting, free, self.scarcity) {
                Decision::Take { key_type, count } => self.take(key_type, count, seed),
                Decision::WaitUntil(due) => {
                    assert!(due > self.now, "seed {seed}: a thread spins");
                    let may = !self.policy.poll_delay.is_zero() || self.scarcity > 0.0;
                    assert!(may, "seed {seed}: a thread idles without a delay while there is CPU");
                    assert!(!self.is_anything_due(), "seed {seed}: a thread idles while operations are due");
                    return Some(due);
                }
                Decision::Sleep => {
                    let all_empty = self.queues.iter().all(|queue| queue.arrived.is_empty());
                    assert!(all_empty, "seed {seed}: a thread sleeps while operations wait");
                    return None;
                }
            }
        }
        None
    }

    fn take(&mut self, key_type: KeyType, count: usize, seed: u64) {
        let limit = self.limit();
        let now = self.now;
        let oldest_due = self.oldest_due();
        let queue = self.queues.iter_mut().find(|queue| queue.key_type == key_type).unwrap();
        assert!(count >= 1 && count <= queue.arrived.len(), "seed {seed}: {count} are not queued");
        assert!(count <= limit.max(queue.batching.width), "seed {seed}: a batch of {count}");
        assert_eq!(queue.arrived.front().copied(), oldest_due, "seed {seed}: not the oldest that is due");
        let Batching { width, crossover, .. } = queue.batching;
        let passes = if count < crossover { count } else { count.div_ceil(width) };
        assert!(count < width || count.is_multiple_of(width), "seed {seed}: a pass is only partly filled");
        for arrived in queue.arrived.drain(..count) {
            self.longest_wait = self.longest_wait.max(now - arrived);
        }
        self.done += count;
        self.busy.push(now + queue.pass * passes as u32);
    }

    fn limit(&self) -> usize {
        self.policy.batch.get()
    }

    fn due(&self, queue: &Queue) -> Option<Instant> {
        let width = queue.batching.width;
        let full = (self.limit() - self.limit() % width).max(width);
        let (first, count) = (*queue.arrived.front()?, queue.arrived.len());
        let Policy { poll_delay, latency_budget, .. } = self.policy;
        let Batching { half, price, .. } = queue.batching;
        let delayed = self.interval.as_secs_f64() * count as f64;
        let waits =
            count < half && self.interval <= latency_budget && delayed <= price.as_secs_f64() * self.scarcity;
        Some(match (poll_delay.is_zero(), waits) {
            _ if count >= full => first,
            (false, _) => first + poll_delay,
            (true, true) => first + latency_budget,
            (true, false) => first,
        })
    }

    fn is_anything_due(&self) -> bool {
        self.queues.iter().filter_map(|queue| self.due(queue)).any(|due| due <= self.now)
    }

    fn oldest_due(&self) -> Option<Instant> {
        let due = self.queues.iter().filter(|queue| self.due(queue).is_some_and(|due| due <= self.now));
        due.filter_map(|queue| queue.arrived.front().copied()).min()
    }

    /// The oldest operation is served next: at worst, all others of the trace go first, each in its own pass.
    fn bound(&self) -> Duration {
        let pass = self.queues.iter().map(|queue| queue.pass).max().unwrap();
        self.policy.poll_delay + self.policy.latency_budget + pass * OPERATIONS as u32
    }
}
