//! A client for the vSphere APIs.
