//! Room kept free: which virtual pods stand for each CapacityBuffer.
