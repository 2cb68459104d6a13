module hack/tools/manifests

go 1.26.0

require (
	github.com/kubernetes-csi/external-snapshotter/client/v8 v8.2.0
	github.com/openshift/api v0.0.0-20260511191110-9b69e5fa27e9
	github.com/openshift/cloud-credential-operator v0.0.0-20240910052617-d668c182b0e3
	github.com/openshift/cluster-autoscaler-operator v0.0.1-0.20250219201631-227f7537c3b4
	sigs.k8s.io/cluster-api v1.11.3
)
