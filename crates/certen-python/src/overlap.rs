//! Whether two elements of an array share bytes, as those of a sliding window or of a repeated row do. Written to, such an
//! array keeps one of the two, so no result can be in it.
//!
//! Mostly the strides alone tell: each step is longer than all shorter steps together reach. Where they do not, the
//! elements are laid out and compared; an array of which that would take too much memory counts as one that overlaps.

/// More elements are not laid out.
const MOST_LAID_OUT: usize = 1 << 22;

/// Whether elements of so many bytes, at these distances in bytes, overlap.
pub(crate) fn overlaps_itself(shape: &[usize], strides: &[isize], bytes: usize) -> bool {
    if shape.contains(&0) {
        return false;
    }
    let mut steps: Vec<(usize, usize)> =
        strides.iter().map(|stride| stride.unsigned_abs()).zip(shape.iter().copied()).filter(|s| s.1 > 1).collect();
    steps.sort_unstable();
    let mut reach = bytes as u128;
    let mut are_apart = true;
    for (step, size) in &steps {
        are_apart &= *step as u128 >= reach;
        reach += *step as u128 * (*size as u128 - 1);
    }
    if are_apart {
        return false;
    }
    let count = steps.iter().fold(1usize, |count, (_, size)| count.saturating_mul(*size));
    // More elements than bytes that they reach.
    if count > MOST_LAID_OUT || (count as u128).saturating_mul(bytes as u128) > reach {
        return true;
    }
    let mut places: Vec<u128> = vec![0];
    for (step, size) in steps {
        places = places.iter().flat_map(|at| (0..size as u128).map(move |i| at + i * step as u128)).collect();
    }
    places.sort_unstable();
    places.windows(2).any(|pair| pair[1] - pair[0] < bytes as u128)
}

#[cfg(test)]
mod tests {
    use super::overlaps_itself;

    #[test]
    fn elements_that_share_bytes() {
        for (shape, strides) in [
            (&[3, 4][..], &[32, 8][..]),
            (&[4, 3], &[8, 32]),
            (&[3, 4], &[-32, -8]),
            (&[5], &[16]),
            (&[1, 4], &[0, 8]),
            (&[0, 4], &[0, 0]),
            (&[], &[]),
            // Neither step is longer than the other reaches, and yet no two elements meet.
            (&[3, 2], &[16, 24]),
        ] {
            assert!(!overlaps_itself(shape, strides, 8), "{shape:?} {strides:?}");
        }
        for (shape, strides) in [
            (&[3][..], &[0][..]),
            (&[3, 4], &[0, 8]),
            (&[3, 3], &[8, 8]),
            (&[3, 3], &[8, -8]),
            (&[5], &[4]),
            (&[4, 3], &[16, 24]),
            (&[1 << 40, 2], &[8, 8]),
        ] {
            assert!(overlaps_itself(shape, strides, 8), "{shape:?} {strides:?}");
        }
    }
}
