//! What users know better than the catalogue: NodeOverlays judged and applied.
