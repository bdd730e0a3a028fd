//! A list of `top`: rows of cells that are sorted and filtered the same way
//! whatever they show.

use std::cmp::Ordering;

use super::units;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// What stands above it.
    pub title: &'static str,
    /// Its columns on the screen; 0: what is left.
    pub width: u16,
    /// Whether it is sorted downwards when chosen.
    pub is_number: bool,
}

/// A column of text.
pub const fn text(title: &'static str, width: u16) -> Column {
    Column {
        title,
        width,
        is_number: false,
    }
}

/// A column of numbers.
pub const fn number(title: &'static str, width: u16) -> Column {
    Column {
        title,
        width,
        is_number: true,
    }
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A text, fit for a terminal.
    Text(String),
    /// A rate.
    Rate(f64),
    /// A number of things.
    Count(u64),
}

impl Cell {
    /// As it is shown.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Rate(rate) => units::short(*rate),
            Self::Count(count) => units::grouped(*count),
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => natural(a, b),
            (Self::Rate(a), Self::Rate(b)) => a.total_cmp(b),
            (Self::Count(a), Self::Count(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

/// A row.
pub type Row = Vec<Cell>;

/// How a list is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The column it is sorted by.
    pub column: usize,
    /// The largest first.
    pub downwards: bool,
    /// Only rows with this text in some cell; whatever its case.
    pub filter: String,
}

/// The places of the rows to show, in order. O(n log n).
pub fn arranged(rows: &[Row], order: &Order) -> Vec<usize> {
    let wanted = order.filter.to_lowercase();
    let mut places: Vec<usize> = (0..rows.len())
        .filter(|at| fits(&rows[*at], &wanted))
        .collect();
    places.sort_by(|a, b| {
        let (a, b) = (&rows[*a], &rows[*b]);
        let by_column = match (a.get(order.column), b.get(order.column)) {
            (Some(a), Some(b)) => a.compare(b),
            _ => Ordering::Equal,
        };
        let by_column = if order.downwards {
            by_column.reverse()
        } else {
            by_column
        };
        by_column.then_with(|| {
            a.iter().zip(b).fold(Ordering::Equal, |so_far, (a, b)| {
                so_far.then_with(|| a.compare(b))
            })
        })
    });
    places
}

fn fits(row: &Row, wanted: &str) -> bool {
    let has = |cell: &Cell| match cell {
        Cell::Text(text) => text.to_lowercase().contains(wanted),
        _ => false,
    };
    wanted.is_empty() || row.iter().any(has)
}

/// Texts in the order in which people count: `eth2` before `eth10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let ((x, after_a), (y, after_b)) = (digits(a), digits(b));
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if order.is_ne() {
                    return order;
                }
                (a, b) = (after_a, after_b);
            }
            (Some(x), Some(y)) if x == y => (a, b) = (&a[1..], &b[1..]),
            (x, y) => return x.cmp(&y),
        }
    }
}

/// The number at the beginning, without leading zeros, and what follows.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|octet| !octet.is_ascii_digit());
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    let zeros = number.iter().take_while(|octet| **octet == b'0').count();
    (&number[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, rate: f64) -> Row {
        vec![Cell::Text(name.to_owned()), Cell::Rate(rate)]
    }

    fn order(column: usize, downwards: bool, filter: &str) -> Order {
        Order {
            column,
            downwards,
            filter: filter.to_owned(),
        }
    }

    #[test]
    fn rows_are_sorted_and_filtered() {
        let rows = [
            row("eth10", 1.0),
            row("eth2", 5.0),
            row("lo", 5.0),
            row("Eth1", 0.0),
        ];
        assert_eq!(arranged(&rows, &order(0, false, "")), [3, 1, 0, 2]);
        assert_eq!(arranged(&rows, &order(1, true, "")), [1, 2, 0, 3]);
        assert_eq!(arranged(&rows, &order(1, true, "ETH1")), [0, 3]);
        assert_eq!(arranged(&rows, &order(9, true, "")).len(), 4);
        assert!(arranged(&rows, &order(0, false, "nothing")).is_empty());
    }

    #[test]
    fn numbers_in_names_count() {
        assert!(natural("10.2.0.0", "10.10.0.0").is_lt());
        assert!(natural("a007", "a7b").is_lt());
        assert!(natural("a", "a1").is_lt());
        assert!(natural("99999999999999999999999", "100000000000000000000000").is_lt());
    }
}
