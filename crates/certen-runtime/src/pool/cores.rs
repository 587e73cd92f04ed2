//! Where the threads of the pool run.
//!
//! A thread that wakes up goes to the core where it ran last, and Linux does not look for an idle one while the cores have
//! been busy on the whole. If the caller has come to that core meanwhile, both share it for milliseconds and another is idle:
//! kernels of that length took twice as long in every second call (two cores, Linux 6.18). So a thread that slept on
//! a taken core is sent to the others before it is woken; once it is there it may go where it likes again.
//!
//! Elsewhere than on Linux nothing is known of cores, and nothing is done.

#[cfg(target_os = "linux")]
pub(super) use linux::Seat;
#[cfg(not(target_os = "linux"))]
pub(super) use nowhere::Seat;

/// Sends threads that sleep away from the core of this thread, and from each other's.
pub(super) fn spread(sleeping: &mut [Seat]) {
    spread_from(Seat::here().core(), sleeping);
}

fn spread_from(own: Option<usize>, sleeping: &mut [Seat]) {
    let mut taken: Vec<usize> = own.into_iter().collect();
    for seat in sleeping {
        match seat.core() {
            Some(core) if taken.contains(&core) => seat.avoid(&taken),
            Some(core) => taken.push(core),
            None => {}
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::mem;

    use libc::{CPU_CLR, CPU_COUNT, CPU_SETSIZE, cpu_set_t, pid_t};

    /// A thread, and the core on which it was when it sat down.
    pub struct Seat {
        thread: pid_t,
        core: Option<usize>,
        /// Where it may run, while it may not run everywhere there.
        home: Option<cpu_set_t>,
    }

    impl Seat {
        /// That of this thread.
        pub fn here() -> Seat {
            // SAFETY: it takes nothing, and cannot fail.
            let thread = unsafe { libc::gettid() };
            Seat { thread, core: current(), home: None }
        }

        /// On how many cores the thread may run now.
        #[cfg(test)]
        pub fn room(&self) -> i32 {
            // SAFETY: it only looks at the set.
            self.allowed().map_or(0, |set| unsafe { CPU_COUNT(&set) })
        }

        /// The core on which the thread was; none if that is not known.
        pub fn core(&self) -> Option<usize> {
            self.core
        }

        /// This thread goes to sleep on the core on which it is, and may be woken on any that it was allowed.
        pub fn sit(&mut self) {
            if let Some(home) = self.home.take() {
                // SAFETY: the set is as large as it is said to be.
                unsafe { libc::sched_setaffinity(self.thread, size_of::<cpu_set_t>(), &raw const home) };
            }
            self.core = current();
        }

        /// The thread will not be woken on these cores, unless it may run on no other.
        pub fn avoid(&mut self, cores: &[usize]) {
            let Some(home) = self.home.or_else(|| self.allowed()) else { return };
            let mut others = home;
            for core in cores.iter().filter(|core| **core < CPU_SETSIZE as usize) {
                // SAFETY: the core is one that a set has room for.
                unsafe { CPU_CLR(*core, &mut others) };
            }
            // SAFETY: both only look at the set, which is as large as it is said to be.
            unsafe {
                if CPU_COUNT(&others) > 0
                    && libc::sched_setaffinity(self.thread, size_of::<cpu_set_t>(), &raw const others) == 0
                {
                    self.home = Some(home);
                }
            }
        }

        /// Where the thread may run now.
        fn allowed(&self) -> Option<cpu_set_t> {
            // SAFETY: a set is an array of numbers, for which zeros are values.
            let mut set: cpu_set_t = unsafe { mem::zeroed() };
            // SAFETY: the set is as large as it is said to be.
            let said = unsafe { libc::sched_getaffinity(self.thread, size_of::<cpu_set_t>(), &raw mut set) };
            (said == 0).then_some(set)
        }
    }

    /// The core on which this thread is.
    fn current() -> Option<usize> {
        // SAFETY: it takes nothing.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod nowhere {
    /// A thread, somewhere.
    pub struct Seat;

    impl Seat {
        pub fn here() -> Seat {
            Seat
        }

        pub fn core(&self) -> Option<usize> {
            None
        }

        pub fn sit(&mut self) {}

        pub fn avoid(&mut self, _: &[usize]) {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::{Seat, spread_from};

    /// A thread that slept on a core which is taken may not wake there, and may again once it has been awake.
    #[test]
    fn who_sleeps_on_a_taken_core_is_sent_elsewhere() {
        let cores = Seat::here().room();
        let ((to_here, from_there), (to_there, from_here)) = (mpsc::channel(), mpsc::channel::<Seat>());
        let other = thread::spawn(move || {
            to_here.send(Seat::here()).expect("the test waits for it");
            let mut own = from_here.recv().expect("the test sends it back");
            let while_sent_away = own.room();
            own.sit();
            (while_sent_away, own.room())
        });
        let seat = from_there.recv().expect("the thread has started");
        let core = seat.core();
        let mut seats = [seat];
        spread_from(core, &mut seats);
        let [seat] = seats;
        to_there.send(seat).expect("the thread waits for it");
        let (while_sent_away, afterwards) = other.join().expect("the thread does not panic");
        assert_eq!(afterwards, cores);
        assert!(cores == 1 || while_sent_away < cores, "{while_sent_away} of {cores} cores");
    }
}
