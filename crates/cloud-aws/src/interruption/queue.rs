//! The queue of interruptions: long polls, several at once while there is much to read, and deletion of what is done.

use std::sync::Arc;

use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use cloud::Notice;
use futures_util::future::join_all;
use jiff::Timestamp;
use runtime::{Clock, Metrics};
use tokio::sync::OnceCell;

use super::message;
use crate::Failure;

/// The most that one answer holds.
const PAGE: i32 = 10;
/// How long a message stays hidden from others once it was received: what is not done by then comes again.
const HIDDEN: i32 = 20;
/// How long a poll waits for the first message.
const WAIT: i32 = 20;
/// How many further polls follow at once where one came back full.
const MORE: usize = 9;

/// The queue.
pub(crate) struct Queue {
    sqs: aws_sdk_sqs::Client,
    name: String,
    url: OnceCell<String>,
    clock: Clock,
    metrics: Option<Arc<Metrics>>,
}

impl Queue {
    pub(crate) fn new(sqs: aws_sdk_sqs::Client, name: &str, clock: Clock, metrics: Option<Arc<Metrics>>) -> Self {
        Self {
            sqs,
            name: name.to_owned(),
            url: OnceCell::new(),
            clock,
            metrics,
        }
    }

    /// Waits for messages and returns what they say. Those that say nothing to us, or nothing at all, are deleted here:
    /// nobody will ever read more from them.
    pub(crate) async fn notices(&self) -> Result<Vec<Notice>, Failure> {
        let mut messages = self.receive(WAIT).await?;
        if messages.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX) {
            let more = join_all((0..MORE).map(|_| self.receive(0))).await;
            // What a failed poll hid comes again.
            messages.extend(more.into_iter().filter_map(Result::ok).flatten());
        }
        let (mut notices, mut done) = (Vec::new(), Vec::new());
        for message in &messages {
            match self.read(message) {
                Some(notice) => notices.push(notice),
                None => done.extend(message.receipt_handle().map(str::to_owned)),
            }
        }
        // What is not deleted comes again; a machine that will be taken in two minutes does not wait for it.
        if let Err(failure) = self.delete_all(&done).await {
            tracing::error!(error = %failure, queue = %self.name, "deleting messages that say nothing");
        }
        Ok(notices)
    }

    /// Deletes a message that was acted on.
    pub(crate) async fn delete(&self, receipt: &str) -> Result<(), Failure> {
        let url = self.url().await?;
        let request = self.sqs.delete_message().queue_url(url).receipt_handle(receipt);
        request.send().await.map(drop).map_err(|error| Failure::of(&error))
    }

    fn read(&self, message: &Message) -> Option<Notice> {
        let body = message.body().unwrap_or_default();
        let receipt = message.receipt_handle().unwrap_or_default();
        match message::read(body, receipt, self.sent(message)) {
            Ok(Some(notice)) => Some(notice),
            Ok(None) => {
                self.count("no_op");
                None
            }
            Err(error) => {
                let id = message.message_id().unwrap_or_default();
                tracing::error!(error = %error, message = id, queue = %self.name, "failed parsing interruption message");
                self.count("unparseable");
                None
            }
        }
    }

    fn count(&self, kind: &str) {
        if let Some(metrics) = &self.metrics {
            metrics.interruption_received_messages_total.inc([kind]);
            metrics.interruption_deleted_messages_total.inc([]);
        }
    }

    /// When a message was put into the queue.
    fn sent(&self, message: &Message) -> Timestamp {
        let attributes = message.attributes();
        let sent = attributes.and_then(|it| it.get(&MessageSystemAttributeName::SentTimestamp));
        let sent = sent.and_then(|millis| Timestamp::from_millisecond(millis.parse().ok()?).ok());
        sent.unwrap_or_else(|| self.clock.now())
    }

    async fn receive(&self, wait: i32) -> Result<Vec<Message>, Failure> {
        let url = self.url().await?;
        let request = self
            .sqs
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(PAGE)
            .visibility_timeout(HIDDEN)
            .wait_time_seconds(wait)
            .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
        let answer = request.send().await.map_err(|error| Failure::of(&error))?;
        Ok(answer.messages.unwrap_or_default())
    }

    async fn delete_all(&self, receipts: &[String]) -> Result<(), Failure> {
        let url = self.url().await?;
        for receipts in receipts.chunks(10) {
            let entry = |(at, receipt): (usize, &String)| {
                let entry = DeleteMessageBatchRequestEntry::builder()
                    .id(at.to_string())
                    .receipt_handle(receipt);
                entry.build().ok()
            };
            let entries: Vec<_> = receipts.iter().enumerate().filter_map(entry).collect();
            let request = self
                .sqs
                .delete_message_batch()
                .queue_url(url)
                .set_entries(Some(entries));
            request.send().await.map_err(|error| Failure::of(&error))?;
        }
        Ok(())
    }

    async fn url(&self) -> Result<&str, Failure> {
        let url = self.url.get_or_try_init(async || {
            let answer = self.sqs.get_queue_url().queue_name(&self.name).send().await;
            let answer = answer.map_err(|error| Failure::of(&error))?;
            Ok::<_, Failure>(answer.queue_url().unwrap_or_default().to_owned())
        });
        url.await.map(String::as_str)
    }
}
