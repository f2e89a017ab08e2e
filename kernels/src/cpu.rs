//! Instruction set selection: which variant of each kernel runs on this processor.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::bf16_unit::amx_is_exact;
#[cfg(target_arch = "x86_64")]
use crate::matmul::pairs_are_exact;

/// Instruction sets that kernels are compiled for, in ascending order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Plain Rust; available everywhere.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// AVX2 plus AVX-VNNI.
    AvxVnni,
    /// x86-64 with AVX-512 F, BW, VL, DQ and VNNI.
    Avx512,
    /// AVX-512 plus AVX512-BF16.
    Avx512Bf16,
    /// AVX-512 plus AVX512-BF16 and AMX-BF16.
    Amx,
    /// 64-bit Arm with NEON and DotProd.
    Neon,
    /// NEON plus I8MM (Armv8.6 matrix products).
    I8mm,
}

/// How products with weights are rounded and added. In all, a row's result does not depend on the other rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numerics {
    /// The same bits on every processor.
    Portable,
    /// In products with bf16 weights both operands are bf16, added in the order of AVX512-BF16: the same bits on every
    /// processor that has it and no AMX.
    Bf16Pairs,
    /// In products with bf16 weights both operands are bf16, added in the order of AMX: the same bits on every processor
    /// that has it. So is attention over pages in bf16, and that of encoders with bf16 weights, if a head's dimensions are a
    /// multiple of 32.
    Bf16Tiles,
}

impl fmt::Display for Numerics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Numerics::Portable => "portable",
            Numerics::Bf16Pairs => "native (bf16 pairs)",
            Numerics::Bf16Tiles => "native (bf16 tiles)",
        })
    }
}

impl Isa {
    const ALL: [Isa; 8] =
        [Isa::Scalar, Isa::Avx2, Isa::AvxVnni, Isa::Avx512, Isa::Avx512Bf16, Isa::Amx, Isa::Neon, Isa::I8mm];

    /// True if this processor can run it; AVX512-BF16 and AMX have to pass a self-test too.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => Isa::Avx2.is_available() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Bf16 => Isa::Avx512.is_available() && pairs_are_exact(),
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => Isa::Avx512.is_available() && is_x86_feature_detected!("avx512bf16") && amx_is_exact(),
            #[cfg(target_arch = "aarch64")]
            Isa::I8mm => Isa::Neon.is_available() && std::arch::is_aarch64_feature_detected!("i8mm"),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => std::arch::is_aarch64_feature_detected!("dotprod"),
            #[allow(unreachable_patterns, reason = "those of other processors")]
            _ => false,
        }
    }

    /// True if products of bytes run on a matrix unit (I8MM). On AMX they are slower than with VNNI.
    pub fn has_matrix_unit(self) -> bool {
        self == Isa::I8mm
    }

    /// True if products of bf16 weights run on instructions for bf16 (AVX512-BF16, AMX).
    pub fn multiplies_bf16(self) -> bool {
        self.numerics() != Numerics::Portable
    }

    /// How products are rounded.
    pub fn numerics(self) -> Numerics {
        match self {
            Isa::Avx512Bf16 => Numerics::Bf16Pairs,
            Isa::Amx => Numerics::Bf16Tiles,
            _ => Numerics::Portable,
        }
    }

    /// Every ISA that this processor can run, in ascending order of preference.
    pub fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available())
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avx-vnni",
            Isa::Avx512 => "avx512",
            Isa::Avx512Bf16 => "avx512-bf16",
            Isa::Amx => "amx",
            Isa::Neon => "neon",
            Isa::I8mm => "i8mm",
        })
    }
}

impl FromStr for Isa {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Isa::ALL.into_iter().find(|isa| isa.to_string() == name);
        let names = Isa::ALL.map(|isa| isa.to_string()).join(", ");
        known.ok_or_else(|| format!("`{name}` is not one of {names}"))
    }
}

/// The ISA in use: the most preferred one that was measured on hardware, or the one named by `MEMLOCAL_CPU`.
///
/// # Panics
/// If `MEMLOCAL_CPU` names an unknown or unavailable ISA; the binary checks that before it starts.
pub fn active_isa() -> Isa {
    static CHOSEN: OnceLock<Isa> = OnceLock::new();
    *CHOSEN.get_or_init(|| select_isa().unwrap_or_else(|reason| panic!("MEMLOCAL_CPU: {reason}")))
}

/// Reads `MEMLOCAL_CPU` and checks it against the processor.
///
/// # Errors
/// A sentence that explains what is wrong with the value.
pub fn select_isa() -> Result<Isa, String> {
    let Ok(name) = std::env::var("MEMLOCAL_CPU") else {
        let measured = |isa: &Isa| !isa.has_matrix_unit() && isa.is_available();
        return Ok(Isa::ALL.into_iter().rfind(measured).unwrap_or(Isa::Scalar));
    };
    let isa: Isa = name.parse()?;
    if isa.is_available() { Ok(isa) } else { Err(format!("this processor has no {isa}")) }
}
