//! AMX-INT8 (Intel server processors since 2023): eight tile registers of 16 rows of 64 bytes, and an instruction that
//! multiplies two of them and adds to a third.
//!
//! Its intrinsics are not in stable Rust, so every operation is one block of assembly that loads, multiplies and stores;
//! between blocks the tile registers hold no live data. The tile configuration stays set on the thread.

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

use super::{AT_ONCE, Left, MatrixUnit, Right, Sums};

/// The tile configuration as `ldtilecfg` reads it.
#[repr(C, align(64))]
struct Layout {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// For products over this many bytes: sums in tiles 0 to 3, left operands in 4 and 5, right operands in 6 and 7.
const fn layout(bytes: u8) -> Layout {
    let (left, fours) = (bytes as u16, bytes / 4);
    Layout {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [64, 64, 64, 64, left, left, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [16, 16, 16, 16, 16, 16, fours, fours, 0, 0, 0, 0, 0, 0, 0, 0],
    }
}

static LAYOUT: Layout = layout(32);

/// Full tiles on both sides, for [`MatrixUnit::busy`].
static WHOLE: Layout = layout(64);

pub(crate) struct Amx {
    /// Registers belong to a thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Amx {
    /// True if the processor has the unit and the system lets this process use it.
    pub(crate) fn is_available() -> bool {
        static AVAILABLE: OnceLock<bool> = OnceLock::new();
        *AVAILABLE.get_or_init(|| {
            let (tiles, bytes) = (1 << 24, 1 << 25);
            let has = __cpuid_count(0, 0).eax >= 7 && __cpuid_count(7, 0).edx & (tiles | bytes) == tiles | bytes;
            has && may_use()
        })
    }

    fn set(layout: &'static Layout) {
        // SAFETY: an `Amx` is only created after `is_available` returned true; the configuration is valid.
        unsafe { asm!("ldtilecfg [{}]", in(reg) layout, options(nostack, readonly, preserves_flags)) }
    }
}

/// Requests permission from Linux to use tile registers (it must save them per thread); older kernels refuse.
#[cfg(target_os = "linux")]
fn may_use() -> bool {
    /// `ARCH_REQ_XCOMP_PERM` of `arch_prctl`.
    const ASK_FOR_STATE: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: only that permission changes.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0 }
}

/// Not implemented for other systems.
#[cfg(not(target_os = "linux"))]
fn may_use() -> bool {
    false
}

impl MatrixUnit for Amx {
    /// 256 sums of 64 products, six times.
    const BUSY_OPERATIONS: usize = 6 * 2 * 256 * 64;

    #[inline(always)]
    fn new() -> Self {
        Self::set(&LAYOUT);
        Amx { _not_send: std::marker::PhantomData }
    }

    #[inline(always)]
    fn multiply(&self, a: [&Left; AT_ONCE], b: [&Right; AT_ONCE], sums: &mut [Sums; AT_ONCE]) {
        // SAFETY: rows and strides are those of the types, and the layout that is set is `LAYOUT`.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tileloadd tmm4, [{a0} + {left}]",
                "tileloadd tmm6, [{b0} + {line}]",
                "tdpbssd tmm0, tmm4, tmm6",
                "tilezero tmm1",
                "tileloadd tmm5, [{a1} + {left}]",
                "tileloadd tmm7, [{b1} + {line}]",
                "tdpbssd tmm1, tmm5, tmm7",
                "tilezero tmm2",
                "tileloadd tmm4, [{a2} + {left}]",
                "tileloadd tmm6, [{b2} + {line}]",
                "tdpbssd tmm2, tmm4, tmm6",
                "tilezero tmm3",
                "tileloadd tmm5, [{a3} + {left}]",
                "tileloadd tmm7, [{b3} + {line}]",
                "tdpbssd tmm3, tmm5, tmm7",
                "tilestored [{sums} + {line}], tmm0",
                "tilestored [{sums} + {line} + 1024], tmm1",
                "tilestored [{sums} + {line} + 2048], tmm2",
                "tilestored [{sums} + {line} + 3072], tmm3",
                a0 = in(reg) a[0], a1 = in(reg) a[1], a2 = in(reg) a[2], a3 = in(reg) a[3],
                b0 = in(reg) b[0], b1 = in(reg) b[1], b2 = in(reg) b[2], b3 = in(reg) b[3],
                sums = in(reg) sums, left = in(reg) size_of::<[i8; 32]>(), line = in(reg) size_of::<[i8; 64]>(),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags),
            );
        }
    }

    fn busy(rounds: usize) {
        let amx = Amx::new();
        Self::set(&WHOLE);
        for _ in 0..rounds {
            // SAFETY: registers only, and all are whole.
            unsafe {
                asm!(
                    "tdpbssd tmm0, tmm6, tmm7",
                    "tdpbssd tmm1, tmm6, tmm7",
                    "tdpbssd tmm2, tmm6, tmm7",
                    "tdpbssd tmm3, tmm6, tmm7",
                    "tdpbssd tmm4, tmm6, tmm7",
                    "tdpbssd tmm5, tmm6, tmm7",
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _,
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
        drop(amx);
    }
}

impl Drop for Amx {
    fn drop(&mut self) {
        // SAFETY: the registers hold no live data.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
    }
}
