//! Memory for the buffers of kernels, kept between calls.
//!
//! A kernel takes its buffers when it is called and gives them back before it returns. Memory of some size that comes fresh
//! from the system is filled with zeros, a page at a time, when it is first touched: for a kernel of a few milliseconds
//! that is much of its time. So each thread keeps what its kernels gave back, up to a bound, and takes from that first.
//! Large buffers ask for huge pages.
//!
//! Guarantees: memory from [`take`] is aligned to 64 bytes, is the caller's alone until it is given back to [`give`], and
//! holds nothing in particular.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::slice;

use crate::memory::{HUGE_FROM, ask_for_huge_pages};

/// What generated code gets: where its buffers come from.
#[repr(C)]
pub(crate) struct Memory {
    take: unsafe extern "C" fn(usize) -> *mut c_void,
    give: unsafe extern "C" fn(*mut c_void),
}

/// The memory of the calling thread.
pub(crate) static MEMORY: Memory = Memory { take, give };

/// Less than this is the allocator's: it does not ask the system each time.
const LEAST_KEPT: usize = 128 << 10;

/// What a thread keeps at most, in bytes and in blocks.
const MOST_KEPT: usize = 64 << 20;
const MOST_BLOCKS: usize = 16;

const HUGE_PAGE: usize = 2 << 20;

/// Before each block: its layout has to be known when it is given back. As long as the alignment of what follows.
const HEADER: usize = 64;

/// A block that is not in use.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// New memory for so many bytes after the header; none if there is not enough.
    fn new(bytes: usize) -> Option<Block> {
        let size = bytes.checked_add(HEADER)?;
        let alignment = if size >= HUGE_FROM { HUGE_PAGE } else { HEADER };
        let layout = Layout::from_size_align(size, alignment).ok()?.pad_to_align();
        // SAFETY: the layout is not empty, it has room for the header.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        // SAFETY: it was just allocated with so many bytes.
        unsafe { ask_for_huge_pages(start.as_ptr(), layout.size()) };
        Some(Block { start, layout })
    }

    /// How many bytes a kernel can use.
    fn room(&self) -> usize {
        self.layout.size() - HEADER
    }

    /// What comes after the header, which notes the layout.
    fn into_use(self) -> *mut c_void {
        let block = ManuallyDrop::new(self);
        // SAFETY: a block has room for its header, which is large and aligned enough for a layout.
        unsafe {
            block.start.cast::<Layout>().write(block.layout);
            block.start.as_ptr().add(HEADER).cast()
        }
    }

    /// The block of which this is the part after the header.
    ///
    /// # Safety
    /// `used` comes from [`Block::into_use`], and nothing uses it any more.
    unsafe fn out_of_use(used: NonNull<c_void>) -> Block {
        // SAFETY: the header is before what `into_use` returned, and holds the layout.
        unsafe {
            let start = used.cast::<u8>().sub(HEADER);
            Block { start, layout: start.cast::<Layout>().read() }
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it with this layout, and a block in use is no `Block`.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The blocks that a thread keeps, the oldest first.
#[derive(Default)]
struct Kept {
    blocks: Vec<Block>,
    bytes: usize,
}

impl Kept {
    /// The smallest block that is large enough, unless half of it would be unused.
    fn take(&mut self, bytes: usize) -> Option<Block> {
        let fits = |block: &Block| (bytes..=bytes.saturating_mul(2)).contains(&block.room());
        let fitting = self.blocks.iter().enumerate().filter(|(_, block)| fits(block));
        let (at, _) = fitting.min_by_key(|(_, block)| block.room())?;
        let block = self.blocks.remove(at);
        self.bytes -= block.room();
        Some(block)
    }

    /// Keeps a block, and frees the oldest where that is too much.
    fn give(&mut self, block: Block) {
        if block.room() > MOST_KEPT {
            return;
        }
        self.bytes += block.room();
        self.blocks.push(block);
        while self.bytes > MOST_KEPT || self.blocks.len() > MOST_BLOCKS {
            self.bytes -= self.blocks.remove(0).room();
        }
    }
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// Memory for so many bytes, or null. Generated code calls this.
unsafe extern "C" fn take(bytes: usize) -> *mut c_void {
    // What a block of this size would have room for.
    let room = bytes.checked_next_multiple_of(HEADER).unwrap_or(bytes);
    let kept = match room >= LEAST_KEPT {
        // A thread that is ending keeps nothing any more.
        true => KEPT.try_with(|kept| kept.borrow_mut().take(bytes)).ok().flatten(),
        false => None,
    };
    kept.or_else(|| Block::new(bytes)).map_or(ptr::null_mut(), Block::into_use)
}

/// Takes memory back, or null. Generated code calls this.
///
/// # Safety
/// The memory comes from [`take`], and nothing uses it any more.
unsafe extern "C" fn give(used: *mut c_void) {
    let Some(used) = NonNull::new(used) else { return };
    // SAFETY: by the contract of this function.
    let block = unsafe { Block::out_of_use(used) };
    if block.room() >= LEAST_KEPT {
        // Where the thread is ending, the block is freed with the closure.
        let _ = KEPT.try_with(|kept| kept.borrow_mut().give(block));
    }
}

/// Memory of the calling thread for so many values, which are not there yet.
pub(crate) struct Scratch<T> {
    start: NonNull<MaybeUninit<T>>,
    length: usize,
}

impl<T: Copy> Scratch<T> {
    /// Ends the process if there is no memory, as `Vec` does.
    pub(crate) fn new(length: usize) -> Scratch<T> {
        let layout = Layout::array::<T>(length).unwrap_or(Layout::new::<T>());
        Scratch::try_new(length).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// None if there is no memory.
    pub(crate) fn try_new(length: usize) -> Option<Scratch<T>> {
        const { assert!(align_of::<T>() <= HEADER) };
        let layout = Layout::array::<T>(length).ok()?;
        // SAFETY: it may be called with any size.
        let start = NonNull::new(unsafe { take(layout.size()) })?;
        Some(Scratch { start: start.cast(), length })
    }

    pub(crate) fn elements(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the memory is for so many elements, aligned for them, and nothing else has it.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Where the first element is.
    pub(crate) fn pointer(&self) -> *const T {
        self.start.as_ptr().cast()
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: it was taken, and nothing uses it any more.
        unsafe { give(self.start.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bytes: usize) -> *mut u8 {
        // SAFETY: it may be called with any size.
        let memory: *mut u8 = unsafe { take(bytes) }.cast();
        assert!(!memory.is_null() && memory.addr().is_multiple_of(64));
        // SAFETY: so many bytes are ours.
        unsafe { memory.write_bytes(7, bytes) };
        memory
    }

    fn given(memory: *mut u8) {
        // SAFETY: it comes from `take`, and is given back once.
        unsafe { give(memory.cast()) }
    }

    fn kept() -> (usize, usize) {
        KEPT.with_borrow(|kept| (kept.blocks.len(), kept.bytes))
    }

    #[test]
    fn what_was_given_back_is_taken_again() {
        for bytes in [2 * LEAST_KEPT, 1 << 20, HUGE_FROM, (5 << 20) + 1] {
            let first = taken(bytes);
            given(first);
            let second = taken(bytes - bytes / 8);
            assert_eq!(first, second);
            given(second);
        }
    }

    #[test]
    fn blocks_in_use_are_apart() {
        let sizes = [0, 1, 63, 64, LEAST_KEPT - 1, LEAST_KEPT, 1 << 20, 9 << 20];
        let all: Vec<(usize, usize)> = sizes.iter().map(|&bytes| (taken(bytes).addr(), bytes)).collect();
        for (at, (a, n)) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|(b, m)| a + n <= *b || b + m <= *a));
        }
        for (address, _) in all {
            given(ptr::with_exposed_provenance_mut(address));
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        given(taken(MOST_KEPT + 1));
        assert_eq!(kept(), (0, 0));
        let many: Vec<*mut u8> = (0..40).map(|_| taken(LEAST_KEPT)).collect();
        many.into_iter().for_each(given);
        assert_eq!(kept().0, MOST_BLOCKS);
        let large: Vec<*mut u8> = (0..3).map(|_| taken(30 << 20)).collect();
        large.into_iter().for_each(given);
        assert!(kept().1 <= MOST_KEPT);
        // Small ones are not kept, and large ones not wasted on small wishes.
        given(taken(1000));
        let before = kept();
        let small = taken(LEAST_KEPT);
        assert_eq!(kept(), before);
        given(small);
        // SAFETY: null is nothing.
        unsafe { give(ptr::null_mut()) };
    }

    #[test]
    fn no_memory_is_null() {
        // SAFETY: it may be called with any size.
        assert!(unsafe { take(usize::MAX) }.is_null() && unsafe { take(isize::MAX as usize) }.is_null());
    }

    #[test]
    fn a_thread_that_ends_frees_what_it_kept() {
        let worker = std::thread::spawn(|| given(taken(1 << 20)));
        assert!(worker.join().is_ok());
    }
}
