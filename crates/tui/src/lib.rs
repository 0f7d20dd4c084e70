//! The fleet on a terminal: what is shown, how keys move through it, and how a screen is drawn.
//!
//! Nothing here waits, reads a cluster or touches a terminal. Whoever owns those hands in [`Event`]s with the time they
//! came, carries out the [`Effect`]s that come back, and asks for a frame. A frame draws only what is visible: lists are
//! ordered when something changes, and cells are made for the rows on the screen.

mod ahead;
mod answer;
mod app;
mod canvas;
mod choice;
mod draw;
mod figure;
mod filter;
mod listing;
mod picture;
mod theme;

pub use ahead::{Ahead, Next, NextKind, Waiting};
pub use answer::{Answer, Question, WhatIf, answered};
pub use app::{App, Effect, Event, Key, Mouse, Place, Press, Screen};
pub use choice::{Choices, Defaults, Selector, Sort, SortKey, style};
pub use draw::{Drawn, draw};
pub use picture::{Picture, Row, Share, Title};
pub use theme::{Depth, Look, Palette, Rgb};
