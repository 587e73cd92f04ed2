//! What becomes of automatic schedules in machine code, told without a clock.
//!
//! The tile of a matrix product is in registers, as its assembly says: the loop over the sum has one fused operation for each
//! vector of the tile, each of its operands is loaded once, and no vector is kept on the stack. And some kernels make as many
//! instructions as they did when `tests/instructions.txt` was written (`cargo xtask counts`).
#![cfg(target_arch = "x86_64")]
// What is skipped says so.
#![allow(clippy::print_stderr)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use certen::road::runtime::Compiler;
use certen::{Choice, Cpu, Module, Options};

/// Instructions other than fused operations and loads of vectors: pointers, the end of the loop. Some pointers are in memory
/// where GCC has too few registers for them.
const MOST_CONTROL: usize = 8;

/// What an innermost loop is made of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counted {
    /// Fused multiply-adds of vectors.
    fused: usize,
    /// Vectors that are loaded or filled with one element, also by a fused operation.
    loads: usize,
    /// Vectors that are copied from one register to another.
    copies: usize,
    /// Vectors that are written to memory, or read from the stack.
    spills: usize,
    /// Everything else.
    control: usize,
}

impl Counted {
    fn of<'a>(instructions: impl IntoIterator<Item = &'a str>) -> Counted {
        let mut counted = Counted::default();
        for text in instructions {
            let has_vectors = ["%xmm", "%ymm", "%zmm"].iter().any(|register| text.contains(register));
            // The target is the last operand.
            let (memory, to_memory) = (text.contains('('), text.ends_with(')'));
            let is_fused = text.starts_with("vfmadd");
            let is_spill = to_memory || ["(%rsp", "(%rbp"].iter().any(|stack| text.contains(stack));
            counted.fused += usize::from(is_fused);
            match (has_vectors, memory) {
                (true, true) if is_spill => counted.spills += 1,
                (true, true) => counted.loads += 1,
                (true, false) if is_fused => {}
                (true, false) => counted.copies += 1,
                (false, _) => counted.control += 1,
            }
        }
        counted
    }
}

/// The instructions of each innermost loop: from a label to a jump back to it, with no other jump between them.
fn innermost_loops(assembly: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = assembly.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
    let is_jump = |line: &&str| line.starts_with('j');
    let mut loops = Vec::new();
    for (end, jump) in lines.iter().enumerate().filter(|(_, line)| is_jump(line)) {
        let label = jump.split_whitespace().last().map(|target| format!("{target}:")).unwrap_or_default();
        let Some(begin) = lines[..end].iter().rposition(|line| **line == label) else { continue };
        let body = &lines[begin..=end];
        if body.iter().filter(|line| is_jump(line)).count() == 1 {
            let is_instruction = |line: &&&str| !line.is_empty() && !line.starts_with('.') && !line.ends_with(':');
            loops.push(body.iter().filter(is_instruction).copied().collect());
        }
    }
    loops
}

/// Compiles a program in a directory as the runtime would on a machine with an instruction set, with more arguments.
fn compile(compiler: &Compiler, cpu: Cpu, module: &Module, directory: &Path, more: &[&str]) {
    fs::write(directory.join("program.c"), module.c().unwrap().native).unwrap();
    let flags = compiler.flags().iter().filter(|flag| !flag.starts_with("-m") && **flag != "-shared");
    let features = cpu.features().into_iter().map(|feature| format!("-m{feature}"));
    let mut command = Command::new(compiler.real_path());
    command.args(flags).args(features).args(more).arg("program.c").current_dir(directory);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&done.stderr));
}

/// A program with an automatic schedule.
fn automatic(text: &str, cpu: Cpu) -> Module {
    let options = Options { schedule: Choice::Auto, cpu: Some(cpu), ..Options::default() };
    Module::from_text("program.ten", text, &options).unwrap()
}

/// The loops with fused operations of a product of matrices of this element type, and the rows and columns of its tile.
fn tile(compiler: &Compiler, cpu: Cpu, elem: &str) -> (Vec<Counted>, [usize; 2]) {
    let text = format!("fn mm(a: {elem}[256, 256], b: {elem}[256, 256]) -> {elem}[256, 256] {{ a @ b }}");
    tile_of(compiler, cpu, &text)
}

/// Those of a contraction.
fn tile_of(compiler: &Compiler, cpu: Cpu, text: &str) -> (Vec<Counted>, [usize; 2]) {
    let module = automatic(text, cpu);
    let why = &module.planned().unwrap().0[0].why;
    // … 32 lanes of j for 4 rows of i …
    let before = |word: &str| why.split_once(word).unwrap().0.split(' ').next_back().unwrap().parse().unwrap();
    let sizes: [usize; 2] = [before(" rows of"), before(" lanes of")];
    let directory = tempfile::tempdir().unwrap();
    let assembly = directory.path().join("mm.s");
    compile(compiler, cpu, &module, directory.path(), &["-S", "-o", "mm.s"]);
    let text = fs::read_to_string(&assembly).unwrap();
    let counted = innermost_loops(&text).into_iter().map(Counted::of).filter(|counted| counted.fused > 0);
    (counted.collect(), sizes)
}

#[test]
fn the_tile_of_a_matrix_product_is_in_registers() {
    let compiler = Compiler::find().unwrap();
    if compiler.version().contains("clang") {
        eprintln!("skipped: {} unrolls loops as it likes", compiler.version());
        return;
    }
    for (cpu, (elem, bytes)) in
        [Cpu::Avx2, Cpu::Avx512].into_iter().flat_map(|cpu| [("f64", 8), ("f32", 4)].map(|elem| (cpu, elem)))
    {
        let (loops, [rows, columns]) = tile(compiler, cpu, elem);
        let [counted] = loops.as_slice() else { panic!("{cpu} {elem}: {loops:?}") };
        let vectors = columns * bytes / cpu.vector_bytes();
        let Counted { fused, loads, copies, spills, control } = *counted;
        assert_eq!((fused, loads, spills), (rows * vectors, rows + vectors, 0), "{cpu} {elem}: {counted:?}");
        // GCC 12 turns sums around in registers where there are 16 of them.
        assert!(2 * copies <= fused && control <= MOST_CONTROL, "{cpu} {elem}: {counted:?}");
    }
}

/// Rows of 7 are stored in shorter vectors, and results that lie apart one by one: the sum stays in registers all the same.
#[test]
fn a_tile_that_is_read_in_pieces_is_in_registers() {
    let compiler = Compiler::find().unwrap();
    if compiler.version().contains("clang") {
        eprintln!("skipped: {} unrolls loops as it likes", compiler.version());
        return;
    }
    let texts = [
        "fn f(a: f64[70, 90, 402], b: f64[7, 16, 90, 70]) -> f64[70, 16, 402, 7] {
            { [z, c, i, j] -> sum({ [k] -> a[z, k, i] * b[j, c, k, z] }) }
        }",
        "fn f(a: f64[6, 28, 120, 60], b: f64[6, 131, 120]) -> f64[131, 28, 60, 6] {
            { [d, e, c, z] -> sum({ [k] -> a[z, e, k, c] * b[z, d, k] }) }
        }",
    ];
    for (cpu, text) in [Cpu::Avx2, Cpu::Avx512].into_iter().flat_map(|cpu| texts.map(|text| (cpu, text))) {
        let (loops, _) = tile_of(compiler, cpu, text);
        assert!(loops.iter().any(|counted| counted.fused >= 6), "{cpu} {text}: {loops:?}");
        assert!(loops.iter().all(|counted| counted.spills == 0), "{cpu} {text}: {loops:?}");
    }
}

#[test]
fn a_spill_is_found() {
    let text = "
f:
.L2:
	xorl	%eax, %eax
	.p2align 4
.L3:
	vmovapd	%ymm1, %ymm2
.L4:	# the entry
	vbroadcastsd	(%rax), %ymm3
	vfmadd231pd	(%rdx), %ymm3, %ymm2
	vfmadd231pd	%ymm3, %ymm3, %ymm1
SPILL
	addq	$8, %rax
	cmpq	%rax, %rcx
	jne	.L3
	cmpq	%rdx, %rsi
	jne	.L2
	ret
";
    let counted = |spill: &str| {
        let text = text.replace("SPILL", spill);
        let loops = innermost_loops(&text);
        assert_eq!(loops.len(), 1, "{loops:?}");
        Counted::of(loops[0].clone())
    };
    let plain = Counted { fused: 2, loads: 2, copies: 1, spills: 0, control: 3 };
    assert_eq!(counted(""), plain);
    assert_eq!(counted("\tvmovapd\t%ymm5, -40(%rsp)"), Counted { spills: 1, ..plain });
    assert_eq!(counted("\tvmovapd\t32(%rsp), %ymm5"), Counted { spills: 1, ..plain });
    assert_eq!(counted("\tvmovupd\t%ymm5, (%rdi)"), Counted { spills: 1, ..plain });
    assert_eq!(counted("\tvfmadd231pd\t32(%rbp), %ymm3, %ymm2"), Counted { fused: 3, spills: 1, ..plain });
    assert_eq!(counted("\tmovq\t-8(%rsp), %rdi"), Counted { control: 4, ..plain });
}

/// Kernels whose instructions are counted, at sizes that have something left over.
const KERNELS: [(&str, &str); 7] = [
    ("mm", "fn f(a: f64[67, 61], b: f64[61, 70]) -> f64[67, 70] { a @ b }"),
    ("mm_f32", "fn f(a: f32[67, 61], b: f32[61, 70]) -> f32[67, 70] { a @ b }"),
    ("tmm", "fn f(a: f64[61, 67], b: f64[61, 70]) -> f64[67, 70] { transpose(a) @ b }"),
    ("mv", "fn f(a: f64[123, 211], x: f64[211]) -> f64[123] { { [i] -> sum({ [k] -> a[i, k] * x[k] }) } }"),
    ("vm", "fn f(x: f64[123], a: f64[123, 211]) -> f64[211] { { [j] -> sum({ [k] -> x[k] * a[k, j] }) } }"),
    (
        "stencil",
        "fn f(x: f64[90, 77]) -> f64[88, 75] { { [i, j] -> x[i, j+1] + x[i+1, j] + x[i+1, j+2] + x[i+2, j+1] } }",
    ),
    (
        "batched",
        "fn f(a: f64[9, 12, 13], b: f64[9, 13, 11]) -> f64[9, 12, 11] {
            { [z, i, j] -> sum({ [k] -> a[z, i, k] * b[z, k, j] }) }
        }",
    ),
];

/// A `main` that calls a program once.
const MAIN: &str = "
#include <stdint.h>
#include <stdlib.h>
int32_t certen_call(const int64_t *sizes, void *const *buffers);
int main(void) {
    const size_t bytes[] = {BYTES};
    void *buffers[COUNT];
    for (int at = 0; at < COUNT; at++) buffers[at] = aligned_alloc(64, (bytes[at] + 63) / 64 * 64);
    for (int at = 0; at < COUNT; at++) for (size_t b = 0; b < bytes[at]; b++) ((char *)buffers[at])[b] = 1;
    return certen_call(NULL, buffers);
}
";

/// How many instructions a call of a program for AVX2 makes, as callgrind counts them.
fn instructions(compiler: &Compiler, text: &str) -> u64 {
    let module = automatic(text, Cpu::Avx2);
    let signature = module.signature();
    let bytes = signature.inputs.iter().chain(&signature.outputs).map(|ty| {
        let elements: i64 = ty.shape.iter().map(|size| size.as_constant().unwrap()).product();
        (elements as usize * ty.elem.bytes()).to_string()
    });
    let bytes: Vec<String> = bytes.collect();
    let directory = tempfile::tempdir().unwrap();
    let main = MAIN.replace("COUNT", &bytes.len().to_string()).replace("BYTES", &bytes.join(", "));
    fs::write(directory.path().join("main.c"), main).unwrap();
    compile(compiler, Cpu::Avx2, &module, directory.path(), &["-o", "program", "main.c", "-lm"]);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--toggle-collect=certen_call", "--callgrind-out-file=counts", "./program"]);
    let done = valgrind.current_dir(directory.path()).output().unwrap();
    assert!(done.status.success(), "{valgrind:?}\n{}", String::from_utf8_lossy(&done.stderr));
    let counts = fs::read_to_string(directory.path().join("counts")).unwrap();
    let total = counts.lines().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|total| total.trim().parse().ok()).unwrap_or_else(|| panic!("no total in\n{counts}"))
}

/// Whether a count is more than a fiftieth from another.
fn is_far(count: u64, known: u64) -> bool {
    50 * count.abs_diff(known) > known
}

/// Counts depend on the compiler: the file has a line for each kernel and each version of GCC at which it was blessed.
#[test]
#[ignore = "needs valgrind: cargo xtask counts"]
fn kernels_make_as_many_instructions_as_before() {
    let compiler = Compiler::find().unwrap();
    let version = Command::new(compiler.real_path()).arg("-dumpversion").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).split('.').next().unwrap_or_default().trim().to_owned();
    let compiler_name = if compiler.version().contains("clang") { "clang" } else { "gcc" };
    let key = format!("{compiler_name}-{version}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/instructions.txt");
    let table = fs::read_to_string(&path).unwrap_or_default();
    let (own, others): (Vec<&str>, Vec<&str>) = table.lines().partition(|line| line.starts_with(&format!("{key} ")));
    let blesses = std::env::var_os("CERTEN_BLESS").is_some();
    if own.is_empty() && !blesses {
        eprintln!("skipped: there are no counts for {key} in tests/instructions.txt");
        return;
    }
    let known = |name: &str| -> Option<u64> {
        let words = own.iter().map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>());
        words.into_iter().find(|words| words.first() == Some(&name))?.get(1)?.parse().ok()
    };
    let (mut new, mut wrong) = (String::new(), String::new());
    for (name, text) in KERNELS {
        let count = instructions(compiler, text);
        let before = known(name);
        eprintln!("{name:<10}{count:>10} instructions, {} before", before.unwrap_or(0));
        let _ = writeln!(new, "{key} {name} {count}");
        if before.is_none_or(|before| is_far(count, before)) {
            let _ = writeln!(wrong, "{name}: {count} instructions, not {}", before.unwrap_or(0));
        }
    }
    if blesses {
        let others: String = others.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, others + &new).unwrap();
    } else {
        assert!(wrong.is_empty(), "if that is meant, `cargo xtask counts --bless`:\n{wrong}");
    }
}

#[test]
fn a_fiftieth_more_is_far() {
    assert!(!is_far(1020, 1000) && !is_far(980, 1000));
    assert!(is_far(1021, 1000) && is_far(979, 1000));
}
