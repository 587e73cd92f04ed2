//! The entry points: what the caller says is checked before anything is computed with it.
//!
//! `NAME(sizes…, inputs…, outputs…)` takes dense arrays, `NAME_strided` also those with signed strides. The second does
//! the work, in the standard floating-point environment and in this order:
//!
//! 1. **Magnitude.** While the kernel was printed, everything that it computes with indices and sizes was bounded by
//!    one polynomial in the magnitudes of the sizes ([`Bound`]): indices, flat positions, bounds of loops, facts, and
//!    the byte counts of all arrays. The entry computes this polynomial in `double` and refuses the sizes if it is
//!    above half of `PTRDIFF_MAX`. The polynomial has no subtraction and no factor below 1, so rounding changes it by
//!    far less than the other half, and below it no 64-bit operation on indices can overflow. That makes the following
//!    steps safe, too.
//! 2. **Facts.** The `where` clause, and that no dimension is negative.
//! 3. **Arrays.** The bytes of each, from its strides. None may be missing, no element of an output may occur twice,
//!    and no output may share bytes with another array. Then `restrict` is true in the kernel: what it writes is
//!    reached through one pointer; inputs are only read, so that they may be the same.
//! 4. **Copies.** What is not dense, or not aligned, is copied to a dense array, and outputs back afterwards.

use std::collections::HashSet;

use certen_core::Parameter;
use certen_index::{Bound, Cond, Facts, Ix, Verdict};
use certen_syntax::{Diagnostic, Name};

use crate::emitter::{Emitter, EntryNames};
use crate::environment::entered;
use crate::helpers::c_type;
use crate::index::too_large;
use crate::text::{filled, signature};

/// The bound above which sizes are refused, as in `PTRDIFF_MAX / 2` on machines of 64 bits.
const LIMIT: f64 = (1u64 << 62) as f64;

/// Programs with more arrays than this describe them on the heap.
const MAX_ARRAYS_ON_STACK: usize = 64;

/// With more facts than this, those that others imply are checked like the rest.
const MAX_COMPARED_FACTS: usize = 16;

/// What the entry points return: the name's ending and what it says. The number is the place in this list.
pub(crate) const ERRORS: [(&str, &str); 6] = [
    ("OK", "all is well"),
    ("NO_MEMORY", "there is not enough memory"),
    ("BAD_SIZES", "a size is excluded by the program's where clause or makes a dimension negative"),
    ("NULL_POINTER", "the pointer of an array that has elements is null"),
    ("OVERLAP", "an output overlaps another array, or has an element twice"),
    ("TOO_LARGE", "sizes or strides are so large that an index or a number of bytes would not fit"),
];

pub(crate) const MAGNITUDE: &str = r"
/* The magnitude of a size, at least 1. */
static double certen_magnitude(int64_t size) {
    return size > 1 ? (double)size : size < -1 ? -(double)size : 1.0;
}
";

/// What every program needs to check and copy the caller's arrays; `RANK` is the largest rank, at least 1.
const SUPPORT: &str = r"
/* An array of the caller. */
struct certen_array {
    const void *in; /* what the kernel reads, if it is an input */
    void *out; /* what the kernel writes, if it is an output */
    const int64_t *strides; /* in elements; NULL for a dense array */
    size_t bytes; /* of an element */
    int rank;
    int64_t shape[RANK];
    int64_t step[RANK]; /* the strides, whether given or not */
    uintptr_t first; /* its lowest address */
    size_t length; /* how many bytes lie from there to its end; 0 if there are no elements */
    void *original, *copy; /* set if the kernel works on a copy */
};

static int64_t certen_count(const struct certen_array *a) {
    int64_t count = 1;
    for (int d = 0; d < a->rank; d++) count *= a->shape[d];
    return count;
}

/* Finds out where an array lies; returns an error if it cannot be used. */
static int32_t certen_locate(struct certen_array *a, int is_output) {
    const void *data = is_output ? a->out : a->in;
    int64_t low = 0, high = 0, dense = 1;
    double reach = 1.0;
    if (certen_count(a) == 0) return 0;
    if (data == NULL) return 3;
    for (int d = a->rank - 1; d >= 0; d--) {
        a->step[d] = a->shape[d] == 1 ? 0 : a->strides == NULL ? dense : a->strides[d];
        dense *= a->shape[d];
        if (a->step[d] != 0) reach += (double)(a->shape[d] - 1) * certen_magnitude(a->step[d]);
    }
    if (!(reach * (double)a->bytes <= (double)(PTRDIFF_MAX / 2))) return 5;
    for (int d = 0; d < a->rank; d++) {
        int64_t far = (a->shape[d] - 1) * a->step[d];
        if (far < 0) low += far; else high += far;
    }
    a->first = (uintptr_t)data + (uintptr_t)low * a->bytes;
    a->length = (size_t)(high - low + 1) * a->bytes;
    /* Elements are different if each step is longer than all shorter steps together can reach. */
    for (int d = 0; is_output && d < a->rank; d++) {
        int64_t own = a->step[d] < 0 ? -a->step[d] : a->step[d], others = 0;
        if (a->shape[d] == 1) continue;
        for (int e = 0; e < a->rank; e++) {
            int64_t step = a->step[e] < 0 ? -a->step[e] : a->step[e];
            if (step < own || (step == own && e < d)) others += (a->shape[e] - 1) * step;
        }
        if (own <= others) return 4;
    }
    return 0;
}

/* Whether the kernel can use an array as it is. */
static int certen_is_dense(const struct certen_array *a) {
    int64_t dense = 1;
    for (int d = a->rank - 1; d >= 0; d--) {
        if (a->shape[d] != 1 && a->step[d] != dense) return 0;
        dense *= a->shape[d];
    }
    return a->first % a->bytes == 0;
}

static int certen_overlap(const struct certen_array *a, const struct certen_array *b) {
    if (a->length == 0 || b->length == 0) return 0;
    return a->first <= b->first ? b->first - a->first < a->length : a->first - b->first < b->length;
}

/* Copies elements that lie at some distance from each other, in bytes. */
static void certen_copy_row(
    char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, ptrdiff_t count, size_t bytes) {
    for (ptrdiff_t i = 0; i < count; i++) {
        if (bytes == 8) memcpy(to + i*to_step, from + i*from_step, 8);
        else if (bytes == 4) memcpy(to + i*to_step, from + i*from_step, 4);
        else to[i*to_step] = from[i*from_step];
    }
}

/* Copies between an array with strides and a dense one, row by row. */
static void certen_copy(const struct certen_array *a, char *dense, char *to, const char *from) {
    int64_t at[RANK] = {0};
    int rows = a->rank > 0 ? a->rank - 1 : 0;
    ptrdiff_t count = a->rank > 0 ? (ptrdiff_t)a->shape[rows] : 1;
    ptrdiff_t bytes = (ptrdiff_t)a->bytes, step = (a->rank > 0 ? (ptrdiff_t)a->step[rows] : 1) * bytes;
    for (;;) {
        ptrdiff_t offset = 0;
        for (int d = 0; d < rows; d++) offset += (ptrdiff_t)(at[d] * a->step[d]) * bytes;
        if (to == NULL) certen_copy_row(dense, bytes, from + offset, step, count, a->bytes);
        else certen_copy_row(to + offset, step, dense, bytes, count, a->bytes);
        int d = rows;
        while (d > 0 && ++at[d - 1] == a->shape[d - 1]) at[--d] = 0;
        if (d == 0) return;
        dense += count * bytes;
    }
}

/* Checks the caller's arrays, inputs first, and copies those that are not dense; returns an error. */
static int32_t certen_begin(struct certen_array *arrays, int inputs, int count) {
    for (int i = 0; i < count; i++) {
        int32_t error = certen_locate(&arrays[i], i >= inputs);
        if (error != 0) return error;
    }
    for (int i = inputs; i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (certen_overlap(&arrays[i], &arrays[j])) return 4;
        }
    }
    for (int i = 0; i < count; i++) {
        struct certen_array *a = &arrays[i];
        if (a->length == 0 || certen_is_dense(a)) continue;
        a->copy = certen_alloc(certen_count(a), a->bytes);
        if (a->copy == NULL) return 1;
        if (i < inputs) {
            certen_copy(a, a->copy, NULL, a->in);
            a->in = a->copy;
        } else {
            a->original = a->out;
            a->out = a->copy;
        }
    }
    return 0;
}

/* Copies outputs back if all is well, and frees the copies; returns the error that it was given. */
static int32_t certen_end(struct certen_array *arrays, int count, int32_t error) {
    for (int i = 0; i < count; i++) {
        struct certen_array *a = &arrays[i];
        if (error == 0 && a->original != NULL) certen_copy(a, a->copy, a->original, NULL);
        free(a->copy);
    }
    return error;
}
";

impl Emitter<'_> {
    fn parameters(&self) -> impl Iterator<Item = (bool, &Parameter)> {
        let program = self.program;
        program.inputs.iter().map(|p| (false, p)).chain(program.outputs.iter().map(|p| (true, p)))
    }

    /// `int64_t n`
    pub(crate) fn size_parameters(&self) -> Vec<String> {
        self.program.sizes.iter().map(|size| format!("int64_t {}", self.names.get(*size))).collect()
    }

    /// `const double *x`
    pub(crate) fn array_parameters(&self, restrict: &str) -> Vec<String> {
        let pointer = |(is_output, parameter): (bool, &Parameter)| {
            let kind = if is_output { "" } else { "const " };
            format!("{kind}{} *{restrict}{}", c_type(parameter.ty.elem), self.names.get(parameter.name))
        };
        self.parameters().map(pointer).collect()
    }

    /// What `int32_t NAME(…)` begins with.
    pub(crate) fn dense_signature(&self) -> String {
        signature(
            &format!("int32_t {}", self.entries.dense),
            &[self.size_parameters(), self.array_parameters("")].concat(),
        )
    }

    /// What `int32_t NAME_strided(…)` begins with.
    pub(crate) fn strided_signature(&self, strides: &[String]) -> String {
        signature(&format!("int32_t {}", self.entries.strided), &self.strided_parameters(strides))
    }

    fn strided_parameters(&self, strides: &[String]) -> Vec<String> {
        let arrays = self.array_parameters("");
        let pairs = arrays.into_iter().zip(strides).flat_map(|(a, s)| [a, format!("const int64_t *{s}")]);
        [self.size_parameters(), pairs.collect()].concat()
    }

    /// The name of the strides of each array.
    pub(crate) fn stride_names(&mut self) -> Vec<String> {
        let names: Vec<String> = self.parameters().map(|(_, p)| self.names.get(p.name).to_owned()).collect();
        names.into_iter().map(|name| self.names.fresh(&format!("{name}_strides"))).collect()
    }

    /// The function that bounds sizes, if it is needed.
    pub(crate) fn magnitude(&self, checks: &str) -> &'static str {
        if checks.contains("certen_magnitude") { MAGNITUDE } else { "" }
    }

    /// The functions that check and copy arrays, if there are any.
    pub(crate) fn support(&self, checks: &str) -> String {
        match self.parameters().map(|(_, parameter)| parameter.ty.rank()).max() {
            Some(rank) => MAGNITUDE.to_owned() + &SUPPORT.replace("RANK", &rank.max(1).to_string()) + "\n",
            None => self.magnitude(checks).to_owned() + "\n",
        }
    }

    /// The entry points, and what the error codes mean.
    pub(crate) fn entry_points(
        &mut self,
        strides: &[String],
        checks: &str,
        fails: bool,
        used: &[bool],
    ) -> Result<String, Diagnostic> {
        let program = self.program;
        let EntryNames { strided, inside, error, .. } = self.entries.clone();
        let sizes: Vec<String> = program.sizes.iter().map(|size| self.names.get(*size).to_owned()).collect();
        let body = checks.to_owned() + &self.checked_call(&sizes, strides, fails, used)?;
        let words: HashSet<&str> = words(&body).collect();
        let unused = sizes.iter().filter(|size| !words.contains(size.as_str()));
        let unused: String = unused.map(|size| format!("    (void){size};\n")).collect();
        let start = signature(&format!("CERTEN_NOINLINE int32_t {inside}"), &self.strided_parameters(strides));
        let mut text = format!("{start} {{\n{unused}{body}");

        let arrays: Vec<&str> = self.parameters().map(|(_, p)| self.names.get(p.name)).collect();
        let pairs = arrays.iter().zip(strides).flat_map(|(array, strides)| [array.to_string(), strides.clone()]);
        let arguments: Vec<String> = sizes.iter().cloned().chain(pairs).collect();
        text += &self.strided_signature(strides);
        text += &entered(&filled(&format!("        {inside}("), &arguments, ", ", ");", 12));
        text.push('\n');

        let pairs = arrays.iter().flat_map(|array| [array.to_string(), "NULL".into()]);
        let arguments: Vec<String> = sizes.iter().cloned().chain(pairs).collect();
        text += &self.dense_signature();
        text += &format!(" {{\n{}\n}}\n\n", filled(&format!("    return {strided}("), &arguments, ", ", ");", 8));

        text += &format!("const char *{error}(int32_t code) {{\n    switch (code) {{\n");
        for (code, (_, meaning)) in ERRORS.iter().enumerate() {
            text += &format!("    case {code}: return \"{meaning}\";\n");
        }
        text += "    default: return \"unknown error\";\n    }\n}\n";
        Ok(text)
    }

    /// The caller's arrays are described, checked and copied, and the kernel is called with what came of them.
    fn checked_call(
        &mut self,
        sizes: &[String],
        strides: &[String],
        fails: bool,
        used: &[bool],
    ) -> Result<String, Diagnostic> {
        let (program, kernel) = (self.program, self.entries.kernel.clone());
        let inputs = program.inputs.len();
        let count = inputs + program.outputs.len();
        let arrays = self.names.fresh("arrays");
        let field = |at: usize| format!("{arrays}[{at}].{}", if at < inputs { "in" } else { "out" });
        let arguments = sizes.iter().cloned().chain((0..count).map(field)).zip(used);
        let arguments: Vec<String> = arguments.filter(|(_, used)| **used).map(|(text, _)| text).collect();
        if count == 0 {
            let start = if fails { format!("    return {kernel}(") } else { format!("    {kernel}(") };
            let end = if fails { "\n}\n\n" } else { "\n    return 0;\n}\n\n" };
            return Ok(filled(&start, &arguments, ", ", ");", 8) + end);
        }
        let on_heap = count > MAX_ARRAYS_ON_STACK;
        let mut text = match on_heap {
            true => format!(
                "    struct certen_array *{arrays} = calloc({count}, sizeof *{arrays});\n    \
                 if ({arrays} == NULL) return 1;\n"
            ),
            false => format!("    struct certen_array {arrays}[{count}] = {{\n"),
        };
        let parameters = program.inputs.iter().chain(&program.outputs);
        for (at, (parameter, strides)) in parameters.zip(strides).enumerate() {
            let c = self.names.get(parameter.name).to_owned();
            let field = if at < inputs { "in" } else { "out" };
            let shape: Vec<String> =
                parameter.ty.shape.iter().map(|size| Ok(self.ix(size)?.text())).collect::<Result<_, Diagnostic>>()?;
            let shape = if shape.is_empty() { "1".to_owned() } else { shape.join(", ") };
            let value = format!(
                ".{field} = {c}, .strides = {strides}, .bytes = sizeof *{c}, .rank = {}, .shape = {{{shape}}}",
                parameter.ty.rank()
            );
            text += &match on_heap {
                true => format!("    {arrays}[{at}] = (struct certen_array){{{value}}};\n"),
                false => format!("        {{{value}}},\n"),
            };
        }
        let status = self.names.fresh("error");
        text += if on_heap { "" } else { "    };\n" };
        text += &format!("    int32_t {status} = certen_begin({arrays}, {inputs}, {count});\n");
        let assigned = if fails { format!("{status} = ") } else { String::new() };
        let call = filled(&format!("    if ({status} == 0) {assigned}{kernel}("), &arguments, ", ", ");", 8);
        text += &format!("{call}\n");
        let end = format!("certen_end({arrays}, {count}, {status})");
        Ok(text
            + &match on_heap {
                true => format!("    {status} = {end};\n    free({arrays});\n    return {status};\n}}\n\n"),
                false => format!("    return {end};\n}}\n\n"),
            })
    }

    /// What the sizes have to satisfy.
    pub(crate) fn checks(&mut self) -> Result<String, Diagnostic> {
        let program = self.program;
        // Conditions that are checked are computed, too.
        let facts = self.facts_to_check()?;
        for fact in &facts {
            self.limit.join(&fact.bound(&Bound::name));
        }
        program.inputs.iter().chain(&program.outputs).for_each(|parameter| self.bound_bytes(&parameter.ty));
        let mut text = String::new();
        let limit = std::mem::take(&mut self.limit);
        let smallest: f64 = limit.products().map(|(_, factor)| factor).sum();
        if smallest > LIMIT {
            return Err(too_large());
        }
        if limit.products().any(|(names, _)| !names.is_empty()) {
            let most = self.names.fresh("most");
            let products: Vec<String> = self.limit_products(&limit);
            text += "    /* No index, size or number of bytes below is larger than this. */\n";
            text += &filled(&format!("    const double {most} = "), &products, " + ", ";", 8);
            text += &format!("\n    if (!({most} <= (double)(PTRDIFF_MAX / 2))) return 5;\n");
        }
        if !facts.is_empty() {
            let conditions: Vec<String> =
                facts.iter().map(|fact| self.compound(fact)).collect::<Result<_, Diagnostic>>()?;
            text += &filled("    if (!(", &conditions, " && ", ")) return 2;", 8);
            text.push('\n');
        }
        Ok(text)
    }

    fn limit_products(&mut self, limit: &Bound) -> Vec<String> {
        let program = self.program;
        let position = |name: &Option<Name>| name.and_then(|name| program.sizes.iter().position(|size| *size == name));
        let mut products: Vec<(Vec<usize>, f64)> = limit
            .products()
            .map(|(names, factor)| {
                let mut at: Vec<usize> = names.iter().map(|name| position(name).unwrap_or(usize::MAX)).collect();
                at.sort_unstable();
                (at, factor)
            })
            .collect();
        // The largest products first, as a person would write a polynomial.
        products.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        let largest = || {
            let all = program.sizes.iter().map(|size| format!("certen_magnitude({})", self.names.get(*size)));
            all.collect::<Vec<_>>().join(" + ")
        };
        let product = |(names, factor): &(Vec<usize>, f64)| {
            let factor = (*factor != 1.0 || names.is_empty()).then(|| format!("{factor:?}"));
            let name = |at: &usize| match program.sizes.get(*at) {
                Some(size) => format!("certen_magnitude({})", self.names.get(*size)),
                None => format!("({})", largest()),
            };
            factor.into_iter().chain(names.iter().map(name)).collect::<Vec<_>>().join("*")
        };
        products.iter().map(product).collect()
    }

    /// The facts that are checked: those of the program that no other implies, and that dimensions are not negative.
    fn facts_to_check(&self) -> Result<Vec<Cond>, Diagnostic> {
        let mut facts = essential(&self.program.facts);
        let mut known = Facts::new();
        facts.iter().for_each(|fact| known.assume(fact.clone()));
        for (_, parameter) in self.parameters() {
            for size in parameter.ty.shape.iter().filter(|size| size.as_constant().is_none_or(|size| size < 0)) {
                let fact = Cond::le(&Ix::from(0), size).map_err(|_| too_large())?;
                if facts.contains(&fact) || matches!(known.prove(&fact), Verdict::Yes) {
                    continue;
                }
                known.assume(fact.clone());
                facts.push(fact);
            }
        }
        Ok(facts)
    }

    /// A condition as a part of `&&`.
    fn compound(&mut self, cond: &Cond) -> Result<String, Diagnostic> {
        let text = self.cond(cond)?;
        Ok(if matches!(cond, Cond::Or(any) if any.len() > 1) { format!("({text})") } else { text })
    }
}

/// The facts without those that the others imply; what is left implies all.
pub(crate) fn essential(facts: &[Cond]) -> Vec<Cond> {
    let mut left = facts.to_vec();
    if left.len() > MAX_COMPARED_FACTS {
        left.dedup();
        return left;
    }
    let mut at = 0;
    while at < left.len() {
        let mut others = Facts::new();
        left.iter().enumerate().filter(|(other, _)| *other != at).for_each(|(_, fact)| others.assume(fact.clone()));
        if matches!(others.prove(&left[at]), Verdict::Yes) {
            left.remove(at);
        } else {
            at += 1;
        }
    }
    left
}

/// The words of a text in C.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}
