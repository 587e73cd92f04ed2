//! The error index: one entry per code, from which `certen explain-error` and `docs/reference/errors.md` are made.
//!
//! An entry that a program can cause carries a wrong program and a right one. The tests compile both: the wrong one
//! gives this code, the right one gives no error. An entry names who is to blame, unless it is the program.
//! One table, so longer than other files.

use std::fmt;
use std::str::FromStr;

/// A pair of programs that shows a mistake and its repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Example {
    /// The dialect's file ending, such as `teil`.
    pub dialect: &'static str,
    /// A program that gives the code.
    pub wrong: &'static str,
    /// The program repaired.
    pub right: &'static str,
}

macro_rules! codes {
    ($($code:ident $([$blame:ident])? $title:literal { $text:literal $(dialect: $dialect:literal wrong: $wrong:literal right: $right:literal)? })*) => {
        /// The kind of a mistake. Codes are never reused for another mistake.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Code {
            $(#[doc = $title] $code,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$code),*];

            /// What it is, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$code => $title),* }
            }

            /// Who has to change something.
            pub fn blame(self) -> Blame {
                match self {
                    $(Code::$code => {
                        let blame = Blame::Program;
                        $(let blame = blame.max(Blame::$blame);)?
                        blame
                    })*
                }
            }

            /// What it means and what to do.
            pub fn text(self) -> &'static str {
                match self { $(Code::$code => $text),* }
            }

            /// A wrong and a right program, where a program can cause it.
            pub fn example(self) -> Option<Example> {
                match self {
                    $(Code::$code => {
                        let example: Option<Example> = None;
                        $(let example = example.or(Some(Example { dialect: $dialect, wrong: $wrong, right: $right }));)?
                        example
                    })*
                }
            }
        }
    };
}

codes! {
E0101 "a character without meaning" {
"Programs are written with letters, digits, `_` and a fixed set of punctuation. Anything else, such as a typographic
quotation mark or a letter with an accent, is an error. Comments (`//` to the end of the line) may hold any text, except for
the characters that change the order in which it is shown, such as U+202E: what is read would not be what people see."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64[n] { “x” }
"
right: "fn f(x: f64[n]) -> f64[n] { x } // “x” may stand in a comment
" }

E0102 "a number that is too large" {
"Sizes, positions and indices are 64-bit integers, the largest is 9223372036854775807. Numbers with a point or an
exponent are f64."
dialect: "ten"
wrong: "fn f(x: f64[99999999999999999999]) -> f64 { sum(x) }
"
right: "fn f(x: f64[999]) -> f64 { sum(x) }
" }

E0103 "a syntax error" {
"The text is not what the grammar wants at this place. The message names what was expected and what was found. After
a syntax error, reading goes on at the next line that begins a statement, so that one mistake gives one message.
`certen help grammar` prints the grammar of `.ten` files, `certen help teil`, `model` and `teml` those of the papers'
notations."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64[n] { x + }
"
right: "fn f(x: f64[n]) -> f64[n] { x + x }
" }

E0104 [Call] "a file that cannot be read as a program" {
"The file is missing, is not UTF-8 text, is larger than 4 GiB, or its ending names no dialect. Programs of
the tensor language end in `.ten`, TeIL programs in `.teil`, model language programs in `.model`, Core programs in
`.core`." }

E0105 "a declaration after a statement" {
"A program is a sequence of declarations followed by a sequence of statements (TeIL, Fig. 5; model language, Fig. 1).
Move the `alloc`, `var`, `type` or `where` above the first statement."
dialect: "teil"
wrong: "alloc A : [4]
alloc B : [4]
A = B
alloc C : [4]
"
right: "alloc A : [4]
alloc B : [4]
alloc C : [4]
A = B
" }

E0106 "an import that cannot be read" {
"A `.ten` file imports the functions and constants of another with `import \"path.ten\";`, the path relative to the
importing file. The file is missing or is not text, or there are too many imports; the message says which."
dialect: "ten"
wrong: "import \"no_such_file.ten\";
fn f(x: f64[n]) -> f64 { sum(x) }
"
right: "fn f(x: f64[n]) -> f64 { sum(x) }
" }

E0201 "a name that is not declared" {
"Every name is declared before it is used. In a `.ten` file it is a parameter, a `let`, an index, a function or a constant.
In TeIL a tensor is declared with `alloc x : [..]` and in the model language with `var x : [..]`, before it is used (rules T-Var,
t-var) or assigned (rules OK-Stmt, ok-stmt); a type that has a name is declared above its first use."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64[n] { x + y }
"
right: "fn f(x: f64[n], y: f64[n]) -> f64[n] { x + y }
" }

E0202 "a name that is declared twice" {
"In a `.ten` file, functions and constants have different names, also from those of the files that it imports; only the
prelude's may be declared anew. In TeIL and the model language all names in the declarations are unique (TeIL, Sec. 3.2 and rule
OK-Prog; model language, rule s-var)."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64 { sum(x) }
fn f(x: f64[n]) -> f64[n] { 2 * x }
"
right: "fn total(x: f64[n]) -> f64 { sum(x) }
fn main(x: f64[n]) -> f64[n] { 2 * x }
" }

E0203 "a size that can be less than one" {
"Natural numbers start from one: dimensions cannot be empty (TeIL, Sec. 3.1; model language, Def. 2). A size that is
written as a difference, such as `n - 1`, needs a `where` clause that keeps it positive."
dialect: "teil"
wrong: "alloc A : [n - 1]
"
right: "alloc A : [n - 1]
where n >= 2
" }

E0204 "a position that the tensor does not have" {
"In a `.ten` file, axes are counted from 0, and negative ones from the end. In TeIL dimensions are counted from 1: `red+`,
`transp`, `diag`, `contr` and `proj` take positions from 1 to the rank of their argument, and so do `.` and `^` in the model
language; `expa` also takes the position after the last one."
dialect: "ten"
wrong: "fn f(x: f64[m, n]) -> f64[m] { sum(x, axis = 2) }
"
right: "fn f(x: f64[m, n]) -> f64[m] { sum(x, axis = 1) }
" }

E0205 "two positions that are equal" {
"An axis is named once. `transp`, `diag` and `contr` in TeIL, and `.` and `^` in the model language, take two different
dimensions, in either order. Where several pairs stand together, as in `. [[1 3] [2 4]]`, all positions are different."
dialect: "ten"
wrong: "fn f(x: f64[m, n]) -> f64 { sum(x, axis = [0, 0]) }
"
right: "fn f(x: f64[m, n]) -> f64 { sum(x, axis = [0, 1]) }
" }

E0206 "operands of different shapes" {
"Arithmetic works entry by entry on tensors of the same shape, or on a scalar and a tensor. Nothing else is broadcast: in a
`.ten` file a comprehension says how a tensor is repeated. Sizes with different names are different, unless a `where` clause says
that they are equal.

In TeIL the rules are T-Add and T-Mul, a scalar may stand left of `mul` (T-SMul), and `expa` repeats a tensor along a new
dimension. In the model language the rule is t-elem; a scalar may stand left of `*` (t-smul) and right of `/` (t-sdiv)."
dialect: "ten"
wrong: "fn f(A: f64[m, n], b: f64[n]) -> f64[m, n] { A + b }
"
right: "fn f(A: f64[m, n], b: f64[n]) -> f64[m, n] { { [i] -> A[i] + b } }
" }

E0207 "an access that can be out of bounds" {
"Every index of every selection has to be inside its tensor, for all sizes that the types and `where` clauses allow. The
message shows sizes and indices for which it is not, and often the condition under which it is.

In TeIL, the slice that `proj i m` takes must exist: 1 <= m <= n (rule T-Proj)."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64[n] { { [i] -> x[i+1] | i < n } }
"
right: "fn f(x: f64[n]) -> f64[n-1] where n >= 1 { { [i] -> x[i+1] | i < n-1 } }
" }

E0208 "a diagonal of dimensions of different size" {
"`diag` and `contr` run along two dimensions at once, so both must have the same size, for all sizes (rule T-Diag). This
is what keeps a contraction from reading past the end of the shorter one. In the model language the rule is t-contr."
dialect: "teil"
wrong: "alloc A : [m, h]
alloc B : [n, h]
alloc C : [m, n]
C = contr 1 3 (prod A B)
"
right: "alloc A : [h, m]
alloc B : [h, n]
alloc C : [m, n]
C = contr 1 3 (prod A B)
" }

E0209 "an assignment of another shape" {
"The right-hand side of an assignment has exactly the declared shape of the left-hand side (rules OK-Stmt, ok-stmt)."
dialect: "teil"
wrong: "alloc A : [m, n]
alloc B : [n, m]
B = A
"
right: "alloc A : [m, n]
alloc B : [n, m]
B = transp 1 2 A
" }

E0210 "sizes that cannot exist" {
"No sizes satisfy the `where` clauses. A program about nothing would be accepted whatever it does, so this is an error rather
than a proof of everything. In TeIL and the model language sizes are at least 1."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64 where n >= 2, n <= 1 { sum(x) }
"
right: "fn f(x: f64[n]) -> f64 where n >= 2, n <= 10 { sum(x) }
" }

E0211 "a name for two things" {
"A name is a tensor, a size, a function or a type, not two of them."
dialect: "ten"
wrong: "fn f(n: f64[n]) -> f64 { sum(n) }
"
right: "fn f(x: f64[n]) -> f64 { sum(x) }
" }

E0212 "an output that depends on uninitialised values" {
"When a file marks inputs or outputs, an unmarked tensor has no value before it is assigned. Here such a value reaches
an output. Mark the tensor as `alloc input` (`var input` in the model language), or assign it first. In TeML, a tensor that
is written before it is read has no value elsewhere: reading an element that no statement has written is this error, and so
is an output that has such an element."
dialect: "teil"
wrong: "alloc input A : [4]
alloc B : [4]
alloc output C : [4]
C = add A B
"
right: "alloc input A : [4]
alloc input B : [4]
alloc output C : [4]
C = add A B
" }

E0213 "a tensor of too many dimensions" {
"Tensors and intermediate results have at most 64 dimensions." }

E0214 "reductions nested too deeply" {
"At most 100 reductions may stand inside each other: every one becomes a loop. Give the inner part a name with an
assignment of its own." }

E0215 "a tensor too large to exist" {
"The number of bytes of a declared tensor does not fit in 63 bits. (Intermediate results of an expression may be of any
size: they are not stored.)"
dialect: "teil"
wrong: "alloc A : [4000000000, 4000000000]
"
right: "alloc A : [4000, 4000]
" }

E0216 "an expression over sizes that is not understood" {
"Sizes are built from whole numbers and names with `+`, `-` and multiplication, and their values have 64 bits."
dialect: "ten"
wrong: "fn f(x: f64[4000000000 * 4000000000]) -> f64 { sum(x) }
"
right: "fn f(x: f64[4000 * 4000]) -> f64 { sum(x) }
" }

E0217 "a function or constant that uses itself" {
"Calls have no cycles: a function calls neither itself nor a function that leads back to it, and a constant is not made
from itself. The message shows the way around. `iterate k times` repeats a step; `fold` combines elements."
dialect: "ten"
wrong: "fn halve(x: f64[n]) -> f64[n] { halve(x / 2.0) }
"
right: "fn halve(x: f64[n], k: size) -> f64[n] { iterate k times y = x { y / 2.0 } }
" }

E0230 "a bound that cannot be inferred" {
"The upper bound of an index of a comprehension is inferred from the selections in its body: `{ [i] -> A[i] }` lets `i` go
through A. Where nothing in the body says how far an index may go, the stated type of the result does; where there is none, the
bound is written after the body.
(Tensor Comprehensions in SaC, Sec. 5.2: find-shapes is not complete)"
dialect: "ten"
wrong: "fn f(n: size) where n >= 0 { { [i] -> i * i } }
"
right: "fn f(n: size) -> i64[n] where n >= 0 { { [i] -> i * i } }
" }

E0231 "data where an index is wanted" {
"Indices, sizes, bounds and conditions on them are made of sizes, indices and literals, so that shapes and bounds are known
before any data is. Data never becomes an index. An index can be used as data."
dialect: "ten"
wrong: "fn f(x: f64[n], k: i64) -> f64 { x[k] }
"
right: "fn f(x: f64[n], k: size) -> f64 where 0 <= k, k < n { x[k] }
" }

E0232 "element types that do not fit" {
"Operands have one element type; f32 and f64, or integers and floats, do not mix by themselves. Literals and indices take the
type of what they meet. `f64(x)`, `i32(x)` and so on convert."
dialect: "ten"
wrong: "fn f(x: f64[n], y: f32[n]) -> f64[n] { x + y }
"
right: "fn f(x: f64[n], y: f32[n]) -> f64[n] { x + f64(y) }
" }

E0233 "parts of a tensor that do not fit together" {
"All elements of a tensor have one shape, so the body of a comprehension has a shape that does not depend on its indices, all
its partitions have the same one, and a pattern has as many dots as the body has dimensions, or fewer."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64[n] { { [i] -> { [j] -> x[j] | [j] < [i] } | [i] < [n] } }
"
right: "fn f(x: f64[n]) -> f64[n] { { [i] -> sum({ [j] -> x[j] | [j] < [i] }) | [i] < [n] } }
" }

E0234 "a number of dimensions that does not fit" {
"The rank of an argument is not one that the function takes, or does not follow from the arguments."
dialect: "ten"
wrong: "fn f(x: f64[m, n]) -> f64[m, n] { x }
fn main(y: f64[n]) -> f64[n] { f(y) }
"
right: "fn f(x: f64[s...]) -> f64[s...] { x }
fn main(y: f64[n]) -> f64[n] { f(y) }
" }

E0235 "a call that does not fit" {
"The number of arguments or results is not that of the function, an argument has no such name, or what is called is no
function."
dialect: "ten"
wrong: "fn f(x: f64) -> f64 { x }
fn main(y: f64) -> f64 { f(y, y) }
"
right: "fn f(x: f64) -> f64 { x }
fn main(y: f64) -> f64 { f(y) }
" }

E0236 "a value of another type than is stated" {
"A result, a binding with a type, or the state of an iteration has another shape or element type than is stated."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64[n] { x[1..] }
"
right: "fn f(x: f64[n]) -> f64[n-1] where n >= 1 { x[1..] }
" }

E0237 "two bounds that cannot be compared" {
"Several selections bound an index, and which of the bounds is the smallest depends on the sizes. Taking the minimum
would hide that sizes differ that were meant to be equal, so it has to be said: by the types, a `where` clause, or a
written bound. (Tensor Comprehensions in SaC, Sec. 5.2, takes the minimum)"
dialect: "ten"
wrong: "fn f(x: f64[m], y: f64[n]) { { [i] -> x[i] + y[i] } }
"
right: "fn f(x: f64[n], y: f64[n]) { { [i] -> x[i] + y[i] } }
" }

E0238 "a part that leaves the result" {
"The last partition of a comprehension gives the shape; generators of a with-loop stay inside its shape."
dialect: "ten"
wrong: "fn f() -> i64[10] { { iv -> 1 | iv < [20]; iv -> 2 | iv < [10] } }
"
right: "fn f() -> i64[20] { { iv -> 1 | iv < [10]; iv -> 2 | iv < [20] } }
" }

E0239 "a condition of a function that is not met" {
"The `where` clause of a function must hold where it is called, for all sizes that the caller allows."
dialect: "ten"
wrong: "fn first(x: f64[n]) -> f64 where n >= 1 { x[0] }
fn main(x: f64[n]) -> f64 { first(x) }
"
right: "fn first(x: f64[n]) -> f64 where n >= 1 { x[0] }
fn main(x: f64[n]) -> f64 where n >= 1 { first(x) }
" }

E0240 "a minimum or maximum of nothing" {
"An empty sum is 0 and an empty product 1, but there is no least or largest of no elements: the size must be shown to be at
least 1."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64 { max(x) }
"
right: "fn f(x: f64[n]) -> f64 where n >= 1 { max(x) }
" }

E0241 "a truncation of more than padding" {
"`trunc_l` and `trunc_r` take memory away, not work: the code that computes a row stays, so every row that is cut has to be
padding, which nothing computes (ATL, Sec. 5; rules TruncLPad and TruncRPad of Fig. 5). Padding are the elements where a
guard does not hold, the rows of `pad_l` and `pad_r`, what `split` adds to its last block, and sums of nothing but padding; a
zero that is computed is not. The message says how many rows are cut and how many are padding, and shows sizes at which an
element is cut that is computed. To keep a part of a tensor that is computed, select it."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64[n-1] where n >= 1 { trunc_r(1, { [i] -> 2 * x[i] }) }
"
right: "fn f(x: f64[n]) -> f64[n] { trunc_r(2, pad_r(2, { [i] -> 2 * x[i] })) }
" }

E0242 "iterators that do not fit an operand" {
"An operand of a TeML operation gets its iterators where it has none yet: a tensor or the target of a real statement is given a
list, with an iterator for each dimension; a virtual tensor and a scalar are given none (TeML, where-clauses of Eq. 14 and 15).
Iterators can be added, with numbers as factors: `2*i + k + 1`."
dialect: "teml"
wrong: "A = tensor([m, n])
B = tensor([m, n])
C = tensor([m, n])
t = vadd(A, B, [[i, j], [i, j]])
C = mul(t, A, [[i, j], [i, j]] -> [i, j])
"
right: "A = tensor([m, n])
B = tensor([m, n])
C = tensor([m, n])
t = vadd(A, B, [[i, j], [i, j]])
C = mul(t, A, [, [i, j]] -> [i, j])
" }

E0243 "a shape that cannot be inferred" {
"The range of an iterator is inferred from the dimensions that it indexes (TeML, Sec. 3.3.1 and Eq. 19). One that always stands
alone meets dimensions of the same size, for all sizes; so do dimensions that are contracted (Eq. 33) and operands of an
entrywise operation (Eq. 30). One that also stands in a sum, such as `i + 1`, runs as far as all its uses allow, if it can
be said which of them that is. The result of `contract` is introduced first: which dimensions it leaves follows from
positions alone."
dialect: "teml"
wrong: "A = tensor([m, h])
B = tensor([n, h])
C = tensor([m, n])
C = contract(A, B, [2, 1])
"
right: "A = tensor([m, h])
B = tensor([n, h])
C = tensor([m, n])
C = contract(A, B, [2, 2])
" }

E0244 "an element that is written more than once" {
"An assignment writes each element once: every iterator of the right side stands on the left side, alone in a position of its
own, perhaps with a factor and an offset. Otherwise the last write would win. To sum over an iterator, the target itself, at the
iterators of the left side, is an operand of `add` (or of `mul`, for a product); `contract` sums from zero."
dialect: "teml"
wrong: "A = tensor([m, n])
r = tensor([m])
r = eq(A, [i, j] -> [i])
"
right: "A = tensor([m, n])
r = tensor([m])
init(r, 0.0)
r = add(r, A, [[i], [i, j]] -> [i])
" }

E0245 "an identifier of another kind" {
"An identifier of a TeML program stands for a tensor, a virtual tensor, an assignment or a loop nest. `build` makes loops of an
assignment (TeML, where-clause of Eq. 19); loop expressions and `codegen` take loops, all others tensors."
dialect: "teml"
wrong: "A = tensor([n])
B = tensor([n])
t = vmul(A, A, [[i], [i]])
B = eq(t, -> [i])
l = build(t)
codegen(l)
"
right: "A = tensor([n])
B = tensor([n])
t = vmul(A, A, [[i], [i]])
B = eq(t, -> [i])
l = build(B)
codegen(l)
" }

E0246 "a nest of loops of another form" {
"Each loop expression has a pattern, which the tree of the nest must match (TeML, Fig. 9): positions count the loops that have
nothing beside them, from 1, outermost first; loops that are fused have the same range. The message shows the tree."
dialect: "teml"
wrong: "A = tensor([m, n])
B = tensor([m, n])
B = entrywise_add(A, A)
l = build(B)
l1 = interchange(l, 2, 3)
codegen(l1)
"
right: "A = tensor([m, n])
B = tensor([m, n])
B = entrywise_add(A, A)
l = build(B)
l1 = interchange(l, 1, 2)
codegen(l1)
" }

E0247 "a bound that leaves its scope, or is no number" {
"The loop inside a block begins where the block does, so it stands inside the loop over blocks (TeML, Eq. 20 and 21). A
loop is unrolled as a whole only if its number of iterations is a number (Eq. 25); with a factor, in part, always."
dialect: "teml"
wrong: "A = tensor([n])
B = tensor([n])
B = entrywise_add(A, A)
l = build(B)
l1 = stripmine(l, 1, 4)
l2 = interchange(l1, 1, 2)
codegen(l2)
"
right: "A = tensor([n])
B = tensor([n])
B = entrywise_add(A, A)
l = build(B)
l1 = stripmine(l, 1, 4)
codegen(l1)
" }

E0248 "a sum that cannot be made a loop" {
"Loops are built around a statement so that each iterator of it is a loop, with nothing between them (TeML, Eq. 19). The
iterators of a `vcontract` become loops too if the sum stands in a product, left of a division, or beside one other value in
the outermost addition. Two sums that are added, a sum inside a difference that is multiplied, and a sum that something is
divided by are computed by `contract`, in a statement of their own."
dialect: "teml"
wrong: "A = tensor([n, m])
x = tensor([n])
y = tensor([m])
s = vcontract(A, x, [1, 1])
y = entrywise_add(s, s)
l = build(y)
codegen(l)
"
right: "A = tensor([n, m])
x = tensor([n])
s = tensor([m])
y = tensor([m])
s = contract(A, x, [1, 1])
y = entrywise_add(s, s)
l1 = build(s)
l2 = build(y)
codegen(l1, l2)
" }

E0249 "a list of loops that does not fit together" {
"`codegen` lists the loops of a program in the order in which they run. Loops that read a tensor stand after those that
write it, every output is written, and no statement is computed twice."
dialect: "teml"
wrong: "x = tensor([n])
t = tensor([n])
y = tensor([n])
t = entrywise_mul(x, x)
y = entrywise_add(t, x)
l1 = build(t)
l2 = build(y)
codegen(l2, l1)
"
right: "x = tensor([n])
t = tensor([n])
y = tensor([n])
t = entrywise_mul(x, x)
y = entrywise_add(t, x)
l1 = build(t)
l2 = build(y)
codegen(l1, l2)
" }

W0301 "a program that does nothing" {
"The program has no statement. It is well-formed (rules OK-Empty, ok-empty), but probably not what was meant."
dialect: "teil"
wrong: "alloc A : [4]
"
right: "alloc A : [4]
alloc B : [4]
B = A
" }

W0302 "a statement without effect" {
"The value that this statement assigns reaches no output: it is overwritten first, or never used. It is checked like
any other, and left out of the compiled code."
dialect: "teil"
wrong: "alloc input A : [4]
alloc T : [4]
alloc output B : [4]
T = add A A
B = A
"
right: "alloc input A : [4]
alloc T : [4]
alloc output B : [4]
T = add A A
B = T
" }

W0303 "bounds that are not shown" {
"The Core program is too large or too deep to be lowered to loops, so that its accesses could not be shown to be in
bounds. The reference evaluator, which runs it, checks every access when it happens." }

W0304 "the evaluator instead of native code" {
"Native code was not asked for explicitly and could not be made: there is no C compiler, or the program cannot be
compiled yet. The reference evaluator runs instead; it gives the same values, slowly." }

W0305 "operators without precedence" {
"In the model language all operators associate to the left and none binds tighter than another (model language, Sec.
3.1): `a + b * c` is `(a + b) * c`. Parentheses say what is meant, and the warning goes away."
dialect: "model"
wrong: "var a : [4]
var b : [4]
var c : [4]
var d : [4]
d = a + b * c
"
right: "var a : [4]
var b : [4]
var c : [4]
var d : [4]
d = a + (b * c)
" }

W0306 "padding that is not zero" {
"Evaluation with padding (model language, Fig. 13 and 14) rounds every size up to a multiple of the vector length and
fills the rest with zeros. Thm. 2 says that they stay zeros, because 0 * x is 0. That does not hold where x is
undefined, an infinity or not a number. An undefined value then makes nothing undefined that was not so without padding;
but with an infinity, results can depend on the padding. Native code has none, or keeps it zero." }

W0307 "a tensor that is introduced by being written" {
"A tensor is introduced with `tensor(..)` before it is written (TeML, Sec. 3.3.1). Where it is not, as in the paper's own
listings, it gets the shape and the type of the right side. A name after `@` is always introduced first, and so is the
result of `contract`, whose shape depends on positions alone (E0243)."
dialect: "teml"
wrong: "A = tensor([m, n])
B = transpose(A, [[1, 2]])
"
right: "A = tensor([m, n])
B = tensor([n, m])
B = transpose(A, [[1, 2]])
" }

E0401 [Call] "an input that is missing" {
"Every input of the program needs an array: `--in NAME=FILE.npy`, `NAME=FILE.npz:KEY`, `NAME=random:SEED`, `NAME=iota` or
`NAME=3.5`." }

E0402 [Call] "a name that the program does not have" {
"`--in`, `--out` and `--dim` name inputs, outputs and sizes of the program. The message lists those it has." }

E0403 [Call] "an array of the wrong shape" {
"The array's rank or one of its sizes is not what the program declares, or two arrays disagree about a size. The message
shows both and where each size came from." }

E0404 [Call] "an array of the wrong element type" {
"Arrays are not converted silently: an integer array is not read as floats, and f32 not as f64. Convert it, or choose
the program's element type with `--elem`." }

E0405 [Call] "a file that is not an array" {
"The file is not a whole `.npy` or `.npz` file of an element type that exists here: f32, f64, i32, i64, u8, bool. Both
byte orders and both memory orders are read." }

E0406 [Call] "a size that is not known" {
"No array and no `--dim` tells this size. Give it with `--dim n=100`." }

E0407 [Call] "an option that is not understood" {
"The message shows the form that the option takes." }

E0408 [Environment] "more memory than there is" {
"The arrays of this run need more memory than the machine has free, so nothing was started." }

E0409 [Call] "sizes that the program excludes" {
"The sizes of the arrays do not satisfy the program's `where` clauses, so what was proved does not hold for them. Sizes
that memory does not limit are limited, too: an index parameter is at most 2^31 in magnitude, and so is the product of
the other sizes of an array that has no elements because one of its sizes is 0." }

E0410 [Call] "a function that has to be chosen" {
"A `.ten` file with several functions, none of them called `main`, does not say which one to run: choose it with
`--fn NAME`. A file without functions has nothing to run."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64 { sum(x) }
fn g(x: f64[n]) -> f64 { prod(x) }
"
right: "fn f(x: f64[n]) -> f64 { sum(x) }
fn main(x: f64[n]) -> f64 { f(x) / 2.0 }
" }

E0501 [Call] "an evaluation that takes too long" {
"The reference evaluator counts its steps and stops at a limit, so that it never hangs. Use smaller sizes, a larger
`--fuel`, or the native back end." }

E0502 [Call] "an exact number that became too large" {
"Exact rationals grow without bound, for example under repeated squaring. Evaluation stops when one of them needs more
than a million bits." }

E0503 [Call] "a value that does not exist" {
"The result depends on a division by zero or on an uninitialised value, which has no meaning in this domain. Use
`--domain undefined` to see which elements are affected." }

E0504 [Call] "an operation that this domain does not have" {
"Exact rationals have no exp, log, sin, cos or square root of a number that is not a square. Integers have no `/`: choose
floating-point elements with `--elem f64`." }

E0601 [Environment] "no C compiler" {
"Native code needs a C compiler: `cc`, `gcc` or `clang` on the PATH, or the one that the environment variable CC names.
Without one, the reference evaluator runs instead (`--backend interp`), which is exact but slow." }

E0602 [Environment] "the C compiler failed" {
"The C compiler did not accept or could not finish the generated code. Unless the disk is full or memory ran out, this
is a bug in Certen: please report it with the emitted C (`certen emit`)." }

E0603 [Environment] "a file could not be read or written" {
"The operating system refused, for the reason in the message. Nothing is left half-written." }

E0604 [Environment] "memory ran out" {
"The compiled code could not allocate its temporary buffers. Nothing was computed." }

E0605 [Environment] "no Python with the package `certen`" {
"`certen bench --peers` is done by the Python package: `python3` on the PATH has to have it, or the Python that the
environment variable CERTEN_PYTHON names. In a clone, `cargo xtask bench` sets everything up." }

E0701 "ill-formed Core" {
"The text is not a well-formed Core program: a name out of scope, ranks or element types that do not fit, or a range that
leaves its tensor." }

E0702 "ill-formed loops" {
"The text is not a well-formed loop program: a name out of scope, a buffer used with the wrong rank or element type, an
access that is not shown to be in bounds, a parallel loop whose iterations are not shown to be independent: no element
that one of them writes may be used by another. Or a minimum or maximum of Core is over a range that is not shown to be
non-empty; one with a condition (`where`) needs no such range, and has no value if nothing satisfies the condition." }

E0703 "a program that is too large or too deep to be compiled" {
"The reference evaluator understands this program, but its loops would be too many, or too deep inside each other. Give
parts names of their own, or use `--backend interp`." }

E0704 "an optimisation that changed the program's meaning" {
"Every optimised program is compared with the program as written, on some elements of its outputs, before code is made
from it. They differ here, so no code was made. This is a bug in Certen: please report it with the program. `--fp strict`
compiles programs over floats as they are written." }

E0705 "a schedule that changed the program's meaning" {
"Before code is made, the loops that a schedule leads to are compared with the program as written, at sizes that reach
every branch of them. They differ here, so no code was made. The message shows the first element that differs, both
values, the sizes, and the step after which the loops differ for the first time; the notes of that step say which of its
conditions is not met. Leave the step out, or put the loops into an order in which it is allowed. `certen bench` says the
same of a variant whose results, computed by native code, are not those of the others."
dialect: "ten"
wrong: "fn blur(x: f64[n]) -> f64[n-2] where n >= 2 {
    let t = { [i] -> x[i] * x[i] };
    { [i] -> t[i] + t[i+1] + t[i+2] | i < n-2 }
}
schedule blur { fuse_outer(t.i, i); }
"
right: "fn blur(x: f64[n]) -> f64[n-2] where n >= 2 {
    let t = { [i] -> x[i] * x[i] };
    { [i] -> t[i] + t[i+1] + t[i+2] | i < n-2 }
}
schedule blur { split(i, 8); compute_at(t, i.o); }
" }

E0706 "a certificate that does not hold" {
"`certen verify --check` reads a certificate and the program that it is for, and derives what has to be shown anew. A
witness is missing, does not prove what it is for, or is left over; a point that was tested gives another value; or the
certificate is for another program. Nothing that the certificate says is to be believed then. Make it again with
`certen verify --certificate`." }

E0707 [Environment] "machine code that does not do what the loops say" {
"Compiled code is run once, when it is new, beside the loops that it was made from: at small sizes that reach every part
of it, in every element and bit by bit. They differ here, so the code is not used. The message shows the first element that
differs, both values and the sizes. This is a bug of the C compiler or of Certen. `certen doctor` says which compiler is
used and tries it on more; another one can be chosen with the environment variable CC. Without native code,
`--backend interp` runs the reference evaluator. Please report it with the program and the compiler's version." }

E0801 "no such step, or wrong arguments" {
"A schedule is a list of steps, each the name of a transformation with its arguments in parentheses. There is no
transformation of this name, or it takes other arguments; the message shows how it is called. `certen help steps` has a
section about each."
dialect: "ten"
wrong: "fn scale(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
schedule scale { split(i); }
"
right: "fn scale(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
schedule scale { split(i, 32); }
" }

E0802 "a loop, stage, buffer or function that is not there" {
"The steps of a schedule name loops as `stage.index`, or by the index alone in the loops of the result, as they are at
that step: after `split(i, 32)` there is no loop `i`, but `i.o` and `i.i`. The message lists what there is. Where several
loops of a stage have one name, `j#2` is the second. The name of a schedule is that of a function of the same file."
dialect: "ten"
wrong: "fn scale(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
schedule scale { split(i, 32); interchange(i, j); }
"
right: "fn scale(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
schedule scale { split(i, 32); interchange(i.i, j); }
" }

E0803 "a step that cannot be done here" {
"The step is known and its loops exist, but it has no meaning for them: loops that are interchanged stand directly inside
each other, a loop that is unrolled completely has a number of iterations, what is inlined is computed by an assignment. The
message shows the loops at that step, with a mark at the one it speaks of, and what could be done instead."
dialect: "ten"
wrong: "fn matmul(a: f64[m, k], b: f64[k, n]) -> f64[m, n] { { [i, j] -> sum({ [p] -> a[i, p] * b[p, j] }) } }
schedule matmul { unroll(p); }
"
right: "fn matmul(a: f64[m, k], b: f64[k, n]) -> f64[m, n] { { [i, j] -> sum({ [p] -> a[i, p] * b[p, j] }) } }
schedule matmul { unroll(p, 4); }
" }

E0804 "a schedule whose accesses are not shown to be safe" {
"After the last step, every access has to be in bounds and no two iterations of a parallel or vector loop may use an element
that one of them writes, for all sizes. That could not be shown for the loops of this schedule, although it could without
it. The message shows the accesses, and sizes and iterations at which they meet if there are any."
dialect: "ten"
wrong: "fn shift(x: f64[n], k: size) -> f64[n] where k >= 0 {
    iterate k times u = x { { [i] -> 0.5 * u[i] } }
}
schedule shift { parallelize(t); }
"
right: "fn shift(x: f64[n], k: size) -> f64[n] where k >= 0 {
    iterate k times u = x { { [i] -> 0.5 * u[i] } }
}
schedule shift { parallelize(u_next.i); }
" }

E0805 "equality that is tested, but not proved" {
"With `--require-proof`, only schedules are accepted all of whose steps are proved to preserve the meaning, for all sizes.
A condition of a step of this schedule is open or not met; the loops agree with the program wherever they were compared,
which is evidence, not proof. Leave the step out, or compile without `--require-proof`." }

E0901 "no such rewrite, or wrong arguments" {
"A derivation is a list of steps, each the name of a rewrite, or of a `derivation` that is made of them, with arguments in
parentheses. There is no rewrite of this name, or it takes other arguments; the message shows how it is called.
`certen help rewrites` has them all."
dialect: "ten"
wrong: "fn f(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
derive main from f { tile_gen at i; }
"
right: "fn f(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
derive main from f { tile_gen(32) at i; }
" }

E0902 "a place, name or function that is not there" {
"`at i` is the term that binds `i` in the program as it is at that step, `at { x[_] }` the first term like this; after a
step that renames or removes it, it is gone. What a derivation begins with is a function, or something derived, of its file or
of one that it imports. The message lists what there is."
dialect: "ten"
wrong: "fn scale(x: f64[n]) -> f64[n] { { [i] -> 2 * x[i] } }
derive main from scal { }
"
right: "fn scale(x: f64[n]) -> f64[n] { { [i] -> 2 * x[i] } }
derive main from scale { }
" }

E0903 "a rewrite that does not fit here" {
"The rewrite is known and its place is there, but what stands there is not its left side (or its right side, if it is taken
backwards). The message shows the rewrite and the program at that step, with a mark at the place."
dialect: "ten"
wrong: "fn f(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
derive main from f { swap_gens at j; }
"
right: "fn f(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
derive main from f { swap_gens at i; }
" }

E0904 "a condition of a rewrite that does not hold" {
"A rewrite is an equation under conditions, which are put to the prover for all sizes, with what is known at its place: the
ranges and guards around it. This one does not hold, and the message has numbers that show it. With other arguments it may."
dialect: "ten"
wrong: "fn f(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
derive main from f { split_gen(4) at i; }
"
right: "fn f(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }
derive main from f { split_gen(min(4, m)) at i; }
" }

E0905 "a derived program that is not shown to be safe" {
"After every step of a derivation the program has to cut off nothing but padding, and to read and write in bounds, for all
sizes. A rewrite can move a read out of the guard that made it safe. The message is about the program after this step."
dialect: "ten"
wrong: "fn f(x: f64[n]) -> f64[n] { { [i] -> guard(i < n-1, x[i] * x[i+1]) | i < n } }
derive main from f { backwards guard_mul; }
"
right: "fn f(x: f64[n]) -> f64[n] { { [i] -> guard(i < n-1, x[i] * x[i+1]) | i < n } }
derive main from f { swap_factors; backwards guard_mul; }
" }

E1001 "a kernel that leaves a tensor" {
"`certen guard` found an access of a kernel of another framework that can be out of bounds. The message has the sizes that
are declared and those that are used side by side, sizes and indices that show it, and how the framework reads it. Change the
declaration or the range."
dialect: "py"
wrong: "from tvm import te
m, n, h = te.var(\"m\"), te.var(\"n\"), te.var(\"h\")
A = te.placeholder((m, h), name=\"A\")
k = te.reduce_axis((0, h), name=\"k\")
B = te.compute((m,), lambda y: te.sum(A[k, y], axis=k))
"
right: "from tvm import te
m, n, h = te.var(\"m\"), te.var(\"n\"), te.var(\"h\")
A = te.placeholder((h, m), name=\"A\")
k = te.reduce_axis((0, h), name=\"k\")
B = te.compute((m,), lambda y: te.sum(A[k, y], axis=k))
" }

E1002 "sizes of a kernel that do not agree" {
"One index of a kernel walks along dimensions of different size, or an operation takes tensors of different shapes. `certen
guard` shows both declarations, and what the framework makes of it: TACO takes the first size, Tensor Comprehensions the
smallest, CFDlang does not ask, `einsum` raises an error when it runs."
dialect: "tc"
wrong: "def f(float(M, H) A, float(N, H) B) -> (C) {
    C(y, x) +=! A(k, y) * B(k, x)
}
"
right: "def f(float(H, M) A, float(H, N) B) -> (C) {
    C(y, x) +=! A(k, y) * B(k, x)
}
" }

E1003 "an index of a kernel without a meaning" {
"An index of a kernel has no range that could be inferred, is only on the right side though nothing is reduced, or does not
begin where the tensor begins that is defined by it, so that elements are never stored, or others are."
dialect: "tc"
wrong: "def f(float(N) A) -> (C) {
    C(i) = A(i) where j in 0:N
}
"
right: "def f(float(N) A) -> (C) {
    C(i) +=! A(i) where j in 0:N
}
" }

E1004 [Call] "a construct that the guard does not read" {
"The file has a construct of its language that `certen guard` does not read, so nothing is said of its kernels: the message
names it. [The guide](../guide/guard.md) lists what is read."
dialect: "tc"
wrong: "def f(float(N) A, int32(N) at) -> (C) {
    C(i) = A(at(i)) where i in 0:N
}
"
right: "def f(float(N) A, int32(N) at) -> (C) {
    C(i) = A(i) where i in 0:N
}
" }

E1005 "an einsum without a meaning" {
"The subscripts of an `einsum` in a Python source have no meaning for its operands: NumPy, PyTorch and JAX raise an error, but
only when the call runs."
dialect: "py"
wrong: "import numpy as np
C = np.einsum(\"ij,jk->il\", A, B)
"
right: "import numpy as np
C = np.einsum(\"ij,jk->ik\", A, B)
" }

W1001 "a reading that may not be what was meant" {
"`certen guard` says how it reads a kernel where that may surprise: sparse formats of TACO run as dense tensors, chains of
CFDlang's operators associate to the right, Tensor Comprehensions' `+=` begins with what the caller passes, and an `einsum`
whose subscripts are not written as a literal is not looked at."
dialect: "cfd"
wrong: "var input a : [3]
var input b : [3]
var output c : [3]
c = a - b - a
"
right: "var input a : [3]
var input b : [3]
var output c : [3]
c = (a - b) - a
" }
}

/// Who has to change something, and the exit status that says so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Blame {
    /// The program is wrong.
    Program = 1,
    /// The call or the arrays are wrong.
    Call = 2,
    /// The environment failed: disk, compiler, memory.
    Environment = 3,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Code {
    type Err = ();

    /// Reads `E0101`, in either case.
    fn from_str(text: &str) -> Result<Code, ()> {
        let text = text.to_ascii_uppercase();
        Code::ALL.iter().copied().find(|code| code.to_string() == text).ok_or(())
    }
}

impl Code {
    /// The code's page of the error index, as Markdown.
    ///
    /// ```
    /// assert!(certen_syntax::Code::E0208.page().starts_with("## E0208: a diagonal"));
    /// ```
    pub fn page(self) -> String {
        let mut page = format!("## {self}: {}\n\n{}\n", self.title(), self.text());
        if let Some(Example { dialect, wrong, right }) = self.example() {
            page += &format!("\nWrong:\n```{dialect}\n{wrong}```\nRight:\n```{dialect}\n{right}```\n");
        }
        page
    }
}

/// The themes of the index, each with its first code.
const THEMES: [(Code, &str); 11] = [
    (Code::E0101, "Text and files"),
    (Code::E0201, "Names, shapes and sizes"),
    (Code::E0230, "Expressions of `.ten` programs"),
    (Code::E0242, "TeML"),
    (Code::W0301, "Warnings"),
    (Code::E0401, "Calls and arrays"),
    (Code::E0501, "Evaluation"),
    (Code::E0601, "The machine"),
    (Code::E0701, "What Certen checks of itself"),
    (Code::E0801, "Schedules"),
    (Code::E0901, "Derivations"),
];

/// The whole error index, as Markdown, by theme.
pub fn error_index() -> String {
    let mut index = "# Errors\n\n\
        Every message of Certen carries one of these codes; `certen explain-error E0208` prints its page. This file is\n\
        generated from `crates/certen-syntax/src/codes.rs` by `cargo xtask bless`.\n"
        .to_owned();
    for code in Code::ALL {
        if let Some((_, theme)) = THEMES.iter().find(|(first, _)| first == code) {
            index += &format!("\n# {theme}\n");
        }
        index += &format!("\n{}", code.page());
    }
    index
}
