//! Where the threads of the pool run.
//!
//! Linux wakes a thread where it ran last, or where the one runs that wakes it, and does not look for an idle core while the
//! cores have been busy on the whole. If that is the caller's core, both share it for milliseconds while another is idle: most
//! calls of kernels of some milliseconds took twice as long (two cores of a virtual machine, Linux 6.18). So the threads of
//! the pool may not run on the core of the caller whom they work for. Otherwise they go where they like.
//!
//! Elsewhere than on Linux nothing is known of cores, and nothing is done.

#[cfg(target_os = "linux")]
pub(super) use linux::Seat;
#[cfg(not(target_os = "linux"))]
pub(super) use nowhere::Seat;

#[cfg(target_os = "linux")]
mod linux {
    use std::mem;

    use libc::{CPU_CLR, CPU_COUNT, CPU_EQUAL, CPU_SETSIZE, cpu_set_t, pid_t};

    /// A thread, and where it may run.
    pub struct Seat {
        thread: pid_t,
        /// The core that it has to avoid, where it might run without that, and where it may run now.
        away: Option<(usize, cpu_set_t, cpu_set_t)>,
    }

    impl Seat {
        /// That of this thread.
        pub fn here() -> Seat {
            // SAFETY: it takes nothing, and cannot fail.
            Seat { thread: unsafe { libc::gettid() }, away: None }
        }

        /// The thread leaves the core of the calling thread alone, unless it may run on no other.
        pub fn leave_this_core(&mut self) {
            // SAFETY: it takes nothing.
            if let Ok(core) = usize::try_from(unsafe { libc::sched_getcpu() }) {
                self.leave(core);
            }
        }

        pub(super) fn leave(&mut self, core: usize) {
            if self.away.is_some_and(|(left, ..)| left == core) || core >= CPU_SETSIZE as usize {
                return;
            }
            let Some(now) = self.allowed() else { return };
            // Unless it was sent elsewhere meanwhile, by a user of the process.
            let home = match self.away {
                // SAFETY: it only looks at the sets.
                Some((_, home, sent)) if unsafe { CPU_EQUAL(&now, &sent) } => home,
                _ => now,
            };
            let mut others = home;
            // SAFETY: the core is one that a set has room for; the sets are as large as they are said to be.
            unsafe {
                CPU_CLR(core, &mut others);
                if CPU_COUNT(&others) > 0
                    && libc::sched_setaffinity(self.thread, size_of::<cpu_set_t>(), &raw const others) == 0
                {
                    self.away = Some((core, home, others));
                }
            }
        }

        /// Where the thread may run now.
        pub(super) fn allowed(&self) -> Option<cpu_set_t> {
            // SAFETY: a set is an array of numbers, for which zeros are values.
            let mut set: cpu_set_t = unsafe { mem::zeroed() };
            // SAFETY: the set is as large as it is said to be.
            let said = unsafe { libc::sched_getaffinity(self.thread, size_of::<cpu_set_t>(), &raw mut set) };
            (said == 0).then_some(set)
        }
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

        pub fn leave_this_core(&mut self) {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{mem, thread};

    use libc::{CPU_ISSET, CPU_SET, CPU_SETSIZE, cpu_set_t};

    use super::Seat;

    fn cores(seat: &Seat) -> Vec<usize> {
        let set = seat.allowed().expect("the thread lives");
        // SAFETY: it only looks at the set.
        (0..CPU_SETSIZE as usize).filter(|core| unsafe { CPU_ISSET(*core, &set) }).collect()
    }

    /// A thread leaves one core at a time alone, wherever it was before, and keeps to what a user has said of it.
    #[test]
    fn a_thread_leaves_the_core_of_the_caller_alone() {
        let test = || {
            let mut seat = Seat::here();
            let home = cores(&seat);
            for core in home.iter().chain(home.first()) {
                seat.leave(*core);
                let others: Vec<usize> = home.iter().copied().filter(|other| other != core).collect();
                assert_eq!(cores(&seat), if others.is_empty() { home.clone() } else { others });
            }
            let (first, last) = (home[0], home[home.len() - 1]);
            // SAFETY: a set is an array of numbers, and has room for the cores of this thread.
            unsafe {
                let mut only: cpu_set_t = mem::zeroed();
                CPU_SET(first, &mut only);
                assert_eq!(libc::sched_setaffinity(0, size_of::<cpu_set_t>(), &raw const only), 0);
            }
            seat.leave(last);
            assert_eq!(cores(&seat), [first]);
        };
        // A thread of its own, which takes where it may run with it.
        thread::spawn(test).join().expect("the test passes");
    }
}
