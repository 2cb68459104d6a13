//! Rows of words as lines whose columns stand below each other.

/// A line for each row, without blanks at its end. The last column may be as long as it likes.
pub fn lines(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_stand_below_each_other_whatever_letters_they_hold() {
        let rows = [["#", "STEP", "MESSAGE"], ["14a", "Größe", "two words"], ["1", "S", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(super::lines(&rows), ["#    STEP   MESSAGE", "14a  Größe  two words", "1    S"]);
    }
}
