//! The rewrites that scripts can name.

mod code;
mod generations;

use crate::rewrite::Rewrite;

/// Every rewrite.
pub fn rewrites() -> &'static [&'static Rewrite] {
    use std::sync::OnceLock;
    static ALL: OnceLock<Vec<&'static Rewrite>> = OnceLock::new();
    ALL.get_or_init(|| [generations::REWRITES, code::REWRITES].into_iter().flatten().collect())
}
