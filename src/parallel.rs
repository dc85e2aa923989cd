//! Work shared out to threads that live no longer than the call: nothing is left behind that a forked process could
//! wait for in vain. The caller's thread is one of them, so work still gets done if the system refuses more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::Builder;

use crate::error::{Result, check_memory};

/// Calls `work` with the number of a thread, below `threads`, and of a job, for each job once.
pub fn for_each(jobs: usize, threads: usize, work: impl Fn(usize, usize) + Sync) {
    let next = AtomicUsize::new(0);
    let run = |thread: usize| {
        loop {
            let job = next.fetch_add(1, Relaxed);
            if job >= jobs {
                return;
            }
            work(thread, job);
        }
    };
    std::thread::scope(|scope| {
        for thread in 1..threads.min(jobs) {
            if Builder::new().spawn_scoped(scope, move || run(thread)).is_err() {
                break;
            }
        }
        run(0);
    });
}

/// `work` on each item, in order of the items. Each thread has a `state` of its own. After an error no further item is
/// begun.
pub fn map<'a, T: Sync, R: Send, S>(
    items: &'a [T],
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'a T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        let mut state = state();
        return items.iter().map(|item| work(&mut state, item)).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Vec<_> = (0..threads).map(|_| Mutex::new(Vec::new())).collect();
    for_each(threads, threads, |_, thread| {
        let mut state = state();
        let mut results = results[thread].lock().expect("one thread has it");
        while let at = next.fetch_add(1, Relaxed)
            && let Some(item) = items.get(at)
        {
            let result = work(&mut state, item);
            if result.is_err() {
                next.store(items.len(), Relaxed);
            }
            results.push((at, result));
        }
    });
    let mut results: Vec<_> =
        results.into_iter().flat_map(|results| results.into_inner().expect("all threads have ended")).collect();
    results.sort_unstable_by_key(|result| result.0);
    results.into_iter().map(|result| result.1).collect()
}

/// The parts in a row, copied by as many threads: most of it is the first touch of fresh memory.
pub fn concat<T: Copy + Default + Send + Sync>(parts: &[Vec<T>], threads: usize) -> Result<Vec<T>> {
    let len = parts.iter().map(Vec::len).sum();
    check_memory(len * size_of::<T>())?;
    let mut whole = vec![T::default(); len]; // not touched yet, where the default is zero
    let mut rest = &mut whole[..];
    let mut copies = Vec::with_capacity(parts.len());
    for part in parts {
        let (place, others) = rest.split_at_mut(part.len());
        copies.push(Mutex::new((place, part)));
        rest = others;
    }
    for_each(copies.len(), threads, |_, copy| {
        let (place, part) = &mut *copies[copy].lock().expect("one thread has it");
        place.copy_from_slice(part);
    });
    drop(copies);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_are_in_order_and_an_error_ends_it() {
        let items: Vec<usize> = (0..1000).collect();
        for threads in [1, 2, 7] {
            let doubled = map(&items, threads, || (), |(), item| Ok(2 * item)).expect("nothing fails");
            assert!(doubled.iter().zip(&items).all(|(double, item)| *double == 2 * item) && doubled.len() == 1000);

            let begun = AtomicUsize::new(0);
            let failed = map(
                &items,
                threads,
                || (),
                |(), item| {
                    begun.fetch_add(1, Relaxed);
                    if *item == 3 { Err(Error::Cancelled) } else { Ok(()) }
                },
            );
            assert_eq!(failed, Err(Error::Cancelled));
            assert!(threads > 1 || begun.load(Relaxed) == 4);
        }
        assert_eq!(map(&[0; 0], 3, || (), |(), _| Ok(())), Ok(Vec::new()));
    }

    #[test]
    fn parts_become_a_whole() {
        let parts: Vec<Vec<usize>> = (0..20).map(|len| (0..len).collect()).collect();
        for threads in [1, 3] {
            assert_eq!(concat(&parts, threads), Ok(parts.concat()));
        }
    }
}
