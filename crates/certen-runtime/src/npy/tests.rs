//! Array files: round trips, files of other programs, and files that lie.

use std::io::Cursor;

use npyz::WriterBuilder;
use proptest::prelude::*;

use super::*;

type TestResult = Result<(), Box<dyn std::error::Error>>;

const SHAPES: [&[usize]; 7] = [&[], &[0], &[5], &[2, 0, 3], &[3, 4], &[2, 3, 4], &[1, 7, 1]];

/// A `.npy` file of version 1.0 with this header, padded as NumPy does, and this data.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{header:<width$}\n", width = length - 1).bytes());
    bytes.extend(data);
    bytes
}

/// Reads what would be a file.
fn parse(bytes: &[u8]) -> Result<Array, NpyError> {
    read_array(&mut Cursor::new(bytes), bytes.len() as u64).map_err(|fault| fault.at("read", Path::new("test.npy")))
}

/// Why a file is refused; it must be its own fault.
fn refusal(bytes: &[u8]) -> String {
    match parse(bytes) {
        Err(NpyError::NotAnArray { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

fn written(array: &Array) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_array(&mut bytes, array)?;
    Ok(bytes)
}

#[test]
fn files_come_back_as_they_were() -> TestResult {
    let directory = tempfile::tempdir()?;
    let (npy, npz) = (directory.path().join("a.npy"), directory.path().join("a.npz"));
    for elem in ElemType::ALL {
        for shape in SHAPES {
            let array = Array::random(elem, shape, 5)?;
            write_npy(&npy, &array)?;
            assert_eq!(read_npy(&npy)?, array);
            let other = Array::iota(elem, shape)?;
            write_npz(&npz, &[("x", &array), ("y", &other)])?;
            assert_eq!(read_npz(&npz, "x")?, array);
            assert_eq!(read_npz(&npz, "y.npy")?, other);
        }
    }
    // Replaced each time, and nothing else is left.
    assert_eq!(fs::read_dir(directory.path())?.count(), 2);
    Ok(())
}

/// What is written is what NumPy writes.
#[test]
fn the_bytes_are_those_of_numpy() -> TestResult {
    let array = Array::from_vec(&[3], vec![1i32, -1, 2])?;
    let expected =
        npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", &[1, 0, 0, 0, 255, 255, 255, 255, 2, 0, 0, 0]);
    assert_eq!(written(&array)?, expected);
    let header = |shape: &[usize]| -> Result<String, Box<dyn std::error::Error>> {
        let bytes = written(&Array::zeros(ElemType::Bool, shape)?)?;
        assert_eq!((bytes.len() - shape.iter().product::<usize>()) % 64, 0);
        Ok(String::from_utf8_lossy(&bytes[10..])
            .split('(')
            .nth(1)
            .unwrap_or_default()
            .split(')')
            .next()
            .unwrap_or_default()
            .into())
    };
    assert_eq!(header(&[])?, "");
    assert_eq!(header(&[2, 0])?, "2, 0");
    Ok(())
}

#[test]
fn another_implementation_agrees() -> TestResult {
    // Theirs, read by us.
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&[2, 3]).writer(&mut bytes).begin_nd()?;
    writer.extend([1.5f64, 2.0, 3.0, 4.0, 5.0, 6.25])?;
    writer.finish()?;
    let array = Array::from_vec(&[2, 3], vec![1.5, 2.0, 3.0, 4.0, 5.0, 6.25])?;
    assert_eq!(parse(&bytes.into_inner())?, array);
    // Ours, read by them.
    for shape in SHAPES {
        let array = Array::random(ElemType::I64, shape, 9)?;
        let bytes = written(&array)?;
        let read = npyz::NpyFile::new(&bytes[..])?;
        assert_eq!(read.shape(), shape.iter().map(|&size| size as u64).collect::<Vec<_>>());
        assert_eq!(read.into_vec::<i64>()?, array.as_slice::<i64>().unwrap_or_default());
    }
    Ok(())
}

#[test]
fn byte_orders() -> TestResult {
    let expected = Array::from_vec(&[2], vec![1.5f32, -2.0])?;
    let big: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    assert_eq!(parse(&npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", &big))?, expected);
    let expected = Array::from_vec(&[], vec![-2i64])?;
    let big = (-2i64).to_be_bytes();
    assert_eq!(parse(&npy("{'descr': '>i8', 'fortran_order': False, 'shape': (), }", &big))?, expected);
    for order in ["|", "<", ">", "="] {
        let bytes = npy(&format!("{{'descr': '{order}u1', 'fortran_order': False, 'shape': (2,)}}"), &[3, 4]);
        assert_eq!(parse(&bytes)?, Array::from_vec(&[2], vec![3u8, 4])?);
    }
    Ok(())
}

#[test]
fn memory_orders() -> TestResult {
    let columns = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", &[0, 3, 1, 4, 2, 5]);
    assert_eq!(parse(&columns)?, Array::iota(ElemType::U8, &[2, 3])?);
    // Element (i, j, k) of a 2 x 3 x 4 array is at i + 2 j + 6 k.
    let data: Vec<u8> = (0..24).flat_map(|at: i32| (at % 2 * 100 + at / 2 % 3 * 10 + at / 6).to_le_bytes()).collect();
    let array = parse(&npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }", &data))?;
    let expected = (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..4).map(move |k| 100 * i + 10 * j + k)));
    assert_eq!(array, Array::from_vec(&[2, 3, 4], expected.collect::<Vec<i32>>())?);
    for shape in ["()", "(1, 1)", "(1,)"] {
        let bytes = npy(&format!("{{'descr': '|u1', 'fortran_order': True, 'shape': {shape}, }}"), &[7]);
        assert_eq!(parse(&bytes)?.bytes(), [7]);
    }
    Ok(())
}

#[test]
fn versions_and_spellings() -> TestResult {
    let expected = Array::from_vec(&[2], vec![true, false])?;
    for header in [
        "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }",
        "{\"shape\":(2L,),\"descr\":\"|b1\",\"fortran_order\":False}",
        "  { 'fortran_order' : True , 'shape' : ( 2 , ) , 'descr' : '|b1' , }  ",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (2)}",
    ] {
        let one = npy(header, &[1, 0]);
        assert_eq!(parse(&one)?, expected);
        for version in [2, 3] {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([version, 0]);
            bytes.extend((header.len() as u32).to_le_bytes());
            bytes.extend(header.bytes());
            bytes.extend([1, 0]);
            assert_eq!(parse(&bytes)?, expected);
        }
    }
    // A shape that does not fit into the header of version 1.0.
    let array = Array::zeros(ElemType::U8, &[1; 30_000])?;
    let bytes = written(&array)?;
    assert_eq!(bytes[6], 2);
    assert_eq!(parse(&bytes)?, array);
    Ok(())
}

#[test]
fn other_types_are_refused_by_name() {
    for (descr, says) in [
        ("'<c16'", "`<c16`, complex128"),
        ("'<f2'", "`<f2`, float16"),
        ("'<u4'", "`<u4`, uint32"),
        ("'<u8'", "`<u8`, uint64"),
        ("'|i1'", "`|i1`, int8"),
        ("'<U5'", "`<U5`, strings"),
        ("'|S3'", "`|S3`, byte strings"),
        ("'|O'", "`|O`, Python objects"),
        ("'|V8'", "structured"),
        ("'<M8[ns]'", "datetime64"),
        ("[('x', '<f4')]", "structured (`[('x', '<f4')]"),
        ("''", "type ``"),
        ("'é'", "type `é`"),
        ("'|f8'", "no byte order"),
        ("'f8'", "`f8`"),
    ] {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}");
        let why = refusal(&npy(&header, &[0; 8]));
        assert!(why.contains(says), "{descr}: {why}");
    }
}

#[test]
fn headers_that_lie_are_refused() {
    for (shape, says) in [
        ("(1000000000000000000,)", "has 8000000000000000000 bytes of data, but the file has 8"),
        ("(4294967296, 4294967296)", "has more than 2^64 bytes"),
        ("(99999999999999999999999,)", "a size below 2^64"),
        ("(-1,)", "a size at byte"),
        ("(1.0,)", "`)` at byte"),
        ("(2,)", "f64[2] has 16 bytes of data, but the file has 8"),
        ("()x", "`}` at byte"),
        ("(0,)", "f64[0] has 0 bytes of data, but the file has 8"),
        ("((1,),)", "a size at byte"),
        ("1", "`(` at byte"),
        ("(1,", "a size at byte"),
    ] {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
        let why = refusal(&npy(&header, &[0; 8]));
        assert!(why.contains(says), "{shape}: {why}");
    }
    for (header, says) in [
        ("", "`{` at byte"),
        ("{}", "lacks one of the keys"),
        ("{'descr': '<f8', 'descr': '<f8'}", "twice"),
        ("{'descr': '<f8', 'order': 1}", "unknown key `order`"),
        ("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", "`True` or `False`"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x", "the end of the header"),
        ("{'descr", "a string that ends"),
    ] {
        let why = refusal(&npy(header, &[0; 8]));
        assert!(why.contains(says), "{header}: {why}");
    }
    let brackets = format!("{{'descr': {}", "[".repeat(60_000));
    assert!(refusal(&npy(&brackets, &[])).contains("structured"));
    let claims_4_gib = [&MAGIC[..], &[2, 0, 255, 255, 255, 255]].concat();
    assert!(refusal(&claims_4_gib).contains("a header of 4294967295 bytes"));
    assert!(refusal(&[&MAGIC[..], &[4, 0, 0, 0]].concat()).contains("version 4.0"));
    assert!(refusal(b"PK\x03\x04 not an array").contains("does not begin"));
    let bools = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", &[1, 2]);
    assert!(refusal(&bools).contains("neither 0 nor 1"));
}

#[test]
fn every_truncation_is_refused() -> TestResult {
    let bytes = written(&Array::iota(ElemType::F64, &[2, 2])?)?;
    for length in 0..bytes.len() {
        refusal(&bytes[..length]);
        // The length may also be known, and the data end early.
        let read = read_array(&mut Cursor::new(&bytes[..length]), bytes.len() as u64);
        assert!(matches!(read, Err(Fault::NotAnArray(_))), "{length}");
    }
    refusal(&[&bytes[..], &[0]].concat());
    Ok(())
}

#[test]
fn larger_than_memory_is_said_before_reading() -> TestResult {
    // A sparse file: 2^42 bytes that take no room.
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("sparse.npy");
    let header = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4398046511104,), }", &[]);
    fs::write(&path, &header)?;
    if File::options().write(true).open(&path)?.set_len(header.len() as u64 + (1 << 42)).is_err() {
        return Ok(()); // This file system has no files of that size.
    }
    assert_eq!(read_npy(&path).map_err(|error| error.code()), Err(Code::E0408));
    Ok(())
}

#[test]
fn what_is_not_a_file_is_refused() -> TestResult {
    let directory = tempfile::tempdir()?;
    let missing = directory.path().join("missing.npy");
    assert_eq!(read_npy(&missing).map_err(|error| error.code()), Err(Code::E0405));
    assert_eq!(read_npz(&missing, "x").map_err(|error| error.code()), Err(Code::E0405));
    assert_eq!(read_npy(directory.path()).map_err(|error| error.code()), Err(Code::E0405));
    let array = Array::zeros(ElemType::F64, &[2])?;
    let text = write_npy(directory.path(), &array).map_err(|error| error.to_string());
    assert_eq!(text, Err(format!("cannot write {}: it exists and is not a regular file", directory.path().display())));
    let nowhere = directory.path().join("no/such/directory.npy");
    assert_eq!(write_npy(nowhere, &array).map_err(|error| error.code()), Err(Code::E0603));
    // A failure in the middle leaves nothing, and what was there stays.
    let path = directory.path().join("a.npz");
    write_npz(&path, &[("x", &array)])?;
    assert!(write_npz(&path, &[("y", &array), ("y", &array)]).is_err());
    assert_eq!(read_npz(&path, "x")?, array);
    assert_eq!(fs::read_dir(directory.path())?.count(), 1);
    Ok(())
}

/// An archive with one deflated entry `x.npy` of these bytes.
fn deflated(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("x.npy", SimpleFileOptions::default().compression_method(CompressionMethod::Deflated))?;
    archive.write_all(bytes)?;
    Ok(archive.finish()?.into_inner())
}

#[test]
fn archives() -> TestResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("a.npz");
    let array = Array::iota(ElemType::I64, &[30, 30])?;
    let whole = deflated(&written(&array)?)?;
    fs::write(&path, &whole)?;
    assert_eq!(read_npz(&path, "x")?, array);
    let missing = read_npz(&path, "y").map_err(|error| error.to_string());
    assert_eq!(missing, Err(format!("{} is not an array: it has no array `y`; it has `x`", path.display())));
    assert_eq!(read_npy(&path).map_err(|error| error.code()), Err(Code::E0405));

    // Cut anywhere, it is refused.
    for length in (0..whole.len()).step_by(7) {
        fs::write(&path, &whole[..length])?;
        assert_eq!(read_npz(&path, "x").map_err(|error| error.code()), Err(Code::E0405), "{length}");
    }
    // Changed anywhere, it is refused or was not changed where it matters.
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x41;
        fs::write(&path, &changed)?;
        match read_npz(&path, "x") {
            Ok(read) => assert_eq!(read, array, "{at}"),
            Err(error) => assert_eq!(error.code(), Code::E0405, "{at}: {error}"),
        }
    }
    Ok(())
}

/// An entry that claims another size than it has: the archive's directory is edited.
#[test]
fn archives_that_lie() -> TestResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("a.npz");
    let header = |count: u64| npy(&format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({count},), }}"), &[]);
    let claim = |content: &[u8], size: u32| -> TestResult {
        let mut bytes = deflated(content)?;
        let central = bytes.windows(4).rposition(|four| four == b"PK\x01\x02").ok_or("no directory")?;
        bytes[central + 24..central + 28].copy_from_slice(&size.to_le_bytes());
        Ok(fs::write(&path, bytes)?)
    };
    // A header of 3 GB with the right claim of size, and next to no data.
    let promise = 3_000_000_000;
    claim(&header(promise), header(promise).len() as u32 + promise as u32)?;
    let error = read_npz(&path, "x").map_err(|error| error.to_string());
    assert!(error.as_ref().is_err_and(|text| text.contains("which it cannot hold")), "{error:?}");
    // More data than the directory says, and less.
    let content = [header(1000), vec![7; 2000]].concat();
    claim(&content, header(1000).len() as u32 + 1000)?;
    assert_eq!(read_npz(&path, "x").map_err(|error| error.code()), Err(Code::E0405));
    let content = [header(1000), vec![7; 500]].concat();
    claim(&content, header(1000).len() as u32 + 1000)?;
    assert_eq!(read_npz(&path, "x").map_err(|error| error.code()), Err(Code::E0405));
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
        let _ = parse(&[&MAGIC[..], &[1, 0], &bytes].concat());
        let _ = parse(&npy(&String::from_utf8_lossy(&bytes), &[0; 8]));
    }

    #[test]
    fn any_small_change_gives_an_answer(at in 0usize..144, to in any::<u8>()) {
        let mut bytes = npy("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 2), }", &[0; 16]);
        prop_assert_eq!(bytes.len(), 144);
        bytes[at] = to;
        let _ = parse(&bytes);
    }

    /// Headers made of the right tokens in the wrong order.
    #[test]
    fn any_tokens_give_an_answer(tokens in prop::collection::vec(
        prop::sample::select(vec![
            "{", "}", "(", ")", "[", "]", ",", ":", "'descr'", "'fortran_order'", "'shape'", "'<f8'", "'", "True",
            "False", "3", "0", "18446744073709551615", "18446744073709551616", "-", " ", "L",
        ]),
        0..30,
    )) {
        let _ = parse(&npy(&tokens.concat(), &[0; 24]));
    }

    #[test]
    fn shapes_come_back(shape in prop::collection::vec(0usize..5, 0..5), seed in any::<u64>()) {
        for elem in ElemType::ALL {
            let array = Array::random(elem, &shape, seed)?;
            prop_assert_eq!(parse(&written(&array)?)?, array);
        }
    }
}
