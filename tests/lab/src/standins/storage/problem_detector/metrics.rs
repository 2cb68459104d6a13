//! The detector's metrics, by its own names, in Prometheus' text.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

/// Name and labels, as they are written, and the value.
type Series = BTreeMap<String, f64>;

#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Series>>);

impl Metrics {
    pub fn gauge(&self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.lock().insert(series(name, labels), value);
    }

    pub fn count(&self, name: &str, labels: &[(&str, &str)]) {
        *self.lock().entry(series(name, labels)).or_default() += 1.0;
    }

    /// Of what is counted anew each round nothing of the last one stays.
    pub fn forget(&self, name: &str) {
        self.lock().retain(|series, _| series.split('{').next() != Some(name));
    }

    /// How many there are of each, in the place of what was counted before.
    pub fn counted<K: AsRef<str>>(&self, name: &str, label: &str, counts: &BTreeMap<K, u32>) {
        self.forget(name);
        counts.iter().for_each(|(key, count)| self.gauge(name, &[(label, key.as_ref())], f64::from(*count)));
    }

    pub fn text(&self) -> String {
        self.lock().iter().map(|(series, value)| format!("{series} {value}\n")).collect()
    }

    /// Listens, and serves them until the process ends.
    pub async fn serve(&self, address: SocketAddr) -> io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        let metrics = self.clone();
        let routes = Router::new().route("/metrics", get(async move || metrics.text()));
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).await {
                tracing::error!("metrics are served no more: {error}");
            }
        });
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Series> {
        // Numbers are never left half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn series(name: &str, labels: &[(&str, &str)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
    if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_are_set_counters_grow_and_both_are_written_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        for value in [1.0, 0.0] {
            metrics.count("total", &[("check", "A")]);
            metrics.gauge("errors", &[("check", "A"), ("node", "a\"b")], value);
        }
        metrics.gauge("plain", &[], 3.0);
        assert_eq!(metrics.text(), "errors{check=\"A\",node=\"a\\\"b\"} 0\nplain 3\ntotal{check=\"A\"} 2\n");
        metrics.forget("total");
        assert!(!metrics.text().contains("total"));
    }
}
