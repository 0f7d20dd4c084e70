//! What does AWS say about machines before it takes, stops or repairs them? Messages of a queue, and a look at the
//! health of instances every minute.

mod message;
mod queue;
mod status;

pub use self::message::{Unreadable, read as read_message};
pub(crate) use self::{
    queue::Queue,
    status::{RECEIPT as STATUS_RECEIPT, StatusPoll},
};
