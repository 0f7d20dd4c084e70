//! What do clouds offer, and at what price?
