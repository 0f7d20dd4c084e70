//! What a node class and the settings make of every machine launched from it.

use api::aws::EC2NodeClass;
use catalogue::aws::Setup;
use runtime::settings::AwsSettings;

/// What a node class and the settings make of every machine.
pub fn setup(class: &EC2NodeClass, settings: &AwsSettings) -> Setup {
    Setup {
        vm_memory_overhead: settings.vm_memory_overhead_percent,
        reserved_interfaces: settings.reserved_enis,
        ..Setup::of(class)
    }
}
