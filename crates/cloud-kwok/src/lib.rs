//! The first cloud: nodes that kwok plays.
