//! How does Kubernetes print a quantity? Canonical text, so that a file equals what an API server would have returned.

/// Millicores.
pub fn cpu(millicores: u64) -> String {
    if millicores.is_multiple_of(1000) {
        (millicores / 1000).to_string()
    } else {
        format!("{millicores}m")
    }
}

/// A plain number, in thousands where that stays whole.
pub fn count(number: u64) -> String {
    if number != 0 && number.is_multiple_of(1000) {
        format!("{}k", number / 1000)
    } else {
        number.to_string()
    }
}

/// Mebibytes, in the largest binary unit that stays whole.
pub fn memory(mebibytes: u64) -> String {
    let units = ["Mi", "Gi", "Ti"];
    let mut value = mebibytes;
    let mut unit = 0;
    while value != 0 && value.is_multiple_of(1024) && unit + 1 < units.len() {
        value /= 1024;
        unit += 1;
    }
    if value == 0 {
        "0".to_string()
    } else {
        format!("{value}{}", units[unit])
    }
}

/// A whole number of 10⁻¹³ dollars as decimal text without trailing zeros: exact, where a float would round.
pub fn dollars(tenth_picodollars: u128) -> String {
    const ONE: u128 = 10_000_000_000_000;
    let fraction = format!("{:013}", tenth_picodollars % ONE);
    let fraction = fraction.trim_end_matches('0');
    let whole = tenth_picodollars / ONE;
    if fraction.is_empty() {
        whole.to_string()
    } else {
        format!("{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_in_their_canonical_form() {
        let printed = [
            cpu(500),
            cpu(1000),
            cpu(1500),
            count(990),
            count(4000),
            memory(0),
            memory(100),
            memory(1024),
            memory(1536),
            memory(2 * 1024 * 1024),
        ];
        assert_eq!(
            printed,
            ["500m", "1", "1500m", "990", "4k", "0", "100Mi", "1Gi", "1536Mi", "2Ti"]
        );
    }

    #[test]
    fn prices_print_exactly() {
        assert_eq!(
            [dollars(0), dollars(190_032_385_536), dollars(20_000_000_000_000)],
            ["0", "0.0190032385536", "2"]
        );
    }
}
