//! In which order does Go's `sort.Slice` leave elements that compare equal?
//!
//! It is unstable but not random: a pattern-defeating quicksort whose only shuffle is seeded with the length. Upstream
//! sorts its claims with it before each attempt, and which of equal claims takes the pod is what it leaves at the front.
//! So each step here is one of that sort's, in its order; a simpler sort gives another plan.

/// Up to here, insertion sort.
pub(super) const MOST_INSERTED: usize = 12;
/// From here on, a pivot of nine and the repair of almost sorted lists.
pub(super) const LEAST_REPAIRED: usize = 50;
/// Pairs out of order that a repair mends before it gives up.
const MOST_REPAIRS: usize = 5;
/// Exchanges that a pivot of nine takes on a list in falling order.
const FALLING: u32 = 12;

/// A list, and what it is sorted by.
struct Slice<'s, T, F> {
    data: &'s mut [T],
    key: F,
}

/// Sorts by a key the way `sort.Slice` does.
pub(super) fn sort_by_key<T, F: Fn(&T) -> u32>(data: &mut [T], key: F) {
    let length = data.len();
    let limit = usize::BITS - length.leading_zeros();
    Slice { data, key }.sort(0, length, limit);
}

impl<T, F: Fn(&T) -> u32> Slice<'_, T, F> {
    #[inline]
    fn less(&self, a: usize, b: usize) -> bool {
        (self.key)(&self.data[a]) < (self.key)(&self.data[b])
    }

    #[inline]
    fn swap(&mut self, a: usize, b: usize) {
        self.data.swap(a, b);
    }

    fn sort(&mut self, mut from: usize, mut to: usize, mut limit: u32) {
        let (mut was_balanced, mut was_partitioned) = (true, true);
        loop {
            let length = to - from;
            if length <= MOST_INSERTED {
                return self.insert(from, to);
            }
            if limit == 0 {
                return self.heap_sort(from, to);
            }
            if !was_balanced {
                self.shuffle(from, to);
                limit -= 1;
            }
            let (mut pivot, exchanges) = self.pivot(from, to);
            let is_falling = exchanges == FALLING;
            if is_falling {
                self.data[from..to].reverse();
                pivot = (to - 1) - (pivot - from);
            }
            if was_balanced && was_partitioned && (exchanges == 0 || is_falling) && self.repair(from, to) {
                return;
            }
            if from > 0 && !self.less(from - 1, pivot) {
                from = self.split_off_equal(from, to, pivot);
                continue;
            }
            let (middle, is_partitioned) = self.partition(from, to, pivot);
            was_partitioned = is_partitioned;
            let (left, right) = (middle - from, to - middle);
            was_balanced = left.min(right) >= length / 8;
            if left < right {
                self.sort(from, middle, limit);
                from = middle + 1;
            } else {
                self.sort(middle + 1, to, limit);
                to = middle;
            }
        }
    }

    fn insert(&mut self, from: usize, to: usize) {
        for next in from + 1..to {
            let mut at = next;
            while at > from && self.less(at, at - 1) {
                self.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    /// Mends a list that is almost sorted; whether it is sorted now.
    fn repair(&mut self, from: usize, to: usize) -> bool {
        let mut at = from + 1;
        for _ in 0..MOST_REPAIRS {
            while at < to && !self.less(at, at - 1) {
                at += 1;
            }
            if at == to {
                return true;
            }
            if to - from < LEAST_REPAIRED {
                return false;
            }
            self.swap(at, at - 1);
            if at - from >= 2 {
                let mut left = at - 1;
                while left >= 1 && self.less(left, left - 1) {
                    self.swap(left, left - 1);
                    left -= 1;
                }
            }
            if to - at >= 2 {
                let mut right = at + 1;
                while right < to && self.less(right, right - 1) {
                    self.swap(right, right - 1);
                    right += 1;
                }
            }
        }
        false
    }

    /// Puts what is less than the pivot before it; where the pivot is now, and whether nothing else had to move.
    fn partition(&mut self, from: usize, to: usize, pivot: usize) -> (usize, bool) {
        self.swap(from, pivot);
        let (mut low, mut high) = (from + 1, to - 1);
        let mut is_partitioned = true;
        loop {
            while low <= high && self.less(low, from) {
                low += 1;
            }
            while low <= high && !self.less(high, from) {
                high -= 1;
            }
            if low > high {
                self.swap(high, from);
                return (high, is_partitioned);
            }
            is_partitioned = false;
            self.swap(low, high);
            low += 1;
            high -= 1;
        }
    }

    /// Puts what equals the pivot first, where nothing is less; where the greater ones begin.
    fn split_off_equal(&mut self, from: usize, to: usize, pivot: usize) -> usize {
        self.swap(from, pivot);
        let (mut low, mut high) = (from + 1, to - 1);
        loop {
            while low <= high && !self.less(from, low) {
                low += 1;
            }
            while low <= high && self.less(from, high) {
                high -= 1;
            }
            if low > high {
                return low;
            }
            self.swap(low, high);
            low += 1;
            high -= 1;
        }
    }

    /// Exchanges three elements of the middle with ones drawn by a generator that starts from the length.
    fn shuffle(&mut self, from: usize, to: usize) {
        let length = to - from;
        if length < 8 {
            return;
        }
        let mut random = length as u64;
        let mask = (1_u64 << (usize::BITS - length.leading_zeros())) - 1;
        let middle = from + length / 4 * 2;
        for at in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let drawn = (random & mask) as usize;
            self.swap(at, from + if drawn >= length { drawn - length } else { drawn });
        }
    }

    /// A position to part the list at, and how many exchanges finding it would have taken.
    fn pivot(&self, from: usize, to: usize) -> (usize, u32) {
        let length = to - from;
        let mut exchanges = 0;
        let quarter = length / 4;
        let mut at = [from + quarter, from + quarter * 2, from + quarter * 3];
        if length >= 8 {
            if length >= LEAST_REPAIRED {
                for at in &mut at {
                    *at = self.median(*at - 1, *at, *at + 1, &mut exchanges);
                }
            }
            at[1] = self.median(at[0], at[1], at[2], &mut exchanges);
        }
        (at[1], exchanges)
    }

    fn median(&self, a: usize, b: usize, c: usize, exchanges: &mut u32) -> usize {
        let mut in_order = |a, b| {
            if self.less(b, a) {
                *exchanges += 1;
                (b, a)
            } else {
                (a, b)
            }
        };
        let (a, b) = in_order(a, b);
        let (b, _) = in_order(b, c);
        let (_, b) = in_order(a, b);
        b
    }

    fn heap_sort(&mut self, from: usize, to: usize) {
        let length = to - from;
        for root in (0..=(length - 1) / 2).rev() {
            self.sift_down(root, length, from);
        }
        for last in (0..length).rev() {
            self.swap(from, from + last);
            self.sift_down(0, last, from);
        }
    }

    fn sift_down(&mut self, mut root: usize, length: usize, from: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= length {
                return;
            }
            if child + 1 < length && self.less(from + child, from + child + 1) {
                child += 1;
            }
            if !self.less(from + root, from + child) {
                return;
            }
            self.swap(from + root, from + child);
            root = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a over the original positions in sorted order.
    fn digest(keys: impl Iterator<Item = i64>) -> u64 {
        let key = |key| u32::try_from(key).unwrap();
        let mut list: Vec<(u32, u64)> = keys.map(key).zip(0..).collect();
        sort_by_key(&mut list, |(key, _)| *key);
        assert!(list.is_sorted_by_key(|(key, _)| *key));
        let mix = |hash: u64, (_, at): &(u32, u64)| (hash ^ at).wrapping_mul(0x0100_0000_01b3);
        list.iter().fold(0xcbf2_9ce4_8422_2325, mix)
    }

    /// What Go 1.26 answers for lists whose keys are `position * factor % modulus`.
    #[test]
    fn equal_elements_end_up_where_go_puts_them() {
        let cases = [
            (12, 5, 3, 0x4c7f_f2c7_1962_42f1),
            (13, 5, 3, 0xef13_4707_2a15_54fb),
            (30, 7, 4, 0x6d9b_8afe_afdf_3326),
            (49, 11, 6, 0x742b_1a01_8602_9157),
            (50, 11, 6, 0xf639_3ceb_e377_eb0a),
            (64, 1, 64, 0x8368_214f_7799_5ee5),
            (200, 37, 9, 0xfd77_d9a6_6986_7627),
            (1000, 613, 17, 0x2254_afcc_2d1d_7e61),
            (1000, 1, 1000, 0x988c_c5af_d8cb_65dd),
        ];
        for (length, factor, modulus, expected) in cases {
            let keys = (0..length).map(|at| at * factor % modulus);
            assert_eq!(digest(keys), expected, "{length} elements");
        }
        assert_eq!(digest((0..777).map(|at| 777 - at)), 0x76d7_9592_a81e_4aef, "falling");
        let pipe = |length: i64| (0..length).map(move |at| at.min(length - at) / 3);
        assert_eq!(digest(pipe(300)), 0xa3ff_389c_a0b0_6341, "rising and falling");
        assert_eq!(digest(pipe(5000)), 0xe34d_a1fa_2cc8_f027, "rising and falling");
    }
}
