//! NodeClaims from launch to end.
