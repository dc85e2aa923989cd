//! A hint to the processor that a value will be needed soon.

/// Starts loading `values[at]` into the cache. Does nothing if `at` is out of bounds.
#[inline]
pub fn prefetch<T>(values: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is only a hint, and the address comes from a valid reference. Without it: +25% time to
        // count a text with a million unique chunks.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
}
