//! AMX in tests on processors without it: a handler of SIGILL emulates the six instructions of [`super::Amx`], for tiles with
//! lines of 64 bytes, as Intel SDM volume 2 defines them. Any other illegal instruction ends the process.

use std::cell::RefCell;
use std::sync::Once;

use super::{Amx, Line, ROWS, Right, STEP, Sums, plain};

/// The general registers of a signal's context, by their numbers in instructions.
const REGISTERS: [libc::c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// A VEX prefix of three bytes, the opcode, ModRM, SIB and four bytes of displacement.
type Code = [u8; 10];

/// The tile registers of a thread.
struct Tiles {
    /// 0 without a configuration.
    rows: [usize; 8],
    lines: [Right; 8],
}

impl Tiles {
    const RELEASED: Tiles = Tiles { rows: [0; 8], lines: [[Line::ZERO; STEP / 2]; 8] };

    /// Runs an instruction and returns its length, unless it is none of the six or its operands are invalid.
    fn run(&mut self, code: &Code, register: impl Fn(u8) -> usize) -> Option<usize> {
        // Opcodes that begin with 0F 38. `vex` is W (0), vvvv inverted, L (0) and pp (0 without a prefix, 2 for F3, 3 for F2).
        let [0xc4, 0x82 | 0xa2 | 0xc2 | 0xe2, vex, opcode, modrm, ..] = *code else { return None };
        let (first, second) = (usize::from(modrm >> 3 & 7), usize::from(modrm & 7));
        let operand = Operand::decode(code, register)?;
        match (opcode, vex, modrm) {
            // ldtilecfg
            (0x49, 0x78, ..0xc0) if first == 0 => {
                // SAFETY: the program reads these 64 bytes.
                self.configure(&unsafe { operand.line(0).cast::<[u8; 64]>().read_unaligned() })?;
            }
            // tilerelease
            (0x49, 0x78, 0xc0) => *self = Tiles::RELEASED,
            // tilezero
            (0x49, 0x7b, 0xc0..) if second == 0 => _ = self.zeroed(first)?,
            // tileloadd
            (0x4b, 0x7b, ..0xc0) if second == 4 => {
                for (row, line) in self.zeroed(first)?.iter_mut().enumerate() {
                    // SAFETY: the program reads these lines.
                    line.0 = unsafe { operand.line(row).read_unaligned() };
                }
            }
            // tilestored
            (0x4b, 0x7a, ..0xc0) if second == 4 => {
                for (row, line) in self.lines[first][..self.rows(first)?].iter().enumerate() {
                    // SAFETY: the program writes these lines.
                    unsafe { operand.line(row).write_unaligned(line.0) };
                }
            }
            // tdpbf16ps
            (0x5c, _, 0xc0..) if vex & 0x87 == 2 => self.multiply(first, second, usize::from(!vex >> 3 & 15))?,
            _ => return None,
        }
        Some(operand.end)
    }

    /// Byte 0 is the palette; the bytes of a line of each tile begin at 16, its rows at 48.
    fn configure(&mut self, configuration: &[u8; 64]) -> Option<()> {
        let (line_bytes, rows) = (configuration[16..48].as_chunks::<2>().0, &configuration[48..]);
        let is_valid = |tile: usize| match (u16::from_le_bytes(line_bytes[tile]), rows[tile]) {
            (0, 0) => true,
            (64, 1..=16) => tile < 8,
            _ => false,
        };
        if configuration[0] != 1 || configuration[1..16] != [0; 15] || !(0..16).all(is_valid) {
            return None;
        }
        *self = Tiles { rows: std::array::from_fn(|tile| usize::from(rows[tile])), ..Tiles::RELEASED };
        Some(())
    }

    /// Rows of a tile that is configured.
    fn rows(&self, tile: usize) -> Option<usize> {
        self.rows.get(tile).copied().filter(|rows| *rows > 0)
    }

    /// Sets a tile to zero and returns its rows.
    fn zeroed(&mut self, tile: usize) -> Option<&mut [Line]> {
        let rows = self.rows(tile)?;
        self.lines[tile] = [Line::ZERO; STEP / 2];
        Some(&mut self.lines[tile][..rows])
    }

    fn multiply(&mut self, sums: usize, left: usize, right: usize) -> Option<()> {
        let rows = self.rows(sums)?;
        let fits = self.rows(left)? == rows && self.rows(right)? == STEP / 2;
        if !fits || sums == left || sums == right || left == right {
            return None;
        }
        // SAFETY: both are 1,024 bytes of numbers.
        let mut added = unsafe { std::mem::transmute::<Right, Sums>(self.lines[sums]) };
        plain::add(&self.lines[left][..rows], (&self.lines[right]).into(), &mut added);
        // SAFETY: as above.
        self.lines[sums] = unsafe { std::mem::transmute::<Sums, Right>(added) };
        Some(())
    }
}

/// A register, or lines in memory, the first at `address`.
struct Operand {
    address: usize,
    /// Bytes from one line to the next.
    stride: usize,
    /// Where the instruction ends.
    end: usize,
}

impl Operand {
    /// Decodes ModRM and what follows it; addresses without a base register are not supported.
    fn decode(code: &Code, register: impl Fn(u8) -> usize) -> Option<Operand> {
        let (inverted, modrm, sib) = (!code[1], code[4], code[5]);
        if modrm >= 0xc0 {
            return Some(Operand { address: 0, stride: 0, end: 5 });
        }
        let has_sib = modrm & 7 == 4;
        let base = if has_sib { sib & 7 } else { modrm & 7 };
        let index = sib >> 3 & 7 | inverted >> 3 & 8;
        let stride = if has_sib && index != 4 { register(index) << (sib >> 6) } else { 0 };
        let at = if has_sib { 6 } else { 5 };
        let (displacement, end) = match modrm >> 6 {
            0 if base == 5 => return None,
            0 => (0, at),
            1 => (i32::from(code[at] as i8), at + 1),
            _ => (i32::from_le_bytes(*code[at..].first_chunk()?), at + 4),
        };
        let address = register(base | inverted >> 2 & 8).wrapping_add_signed(displacement as isize);
        Some(Operand { address, stride, end })
    }

    fn line(&self, row: usize) -> *mut [u16; STEP] {
        self.address.wrapping_add(row.wrapping_mul(self.stride)) as *mut _
    }
}

/// Emulates the unit from here on, if there is none.
pub(crate) fn emulate_where_missing() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if Amx::is_available() {
            return;
        }
        // SAFETY: zeros are an action without flags and masked signals; the handler has the arguments that `SA_SIGINFO` passes.
        let result = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_illegal_instruction as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGILL, &raw const action, std::ptr::null_mut())
        };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    });
}

extern "C" fn on_illegal_instruction(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    thread_local!(static TILES: RefCell<Tiles> = const { RefCell::new(Tiles::RELEASED) });
    // SAFETY: the system passes the context of the thread that the signal interrupts.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize];
    // SAFETY: the processor read an instruction there, and code is followed by other bytes of the program.
    let code = unsafe { (at as *const Code).read() };
    let register = |number: u8| registers[REGISTERS[usize::from(number)] as usize] as usize;
    match TILES.with_borrow_mut(|tiles| tiles.run(&code, register)) {
        Some(length) => registers[libc::REG_RIP as usize] = at + length as i64,
        // SAFETY: the default action ends the process when the instruction is repeated.
        None => _ = unsafe { libc::signal(libc::SIGILL, libc::SIG_DFL) },
    }
}

#[test]
fn other_instructions_and_invalid_operands_are_not_emulated() {
    let run = |rows: usize, code: [u8; 5]| {
        let mut padded = [0; 10];
        padded[..5].copy_from_slice(&code);
        Tiles { rows: [rows; 8], ..Tiles::RELEASED }.run(&padded, |_| 0)
    };
    let (ud2, tdpbssd, tilezero) =
        ([0x0f, 0x0b, 0, 0, 0], [0xc4, 0xe2, 0x63, 0x5e, 0xca], [0xc4, 0xe2, 0x7b, 0x49, 0xc0]);
    let (tdpbf16ps, with_one_tile_twice) = ([0xc4, 0xe2, 0x62, 0x5c, 0xca], [0xc4, 0xe2, 0x62, 0x5c, 0xcb]);
    assert_eq!([ud2, tdpbssd, with_one_tile_twice].map(|code| run(ROWS, code)), [None; 3]);
    assert_eq!([tilezero, tdpbf16ps].map(|code| run(ROWS, code)), [Some(5); 2]);
    // Without a configuration.
    assert_eq!([tilezero, tdpbf16ps].map(|code| run(0, code)), [None; 2]);
}
