//! How the root condition follows from the others.
