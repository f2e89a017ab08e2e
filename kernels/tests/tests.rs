//! Every ISA against the references.

mod attention;
mod blocks;
mod matmul;
