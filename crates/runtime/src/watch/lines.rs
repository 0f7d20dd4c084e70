//! Lines out of frames: a line may span many frames, a frame may hold many lines, every byte is looked at once.

use bytes::{Bytes, BytesMut};

/// No object of an API server is larger than a few megabytes.
const LONGEST: usize = 64 << 20;

/// What has arrived and is not a whole line yet.
#[derive(Default)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// Up to here there is no end of line.
    searched: usize,
}

/// A line without an end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    pub(super) fn take_in(&mut self, data: &[u8]) -> Result<(), TooLong> {
        if self.buffer.len() + data.len() > LONGEST {
            return Err(TooLong);
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    /// The next whole line; empty ones are passed over.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        loop {
            let unseen = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let line = self.buffer.split_to(self.searched + end + 1).freeze();
            self.searched = 0;
            if line.len() > 1 {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(frames: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for frame in frames {
            lines.take_in(frame).unwrap();
            found.extend(std::iter::from_fn(|| lines.next()).map(|line| line.to_vec()));
        }
        found
    }

    #[test]
    fn frames_cut_lines_anywhere() {
        let expected = [b"one\n".to_vec(), b"two\n".to_vec()];
        assert_eq!(lines(&[b"one\ntwo\n"]), expected);
        assert_eq!(lines(&[b"on", b"e", b"\n\n", b"two", b"\nthr"]), expected);
        assert_eq!(lines(&[b"o", b"n", b"e", b"\n", b"t", b"w", b"o", b"\n"]), expected);
    }

    #[test]
    fn a_line_of_many_frames_is_searched_once() {
        let mut lines = Lines::default();
        for _ in 0..1000 {
            lines.take_in(&[b'x'; 1000]).unwrap();
            assert_eq!(lines.next(), None);
            assert_eq!(lines.searched, lines.buffer.len());
        }
        lines.take_in(b"\n").unwrap();
        assert_eq!(lines.next().map(|line| line.len()), Some(1_000_001));
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut lines = Lines::default();
        let megabyte = vec![b'x'; 1 << 20];
        let taken = (0..100).take_while(|_| lines.take_in(&megabyte).is_ok()).count();
        assert_eq!(taken, 64);
    }
}
