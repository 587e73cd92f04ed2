//! The way from a file to its kernels.

use certen_syntax::{Diagnostic, FileId, Sources};

use crate::apart::apart;
use crate::kernel::Kernel;
use crate::language::Language;
use crate::{cfdlang, script, taco, tc};

/// The kernels of a file, and what else its reader should know. It recurses as deeply as the text is nested, which is
/// limited; with Python, a large stack is wanted.
///
/// # Errors
/// If it is not in its language, or has a construct that the guard does not read.
pub fn read(
    sources: &Sources,
    file: FileId,
    language: Language,
) -> Result<(Vec<Kernel>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (mut kernels, notes) = match language {
        Language::Taco => taco::read(sources, file).map(|kernels| (kernels, Vec::new())),
        Language::Tc => tc::read(sources, file).map(|kernels| (kernels, Vec::new())),
        Language::Cfdlang => cfdlang::read(sources, file).map(|kernel| (vec![kernel], Vec::new())),
        Language::Python => script::read(sources, file),
    }?;
    kernels.iter_mut().for_each(apart);
    Ok((kernels, notes))
}
