//! What every kind of node class has, so that classes of all clouds can be looked after alike.

use kube::{Resource, core::object::HasStatus};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    annotations::{aws, azure},
    aws::{EC2NODECLASS_HASH_VERSION, EC2NodeClass, EC2NodeClassStatus},
    azure::{AKSNODECLASS_HASH_VERSION, AKSNodeClass, AKSNodeClassStatus},
    condition::Condition,
    finalizers::{AKSNODECLASS_TERMINATION, EC2NODECLASS_TERMINATION},
};

/// A kind of node class.
pub trait NodeClass:
    Resource<DynamicType = ()> + HasStatus<Status: ClassStatus> + Clone + DeserializeOwned + Send + Sync + 'static
{
    /// Group and version.
    const API_VERSION: &'static str;
    /// The kind.
    const KIND: &'static str;
    /// What holds a class that is to go.
    const FINALIZER: &'static str;
    /// The annotation with the hash of what running machines cannot change.
    const HASH: &'static str;
    /// The annotation with the recipe of that hash.
    const HASH_VERSION: &'static str;
    /// The recipe of now.
    const RECIPE: &'static str;

    /// Its name.
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }

    /// Whether it is to go.
    fn is_deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }
}

/// The status of a kind of node class.
pub trait ClassStatus: Clone + Default + PartialEq + Serialize + Send + Sync {
    /// Its conditions.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
}

impl NodeClass for EC2NodeClass {
    const API_VERSION: &'static str = "karpenter.k8s.aws/v1";
    const KIND: &'static str = "EC2NodeClass";
    const FINALIZER: &'static str = EC2NODECLASS_TERMINATION;
    const HASH: &'static str = aws::EC2NODECLASS_HASH;
    const HASH_VERSION: &'static str = aws::EC2NODECLASS_HASH_VERSION;
    const RECIPE: &'static str = EC2NODECLASS_HASH_VERSION;
}

impl ClassStatus for EC2NodeClassStatus {
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

impl NodeClass for AKSNodeClass {
    const API_VERSION: &'static str = "karpenter.azure.com/v1beta1";
    const KIND: &'static str = "AKSNodeClass";
    const FINALIZER: &'static str = AKSNODECLASS_TERMINATION;
    const HASH: &'static str = azure::AKSNODECLASS_HASH;
    const HASH_VERSION: &'static str = azure::AKSNODECLASS_HASH_VERSION;
    const RECIPE: &'static str = AKSNODECLASS_HASH_VERSION;
}

impl ClassStatus for AKSNodeClassStatus {
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_named_as_its_definition_is() {
        fn named<C: NodeClass>() -> [String; 2] {
            [C::api_version(&()).into_owned(), C::kind(&()).into_owned()]
        }
        assert_eq!(named::<EC2NodeClass>(), [EC2NodeClass::API_VERSION, EC2NodeClass::KIND]);
        assert_eq!(named::<AKSNodeClass>(), [AKSNodeClass::API_VERSION, AKSNodeClass::KIND]);
    }
}
