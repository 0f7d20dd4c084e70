//! Which cluster, or which dump of one: the flags that every command has that reads.

use std::path::PathBuf;

use jiff::Timestamp;
use runtime::api::Whereabouts;

use crate::source::time;

/// Flags about where objects are read from.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Source")]
pub(crate) struct Place {
    /// Dumps or a snapshot file instead of the cluster: directories, files, or `-` for standard input.
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub(crate) from: Vec<PathBuf>,
    /// The kubeconfig that names the cluster; otherwise as kubectl finds it.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; otherwise its current one.
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub(crate) context: Option<String>,
    /// The time of the dump, which kubectl does not write down: RFC 3339, `14:03`, or `2h ago`; otherwise the newest in it.
    #[arg(long, value_name = "TIME", value_parser = time::parsed)]
    pub(crate) at: Option<Timestamp>,
}

impl Place {
    /// The cluster, as a client wants it.
    pub(crate) fn cluster(&self) -> Whereabouts {
        Whereabouts {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}
