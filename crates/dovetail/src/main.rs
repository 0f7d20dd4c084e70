//! `dovetail`: composition root.
fn main() {}
