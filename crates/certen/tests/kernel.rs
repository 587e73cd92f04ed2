//! Kernels: calls with arrays of any sizes, specialised and symbolic, with the same bits.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use certen::road::syntax::Code;
use certen::{Array, ElemType, InputType, Kernel, Module, Name, Options, SPECIALISED, Sizing, Texts};

type Outcome = Result<(), Box<dyn Error>>;

fn kernel(text: &str, sizing: Sizing) -> Result<Kernel, Box<dyn Error>> {
    Ok(Kernel::from_text("test.ten", text, &Options::default(), sizing)?)
}

/// Calls a kernel with named arrays and numbers.
fn call(kernel: &Kernel, arrays: &[(&str, &Array)], dims: &[(&str, i64)]) -> Result<Vec<Array>, Box<dyn Error>> {
    let given: Vec<InputType<'_>> = arrays.iter().map(|(n, a)| (Name::new(n), a.elem(), a.shape())).collect();
    let dims: Vec<(Name, i64)> = dims.iter().map(|(name, value)| (Name::new(name), *value)).collect();
    let prepared = kernel.prepare(&given, &dims)?;
    let inputs: Vec<_> = arrays.iter().map(|(_, array)| (*array).into()).collect();
    let mut results = Vec::new();
    for result in prepared.outputs() {
        results.push(Array::zeros(result.elem, &result.shape)?);
    }
    prepared.run(&inputs, &mut results.iter_mut().map(Into::into).collect::<Vec<_>>(), None)?;
    Ok(results)
}

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let domains = ["linalg", "learning", "fluids", "images", "physics"].map(|domain| folder.join(domain));
    let files = domains.iter().flat_map(|domain| fs::read_dir(domain).into_iter().flatten().flatten());
    let mut files: Vec<PathBuf> =
        files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "ten")).collect();
    files.sort();
    files
}

/// Sizes that satisfy a program's facts: the first that are found, from small ones.
fn sizes(module: &Module, round: usize) -> Option<Vec<i64>> {
    const PRIMES: [i64; 8] = [5, 7, 3, 2, 6, 4, 8, 9];
    let core = module.core();
    let choose = |shift: usize| -> Vec<i64> {
        (0..core.sizes.len()).map(|at| PRIMES[(at * at + at * shift + shift) % PRIMES.len()]).collect()
    };
    let fits = |sizes: &Vec<i64>| {
        let value = |name: Name| core.sizes.iter().position(|&n| n == name).map(|at| sizes[at]);
        core.facts.iter().all(|fact| fact.eval(&value).unwrap_or(false))
    };
    (0..200).map(choose).filter(fits).nth(round)
}

/// An array with elements that are no sums of few powers of two.
fn fractions(shape: &[usize]) -> Result<Array, Box<dyn Error>> {
    let value = |at: usize| 1.0 / (1 + (at * 7919) % 101) as f64;
    Ok(Array::from_vec(shape, (0..shape.iter().product()).map(value).collect::<Vec<f64>>())?)
}

/// Where small sizes decide how the elements of a batch are computed, one kernel serves every batch: full vectors of elements, a
/// rest of them, one, or none; with the bits of the program for all sizes.
#[test]
fn one_kernel_serves_every_batch() -> Outcome {
    let chain = "fn f(p: f64[n, n], u: f64[e, n, n]) -> f64[e, n, n] {
        let t = { [z, i, j] -> sum({ [a] -> p[i, a] * u[z, a, j] }) };
        { [z, i, j] -> sum({ [a] -> p[j, a] * t[z, i, a] }) }
    }";
    let (specialised, symbolic) = (kernel(chain, Sizing::Specialised)?, kernel(chain, Sizing::Symbolic)?);
    let mut served = HashSet::new();
    for n in [5, 7] {
        for e in [40, 1, 7, 8, 9, 15, 16, 17, 33, 64, 101] {
            let (p, u) = (fractions(&[n, n])?, fractions(&[e, n, n])?);
            let arrays = [("p", &p), ("u", &u)];
            assert!(call(&specialised, &arrays, &[])? == call(&symbolic, &arrays, &[])?, "{n} {e}");
            let given: Vec<InputType<'_>> = arrays.iter().map(|(n, a)| (Name::new(n), a.elem(), a.shape())).collect();
            served.insert(std::ptr::from_ref(specialised.prepare(&given, &[])?.module()));
        }
    }
    assert_eq!(served.len(), 2, "one for each n");
    Ok(())
}

/// What is no batch: a size that a second dimension has too, or that of a sum; and an order of products that depends on how large the
/// batch is. An empty one has no best order.
#[test]
fn what_is_no_batch_gets_code_of_its_own() -> Outcome {
    let texts = [
        "fn f(a: f64[e, e, k], b: f64[k, k]) -> f64[e, e, k] {
            { [z, i, j] -> sum({ [l] -> a[z, i, l] * b[l, j] }) }
        }",
        "fn f(a: f64[e, k, k], b: f64[e, k, k]) -> f64[k, k] {
            { [i, j] -> sum({ [z, l] -> a[z, i, l] * b[z, l, j] }) }
        }",
    ];
    for text in texts {
        let (specialised, symbolic) = (kernel(text, Sizing::Specialised)?, kernel(text, Sizing::Symbolic)?);
        let mut served = HashSet::new();
        for e in [24, 40] {
            let arrays = specialised.module()?.core().inputs.iter().map(|input| {
                let value = |name: Name| Some(if name.as_str() == "e" { e } else { 32 });
                Ok((input.name, fractions(&input.ty.shape_at(&value)?)?))
            });
            let arrays = arrays.collect::<Result<Vec<(Name, Array)>, Box<dyn Error>>>()?;
            let arrays: Vec<(&str, &Array)> = arrays.iter().map(|(name, array)| (name.as_str(), array)).collect();
            assert!(call(&specialised, &arrays, &[])? == call(&symbolic, &arrays, &[])?, "{e}: {text}");
            let given: Vec<InputType<'_>> = arrays.iter().map(|(n, a)| (Name::new(n), a.elem(), a.shape())).collect();
            served.insert(std::ptr::from_ref(specialised.prepare(&given, &[])?.module()));
        }
        assert_eq!(served.len(), 2, "{text}");
    }
    let ordered = "fn f(a: f64[e, m, k], b: f64[k, l], c: f64[l, n]) -> f64[e, m, n] {
        { [z, i, j] -> sum({ [p, q] -> a[z, i, p] * b[p, q] * c[q, j] }) }
    }";
    let (specialised, symbolic) = (kernel(ordered, Sizing::Specialised)?, kernel(ordered, Sizing::Symbolic)?);
    for e in [1, 300, 2, 0] {
        let (a, b, c) = (fractions(&[e, 3, 20])?, fractions(&[20, 30])?, fractions(&[30, 20])?);
        let arrays = [("a", &a), ("b", &b), ("c", &c)];
        assert!(call(&specialised, &arrays, &[])? == call(&symbolic, &arrays, &[])?, "{e}");
    }
    Ok(())
}

/// The order of three products depends on the sizes, and on nothing else: not on what was called before, nor on whether
/// numbers were put in.
#[test]
fn the_order_of_products_is_that_of_the_sizes() -> Outcome {
    let text = "fn f(a: f64[m, k], b: f64[k, l], c: f64[l, n]) -> f64[m, n] { { [i, j] -> sum({ [p, q] -> a[i, p] * b[p, q] * c[q, j] }) } }";
    let array = |rows: usize, columns: usize| fractions(&[rows, columns]);
    let (specialised, symbolic) = (kernel(text, Sizing::Specialised)?, kernel(text, Sizing::Symbolic)?);
    let late = kernel(text, Sizing::Specialised)?;
    for size in 0..SPECIALISED {
        let (a, b, c) = (array(size, 1)?, array(1, 1)?, array(1, 1)?);
        call(&late, &[("a", &a), ("b", &b), ("c", &c)], &[])?;
    }
    let mut orders = Vec::new();
    for [m, k, l, n] in [[2, 40, 30, 50], [50, 40, 30, 2], [20, 20, 20, 20]] {
        let (a, b, c) = (array(m, k)?, array(k, l)?, array(l, n)?);
        let arrays = [("a", &a), ("b", &b), ("c", &c)];
        let first = call(&specialised, &arrays, &[])?;
        assert!(call(&symbolic, &arrays, &[])? == first, "{m} {k} {l} {n}");
        assert!(call(&late, &arrays, &[])? == first, "{m} {k} {l} {n}");
        let given: Vec<InputType<'_>> = arrays.iter().map(|(n, a)| (Name::new(n), a.elem(), a.shape())).collect();
        orders.push(symbolic.prepare(&given, &[])?.module().rewritten()?.to_string());
    }
    assert!(orders[0] != orders[1] && orders[0] == orders[2], "{orders:?}");
    Ok(())
}

/// Every example gives the same bits with sizes as numbers as with symbolic ones.
#[test]
fn specialised_code_gives_the_same_bits() -> Outcome {
    let mut compared = 0;
    for path in examples() {
        let text = fs::read_to_string(&path)?;
        let function = path.file_stem().and_then(|stem| stem.to_str()).map(Name::new);
        let options = Options { function, ..Options::default() };
        let file = path.display().to_string();
        let made = |sizing| Kernel::from_text(&file, text.clone(), &options, sizing);
        let (specialised, symbolic) = (made(Sizing::Specialised)?, made(Sizing::Symbolic)?);
        let Ok(module) = symbolic.module() else { continue };
        let Some(sizes) = sizes(module, 0) else { continue };
        let core = module.core();
        let value = |name: Name| core.sizes.iter().position(|&n| n == name).map(|at| sizes[at]);
        let mut arrays = Vec::new();
        for (seed, input) in (1..).zip(&core.inputs) {
            arrays.push((input.name.as_str(), Array::random(input.ty.elem, &input.ty.shape_at(&value)?, seed)?));
        }
        let arrays: Vec<(&str, &Array)> = arrays.iter().map(|(name, array)| (*name, array)).collect();
        let dims: Vec<(&str, i64)> = core.sizes.iter().map(|name| name.as_str()).zip(sizes.iter().copied()).collect();
        let [first, second] = [&specialised, &symbolic].map(|kernel| call(kernel, &arrays, &dims));
        for (first, second) in first?.iter().zip(second?.iter()) {
            assert_eq!(first.bytes(), second.bytes(), "{file}");
        }
        compared += 1;
    }
    assert!(compared >= 50, "only {compared} examples were compared");
    Ok(())
}

/// So do sums that are too short for a tile or for lanes, at every length.
#[test]
fn short_sums_give_the_same_bits_for_all_sizes() -> Outcome {
    for text in [
        "fn f(a: f64[n], b: f64[n]) -> f64 { sum({ [k] -> a[k] * b[k] }) }",
        "fn f(a: f32[n, n], b: f32[n]) -> f32[n] { { [i] -> sum({ [k] -> a[i, k] * b[k] }) } }",
        "fn f(a: f64[n, n], b: f64[n]) -> f64[n] { { [i] -> sum({ [k] -> a[k, i] * b[k] }) } }",
        "fn f(a: f64[n, n], b: f64[n, n]) -> f64[n, n] { { [i, j] -> sum({ [k] -> a[i, k] * b[k, j] }) } }",
        "fn f(a: f64[n, n, n], b: f64[n, n]) -> f64[n, n] { { [i, j] -> sum({ [k, l] -> a[i, k, l] * b[l, j] }) } }",
    ] {
        let made = |sizing| Kernel::from_text("t.ten", text, &Options::default(), sizing);
        let symbolic = made(Sizing::Symbolic)?;
        for n in (1..8).chain([15, 16, 17, 33]) {
            let specialised = made(Sizing::Specialised)?;
            let core = symbolic.module()?.core();
            let shape = |ty: &certen::road::core::TensorType| vec![n; ty.rank()];
            let arrays =
                core.inputs.iter().zip(1..).map(|(input, seed)| {
                    Ok((input.name.as_str(), Array::random(input.ty.elem, &shape(&input.ty), seed)?))
                });
            let arrays = arrays.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
            let arrays: Vec<(&str, &Array)> = arrays.iter().map(|(name, array)| (*name, array)).collect();
            let (first, second) = (call(&specialised, &arrays, &[])?, call(&symbolic, &arrays, &[])?);
            assert_eq!(first[0].bytes(), second[0].bytes(), "n = {n}: {text}");
        }
    }
    Ok(())
}

#[test]
fn the_first_sizes_get_code_of_their_own() -> Outcome {
    let kernel = kernel("fn twice(x: f64[n]) -> f64[n] { x + x }", Sizing::Specialised)?;
    for n in 0..SPECIALISED + 3 {
        let x = Array::iota(ElemType::F64, &[n])?;
        let prepared = kernel.prepare(&[(Name::new("x"), ElemType::F64, &[n])], &[])?;
        assert_eq!(prepared.module().core().sizes.is_empty(), n < SPECIALISED, "n = {n}");
        let results = call(&kernel, &[("x", &x)], &[])?;
        let twice: Vec<f64> = (0..n).map(|x| 2.0 * x as f64).collect();
        assert_eq!(results[0].as_slice(), Some(&twice[..]));
    }
    Ok(())
}

/// Values of `size` parameters are sizes like others, also where ranks are open: they do not get code for ever.
#[test]
fn numbers_get_no_code_of_their_own_either() -> Outcome {
    let text = "fn shift(x: f64[s..., n], k: size) -> f64[s..., n] where k >= 0 { x + k }";
    let kernel = kernel(text, Sizing::Specialised)?;
    for k in 0..SPECIALISED + 3 {
        let prepared = kernel.prepare(&[(Name::new("x"), ElemType::F64, &[2, 3])], &[(Name::new("k"), k as i64)])?;
        assert_eq!(prepared.module().core().sizes.is_empty(), k < SPECIALISED, "k = {k}");
    }
    Ok(())
}

/// What a program imports is read once: a kernel does not change with its files, and can be made again without them.
#[test]
fn imports_are_read_once() -> Outcome {
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("library.ten");
    fs::write(&library, "import \"deep.ten\";\nfn twice(x: f64[s...]) -> f64[s...] { base() * x }")?;
    fs::write(folder.path().join("deep.ten"), "fn base() -> f64 { 2 }")?;
    let main = folder.path().join("main.ten").display().to_string();
    let text = "import \"library.ten\";\nimport \"none.ten\";\nfn main(x: f64[s...]) -> f64[s...] { twice(x) }";
    let missing = Kernel::from_text(&main, text, &Options::default(), Sizing::Symbolic).err().map(|f| f.to_string());
    assert!(missing.as_ref().is_some_and(|text| text.contains("there is no file")), "{missing:?}");
    let texts = Texts::read(main, text.replace("import \"none.ten\";\n", ""));
    assert_eq!(texts.imported().len(), 2);
    folder.close()?;
    let again = Texts::known(texts.name(), texts.text(), texts.imported().to_vec());
    let kernel = Kernel::new(again, &Options::default(), Sizing::Symbolic)?;
    let x = Array::from_vec(&[2], vec![1.0, 4.0])?;
    assert_eq!(call(&kernel, &[("x", &x)], &[])?[0].as_slice(), Some(&[2.0, 8.0][..]));
    Ok(())
}

#[test]
fn what_is_open_is_told_by_the_call() -> Outcome {
    let kernel = kernel("fn total(x: num[s...]) -> num { sum(x) }", Sizing::Specialised)?;
    assert_eq!(kernel.parameters().len(), 1);
    let numbers = Array::from_vec(&[2, 3], vec![1i32, 2, 3, 4, 5, 6])?;
    assert_eq!(call(&kernel, &[("x", &numbers)], &[])?[0].as_slice(), Some(&[21i32][..]));
    let floats = Array::from_vec(&[2, 1, 2], vec![1.5f32, 2.0, 3.0, 4.0])?;
    assert_eq!(call(&kernel, &[("x", &floats)], &[])?[0].as_slice(), Some(&[10.5f32][..]));
    Ok(())
}

#[test]
fn wrong_calls_are_refused() -> Outcome {
    let text = "fn product(A: f64[l, m], B: f64[m, n]) -> f64[l, n] where m >= 1 { A @ B }";
    let kernel = kernel(text, Sizing::Specialised)?;
    let code = |given: &[InputType<'_>]| kernel.prepare(given, &[]).err().map(|failure| failure.diagnostics()[0].code);
    let (a, b, f64) = (Name::new("A"), Name::new("B"), ElemType::F64);
    assert_eq!(code(&[(a, f64, &[2, 3]), (b, f64, &[3, 5])]), None);
    assert_eq!(code(&[(a, f64, &[2, 3])]), Some(Code::E0401));
    assert_eq!(code(&[(a, f64, &[2, 3]), (b, f64, &[3, 5]), (Name::new("C"), f64, &[])]), Some(Code::E0402));
    assert_eq!(code(&[(a, f64, &[2, 3]), (b, f64, &[4, 5])]), Some(Code::E0403));
    assert_eq!(code(&[(a, f64, &[2, 3, 4]), (b, f64, &[4, 5])]), Some(Code::E0403));
    assert_eq!(code(&[(a, f64, &[2, 3]), (b, ElemType::F32, &[3, 5])]), Some(Code::E0404));
    assert_eq!(code(&[(a, f64, &[2, 0]), (b, f64, &[0, 5])]), Some(Code::E0409));
    Ok(())
}
