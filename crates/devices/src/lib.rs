//! Which devices satisfy a pod's claims?

mod selector;
