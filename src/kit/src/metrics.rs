//! What is measured, with closed sets of labels.

use std::sync::{Arc, Mutex};

use prometheus::{Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

/// What is measured.
#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    /// 0 waiting, 1 active, 2 done, 3 failed, 4 undone.
    pub step_state: GaugeVec,
    /// How long each step took, or has taken so far.
    pub step_duration: GaugeVec,
    /// 1 for the status each condition has.
    pub condition: GaugeVec,
    /// 1 while the cluster version operator is held back.
    pub frozen: IntGauge,
    /// Lines of logs that count as failures.
    pub log_failures: IntCounterVec,
    /// Bytes of lines in logs that were too long to be read whole.
    pub log_skipped: IntCounterVec,
    /// Machines by role, vCenter and phase.
    pub machines: GaugeVec,
    /// From a condition turning True to the controller that waited for it.
    pub handover: Histogram,
    vcenter_requests: IntCounterVec,
    vcenter_duration: HistogramVec,
    recorded: Arc<Mutex<u64>>,
}

impl Metrics {
    /// A registry of its own: nothing global.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let gauge = |name: &str, help: &str, labels: &[&str]| -> prometheus::Result<GaugeVec> {
            let gauge = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let counter = |name: &str, help: &str, labels: &[&str]| -> prometheus::Result<IntCounterVec> {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let build = Gauge::with_opts(Opts::new("vmi_build_info", "the build").const_label("version", env!("CARGO_PKG_VERSION")))?;
        build.set(1.0);
        registry.register(Box::new(build))?;
        let frozen = IntGauge::new("vmi_cluster_version_frozen", "1 while the cluster version operator is held back")?;
        registry.register(Box::new(frozen.clone()))?;
        let handover = Histogram::with_opts(
            HistogramOpts::new("vmi_handover_seconds", "from a condition turning True to the controller that waited for it")
                .buckets(vec![0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0]),
        )?;
        registry.register(Box::new(handover.clone()))?;
        let vcenter_duration = HistogramVec::new(
            HistogramOpts::new("vmi_vcenter_request_duration_seconds", "calls to vCenters").buckets(vec![0.01, 0.05, 0.2, 1.0, 5.0, 30.0]),
            &["vcenter", "api"],
        )?;
        registry.register(Box::new(vcenter_duration.clone()))?;
        Ok(Self {
            step_state: gauge("vmi_step_state", "0 waiting, 1 active, 2 done, 3 failed, 4 undone", &["step", "controller"])?,
            step_duration: gauge("vmi_step_duration_seconds", "how long a step took", &["step"])?,
            condition: gauge("vmi_condition", "1 for the status a condition has", &["type", "status"])?,
            log_failures: counter("vmi_log_failures_total", "lines of logs that count as failures", &["component", "rule"])?,
            log_skipped: counter(
                "vmi_log_skipped_bytes_total",
                "bytes of lines in logs that were too long to be read whole",
                &["component"],
            )?,
            machines: gauge("vmi_machines", "machines by role, vCenter and phase", &["role", "vcenter", "phase"])?,
            vcenter_requests: counter("vmi_vcenter_requests_total", "calls to vCenters", &["vcenter", "api", "method", "result"])?,
            frozen,
            handover,
            vcenter_duration,
            recorded: Arc::default(),
            registry,
        })
    }

    /// Takes up the calls made since the last time.
    pub fn record_calls(&self, calls: &vsphere::Calls) {
        let mut next = self.recorded.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for call in calls.since(*next) {
            *next = call.sequence + 1;
            self.vcenter_requests.with_label_values(&[&call.server, call.api, &shape(&call.method), &call.result]).inc();
            self.vcenter_duration.with_label_values(&[&call.server, call.api]).observe(call.duration_ms / 1000.0);
        }
    }

    /// Forgets what was said of a vmi.
    pub fn forget_vmi(&self) {
        for gauge in [&self.step_state, &self.step_duration, &self.condition, &self.machines] {
            gauge.reset();
        }
        self.frozen.set(0);
    }

    /// The page Prometheus reads.
    pub fn page(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// A method without the ids in its path, so that the set of labels stays closed.
fn shape(method: &str) -> String {
    let id = |part: &&str| part.contains(':') || part.len() > 24;
    method.split('/').map(|part| if id(&part) { "ID" } else { part }).collect::<Vec<_>>().join("/")
}
