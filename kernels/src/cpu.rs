//! Which body of each kernel runs on this processor.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::tiles::Amx;

/// Instruction sets that kernels have bodies for, from the plainest to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Body {
    /// Plain Rust; runs everywhere.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// The same with AVX-VNNI.
    AvxVnni,
    /// x86-64 with AVX-512 F, BW, VL, DQ and VNNI.
    Avx512,
    /// The same with AMX for bytes.
    Amx,
    /// 64-bit Arm with NEON and its dot product.
    Neon,
    /// The same with the products of small matrices of Armv8.6.
    I8mm,
}

impl Body {
    const ALL: [Body; 7] = [Body::Scalar, Body::Avx2, Body::AvxVnni, Body::Avx512, Body::Amx, Body::Neon, Body::I8mm];

    /// True if this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Body::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Body::Avx2 => {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Body::AvxVnni => Body::Avx2.is_available() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Body::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "x86_64")]
            Body::Amx => Body::Avx512.is_available() && Amx::is_available(),
            #[cfg(target_arch = "aarch64")]
            Body::I8mm => Body::Neon.is_available() && std::arch::is_aarch64_feature_detected!("i8mm"),
            #[cfg(target_arch = "aarch64")]
            Body::Neon => std::arch::is_aarch64_feature_detected!("dotprod"),
            #[allow(unreachable_patterns, reason = "those of other processors")]
            _ => false,
        }
    }

    /// True if it multiplies whole tiles of bytes at once.
    pub fn has_tiles(self) -> bool {
        matches!(self, Body::Amx | Body::I8mm)
    }

    /// Every body that this processor can run, the plainest first.
    pub fn available() -> impl Iterator<Item = Body> {
        Body::ALL.into_iter().filter(|body| body.is_available())
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Body::Scalar => "scalar",
            Body::Avx2 => "avx2",
            Body::AvxVnni => "avx-vnni",
            Body::Avx512 => "avx512",
            Body::Amx => "amx",
            Body::Neon => "neon",
            Body::I8mm => "i8mm",
        })
    }
}

impl FromStr for Body {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Body::ALL.into_iter().find(|body| body.to_string() == name);
        let names = Body::ALL.map(|body| body.to_string()).join(", ");
        known.ok_or_else(|| format!("`{name}` is not one of {names}"))
    }
}

/// The body in use: the widest without tiles that the processor has, or the one named by `MEMLOCAL_CPU`.
///
/// Those with tiles have not been measured on a processor yet, so they are there for who asks.
///
/// # Panics
/// If `MEMLOCAL_CPU` names no body or one that this processor cannot run; the binary checks that before it starts.
pub fn body() -> Body {
    static CHOSEN: OnceLock<Body> = OnceLock::new();
    *CHOSEN.get_or_init(|| chosen().unwrap_or_else(|reason| panic!("MEMLOCAL_CPU: {reason}")))
}

/// Reads `MEMLOCAL_CPU` and checks it against the processor.
///
/// # Errors
/// A sentence that says what is wrong with its value.
pub fn chosen() -> Result<Body, String> {
    let Ok(name) = std::env::var("MEMLOCAL_CPU") else {
        let measured = |body: &Body| !body.has_tiles() && body.is_available();
        return Ok(Body::ALL.into_iter().rfind(measured).unwrap_or(Body::Scalar));
    };
    let body: Body = name.parse()?;
    if body.is_available() { Ok(body) } else { Err(format!("this processor has no {body}")) }
}

/// Compiles one body for every instruction set and picks one at run time.
///
/// The body is `#[inline(always)]`; it is either plain Rust that the compiler can vectorise, or generic over
/// [`Lanes`](crate::lanes::Lanes) (`= body::<L>`). Because it adds in a fixed order with fused multiply-adds, every
/// compilation gives the same bits.
macro_rules! per_body {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($body:ident, $($arg:ident: $ty:ty),* $(,)?) = $inner:ident::<L>;) => {
        per_body! {
            @$(#[$doc])* $vis fn $name($body, $($arg: $ty),*) =
                $inner::<$crate::lanes::Plain>, $inner::<$crate::lanes::Avx2<false>>,
                $inner::<$crate::lanes::Avx2<true>>, $inner::<$crate::lanes::Avx512>, $inner::<$crate::lanes::Neon>;
        }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident($body:ident, $($arg:ident: $ty:ty),* $(,)?) = $inner:ident;) => {
        per_body! { @$(#[$doc])* $vis fn $name($body, $($arg: $ty),*) = $inner, $inner, $inner, $inner, $inner; }
    };
    (@$(#[$doc:meta])* $vis:vis fn $name:ident($body:ident, $($arg:ident: $ty:ty),*) =
        $plain:expr, $avx2:expr, $avx_vnni:expr, $avx512:expr, $neon:expr;) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        #[allow(clippy::undocumented_unsafe_blocks, reason = "a `Body` is only ever chosen after `is_available` was asked")]
        $vis fn $name($body: $crate::cpu::Body, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,avx2,f16c")]
            fn avx512($($arg: $ty),*) { $avx512($($arg),*); }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
            fn avx_vnni($($arg: $ty),*) { $avx_vnni($($arg),*); }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2($($arg: $ty),*) { $avx2($($arg),*); }
            #[cfg(target_arch = "aarch64")]
            #[target_feature(enable = "neon,dotprod")]
            fn neon($($arg: $ty),*) { $neon($($arg),*); }
            match $body {
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::Body::Avx512 | $crate::cpu::Body::Amx => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::Body::AvxVnni => unsafe { avx_vnni($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::Body::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "aarch64")]
                $crate::cpu::Body::Neon | $crate::cpu::Body::I8mm => unsafe { neon($($arg),*) },
                _ => $plain($($arg),*),
            }
        }
    };
}
pub(crate) use per_body;
