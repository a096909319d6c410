//! Servers that die, hang, reject and lag, in simulated time.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use super::{
    FailoverPolicy, Failure,
    dispatch::{Assignment, Dispatch},
};
use crate::{
    session::{ClientEvent, ClientSession, KeepAlive, RemoteOperation},
    wire::{ErrorCode, Hints, Incoming, KeyName, Message, Mode, Reader, Request, WINDOW, Writer},
};
use std::{
    collections::HashMap,
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, Instant},
};

const CAPACITY: usize = 10_000;

/// Number carried by the request, which identifies it to the simulated server.
struct Numbered([u8; 4]);

impl RemoteOperation for Numbered {
    fn request(&self, id: u32) -> Request<'_> {
        Request { id, key: KeyName::default(), opcode: 5, payload: &self.0, hints: Hints::default() }
    }

    fn is_secret(&self) -> bool {
        false
    }

    fn accepts(&self, result: &[u8]) -> bool {
        result.len() == 1
    }
}

/// One server, with the client's session and the requests read from it.
struct Server {
    session: ClientSession<Assignment<Numbered>>,
    reader: Reader,
    /// Ids of open requests by operation.
    requests: HashMap<u32, u32>,
    /// Ids of withdrawn requests.
    withdrawn: Vec<u32>,
}

struct Simulation {
    dispatch: Dispatch<Numbered>,
    servers: Vec<Server>,
    /// Operations by the numbers in their requests.
    operations: HashMap<u32, u32>,
    now: Instant,
}

impl Server {
    fn new(now: Instant) -> Self {
        Self {
            session: ClientSession::new(now, Mode::Batched, false, KeepAlive::Off),
            reader: Reader::new(Mode::Batched),
            requests: HashMap::new(),
            withdrawn: Vec::new(),
        }
    }
}

impl Simulation {
    fn new(servers: usize) -> Self {
        let now = Instant::now();
        let mut this = Self {
            dispatch: Dispatch::new(servers, FailoverPolicy::default(), CAPACITY),
            servers: (0..servers).map(|_| Server::new(now)).collect(),
            operations: HashMap::new(),
            now,
        };
        (0..servers).for_each(|server| this.up(server));
        this
    }

    fn up(&mut self, server: usize) {
        self.servers[server] = Server::new(self.now);
        self.dispatch.up(self.now, server);
    }

    fn try_submit(&mut self, impatient: bool) -> Result<u32, Failure> {
        let number = u32::try_from(self.operations.len()).unwrap();
        let job = Arc::new(Numbered(number.to_be_bytes()));
        let id = self.dispatch.submit(self.now, job, impatient)?;
        self.operations.insert(number, id);
        Ok(id)
    }

    fn submit(&mut self) -> u32 {
        self.try_submit(false).unwrap()
    }

    fn pass(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    /// Returns the operations with requests to this server now.
    fn sent(&mut self, server: usize) -> Vec<u32> {
        let Server { session, reader, requests, withdrawn } = &mut self.servers[server];
        self.dispatch.fill(self.now, server, session);
        let bytes = session.unsent().to_vec();
        session.advance(bytes.len());
        reader.receive(&bytes);
        let mut sent = Vec::new();
        while let Some(incoming) = reader.next_message().unwrap() {
            match incoming {
                Incoming::Message(Message::Request(request)) => {
                    let number = u32::from_be_bytes(request.payload.try_into().unwrap());
                    let operation = self.operations[&number];
                    requests.insert(operation, request.id);
                    sent.push(operation);
                }
                Incoming::Message(Message::Withdraw { id }) => withdrawn.push(id),
                other => panic!("{other:?}"),
            }
        }
        sent
    }

    fn is_withdrawn(&mut self, server: usize, operation: u32) -> bool {
        self.sent(server);
        let server = &self.servers[server];
        server.withdrawn.contains(&server.requests[&operation])
    }

    fn answer(&mut self, server: usize, operation: u32) {
        self.reply(server, operation, Ok(&[u8::try_from(server).unwrap()]));
    }

    fn refuse(&mut self, server: usize, operation: u32, error: ErrorCode) {
        self.reply(server, operation, Err(error));
    }

    fn reply(&mut self, server: usize, operation: u32, result: Result<&[u8], ErrorCode>) {
        let Server { session, requests, .. } = &mut self.servers[server];
        let id = requests.remove(&operation).unwrap();
        let mut writer = Writer::new(Mode::Batched);
        writer.put(&Message::Reply { id, result });
        session.receive(self.now, writer.unsent());
        while let Some(event) = session.next_event(self.now).unwrap() {
            let ClientEvent::Completed(completion) = event else { panic!("pings are off") };
            self.dispatch.completed(self.now, server, completion);
        }
    }

    /// Returns the server that computed it.
    fn result(&mut self, id: u32) -> Option<Result<u8, Failure>> {
        match self.dispatch.poll(id, Waker::noop()) {
            Poll::Pending => None,
            Poll::Ready(result) => Some(result.map(|bytes| bytes[0])),
        }
    }

    /// Completes enough requests of a millisecond each for the usual time to be known.
    fn settle(&mut self) {
        for _ in 0..300 {
            let id = self.submit();
            let server = usize::from(self.sent(0).is_empty());
            if server == 1 {
                self.sent(1);
            }
            self.pass(1);
            self.answer(server, id);
            self.result(id).unwrap().unwrap();
        }
    }
}

#[test]
fn operations_of_one_moment_go_to_one_server_until_a_batch_is_full() {
    let mut all = Simulation::new(2);
    let ids: Vec<u32> = (0..16).map(|_| all.submit()).collect();
    let (first, second) = (all.sent(0), all.sent(1));
    assert_eq!((first.len(), second.len()), (8, 8));
    for id in first {
        all.answer(0, id);
    }
    for id in second {
        all.answer(1, id);
    }
    assert!(ids.into_iter().all(|id| all.result(id).unwrap().is_ok()));
}

#[test]
fn what_a_lost_server_had_goes_to_another() {
    let mut all = Simulation::new(2);
    let sent = all.submit();
    assert_eq!(all.sent(0), [sent]);
    let queued = all.submit();
    assert!(all.dispatch.lost(all.now, 0).is_empty());
    let mut moved = all.sent(1);
    moved.sort_unstable();
    assert_eq!(moved, [sent, queued]);
    all.answer(1, sent);
    all.answer(1, queued);
    assert_eq!((all.result(sent), all.result(queued)), (Some(Ok(1)), Some(Ok(1))));
}

#[test]
fn without_a_server_operations_wait_for_one_and_fail_in_time() {
    let mut all = Simulation::new(1);
    all.dispatch.lost(all.now, 0);
    let waits = all.submit();
    let impatient = all.try_submit(true).unwrap();
    assert_eq!(all.result(impatient), Some(Err(Failure::Unavailable)), "impatient operations fail at once");
    all.pass(3000);
    let later = all.submit();
    all.pass(2000);
    assert_eq!(all.dispatch.due(), Some(all.now));
    all.dispatch.tick(all.now);
    assert_eq!(all.result(waits), Some(Err(Failure::Unavailable)));
    assert_eq!(all.result(later), None);
    all.up(0);
    assert_eq!(all.sent(0), [later]);
    all.answer(0, later);
    assert_eq!(all.result(later), Some(Ok(0)));
    assert_eq!(all.dispatch.due(), None, "nothing is left");
}

#[test]
fn past_the_usual_time_a_second_request_is_sent_and_the_first_reply_counts() {
    let mut all = Simulation::new(2);
    all.settle();
    let id = all.submit();
    let slow = usize::from(all.sent(0).is_empty());
    all.sent(slow);
    let due = all.dispatch.due().unwrap();
    assert!(due < all.now + Duration::from_millis(10), "{:?}", due - all.now);
    all.now = due;
    assert_eq!(all.dispatch.tick(all.now).hedged, 1);
    assert_eq!(all.sent(1 - slow), [id]);
    all.answer(1 - slow, id);
    assert_eq!(all.result(id), Some(Ok(1 - slow as u8)));
    // The slow server receives a withdrawal, and its reply is not a violation.
    assert!(all.is_withdrawn(slow, id));
    all.refuse(slow, id, ErrorCode::Withdrawn);
}

#[test]
fn slow_servers_do_not_get_twice_the_work() {
    let mut all = Simulation::new(2);
    all.settle();
    let mut asked = 0;
    for _ in 0..50 {
        let ids: Vec<u32> = (0..20).map(|_| all.submit()).collect();
        asked += all.sent(0).len() + all.sent(1).len();
        all.pass(200);
        all.dispatch.tick(all.now);
        asked += all.sent(0).len() + all.sent(1).len();
        for id in ids {
            let server = usize::from(!all.servers[0].requests.contains_key(&id));
            all.answer(server, id);
            all.result(id).unwrap().unwrap();
        }
        all.sent(0);
        all.sent(1);
    }
    assert!((1000..1160).contains(&asked), "{asked} requests for 1000 operations");
}

#[test]
fn the_operations_of_a_silent_server_go_elsewhere() {
    let mut all = Simulation::new(2);
    let ids: Vec<u32> = (0..100).map(|_| all.submit()).collect();
    all.sent(0);
    let quick = all.sent(1);
    all.pass(1);
    quick.iter().for_each(|id| all.answer(1, *id));
    all.pass(499);
    all.dispatch.tick(all.now);
    let moved = all.sent(1);
    assert_eq!(moved.len() + quick.len(), 100);
    moved.iter().for_each(|id| all.answer(1, *id));
    assert!(ids.into_iter().all(|id| all.result(id) == Some(Ok(1))));
    let next = all.submit();
    assert_eq!((all.sent(0), all.sent(1)), (vec![], vec![next]), "the suspended server is not used first");
}

#[test]
fn a_rejection_is_final_only_without_other_servers() {
    let mut all = Simulation::new(2);
    let id = all.submit();
    let first = usize::from(all.sent(0).is_empty());
    all.sent(first);
    all.refuse(first, id, ErrorCode::KeyNotFound);
    assert_eq!(all.sent(1 - first), [id]);
    all.refuse(1 - first, id, ErrorCode::Internal);
    assert_eq!(all.result(id), Some(Err(Failure::Refused(ErrorCode::Internal))));
}

#[test]
fn clients_that_leave_leave_nothing_behind() {
    let mut all = Simulation::new(1);
    let (gone, sent, stays) = (all.submit(), all.submit(), all.submit());
    all.dispatch.withdraw(gone);
    assert_eq!(all.sent(0), [sent, stays]);
    all.dispatch.withdraw(sent);
    assert!(all.is_withdrawn(0, sent));
    all.answer(0, sent);
    all.answer(0, stays);
    assert_eq!(all.result(stays), Some(Ok(0)));
    assert_eq!(all.dispatch.due(), None);
}

#[test]
fn no_more_than_the_window_is_sent_and_no_more_than_the_capacity_taken() {
    let mut all = Simulation::new(1);
    let ids: Vec<u32> = (0..CAPACITY).map(|_| all.submit()).collect();
    assert_eq!(all.try_submit(false), Err(Failure::Full));
    assert_eq!(all.sent(0).len(), WINDOW);
    all.answer(0, ids[0]);
    assert_eq!(all.sent(0), [ids[WINDOW]]);
    assert_eq!(all.result(ids[0]), Some(Ok(0)));
    assert_eq!(all.dispatch.close().len(), 0, "no waker was registered");
    assert_eq!(all.result(ids[1]), Some(Err(Failure::Closed)));
}

/// Thousands of operations while servers connect, disconnect, reject, and respond late: each has one result, and no
/// state remains.
#[test]
fn a_long_random_life() {
    let mut random = crate::wire::tests_random(3);
    let mut all = Simulation::new(3);
    let mut up = [true; 3];
    let mut with_server: [Vec<u32>; 3] = Default::default();
    let (mut open, mut done): (Vec<u32>, usize) = (Vec::new(), 0);
    for _ in 0..30_000 {
        let server = random.below(3);
        match random.below(12) {
            0..=3 => open.push(all.submit()),
            4 if up[server] && random.below(10) == 0 => {
                up[server] = false;
                with_server[server].clear();
                all.dispatch.lost(all.now, server);
            }
            5 if !up[server] => {
                up[server] = true;
                all.up(server);
            }
            6 if !open.is_empty() && random.below(5) == 0 => {
                let id = open.swap_remove(random.below(open.len()));
                all.dispatch.withdraw(id);
            }
            7 => {
                all.pass(random.below(30) as u64);
                all.dispatch.tick(all.now);
            }
            _ if up[server] => {
                let sent = all.sent(server);
                with_server[server].extend(sent);
                if !with_server[server].is_empty() {
                    let at = random.below(with_server[server].len());
                    let id = with_server[server].swap_remove(at);
                    match random.below(8) {
                        0 => all.refuse(server, id, ErrorCode::Internal),
                        _ => all.answer(server, id),
                    }
                }
            }
            _ => {}
        }
        open.retain(|id| match all.result(*id) {
            None => true,
            Some(_) => {
                done += 1;
                false
            }
        });
    }
    all.pass(10_000);
    all.dispatch.tick(all.now);
    assert!(open.into_iter().all(|id| all.result(id).is_some()), "an operation was lost");
    assert!(done > 5_000, "{done}");
    assert_eq!(all.dispatch.due(), None);
}

#[test]
fn operations_that_are_over_leave_no_trace_while_no_server_takes_them() {
    let mut simulation = Simulation::new(1);
    let leave_at_once = |simulation: &mut Simulation| {
        for number in 0..10_000_u32 {
            let job = Arc::new(Numbered(number.to_be_bytes()));
            let id = simulation.dispatch.submit(simulation.now, job, false).unwrap();
            simulation.dispatch.withdraw(id);
            assert!(simulation.dispatch.queued(1) < 100, "{number}");
        }
    };
    // Sends nothing, as if the window were closed.
    leave_at_once(&mut simulation);
    simulation.dispatch.lost(simulation.now, 0);
    leave_at_once(&mut simulation);
}
