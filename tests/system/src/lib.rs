//! The tests are in main.rs beside this folder; a package needs a library or a program to exist.
