//! Gauges and events about what is: pods, nodes, pools, conditions.
