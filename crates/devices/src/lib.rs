//! Which devices satisfy a pod's claims?
