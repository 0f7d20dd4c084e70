//! A real Kubernetes control plane as plain processes, for tests.
