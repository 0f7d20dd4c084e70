//! The kinds of the API group `autoscaling.x-k8s.io`, shared with other node autoscalers.

mod capacity_buffer;

pub use self::capacity_buffer::{
    ACTIVE_CAPACITY, CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus, LocalObjectRef, ScalableRef,
};
