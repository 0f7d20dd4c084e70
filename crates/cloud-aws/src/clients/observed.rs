//! Counts requests under the names that Karpenter's AWS SDK gives them.

use std::{fmt, sync::Arc};

use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::{
            Intercept,
            context::{
                BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
                FinalizerInterceptorContextRef,
            },
        },
        orchestrator::Metadata,
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use runtime::Metrics;
use tokio::time::Instant;

/// Sees every call and every attempt.
#[derive(Clone)]
pub(super) struct Observed(Option<Arc<Metrics>>);

impl Observed {
    pub(super) fn new(metrics: Option<Arc<Metrics>>) -> Self {
        Self(metrics)
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observed")
    }
}

/// When the call, and its last attempt, began; how many attempts there were.
#[derive(Debug, Clone)]
struct Began {
    call: Instant,
    attempt: Instant,
    attempts: u32,
}

impl Storable for Began {
    type Storer = StoreReplace<Self>;
}

fn note(cfg: &mut ConfigBag, began: Began) {
    cfg.interceptor_state().store_put(began);
}

/// The status that the service answered with; 0 where it did not answer.
fn status(context: &FinalizerInterceptorContextRef<'_>) -> String {
    context
        .response()
        .map_or(0, |response| response.status().as_u16())
        .to_string()
}

impl Intercept for Observed {
    fn name(&self) -> &'static str {
        "Observed"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let now = Instant::now();
        note(
            cfg,
            Began {
                call: now,
                attempt: now,
                attempts: 0,
            },
        );
        Ok(())
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(began) = cfg.load::<Began>().cloned() {
            let attempts = began.attempts + 1;
            let attempt = Instant::now();
            note(
                cfg,
                Began {
                    attempt,
                    attempts,
                    ..began
                },
            );
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let (Some(metrics), Some(call), Some(began)) = (&self.0, cfg.load::<Metadata>(), cfg.load::<Began>()) {
            let status = status(context);
            let labels = [call.service(), call.name(), status.as_str()];
            metrics.aws_sdk_go_request_attempt_total.inc(labels);
            let took = began.attempt.elapsed().as_secs_f64();
            metrics
                .aws_sdk_go_request_attempt_duration_seconds
                .observe(labels, took);
        }
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let (Some(metrics), Some(call), Some(began)) = (&self.0, cfg.load::<Metadata>(), cfg.load::<Began>()) {
            let status = status(context);
            let labels = [call.service(), call.name(), status.as_str()];
            metrics.aws_sdk_go_request_total.inc(labels);
            let took = began.call.elapsed().as_secs_f64();
            metrics.aws_sdk_go_request_duration_seconds.observe(labels, took);
            let retries = f64::from(began.attempts.saturating_sub(1));
            metrics.aws_sdk_go_request_retry_count.observe(labels, retries);
        }
        Ok(())
    }
}
