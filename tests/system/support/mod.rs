pub mod alone;
pub mod asking;
pub mod command;
pub mod forbidden;
pub mod lab;
pub mod openshift;
pub mod prometheus;
pub mod suite;
