pub mod command;
pub mod lab;
pub mod openshift;
pub mod suite;
