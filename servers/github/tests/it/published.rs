//! The published server and GitHub's own descriptions beside ours.
