//! Finds or builds the Go programs the lab runs.
