//! Stand-ins for the OpenShift operators that cannot be built outside OpenShift.
