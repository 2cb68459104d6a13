//! UUIDs, and the two orders in which firmware writes their first half.

use std::{fmt, str::FromStr};

/// A UUID of a virtual machine.
///
/// Guests report the BIOS UUID with the bytes of its first three groups swapped, depending on the firmware's age.
///
/// ```
/// let uuid: vsphere::Uuid = "564d1f2a-0b3c-4d5e-8f90-a1b2c3d4e5f6".parse()?;
/// assert_eq!(uuid.swapped().to_string(), "2a1f4d56-3c0b-5e4d-8f90-a1b2c3d4e5f6");
/// # Ok::<(), vsphere::NotAUuid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// The same UUID as the other sort of firmware writes it.
    #[must_use]
    pub fn swapped(self) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = self.0;
        let [i, j, k, l, m, n, o, p] = rest;
        Self([d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p])
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            write!(out, "{}{byte:02x}", if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" })?;
        }
        Ok(())
    }
}

/// The text is not a UUID.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0:?} is not a UUID: give 32 hex digits, with or without dashes")]
pub struct NotAUuid(String);

impl FromStr for Uuid {
    type Err = NotAUuid;

    /// Dashes and blanks are ignored: `vmx` files write `56 4d 1f 2a 0b 3c 4d 5e-8f 90 ...`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || NotAUuid(text.chars().take(80).collect());
        let mut bytes = [0; 16];
        let mut count = 0;
        for character in text.chars().filter(|character| !matches!(character, '-' | ' ')) {
            let digit = character.to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or_else(refused)?;
            let byte: &mut u8 = bytes.get_mut(count / 2).ok_or_else(refused)?;
            *byte = *byte << 4 | digit;
            count += 1;
        }
        if count == 32 { Ok(Self(bytes)) } else { Err(refused()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_uuid_is_the_same_and_swapping_twice_changes_nothing() {
        let plain: Uuid = "564d1f2a-0b3c-4d5e-8f90-a1b2c3d4e5f6".parse().unwrap();
        for spelling in ["564D1F2A0B3C4D5E8F90A1B2C3D4E5F6", "56 4d 1f 2a 0b 3c 4d 5e-8f 90 a1 b2 c3 d4 e5 f6"] {
            assert_eq!(spelling.parse::<Uuid>().unwrap(), plain);
        }
        assert_eq!(plain.swapped().swapped(), plain);
        for wrong in ["", "564d", "x64d1f2a-0b3c-4d5e-8f90-a1b2c3d4e5f6", &"0".repeat(33)] {
            assert!(wrong.parse::<Uuid>().is_err());
        }
    }
}
