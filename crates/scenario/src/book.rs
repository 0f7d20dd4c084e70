//! The stories that come with the binary.

/// A story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Story {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! stories {
    ($($name:literal,)*) => {
        /// All of them.
        pub const STORIES: &[Story] = &[$(Story {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".yaml")),
        },)*];
    };
}

stories! {
    "morning-rush",
    "scale-in",
    "spot-storm",
    "zone-outage",
    "bad-image",
    "drift-roll",
    "batch-night",
    "runaway-pod",
    "stock-out",
    "azure-stock-out",
    "budget-window",
}
