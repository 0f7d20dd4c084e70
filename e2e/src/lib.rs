//! Journeys on a real control plane; the tests live in `tests/`.
