//! Pending pods become NodeClaims.
