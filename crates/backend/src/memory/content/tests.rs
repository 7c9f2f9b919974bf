use proptest::prelude::*;

use super::*;
use crate::memory::space::Account;

#[derive(Debug, Clone)]
enum Step {
    Write(u64, Vec<u8>),
    SetSize(u64),
    Punch(u64, u64),
    Allocate(u64, u64),
}

const SPAN: u64 = 5 * PAGE_BYTES;

fn step() -> impl Strategy<Value = Step> {
    let data = (1..2 * PAGE_BYTES as usize, 1..=255_u8).prop_map(|(n, byte)| vec![byte; n]);
    prop_oneof![
        (0..SPAN, data).prop_map(|(at, data)| Step::Write(at, data)),
        (0..SPAN).prop_map(Step::SetSize),
        (0..SPAN, 1..SPAN).prop_map(|(at, length)| Step::Punch(at, length)),
        (0..SPAN, 1..SPAN).prop_map(|(at, length)| Step::Allocate(at, length)),
    ]
}

fn apply(content: &mut Content, charge: &mut Charge, model: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write(at, data) => {
            assert_eq!(content.write(charge, *at, data), Ok(data.len() as u32));
            let end = *at as usize + data.len();
            model.resize(model.len().max(end), 0);
            model[*at as usize..end].copy_from_slice(data);
        }
        Step::SetSize(size) => {
            content.set_size(charge, *size);
            model.resize(*size as usize, 0);
        }
        Step::Punch(at, length) => {
            content.punch(charge, *at..at + length);
            let end = model.len().min((at + length) as usize);
            let at = end.min(*at as usize);
            model[at..end].fill(0);
        }
        Step::Allocate(at, length) => {
            assert_eq!(content.allocate(charge, *at..at + length), Ok(()));
            model.resize(model.len().max((at + length) as usize), 0);
        }
    }
}

proptest! {
    #[test]
    fn it_reads_as_a_vector_of_bytes_would(steps in prop::collection::vec(step(), 1..30)) {
        let account = Account::new(u64::MAX, 1);
        let mut charge = account.open().unwrap();
        let (mut content, mut model) = (Content::default(), Vec::new());
        for step in &steps {
            apply(&mut content, &mut charge, &mut model, step);
            prop_assert_eq!(content.size(), model.len() as u64);
            prop_assert_eq!(content.used(), charge.bytes());
            let mut bytes = Vec::new();
            content.read(0, u32::MAX, &mut bytes);
            prop_assert_eq!(&bytes, &model);
            prop_assert_eq!(content.read(model.len() as u64 + 1, 9, &mut Vec::new()), 0);
            let at = model.len() / 3;
            bytes.clear();
            prop_assert_eq!(content.read(at as u64, 5000, &mut bytes) as usize, bytes.len());
            prop_assert_eq!(&bytes[..], &model[at..model.len().min(at + 5000)]);
            check_seek(&content, &model);
        }
    }
}

/// Asserts that holes have zeros only, and that all other bytes are found as data.
fn check_seek(content: &Content, model: &[u8]) {
    let mut at = 0;
    while let Some(hole) = content.seek(at, Seek::Hole) {
        let data = content.seek(hole, Seek::Data).unwrap_or(content.size());
        assert!(model[hole as usize..data as usize].iter().all(|byte| *byte == 0));
        at = data;
    }
    assert_eq!(content.seek(content.size(), Seek::Data), None);
    assert_eq!(content.seek(content.size(), Seek::Hole), None);
}

#[test]
fn holes_take_no_space() {
    let account = Account::new(2 * PAGE_BYTES, 1);
    let mut charge = account.open().unwrap();
    let mut content = Content::default();
    assert_eq!(content.write(&mut charge, 1 << 40, b"far"), Ok(3));
    assert_eq!(content.used(), PAGE_BYTES);
    assert_eq!(content.seek(0, Seek::Data), Some(1 << 40));
    assert_eq!(content.seek(1 << 40, Seek::Hole), Some(content.size()));
    content.set_size(&mut charge, 5);
    assert_eq!((content.used(), charge.bytes()), (0, 0));
}

#[test]
fn a_full_disk_takes_what_fits() {
    let account = Account::new(2 * PAGE_BYTES, 1);
    let mut charge = account.open().unwrap();
    let mut content = Content::default();
    let data = vec![1; 4 * PAGE_BYTES as usize];
    assert_eq!(content.write(&mut charge, 0, &data), Ok(2 * PAGE_BYTES as u32));
    assert_eq!(content.write(&mut charge, 2 * PAGE_BYTES, b"x"), Err(Status::NoSpc));
    assert_eq!(content.write(&mut charge, 0, b"x"), Ok(1), "a page that is there");
    assert_eq!(content.allocate(&mut charge, 0..3 * PAGE_BYTES), Err(Status::NoSpc));
    assert_eq!(content.size(), 2 * PAGE_BYTES);
}
