//! Run-time dispatch: a kernel body is compiled for every ISA, and the one of the chosen ISA runs.

/// Compiles one kernel body per ISA and dispatches at run time.
///
/// The body is `#[inline(always)]`; it is either plain Rust that the compiler can vectorise, or generic over
/// [`SimdF32x16`](crate::simd::SimdF32x16) (`= body::<L>`). It adds in a fixed order with fused multiply-adds, so every
/// variant gives the same bits.
macro_rules! per_isa {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($isa:ident, $($arg:ident: $ty:ty),* $(,)?) = $inner:ident::<L>;) => {
        per_isa! {
            @$(#[$doc])* $vis fn $name($isa, $($arg: $ty),*) =
                $inner::<$crate::simd::Plain>, $inner::<$crate::simd::Avx2<false>>,
                $inner::<$crate::simd::Avx2<true>>, $inner::<$crate::simd::Avx512>, $inner::<$crate::simd::Neon>;
        }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident($isa:ident, $($arg:ident: $ty:ty),* $(,)?) = $inner:ident;) => {
        per_isa! { @$(#[$doc])* $vis fn $name($isa, $($arg: $ty),*) = $inner, $inner, $inner, $inner, $inner; }
    };
    (@$(#[$doc:meta])* $vis:vis fn $name:ident($isa:ident, $($arg:ident: $ty:ty),*) =
        $plain:expr, $avx2:expr, $avx_vnni:expr, $avx512:expr, $neon:expr;) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        #[allow(clippy::undocumented_unsafe_blocks, reason = "a `Isa` is only ever chosen after `is_available` was asked")]
        $vis fn $name($isa: $crate::cpu::Isa, $($arg: $ty),*) {
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
            match $isa {
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::Isa::Avx512 | $crate::cpu::Isa::Avx512Bf16 | $crate::cpu::Isa::Amx => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::Isa::AvxVnni => unsafe { avx_vnni($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::Isa::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "aarch64")]
                $crate::cpu::Isa::Neon | $crate::cpu::Isa::I8mm => unsafe { neon($($arg),*) },
                _ => $plain($($arg),*),
            }
        }
    };
}
pub(crate) use per_isa;
