//! The node agent: what stands in the place of the kubelet.
