//! The state machine of tasks against a naive model.

use linchpin_proto::task::{Change, Event, State, Status};
use proptest::prelude::*;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// What can happen, with names and keys that meet each other often.
#[derive(Clone, Debug)]
enum Step {
    Say(u8),
    Ask(u8),
    Answer(u8, u8),
    Refuse(u8, u8),
    Withdraw(u8, u8),
    Complete(bool),
    Fail,
    Cancel,
    Restart,
    Wait(u16),
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<u8>().prop_map(Step::Say),
        6 => (0..3_u8).prop_map(Step::Ask),
        6 => (0..3_u8, 1..6_u8).prop_map(|(name, n)| Step::Answer(name, n)),
        3 => (0..3_u8, 1..6_u8).prop_map(|(name, n)| Step::Refuse(name, n)),
        2 => (0..3_u8, 1..6_u8).prop_map(|(name, n)| Step::Withdraw(name, n)),
        1 => any::<bool>().prop_map(Step::Complete),
        1 => Just(Step::Fail),
        1 => Just(Step::Cancel),
        1 => Just(Step::Restart),
        3 => any::<u16>().prop_map(Step::Wait),
        2 => Just(Step::Expire),
    ]
}

fn key(name: u8, n: u8) -> String {
    if n == 1 { format!("q{name}") } else { format!("q{name}#{n}") }
}

/// Open and answered keys, by sets; the end, once there is one.
#[derive(Default)]
struct Model {
    open: BTreeSet<String>,
    answered: BTreeSet<String>,
    ever: BTreeSet<String>,
    end: Option<Status>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(fuzzing) { 1_000_000 } else { 300 }))]

    #[test]
    fn a_task_goes_the_ways_of_a_naive_model_and_no_others(steps in prop::collection::vec(step(), 1..60)) {
        let (params, value) = (RawValue::NULL.to_owned(), RawValue::TRUE.to_owned());
        let (mut state, mut model, mut now) = (State::new(0, 100_000), Model::default(), 0_u64);
        let mut asks = BTreeMap::<u8, u32>::new();
        for step in steps {
            let before = state.clone();
            let key = match &step {
                Step::Answer(name, n) | Step::Refuse(name, n) | Step::Withdraw(name, n) => key(*name, *n),
                _ => String::new(),
            };
            let (name, text);
            let event = match step {
                Step::Wait(ms) => {
                    now += u64::from(ms);
                    continue;
                }
                Step::Say(n) => {
                    text = n.to_string();
                    Event::Message(&text)
                }
                Step::Ask(n) => {
                    name = format!("q{n}");
                    let nth = asks.entry(n).or_default();
                    *nth += 1;
                    Event::Ask { name: &name, nth: *nth, method: "m", params: &params }
                }
                Step::Answer(..) => Event::Answer { key: &key, value: &value },
                Step::Refuse(..) => Event::AskAgain { key: &key, why: "no" },
                Step::Withdraw(..) => Event::Withdraw { key: &key },
                Step::Complete(tool_failed) => Event::Complete { tool_failed },
                Step::Fail => Event::Fail("failed"),
                Step::Cancel => Event::Cancel,
                Step::Restart => Event::Restart,
                Step::Expire => Event::Expire,
            };
            let change = state.apply(&event, now);
            if let Some(end) = model.end {
                prop_assert_eq!(&state, &before, "an end is an end");
                prop_assert_eq!((state.status, change), (end, Change::None));
                continue;
            }
            match event {
                Event::Answer { .. } => {
                    let took = model.open.remove(&key);
                    prop_assert_eq!(change != Change::None, took);
                    if took {
                        model.answered.insert(key);
                    }
                }
                Event::Withdraw { .. } => prop_assert_eq!(change != Change::None, model.open.remove(&key)),
                Event::AskAgain { .. } => {
                    let known = model.open.remove(&key) | model.answered.remove(&key);
                    prop_assert_eq!(change != Change::None, known);
                }
                Event::Complete { .. } => model.end = Some(Status::Completed),
                Event::Fail(_) => model.end = Some(Status::Failed),
                Event::Cancel => model.end = Some(Status::Cancelled),
                Event::Expire if now >= 100_000 => model.end = Some(Status::Failed),
                _ => {}
            }
            if let Some(end) = model.end {
                prop_assert_eq!((state.status, change), (end, Change::Ended));
                prop_assert!(state.deleted_ms() >= now + 600_000 && state.expires_ms() >= 100_000);
                continue;
            }
            // New keys are such as never were.
            let open: BTreeSet<String> = state.open().map(|question| question.key.clone()).collect();
            for fresh in open.difference(&model.open.clone()) {
                prop_assert!(model.ever.insert(fresh.clone()), "{} again", fresh);
                model.open.insert(fresh.clone());
            }
            prop_assert_eq!(&open, &model.open);
            let want = if open.is_empty() { Status::Working } else { Status::InputRequired };
            prop_assert_eq!(state.status, want);
            prop_assert!(state.updated_ms >= before.updated_ms);
            let again: State = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
            prop_assert_eq!(&again, &state, "it is stored and read as it is");
        }
    }
}
