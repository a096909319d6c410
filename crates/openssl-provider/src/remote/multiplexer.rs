//! Multiplexer for the operations of a process that do not block a thread: one connection, kept by a separate thread
//! that starts with the first operation.

use super::{
    operation::KeyServerOperation,
    server::{DEADLINE, RECONNECT_INTERVAL, RESTART_GRACE, SERVER_TIMEOUT, ServerError, Servers},
};
use crate::{
    error::{Failure, Reason},
    process::PerProcess,
    signal::Signal,
    wait,
};
use quadrille_keyless::{
    session::{ClientEvent, Completion, KeepAlive, Outcome, RemoteOperation},
    wire,
};
use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    io,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Instant,
};

type Connection = super::connection::Connection<Arc<Request>>;

/// Threads of this process, one for each list of servers.
static MULTIPLEXERS: PerProcess<Mutex<HashMap<Servers, Arc<CommandQueue>>>> = PerProcess::new();

/// Submits an operation to the thread.
pub(super) fn submit(servers: &Servers, operation: KeyServerOperation) -> Result<wait::Answer, Failure> {
    let commands = command_queue(servers).map_err(|error| {
        Failure::new(Reason::KeyServer, format!("cannot start a thread for the key server: {error}"))
    })?;
    let request =
        Arc::new(Request { operation, deadline: Instant::now() + DEADLINE, state: Mutex::default() });
    commands.push(Command::Submit(Arc::clone(&request)));
    Ok(Box::pin(Pending { request, commands }))
}

fn command_queue(servers: &Servers) -> io::Result<Arc<CommandQueue>> {
    let mut all = locked(MULTIPLEXERS.get(Mutex::default));
    if let Some(commands) = all.get(servers) {
        return Ok(Arc::clone(commands));
    }
    let commands = Arc::new(CommandQueue { waiting: Mutex::default(), signal: Signal::new()? });
    let thread = Multiplexer::new(Arc::clone(servers), Arc::clone(&commands));
    std::thread::Builder::new().name("quadrille-keys".into()).spawn(move || thread.run())?;
    all.insert(Arc::clone(servers), Arc::clone(&commands));
    Ok(commands)
}

/// Commands that the thread has not processed yet.
struct CommandQueue {
    waiting: Mutex<Vec<Command>>,
    signal: Signal,
}

enum Command {
    Submit(Arc<Request>),
    /// Cancels a request.
    Withdraw(Arc<Request>),
}

struct Request {
    operation: KeyServerOperation,
    deadline: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    outcome: Option<wait::Outcome>,
    waker: Option<Waker>,
    over: bool,
    /// Request id on the connection, once submitted.
    id: Option<u32>,
}

struct Pending {
    request: Arc<Request>,
    commands: Arc<CommandQueue>,
}

impl Future for Pending {
    type Output = wait::Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<wait::Outcome> {
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
            self.commands.push(Command::Withdraw(Arc::clone(&self.request)));
        }
    }
}

impl CommandQueue {
    fn push(&self, command: Command) {
        let mut waiting = locked(&self.waiting);
        let first = waiting.is_empty();
        waiting.push(command);
        drop(waiting);
        if first {
            self.signal.set();
        }
    }
}

impl Request {
    fn finish(&self, outcome: wait::Outcome) {
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

impl RemoteOperation for Request {
    fn request(&self, id: u32) -> wire::Request<'_> {
        self.operation.request(id)
    }

    fn is_secret(&self) -> bool {
        self.operation.is_secret()
    }

    fn accepts(&self, result: &[u8]) -> bool {
        self.operation.accepts(result)
    }
}

/// State of the thread.
struct Multiplexer {
    servers: Servers,
    commands: Arc<CommandQueue>,
    /// Requests not submitted to a connection.
    waiting: VecDeque<Arc<Request>>,
    connection: Option<Connection>,
    /// Index of the server in use, or to be tried next.
    server: usize,
    /// Error of the last attempt, and start of the current series of failures.
    last_error: Option<(ServerError, Instant)>,
    next_attempt: Instant,
}

impl Multiplexer {
    fn new(servers: Servers, commands: Arc<CommandQueue>) -> Self {
        let now = Instant::now();
        Self {
            servers,
            commands,
            waiting: VecDeque::new(),
            connection: None,
            server: 0,
            last_error: None,
            next_attempt: now,
        }
    }

    fn run(mut self) {
        loop {
            self.sleep();
            self.take_commands();
            let now = Instant::now();
            self.connect(now);
            if let Err(last_error) = self.exchange(now) {
                self.lose(last_error, now);
            }
            self.expire(now);
        }
    }

    /// Blocks until there is work.
    fn sleep(&mut self) {
        let mut fds = [poll_for(self.commands.signal.fd(), libc::POLLIN); 2];
        let mut count = 1;
        if let Some(connection) = &self.connection {
            let unsent = connection.session.has_unsent();
            let events = libc::POLLIN | if unsent { libc::POLLOUT } else { 0 };
            fds[1] = poll_for(connection.fd(), events);
            count = 2;
        }
        let limit = self.due().map_or(-1, |due| {
            let left = due.saturating_duration_since(Instant::now());
            // Rounded up, so that it does not wake just before the deadline.
            libc::c_int::try_from(left.as_millis() + 1).unwrap_or(libc::c_int::MAX)
        });
        // SAFETY: `fds` has `count` entries.
        unsafe { libc::poll(fds.as_mut_ptr(), count, limit) };
        self.commands.signal.clear();
    }

    /// Returns when there is work even if nothing is received.
    fn due(&self) -> Option<Instant> {
        let oldest = self.waiting.front();
        match &self.connection {
            Some(connection) => {
                connection.session.due().into_iter().chain(oldest.map(|request| request.deadline)).min()
            }
            None => oldest.map(|_| self.next_attempt),
        }
    }

    fn take_commands(&mut self) {
        for command in std::mem::take(&mut *locked(&self.commands.waiting)) {
            match command {
                Command::Submit(request) => self.waiting.push_back(request),
                Command::Withdraw(request) => {
                    self.waiting.retain(|other| !Arc::ptr_eq(other, &request));
                    let id = locked(&request.state).id;
                    if let (Some(id), Some(connection)) = (id, &mut self.connection) {
                        connection.session.withdraw(id);
                    }
                }
            }
        }
    }

    /// Connects to the first reachable server, starting with the one used last.
    fn connect(&mut self, now: Instant) {
        if self.connection.is_some() || self.waiting.is_empty() || now < self.next_attempt {
            return;
        }
        // Without an alternative, a slow server is not abandoned.
        let keep_alive = if self.servers.len() > 1 {
            KeepAlive::Replies { stall: SERVER_TIMEOUT }
        } else {
            KeepAlive::Off
        };
        for offset in 0..self.servers.len() {
            let index = (self.server + offset) % self.servers.len();
            match Connection::open(&self.servers[index], None, keep_alive) {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.server = index;
                    return;
                }
                Err(error) => {
                    let since = self.last_error.as_ref().map_or(now, |(_, since)| *since);
                    self.last_error = Some((ServerError::Connect(error.to_string()), since));
                }
            }
        }
        self.next_attempt = now + RECONNECT_INTERVAL;
    }

    fn exchange(&mut self, now: Instant) -> Result<(), ServerError> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        while connection.session.has_room() {
            let Some(request) = self.waiting.pop_front() else { break };
            match connection.session.submit(now, Arc::clone(&request), Some(request.deadline)) {
                Some(id) => locked(&request.state).id = Some(id),
                None => request.finish(Err(Failure::new(Reason::WrongInput, "the operation is too long"))),
            }
        }
        connection.send()?;
        let server = &self.servers[self.server];
        loop {
            let received = connection.receive()?;
            while let Some(event) = connection.session.next_event(now)? {
                if let ClientEvent::Completed(completion) = event {
                    self.last_error = None;
                    complete(server, completion);
                }
            }
            if !received {
                return Ok(connection.session.tick(now)?);
            }
        }
    }

    /// Resubmits the pending requests to the next server.
    fn lose(&mut self, last_error: ServerError, now: Instant) {
        self.server = (self.server + 1) % self.servers.len().max(1);
        let since = self.last_error.as_ref().map_or(now, |(_, since)| *since);
        self.last_error = Some((last_error, since));
        let lost = self.connection.take();
        let unanswered = lost.map_or_else(Vec::new, |connection| connection.session.into_operations());
        for request in unanswered.into_iter().rev() {
            let over = {
                let mut state = locked(&request.state);
                state.id = None;
                state.over
            };
            if !over {
                self.waiting.push_front(request);
            }
        }
    }

    /// Fails requests that wait for a connection: at their deadline, or at once if no server has been reachable for a
    /// while.
    fn expire(&mut self, now: Instant) {
        let (servers, server) = (&self.servers, self.server);
        let failure = |request: &Request, last_error: &ServerError| {
            Err(last_error
                .failure(servers.get(server).map(std::path::PathBuf::as_path), request.operation.ski))
        };
        let last_error = self.last_error.clone();
        let all_gone = self.connection.is_none()
            && last_error
                .as_ref()
                .is_some_and(|(_, since)| now.saturating_duration_since(*since) > RESTART_GRACE);
        self.waiting.retain(|request| {
            let late = all_gone || now > request.deadline;
            if late {
                let why = last_error.as_ref().map_or(&ServerError::Slow, |(last_error, _)| last_error);
                request.finish(failure(request, why));
            }
            !late && !locked(&request.state).over
        });
    }
}

fn complete(server: &Path, completion: Completion<Arc<Request>>) {
    let Completion { operation: request, outcome, .. } = completion;
    let failure = |error: ServerError| Err(error.failure(Some(server), request.operation.ski));
    request.finish(match outcome {
        Outcome::Computed(result) => Ok(result),
        Outcome::Refused(code) => failure(ServerError::Refused(code)),
        Outcome::Expired => failure(ServerError::Slow),
        Outcome::Withdrawn { .. } => return,
    });
}

fn poll_for(fd: i32, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
