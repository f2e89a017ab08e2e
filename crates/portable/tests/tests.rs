//! The portable networks against the kernels, and their gradients.

mod backend;
mod parity;
