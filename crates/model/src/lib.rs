//! The nouns every decision is made of.
