//! Dequantisation of ggml's blocks against gguf-py: `tests/golden/blocks.json`, made by the script beside it.
//!
//! All weights are equal to the bit but for the sign of zero. The product of a scale and a `q` has at most 24 bits, so it
//! is exact, and where a minimum is added the sum is rounded once, fused or not.

use kernels::matmul::{Format, Matrix};
use serde_json::Value;

fn format(name: &str) -> Format {
    match name {
        "Q4_0" => Format::Q4_0,
        "Q4_1" => Format::Q4_1,
        "Q5_0" => Format::Q5_0,
        "Q5_1" => Format::Q5_1,
        "Q8_0" => Format::Q8_0,
        "Q4_K" => Format::Q4K,
        "Q5_K" => Format::Q5K,
        "Q6_K" => Format::Q6K,
        "Q2_K" => Format::Q2K,
        "Q3_K" => Format::Q3K,
        "IQ4_NL" => Format::Iq4Nl,
        "IQ4_XS" => Format::Iq4Xs,
        other => panic!("the golden has a format {other}"),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn floats(values: &Value) -> Vec<f32> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect()
}

#[test]
fn blocks_say_what_gguf_py_reads_in_them() {
    let golden: Value = serde_json::from_str(include_str!("../../tests/golden/blocks.json")).unwrap();
    let columns = golden["columns"].as_u64().unwrap() as usize;
    let cases = golden["formats"].as_array().unwrap();
    assert_eq!(cases.len(), 12, "every quantised format is in the golden");
    for case in cases {
        let format = format(case["format"].as_str().unwrap());
        let (rows, values) = (case["rows"].as_array().unwrap(), case["values"].as_array().unwrap());
        let rows: Vec<Vec<u8>> = rows.iter().map(|row| bytes(row.as_str().unwrap())).collect();
        let packed = Matrix::pack(format, rows.len(), columns, &rows.concat()).unwrap();
        for (number, (row, want)) in rows.iter().zip(values).enumerate() {
            let want = floats(want);
            assert_eq!(want.len(), columns);
            let mut found = vec![f32::NAN; columns];
            format.dequantise(row, &mut found);
            assert_eq!(found, want, "{format:?}, row {number} of the file");
            found.fill(f32::NAN);
            packed.row(number, &mut found);
            assert_eq!(found, want, "{format:?}, row {number} of the packed matrix");
        }
    }
}

#[test]
fn blocks_of_a_table_are_blocks_of_q8_0_too() {
    let golden: Value = serde_json::from_str(include_str!("../../tests/golden/blocks.json")).unwrap();
    let columns = golden["columns"].as_u64().unwrap() as usize;
    for case in golden["formats"].as_array().unwrap() {
        let format = format(case["format"].as_str().unwrap());
        for (row, want) in case["rows"].as_array().unwrap().iter().zip(case["values"].as_array().unwrap()) {
            let blocks = format.as_q8_0(&bytes(row.as_str().unwrap()));
            let Some(blocks) = blocks else {
                assert!(!matches!(format, Format::Iq4Nl | Format::Iq4Xs));
                continue;
            };
            let mut found = vec![f32::NAN; columns];
            Format::Q8_0.dequantise(&blocks, &mut found);
            // IQ4_NL's scale is an f16 as it is, and IQ4_XS's is rounded to one.
            let bound = if format == Format::Iq4Nl { 0.0 } else { 2f32.powi(-11) };
            for (found, want) in found.iter().zip(floats(want)) {
                assert!((found - want).abs() <= bound * want.abs(), "{format:?}: {found} for {want}");
            }
        }
    }
}
