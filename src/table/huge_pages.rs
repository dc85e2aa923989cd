//! A hint to the system that an allocation should use huge pages.

/// Smaller allocations are left alone: a huge page has 2 MiB on most systems.
const MIN_BYTES: usize = 1 << 22;

/// Asks for huge pages for the memory of `values`, which has been reserved but not yet written to.
///
/// This is for hash tables: they are read at random places, which with small pages means a miss in the processor's
/// table of pages each time. Memory that is read and written in order gains nothing from it, and large pages are more
/// often new to the process, and in a virtual machine even to the machine.
pub fn use_huge_pages<T>(values: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    if values.capacity() * size_of::<T>() >= MIN_BYTES {
        const PAGE: usize = 1 << 12;
        let start = (values.as_mut_ptr() as usize).next_multiple_of(PAGE);
        let end = (values.as_mut_ptr() as usize + values.capacity() * size_of::<T>()) / PAGE * PAGE;
        // SAFETY: the range is within the allocation, and the advice does not change the contents of memory. If the
        // system's pages are larger than `PAGE`, or it has no huge pages, the call fails without an effect.
        // Without it: +10% time to encode with 50,000 tokens.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = values;
}
