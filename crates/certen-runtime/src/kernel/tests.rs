//! Kernels from hand-written C text: built, cached, refused, called.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use certen_core::ElemType;
use certen_syntax::Code;
use tempfile::TempDir;

use super::*;

type TestResult = Result<(), Box<dyn Error>>;

/// `c[i] = a[i] + k * b[i]` for i in 0..n.
fn vector_add(k: u32) -> String {
    format!(
        "#include <stdint.h>
const int32_t certen_abi = 2;
int32_t certen_call(const int64_t *sizes, void *const *buffers) {{
    const double *a = buffers[0], *b = buffers[1];
    double *c = buffers[2];
    for (int64_t i = 0; i < sizes[0]; i++) c[i] = a[i] + {k} * b[i];
    return 0;
}}
"
    )
}

fn vector_signature() -> Signature {
    let vector = TensorType::new(ElemType::F64, [Ix::var("n")]);
    Signature {
        sizes: vec![Name::new("n")],
        facts: Vec::new(),
        inputs: vec![vector.clone(), vector.clone()],
        outputs: vec![vector],
    }
}

/// A cache in a directory that goes away with the test.
struct TemporaryCache {
    _parent: TempDir,
    cache: Cache,
}

fn place() -> Result<TemporaryCache, Box<dyn Error>> {
    let parent = tempfile::tempdir()?;
    let cache = Cache::at(parent.path().join("cache"))?;
    Ok(TemporaryCache { _parent: parent, cache })
}

impl TemporaryCache {
    fn build(&self, c_text: &str) -> Result<NativeKernel, RuntimeError> {
        NativeKernel::build_with(Compiler::find()?, &self.cache, c_text, vector_signature())
    }

    /// The files and directories of the cache.
    fn files(&self) -> Result<Vec<PathBuf>, Box<dyn Error>> {
        fs::read_dir(self.cache.directory())?.map(|entry| Ok(entry?.path())).collect()
    }
}

/// Calls a kernel that should compute `a + k * b`.
fn check(kernel: &NativeKernel, k: u32) -> TestResult {
    let n = 1000;
    let a = Array::random(ElemType::F64, &[n], 1)?;
    let b = Array::random(ElemType::F64, &[n], 2)?;
    let mut outputs = kernel.signature().allocate_outputs(&[n as i64])?;
    kernel.call(&[n as i64], &[&a, &b], &mut outputs)?;
    let (a, b, c) = (a.as_slice::<f64>(), b.as_slice::<f64>(), outputs[0].as_slice::<f64>());
    let (a, b, c) = (a.unwrap_or_default(), b.unwrap_or_default(), c.unwrap_or_default());
    assert_eq!(c.len(), n);
    assert!((0..n).all(|i| c[i] == a[i] + f64::from(k) * b[i]));
    Ok(())
}

#[test]
fn the_second_build_is_a_hit() -> TestResult {
    let place = place()?;
    let first = place.build(&vector_add(1))?;
    assert!(first.compile_time().is_some());
    check(&first, 1)?;
    let second = place.build(&vector_add(1))?;
    assert_eq!(second.compile_time(), None);
    check(&second, 1)?;
    let other = place.build(&vector_add(2))?;
    assert!(other.compile_time().is_some());
    check(&other, 2)?;
    // Two entries, and no traces of the builds.
    let files = place.files()?;
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files.iter().all(|file| file.extension().is_some_and(|ending| ending == "so")));
    // A kernel outlives its entry, and the cache.
    drop(place);
    check(&second, 1)
}

#[test]
fn damaged_entries_are_built_again() -> TestResult {
    let place = place()?;
    drop(place.build(&vector_add(1))?);
    let entry = place.files()?.remove(0);
    let whole = fs::read(&entry)?;
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 0xff;
    for damaged in [&[][..], b"not a shared object", &whole[..whole.len() / 2], &changed] {
        fs::write(&entry, damaged)?;
        let kernel = place.build(&vector_add(1))?;
        assert!(kernel.compile_time().is_some());
        check(&kernel, 1)?;
        drop(kernel);
        assert_eq!(place.build(&vector_add(1))?.compile_time(), None);
    }
    Ok(())
}

#[test]
fn several_threads_build_and_call_the_same_kernel() -> TestResult {
    let place = place()?;
    let text = vector_add(3);
    let build = || place.build(&text).map_err(|error| error.to_string());
    let kernels: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a panic".into()))).collect()
    });
    assert_eq!(place.files()?.len(), 1);
    let kernels = kernels.into_iter().collect::<Result<Vec<_>, _>>()?;
    let kernel = &kernels[0];
    let all_right = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| check(kernel, 3).is_ok())).collect();
        threads.into_iter().all(|thread| thread.join().unwrap_or(false))
    });
    assert!(all_right);
    Ok(())
}

#[test]
fn the_least_recently_used_entries_go_first() -> TestResult {
    let mut place = place()?;
    drop(place.build(&vector_add(1))?);
    let size = fs::metadata(&place.files()?[0])?.len();
    place.cache = Cache::at(place.cache.directory())?.with_max_bytes(2 * size + size / 2);
    fs::write(place.cache.directory().join("notes.txt"), "not ours")?;
    drop(place.build(&vector_add(2))?);
    drop(place.build(&vector_add(1))?);
    drop(place.build(&vector_add(3))?);
    assert_eq!(place.files()?.len(), 3);
    assert_eq!(place.build(&vector_add(1))?.compile_time(), None);
    assert_eq!(place.build(&vector_add(3))?.compile_time(), None);
    assert!(place.build(&vector_add(2))?.compile_time().is_some());
    // Nothing is kept, and everything works.
    place.cache = Cache::at(place.cache.directory())?.with_max_bytes(0);
    check(&place.build(&vector_add(4))?, 4)?;
    assert_eq!(place.files()?.len(), 1);
    Ok(())
}

#[test]
#[cfg(unix)]
fn a_compiler_that_went_away_is_no_compiler() -> TestResult {
    let place = place()?;
    let program = place.cache.directory().join("my-cc");
    let real = Compiler::find()?.real_path();
    fs::write(&program, format!("#!/bin/sh\nexec {} \"$@\"\n", real.display()))?;
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let compiler = Compiler::at(&program)?;
    fs::remove_file(&program)?;
    let built = NativeKernel::build_with(&compiler, &place.cache, &vector_add(1), vector_signature());
    assert_eq!(built.map(drop).map_err(|error| error.code()), Err(Code::E0601));
    assert_eq!(place.files()?.len(), 0);
    Ok(())
}

#[test]
fn wrong_texts_are_refused_and_leave_nothing() -> TestResult {
    let place = place()?;
    let abi_1 = vector_add(1).replace("certen_abi = 2", "certen_abi = 1");
    let no_entry = vector_add(1).replace("certen_call", "other");
    let unresolved = vector_add(1).replace("return 0", "extern int nowhere(void); return nowhere()");
    for (text, says) in [
        ("int main(void) { return 0 }", "expected"),
        ("int x;", "certen_abi"),
        (&abi_1, "the calling convention 1, this program has 2"),
        (&no_entry, "certen_call"),
        (&unresolved, "nowhere"),
    ] {
        match place.build(text) {
            Err(error) => {
                assert_eq!(error.code(), Code::E0602);
                assert!(error.to_string().contains(says), "{error}");
            }
            Ok(_) => return Err(format!("accepted: {text}").into()),
        }
        assert_eq!(place.files()?.len(), 0);
    }
    Ok(())
}

#[test]
fn a_cache_that_cannot_be_used_is_an_error_and_one_that_cannot_be_written_is_not() -> TestResult {
    let parent = tempfile::tempdir()?;
    let file = parent.path().join("file");
    fs::write(&file, "")?;
    for directory in [file.clone(), file.join("below")] {
        let error = Cache::at(&directory).map(drop).map_err(|error| (error.code(), error.to_string()));
        let Err((Code::E0603, text)) = error else { return Err(format!("{error:?}").into()) };
        assert!(text.contains(&directory.display().to_string()), "{text}");
    }
    // It was there, and is gone when it is written to: the kernel works, and is not kept.
    let place = place()?;
    fs::remove_dir(place.cache.directory())?;
    check(&place.build(&vector_add(1))?, 1)?;
    assert!(!place.cache.directory().exists());
    Ok(())
}

#[test]
fn arguments_are_checked_before_the_call() -> TestResult {
    let place = place()?;
    let mut kernel = place.build(&vector_add(1))?;
    kernel.signature.facts = vec![Cond::le(&Ix::from(1), &Ix::var("n"))?];
    let good = Array::zeros(ElemType::F64, &[3])?;
    let short = Array::zeros(ElemType::F64, &[2])?;
    let single = Array::zeros(ElemType::F32, &[3])?;
    let matrix = Array::zeros(ElemType::F64, &[3, 1])?;
    let call = |sizes: &[i64], inputs: &[&Array], output: &Array| {
        let copy = output.try_clone().map_err(|error| RuntimeError::Array { which: "a copy".into(), error })?;
        kernel.call(sizes, inputs, &mut [copy])
    };
    call(&[3], &[&good, &good], &good)?;
    let refused = |result: Result<(), RuntimeError>, code, says: &str| {
        let result = result.map_err(|error| (error.code(), error.to_string()));
        assert!(matches!(&result, Err((found, text)) if *found == code && text.contains(says)), "{result:?}");
    };
    refused(call(&[], &[&good, &good], &good), Code::E0403, "0 sizes, but has 1");
    refused(call(&[3], &[&good], &good), Code::E0403, "1 inputs, but has 2");
    refused(call(&[3], &[&good, &short], &good), Code::E0403, "input 2: expected the shape [3], found [2]");
    refused(call(&[3], &[&matrix, &good], &good), Code::E0403, "input 1: expected the shape [3], found [3, 1]");
    refused(call(&[3], &[&good, &single], &good), Code::E0404, "input 2: expected elements of type f64, found f32");
    refused(call(&[3], &[&good, &good], &short), Code::E0403, "output 1: ");
    refused(call(&[2], &[&good, &good], &good), Code::E0403, "expected the shape [2]");
    refused(call(&[0], &[&good, &good], &good), Code::E0409, "the sizes n = 0 do not satisfy");
    kernel.signature.facts.clear();
    assert!(kernel.call(&[-1], &[&good, &good], &mut [good.try_clone()?]).is_err_and(|e| e.code() == Code::E0403));
    Ok(())
}

#[test]
fn statuses_have_meanings() -> TestResult {
    let place = place()?;
    let text = "#include <stdint.h>
const int32_t certen_abi = 2;
int32_t certen_call(const int64_t *sizes, void *const *buffers) { (void)buffers; return (int32_t)sizes[0]; }
";
    let signature = Signature { sizes: vec![Name::new("k")], facts: vec![], inputs: vec![], outputs: vec![] };
    let kernel = NativeKernel::build_with(Compiler::find()?, &place.cache, text, signature)?;
    let code = |k| kernel.call(&[k], &[], &mut []).map_err(|error| error.code());
    assert_eq!(code(0), Ok(()));
    assert_eq!(code(1), Err(Code::E0604));
    assert_eq!(code(5), Err(Code::E0408));
    assert_eq!(code(7), Err(Code::E0602));
    Ok(())
}

#[test]
fn truth_values_stay_truth_values() -> TestResult {
    let place = place()?;
    let text = "#include <stdint.h>
const int32_t certen_abi = 2;
int32_t certen_call(const int64_t *sizes, void *const *buffers) { *(uint8_t *)buffers[0] = (uint8_t)sizes[0]; return 0; }
";
    let outputs = vec![TensorType::scalar(ElemType::Bool)];
    let signature = Signature { sizes: vec![Name::new("k")], facts: vec![], inputs: vec![], outputs };
    let kernel = NativeKernel::build_with(Compiler::find()?, &place.cache, text, signature)?;
    let mut outputs = kernel.signature().allocate_outputs(&[1])?;
    kernel.call(&[1], &[], &mut outputs)?;
    assert_eq!(outputs[0].as_slice::<bool>(), Some(&[true][..]));
    assert!(kernel.call(&[2], &[], &mut outputs).is_err_and(|error| error.code() == Code::E0602));
    assert_eq!(outputs[0].as_slice::<bool>(), Some(&[false][..]));
    Ok(())
}

/// Transposed, reversed, broadcast, every second, not aligned: as if the elements were dense.
#[test]
fn arrays_with_strides() -> TestResult {
    let place = place()?;
    let kernel = place.build(&vector_add(10))?;
    let numbers: Vec<u8> = (1..=6).flat_map(|x| f64::from(x).to_ne_bytes()).collect();
    let mut shifted = vec![0];
    shifted.extend(&numbers);
    let view = |offset, stride| View::new(ElemType::F64, &numbers, offset, &[3], &[stride]);
    let whole = View::new(ElemType::F64, &shifted[1..], 0, &[3], &[1])?;
    let cases = [
        (view(0, 2)?, view(5, -1)?, [61.0, 53.0, 45.0]),
        (view(3, 1)?, view(1, 0)?, [24.0, 25.0, 26.0]),
        (whole.clone(), whole, [11.0, 22.0, 33.0]),
    ];
    for (a, b, expected) in cases {
        for (offset, stride, positions) in [(0, 1, [0, 1, 2]), (1, 2, [1, 3, 5]), (4, -1, [4, 3, 2])] {
            let mut out = [7.0f64; 6].map(f64::to_ne_bytes).concat();
            let view = ViewMut::new(ElemType::F64, &mut out, offset, &[3], &[stride])?;
            kernel.call_strided(&[3], &[a.clone(), b.clone()], &mut [view])?;
            let mut wanted = [7.0f64; 6];
            positions.into_iter().zip(expected).for_each(|(at, value)| wanted[at] = value);
            assert_eq!(out, wanted.map(f64::to_ne_bytes).concat());
        }
    }
    let mut out = numbers.clone();
    let twice = ViewMut::new(ElemType::F64, &mut out, 0, &[3], &[0])?;
    let error = kernel.call_strided(&[3], &[view(0, 1)?, view(0, 1)?], &mut [twice]);
    assert!(error.is_err_and(|error| error.code() == Code::E0403));
    assert_eq!(out, numbers);
    let short = ViewMut::new(ElemType::F64, &mut out, 0, &[2], &[1])?;
    assert!(kernel.call_strided(&[3], &[view(0, 1)?, view(0, 1)?], &mut [short]).is_err());
    // Nothing is read or written where nothing is.
    let (empty, mut none) = (View::new(ElemType::F64, &[], 0, &[0], &[5])?, []);
    let nothing = ViewMut::new(ElemType::F64, &mut none, 0, &[0], &[-5])?;
    kernel.call_strided(&[0], &[empty.clone(), empty], &mut [nothing])?;
    Ok(())
}

#[test]
fn kernels_can_be_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<NativeKernel>();
}
