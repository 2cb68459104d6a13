//! Health for anybody; metrics, state and calls for those whom the apiserver says may read them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use vmi_kit::Context;

use super::listener::Listener;

/// Serves until the process ends.
pub async fn serve(listener: Listener, context: Arc<Context>) {
    let guarded = Router::new()
        .route("/metrics", get(metrics))
        .route("/debug/state", get(state))
        .route("/calls", get(calls))
        .layer(middleware::from_fn_with_state(Arc::clone(&context), allowed));
    let router = Router::new().route("/livez", get(|| async { "ok" })).route("/readyz", get(ready)).merge(guarded).with_state(context);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "health and metrics are served no more");
    }
}

async fn ready(State(context): State<Arc<Context>>) -> Response {
    let missing = context.cache.not_ready();
    if missing.is_empty() { "ok".into_response() } else { (StatusCode::SERVICE_UNAVAILABLE, missing.join("\n")).into_response() }
}

async fn metrics(State(context): State<Arc<Context>>) -> Response {
    context.metrics.record_calls(context.vcenters.calls());
    // A process that does not lead knows the vmi too, but two would say everything twice.
    let vmis = if context.leads() { context.vmis() } else { Vec::new() };
    match super::gauges::page(&context.metrics, vmis.iter().map(AsRef::as_ref)) {
        Ok(page) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn state(State(context): State<Arc<Context>>) -> Response {
    let vmis: Vec<_> = context.vmis().iter().map(|vmi| json!({"name": vmi.metadata.name, "status": vmi.status})).collect();
    axum::Json(json!({"leads": context.leads(), "notReady": context.cache.not_ready(), "vmis": vmis})).into_response()
}

async fn calls(State(context): State<Arc<Context>>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], context.vcenters.calls().json()).into_response()
}

/// Whether whoever asks may read this path, by the apiserver's word.
async fn allowed(State(context): State<Arc<Context>>, request: Request, next: Next) -> Response {
    let token =
        request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer ").map(str::to_owned));
    let Some(token) = token else {
        return (StatusCode::UNAUTHORIZED, "a bearer token of somebody who may get this path is needed\n").into_response();
    };
    match may_get(&context, token, request.uri().path()).await {
        Ok(true) => next.run(request).await,
        Ok(false) => (StatusCode::FORBIDDEN, "whoever holds this token may not get this path\n").into_response(),
        Err(error) => {
            tracing::warn!(%error, "cannot ask the apiserver who may read this");
            (StatusCode::SERVICE_UNAVAILABLE, "the apiserver cannot be asked who may read this\n").into_response()
        }
    }
}

async fn may_get(context: &Context, token: String, path: &str) -> kube::Result<bool> {
    let review = TokenReview { spec: TokenReviewSpec { token: Some(token), audiences: None }, ..TokenReview::default() };
    let review = Api::<TokenReview>::all(context.client.clone()).create(&PostParams::default(), &review).await?;
    let Some(user) = review.status.filter(|status| status.authenticated == Some(true)).and_then(|status| status.user) else {
        return Ok(false);
    };
    let access = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            non_resource_attributes: Some(NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::<SubjectAccessReview>::all(context.client.clone()).create(&PostParams::default(), &access).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
