//! Work shared out to threads that live no longer than the call: nothing is left behind that a forked
//! process could wait for in vain.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::error::Result;

/// `work` on each item, in order of the items. Each thread has a `state` of its own.
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
    let worker = || -> Result<Vec<(usize, R)>> {
        let mut state = state();
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(at) else { return Ok(results) };
            results.push((at, work(&mut state, item)?));
        }
    };
    let mut results = Vec::with_capacity(items.len());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            results.append(&mut worker.join().expect("no panic in a worker")?);
        }
        Ok(())
    })?;
    results.sort_unstable_by_key(|result| result.0);
    Ok(results.into_iter().map(|result| result.1).collect())
}

/// The parts in a row, copied by as many threads: most of it is the first touch of fresh memory.
pub fn concat<T: Copy + Default + Send + Sync>(parts: &[Vec<T>], threads: usize) -> Vec<T> {
    let mut whole = vec![T::default(); parts.iter().map(Vec::len).sum()];
    let mut rest = &mut whole[..];
    let mut copies = Vec::with_capacity(parts.len());
    for part in parts {
        let (place, others) = rest.split_at_mut(part.len());
        copies.push(Mutex::new((place, part)));
        rest = others;
    }
    let copied = map(
        &copies,
        threads,
        || (),
        |(), copy| {
            let (place, part) = &mut *copy.lock().expect("no panic in copying");
            place.copy_from_slice(part);
            Ok(())
        },
    );
    copied.expect("copying does not fail");
    drop(copies);
    whole
}
