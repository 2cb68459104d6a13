// What the examples of the documentation include to be run against the simulator. Not a module of the tests.

mod pki {
    include!("pki.rs");
}
mod vcsim {
    include!("vcsim.rs");
}
