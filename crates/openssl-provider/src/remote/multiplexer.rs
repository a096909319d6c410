//! All operations of a process that are not waited for by a thread: one connection, kept by a thread of its own, that begins
//! with the first operation.

use super::{
    connection::Connection,
    server::{BETWEEN_ATTEMPTS, DEADLINE, PATIENCE, RESTART, Reply, ServerError, Servers},
};
use crate::{
    error::{Failure, Reason},
    process::PerProcess,
    signal::Signal,
    wait::{Answer, Outcome},
};
use quadrille_engine::Operation;
use quadrille_keyless::wire::{Ski, WINDOW};
use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Instant,
};

/// The threads of this process, one for each list of servers.
static MULTIPLEXERS: PerProcess<Mutex<HashMap<Servers, Arc<Inbox>>>> = PerProcess::new();

/// Hands an operation to the thread.
pub(super) fn submit(servers: &Servers, ski: Ski, operation: Operation) -> Result<Answer, Failure> {
    let inbox = inbox(servers).map_err(|error| {
        Failure::new(Reason::KeyServer, format!("cannot start a thread for the key server: {error}"))
    })?;
    let request =
        Arc::new(Request { ski, operation, until: Instant::now() + DEADLINE, state: Mutex::default() });
    inbox.put(Letter::Ask(Arc::clone(&request)));
    Ok(Box::pin(Pending { request, inbox }))
}

fn inbox(servers: &Servers) -> io::Result<Arc<Inbox>> {
    let mut all = locked(MULTIPLEXERS.get(Mutex::default));
    if let Some(inbox) = all.get(servers) {
        return Ok(Arc::clone(inbox));
    }
    let inbox = Arc::new(Inbox { letters: Mutex::default(), signal: Signal::new()? });
    let thread = Multiplexer::new(Arc::clone(servers), Arc::clone(&inbox));
    std::thread::Builder::new().name("quadrille-keys".into()).spawn(move || thread.run())?;
    all.insert(Arc::clone(servers), Arc::clone(&inbox));
    Ok(inbox)
}

/// What has been handed to the thread, and it has not seen yet.
struct Inbox {
    letters: Mutex<Vec<Letter>>,
    signal: Signal,
}

enum Letter {
    Ask(Arc<Request>),
    /// Nobody waits any more.
    Forget(Arc<Request>),
}

struct Request {
    ski: Ski,
    operation: Operation,
    until: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
    over: bool,
}

struct Pending {
    request: Arc<Request>,
    inbox: Arc<Inbox>,
}

impl Future for Pending {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = locked(&self.request.state);
        match state.outcome.take() {
            Some(outcome) => {
                state.over = true;
                Poll::Ready(outcome)
            }
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let waits = {
            let mut state = locked(&self.request.state);
            state.waker = None;
            !std::mem::replace(&mut state.over, true) && state.outcome.take().is_none()
        };
        if waits {
            self.inbox.put(Letter::Forget(Arc::clone(&self.request)));
        }
    }
}

impl Inbox {
    fn put(&self, letter: Letter) {
        let mut letters = locked(&self.letters);
        let first = letters.is_empty();
        letters.push(letter);
        drop(letters);
        if first {
            self.signal.set();
        }
    }
}

impl Request {
    fn finish(&self, outcome: Outcome) {
        let waker = {
            let mut state = locked(&self.state);
            if state.over {
                return;
            }
            state.outcome = Some(outcome);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The thread.
struct Multiplexer {
    servers: Servers,
    inbox: Arc<Inbox>,
    /// Not sent yet.
    waiting: VecDeque<Arc<Request>>,
    /// Sent, by number.
    open: HashMap<u32, Arc<Request>>,
    connection: Option<Connection>,
    /// Which server is asked, or will be next.
    server: usize,
    /// Why the last attempt failed, and since when all have.
    trouble: Option<(ServerError, Instant)>,
    next_attempt: Instant,
    /// Since when requests are open and nothing has come.
    silent: Instant,
}

impl Multiplexer {
    fn new(servers: Servers, inbox: Arc<Inbox>) -> Self {
        let now = Instant::now();
        Self {
            servers,
            inbox,
            waiting: VecDeque::new(),
            open: HashMap::new(),
            connection: None,
            server: 0,
            trouble: None,
            next_attempt: now,
            silent: now,
        }
    }

    fn run(mut self) {
        loop {
            self.sleep();
            self.take_letters();
            let now = Instant::now();
            self.connect(now);
            if let Err(error) = self.exchange(now) {
                self.lose(ServerError::Lost(error.to_string()), now);
            }
            if !self.open.is_empty()
                && now.saturating_duration_since(self.silent) > PATIENCE
                && self.servers.len() > 1
            {
                self.lose(ServerError::Slow, now);
            }
            self.expire(now);
        }
    }

    /// Until there is something to do.
    fn sleep(&mut self) {
        let mut fds = [poll_for(self.inbox.signal.fd(), libc::POLLIN); 2];
        let mut count = 1;
        if let Some(connection) = &mut self.connection {
            let unsent = !connection.send().unwrap_or(true);
            let events = libc::POLLIN | if unsent { libc::POLLOUT } else { 0 };
            fds[1] = poll_for(connection.fd(), events);
            count = 2;
        }
        let limit = match (&self.connection, self.waiting.is_empty() && self.open.is_empty()) {
            (_, true) => -1,
            (Some(_), false) => 100,
            (None, false) => 20,
        };
        // SAFETY: `count` entries are there.
        unsafe { libc::poll(fds.as_mut_ptr(), count, limit) };
        self.inbox.signal.clear();
    }

    fn take_letters(&mut self) {
        for letter in std::mem::take(&mut *locked(&self.inbox.letters)) {
            match letter {
                Letter::Ask(request) => self.waiting.push_back(request),
                Letter::Forget(request) => {
                    self.waiting.retain(|other| !Arc::ptr_eq(other, &request));
                    let number =
                        self.open.iter().find(|(_, other)| Arc::ptr_eq(other, &request)).map(|(id, _)| *id);
                    if let (Some(number), Some(connection)) = (number, &mut self.connection) {
                        connection.withdraw(number);
                    }
                }
            }
        }
    }

    /// To whichever server is there, the one that was asked last first.
    fn connect(&mut self, now: Instant) {
        if self.connection.is_some() || self.waiting.is_empty() || now < self.next_attempt {
            return;
        }
        for offset in 0..self.servers.len() {
            let index = (self.server + offset) % self.servers.len();
            match Connection::open(&self.servers[index], None) {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.server = index;
                    self.silent = now;
                    return;
                }
                Err(error) => {
                    let since = self.trouble.as_ref().map_or(now, |(_, since)| *since);
                    self.trouble = Some((ServerError::Connect(error.to_string()), since));
                }
            }
        }
        self.next_attempt = now + BETWEEN_ATTEMPTS;
    }

    fn exchange(&mut self, now: Instant) -> io::Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if self.open.is_empty() {
            self.silent = now;
        }
        while self.open.len() < WINDOW {
            let Some(request) = self.waiting.pop_front() else { break };
            match connection.put(request.ski, &request.operation) {
                Some(id) => drop(self.open.insert(id, request)),
                None => request.finish(Err(Failure::new(Reason::WrongInput, "the operation is too long"))),
            }
        }
        connection.send()?;
        let (open, server) = (&mut self.open, &self.servers[self.server]);
        let mut came = false;
        while connection.receive(|id, reply: Reply| {
            came = true;
            if let Some(request) = open.remove(&id) {
                request.finish(
                    reply.map_err(|code| ServerError::Refused(code).failure(Some(server), request.ski)),
                );
            }
        })? {}
        if came {
            self.silent = now;
            self.trouble = None;
        }
        Ok(())
    }

    /// What was open is asked again, of the next server.
    fn lose(&mut self, trouble: ServerError, now: Instant) {
        self.connection = None;
        self.server = (self.server + 1) % self.servers.len().max(1);
        let since = self.trouble.as_ref().map_or(now, |(_, since)| *since);
        self.trouble = Some((trouble, since));
        let mut again: Vec<_> = self.open.drain().collect();
        again.sort_by_key(|(id, _)| *id);
        for (_, request) in again.into_iter().rev().filter(|(_, request)| !locked(&request.state).over) {
            self.waiting.push_front(request);
        }
    }

    /// Nobody waits for ever; and when no server has been there for a while, not even for long.
    fn expire(&mut self, now: Instant) {
        let (servers, server) = (&self.servers, self.server);
        let failure = |request: &Request, trouble: &ServerError| {
            Err(trouble.failure(servers.get(server).map(std::path::PathBuf::as_path), request.ski))
        };
        let trouble = self.trouble.clone();
        let all_gone = self.connection.is_none()
            && trouble.as_ref().is_some_and(|(_, since)| now.saturating_duration_since(*since) > RESTART);
        self.waiting.retain(|request| {
            let late = all_gone || now > request.until;
            if late {
                let why = trouble.as_ref().map_or(&ServerError::Slow, |(trouble, _)| trouble);
                request.finish(failure(request, why));
            }
            !late && !locked(&request.state).over
        });
        for request in self.open.values().filter(|request| now > request.until) {
            request.finish(failure(request, &ServerError::Slow));
        }
    }
}

fn poll_for(fd: i32, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
