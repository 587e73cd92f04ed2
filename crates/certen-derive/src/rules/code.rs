//! Rewrites over whole contexts, which patterns cannot say.

use crate::rewrite::Rewrite;

pub(crate) const REWRITES: &[Rewrite] = &[];
