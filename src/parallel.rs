//! Parallel loops on threads that exist only for the duration of a call.
//!
//! There is no thread pool, so a forked process can never wait for a thread that it does not have. The caller's thread
//! takes part in the work, so the work completes even if the system refuses to start more threads.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread::Builder;

use crate::error::{Result, check_memory, try_collect_ok, try_with_capacity};

/// Calls `work(thread, job)` once for each `job` in `0..jobs`. `thread` is below `threads` and identifies the thread.
pub fn for_each(jobs: usize, threads: usize, work: impl Fn(usize, usize) + Sync) {
    let next = AtomicUsize::new(0);
    let take_jobs = |thread: usize| {
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
            if Builder::new().spawn_scoped(scope, move || take_jobs(thread)).is_err() {
                break;
            }
        }
        take_jobs(0);
    });
}

/// Applies `work` to each item and returns the results in the order of the items. Each thread creates its own `state`.
/// After an error, no further items are started.
pub fn map<'a, T: Sync, R: Send + Sync, S>(
    items: &'a [T],
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'a T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        let mut state = state();
        return try_collect_ok(items.iter().map(|item| work(&mut state, item)));
    }
    let next = AtomicUsize::new(0);
    let mut results: Vec<OnceLock<Result<R>>> = try_with_capacity(items.len())?;
    results.resize_with(items.len(), OnceLock::new);
    for_each(threads, threads, |_, _| {
        let mut state = state();
        while let at = next.fetch_add(1, Relaxed)
            && let Some(item) = items.get(at)
        {
            let result = work(&mut state, item);
            if result.is_err() {
                next.store(items.len(), Relaxed);
            }
            assert!(results[at].set(result).is_ok(), "each item is taken once");
        }
    });
    // Items are taken in order, so those that were not started come after the one that failed.
    try_collect_ok(results.into_iter().map(|result| result.into_inner().expect("an earlier item failed")))
}

/// Concatenates `parts`. The copy is parallel because most of its time goes into the first touch of fresh memory.
pub fn concat<T: Copy + Default + Send + Sync>(mut parts: Vec<Vec<T>>, threads: usize) -> Result<Vec<T>> {
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    let len = parts.iter().map(Vec::len).sum();
    check_memory(len * size_of::<T>())?;
    let mut result = vec![T::default(); len]; // does not touch the memory if the default is zero
    let mut rest = &mut result[..];
    let mut copies = try_with_capacity(parts.len())?;
    for part in &parts {
        let (target, others) = rest.split_at_mut(part.len());
        copies.push(Mutex::new((target, part)));
        rest = others;
    }
    for_each(copies.len(), threads, |_, copy| {
        let (target, part) = &mut *copies[copy].lock().expect("each copy is used by one thread");
        target.copy_from_slice(part);
    });
    drop(copies);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_are_in_order_and_an_error_stops_the_work() {
        let items: Vec<usize> = (0..1000).collect();
        for threads in [1, 2, 7] {
            let doubled = map(&items, threads, || (), |(), item| Ok(2 * item)).expect("nothing fails");
            assert!(doubled.iter().zip(&items).all(|(double, item)| *double == 2 * item) && doubled.len() == 1000);

            let started = AtomicUsize::new(0);
            let failed = map(
                &items,
                threads,
                || (),
                |(), item| {
                    started.fetch_add(1, Relaxed);
                    if *item == 3 { Err(Error::Cancelled) } else { Ok(()) }
                },
            );
            assert_eq!(failed, Err(Error::Cancelled));
            assert!(threads > 1 || started.load(Relaxed) == 4);
        }
        assert_eq!(map(&[0; 0], 3, || (), |(), _| Ok(())), Ok(Vec::new()));
    }

    #[test]
    fn parts_are_concatenated_in_order() {
        let parts: Vec<Vec<usize>> = (0..20).map(|len| (0..len).collect()).collect();
        for threads in [1, 3] {
            assert_eq!(concat(parts.clone(), threads), Ok(parts.concat()));
        }
    }
}
