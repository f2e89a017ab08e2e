//! The types of tensors in GGUF files: ggml's number and name of each, and the format in which kernels multiply it.

use kernels::matmul::Format;

/// Number, name and, where there are kernels, the format.
const TYPES: [(u32, &str, Option<Format>); 32] = [
    (0, "F32", Some(Format::F32)),
    (1, "F16", Some(Format::F16)),
    (2, "Q4_0", Some(Format::Q4_0)),
    (3, "Q4_1", Some(Format::Q4_1)),
    (6, "Q5_0", Some(Format::Q5_0)),
    (7, "Q5_1", Some(Format::Q5_1)),
    (8, "Q8_0", Some(Format::Q8_0)),
    (9, "Q8_1", None),
    (10, "Q2_K", Some(Format::Q2K)),
    (11, "Q3_K", Some(Format::Q3K)),
    (12, "Q4_K", Some(Format::Q4K)),
    (13, "Q5_K", Some(Format::Q5K)),
    (14, "Q6_K", Some(Format::Q6K)),
    (15, "Q8_K", None),
    (16, "IQ2_XXS", None),
    (17, "IQ2_XS", None),
    (18, "IQ3_XXS", None),
    (19, "IQ1_S", None),
    (20, "IQ4_NL", Some(Format::Iq4Nl)),
    (21, "IQ3_S", None),
    (22, "IQ2_S", None),
    (23, "IQ4_XS", Some(Format::Iq4Xs)),
    (24, "I8", None),
    (25, "I16", None),
    (26, "I32", None),
    (27, "I64", None),
    (28, "F64", None),
    (29, "IQ1_M", None),
    (30, "BF16", Some(Format::Bf16)),
    (34, "TQ1_0", None),
    (35, "TQ2_0", None),
    (39, "MXFP4", None),
];

/// The format of a type, or the name of a type without kernel.
pub(super) fn format_of(number: u32) -> Result<Format, String> {
    match TYPES.iter().find(|(known, ..)| *known == number) {
        Some((_, _, Some(format))) => Ok(*format),
        Some((_, name, None)) => Err((*name).to_owned()),
        None => Err(format!("of number {number}")),
    }
}

/// ggml's name of a format.
pub(crate) fn format_name(format: Format) -> &'static str {
    let known = TYPES.iter().find(|(.., known)| *known == Some(format));
    known.map(|(_, name, _)| *name).expect("the table has every format")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_and_a_number() {
        for format in Format::ALL {
            let (number, name, _) =
                TYPES.iter().find(|(.., known)| *known == Some(format)).expect("it is in the table");
            assert_eq!((format_of(*number), format_name(format)), (Ok(format), *name));
        }
        assert_eq!((format_name(Format::Bf16), format_name(Format::Q4K)), ("BF16", "Q4_K"));
        assert_eq!(format_of(19), Err("IQ1_S".to_owned()));
        assert_eq!(format_of(99), Err("of number 99".to_owned()));
    }
}
