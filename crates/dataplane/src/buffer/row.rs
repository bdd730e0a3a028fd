//! A row of handles, or of slots: a vector that never grows and begins on a
//! cache line, so that no wide word that is moved lies in two lines. (With
//! `Vec`, which begins anywhere, a bulk costs nearly twice as much.)

#![allow(unsafe_code, reason = "places of a row are seen as what lies in them")]

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::ptr;

use super::LINE_BYTES;

/// Up to a most number of values, in order.
pub struct Row<T> {
    lines: Box<[MaybeUninit<Line>]>,
    len: usize,
    /// Never more.
    most: usize,
    values: PhantomData<T>,
}

/// A cache line.
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "room, seen as values")] [u8; LINE_BYTES]);

impl<T> Row<T> {
    /// Whole values lie in a line.
    const IN_LINE: usize = {
        assert!(size_of::<T>() > 0 && LINE_BYTES.is_multiple_of(size_of::<T>()));
        LINE_BYTES / size_of::<T>()
    };

    /// Room for so many values.
    pub fn new(most: usize) -> Self {
        Self {
            lines: Box::new_uninit_slice(most.div_ceil(Self::IN_LINE)),
            len: 0,
            most,
            values: PhantomData,
        }
    }

    /// How many values have room in it.
    #[inline(always)]
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many more values have room in it.
    #[inline(always)]
    pub fn room(&self) -> usize {
        self.most - self.len
    }

    /// The first place.
    #[inline(always)]
    pub fn as_ptr(&self) -> *const T {
        self.lines.as_ptr().cast()
    }

    /// The first place.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.lines.as_mut_ptr().cast()
    }

    /// Says how many there are.
    ///
    /// # Safety
    /// At most [`Row::most`], and as many from the first place on are values
    /// of the row's own.
    #[inline(always)]
    pub unsafe fn set_len(&mut self, len: usize) {
        self.len = len;
    }

    /// Adds a value; it comes back when there is no room.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.len == self.most {
            return Err(value);
        }
        // SAFETY: there is a place behind the last value.
        unsafe { self.as_mut_ptr().add(self.len).write(value) };
        self.len += 1;
        Ok(())
    }

    /// Takes the last value out.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: it was a value, and the row forgets it.
        Some(unsafe { self.as_ptr().add(self.len).read() })
    }

    /// Adds values; what there is no room for is dropped.
    #[inline(always)]
    pub fn extend(&mut self, values: impl Iterator<Item = T>) {
        let (len, room) = (self.len, self.room());
        // SAFETY: `len` <= `most`.
        let to = unsafe { self.as_mut_ptr().add(len) };
        let mut added = 0;
        // Not a loop of `push`: a ring's iterator is at its best from inside.
        values.for_each(|value| {
            if added < room {
                // SAFETY: a place with no value in it.
                unsafe { to.add(added).write(value) };
                added += 1;
            }
        });
        self.len = len + added;
    }

    /// Takes out the values in a range of places, in order; none from behind
    /// the end. Those not taken from the iterator are dropped.
    #[inline]
    pub fn drain(&mut self, range: Range<usize>) -> Drain<'_, T> {
        let len = self.len;
        let end = range.end.min(len);
        let start = range.start.min(end);
        self.len = start;
        Drain {
            row: self,
            at: start,
            end,
            len,
        }
    }

    /// Takes out the values for which `goes` says so; the order of the rest
    /// is kept. Those not taken from the iterator stay.
    #[inline]
    pub fn extract<F: FnMut(&mut T) -> bool>(&mut self, goes: F) -> Extract<'_, T, F> {
        let len = self.len;
        self.len = 0;
        Extract {
            row: self,
            at: 0,
            len,
            goes,
        }
    }

    /// Moves the values from a place to `len` down to the row's end.
    ///
    /// # Safety
    /// They must be values of nobody else, and none be between.
    #[inline(always)]
    unsafe fn close(&mut self, from: usize, len: usize) {
        let (to, count) = (self.len, len - from);
        if to != from && count > 0 {
            let row = self.as_mut_ptr();
            // SAFETY: both are places of the row; the caller's values.
            unsafe { ptr::copy(row.add(from), row.add(to), count) };
        }
        self.len = to + count;
    }
}

impl<T> Deref for Row<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` places are values; a line is aligned for
        // what it is a multiple of.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Row<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`; the row is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.len) }
    }
}

impl<T> Drop for Row<T> {
    fn drop(&mut self) {
        self.drain(0..self.len);
    }
}

impl<T: fmt::Debug> fmt::Debug for Row<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// See [`Row::drain`]. The row ends before the range meanwhile.
pub struct Drain<'a, T> {
    row: &'a mut Row<T>,
    at: usize,
    end: usize,
    /// Of the row before.
    len: usize,
}

impl<T> Iterator for Drain<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.at == self.end {
            return None;
        }
        // SAFETY: a value that the row has forgotten, read once.
        let value = unsafe { self.row.as_ptr().add(self.at).read() };
        self.at += 1;
        Some(value)
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.at;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Drain<'_, T> {}

impl<T> Drop for Drain<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.for_each(drop);
        // SAFETY: what is behind the range; the range was taken out.
        unsafe { self.row.close(self.end, self.len) };
    }
}

/// See [`Row::extract`]. The row holds those that stay meanwhile.
pub struct Extract<'a, T, F> {
    row: &'a mut Row<T>,
    at: usize,
    /// Of the row before.
    len: usize,
    goes: F,
}

impl<T, F: FnMut(&mut T) -> bool> Iterator for Extract<'_, T, F> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        while self.at < self.len {
            // SAFETY: a value that was not looked at yet.
            let place = unsafe { &mut *self.row.as_mut_ptr().add(self.at) };
            let goes = (self.goes)(place);
            self.at += 1;
            // SAFETY: read once: it is given out, or moved to the end.
            let value = unsafe { ptr::read(place) };
            if goes {
                return Some(value);
            }
            let len = self.row.len;
            // SAFETY: at most `at` - 1, whose value was taken.
            unsafe { self.row.as_mut_ptr().add(len).write(value) };
            self.row.len = len + 1;
        }
        None
    }
}

impl<T, F> Drop for Extract<'_, T, F> {
    fn drop(&mut self) {
        // SAFETY: those not looked at; those before were taken or moved.
        unsafe { self.row.close(self.at, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// Values that are counted, so that one dropped twice or never is seen.
    fn row(count: usize, most: usize) -> (Row<Rc<usize>>, Vec<Rc<usize>>) {
        let values: Vec<Rc<usize>> = (0..count).map(Rc::new).collect();
        let mut row = Row::new(most);
        row.extend(values.iter().cloned());
        (row, values)
    }

    fn numbers(row: &Row<Rc<usize>>) -> Vec<usize> {
        row.iter().map(|value| **value).collect()
    }

    fn in_use(values: &[Rc<usize>]) -> Vec<usize> {
        let used = values.iter().filter(|value| Rc::strong_count(value) == 2);
        used.map(|value| **value).collect()
    }

    #[test]
    fn it_begins_on_a_line_and_holds_its_most_and_no_more() {
        let (mut row, values) = row(12, 10);
        assert_eq!(row.as_ptr().addr() % LINE_BYTES, 0);
        assert_eq!((row.len(), row.room(), row.most()), (10, 0, 10));
        assert_eq!(*row.push(Rc::new(77)).unwrap_err(), 77);
        assert_eq!(row.pop().as_deref(), Some(&9));
        assert_eq!(in_use(&values), (0..9).collect::<Vec<_>>());
        assert!(row.push(Rc::new(5)).is_ok());
        drop(row);
        assert!(in_use(&values).is_empty());
        assert!(Row::<u64>::new(0).push(1).is_err());
        assert_eq!(Row::<u64>::new(0).pop(), None);
    }

    #[test]
    fn a_range_is_taken_out_and_the_rest_moves_up() {
        let (mut row, values) = row(10, 10);
        let taken: Vec<usize> = row.drain(2..5).map(|value| *value).collect();
        assert_eq!(
            (taken, numbers(&row)),
            (vec![2, 3, 4], vec![0, 1, 5, 6, 7, 8, 9])
        );
        // What is not taken goes too.
        assert_eq!(row.drain(0..2).len(), 2);
        assert_eq!(row.drain(4..99).next().as_deref(), Some(&9));
        assert_eq!(row.drain(9..99).count(), 0);
        assert_eq!(numbers(&row), [5, 6, 7, 8]);
        assert_eq!(in_use(&values), [5, 6, 7, 8]);
    }

    #[test]
    fn what_goes_is_taken_and_what_stays_keeps_its_order() {
        let (mut row, values) = row(10, 10);
        let taken: Vec<usize> = row
            .extract(|value| **value % 3 == 0)
            .map(|value| *value)
            .collect();
        assert_eq!(
            (taken, numbers(&row)),
            (vec![0, 3, 6, 9], vec![1, 2, 4, 5, 7, 8])
        );
        // Those not asked for stay.
        let first = row.extract(|value| **value % 2 == 0).next();
        assert_eq!(
            (first.as_deref(), numbers(&row)),
            (Some(&2), vec![1, 4, 5, 7, 8])
        );
        drop(first);
        assert_eq!(in_use(&values), [1, 4, 5, 7, 8]);
    }

    #[test]
    fn a_panic_on_the_way_neither_loses_nor_doubles() {
        let (mut row, values) = row(6, 6);
        let attempt = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            row.extract(|value| {
                assert!(**value < 3, "as wanted");
                **value == 1
            })
            .for_each(drop);
        }));
        assert!(attempt.is_err());
        assert_eq!(numbers(&row), [0, 2, 3, 4, 5]);
        assert_eq!(in_use(&values), [0, 2, 3, 4, 5]);
    }
}
