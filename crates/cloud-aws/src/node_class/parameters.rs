//! SSM parameters that name images.

use std::time::Duration;

use runtime::{Clock, remembered::Remembered};

use crate::Failure;

/// How long an image that AWS publishes is believed to be the one.
const PUBLISHED: Duration = Duration::from_hours(24);
/// How long a user's own parameter is believed.
const OWN: Duration = Duration::from_mins(5);

/// A remembered parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) value: String,
    /// It says another image when there is a newer one.
    pub(crate) is_mutable: bool,
}

/// Asks for parameters.
pub(crate) struct Parameters {
    ssm: aws_sdk_ssm::Client,
    known: Remembered<Parameter>,
}

impl Parameters {
    pub(crate) fn new(ssm: aws_sdk_ssm::Client, clock: &Clock) -> Self {
        Self {
            ssm,
            known: Remembered::new(clock.clone()),
        }
    }

    /// A parameter that AWS publishes. A mutable one follows new releases.
    pub(crate) async fn published(&self, name: &str, is_mutable: bool) -> Result<String, Failure> {
        self.get(name, is_mutable, PUBLISHED).await
    }

    /// A user's own parameter, by name or ARN.
    pub(crate) async fn own(&self, name: &str) -> Result<String, Failure> {
        self.get(name, false, OWN).await
    }

    async fn get(&self, name: &str, is_mutable: bool, believed: Duration) -> Result<String, Failure> {
        if let Some(known) = self.known.get(name) {
            return Ok(known.value);
        }
        let answer = self.ssm.get_parameter().name(name).send().await;
        let answer = answer.map_err(|error| Failure::of(&error))?;
        let value = answer
            .parameter()
            .and_then(|it| it.value())
            .unwrap_or_default()
            .to_owned();
        tracing::info!(parameter = name, value, "discovered ssm parameter");
        let parameter = Parameter {
            value: value.clone(),
            is_mutable,
        };
        self.known.put(name, parameter, believed);
        Ok(value)
    }

    /// The images of parameters that follow new releases.
    pub(crate) fn mutable(&self) -> Vec<String> {
        let mutable = self.known.all().into_iter().filter(|(_, it)| it.is_mutable);
        mutable.map(|(_, it)| it.value).collect()
    }

    /// Forgets the parameters that name these images.
    pub(crate) fn forget(&self, images: &[String]) {
        let named: Vec<String> = self
            .known
            .all()
            .into_iter()
            .filter(|(_, it)| images.contains(&it.value))
            .map(|(name, _)| name)
            .collect();
        self.known.forget(|name| named.iter().any(|it| it == name));
    }
}
