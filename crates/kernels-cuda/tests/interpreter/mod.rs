//! PTX interpreter: runs one warp, slowly and with checks.
//!
//! It tests the shipped kernels without a GPU, and detects errors that a GPU would not report:
//! - a value that depends on a secret must not decide a branch, and must not be an address;
//! - an access must be within one buffer, and aligned;
//! - all threads of a warp must be together at a shuffle, at a barrier, and at a call.
//!
//! A secret becomes public where a kernel reveals it: in the first words of shared memory.

#![allow(dead_code, reason = "each test program uses its own part")]

mod program;

use program::{Code, Comparison, Function, Instruction, Shuffle, Source};
use std::collections::HashMap;

const WARP: usize = 32;
/// Address layout; a buffer's number is in the upper half of an address.
const PARAMETERS: u64 = 1 << 32;
const LOCAL: u64 = 2 << 32;
const SHARED: u64 = 3 << 32;
const FIRST_BUFFER: u64 = 4;
const LOCAL_BYTES: usize = 4096;
const SHARED_BYTES: usize = 32768;

/// Device memory, word by word, and which words are secret.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) words: Vec<u32>,
    pub(crate) secret: Vec<bool>,
}

impl Buffer {
    pub(crate) fn public(words: Vec<u32>) -> Self {
        Self { secret: vec![false; words.len()], words }
    }
}

/// Program with its memory.
pub(crate) struct Machine {
    functions: HashMap<String, Function>,
    parameters: Buffer,
    buffers: Vec<Buffer>,
    local: Vec<Buffer>,
    shared: Buffer,
    /// Number of words of shared memory that are public, although secrets are written there.
    revealed: usize,
    stack: usize,
    block: u32,
    first_thread: u32,
}

type Lanes = [u64; WARP];
/// Values passed to a function or returned by it, and whether they are secret, by their places.
type Values = HashMap<String, (Lanes, bool)>;

struct Frame {
    registers: Vec<Lanes>,
    secret: Vec<bool>,
    carry: [bool; WARP],
    carry_secret: bool,
}

impl Machine {
    pub(crate) fn new(ptx: &str) -> Self {
        let local = Buffer::public(vec![0; LOCAL_BYTES / 4]);
        Self {
            functions: program::parse(ptx),
            parameters: Buffer::public(Vec::new()),
            buffers: Vec::new(),
            local: vec![local; WARP],
            shared: Buffer::public(vec![0; SHARED_BYTES / 4]),
            revealed: 0,
            stack: 0,
            block: 0,
            first_thread: 0,
        }
    }

    /// Declares that the first words of shared memory are public.
    pub(crate) fn reveal(&mut self, words: usize) {
        self.revealed = words;
    }

    /// Returns the buffer's address.
    pub(crate) fn allocate(&mut self, buffer: Buffer) -> u64 {
        self.buffers.push(buffer);
        (FIRST_BUFFER + self.buffers.len() as u64 - 1) << 32
    }

    pub(crate) fn buffer(&self, address: u64) -> &Buffer {
        &self.buffers[(address >> 32) as usize - FIRST_BUFFER as usize]
    }

    /// Runs one warp of a kernel, in blocks of 128 threads.
    pub(crate) fn run(&mut self, kernel: &str, parameters: Vec<u32>, warp: u32) {
        self.parameters = Buffer::public(parameters);
        (self.block, self.first_thread) = (warp / 4, warp % 4 * WARP as u32);
        self.call(kernel, &Values::new());
        assert!(self.shared.words.iter().all(|&word| word == 0), "shared memory is wiped");
    }

    /// Calls a function, and returns what it returns: values by their places.
    fn call(&mut self, name: &str, arguments: &Values) -> Values {
        let function =
            self.functions.remove(name).unwrap_or_else(|| panic!("{name} exists, and is not recursive"));
        let base = self.stack;
        self.stack += function.frame.next_multiple_of(16);
        let mut frame = Frame {
            registers: vec![[0; WARP]; function.registers],
            secret: vec![false; function.registers],
            carry: [false; WARP],
            carry_secret: false,
        };
        let mut at = [0; WARP];
        let (mut passed, mut results, mut returned) = (Values::new(), Values::new(), Values::new());
        while let Some(next) = next(&function, &at) {
            let active = at.map(|pc| pc == next);
            let instruction = &function.instructions[next];
            let runs = frame.guarded(instruction, active);
            at.iter_mut().filter(|pc| **pc == next).for_each(|pc| *pc += 1);
            match instruction.code {
                Code::Branch => {
                    (0..WARP).filter(|&lane| runs[lane]).for_each(|lane| at[lane] = instruction.target);
                }
                Code::Return => (0..WARP).filter(|&lane| runs[lane]).for_each(|lane| at[lane] = usize::MAX),
                Code::Pass | Code::ReturnValue => {
                    let values = if instruction.code == Code::Pass { &mut passed } else { &mut returned };
                    // Parameter 0 is `param0` where it is passed, and `..._param_0` in the function.
                    let place = instruction.name.trim_start_matches("param").to_owned();
                    let (value, secret) = frame.read(instruction.from[0]);
                    let (lanes, any_secret) = values.entry(place).or_insert(([0; WARP], false));
                    (0..WARP).filter(|&lane| runs[lane]).for_each(|lane| lanes[lane] = value[lane]);
                    *any_secret |= secret;
                }
                Code::Call => {
                    assert_eq!(runs, [true; WARP], "threads are apart: {}", instruction.text);
                    results = self.call(&instruction.name, &std::mem::take(&mut passed));
                }
                Code::Parameter => {
                    let (value, secret) = arguments[&instruction.name];
                    frame.write(instruction.to[0], runs, secret, |lane| value[lane]);
                }
                Code::Result => {
                    let (value, secret) = results[&format!("func_{}", instruction.name)];
                    frame.write(instruction.to[0], runs, secret, |lane| value[lane]);
                }
                Code::Barrier => {
                    assert_eq!(runs, [true; WARP], "threads are apart: {}", instruction.text);
                }
                Code::Load { .. } | Code::Store { .. } => self.access(&mut frame, instruction, runs),
                Code::Frame => frame.write(instruction.to[0], runs, false, |_| LOCAL + base as u64),
                Code::Parameters => frame.write(instruction.to[0], runs, false, |_| PARAMETERS),
                Code::Shared => frame.write(instruction.to[0], runs, false, |_| SHARED),
                Code::BlockIndex => frame.write(instruction.to[0], runs, false, |_| u64::from(self.block)),
                Code::BlockSize => frame.write(instruction.to[0], runs, false, |_| 128),
                Code::ThreadIndex => {
                    let first = u64::from(self.first_thread);
                    frame.write(instruction.to[0], runs, false, |lane| first + lane as u64);
                }
                _ => frame.compute(instruction, runs),
            }
        }
        self.stack = base;
        self.functions.insert(name.to_owned(), function);
        returned
    }

    fn access(&mut self, frame: &mut Frame, instruction: &Instruction, runs: [bool; WARP]) {
        let (base, base_secret) = frame.read(instruction.from[0]);
        assert!(!base_secret, "a secret is an address: {}", instruction.text);
        let (count, bytes, stores) = match instruction.code {
            Code::Load { count, bytes } => (count, bytes, false),
            Code::Store { count, bytes } => (count, bytes, true),
            other => unreachable!("{other:?} accesses no memory"),
        };
        for (i, part) in (0..count).enumerate() {
            let mut secret = false;
            let mut loaded = [0; WARP];
            let stored = stores.then(|| frame.read(instruction.from[1 + i]));
            for lane in (0..WARP).filter(|&lane| runs[lane]) {
                let address = base[lane].wrapping_add(instruction.target as u64);
                assert_eq!(address % (count * bytes) as u64, 0, "not aligned: {}", instruction.text);
                for word in 0..bytes / 4 {
                    let offset = (address & 0xffff_ffff) as usize / 4 + part * bytes / 4 + word;
                    let is_revealed = address & !0xffff_ffff == SHARED && offset < self.revealed;
                    let buffer = self.buffer_mut(address, lane);
                    assert!(offset < buffer.words.len(), "outside: {}", instruction.text);
                    match stored {
                        Some((value, value_secret)) => {
                            buffer.words[offset] = (value[lane] >> (32 * word)) as u32;
                            buffer.secret[offset] = value_secret && !is_revealed;
                        }
                        None => {
                            loaded[lane] |= u64::from(buffer.words[offset]) << (32 * word);
                            secret |= buffer.secret[offset];
                        }
                    }
                }
            }
            if !stores {
                frame.write(instruction.to[i], runs, secret, |lane| loaded[lane]);
            }
        }
    }

    fn buffer_mut(&mut self, address: u64, lane: usize) -> &mut Buffer {
        match address & !0xffff_ffff {
            PARAMETERS => &mut self.parameters,
            LOCAL => &mut self.local[lane],
            SHARED => &mut self.shared,
            other => &mut self.buffers[((other >> 32) - FIRST_BUFFER) as usize],
        }
    }
}

/// Returns the instruction that runs next; `None` at the end. Threads that are behind go first, so that diverged threads
/// meet again; at an instruction of the whole warp, threads wait for the others.
fn next(function: &Function, at: &[usize; WARP]) -> Option<usize> {
    let running = || at.iter().copied().filter(|&pc| pc < function.instructions.len());
    let is_common =
        |pc: &usize| matches!(function.instructions[*pc].code, Code::Shuffle(_) | Code::Barrier | Code::Call);
    running().filter(|pc| !is_common(pc)).min().or_else(|| running().min())
}

impl Frame {
    fn guarded(&self, instruction: &Instruction, active: [bool; WARP]) -> [bool; WARP] {
        let Some((guard, wanted)) = instruction.guard else { return active };
        let harmless = instruction.code == Code::Move;
        assert!(harmless || !self.secret[guard], "a secret decides: {}", instruction.text);
        std::array::from_fn(|lane| active[lane] && (self.registers[guard][lane] != 0) == wanted)
    }

    fn read(&self, source: Source) -> (Lanes, bool) {
        match source {
            Source::Register(register) => (self.registers[register], self.secret[register]),
            Source::Constant(value) => ([value; WARP], false),
        }
    }

    fn write(&mut self, to: usize, runs: [bool; WARP], secret: bool, value: impl Fn(usize) -> u64) {
        let all = runs == [true; WARP];
        for lane in (0..WARP).filter(|&lane| runs[lane]) {
            self.registers[to][lane] = value(lane);
        }
        self.secret[to] = secret || (!all && self.secret[to]);
    }

    fn compute(&mut self, instruction: &Instruction, runs: [bool; WARP]) {
        let sources: Vec<(Lanes, bool)> = instruction.from.iter().map(|&source| self.read(source)).collect();
        let mut secret = sources.iter().any(|(_, secret)| *secret);
        let of = |i: usize, lane: usize| sources[i].0[lane];
        let width = if instruction.bits == 64 { u64::MAX } else { 0xffff_ffff };
        let low = |value: u64| value & 0xffff_ffff;
        let carry = self.carry;
        let taken = |takes: bool, lane: usize| u64::from(takes && carry[lane]);
        let to = instruction.to.first().copied().unwrap_or(0);
        let mut carried = None;
        let value: Lanes = match instruction.code {
            Code::Shuffle(how) => {
                assert_eq!(runs, [true; WARP], "threads are apart: {}", instruction.text);
                let found: [(usize, bool); WARP] =
                    std::array::from_fn(|lane| partner(how, lane, of(1, lane), of(2, lane)));
                if let Some(&predicate) = instruction.to.get(1) {
                    self.write(predicate, runs, sources[1].1, |lane| u64::from(found[lane].1));
                }
                std::array::from_fn(|lane| of(0, found[lane].0))
            }
            Code::AddCarry { takes, sets } => {
                secret |= takes && self.carry_secret;
                let sums: Lanes =
                    std::array::from_fn(|lane| low(of(0, lane)) + low(of(1, lane)) + taken(takes, lane));
                carried = sets.then_some(sums);
                sums
            }
            Code::Mad { high, takes, sets } => {
                secret |= takes && self.carry_secret;
                let sums: Lanes = std::array::from_fn(|lane| {
                    let product = low(of(0, lane)) * low(of(1, lane));
                    let half = if high { product >> 32 } else { low(product) };
                    half + low(of(2, lane)) + taken(takes, lane)
                });
                carried = sets.then_some(sums);
                sums
            }
            code => std::array::from_fn(|lane| plain(code, instruction.bits, |i| of(i, lane))),
        };
        if let Some(sums) = carried {
            (0..WARP).filter(|&lane| runs[lane]).for_each(|lane| self.carry[lane] = sums[lane] >> 32 != 0);
            self.carry_secret = secret;
        }
        self.write(to, runs, secret, |lane| value[lane] & width);
    }
}

/// Returns the source lane of a shuffle, and whether it is within its segment.
fn partner(how: Shuffle, lane: usize, by: u64, control: u64) -> (usize, bool) {
    let segment = (control >> 8 & 31) as usize;
    let (clamp, by) = ((control & 31) as usize, by as usize);
    let (least, most) = (lane & segment, (lane & segment) | (clamp & !segment & 31));
    let (from, within) = match how {
        Shuffle::Index => (least | (by & !segment & 31), true),
        Shuffle::Up => (lane.wrapping_sub(by), lane >= by && lane - by >= most),
        Shuffle::Down => (lane + by, lane + by <= most),
        Shuffle::Butterfly => (lane ^ by, lane ^ by <= most),
    };
    if within { (from, true) } else { (lane, false) }
}

/// Computes instructions that operate on one lane alone.
fn plain(code: Code, bits: u32, of: impl Fn(usize) -> u64) -> u64 {
    let signed = |value: u64| if bits == 64 { value as i64 } else { i64::from(value as u32 as i32) };
    let unsigned = |value: u64| if bits == 64 { value } else { value & 0xffff_ffff };
    match code {
        Code::Move => of(0),
        Code::MovePredicate => u64::from(of(0) != 0),
        Code::Not => !of(0),
        Code::NotPredicate => u64::from(of(0) == 0),
        Code::Negate => of(0).wrapping_neg(),
        Code::And => of(0) & of(1),
        Code::Or => of(0) | of(1),
        Code::Xor => of(0) ^ of(1),
        // Counts beyond the width shift everything out.
        Code::ShiftLeft => unsigned(of(0)).checked_shl(of(1) as u32).unwrap_or(0),
        Code::ShiftRight => unsigned(of(0)).checked_shr(of(1) as u32).unwrap_or(0),
        Code::ShiftRightSigned => (signed(of(0)) >> of(1).min(63)) as u64,
        Code::Subtract => of(0).wrapping_sub(of(1)),
        Code::MultiplyWideSigned => (i64::from(of(0) as i32) * i64::from(of(1) as i32)) as u64,
        Code::AddReal => (f64::from_bits(of(0)) + f64::from_bits(of(1))).to_bits(),
        Code::SubtractReal => (f64::from_bits(of(0)) - f64::from_bits(of(1))).to_bits(),
        Code::FusedReal => fused_towards_zero([0, 1, 2].map(|i| f64::from_bits(of(i)))).to_bits(),
        Code::Add => of(0).wrapping_add(of(1)),
        Code::MultiplyLow => of(0).wrapping_mul(of(1)),
        Code::MultiplyHighSigned => ((i64::from(of(0) as i32) * i64::from(of(1) as i32)) >> 32) as u64,
        Code::FunnelLeft => ((of(1) << 32 | of(0) & 0xffff_ffff) << (of(2) & 31)) >> 32,
        Code::FunnelRight => (of(1) << 32 | of(0) & 0xffff_ffff) >> (of(2) & 31),
        Code::MultiplyWide => (of(0) & 0xffff_ffff) * (of(1) & 0xffff_ffff),
        Code::Extract { signed } => {
            let (at, len) = (of(1), of(2));
            let field = unsigned(of(0)) >> at & ((1 << len) - 1);
            if signed && field >> (len - 1) & 1 == 1 { field | u64::MAX << len } else { field }
        }
        Code::Compare(how) => u64::from(match how {
            Comparison::Equal => unsigned(of(0)) == unsigned(of(1)),
            Comparison::NotEqual => unsigned(of(0)) != unsigned(of(1)),
            Comparison::Below => unsigned(of(0)) < unsigned(of(1)),
            Comparison::BelowSigned => signed(of(0)) < signed(of(1)),
            Comparison::AtLeast => unsigned(of(0)) >= unsigned(of(1)),
            Comparison::Above => unsigned(of(0)) > unsigned(of(1)),
            Comparison::AboveSigned => signed(of(0)) > signed(of(1)),
        }),
        Code::Select => {
            if of(2) != 0 {
                of(0)
            } else {
                of(1)
            }
        }
        other => unreachable!("{other:?} is computed elsewhere"),
    }
}

/// Computes a b + c for whole numbers, exactly, and truncates to the 53 highest bits.
fn fused_towards_zero(operands: [f64; 3]) -> f64 {
    let [a, b, c] = operands.map(|operand| {
        assert!(
            operand.fract() == 0.0 && operand.abs() < 2f64.powi(120),
            "{operand} is outside the kernels' range"
        );
        operand as i128
    });
    let sum = a * b + c;
    let beyond = (128 - sum.unsigned_abs().leading_zeros()).saturating_sub(53);
    let truncated = (sum.unsigned_abs() >> beyond << beyond) as f64;
    if sum < 0 { -truncated } else { truncated }
}
