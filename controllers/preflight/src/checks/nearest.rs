//! What somebody may have meant: of all names those that differ least.

/// The names that were found instead, the nearest first; few enough to be read.
pub fn found<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() {
        return "found none at all".to_owned();
    }
    names.sort_by_cached_key(|name| (distance(wanted, name), (*name).to_owned()));
    names.dedup();
    let rest = names.len().saturating_sub(3);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    names.truncate(3);
    format!("found {}{more}", names.join(", "))
}

/// How many letters have to be changed, added or taken away.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, theirs) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_the_rest_is_counted() {
        for (one, other, want) in [("", "abc", 3), ("kitten", "sitting", 3), ("DS-1", "ds-1", 0), ("ds-1", "ds-2", 1)] {
            assert_eq!(distance(one, other), want, "{one} {other}");
        }
        assert_eq!(found("ds-1", []), "found none at all");
        assert_eq!(found("ds-1", ["zzz", "ds-2"]), "found ds-2, zzz");
        assert_eq!(found("ds-1", ["far away", "zzz", "ds-2", "ds-3", "yyy"]), "found ds-2, ds-3, yyy and 2 more");
    }
}
