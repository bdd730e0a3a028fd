//! A shorter list that fails as well.

/// The shortest list that taking out lines leads to and that still fails:
/// first halves, then ever smaller pieces, then single lines (delta
/// debugging). `fails` is asked `most` times at most.
pub fn shrink(
    lines: &[String],
    most: usize,
    fails: &mut dyn FnMut(&[String]) -> bool,
) -> Vec<String> {
    let mut left = lines.to_vec();
    let mut asked = 0;
    let mut piece = left.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut is_shorter = false;
        while at < left.len() && asked < most {
            let end = (at + piece).min(left.len());
            let without = [&left[..at], &left[end..]].concat();
            asked += 1;
            if fails(&without) {
                left = without;
                is_shorter = true;
            } else {
                at = end;
            }
        }
        if asked >= most || (piece == 1 && !is_shorter) {
            return left;
        }
        if !is_shorter || piece > left.len() {
            piece = piece.div_ceil(2).min(left.len().div_ceil(2)).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_left() {
        let lines: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let mut fails = |lines: &[String]| {
            ["17", "63", "64"]
                .iter()
                .all(|wanted| lines.iter().any(|line| line == wanted))
        };
        assert_eq!(shrink(&lines, 1_000, &mut fails), ["17", "63", "64"]);
        let few = shrink(&lines, 10, &mut fails);
        assert!(few.len() < 100 && fails(&few));
    }
}
