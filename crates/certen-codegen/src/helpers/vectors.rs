//! Vectors in C: their types, by the extension of GCC and Clang, and the functions over them that C has no operator for.
//!
//! How many lanes a vector has is decided in C, by what the machine has: a [`LaneShape`] says how many there are at most, and of
//! how many bytes the widest value of the loop is. All vectors of a loop have the same number of lanes. A truth value is a
//! mask: all bits of its lane, or none. Its lane is as wide as that of what was compared.

use std::fmt::Write;

use certen_core::{Binary, ElemType, Unary};
use certen_math::Function;

use super::Helper;
use super::turn::SHUFFLE;

/// The lanes of a loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LaneShape {
    /// How many there are at most: a power of two.
    pub(crate) most: i64,
    /// Bytes of the widest value in them.
    pub(crate) widest: i64,
}

impl LaneShape {
    /// The number of lanes, as C knows it.
    pub(crate) fn lanes(self) -> String {
        format!("CERTEN_LANES_{}X{}", self.most, self.widest)
    }

    /// Its definition.
    pub(crate) fn text(self) -> String {
        let (most, widest, bytes) = (self.most, self.widest, self.most * self.widest);
        let name = self.lanes();
        if bytes <= 16 {
            return format!("#define {name} {most}\n");
        }
        format!("#define {name} (CERTEN_VECTOR_BYTES < {bytes} ? CERTEN_VECTOR_BYTES / {widest} : {most})\n")
    }
}

/// What a lane holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Lane {
    /// A number.
    Value(ElemType),
    /// A truth value of so many bytes.
    Mask(usize),
}

impl Lane {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Lane::Value(elem) => elem.bytes(),
            Lane::Mask(bytes) => bytes,
        }
    }

    /// The mask that says where.
    pub(crate) fn mask(self) -> Lane {
        Lane::Mask(self.bytes())
    }

    /// As part of a name, and as a type of C.
    pub(crate) fn scalar(self) -> (&'static str, &'static str) {
        match self {
            Lane::Value(ElemType::F32) => ("f32", "float"),
            Lane::Value(ElemType::F64) => ("f64", "double"),
            Lane::Value(ElemType::I32) | Lane::Mask(4) => ("i32", "int32_t"),
            Lane::Value(ElemType::I64) | Lane::Mask(8) => ("i64", "int64_t"),
            Lane::Value(ElemType::U8 | ElemType::Bool) => ("u8", "uint8_t"),
            Lane::Mask(_) => ("i8", "int8_t"),
        }
    }

    /// The vector that has it in each lane: its type.
    pub(crate) fn vector(self, shape: LaneShape) -> Vector {
        Vector { name: self.scalar().0, c: self.scalar().1, bytes: self.bytes() as i64, shape }
    }
}

/// A type of vectors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Vector {
    name: &'static str,
    c: &'static str,
    bytes: i64,
    pub(crate) shape: LaneShape,
}

impl Vector {
    /// In a register.
    pub(crate) fn register(self) -> String {
        let LaneShape { most, widest } = self.shape;
        match self.bytes == widest {
            true => format!("certen_{}x{most}", self.name),
            false => format!("certen_{}x{most}w{widest}", self.name),
        }
    }

    /// In memory, beside others of its elements.
    pub(crate) fn memory(self) -> String {
        format!("{}_m", self.register())
    }

    /// Bytes, as the preprocessor knows them.
    fn size(self) -> String {
        format!("{} * {}", self.shape.lanes(), self.bytes)
    }

    /// The definitions of both.
    pub(crate) fn text(self) -> String {
        let (register, memory, size, c) = (self.register(), self.memory(), self.size(), self.c);
        format!(
            "typedef {c} {register} __attribute__((vector_size({size})));\n\
             typedef {c} {memory} __attribute__((vector_size({size}), aligned({}), may_alias));\n",
            self.bytes
        )
    }
}

/// A function over vectors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum VectorOp {
    /// The first where the mask holds, else the second.
    Select,
    /// The numbers of the lanes.
    Numbers,
    /// The elements of memory that are so far from each other.
    Every(i64),
    Fma,
    /// To memory past the caches, where that is aligned.
    Stream,
    /// To elements of memory that are so far from each other.
    Apart(i64),
    /// To an integer type, saturating; from f64.
    To(ElemType),
    Unary(Unary),
    Binary(Binary),
    /// Whether a mask holds in some lane: a number.
    Any,
    /// A function of mathematics, by its recipe.
    Function(Function),
}

/// A function over vectors of this kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct VectorCall {
    pub(crate) call: VectorOp,
    pub(crate) lane: Lane,
    pub(crate) shape: LaneShape,
}

impl VectorCall {
    /// Over masks it is what it is over integers of their size, in name and text.
    pub(crate) fn canonical(self) -> VectorCall {
        let lane = match self.lane {
            Lane::Mask(8) => Lane::Value(ElemType::I64),
            Lane::Mask(4) => Lane::Value(ElemType::I32),
            lane => lane,
        };
        VectorCall { lane, ..self }
    }

    pub(crate) fn name(self) -> String {
        let word = match self.call {
            VectorOp::Select => "select".to_owned(),
            VectorOp::Numbers => "numbers".into(),
            VectorOp::Every(distance) => format!("every{distance}"),
            VectorOp::Apart(distance) => format!("apart{distance}"),
            VectorOp::Fma => "fma".into(),
            VectorOp::Any => "any".into(),
            VectorOp::Function(function) => function.name().into(),
            VectorOp::Stream => "stream".into(),
            VectorOp::To(elem) => format!("{elem}_from"),
            VectorOp::Unary(op) => op.name().to_owned(),
            VectorOp::Binary(Binary::Add) => "add".into(),
            VectorOp::Binary(Binary::Sub) => "sub".into(),
            VectorOp::Binary(Binary::Mul) => "mul".into(),
            VectorOp::Binary(Binary::ControlledDiv) => "controlled_div".into(),
            VectorOp::Binary(op) => op.name().to_owned(),
        };
        let word = if matches!(self.call, VectorOp::Unary(Unary::Neg)) { "neg".to_owned() } else { word };
        format!("certen_{word}{}", self.vector().register().trim_start_matches("certen"))
    }

    /// The function of mathematics that it is, and of what.
    pub(super) fn function(self) -> Option<(Function, ElemType)> {
        match (self.call, self.lane) {
            (VectorOp::Function(function), Lane::Value(elem)) => Some((function, elem)),
            _ => None,
        }
    }

    fn vector(self) -> Vector {
        self.lane.vector(self.shape)
    }

    fn is_float(self) -> bool {
        matches!(self.lane, Lane::Value(elem) if elem.is_float())
    }

    /// What its definition uses.
    pub(crate) fn needs(self) -> Vec<Helper> {
        let VectorCall { call, lane, shape } = self;
        let vector = |lane: Lane| Helper::Vector(lane.vector(shape));
        let mut needs = vec![vector(lane), vector(lane.mask())];
        match call {
            VectorOp::To(to) => {
                needs.push(vector(Lane::Value(to)));
                needs.push(Helper::VectorCall(VectorCall { call: VectorOp::Select, ..self }));
                match to {
                    ElemType::U8 => needs.push(vector(Lane::Value(ElemType::I32))),
                    ElemType::I64 => {
                        let lane = Lane::Value(to);
                        needs.push(Helper::VectorCall(VectorCall { call: VectorOp::Select, lane, shape }));
                    }
                    _ => {}
                }
            }
            VectorOp::Binary(Binary::Min | Binary::Max | Binary::ControlledDiv) => {
                needs.push(Helper::VectorCall(VectorCall { call: VectorOp::Select, ..self }));
            }
            _ => {}
        }
        needs
    }

    /// Its definition in C.
    pub(crate) fn text(self) -> String {
        let (name, t) = (self.name(), self.vector().register());
        let m = self.lane.mask().vector(self.shape).register();
        let bits = format!("    typedef u{} bits __attribute__((vector_size(sizeof({t}))));\n", self.lane.scalar().1);
        let select = VectorCall { call: VectorOp::Select, ..self }.name();
        let unary =
            |comment: &str, body: &str| format!("/* {comment} */\nstatic inline {t} {name}({t} a) {{\n{body}}}\n");
        let binary = |comment: &str, body: &str| {
            format!("/* {comment} */\nstatic inline {t} {name}({t} a, {t} b) {{\n{body}}}\n")
        };
        let wrapping = |sign: &str| {
            binary(
                &format!("a {sign} b, wrapping around"),
                &format!("{bits}    return ({t})((bits)a {sign} (bits)b);\n"),
            )
        };
        match self.call {
            VectorOp::Select => format!(
                "/* a where the mask holds, else b */\nstatic inline {t} {name}({m} mask, {t} a, {t} b) {{\n    \
                 return ({t})((mask & ({m})a) | (~mask & ({m})b));\n}}\n"
            ),
            VectorOp::Numbers => format!(
                "/* The numbers of the lanes */\nstatic inline {t} {name}(void) {{\n    {t} result = {{0}};\n    \
                 for (int at = 0; at < {}; at++) result[at] = at;\n    return result;\n}}\n",
                self.shape.lanes()
            ),
            VectorOp::Every(distance) => self.every(distance),
            VectorOp::Apart(distance) => format!(
                "/* Stores each lane {distance} elements after the one before */\n\
                 static inline void {name}({c} *to, {t} a) {{\n    \
                 for (int at = 0; at < {}; at++) to[at * {distance}] = a[at];\n}}\n",
                self.shape.lanes(),
                c = self.lane.scalar().1,
            ),
            VectorOp::Fma => self.fma(),
            VectorOp::Any => self.any(),
            // Their recipes are printed elsewhere.
            VectorOp::Function(_) => String::new(),
            VectorOp::Stream => self.stream(),
            VectorOp::To(to) => self.saturated(to),
            VectorOp::Binary(Binary::Add) => wrapping("+"),
            VectorOp::Binary(Binary::Sub) => wrapping("-"),
            VectorOp::Binary(Binary::Mul) => wrapping("*"),
            VectorOp::Binary(op @ (Binary::Min | Binary::Max)) => {
                let (word, sign) = if op == Binary::Min { ("smaller", "<=") } else { ("larger", ">=") };
                match self.is_float() {
                    true => binary(
                        &format!("The {word} of a and b; NaN if one of them is"),
                        &self.extreme(if op == Binary::Min { "min" } else { "max" }, sign),
                    ),
                    false => binary(
                        &format!("The {word} of a and b"),
                        &format!("    return {select}(({m})(a {sign} b), a, b);\n"),
                    ),
                }
            }
            VectorOp::Binary(_) => binary(
                "a / b, or 0 where a is 0",
                &format!("    return {select}(({m})(a == ({t}){{0}}), ({t}){{0}}, a / b);\n"),
            ),
            VectorOp::Unary(Unary::Neg) => {
                unary("-a, wrapping around", &format!("{bits}    return ({t})(-(bits)a);\n"))
            }
            VectorOp::Unary(Unary::Abs) if self.is_float() => {
                let most = if self.lane.bytes() == 4 { "INT32_MAX" } else { "INT64_MAX" };
                unary("The absolute value of a", &format!("    return ({t})(({m})a & {most});\n"))
            }
            VectorOp::Unary(Unary::Abs) => unary(
                "The absolute value of a, wrapping around",
                &format!("{bits}    bits sign = (bits)(a < 0);\n    return ({t})(((bits)a ^ sign) - sign);\n"),
            ),
            VectorOp::Unary(op) => self.rounded(op),
        }
    }

    /// A C compiler with our builtins, and this many bytes of the vector: what the preprocessor is asked.
    fn branch(self, bytes: i64, feature: &str) -> String {
        format!("defined({feature}) && !defined(__clang__) && {} == {bytes}", self.vector().size())
    }

    /// The same for builtins that Clang has too.
    fn instruction(self, bytes: i64, feature: &str) -> String {
        format!("defined({feature}) && {} == {bytes}", self.vector().size())
    }

    /// Vectors of NEON.
    fn is_neon(self) -> String {
        format!("defined(__aarch64__) && {} == 16", self.vector().size())
    }

    /// A function of one rounding that the machine has for whole vectors, but C only for numbers.
    fn rounded(self, op: Unary) -> String {
        let (name, t, f32) = (self.name(), self.vector().register(), self.lane == Lane::Value(ElemType::F32));
        let (letters, mask) = if f32 { ("ps", "unsigned short") } else { ("pd", "unsigned char") };
        // To an integer: which way, without telling that it is inexact.
        let (function, way, neon) = match op {
            Unary::Sqrt => ("sqrt", None, "vsqrtq"),
            Unary::Floor => ("floor", Some(9), "vrndmq"),
            Unary::Ceil => ("ceil", Some(10), "vrndpq"),
            _ => ("rint", Some(8), "vrndnq"),
        };
        let (long, short, feature) = match way {
            None => (format!("sqrt{letters}512_mask(a, a, ({mask})-1, 4)"), ["sqrt", ""], "__SSE2__"),
            Some(way) => {
                (format!("rndscale{letters}_mask(a, {way}, a, ({mask})-1, 4)"), ["round", ", WAY"], "__SSE4_1__")
            }
        };
        let call = |wide: &str| {
            let rest = short[1].replace("WAY", &way.unwrap_or(0).to_string());
            format!("    return __builtin_ia32_{}{letters}{wide}(a{rest});\n", short[0])
        };
        format!(
            "/* {function} of each lane */\nstatic inline {t} {name}({t} a) {{\n\
             #if {}\n    return __builtin_ia32_{long};\n#elif {}\n{}#elif {}\n{}#elif {}\n    \
             return {neon}_{}(a);\n#else\n    {t} result = a;\n    \
             for (int at = 0; at < {}; at++) result[at] = {function}{}(a[at]);\n    return result;\n#endif\n}}\n",
            self.branch(64, "__AVX512F__"),
            self.branch(32, "__AVX__"),
            call("256"),
            self.branch(16, feature),
            call(""),
            self.is_neon(),
            self.lane.scalar().0,
            self.shape.lanes(),
            if f32 { "f" } else { "" },
        )
    }

    /// The instruction of x86 gives its second operand where the first is not smaller, so also where one is NaN: what is left to ask
    /// is whether `b` is.
    fn extreme(self, instruction: &str, sign: &str) -> String {
        let (t, f32) = (self.vector().register(), self.lane == Lane::Value(ElemType::F32));
        let (letters, mask) = if f32 { ("ps", "unsigned short") } else { ("pd", "unsigned char") };
        let m = self.lane.mask().vector(self.shape).register();
        let select = VectorCall { call: VectorOp::Select, ..self }.name();
        let narrow = |wide: &str| {
            format!("    return {select}(({m})(b != b), b, __builtin_ia32_{instruction}{letters}{wide}(b, a));\n")
        };
        format!(
            "#if {}\n    {t} extreme = __builtin_ia32_{instruction}{letters}512_mask(b, a, a, ({mask})-1, 4);\n    \
             return __builtin_ia32_blendm{letters}_512_mask(extreme, b, __builtin_ia32_cmp{letters}512_mask(b, b, 3, ({mask})-1, 4));\n\
             #elif {}\n{}#elif {}\n{}#else\n    return {select}(({m})(a != a) | ({m})(a {sign} b), a, b);\n#endif\n",
            self.branch(64, "__AVX512F__"),
            self.branch(32, "__AVX__"),
            narrow("256"),
            self.branch(16, "__SSE2__"),
            narrow(""),
        )
    }

    /// As many vectors as elements are far from each other are loaded, the last one so that it ends with the last element, and
    /// brought together one after the other. Shuffles are written for each number of lanes.
    fn every(self, distance: i64) -> String {
        let (name, vector, c) = (self.name(), self.vector(), self.lane.scalar().1);
        let (register, memory) = (vector.register(), vector.memory());
        let mut branches = String::new();
        let counts =
            std::iter::successors(Some(4), |lanes| Some(lanes * 2)).take_while(|lanes| *lanes <= self.shape.most);
        for lanes in counts {
            // Where each vector begins.
            let last = (lanes - 1) * distance + 1 - lanes;
            let begins: Vec<i64> = (0..distance - 1).map(|at| at * lanes).chain([last]).collect();
            let home = |lane: i64| (lane * distance / lanes).min(distance - 1);
            let _ = writeln!(branches, "#elif {} == {lanes}", self.shape.lanes());
            let _ = writeln!(branches, "    {register} result = *(const {memory} *)from;");
            for at in 1..distance {
                let begin = begins[at as usize];
                let lane = |lane: i64| match home(lane) {
                    // The first one holds its elements as they lie.
                    0 if at == 1 => lane * distance,
                    home if home < at => lane,
                    home if home == at => lanes + lane * distance - begin,
                    // Not yet: anything.
                    _ => lane,
                };
                let numbers = (0..lanes).map(|at| lane(at).to_string()).collect::<Vec<_>>().join(", ");
                let mask = self.lane.mask().vector(self.shape).register();
                let next = format!("({register})*(const {memory} *)(from + {begin})");
                let _ = writeln!(branches, "    result = CERTEN_SHUFFLE({mask}, result, {next}, {numbers});");
            }
            branches += "    return result;\n";
        }
        format!(
            "{SHUFFLE}/* Every element that is {distance} after the one before */\nstatic inline {register} {name}(const {c} *from) {{\n\
             #if {lanes} == 2\n    return ({register}){{from[0], from[{distance}]}};\n{branches}#else\n    \
             {register} result = {{0}};\n    for (int at = 0; at < {lanes}; at++) result[at] = from[at * {distance}];\n    \
             return result;\n#endif\n}}\n",
            lanes = self.shape.lanes()
        )
    }

    /// Compilers have it by the names of instructions.
    fn any(self) -> String {
        let (name, t) = (self.name(), self.vector().register());
        let f32 = self.lane.bytes() == 4;
        let (letters, float, whole, short) =
            if f32 { ("ps", "float", "int", "d") } else { ("pd", "double", "long long", "q") };
        let case = |bytes: i64, feature: &str, call: &str, of: &str| {
            format!(
                "defined({feature}) && {} == {bytes}\n    typedef {of} lanes __attribute__((vector_size({bytes})));\n    \
                 return __builtin_ia32_{call}((lanes)mask) != 0;\n",
                self.vector().size()
            )
        };
        format!(
            "/* Whether a lane holds */\nstatic inline int {name}({t} mask) {{\n#if {}#elif {}#elif {}#else\n    \
             {} any = 0;\n    for (int at = 0; at < {}; at++) any |= mask[at];\n    return any != 0;\n#endif\n}}\n",
            case(64, "__AVX512DQ__", &format!("cvt{short}2mask512"), whole),
            case(32, "__AVX__", &format!("movmsk{letters}256"), float),
            case(16, "__SSE2__", &format!("movmsk{letters}"), float),
            self.lane.scalar().1,
            self.shape.lanes(),
        )
    }

    /// Compilers have it as one instruction only by name.
    fn fma(self) -> String {
        let (name, t, f32) = (self.name(), self.vector().register(), self.lane == Lane::Value(ElemType::F32));
        let (letters, mask, function) =
            if f32 { ("ps", "unsigned short", "fmaf") } else { ("pd", "unsigned char", "fma") };
        format!(
            "/* a * b + c, rounded once */\nstatic inline {t} {name}({t} a, {t} b, {t} c) {{\n\
             #if {}\n    return __builtin_ia32_vfmadd{letters}512_mask(a, b, c, ({mask})-1, 4);\n\
             #elif {}\n    return __builtin_ia32_vfmadd{letters}256(a, b, c);\n\
             #elif {}\n    return __builtin_ia32_vfmadd{letters}(a, b, c);\n\
             #elif {}\n    return vfmaq_{}(c, a, b);\n\
             #else\n    {t} result = c;\n    \
             for (int at = 0; at < {}; at++) result[at] = {function}(a[at], b[at], c[at]);\n    \
             return result;\n#endif\n}}\n",
            self.instruction(64, "__AVX512F__"),
            self.instruction(32, "__FMA__"),
            self.instruction(16, "__FMA__"),
            self.is_neon(),
            self.lane.scalar().0,
            self.shape.lanes(),
        )
    }

    /// Compilers have it by names of their own. Memory that is not aligned is stored to as usual.
    fn stream(self) -> String {
        let (name, register, memory) = (self.name(), self.vector().register(), self.vector().memory());
        let (letters, c) = if self.lane == Lane::Value(ElemType::F32) { ("ps", "float") } else { ("pd", "double") };
        let branch = |bytes: i64, feature: &str, wide: &str| {
            format!(
                "{}\n        __builtin_ia32_movnt{letters}{wide}(({c} *)to, a);\n        return;\n",
                self.branch(bytes, feature)
            )
        };
        format!(
            "/* Stores a, past the caches if it can */\nstatic inline void {name}({memory} *to, {register} a) {{\n    \
             if ((uintptr_t)to % sizeof({register}) == 0) {{\n#if defined(__clang__)\n        \
             __builtin_nontemporal_store(a, ({register} *)to);\n        return;\n#elif {}#elif {}#elif {}#endif\n    }}\n    \
             *to = a;\n}}\n",
            branch(64, "__AVX512F__", "512"),
            branch(32, "__AVX__", "256"),
            branch(16, "__SSE2__", ""),
        )
    }

    /// What saturates is the nearest number that there is, so that the conversion is always defined.
    fn saturated(self, to: ElemType) -> String {
        let (name, f) = (self.name(), self.vector().register());
        let t = Lane::Value(to).vector(self.shape).register();
        let m = self.lane.mask().vector(self.shape).register();
        let select = VectorCall { call: VectorOp::Select, ..self }.name();
        let begin = format!(
            "/* a without its fraction, or the nearest {to}; 0 for NaN */\nstatic inline {t} {name}({f} a) {{\n"
        );
        if to == ElemType::I64 {
            let chosen = VectorCall { call: VectorOp::Select, lane: Lane::Value(to), ..self }.name();
            return format!(
                "{begin}    const {f} least = -9223372036854775808.0 - ({f}){{0}};\n    \
                 const {m} high = ({m})(a >= -least), low = ({m})(a < least);\n    \
                 const {m} whole = ~(high | low | ({m})(a != a));\n    \
                 {t} result = __builtin_convertvector({select}(whole, a, ({f}){{0}}), {t});\n    \
                 result = {chosen}(high, INT64_MAX + ({t}){{0}}, result);\n    \
                 return {chosen}(low, INT64_MIN + ({t}){{0}}, result);\n}}\n"
            );
        }
        let (least, most) = if to == ElemType::I32 { ("-2147483648.0", "2147483647.0") } else { ("0.0", "255.0") };
        let convert = match to {
            ElemType::U8 => {
                let i32 = Lane::Value(ElemType::I32).vector(self.shape).register();
                format!("__builtin_convertvector(__builtin_convertvector(a, {i32}), {t})")
            }
            _ => format!("__builtin_convertvector(a, {t})"),
        };
        format!(
            "{begin}    const {f} least = {least} - ({f}){{0}}, most = {most} - ({f}){{0}};\n    \
             a = {select}(({m})(a < least), least, a);\n    a = {select}(({m})(a > most), most, a);\n    \
             a = {select}(({m})(a == a), a, ({f}){{0}});\n    return {convert};\n}}\n"
        )
    }
}
