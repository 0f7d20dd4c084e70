//! A cluster in a process: an API server on a tower Service, on virtual time.
