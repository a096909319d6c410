//! Key exchange against BoringSSL as the client.

mod parties;

use crate::support::{settings, start};
use parties::{Broken, Client, Eight, Reports, With, WithMlKem, WithP256, in_one_turn};
use quadrille_engine::{
    Backend, BatchFlusher, Ceiling, ClientShare, ExchangeError, ExchangeOperation, Group, MlKem768KeyPair,
    Scalar, Settings, fastest_up_to,
};
use std::{
    collections::HashSet,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

#[test]
fn clients_and_server_have_the_same_secret() {
    let groups = [Group::X25519, Group::X25519MlKem768];
    let engines = [
        start(settings(1, 8), Scalar, Reports::default()),
        start(settings(1, 8), With(Eight), Reports::default()),
        start(settings(1, 8), WithMlKem(Eight), Reports::default()),
        start(settings(1, 8), fastest_up_to(Ceiling::default()), Reports::default()),
    ];
    for engine in &engines {
        for count in [1, 2, 7, 8, 9, 17, 24, 40] {
            let clients: Vec<Client> = (0..count).map(|index| Client::new(groups[index % 2])).collect();
            let answers = in_one_turn(engine, clients.iter().map(Client::client_share).collect());
            let mut public = HashSet::new();
            for (client, answer) in clients.iter().zip(answers) {
                let answer = answer.expect("a response");
                assert_eq!(client.secret(&answer), *answer.secret);
                assert_eq!((answer.group, answer.batch <= 32), (client.group, true));
                assert!(public.insert(answer.public), "a key pair was used twice");
            }
        }
    }
}

/// Whole passes, and a remainder of three or more, are computed; BoringSSL computes the others.
#[test]
fn shares_on_p256_are_answered_where_lanes_pay() {
    let seen = Reports::default();
    let engine = start(settings(1, 8), WithP256(Eight), seen.clone());
    let mut public = HashSet::new();
    for (count, answered) in [(1, 0), (2, 0), (3, 3), (8, 8), (10, 8), (11, 11), (32, 32)] {
        let clients: Vec<Client> = (0..count).map(|_| Client::new(Group::P256)).collect();
        let answers = in_one_turn(&engine, clients.iter().map(Client::client_share).collect());
        for (index, (client, answer)) in clients.iter().zip(answers).enumerate() {
            if index >= answered {
                assert_eq!(answer.err(), Some(ExchangeError::Declined), "share {index} of {count}");
                continue;
            }
            let answer = answer.expect("a response");
            assert_eq!(client.secret(&answer), *answer.secret);
            assert_eq!((answer.group, answer.batch, answer.public[0]), (Group::P256, answered, 4));
            assert!(public.insert(answer.public), "a key pair was used twice");
        }
    }
    let secrets = [3, 8, 8, 11, 32].map(|count| ("eight", count, 0));
    assert_eq!(seen.of(ExchangeOperation::P256), secrets);
    assert_eq!(seen.of(ExchangeOperation::P256KeyPair), [("eight", 16, 0); 4], "generated in advance");
    assert_eq!(seen.of(ExchangeOperation::X25519), []);
}

/// A lone client is not delayed repeatedly, and a burst is noticed soon.
#[test]
fn after_a_turn_with_too_few_on_p256_the_next_ones_are_not_awaited() {
    let engine = start(settings(1, 8), WithP256(Eight), Reports::default());
    let turn = |count: usize| in_one_turn(&engine, vec![Client::new(Group::P256).client_share(); count]);
    assert!(engine.awaits(Group::P256));
    assert!(turn(2).iter().all(Result::is_err));
    let awaited = (0..20).filter(|_| engine.awaits(Group::P256)).count();
    assert_eq!(awaited, 4, "sixteen of twenty are not");
    assert!(engine.awaits(Group::X25519));
    assert!(turn(2).iter().all(Result::is_err));
    assert!(!engine.awaits(Group::P256) && turn(9).iter().filter(|answer| answer.is_ok()).count() == 8);
    assert!(engine.awaits(Group::P256), "the last turn had enough");
}

#[test]
fn groups_of_one_turn_do_not_disturb_each_other() {
    let engines = [
        start(settings(1, 8), WithP256(Eight), Reports::default()),
        start(settings(1, 8), fastest_up_to(Ceiling::default()), Reports::default()),
    ];
    let groups = [Group::P256, Group::X25519, Group::X25519MlKem768];
    for engine in engines {
        let clients: Vec<Client> = (0..24).map(|index| Client::new(groups[index % 3])).collect();
        let answers = in_one_turn(&engine, clients.iter().map(Client::client_share).collect());
        for (client, answer) in clients.iter().zip(answers) {
            match answer {
                Ok(answer) => assert_eq!(client.secret(&answer), *answer.secret),
                Err(error) => {
                    let expected = (ExchangeError::Declined, Group::P256, false);
                    assert_eq!((error, client.group, engine.exchanges(Group::P256)), expected);
                }
            }
        }
    }
}

#[test]
fn points_off_the_curve_are_refused_alone() {
    for backend in [Box::new(WithP256(Eight)) as Box<dyn Backend>, fastest_up_to(Ceiling::default())] {
        let seen = Reports::default();
        let engine = start(settings(1, 8), backend, seen.clone());
        if !engine.exchanges(Group::P256) {
            println!("not tested: this CPU has no lanes for P-256");
            continue;
        }
        let clients: Vec<Client> = (0..8).map(|_| Client::new(Group::P256)).collect();
        let shares = clients.iter().enumerate().map(|(index, client)| {
            let mut share = client.share.clone();
            match index {
                2 => share[64] ^= 1,
                5 => share[0] = 6 + (share[64] & 1),
                _ => {}
            }
            ClientShare::new(Group::P256, &share).expect("65 bytes")
        });
        let answers = in_one_turn(&engine, shares.collect());
        for (index, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(answer) => assert_eq!(clients[index].secret(&answer), *answer.secret),
                Err(error) => {
                    assert_eq!((matches!(index, 2 | 5), error), (true, ExchangeError::InvalidShare));
                }
            }
        }
        let reports = seen.of(ExchangeOperation::P256);
        assert_eq!(reports.iter().map(|(_, count, failed)| (*count, *failed)).collect::<Vec<_>>(), [(8, 2)]);
    }
}

#[test]
fn p256_is_asked_for_only_where_there_are_lanes_for_it() {
    let engine = start(settings(1, 8), Scalar, Reports::default());
    assert_eq!([Group::X25519, Group::P256].map(|group| engine.exchanges(group)), [true, false]);
    let answers = in_one_turn(&engine, vec![Client::new(Group::P256).client_share(); 16]);
    assert!(answers.into_iter().all(|answer| answer.err() == Some(ExchangeError::Declined)));
    let engine = start(settings(1, 8), WithP256(Eight), Reports::default());
    assert!(engine.exchanges(Group::P256));
    let settings = Settings { key_exchange: false, ..settings(1, 8) };
    assert!(!start(settings, WithP256(Eight), Reports::default()).exchanges(Group::P256));
}

#[test]
fn without_key_pairs_there_is_no_answer() {
    let engine = start(settings(1, 8), WithP256(Broken), Reports::default());
    let answers = in_one_turn(&engine, vec![Client::new(Group::P256).client_share()]);
    assert_eq!(answers[0].as_ref().err(), Some(&ExchangeError::Failed));
}

#[test]
fn shares_that_belong_together_are_answered_now_and_in_order() {
    let seen = Reports::default();
    let engine = start(settings(1, 8), With(Eight), seen.clone());
    let clients: Vec<Client> = (0..8).map(|_| Client::new(Group::X25519MlKem768)).collect();
    let answers = engine.answer(clients.iter().map(Client::client_share).collect());
    for (client, answer) in clients.iter().zip(&answers) {
        let answer = answer.as_ref().expect("a response");
        assert_eq!((client.secret(answer), answer.batch), (answer.secret.to_vec(), 8));
    }
    assert_eq!(seen.of(ExchangeOperation::X25519), [("eight", 8, 0)]);
    assert!(engine.answer(Vec::new()).is_empty());
}

#[test]
fn a_client_of_ours_decapsulates_what_a_server_has_encapsulated() {
    let engine = start(settings(1, 8), fastest_up_to(Ceiling::default()), Reports::default());
    for _ in 0..20 {
        let (pair, x25519) = (MlKem768KeyPair::generate().expect("a key pair"), Client::new(Group::X25519));
        let share = [&pair.public[..], &x25519.share].concat();
        let share = ClientShare::new(Group::X25519MlKem768, &share).expect("1216 bytes");
        assert!(share.is_reduced());
        let answer = engine.answer(vec![share]).remove(0).expect("a response");
        let ciphertext = answer.public.first_chunk().expect("the ciphertext comes first");
        assert_eq!(pair.decapsulate(ciphertext).expect("a secret")[..], answer.secret[..32]);
        let mut other = *ciphertext;
        other[7] ^= 1;
        assert_ne!(pair.decapsulate(&other).expect("implicit rejection")[..], answer.secret[..32]);
    }
}

#[test]
fn lanes_get_whole_passes_and_what_pays() {
    let seen = Reports::default();
    let engine = start(settings(1, 8), With(Eight), seen.clone());
    let shares = |count: usize| (0..count).map(|_| Client::new(Group::X25519).client_share()).collect();
    for count in [9, 2, 18] {
        in_one_turn(&engine, shares(count));
    }
    let secrets = [("eight", 8, 0), ("aws-lc", 1, 0), ("eight", 2, 0), ("eight", 18, 0)];
    assert_eq!(seen.of(ExchangeOperation::X25519), secrets);
    assert_eq!(seen.of(ExchangeOperation::X25519KeyPair), [("eight", 16, 0), ("eight", 16, 0)], "in advance");
    assert_eq!(seen.of(ExchangeOperation::MlKem768), []);
}

#[test]
fn encapsulations_get_whole_passes_and_what_pays() {
    let seen = Reports::default();
    let engine = start(settings(1, 8), WithMlKem(Eight), seen.clone());
    for count in [3, 4, 9, 12] {
        let shares = (0..count).map(|_| Client::new(Group::X25519MlKem768).client_share()).collect();
        assert!(in_one_turn(&engine, shares).iter().all(Result::is_ok));
    }
    let encapsulated =
        [("aws-lc", 3, 0), ("eight", 4, 0), ("eight", 8, 0), ("aws-lc", 1, 0), ("eight", 12, 0)];
    assert_eq!(seen.of(ExchangeOperation::MlKem768), encapsulated);
}

/// Lanes of this CPU, if any, reject the same keys as AWS-LC.
#[test]
fn lanes_refuse_a_key_that_is_not_reduced_alone() {
    let seen = Reports::default();
    let engine = start(settings(1, 8), fastest_up_to(Ceiling::default()), seen.clone());
    let clients: Vec<Client> = (0..8).map(|_| Client::new(Group::X25519MlKem768)).collect();
    let shares = clients.iter().enumerate().map(|(index, client)| {
        let mut share = client.share.clone();
        if index == 5 {
            share[1149..1152].fill(0xff);
        }
        ClientShare::new(Group::X25519MlKem768, &share).expect("1216 bytes")
    });
    for (index, answer) in in_one_turn(&engine, shares.collect()).into_iter().enumerate() {
        match answer {
            Ok(answer) => assert_eq!(clients[index].secret(&answer), *answer.secret),
            Err(error) => assert_eq!((index, error), (5, ExchangeError::InvalidShare)),
        }
    }
    let backend = if engine.ml_kem_batching().width == 8 { engine.backend() } else { "aws-lc" };
    assert_eq!(seen.of(ExchangeOperation::MlKem768), [(backend, 8, 1)]);
}

#[test]
fn shares_that_no_client_must_send_are_refused_alone() {
    let seen = Reports::default();
    let engine = start(settings(1, 8), With(Eight), seen.clone());
    let good = [Client::new(Group::X25519), Client::new(Group::X25519MlKem768)];
    // A point of small order, and a coefficient of 4095, above the modulus of 3329.
    let low_order = ClientShare::new(Group::X25519, &[0; 32]).expect("32 bytes");
    let mut unreduced = good[1].share.clone();
    unreduced[..3].fill(0xff);
    let unreduced = ClientShare::new(Group::X25519MlKem768, &unreduced).expect("1216 bytes");
    assert!(!unreduced.is_reduced() && low_order.is_reduced());
    let mut low_order_hybrid = good[1].share.clone();
    low_order_hybrid[1184..].fill(0);
    let low_order_hybrid = ClientShare::new(Group::X25519MlKem768, &low_order_hybrid).expect("1216 bytes");
    let shares = [good[0].client_share(), low_order, unreduced, low_order_hybrid, good[1].client_share()];
    let answers = in_one_turn(&engine, shares.to_vec());
    for (index, answer) in answers.iter().enumerate() {
        match index {
            0 | 4 => assert!(answer.is_ok(), "{answer:?}"),
            _ => assert_eq!(answer.as_ref().err(), Some(&ExchangeError::InvalidShare), "share {index}"),
        }
    }
    assert_eq!(seen.of(ExchangeOperation::X25519), [("eight", 4, 2)]);
    assert_eq!(seen.of(ExchangeOperation::MlKem768), [("aws-lc", 3, 1)]);
}

#[test]
fn lengths_are_checked_first() {
    for (group, right) in [(Group::X25519, 32), (Group::P256, 65), (Group::X25519MlKem768, 1216)] {
        for len in [0, right - 1, right + 1] {
            assert!(ClientShare::new(group, &vec![0; len]).is_none(), "{group} of {len} bytes");
        }
    }
}

#[test]
fn without_an_event_loop_the_answer_is_there_at_once() {
    let engine = start(settings(1, 8), Scalar, Reports::default());
    let client = Client::new(Group::X25519);
    let mut context = Context::from_waker(Waker::noop());
    let answer = pin!(engine.exchange(client.client_share())).poll(&mut context);
    assert!(matches!(answer, Poll::Ready(Ok(answer)) if client.secret(&answer) == *answer.secret));
}

#[test]
fn a_client_that_has_left_is_not_computed_for() {
    let seen = Reports::default();
    let engine = start(settings(1, 8), Scalar, seen.clone());
    let mut context = Context::from_waker(Waker::noop());
    let mut flusher = pin!(BatchFlusher::new(engine.clone()));
    assert!(flusher.as_mut().poll(&mut context).is_pending());
    drop(engine.exchange(Client::new(Group::X25519).client_share()));
    assert!(flusher.as_mut().poll(&mut context).is_pending());
    assert_eq!(seen.of(ExchangeOperation::X25519), []);
}

#[test]
fn a_panic_fails_its_batch_and_nothing_else() {
    let engine = start(settings(1, 8), With(Broken), Reports::default());
    let answers = in_one_turn(&engine, vec![Client::new(Group::X25519).client_share()]);
    assert_eq!(answers[0].as_ref().err(), Some(&ExchangeError::Failed));
    let answers = in_one_turn(&engine, vec![Client::new(Group::X25519).client_share()]);
    assert_eq!(answers[0].as_ref().err(), Some(&ExchangeError::Failed), "the thread continues");
}
