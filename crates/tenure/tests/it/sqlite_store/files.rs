//! What is on the disk: modes, clean-up, deletion, and files that cannot be lock files.
