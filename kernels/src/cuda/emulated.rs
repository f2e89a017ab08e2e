//! The `.cu` sources, run on the host as C++, give what the references give: arithmetic, indices, plans and arguments.
//!
//! `emulate.cpp` is compiled once for all tests. Outputs are filled with NaN before a kernel runs, and so is every slot of
//! a page that no token has written.

use std::ffi::{CString, c_char, c_int, c_void};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use candle_core::DType;
use half::{bf16, f16};

use super::blocks::Layout;
use super::launch::{self, After, Angles, Argument, Blocks, Launch, Parts, Typed};
use super::plan::{Cut, Plan, strips};
use crate::attention::{Heads, KEYS, PagedSequence, Pages, PagesMut, Precision, paged, ragged};
use crate::cpu::Isa;
use crate::embedding::{self, Pool};
use crate::matmul::Format;
use crate::rope::{Placement, RopeTable, rotate_queries, store_keys_values};
use crate::sample::{self, Adjustment, Draw, Drawn, Penalties};
use crate::{activation, norm};

#[link(name = "dl")]
unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

type Emulate = unsafe extern "C" fn(*const c_char, u32, u32, u32, *const *const c_void) -> c_int;

/// The emulation, if this machine has a C++ compiler. Its fibers and its shared memory are one at a time.
fn emulation() -> Option<&'static Mutex<Emulate>> {
    static LIBRARY: OnceLock<Option<Mutex<Emulate>>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cuda/emulate.cpp");
            let library = std::env::temp_dir().join(format!("memlocal-emulated-{}.so", std::process::id()));
            let flags = ["-std=c++17", "-O2", "-w", "-shared", "-fPIC", "-o"];
            let compiled = Command::new("c++").args(flags).arg(&library).arg(source).status();
            if compiled.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
                println!("the CUDA kernels are not tested: this machine has no c++");
                return None;
            }
            assert!(compiled.is_ok_and(|status| status.success()), "emulate.cpp does not compile");
            let path = CString::new(library.to_string_lossy().into_owned()).unwrap();
            // SAFETY: the library is ours and stays loaded; `emulate` has this signature.
            let emulate = unsafe {
                let handle = dlopen(path.as_ptr(), 2);
                assert!(!handle.is_null(), "the emulation cannot be loaded");
                std::mem::transmute::<*mut c_void, Emulate>(dlsym(handle, c"emulate".as_ptr()))
            };
            let _ = std::fs::remove_file(&library);
            Some(Mutex::new(emulate))
        })
        .as_ref()
}

/// Runs a launch; false if there is no emulation.
fn run(launch: &Launch) -> bool {
    let Some(emulate) = emulation() else { return false };
    let emulate = emulate.lock().unwrap();
    let arguments: Vec<*const c_void> = launch
        .arguments
        .iter()
        .map(|argument| match argument {
            Argument::Pointer(pointer) => std::ptr::from_ref(pointer).cast(),
            Argument::U32(n) => std::ptr::from_ref(n).cast(),
            Argument::F32(x) => std::ptr::from_ref(x).cast(),
        })
        .collect();
    let name = CString::new(launch.kernel.as_str()).unwrap();
    // SAFETY: the launches of these tests name memory that they own and that is large enough.
    let status = unsafe { emulate(name.as_ptr(), launch.grid.0, launch.grid.1, launch.block, arguments.as_ptr()) };
    assert_eq!(status, 0, "there is a kernel {}", launch.kernel);
    true
}

fn at<T>(values: &[T]) -> u64 {
    values.as_ptr() as u64
}

fn floats(values: &[f32]) -> Typed {
    Typed { at: at(values), dtype: DType::F32 }
}

fn noise(seed: usize) -> f32 {
    let x = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn noises(seed: usize, count: usize) -> Vec<f32> {
    (0..count).map(|i| 3.0 * noise(seed * 1_000_003 + i)).collect()
}

/// An output that nothing has been written to: NaN in every type.
fn poisoned<T: Clone>(value: T, count: usize) -> Vec<T> {
    vec![value; count]
}

fn nans(count: usize) -> Vec<f32> {
    poisoned(f32::NAN, count)
}

fn check(name: &str, got: &[f32], want: &[f32], tolerance: f32) {
    check_rows(name, got, want, want.len(), tolerance);
}

/// No row may differ by more than `tolerance` of its own largest value.
fn check_rows(name: &str, got: &[f32], want: &[f32], width: usize, tolerance: f32) {
    assert_eq!(got.len(), want.len(), "{name}");
    for (row, (got, want)) in got.chunks(width).zip(want.chunks(width)).enumerate() {
        let largest = want.iter().fold(1e-3f32, |a, b| a.max(b.abs()));
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            // A NaN is not within any tolerance.
            let good = (got - want).abs() <= tolerance * largest;
            assert!(good, "{name}, row {row} at {i}: {got} for {want}, where the largest is {largest}");
        }
    }
}

fn check_bf16(name: &str, got: &[bf16], want: &[f32]) {
    let got: Vec<f32> = got.iter().map(|x| x.to_f32()).collect();
    check(name, &got, want, 1.0 / 256.0);
}

#[test]
fn norms_are_those_of_the_reference() {
    for (rows, width) in [(3, 64), (2, 576), (1, 1000), (2, 333), (1, 9000)] {
        let (x, delta) = (noises(1, rows * width), noises(2, rows * width));
        let (weight, bias) = (noises(3, width), noises(4, width));
        let both: Vec<f32> = x.iter().zip(&delta).map(|(x, d)| x + d).collect();
        let want = norm::rms_norm(Isa::Scalar, &x, &weight, 1e-5);
        let out = nans(rows * width);
        if !run(&launch::rms_norm(at(&x), at(&weight), 1e-5, floats(&out), rows, width)) {
            return;
        }
        check("rms_norm", &out, &want, 1e-6);
        let halves = poisoned(bf16::NAN, rows * width);
        let to = Typed { at: at(&halves), dtype: DType::BF16 };
        run(&launch::rms_norm(at(&x), at(&weight), 1e-5, to, rows, width));
        check_bf16("rms_norm in bf16", &halves, &want);
        let want = norm::rms_norm(Isa::Scalar, &both, &weight, 1e-5);
        let (sum, out) = (nans(rows * width), nans(rows * width));
        let (a, b, w) = (at(&x), at(&delta), at(&weight));
        run(&launch::add_rms_norm(a, b, w, 1e-5, at(&sum), floats(&out), rows, width));
        check("the sum", &sum, &both, 0.0);
        check("add_rms_norm", &out, &want, 1e-6);
        for (delta, x_or_both) in [(0, &x), (b, &both)] {
            let want = norm::layer_norm(Isa::Scalar, x_or_both, &weight, &bias, 1e-12);
            let out = nans(rows * width);
            run(&launch::layer_norm(a, delta, w, at(&bias), 1e-12, at(&out), rows, width));
            check("layer_norm", &out, &want, 2e-6);
        }
    }
    let heads = Heads { queries: 3, keys: 1, dim: 64 };
    let (rows, width) = (5, 5 * 64);
    let (qkv, q, k) = (noises(1, rows * width), noises(2, 64), noises(3, 64));
    let want = norm::norm_heads(Isa::Scalar, heads, &q, &k, 1e-6, &qkv);
    let out = nans(rows * width);
    run(&launch::norm_heads(at(&qkv), at(&q), at(&k), 1e-6, at(&out), heads, rows));
    check("norm_heads", &out, &want, 1e-6);
}

#[test]
fn activations_are_those_of_the_reference() {
    let (rows, width) = (3, 300);
    let x = noises(1, rows * 2 * width);
    let want = activation::swiglu(Isa::Scalar, &x, width);
    let (out, halves) = (nans(rows * width), poisoned(bf16::NAN, rows * width));
    if !run(&launch::swiglu(at(&x), floats(&out), rows, width)) {
        return;
    }
    check("swiglu", &out, &want, 1e-6);
    run(&launch::swiglu(at(&x), Typed { at: at(&halves), dtype: DType::BF16 }, rows, width));
    check_bf16("swiglu in bf16", &halves, &want);
    let want = activation::geglu(Isa::Scalar, &x, width);
    run(&launch::geglu(at(&x), floats(&out), rows, width));
    check("geglu", &out, &want, 1e-6);
    let want = activation::gelu(Isa::Scalar, &x[..500]);
    let out = nans(500);
    run(&launch::gelu(at(&x), floats(&out), 500));
    check("gelu", &out, &want, 1e-6);
    let bias = noises(2, 100);
    let want: Vec<f32> = (0..500).map(|i| x[i] + bias[i % 100]).collect();
    let out = nans(500);
    run(&launch::add(at(&x), at(&bias), at(&out), 500, 100));
    check("add", &out, &want, 0.0);
    let halves = poisoned(bf16::NAN, 500);
    run(&launch::to_bf16(at(&x), at(&halves), 500));
    let want: Vec<bf16> = x[..500].iter().map(|x| bf16::from_f32(*x)).collect();
    assert_eq!(halves, want);
}

#[test]
fn rows_are_looked_up_and_multiplied() {
    let (rows, width) = (40, 270);
    let table = noises(1, rows * width);
    let halves: Vec<bf16> = table.iter().map(|x| bf16::from_f32(*x)).collect();
    let ids = [7u32, 0, 39, 7];
    let out = nans(4 * width);
    if !run(&launch::lookup(floats(&table), at(&ids), at(&out), 4, width)) {
        return;
    }
    let want: Vec<f32> = ids.iter().flat_map(|id| table[*id as usize * width..][..width].to_vec()).collect();
    check("lookup", &out, &want, 0.0);
    run(&launch::lookup(Typed { at: at(&halves), dtype: DType::BF16 }, at(&ids), at(&out), 4, width));
    let want: Vec<f32> = want.iter().map(|x| bf16::from_f32(*x).to_f32()).collect();
    check("lookup in bf16", &out, &want, 0.0);
    for (m, n, k) in [(1, 16, 64), (2, 7, 1024), (3, 9, 2056), (4, 1, 8)] {
        let of = |seed: usize, count: usize| noises(seed, count).into_iter().map(bf16::from_f32).collect::<Vec<_>>();
        let (x, w) = (of(2, m * k), of(3, n * k));
        let dot = |row: usize, column: usize| -> f32 {
            let terms = x[row * k..][..k].iter().zip(&w[column * k..][..k]);
            terms.map(|(x, w)| f64::from(x.to_f32()) * f64::from(w.to_f32())).sum::<f64>() as f32
        };
        let want: Vec<f32> = (0..m * n).map(|i| dot(i / n, i % n)).collect();
        let out = nans(m * n);
        run(&launch::few_rows(at(&x), at(&w), at(&out), m, n, k));
        check("few_rows", &out, &want, 1e-5);
    }
}

/// A batch over pages that every sequence has written through the reference.
struct Paged {
    heads: Heads,
    page_lists: Vec<Vec<u32>>,
    /// Tokens before and tokens of the batch, of each sequence.
    spans: Vec<(usize, usize)>,
    q: Vec<f32>,
    halves: Vec<f16>,
    bytes: Vec<u8>,
}

impl Paged {
    /// Sequences with these numbers of tokens before and in the batch; the first `shared` pages are the same in all of them.
    fn new(heads: Heads, spans: &[(usize, usize)], shared: usize) -> Paged {
        let table = RopeTable::new(&vec![0.0; heads.dim / 2], 1, 1.0);
        let width = heads.query_width() + 2 * heads.key_width();
        let mut next = 0;
        let mut fresh = || {
            next += 1;
            // Pages lie in no order.
            (next * 37) % 101
        };
        let prefix: Vec<u32> = (0..shared).map(|_| fresh()).collect();
        let mut halves = poisoned(f16::NAN, 101 * heads.page().len());
        let mut bytes = poisoned(0xff, 101 * heads.page().quantised_len());
        let mut page_lists = Vec::new();
        for (index, (past, tokens)) in spans.iter().enumerate() {
            let count = (past + tokens).div_ceil(KEYS);
            let list: Vec<u32> = prefix.iter().copied().chain((shared..count).map(|_| fresh())).collect();
            let total = past + tokens;
            let mut qkv = noises(7 + index, total * width);
            let common = (shared * KEYS * width).min(qkv.len());
            qkv[..common].copy_from_slice(&noises(7, common));
            let slots: Vec<u32> = (0..total as u32).map(|t| list[t as usize / KEYS] * 32 + t % 32).collect();
            let at = Placement { positions: &vec![0; total], slots: &slots };
            store_keys_values(heads, &qkv, &table, at, PagesMut::F16(&mut halves));
            let at = Placement { positions: &vec![0; total], slots: &slots };
            store_keys_values(heads, &qkv, &table, at, PagesMut::Q8(&mut bytes));
            page_lists.push(list);
        }
        let rows: usize = spans.iter().map(|(_, tokens)| tokens).sum();
        Paged { heads, page_lists, spans: spans.to_vec(), q: noises(5, rows * heads.query_width()), halves, bytes }
    }

    fn sequences(&self) -> Vec<PagedSequence<'_>> {
        let mut start = 0;
        let parts = self.spans.iter().zip(&self.page_lists);
        parts
            .map(|((past, tokens), pages)| {
                start += tokens;
                PagedSequence { rows: start - tokens..start, past: *past, pages }
            })
            .collect()
    }

    /// Runs the plan's launches in both types of pages and of outputs, against the body for the processor.
    fn check(&self, window: Option<usize>, processors: usize) {
        let (heads, sequences) = (self.heads, self.sequences());
        let rows = self.q.len() / heads.query_width();
        let reference = |pages| {
            let mut want = nans(self.q.len());
            paged(Isa::Scalar, heads, window, &self.q, pages, &sequences, &mut want);
            want
        };
        let (of_halves, of_bytes) = (reference(Pages::F16(&self.halves)), reference(Pages::Q8(&self.bytes)));
        let cut = Cut { group: heads.group(), keys: heads.keys, window, processors };
        let plan = Plan::new(&vec![0; rows], &vec![0; rows], &sequences, cut);
        let brain: Vec<bf16> = self.halves.iter().map(|x| bf16::from_f32(x.to_f32())).collect();
        let pages = [
            (Typed { at: at(&self.halves), dtype: DType::F16 }, &of_halves, 1.0 / 256.0),
            (Typed { at: at(&brain), dtype: DType::BF16 }, &of_halves, 1.0 / 64.0),
            (Typed { at: at(&self.bytes), dtype: DType::U8 }, &of_bytes, 1.0 / 256.0),
        ];
        let width = heads.query_width();
        for (pages, want, tolerance) in pages {
            let (sums, marks) = (nans(plan.parts * heads.query_width()), nans(plan.parts * heads.queries * 2));
            let parts = Parts { sums: at(&sums), marks: at(&marks) };
            let (out, halves) = (nans(self.q.len()), poisoned(bf16::NAN, self.q.len()));
            for out in [floats(&out), Typed { at: at(&halves), dtype: DType::BF16 }] {
                for launch in launch::paged(at(&self.q), pages, &plan, at(&plan.words), heads, out, parts) {
                    if !run(&launch) {
                        return;
                    }
                }
            }
            let name = format!("{heads:?} {:?} window {window:?} {:?}", self.spans, pages.dtype);
            check_rows(&name, &out, want, width, tolerance);
            let halves: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
            check_rows(&name, &halves, want, width, tolerance + 1.0 / 256.0);
        }
    }
}

#[test]
fn paged_attention_is_that_of_the_reference_however_it_is_cut() {
    let small = Heads { queries: 6, keys: 2, dim: 64 };
    let large = Heads { queries: 7, keys: 1, dim: 128 };
    // Prompts, answers and both; one task a row, and cut by keys for a GPU that wants many.
    for processors in [1, 40] {
        Paged::new(small, &[(0, 40), (70, 1)], 0).check(None, processors);
        Paged::new(large, &[(31, 12), (600, 2), (0, 1)], 0).check(None, processors);
        Paged::new(Heads { queries: 2, keys: 2, dim: 64 }, &[(500, 70)], 0).check(None, processors);
    }
    // Siblings after a prefix: some decode, one has a prompt left.
    Paged::new(small, &[(200, 1), (161, 1), (170, 30), (192, 1)], 5).check(None, 1);
    Paged::new(large, &[(300, 1), (290, 3)], 8).check(None, 40);
    for window in [1, 31, 33, 100] {
        Paged::new(small, &[(50, 40), (270, 1)], 0).check(Some(window), 40);
    }
}

#[test]
fn keys_and_values_are_turned_and_stored_as_by_the_reference() {
    for heads in [Heads { queries: 6, keys: 2, dim: 64 }, Heads { queries: 2, keys: 1, dim: 128 }] {
        let table = RopeTable::new(&(0..heads.dim / 2).map(|i| 0.3f32.powi(i as i32)).collect::<Vec<_>>(), 100, 1.2);
        let (rows, width) = (5, heads.query_width() + 2 * heads.key_width());
        let qkv = noises(1, rows * width);
        let (positions, slots) = ([0u32, 3, 99, 40, 41], [64u32, 5, 31, 32, 33]);
        let mut want = nans(rows * heads.query_width());
        rotate_queries(heads, &qkv, &table, &positions, &mut want);
        let mut pages = vec![f16::from_f32(7.0); 3 * heads.page().len()];
        let mut floats_in_pages = vec![7f32; pages.len()];
        let place = Placement { positions: &positions, slots: &slots };
        store_keys_values(heads, &qkv, &table, place, PagesMut::F16(&mut pages));
        store_keys_values(heads, &qkv, &table, place, PagesMut::F32(&mut floats_in_pages));
        let cut = Cut { group: 1, keys: 1, window: None, processors: 1 };
        let plan = Plan::new(&positions, &slots, &[], cut);
        let (cos, sin) = table.angles();
        let angles = Angles { cos: at(&cos), sin: at(&sin) };
        let halves = vec![f16::from_f32(7.0); pages.len()];
        let brain = vec![bf16::from_f32(7.0); pages.len()];
        let single = vec![7f32; pages.len()];
        let mut bytes_want = vec![7u8; 3 * heads.page().quantised_len()];
        store_keys_values(heads, &qkv, &table, place, PagesMut::Q8(&mut bytes_want));
        let bytes = vec![7u8; bytes_want.len()];
        for (to, dtype) in
            [(at(&halves), DType::F16), (at(&brain), DType::BF16), (at(&single), DType::F32), (at(&bytes), DType::U8)]
        {
            let q = nans(want.len());
            let to = Typed { at: to, dtype };
            if !run(&launch::rotate_and_store(at(&qkv), angles, &plan, at(&plan.words), at(&q), to, heads)) {
                return;
            }
            check("turned queries", &q, &want, 1e-6);
        }
        check("stored floats", &single, &floats_in_pages, 1e-6);
        let widened = |x: &[f16]| x.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
        // One unit in the last place where the rotation differs in its last bit.
        check("stored halves", &widened(&halves), &widened(&pages), 1.0 / 2048.0);
        check_bf16("stored in bf16", &brain, &floats_in_pages);
        let differ = bytes.iter().zip(&bytes_want).filter(|(got, want)| got.abs_diff(**want) > 1).count();
        assert_eq!(differ, 0, "a byte may differ by one where the rotation differs in its last bit");
    }
}

#[test]
fn a_block_with_one_nan_is_stored_as_nan() {
    let heads = Heads { queries: 1, keys: 1, dim: 64 };
    let (width, dim) = (heads.query_width() + 2 * heads.key_width(), heads.dim);
    let table = RopeTable::new(&[1.0; 32], 100, 1.0);
    let (positions, slots) = ([0u32], [0u32]);
    let plan = Plan::new(&positions, &slots, &[], Cut { group: 1, keys: 1, window: None, processors: 1 });
    let (cos, sin) = table.angles();
    for lane in 0..32 {
        let mut qkv = noises(1, width);
        qkv[2 * dim + lane] = f32::NAN;
        let (bytes, q) = (vec![7u8; heads.page().quantised_len()], nans(dim));
        let (angles, to) = (Angles { cos: at(&cos), sin: at(&sin) }, Typed { at: at(&bytes), dtype: DType::U8 });
        if !run(&launch::rotate_and_store(at(&qkv), angles, &plan, at(&plan.words), at(&q), to, heads)) {
            return;
        }
        // The values are in the second half; behind their bytes each token has a scale for both of its blocks.
        let scales = &bytes[bytes.len() / 2 + dim * KEYS..];
        let scale = |block: usize| f16::from_le_bytes([scales[2 * block], scales[2 * block + 1]]);
        assert!(scale(0).is_nan() && scale(1).is_finite(), "lane {lane}");
    }
}

#[test]
fn ragged_attention_is_that_of_the_reference() {
    for (dim, sequences) in [(32, vec![0..5, 5..75, 75..76]), (64, vec![0..33, 33..34]), (128, vec![0..40, 40..60])] {
        let heads = Heads { queries: 3, keys: 3, dim };
        let rows = sequences.last().unwrap().end;
        let qkv = noises(dim, rows * 3 * heads.query_width());
        let mut want = nans(rows * heads.query_width());
        ragged(Isa::Scalar, heads, Precision::Float, &qkv, &sequences, &mut want);
        let strips = strips(&sequences);
        let (out, halves) = (nans(want.len()), poisoned(bf16::NAN, want.len()));
        for out in [floats(&out), Typed { at: at(&halves), dtype: DType::BF16 }] {
            if !run(&launch::ragged(at(&qkv), at(&strips), strips.len() / 4, heads, out)) {
                return;
            }
        }
        let width = heads.query_width();
        check_rows(&format!("ragged {dim}"), &out, &want, width, 1.0 / 256.0);
        let halves: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
        check_rows(&format!("ragged {dim} in bf16"), &halves, &want, width, 1.0 / 128.0);
    }
}

#[test]
fn texts_are_represented_as_by_the_reference() {
    let (width, texts) = (70, [0..3, 3..4, 4..50]);
    // Whole numbers, so that equal weights come up.
    let (hidden, weights) = (noises(1, 50 * width), noises(2, 50).iter().map(|x| x.round()).collect::<Vec<_>>());
    let ids: Vec<u32> = (0..50).map(|i| i * i % 11).collect();
    let words: Vec<u32> = texts.iter().flat_map(|text| [text.start as u32, text.len() as u32]).collect();
    for (pool, mean) in [(Pool::First, false), (Pool::Mean, true)] {
        let out = nans(3 * width);
        if !run(&launch::pool_unit(at(&hidden), at(&words), 3, mean, at(&out), width)) {
            return;
        }
        check("pool_unit", &out, &embedding::pool_unit(&hidden, width, &texts, pool), 1e-6);
    }
    let out = nans(50 * width);
    run(&launch::unit_rows(at(&hidden), at(&out), 50, width));
    check("unit_rows", &out, &embedding::unit_rows(&hidden, width), 1e-6);
    let out = nans(50);
    run(&launch::sparse_max(at(&weights), at(&ids), at(&words), 3, 46, at(&out)));
    check("sparse_max", &out, &embedding::sparse_max(&weights, &ids, &texts), 0.0);
}

#[test]
fn tokens_are_drawn_as_by_the_reference() {
    let (vocabulary, rows) = (2600, 6);
    let mut logits = noises(21, rows * vocabulary);
    logits.iter_mut().for_each(|logit| *logit *= 3.0);
    logits[2 * vocabulary..3 * vocabulary].iter_mut().for_each(|logit| *logit = logit.round());
    logits[4 * vocabulary + 2000] = f32::NAN;
    let mask: Vec<u32> = (0..vocabulary.div_ceil(32) as u32).map(|word| word.wrapping_mul(0x9e37_79b9)).collect();
    let none = vec![0u32; vocabulary.div_ceil(32)];
    let adjustment = |token, count, seen, bias| Adjustment { token, count, seen, bias };
    let adjustments = [adjustment(7, 2, true, 0.0), adjustment(2599, 0, false, 12.0), adjustment(64, 0, true, -1.0)];
    let penalties = Penalties { frequency: 0.5, presence: 0.25, repetition: 1.3 };
    let mut kinds = 0;
    for seed in 0..12 {
        let sampled = |position, temperature, top_k, top_p, min_p| Draw {
            temperature,
            top_k,
            top_p,
            min_p,
            seed: seed << 33 | 5,
            position: position + 17 * seed,
            ..Draw::GREEDY
        };
        let requests = [
            (0, Draw { adjustments: &adjustments, penalties, ..sampled(1, 0.8, 0, 0.95, 0.0) }),
            (1, Draw { mask: Some(&mask), ..sampled(2, 1.5, 0, 1.0, 0.02) }),
            (2, Draw { mask: Some(&mask), ..sampled(3, 1.0, 9, 0.6, 0.0) }),
            (3, if seed == 0 { Draw { mask: Some(&none), ..sampled(4, 1.0, 0, 1.0, 0.0) } } else { Draw::GREEDY }),
            (4, sampled(5, 0.3, 0, 1.0, 0.0)),
            (5, sampled(6, 1e-30, 40, 0.0, 0.0)),
        ];
        let words = launch::draw_words(&requests, vocabulary);
        let (drawn, mut on_device) = (vec![0u32; rows], logits.clone());
        let draws = launch::Draws {
            masks: at(&words.masks),
            requests: at(&words.requests),
            adjustments: at(&words.adjustments),
        };
        if !run(&launch::draw(at(&on_device), draws, rows, vocabulary, at(&drawn))) {
            return;
        }
        let mut want = logits.clone();
        let want = sample::draw_rows(Isa::Scalar, &mut want, vocabulary, &requests);
        let got: Vec<Drawn> = drawn.iter().map(|word| launch::drawn(*word)).collect();
        assert_eq!(got, want, "seed {seed}");
        kinds += got.iter().filter(|drawn| **drawn == Drawn::NotFinite || **drawn == Drawn::Nothing).count();
        on_device.clear();
    }
    assert_eq!(kinds, 13, "a row that is no numbers each time, one without a token once");
}

/// Random blocks whose scales are small numbers.
fn blocks(format: Format, count: usize) -> Vec<u8> {
    let bytes = format.block_bytes();
    let mut blocks: Vec<u8> = (0..count * bytes).map(|i| (noise(i + 7) * 127.0) as i8 as u8).collect();
    let halves: &[usize] = match format {
        Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
        Format::Q2K => &[80, 82],
        Format::Q3K => &[108],
        Format::Q6K => &[208],
        _ => &[0],
    };
    for (i, block) in blocks.chunks_exact_mut(bytes).enumerate() {
        for at in halves {
            block[*at..at + 2].copy_from_slice(&f16::from_f32(0.02 * noise(i * 5 + at)).to_le_bytes());
        }
    }
    blocks
}

/// A matrix of random blocks.
struct Quantised {
    weights: Blocks,
    values: Vec<f32>,
    /// What `weights` point to.
    _words: Vec<u32>,
}

impl Quantised {
    fn new(format: Format, rows: usize, cols: usize) -> Quantised {
        let count = rows * cols / format.block_len();
        let (stored, layout) = (blocks(format, count), Layout::of(format).unwrap());
        let words = layout.words(format, (rows, cols), &stored, |row| row).unwrap();
        let heads = at(&words) + layout.body_bytes(count) as u64;
        let weights = Blocks { format: layout.name, bodies: at(&words), heads, rows, cols };
        let mut values = vec![0f32; rows * cols];
        let of_rows = stored.chunks_exact(format.row_bytes(cols).unwrap()).zip(values.chunks_exact_mut(cols));
        of_rows.for_each(|(stored, values)| format.dequantise(stored, values));
        Quantised { weights, values, _words: words }
    }

    /// By one row, rounded to bf16 as the kernels take it.
    fn product(&self, x: &[f32]) -> Vec<f32> {
        let terms = |row: &[f32]| -> f64 {
            row.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(bf16::from_f32(*x).to_f32())).sum()
        };
        self.values.chunks_exact(self.weights.cols).map(|row| terms(row) as f32).collect()
    }
}

#[test]
fn a_layer_in_q4_k_m_decodes_in_ten_launches_at_most() {
    // The launches of a layer of `models::Decoder` for one token; in some layers of Q4_K_M `v` and `down` are Q6_K.
    let (heads, hidden, ffn, epsilon) = (Heads { queries: 4, keys: 2, dim: 64 }, 256, 512, 1e-5);
    let (queries, above) = (heads.query_width(), heads.query_width() + heads.key_width());
    let width = above + heads.key_width();
    let [query_key, value] =
        [(Format::Q4K, above), (Format::Q6K, width - above)].map(|(format, rows)| Quantised::new(format, rows, hidden));
    let [output, gate_up, down] =
        [(Format::Q4K, hidden, queries), (Format::Q4K, 2 * ffn, hidden), (Format::Q6K, hidden, ffn)]
            .map(|(format, rows, cols)| Quantised::new(format, rows, cols));
    // Small enough that neither the bias nor the residual is lost beside the products.
    let norm_of = |seed, scale: f32| noises(seed, hidden).iter().map(|x| scale * x).collect::<Vec<f32>>();
    let (x, bias, first_norm, second_norm) = (noises(1, hidden), noises(2, width), norm_of(3, 0.001), norm_of(4, 0.03));
    let past = 600;
    let before = Paged::new(heads, &[(past, 1)], 0);
    let sequences = before.sequences();
    let (positions, slots) = ([past as u32], [before.page_lists[0][past / KEYS] * 32 + past as u32 % 32]);
    let table = RopeTable::new(&(0..heads.dim / 2).map(|i| 0.3f32.powi(i as i32)).collect::<Vec<_>>(), past + 1, 1.0);

    let normed = norm::rms_norm(Isa::Scalar, &x, &first_norm, epsilon);
    let sums = [query_key.product(&normed), value.product(&normed)].concat();
    let qkv: Vec<f32> = sums.iter().zip(&bias).map(|(sum, bias)| sum + bias).collect();
    let (mut pages, mut q, mut attended) = (before.halves.clone(), nans(queries), nans(queries));
    let place = Placement { positions: &positions, slots: &slots };
    store_keys_values(heads, &qkv, &table, place, PagesMut::F16(&mut pages));
    rotate_queries(heads, &qkv, &table, &positions, &mut q);
    paged(Isa::Scalar, heads, None, &q, Pages::F16(&pages), &sequences, &mut attended);
    let both = |x: &[f32], y: Vec<f32>| x.iter().zip(y).map(|(x, y)| x + y).collect::<Vec<f32>>();
    let after = both(&x, output.product(&attended));
    let gates = gate_up.product(&norm::rms_norm(Isa::Scalar, &after, &second_norm, epsilon));
    let want = both(&after, down.product(&activation::swiglu(Isa::Scalar, &gates, ffn)));

    // Cut by keys, so that parts are merged.
    let cut = Cut { group: heads.group(), keys: heads.keys, window: None, processors: 40 };
    let plan = Plan::new(&positions, &slots, &sequences, cut);
    let (cos, sin) = table.angles();
    let angles = Angles { cos: at(&cos), sin: at(&sin) };
    let pages = Typed { at: at(&before.halves), dtype: DType::F16 };
    let [normed, attended, normed_after, gated] = [hidden, queries, hidden, ffn].map(|n| poisoned(bf16::NAN, n));
    let [qkv, q, mixed, after, out] = [width, queries, hidden, hidden, hidden].map(nans);
    let (sums, marks) = (nans(plan.parts * queries), nans(plan.parts * heads.queries * 2));
    let parts = Parts { sums: at(&sums), marks: at(&marks) };
    let to_bf16 = |values: &[bf16]| Typed { at: at(values), dtype: DType::BF16 };
    let plain = |width| After { bias: 0, residual: 0, gated: false, width };
    let product = |x: &[bf16], of: &Quantised, then, out| launch::quantised_product(at(x), 1, of.weights, then, out);
    let mut launches = vec![
        launch::rms_norm(at(&x), at(&first_norm), epsilon, to_bf16(&normed), 1, hidden),
        product(&normed, &query_key, After { bias: at(&bias), ..plain(width) }, at(&qkv)),
        product(&normed, &value, After { bias: at(&bias[above..]), ..plain(width) }, at(&qkv[above..])),
        launch::rotate_and_store(at(&qkv), angles, &plan, at(&plan.words), at(&q), pages, heads),
    ];
    launches.extend(launch::paged(at(&q), pages, &plan, at(&plan.words), heads, to_bf16(&attended), parts));
    let (a, b, w) = (at(&x), at(&mixed), at(&second_norm));
    launches.extend([
        product(&attended, &output, plain(hidden), at(&mixed)),
        launch::add_rms_norm(a, b, w, epsilon, at(&after), to_bf16(&normed_after), 1, hidden),
        product(&normed_after, &gate_up, After { gated: true, ..plain(ffn) }, at(&gated)),
        product(&gated, &down, After { residual: at(&after), ..plain(hidden) }, at(&out)),
    ]);
    assert!(launches.len() <= 10, "{} launches: {launches:#?}", launches.len());
    if launches.iter().all(run) {
        // Four products in a row, of rows that are rounded to bf16, behind attention with its tolerance of 1/256.
        check("a layer", &out, &want, 1.0 / 16.0);
    }
}

#[test]
fn products_with_quantised_weights_are_those_of_their_values() {
    let formats = [
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q2K,
        Format::Q3K,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
    ];
    for format in formats {
        // Neither is a whole number of what a block of threads takes.
        let (n, k) = (42, if format.block_len() == 256 { 1792 } else { 1088 });
        let quantised = Quantised::new(format, n, k);
        let (weights, values) = (quantised.weights, &quantised.values);
        let largest = values.iter().fold(0f32, |a, b| a.max(b.abs()));

        let expanded = poisoned(bf16::NAN, 5 * k);
        if !run(&launch::expand(weights, 3, 5, at(&expanded))) {
            return;
        }
        for (got, want) in expanded.iter().zip(&values[3 * k..]) {
            let good = (got.to_f32() - want).abs() <= want.abs() / 256.0 + 1e-6 * largest;
            assert!(good, "{format:?}: {got} for {want}");
        }
        // Products have exactly the values to which weights are expanded, but for Q4_K's and Q6_K's with few rows, which do not round them.
        let rounded = poisoned(bf16::NAN, n * k);
        run(&launch::expand(weights, 0, n, at(&rounded)));
        assert!(rounded[3 * k..8 * k] == expanded[..], "{format:?} depends on where expansion begins");
        let rounded: Vec<f32> = rounded.iter().map(|w| w.to_f32()).collect();

        let x: Vec<bf16> = noises(11, 64 * k).into_iter().map(bf16::from_f32).collect();
        let (bias, residual) = (noises(12, n), noises(13, 64 * (n + 3)));
        for m in [1, 7, 12, 25, 64] {
            let values = if matches!(format, Format::Q4K | Format::Q6K) && m <= 8 { values } else { &rounded };
            let dot = |m: usize, row: usize| {
                let pairs = x[m * k..][..k].iter().zip(&values[row * k..][..k]);
                pairs.map(|(x, w)| f64::from(x.to_f32()) * f64::from(*w)).sum::<f64>() as f32
            };
            let plain = After { bias: 0, residual: 0, gated: false, width: n };
            let want: Vec<f32> = (0..m * n).map(|i| dot(i / n, i % n)).collect();
            for tiles in if m > 8 { vec![1, 4] } else { vec![1] } {
                let out = nans(m * n);
                run(&launch::product_in_tiles(tiles, at(&x), m, weights, plain, at(&out)));
                check(&format!("{format:?} by {m} rows in {tiles} tiles"), &out, &want, 1e-5);
            }

            let wide = After { bias: at(&bias), residual: at(&residual), gated: false, width: n + 3 };
            let out = nans(m * (n + 3));
            run(&launch::quantised_product(at(&x), m, weights, wide, at(&out)));
            for (row, out) in out.chunks(n + 3).enumerate() {
                let want = (0..n).map(|i| dot(row, i) + bias[i] + residual[row * (n + 3) + i]).collect::<Vec<f32>>();
                check(&format!("{format:?} with bias and residual"), &out[..n], &want, 1e-5);
                assert!(out[n..].iter().all(|x| x.is_nan()), "{format:?} writes beyond its columns");
            }

            let half = n / 2;
            let gated = After { bias: at(&bias), residual: 0, gated: true, width: half };
            let out = poisoned(bf16::NAN, m * half);
            run(&launch::quantised_product(at(&x), m, weights, gated, at(&out)));
            let gate_up = |m: usize, row: usize| dot(m, row) + bias[row];
            let want: Vec<f32> = (0..m * half)
                .map(|i| crate::math::silu(gate_up(i / half, i % half)) * gate_up(i / half, half + i % half))
                .collect();
            check_bf16(&format!("gated {format:?}"), &out, &want);
        }
    }
}
