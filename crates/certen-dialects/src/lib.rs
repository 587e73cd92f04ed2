//! Front doors: the languages of the papers, one folder each.
//!
//! A front door reads its dialect, types it by the paper's rules and elaborates it into Core. Anything that more than
//! one front door needs lives in Core, not here.

pub mod teil;
