//! The data that one exchange holds, and the choice of exchanges that are ended when memory is full.

use futures_util::task::AtomicWaker;
use std::{
    cmp::Reverse,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

/// Number of bytes from which an exchange may be ended: to end smaller ones would free little.
const CONSIDERED: usize = 32 * 1024;

/// Number of listed exchanges from which those that are over are removed.
const FEW: usize = 64;

/// Exchanges that have held much, in this process.
static LARGE: Mutex<Holders> = Mutex::new(Holders { list: Vec::new(), next_removal: FEW });

struct Holders {
    list: Vec<Weak<Holder>>,
    /// Length of the list at which exchanges that are over are removed next.
    next_removal: usize,
}

/// An exchange that holds data; over HTTP/1.1, a connection.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    held: AtomicUsize,
    /// Whether it is in the list of large ones.
    is_listed: AtomicBool,
    is_ended: AtomicBool,
    task: AtomicWaker,
}

impl Holder {
    /// Counts a change of the data of this exchange.
    pub(super) fn change(self: &Arc<Self>, before: usize, now: usize) {
        let held = self.held.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        if held.wrapping_add(now.wrapping_sub(before)) >= CONSIDERED
            && !self.is_listed.swap(true, Ordering::Relaxed)
        {
            large().add(Arc::downgrade(self));
        }
    }

    /// Becomes ready once the exchange is to be ended. Only one task may poll it: that task is woken. `registered` is
    /// the waker of the last poll.
    pub(crate) fn poll_ended(&self, registered: &mut Option<Waker>, context: &Context<'_>) -> Poll<()> {
        // A registered waker is used up only by the end.
        if !registered.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.task.register(context.waker());
            *registered = Some(context.waker().clone());
        }
        if self.is_ended() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Returns whether it was ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that it holds.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.task.wake();
    }
}

/// The task of an exchange, whose output is `None` if it was ended.
pub(crate) struct Endable<T> {
    task: Pin<Box<dyn Future<Output = T> + Send>>,
    holder: Arc<Holder>,
    registered: Option<Waker>,
}

impl<T> Endable<T> {
    pub(crate) fn new(holder: Arc<Holder>, task: impl Future<Output = T> + Send + 'static) -> Self {
        Self { task: Box::pin(task), holder, registered: None }
    }
}

impl<T> Future for Endable<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Self { task, holder, registered } = &mut *self;
        match holder.poll_ended(registered, context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => task.as_mut().poll(context).map(Some),
        }
    }
}

impl Holders {
    fn add(&mut self, holder: Weak<Holder>) {
        if self.list.len() >= self.next_removal {
            self.list.retain(|holder| holder.strong_count() > 0);
            self.next_removal = (2 * self.list.len()).max(FEW);
        }
        self.list.push(holder);
    }

    /// Returns exchanges that hold at least this number of bytes together, the largest ones first.
    fn largest(&self, bytes: usize) -> Vec<Arc<Holder>> {
        let large = self.list.iter().filter_map(Weak::upgrade);
        let mut large: Vec<_> = large
            .filter(|holder| !holder.is_ended())
            .map(|holder| (holder.held(), holder))
            .filter(|(held, _)| *held >= CONSIDERED)
            .collect();
        large.sort_unstable_by_key(|(held, _)| Reverse(*held));
        let mut sum = 0_usize;
        let is_needed = |(held, _): &(usize, Arc<Holder>)| {
            let is_needed = sum < bytes;
            sum = sum.saturating_add(*held);
            is_needed
        };
        large.into_iter().take_while(is_needed).map(|(_, holder)| holder).collect()
    }
}

/// Ends the exchanges that hold most, so that at least this number of bytes is freed, as far as there are large ones.
/// Returns their number.
pub(super) fn end_largest(bytes: usize) -> usize {
    let largest = large().largest(bytes);
    largest.iter().for_each(|holder| holder.end());
    largest.len()
}

fn large() -> MutexGuard<'static, Holders> {
    LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(bytes: usize) -> Arc<Holder> {
        let holder = Arc::<Holder>::default();
        holder.change(0, bytes);
        holder
    }

    fn is_ended(holder: &Holder) -> bool {
        holder.poll_ended(&mut None, &Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_largest_are_ended_as_far_as_needed() {
        let small = holder(CONSIDERED - 1);
        let [first, second, third] = [2, 4, 3].map(|times| holder(times * CONSIDERED));
        assert_eq!(end_largest(0), 0);
        assert_eq!(end_largest(5 * CONSIDERED), 2);
        assert!(is_ended(&second) && is_ended(&third) && !is_ended(&first));
        first.change(2 * CONSIDERED, 10);
        assert_eq!(end_largest(usize::MAX), 0, "it holds little now");
        first.change(10, CONSIDERED);
        assert_eq!(end_largest(usize::MAX), 1);
        assert!(is_ended(&first) && !is_ended(&small));
    }

    #[test]
    fn exchanges_that_are_over_are_removed() {
        let stays = holder(CONSIDERED);
        (0..1000).for_each(|_| drop(holder(CONSIDERED)));
        assert!(large().list.len() <= FEW + 1, "{}", large().list.len());
        assert_eq!(end_largest(usize::MAX), 1);
        assert!(is_ended(&stays));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_task_that_waits_is_woken() {
        let holder = holder(CONSIDERED);
        let waiting = tokio::spawn(Endable::new(Arc::clone(&holder), std::future::pending::<()>()));
        tokio::task::yield_now().await;
        holder.end();
        assert_eq!(waiting.await.expect("it ends"), None);
        assert_eq!(Endable::new(Arc::default(), async { 7 }).await, Some(7));
    }
}
