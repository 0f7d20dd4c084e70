//! Each slim object keeps what decisions read and comes back from its own writing unchanged.
