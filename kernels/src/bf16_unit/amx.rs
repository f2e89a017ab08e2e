//! AMX-BF16 (Intel server processors since 2023): eight tile registers of 16 rows of 64 bytes, and an instruction that
//! multiplies two of them and adds to a third.
//!
//! Its intrinsics are not in stable Rust, so every operation is a block of assembly. The sums stay in tile registers between
//! blocks: no compiled code uses these registers, because no function enables AMX as a target feature.

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

use super::{Bf16Unit, Left, ROWS, Strided, Sums};

/// The tile configuration as `ldtilecfg` reads it.
#[repr(C, align(64))]
struct Layout {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Sums in tiles 0 to 3, left operands in 4 and 5, right operands in 6 and 7.
const fn layout(rows: u8) -> Layout {
    Layout {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [rows, rows, rows, rows, rows, rows, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
    }
}

/// By the number of rows.
static LAYOUTS: [Layout; ROWS + 1] = {
    let mut layouts = [const { layout(1) }; ROWS + 1];
    let mut rows = 1;
    while rows <= ROWS {
        layouts[rows] = layout(rows as u8);
        rows += 1;
    }
    layouts
};

pub(crate) struct Amx {
    rows: usize,
    /// Registers belong to a thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Amx {
    /// True if the processor has the unit and the system lets this process use it.
    pub(crate) fn is_available() -> bool {
        static AVAILABLE: OnceLock<bool> = OnceLock::new();
        *AVAILABLE.get_or_init(|| {
            let (bf16, tiles) = (1 << 22, 1 << 24);
            let has = __cpuid_count(0, 0).eax >= 7 && __cpuid_count(7, 0).edx & (bf16 | tiles) == bf16 | tiles;
            has && may_use()
        })
    }
}

/// Requests permission from Linux to use tile registers (it must save them per thread); older kernels refuse.
#[cfg(target_os = "linux")]
fn may_use() -> bool {
    /// `ARCH_REQ_XCOMP_PERM` of `arch_prctl`.
    const REQUEST_STATE: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: only that permission changes.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0 }
}

/// Not implemented for other systems.
#[cfg(not(target_os = "linux"))]
fn may_use() -> bool {
    false
}

/// Loads operands into the named tiles and multiplies them; lines of left operands are adjacent.
macro_rules! step {
    ([$($instruction:literal),*], $($name:ident = $operand:expr),*) => {
        // SAFETY: the operands have as many lines as the configuration says.
        unsafe {
            asm!($($instruction),*, $($name = in(reg) $operand,)* line = in(reg) 64usize, options(nostack, readonly, preserves_flags))
        }
    };
}

impl Bf16Unit for Amx {
    #[inline(always)]
    fn new(rows: usize) -> Self {
        let layout = &LAYOUTS[rows];
        // SAFETY: an `Amx` is only created after `is_available` returned true, or in tests emulated; the configuration is valid.
        unsafe { asm!("ldtilecfg [{}]", in(reg) layout, options(nostack, readonly, preserves_flags)) }
        Amx { rows, _not_send: std::marker::PhantomData }
    }

    #[inline(always)]
    fn clear(&mut self) {
        // SAFETY: registers only.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                options(nomem, nostack, preserves_flags)
            );
        }
    }

    #[inline(always)]
    fn add(&mut self, [a0, a1]: [Option<&Left>; 2], [b0, b1]: [Option<Strided<'_>>; 2]) {
        let (a0, b0) = (a0.expect("a first tile"), b0.expect("a first panel"));
        assert!(a0.len() == self.rows && a1.is_none_or(|a1| a1.len() == self.rows), "tiles of {} rows", self.rows);
        match (a1, b1) {
            (None, None) => step!(
                ["tileloadd tmm4, [{a0} + {line}]", "tileloadd tmm6, [{b0} + {line0}]", "tdpbf16ps tmm0, tmm4, tmm6"],
                a0 = a0.as_ptr(),
                b0 = b0.as_ptr(),
                line0 = b0.line_bytes()
            ),
            (None, Some(b1)) => step!(
                [
                    "tileloadd tmm4, [{a0} + {line}]",
                    "tileloadd tmm6, [{b0} + {line0}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b1} + {line1}]",
                    "tdpbf16ps tmm1, tmm4, tmm7"
                ],
                a0 = a0.as_ptr(),
                b0 = b0.as_ptr(),
                line0 = b0.line_bytes(),
                b1 = b1.as_ptr(),
                line1 = b1.line_bytes()
            ),
            (Some(a1), None) => step!(
                [
                    "tileloadd tmm4, [{a0} + {line}]",
                    "tileloadd tmm6, [{b0} + {line0}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{a1} + {line}]",
                    "tdpbf16ps tmm2, tmm5, tmm6"
                ],
                a0 = a0.as_ptr(),
                a1 = a1.as_ptr(),
                b0 = b0.as_ptr(),
                line0 = b0.line_bytes()
            ),
            (Some(a1), Some(b1)) => step!(
                [
                    "tileloadd tmm4, [{a0} + {line}]",
                    "tileloadd tmm6, [{b0} + {line0}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b1} + {line1}]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tileloadd tmm5, [{a1} + {line}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7"
                ],
                a0 = a0.as_ptr(),
                a1 = a1.as_ptr(),
                b0 = b0.as_ptr(),
                line0 = b0.line_bytes(),
                b1 = b1.as_ptr(),
                line1 = b1.line_bytes()
            ),
        }
    }

    #[inline(always)]
    fn store(&mut self, i: usize, j: usize, sums: &mut Sums) {
        let sums = sums.0.as_mut_ptr();
        macro_rules! store {
            ($instruction:literal) => {
                // SAFETY: there is room for 16 lines.
                unsafe {
                    asm!($instruction, sums = in(reg) sums, line = in(reg) 64usize, options(nostack, preserves_flags))
                }
            };
        }
        match (i, j) {
            (0, 0) => store!("tilestored [{sums} + {line}], tmm0"),
            (0, _) => store!("tilestored [{sums} + {line}], tmm1"),
            (_, 0) => store!("tilestored [{sums} + {line}], tmm2"),
            _ => store!("tilestored [{sums} + {line}], tmm3"),
        }
    }
}

impl Drop for Amx {
    fn drop(&mut self) {
        // SAFETY: sums that are needed were stored.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
    }
}
