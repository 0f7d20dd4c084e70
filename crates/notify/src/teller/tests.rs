//! Is everything told once, in time, and to nobody twice?

use std::collections::VecDeque;

use jiff::Timestamp;
use ledger::{Action, Id, Phase};

use super::*;

/// Takes messages as it was told to, and remembers them.
#[derive(Default)]
struct Inbox {
    answers: Mutex<VecDeque<Response<Bytes>>>,
    got: Mutex<Vec<Request<Bytes>>>,
}

#[async_trait::async_trait]
impl Transport for Inbox {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.got.lock().unwrap().push(request);
        let next = self.answers.lock().unwrap().pop_front();
        Ok(next.unwrap_or_default())
    }
}

impl Inbox {
    fn will_answer(&self, status: u16, retry_after: &str) {
        let answer = Response::builder().status(status).header("retry-after", retry_after);
        self.answers
            .lock()
            .unwrap()
            .push_back(answer.body(Bytes::from("busy")).unwrap());
    }

    fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    /// The ids of the decisions of a message.
    fn told(&self, at: usize) -> Vec<String> {
        let got = self.got.lock().unwrap();
        let body: serde_json::Value = serde_json::from_slice(got[at].body()).unwrap();
        let decisions = body["data"]["decisions"].as_array().unwrap();
        decisions
            .iter()
            .map(|decision| decision["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn refused(name: &str) -> Record {
    Record::new(
        Id::of("refuse", [name]),
        Action::Refuse,
        Phase::Done,
        "NoTypeFits",
        Timestamp::UNIX_EPOCH,
    )
}

fn receiver(address: &str) -> Receiver {
    Receiver {
        address: address.to_owned(),
        format: None,
        wanted: Wanted::default(),
        every: Duration::from_mins(1),
        cluster: "prod".to_owned(),
    }
}

fn teller(inbox: &Arc<Inbox>) -> Teller {
    let clock = Clock::told_by(|| Timestamp::UNIX_EPOCH);
    Teller::new(
        inbox.clone(),
        clock,
        receiver("https://events.example.com/x?token=s3cret"),
    )
    .unwrap()
}

#[tokio::test]
async fn what_a_receiver_does_not_take_is_told_with_the_next_message_and_nothing_twice() {
    let inbox = Arc::new(Inbox::default());
    let teller = teller(&inbox);
    inbox.will_answer(503, "");
    let mut records = vec![refused("a")];
    teller.tell(&records).await;
    records.push(refused("b"));
    teller.tell(&records).await;
    teller.tell(&records).await;
    let ids: Vec<String> = records.iter().map(|record| record.id.to_string()).collect();
    assert_eq!(inbox.count(), 2, "with nothing new nothing is said");
    assert_eq!((inbox.told(0), inbox.told(1)), (vec![ids[0].clone()], ids));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_decisions_is_one_message_a_period() {
    let inbox = Arc::new(Inbox::default());
    let teller = teller(&inbox);
    let known = Mutex::new(vec![]);
    let look = || {
        let mut known = known.lock().unwrap();
        for _ in 0..50 {
            let name = known.len().to_string();
            known.push(refused(&name));
        }
        known.clone()
    };
    let watch = tokio::time::timeout(Duration::from_secs(60 * 10 + 1), teller.run(look));
    assert!(watch.await.is_err(), "it goes on for ever");
    assert_eq!(inbox.count(), 10);
    assert_eq!(inbox.told(9).len(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_asks_for_patience_gets_it() {
    let inbox = Arc::new(Inbox::default());
    let teller = teller(&inbox);
    inbox.will_answer(429, "300");
    let records = vec![refused("a")];
    assert_eq!(teller.tell(&records).await, Duration::from_mins(5));
    inbox.will_answer(429, "999999");
    assert_eq!(teller.tell(&records).await, LONGEST_PAUSE);
}

#[test]
fn a_wrong_address_is_refused_without_repeating_it() {
    for address in [
        "hooks.example.com/s3cret",
        "ftp://host/s3cret",
        "https:///s3cret",
        "ht tp://s3cret",
    ] {
        let clock = Clock::told_by(|| Timestamp::UNIX_EPOCH);
        let made = Teller::new(Arc::new(Inbox::default()), clock, receiver(address));
        let error = made.err().unwrap().to_string();
        assert!(error.contains("is no URL") && !error.contains("s3cret"), "{error}");
    }
}
