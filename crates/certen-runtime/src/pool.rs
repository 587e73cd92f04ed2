//! Threads: one pool for the whole process, which parallel loops of generated code share.
//!
//! A parallel loop comes as a *range function*, which runs the iterations from `begin` to `end`, and a context. The range
//! is divided into equal parts; the division depends only on the range and the number of threads, never on time. Each thread has
//! its own parts, the same in all loops of a length, so that it finds in its caches what it has used before. Who has run all of
//! them takes those of others, which does depend on time; but since iterations are independent of each other (the verifier of
//! loops has shown it) no result does.
//!
//! - **A caller never waits for a thread to start.** It takes parts like the others until none is left, and then waits for the
//!   parts that are being run. So a pool whose threads are late, or gone, costs nothing but time.
//! - **Callers never wait for each other.** The pool works for one of them at a time; who finds it busy runs the whole
//!   range alone. That is also what happens to a parallel loop inside a part.
//! - **Threads are started by the first loop that needs them**, and sleep while there is nothing to do. They are never
//!   joined: the end of the process ends them.
//! - **Who waits stays awake for a moment first**, if every thread has a core: to wake one up takes longer than many loops, and
//!   a kernel has several.
//! - **Threads do not share the caller's core while another is idle** (`cores.rs`).
//! - **After a fork** the child has none of the parent's threads, and its copy of the pool may be locked by one of them. A
//!   pool knows its process; in another one it is left alone, and a new one is made.
//! - **Parts are run in the standard floating-point environment**, whatever a thread's own is.
//!
//! `$CERTEN_THREADS` says how many threads work for a loop, the caller among them; else it is the number of cores that the process
//! may use. [`with_threads`] decides for the calls of one thread.

mod cores;

use std::cell::Cell;
use std::env;
use std::ffi::c_void;
use std::hint;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use self::cores::Seat;
use crate::environment::in_standard_environment;
use crate::error::RuntimeError;

/// Runs the iterations from the first number up to the second. It must be callable on any thread, several times at once
/// for ranges that do not overlap, and must not unwind.
pub(crate) type RangeFunction = unsafe extern "C" fn(begin: i64, end: i64, context: *mut c_void);

/// The type of [`parallel`].
pub(crate) type ParallelFunction = unsafe extern "C" fn(i64, i64, RangeFunction, *mut c_void);

/// More threads than this are a mistake in the setting.
const MAX_THREADS: usize = 1024;

/// Parts for each thread: one that comes late, because others use its core, costs a part of the time and not all of it.
const PARTS_PER_THREAD: usize = 8;

/// How long who waits keeps a core busy: about as long as it takes to wake a thread up.
const AWAKE: Duration = Duration::from_micros(20);

/// How long it then stays awake as long as nothing else wants the core: a thread for the next loop, a caller for the last parts.
/// A caller that sleeps is woken where the thread runs that wakes it, and would share its core.
const IDLE: Duration = Duration::from_micros(100);
const IDLE_CALLER: Duration = Duration::from_millis(2);

/// How many threads work for a loop: `$CERTEN_THREADS`, else the number of cores that the process may use. It is looked up
/// once.
///
/// # Errors
/// If the variable is set to something that is no number from 1 to 1024.
pub fn default_threads() -> Result<NonZeroUsize, RuntimeError> {
    // Not a `OnceLock`: a fork while another thread is inside it would leave the child waiting.
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    if let Some(known) = NonZeroUsize::new(KNOWN.load(Ordering::Relaxed)) {
        return Ok(known);
    }
    let threads = match env::var_os("CERTEN_THREADS").filter(|value| !value.is_empty()) {
        Some(value) => {
            let text = value.to_string_lossy().into_owned();
            parse_threads(&text).ok_or(RuntimeError::Setting {
                name: "CERTEN_THREADS",
                wanted: "a number of threads from 1 to 1024",
                found: text,
            })?
        }
        None => thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
    };
    KNOWN.store(threads.get(), Ordering::Relaxed);
    Ok(threads)
}

/// A number of threads, as users write it.
pub fn parse_threads(text: &str) -> Option<NonZeroUsize> {
    text.trim().parse().ok().filter(|threads: &NonZeroUsize| threads.get() <= MAX_THREADS)
}

thread_local! {
    /// How many threads work for the loops that this thread calls; 0 for the default.
    static THREADS: Cell<usize> = const { Cell::new(0) };
}

/// Does some work; the loops that it calls on this thread are run by so many threads.
pub fn with_threads<T>(threads: NonZeroUsize, work: impl FnOnce() -> T) -> T {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            THREADS.set(self.0);
        }
    }
    let _restore = Restore(THREADS.replace(threads.get().min(MAX_THREADS)));
    work()
}

/// How many threads work for the loops that this thread calls now.
pub(crate) fn threads() -> usize {
    match THREADS.get() {
        0 => default_threads().map_or(1, NonZeroUsize::get),
        chosen => chosen,
    }
}

/// Runs a range function over a range, in parts on several threads. Generated code calls this.
///
/// # Safety
/// `function` may be called with `context` as [`RangeFunction`] says, for every range inside this one, until this
/// returns. It is not called afterwards.
pub(crate) unsafe extern "C" fn parallel(begin: i64, end: i64, function: RangeFunction, context: *mut c_void) {
    if begin >= end {
        return;
    }
    let threads = threads();
    let length = begin.abs_diff(end);
    if threads > 1 && length > 1 && Pool::of_this_process().run(Job::new(begin, length, threads, function, context)) {
        return;
    }
    // SAFETY: this is the range that the caller allows, on the caller's own thread.
    unsafe { function(begin, end, context) };
}

/// Runs the numbers from 0 up to a count, in parts on several threads: each number once, by whichever thread.
pub(crate) fn in_parts<F: Fn(Range<usize>) + Sync>(count: usize, run: &F) {
    /// # Safety
    /// The context is an `F`, and the range lies in that of a `usize`.
    unsafe extern "C" fn part<F: Fn(Range<usize>) + Sync>(begin: i64, end: i64, context: *mut c_void) {
        // SAFETY: by the contract; it is shared with other threads, which `F` allows.
        let run = unsafe { &*context.cast::<F>() };
        run(begin as usize..end as usize);
    }
    let end = i64::try_from(count).unwrap_or(i64::MAX);
    // SAFETY: the context is `run`, which lives longer than this call, and no range goes beyond the count.
    unsafe { parallel(0, end, part::<F>, ptr::from_ref(run).cast_mut().cast()) };
}

/// A parallel loop that the pool works for.
struct Job {
    begin: i64,
    length: u64,
    parts: u64,
    function: RangeFunction,
    context: *mut c_void,
    /// The parts that no thread has taken, for each of the threads.
    left: Vec<Range<u64>>,
    /// How many these are.
    untaken: u64,
    /// How many parts are being run.
    running: usize,
}

// SAFETY: the pointers are only used to call the function, which the maker of a job allows on any thread.
unsafe impl Send for Job {}

/// A part that a thread has taken.
struct JobPart {
    begin: i64,
    end: i64,
    function: RangeFunction,
    context: *mut c_void,
}

impl Job {
    fn new(begin: i64, length: u64, threads: usize, function: RangeFunction, context: *mut c_void) -> Job {
        let (count, parts) = (threads as u64, length.min((threads * PARTS_PER_THREAD) as u64));
        let left = (0..count).map(|thread| thread * parts / count..(thread + 1) * parts / count).collect();
        Job { begin, length, parts, function, context, left, untaken: parts, running: 0 }
    }

    /// Takes a part for a thread, if there is one: the next of its own, which it has in every loop of this length and so in its
    /// caches, else the last one of the thread that has most.
    fn take(&mut self, thread: usize) -> Option<JobPart> {
        let own = thread % self.left.len();
        let part = match self.left[own].next() {
            Some(part) => part,
            None => self.left.iter_mut().max_by_key(|left| left.end - left.start)?.next_back()?,
        };
        // Wide enough for the product, and the sum lies in the range.
        let at = |part: u64| {
            let offset = u128::from(part) * u128::from(self.length) / u128::from(self.parts);
            self.begin.wrapping_add(offset as u64 as i64)
        };
        let (begin, end) = (at(part), at(part + 1));
        self.untaken -= 1;
        self.running += 1;
        Some(JobPart { begin, end, function: self.function, context: self.context })
    }
}

impl JobPart {
    fn run(self) {
        // SAFETY: a part is made from a job, for a range inside it that no other part has; the maker of the job waits
        // until no part is running, see `Pool::run`.
        in_standard_environment(|| unsafe { (self.function)(self.begin, self.end, self.context) });
    }
}

struct PoolState {
    job: Option<Job>,
    /// How many threads the last job was for, besides its caller.
    helpers: usize,
    /// How many threads were started.
    started: usize,
    /// Those that have come to life.
    threads: Vec<Helper>,
}

/// A thread of the pool.
struct Helper {
    /// Where it may run.
    seat: Seat,
    /// Notified if there is a job for it while it sleeps.
    wake: Arc<Condvar>,
    is_asleep: bool,
}

/// The threads of a process. A pool is never freed: its threads may look at it at any time.
struct Pool {
    process: u32,
    /// How many cores the process may use.
    cores: usize,
    /// How often there was something new for those who wait. It changes only under the lock.
    news: AtomicU64,
    state: Mutex<PoolState>,
    /// No part of the job is running, and none is left.
    done: Condvar,
}

impl Pool {
    /// The pool, which is made if there is none that belongs to this process.
    fn of_this_process() -> &'static Pool {
        static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());
        let process = std::process::id();
        loop {
            let found = POOL.load(Ordering::Acquire);
            // SAFETY: what is stored there comes from `Box::leak` below, and is never freed. The fields that are looked at
            // without a lock never change.
            if let Some(pool) = unsafe { found.as_ref() }
                && pool.process == process
            {
                return pool;
            }
            let state = Mutex::new(PoolState { job: None, helpers: 0, started: 0, threads: Vec::new() });
            let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
            let (news, done) = (AtomicU64::new(0), Condvar::new());
            let new = Box::into_raw(Box::new(Pool { process, cores, news, state, done }));
            if POOL.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: it was just made, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // Nothing panics while it holds the lock, and no state in between is visible.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a job; false, and nothing is done, if the pool is working for someone else.
    fn run(&'static self, job: Job) -> bool {
        let mut state = self.lock();
        if state.job.is_some() {
            return false;
        }
        let helpers = job.left.len().min(usize::try_from(job.parts).unwrap_or(usize::MAX)) - 1;
        while state.started < helpers {
            // Without a thread that the system refuses, the others do its work.
            if thread::Builder::new().name("certen".into()).spawn(|| self.work()).is_err() {
                break;
            }
            state.started += 1;
        }
        (state.job, state.helpers) = (Some(job), helpers);
        let threads = state.threads.iter_mut().take(helpers);
        let asleep: Vec<Arc<Condvar>> = threads.filter_map(Helper::called).collect();
        self.news.fetch_add(1, Ordering::Relaxed);
        drop(state);
        // Those who wake up find the lock free.
        asleep.iter().for_each(|wake| wake.notify_one());
        let mut state = self.run_parts(self.lock(), 0);
        // The job's context lives until this returns, so it must not while a part is running.
        let is_running = |state: &PoolState| state.job.as_ref().is_some_and(|job| job.running > 0);
        while is_running(&state) {
            state = self.stay_awake(state, IDLE_CALLER);
            if is_running(&state) {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state.job = None;
        true
    }

    /// Waits until there is something new: at work for a moment, then while others need no core; not longer.
    fn stay_awake<'a>(&'a self, state: MutexGuard<'a, PoolState>, idle: Duration) -> MutexGuard<'a, PoolState> {
        if state.helpers >= self.cores {
            return state;
        }
        let news = || self.news.load(Ordering::Relaxed);
        let known = news();
        drop(state);
        let start = Instant::now();
        while news() == known {
            match start.elapsed() {
                elapsed if elapsed < AWAKE => (0..16).for_each(|_| hint::spin_loop()),
                elapsed if elapsed < idle => thread::yield_now(),
                _ => break,
            }
        }
        self.lock()
    }

    /// Takes parts of the job for a thread and runs them until none is left.
    fn run_parts<'a>(&'a self, mut state: MutexGuard<'a, PoolState>, thread: usize) -> MutexGuard<'a, PoolState> {
        while let Some(part) = state.job.as_mut().and_then(|job| job.take(thread)) {
            drop(state);
            part.run();
            state = self.lock();
            // It is still the same job: it does not end while this part counts as running.
            if let Some(job) = &mut state.job {
                job.running -= 1;
                if job.running == 0 && job.untaken == 0 {
                    self.news.fetch_add(1, Ordering::Relaxed);
                    self.done.notify_one();
                }
            }
        }
        state
    }

    /// The life of a thread.
    fn work(&self) {
        let mut state = self.lock();
        let wake = Arc::new(Condvar::new());
        state.threads.push(Helper { seat: Seat::here(), wake: wake.clone(), is_asleep: false });
        // The caller is the first.
        let own = state.threads.len();
        let has_work =
            |state: &PoolState| own <= state.helpers && state.job.as_ref().is_some_and(|job| job.untaken > 0);
        loop {
            while has_work(&state) {
                state = self.run_parts(state, own);
            }
            if own <= state.helpers {
                state = self.stay_awake(state, IDLE);
            }
            while !has_work(&state) {
                state.threads[own - 1].is_asleep = true;
                state = wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Helper {
    /// There is a job for the thread, far from the caller; what it is woken by, if it sleeps.
    fn called(&mut self) -> Option<Arc<Condvar>> {
        self.seat.leave_this_core();
        std::mem::take(&mut self.is_asleep).then(|| self.wake.clone())
    }
}

#[cfg(test)]
mod tests;
