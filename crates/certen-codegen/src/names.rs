//! Names in C: the user's own wherever C allows it.
//!
//! A name that C or its library uses gets an underscore after it; one that begins with `certen_`, an underscore or a digit
//! gets a `v` before it; any character that C does not know becomes `_`. Different names stay different.

use std::collections::{HashMap, HashSet};

use certen_syntax::Name;

/// Keywords of C and C++; macros that compilers predefine or that the headers define which we include; functions of the
/// library that generated code calls or that a function of the same name would collide with; names of standard headers.
const RESERVED: &str = "
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for fortran friend goto if
    inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned
    using virtual void volatile wchar_t while xor xor_eq linux unix i386 vax NULL NAN INFINITY HUGE_VAL HUGE_VALF
    HUGE_VALL EOF errno assert offsetof stdin stdout stderr EXIT_SUCCESS EXIT_FAILURE RAND_MAX MB_CUR_MAX
    math_errhandling MATH_ERRNO MATH_ERREXCEPT signgam M_E M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2
    M_SQRT1_2 M_LN2 M_LN10 M_LOG2E M_LOG10E MAXFLOAT FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO FP_ILOGB0
    FP_ILOGBNAN BIG_ENDIAN BUFSIZ BYTE_ORDER CLOCKS_PER_SEC FD_SETSIZE FILENAME_MAX FOPEN_MAX LITTLE_ENDIAN
    L_ctermid L_tmpnam NFDBITS PDP_ENDIAN P_tmpdir SEEK_CUR SEEK_END SEEK_SET TIMER_ABSTIME TIME_UTC TMP_MAX
    WCONTINUED WEXITED WNOHANG WNOWAIT WSTOPPED WUNTRACED size_t ptrdiff_t ssize_t off_t pid_t time_t clock_t div_t
    ldiv_t lldiv_t float_t double_t max_align_t va_list FILE int8_t int16_t int32_t int64_t uint8_t uint16_t
    uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t uint ushort ulong u_char u_short u_int u_long main abort
    abs access acos acosf acosh acosl aligned_alloc alloca asin asinf asinh asinl at_quick_exit atan atan2 atan2f
    atanf atanh atanl atexit atof atoi atol atoll bcmp bcopy bind bsearch bzero cabs cacos calloc carg cbrt cbrtf
    ccos ceil ceilf ceill cexp cimag clock clog close conj connect copysign copysignf cos cosf cosh coshf coshl cosl
    cpow cproj creal csin csqrt ctan ctime dcgettext dgettext difftime div drem dup env erf erfc erff execl execv
    exit exp exp10 exp10f exp2 exp2f expf expl expm1 expm1f fabs fabsf fabsl fclose fdim fdimf feof fflush ffs ffsl
    fgetc floor floorf floorl fma fmaf fmal fmax fmaxf fmin fminf fmod fmodf fmodl fopen fork fpclassify fprintf
    fputc fputs fread free frexp frexpf fscanf fseek ftell fwrite gamma gammaf getc getchar getenv getpid gets
    gettext gmtime hypot hypotf ilogb imaxabs index isalnum isalpha isascii isblank iscntrl isdigit isfinite isgraph
    isgreater isinf isless islower isnan isnormal isprint ispunct isspace isunordered isupper isxdigit j0 j1 jn jnf
    kill labs ldexp ldexpf ldexpl ldiv lgamma lgammaf link listen llabs lldiv llrint llround localtime log log10
    log10f log1p log1pf log2 log2f logb logf logl lrint lround lseek malloc memchr memcmp memcpy memmove mempcpy
    memset mktime modf modff nan nanf nearbyint nearbyintf nextafter nexttoward open perror pipe pow pow10 powf powl
    printf putc putchar puts qsort quick_exit raise rand random read realloc remainder remove remquo rename rewind
    rindex rint rintf round roundf roundl sbrk scalb scalbln scalbn scanf select send setjmp longjmp signal signbit
    significand sin sincos sincosf sinf sinh sinhf sinl sleep snprintf socket sprintf sqrt sqrtf sqrtl srand sscanf
    stat stpcpy strcat strchr strcmp strcpy strcspn strdup strlen strncat strncmp strncpy strpbrk strrchr strspn
    strstr strtod strtof strtok strtol strtoll system tan tanf tanh tanhf tanl tgamma tgammaf time tmpfile toascii
    tolower toupper trunc truncf ungetc unlink vprintf wait write y0 y1 yn ynf ctype complex fenv inttypes iso646
    limits locale math stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath
    threads uchar wchar wctype unistd
";

/// The C names of a program's names.
pub(crate) struct CNames {
    names: HashMap<Name, String>,
    taken: HashSet<String>,
    counters: HashMap<String, u64>,
}

impl CNames {
    /// No names yet.
    pub(crate) fn new() -> CNames {
        CNames { names: HashMap::new(), taken: HashSet::new(), counters: HashMap::new() }
    }

    /// Gives C names to these names, together: a name that is legal in C keeps it, whatever the others become.
    pub(crate) fn add(&mut self, names: impl IntoIterator<Item = Name>) {
        let reserved: HashSet<&str> = RESERVED.split_ascii_whitespace().collect();
        let mut others = Vec::new();
        for name in names {
            if self.names.contains_key(&name) {
                continue;
            }
            let text = name.as_str();
            let mut chars = text.chars();
            let legal = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
                && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !is_ours(text)
                && !is_macro(text)
                && !reserved.contains(text);
            if legal && self.taken.insert(text.to_owned()) {
                self.names.insert(name, text.to_owned());
            } else {
                others.push(name);
            }
        }
        for name in others {
            if self.names.contains_key(&name) {
                continue;
            }
            let mut text: String =
                name.as_str().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            if !text.starts_with(|c: char| c.is_ascii_alphabetic()) || is_ours(&text) {
                text.insert(0, 'v');
            }
            if reserved.contains(text.as_str()) || is_macro(&text) {
                text.push('_');
            }
            let text = self.fresh(&text);
            self.names.insert(name, text);
        }
    }

    /// The C name of something whose name others may have, too: those get another one.
    pub(crate) fn own(&mut self, name: Name) -> String {
        self.add([name]);
        self.names.remove(&name).unwrap_or_else(|| name.as_str().to_owned())
    }

    /// The C name of a name.
    pub(crate) fn get(&self, name: Name) -> &str {
        self.names.get(&name).map_or(name.as_str(), String::as_str)
    }

    /// A C name that nothing else has: `base`, `base_1`, ….
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        if self.taken.insert(base.to_owned()) {
            return base.to_owned();
        }
        self.numbered(base)
    }

    /// A C name that nothing else has: `base_1`, `base_2`, ….
    pub(crate) fn numbered(&mut self, base: &str) -> String {
        let counter = self.counters.entry(base.to_owned()).or_default();
        loop {
            *counter += 1;
            let text = format!("{base}_{counter}");
            if self.taken.insert(text.clone()) {
                return text;
            }
        }
    }
}

/// Whether a name looks like one of our helpers or macros.
fn is_ours(text: &str) -> bool {
    text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("certen_"))
}

/// Whether a name looks like one of the many macros of `stdint.h`, `time.h` and `fenv.h`.
fn is_macro(text: &str) -> bool {
    let of_integers = |(stem, ending): (&str, &str)| {
        matches!(ending, "MIN" | "MAX" | "WIDTH" | "C")
            && (stem.starts_with("INT")
                || stem.starts_with("UINT")
                || matches!(stem, "PTRDIFF" | "SIZE" | "SIG_ATOMIC" | "WCHAR" | "WINT"))
    };
    text.starts_with("CLOCK_") || text.starts_with("FE_") || text.rsplit_once('_').is_some_and(of_integers)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    #[test]
    fn names_that_c_does_not_allow_are_changed_and_stay_different() {
        let mut names = CNames::new();
        let given = ["exp", "exp_", "_x", "v_x", "certen_min_f64", "i.o", "i_o", "x", "double", "é"].map(Name::new);
        names.add(given);
        let texts = given.map(|name| names.get(name).to_owned());
        assert_eq!(texts, ["exp__1", "exp_", "v_x_1", "v_x", "vcerten_min_f64", "i_o_1", "i_o", "x", "double_", "v_"]);
        assert_eq!((names.numbered("t"), names.numbered("t")), ("t_1".into(), "t_2".into()));
    }

    /// The headers that texts of this crate include.
    fn headers(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                headers(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let includes = text.split("#include <").skip(1).filter_map(|rest| rest.split_once('>'));
            found.extend(includes.map(|(header, _)| header.to_owned()).filter(|header| header.ends_with(".h")));
        }
    }

    #[test]
    fn no_name_is_a_macro_of_a_header() {
        let mut found = BTreeSet::new();
        headers(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        assert!(["math.h", "stdint.h", "stdio.h", "time.h"].iter().all(|header| found.contains(*header)), "{found:?}");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("all.c");
        let include = |header: &String| format!("#if __has_include(<{header}>)\n#include <{header}>\n#endif\n");
        std::fs::write(&file, found.iter().map(include).collect::<String>()).unwrap();
        for (compiler, dialect) in [("cc", "gnu11"), ("cc", "c11"), ("clang", "gnu11"), ("clang", "c11")] {
            let mut command = Command::new(compiler);
            let Ok(output) = command.args(["-dM", "-E", &format!("-std={dialect}")]).arg(&file).output() else {
                assert_eq!(compiler, "clang", "cc is not installed");
                continue;
            };
            let macros = String::from_utf8(output.stdout).unwrap();
            assert!(macros.contains("#define EXIT_FAILURE "), "{}", String::from_utf8_lossy(&output.stderr));
            for line in macros.lines() {
                let name = line.split(' ').nth(1).unwrap();
                if !name.starts_with('_') && !name.contains('(') {
                    let mut names = CNames::new();
                    names.add([Name::new(name)]);
                    assert_ne!(names.get(Name::new(name)), name, "{compiler} -std={dialect}: {line}");
                }
            }
        }
    }
}
