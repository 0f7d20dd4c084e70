//! What would kube-scheduler do with these pods and these nodes?
