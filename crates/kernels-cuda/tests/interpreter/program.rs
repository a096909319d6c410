//! Parser of PTX: the part of the language that the kernels use.

use std::collections::HashMap;

/// Operation of an instruction; all operands are registers or constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Move,
    MovePredicate,
    Not,
    NotPredicate,
    Negate,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    Add,
    Subtract,
    MultiplyLow,
    MultiplyWide,
    MultiplyWideSigned,
    MultiplyHighSigned,
    /// Upper or lower word of two, shifted.
    FunnelLeft,
    FunnelRight,
    /// Doubles: a sum or difference to the nearest, and a b + c towards zero.
    AddReal,
    SubtractReal,
    FusedReal,
    /// 32 bits; whether it takes the carry, and whether it sets it.
    AddCarry {
        takes: bool,
        sets: bool,
    },
    /// Low or high half of a b + c, with carries as above.
    Mad {
        high: bool,
        takes: bool,
        sets: bool,
    },
    /// Bits from a position, sign-extended or not.
    Extract {
        signed: bool,
    },
    Compare(Comparison),
    Select,
    Shuffle(Shuffle),
    /// Number of registers, and bytes of each.
    Load {
        count: usize,
        bytes: usize,
    },
    Store {
        count: usize,
        bytes: usize,
    },
    /// An argument of the next call, and one of its results.
    Pass,
    Result,
    /// A parameter of this function, and what it returns.
    Parameter,
    ReturnValue,
    Call,
    Branch,
    Barrier,
    Return,
    BlockIndex,
    BlockSize,
    ThreadIndex,
    /// Address of this function's local memory, of the kernel's parameters, and of the block's shared memory.
    Frame,
    Parameters,
    Shared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Below,
    BelowSigned,
    AtLeast,
    Above,
    AboveSigned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Register(usize),
    Constant(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    /// Executed only in threads where this register has this value.
    pub(crate) guard: Option<(usize, bool)>,
    pub(crate) code: Code,
    /// Width, 32 or 64, if it matters.
    pub(crate) bits: u32,
    pub(crate) to: Vec<usize>,
    pub(crate) from: Vec<Source>,
    /// Name of a label or a function; offset of a memory address.
    pub(crate) name: String,
    pub(crate) target: usize,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) registers: usize,
    pub(crate) frame: usize,
}

/// Parses every function, by its name.
pub(crate) fn parse(ptx: &str) -> HashMap<String, Function> {
    let text: String = ptx
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .filter(|line| !line.starts_with(".maxntid") && !line.starts_with(".minnctapersm"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut functions = HashMap::new();
    for part in
        text.split("\n.").filter(|part| part.starts_with("visible .entry") || part.starts_with("weak .func"))
    {
        // Before the name there may be a returned value, in parentheses.
        let (head, body) = part.split_once("(\n").expect("parameters");
        let name = head.split_whitespace().next_back().expect("a name").to_owned();
        if let Some((_, body)) = body.split_once("\n{") {
            functions.insert(name, Parser::default().function(body));
        }
    }
    functions
}

/// Characters that may precede a statement.
const BEFORE: [char; 5] = [' ', '\t', '\n', '{', '}'];

#[derive(Default)]
struct Parser {
    registers: HashMap<String, usize>,
    labels: HashMap<String, usize>,
    function: Function,
}

impl Parser {
    fn function(mut self, body: &str) -> Function {
        for statement in body.split(';') {
            let mut statement = statement.trim_start_matches(BEFORE);
            while let Some((label, rest)) =
                statement.split_once(':').filter(|(label, _)| label.starts_with("LBB"))
            {
                self.labels.insert(label.to_owned(), self.function.instructions.len());
                statement = rest.trim_start_matches(BEFORE);
            }
            let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
            if let Some(local) = statement.strip_prefix(".local ") {
                let (_, size) = local.split_once('[').expect("a size");
                self.function.frame = size.trim_end_matches(']').parse().expect("a number");
            } else if !statement.is_empty() && !statement.starts_with('.') {
                let instruction = self.instruction(&statement);
                self.function.instructions.push(instruction);
            }
        }
        for instruction in &mut self.function.instructions {
            if instruction.code == Code::Branch {
                instruction.target = self.labels[&instruction.name];
            }
        }
        self.function.registers = self.registers.len();
        self.function
    }

    fn instruction(&mut self, text: &str) -> Instruction {
        let mut rest = text;
        let mut guard = None;
        if let Some(guarded) = text.strip_prefix('@') {
            let (register, instruction) = guarded.split_once(' ').expect("an instruction");
            let wanted = !register.starts_with('!');
            guard = Some((self.register(register.trim_start_matches('!')), wanted));
            rest = instruction;
        }
        let (mnemonic, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        let (code, bits) = code(mnemonic, operands);
        let mut instruction = Instruction {
            guard,
            code,
            bits,
            to: Vec::new(),
            from: Vec::new(),
            name: String::new(),
            target: 0,
            text: text.to_owned(),
        };
        self.operands(&mut instruction, operands);
        instruction
    }

    fn operands(&mut self, instruction: &mut Instruction, text: &str) {
        let words: Vec<&str> =
            text.split(|c: char| ", {}[]()|".contains(c)).filter(|word| !word.is_empty()).collect();
        let targets = match instruction.code {
            Code::Branch => {
                instruction.name = words[0].to_owned();
                return;
            }
            Code::Call => {
                let name = words.iter().find(|word| !word.starts_with("retval"));
                instruction.name = (*name.expect("a function")).to_owned();
                return;
            }
            // Memory of parameters: its name and an offset.
            Code::Pass | Code::ReturnValue => {
                instruction.name = words[0].trim_end_matches("+0").to_owned();
                return instruction.from.push(self.source(words[1]));
            }
            Code::Parameter | Code::Result => {
                instruction.to.push(self.register(words[0]));
                let name = words[1].rsplit_once("_param_").map_or(words[1], |(_, number)| number);
                instruction.name = name.trim_end_matches("+0").to_owned();
                return;
            }
            Code::Frame
            | Code::Parameters
            | Code::Shared
            | Code::BlockIndex
            | Code::BlockSize
            | Code::ThreadIndex => {
                return instruction.to.push(self.register(words[0]));
            }
            Code::Barrier => return,
            Code::Return => 0,
            Code::Store { .. } => 0,
            Code::Load { count, .. } => count,
            Code::Shuffle(_) if text.contains('|') => 2,
            _ => 1,
        };
        for word in &words[..targets] {
            let register = self.register(word);
            instruction.to.push(register);
        }
        for word in &words[targets..] {
            // An address: a register and perhaps an offset.
            let (base, offset) = word.split_once('+').unwrap_or((word, ""));
            let source = match base.split_once("_param_") {
                Some(_) => Source::Constant(super::PARAMETERS),
                None if base.contains("Shared") => Source::Constant(super::SHARED),
                None => self.source(base),
            };
            instruction.from.push(source);
            if !offset.is_empty() {
                instruction.target = offset.parse::<isize>().expect("an offset") as usize;
            }
        }
    }

    fn source(&mut self, word: &str) -> Source {
        match word.strip_prefix("0x").or_else(|| word.strip_prefix("0d")) {
            Some(hexadecimal) => Source::Constant(u64::from_str_radix(hexadecimal, 16).expect("a number")),
            None => match word.parse::<i64>() {
                Ok(number) => Source::Constant(number as u64),
                Err(_) => Source::Register(self.register(word)),
            },
        }
    }

    fn register(&mut self, name: &str) -> usize {
        assert!(name.starts_with('%') || name == "p", "{name} is not a register");
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }
}

/// Returns the instruction and its width. Unknown instructions are failures, so that nothing is guessed.
fn code(mnemonic: &str, operands: &str) -> (Code, u32) {
    let parts: Vec<&str> = mnemonic.split('.').collect();
    // A conversion is as wide as its result.
    let kind = if parts[0] == "cvt" { parts[1] } else { parts.last().expect("a type") };
    let bits = if kind.ends_with("64") { 64 } else { 32 };
    let has = |what: &str| parts.contains(&what);
    let comparison = |signed: bool| match parts[1] {
        "eq" => Comparison::Equal,
        "ne" => Comparison::NotEqual,
        "lt" if signed => Comparison::BelowSigned,
        "lt" => Comparison::Below,
        "ge" if !signed => Comparison::AtLeast,
        "gt" if signed => Comparison::AboveSigned,
        "gt" => Comparison::Above,
        other => panic!("{other} is not a comparison that is known"),
    };
    let (count, bytes) = (
        if has("v4") {
            4
        } else if has("v2") {
            2
        } else {
            1
        },
        bits as usize / 8,
    );
    let code = match parts[0] {
        "mov" => match operands.split_once(", ").expect("two operands").1 {
            "%ctaid.x" => Code::BlockIndex,
            "%ntid.x" => Code::BlockSize,
            "%tid.x" => Code::ThreadIndex,
            source if source.starts_with("__local") => Code::Frame,
            source if source.contains("_param_") => Code::Parameters,
            source if source.contains("Shared") => Code::Shared,
            _ if has("pred") => Code::MovePredicate,
            _ => Code::Move,
        },
        "cvta" | "cvt" => Code::Move,
        "not" if has("pred") => Code::NotPredicate,
        "not" => Code::Not,
        "neg" => Code::Negate,
        "and" => Code::And,
        "or" => Code::Or,
        "xor" => Code::Xor,
        "shl" => Code::ShiftLeft,
        "shr" if kind.starts_with('u') => Code::ShiftRight,
        "shr" => Code::ShiftRightSigned,
        "fma" if mnemonic == "fma.rz.f64" => Code::FusedReal,
        "add" if mnemonic == "add.rn.f64" => Code::AddReal,
        "sub" if mnemonic == "sub.rn.f64" => Code::SubtractReal,
        "sub" if !has("cc") && !has("f64") => Code::Subtract,
        "add" if !has("cc") && !has("f64") => Code::Add,
        "add" | "addc" if bits == 32 => Code::AddCarry { takes: parts[0] == "addc", sets: has("cc") },
        "mul" if has("wide") && kind == "u32" => return (Code::MultiplyWide, 64),
        "mul" if has("wide") && kind == "s32" => return (Code::MultiplyWideSigned, 64),
        "mul" if mnemonic == "mul.hi.s32" => Code::MultiplyHighSigned,
        "mul" if has("lo") => Code::MultiplyLow,
        "mad" | "madc" => Code::Mad { high: has("hi"), takes: parts[0] == "madc", sets: has("cc") },
        "shf" if mnemonic == "shf.l.wrap.b32" => Code::FunnelLeft,
        "shf" if mnemonic == "shf.r.wrap.b32" => Code::FunnelRight,
        "bar" if mnemonic == "bar.warp.sync" => Code::Barrier,
        "bfe" => Code::Extract { signed: kind == "s32" },
        "setp" => Code::Compare(comparison(kind.starts_with('s'))),
        "selp" => Code::Select,
        "shfl" => Code::Shuffle(match parts[2] {
            "idx" => Shuffle::Index,
            "up" => Shuffle::Up,
            "down" => Shuffle::Down,
            _ => Shuffle::Butterfly,
        }),
        "ld" if has("param") && operands.contains("_param_") && operands.contains("[_Z") => Code::Parameter,
        "ld" if has("param") && operands.contains("[retval0") => Code::Result,
        "ld" => Code::Load { count, bytes },
        "st" if has("param") && operands.contains("[func_retval0") => Code::ReturnValue,
        "st" if has("param") => Code::Pass,
        "st" => Code::Store { count, bytes },
        "call" => Code::Call,
        "bra" => Code::Branch,
        "ret" => Code::Return,
        other => panic!("{other} in `{mnemonic} {operands}` is not known"),
    };
    (code, bits)
}
