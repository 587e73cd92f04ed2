//! The pool under load: every iteration runs once, whichever thread calls.

use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use super::*;

/// What a loop over this context does: counts each iteration, and notes the parts.
struct Counts {
    begin: i64,
    counts: Vec<AtomicU64>,
    parts: Mutex<Vec<(i64, i64)>>,
}

impl Counts {
    fn new(begin: i64, length: usize) -> Counts {
        Counts { begin, counts: (0..length).map(|_| AtomicU64::new(0)).collect(), parts: Mutex::default() }
    }

    fn run(&mut self, threads: usize) {
        let end = self.begin + self.counts.len() as i64;
        run(threads, self.begin, end, count, self);
    }

    fn parts(&self) -> Vec<(i64, i64)> {
        let mut parts = self.parts.lock().unwrap().clone();
        parts.sort();
        parts
    }

    fn all_are(&self, wanted: u64) -> bool {
        self.counts.iter().all(|count| count.load(Ordering::Relaxed) == wanted)
    }
}

unsafe extern "C" fn count(begin: i64, end: i64, context: *mut c_void) {
    // SAFETY: `run` gives the context of this type, and waits.
    let context = unsafe { &*context.cast::<Counts>() };
    context.parts.lock().unwrap().push((begin, end));
    for i in begin..end {
        context.counts[(i - context.begin) as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// A loop by so many threads.
fn run<T: Sync>(threads: usize, begin: i64, end: i64, function: RangeFunction, context: &mut T) {
    let context: *mut T = context;
    with_threads(NonZeroUsize::new(threads).unwrap(), || {
        // SAFETY: each function of these tests treats its context as shared, and is given the type that it expects.
        unsafe { parallel(begin, end, function, context.cast()) };
    });
}

#[test]
fn every_iteration_runs_once_for_any_number_of_threads() {
    for threads in [1, 2, 3, 7] {
        for length in [0, 1, 2, 3, 5, 7, 8, 29, 64, 1000] {
            let mut counts = Counts::new(-3, length);
            counts.run(threads);
            assert!(counts.all_are(1), "{threads} threads, {length} iterations");
        }
    }
}

#[test]
fn the_division_depends_on_the_range_and_the_number_of_threads_only() {
    let division = |length: u64, parts: u64| {
        let mut job = Job { length, parts, untaken: parts, ..Job::new(10, parts, 1, count, ptr::null_mut()) };
        job.left = std::iter::once(0..parts).collect();
        std::iter::from_fn(|| job.take(0).map(|part| (part.begin, part.end))).collect::<Vec<_>>()
    };
    assert_eq!(division(7, 3), [(10, 12), (12, 14), (14, 17)]);
    for (length, parts) in [(1, 1), (8, 8), (29, 8), (1000, 28), (u64::MAX / 2, 12)] {
        let found = division(length, parts);
        assert_eq!(found.len() as u64, parts);
        assert_eq!((found[0].0, found[found.len() - 1].1), (10, 10i64.wrapping_add(length as i64)));
        assert!(found.windows(2).all(|pair| pair[0].1 == pair[1].0));
        let sizes = || found.iter().map(|(begin, end)| end.wrapping_sub(*begin));
        assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
    }
    // A loop that gets the pool, and one that does not, do the same.
    let mut counts = Counts::new(0, 29);
    counts.run(2);
    assert!(
        counts.parts() == division(29, 16).iter().map(|(b, e)| (b - 10, e - 10)).collect::<Vec<_>>()
            || counts.parts() == [(0, 29)]
    );
}

#[test]
fn a_thread_takes_its_own_parts_first_and_then_the_last_of_others() {
    let mut job = Job::new(0, 24, 3, count, ptr::null_mut());
    let mut take = |thread| job.take(thread).map(|part| part.begin);
    // Eight parts each: 0 to 7, 8 to 15, 16 to 23.
    let first: Vec<_> = [1, 1, 0, 2, 4].map(|thread| take(thread).unwrap()).into();
    assert_eq!(first, [8, 9, 0, 16, 10]);
    let second: Vec<_> = std::iter::from_fn(|| take(2)).collect();
    assert_eq!(second[..7], [17, 18, 19, 20, 21, 22, 23]);
    let mut others = second[7..].to_vec();
    assert_eq!(others[0], 7);
    others.sort();
    assert_eq!(others, [1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15]);
    assert_eq!(job.untaken, 0);
}

#[test]
fn ranges_at_the_ends_of_the_integers() {
    unsafe extern "C" fn add(begin: i64, end: i64, context: *mut c_void) {
        // SAFETY: as in `count`.
        let sum = unsafe { &*context.cast::<AtomicU64>() };
        sum.fetch_add(begin.abs_diff(end), Ordering::Relaxed);
    }
    for (begin, end) in [(i64::MIN, i64::MAX), (i64::MAX - 3, i64::MAX), (i64::MIN, i64::MIN + 1), (5, -5), (3, 3)] {
        let mut sum = AtomicU64::new(0);
        run(3, begin, end, add, &mut sum);
        assert_eq!(sum.into_inner(), if begin < end { begin.abs_diff(end) } else { 0 });
    }
}

#[test]
fn thousands_of_calls_by_eight_callers_at_once() {
    thread::scope(|scope| {
        for caller in 0..8 {
            scope.spawn(move || {
                let mut counts = Counts::new(0, 17 + caller);
                for _ in 0..2000 {
                    counts.run(1 + caller % 4);
                    counts.parts.lock().unwrap().clear();
                }
                assert!(counts.all_are(2000));
            });
        }
    });
}

#[test]
fn loops_inside_of_loops_run_where_they_are() {
    unsafe extern "C" fn outer(begin: i64, end: i64, context: *mut c_void) {
        for _ in begin..end {
            // SAFETY: the same context, for the same kind of use.
            unsafe { parallel(0, 50, count, context) };
        }
    }
    let mut counts = Counts::new(0, 50);
    run(3, 0, 40, outer, &mut counts);
    assert!(counts.all_are(40));
}

#[test]
fn the_number_of_threads_is_a_number() {
    assert_eq!(parse_threads(" 3 ").map(NonZeroUsize::get), Some(3));
    for text in ["0", "-1", "1025", "many", "", "1.5", "99999999999999999999"] {
        assert_eq!(parse_threads(text), None, "{text}");
    }
    let three = NonZeroUsize::new(3).unwrap();
    let inside = with_threads(three, || (threads(), with_threads(NonZeroUsize::MIN, threads), threads()));
    assert_eq!(inside, (3, 1, 3));
    assert_eq!(THREADS.get(), 0);
}

/// Ends the wait for something that hangs.
fn before(deadline: Duration, mut finished: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < deadline {
        if finished() {
            return true;
        }
        thread::sleep(Duration::from_millis(2));
    }
    false
}

#[cfg(unix)]
mod fork {
    use super::*;

    // SAFETY: these are the C library's declarations.
    unsafe extern "C" {
        fn fork() -> i32;
        fn _exit(status: i32) -> !;
        safe fn kill(process: i32, signal: i32) -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    }

    /// Whether some work comes to an end, and to a good one, in a child process.
    fn in_a_child(work: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls what a C library allows after a fork in practice (memory, threads), and ends without
        // unwinding into the test runner's code.
        let child = unsafe { fork() };
        assert!(child >= 0);
        if child == 0 {
            let good = work();
            // SAFETY: ends the process.
            unsafe { _exit(if good { 0 } else { 1 }) };
        }
        let mut status = -1;
        // SAFETY: the pointer is to a live integer; 1 is WNOHANG.
        let ended = before(Duration::from_secs(20), || unsafe { waitpid(child, &mut status, 1) } == child);
        if !ended {
            kill(child, 9);
            // SAFETY: as above.
            unsafe { waitpid(child, &mut status, 0) };
        }
        ended && status == 0
    }

    fn works() -> bool {
        let mut counts = Counts::new(0, 1000);
        for _ in 0..20 {
            counts.run(3);
        }
        counts.all_are(20)
    }

    #[test]
    fn a_child_gets_a_pool_of_its_own() {
        assert!(works());
        assert!(in_a_child(works));
        assert!(in_a_child(|| works() && in_a_child(works)));
        assert!(works());
    }

    #[test]
    fn a_fork_while_the_pool_is_busy() {
        struct Waiting {
            entered: AtomicBool,
            go: AtomicBool,
        }
        unsafe extern "C" fn wait(_: i64, _: i64, context: *mut c_void) {
            // SAFETY: as in `count`.
            let context = unsafe { &*context.cast::<Waiting>() };
            context.entered.store(true, Ordering::SeqCst);
            while !context.go.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        let waiting = Waiting { entered: AtomicBool::new(false), go: AtomicBool::new(false) };
        thread::scope(|scope| {
            let shared = &waiting;
            scope.spawn(move || {
                let context = ptr::from_ref(shared).cast_mut().cast();
                let two = NonZeroUsize::new(2).unwrap();
                // SAFETY: the function shares its context, which lives as long as the scope.
                with_threads(two, || unsafe { parallel(0, 100, wait, context) });
            });
            let entered = before(Duration::from_secs(20), || waiting.entered.load(Ordering::SeqCst));
            let good = in_a_child(works);
            // In this process the pool is busy, which hinders no caller.
            let here = works();
            waiting.go.store(true, Ordering::SeqCst);
            assert!(entered && good && here);
        });
    }
}

#[test]
fn the_process_ends_while_threads_sleep() {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "pool::tests::every_iteration_runs_once_for_any_number_of_threads"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut status = None;
    let ended = before(Duration::from_secs(20), || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    if !ended {
        child.kill().unwrap();
    }
    assert!(status.is_some_and(|status| status.success()));
}
